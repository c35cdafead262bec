"""The loader's worker: `python -m morimon.trace FILE OUTDIR` reads a trace and leaves it in OUTDIR for `open_saved`.

Standard output is one JSON object a line: {"bytes_done", "bytes_total"} while reading, then {"ready": OUTDIR}, or
{"error": sentence, "not_a_trace": bool} with exit code 1. To cancel, kill the process: a hand-over that was not
finished is not taken for one.
"""

from __future__ import annotations

import sys
import time

import msgspec

from morimon.trace.handover import save
from morimon.trace.load import load
from morimon.trace.model import NotATraceError, TraceError

SAY_EVERY_S = 0.05


def main(arguments: list[str]) -> int:
    """Read and hand over; return the exit code."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m morimon.trace FILE OUTDIR\n")
        return 2
    said = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= SAY_EVERY_S or done == total:
            said = now
            _say({"bytes_done": done, "bytes_total": total})

    try:
        save(load(arguments[0], progress), arguments[1])
        _say({"ready": arguments[1]})
    except TraceError as error:
        _say({"error": str(error), "not_a_trace": isinstance(error, NotATraceError)})
        return 1
    except MemoryError:
        _say({"error": f"{arguments[0]}: reading it takes more memory than there is", "not_a_trace": False})
        return 1
    except BrokenPipeError:  # nobody listens any more
        sys.stderr.close()
        return 1
    return 0


def _say(what: dict[str, object]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
