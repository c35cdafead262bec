"""What jobs print, read: bytes of an output file in, record events out; pure, and of constant cost a line.

One `StreamParser` follows one output file of a run:

    causes = Causes()                                     # one a run: why it failed, gathered over all files
    parser = StreamParser("output/0/stdout.log", stream="stdout", rank=0, causes=causes)
    events = parser.feed(data, t_ns)                      # the next bytes of the file, whatever their boundaries
    events = parser.close(t_ns)                           # the file grows no more: its last line may lack an end
    causes.add(ended(3, -9))                              # what the hub itself saw: rank 3 ended by SIGKILL
    causes.root()                                         # model Failure or None; causes.of(rank) for one rank

Events are of the record's vocabulary, stamped `t_ns`, in order: `LogLines` for every byte of the file (neighbours of
one rank and level together), and what the lines mean: `Configured`, `Tokens`, `PhaseDone`, `Progress`, each with
source "log". A successor of a dead hub feeds each file from its beginning again and says how much of it is
`recorded`: that part is read for its context (rounds are counted, not numbered) and gives no events.

`visible(data)` is the text that one line leaves on a terminal: the last frame of a progress bar, no control codes.

Dialects are tables of (pattern, meaning, dates): mori, deepep, torchrun. All of them are tried on every line.
"""

from __future__ import annotations

from morimon.logs.causes import Causes, ended
from morimon.logs.lines import visible
from morimon.logs.stream import LogEvent, StreamParser

__all__ = ["Causes", "LogEvent", "StreamParser", "ended", "visible"]
