"""A rank of the standard library alone, led by files: `rank_script.py FOLDER [BEHAVIOUR…]`.

It writes FOLDER/up.RESTART.RANK when it is there and waits for FOLDER/go or FOLDER/go.RESTART. Behaviours, for every rank or, as
`fail:1`, for one:

    stubborn   ignores SIGTERM and starts grandchildren that do, in sessions of their own
    orphans    leaves a process behind that hangs below nobody
    fail       raises ValueError when it may go
    fail-once  the same, in the first attempt only
    record     writes an error file as torch's `@record` does, and says nothing
    follow-up  says that a peer was lost, when it gets SIGTERM
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 60
SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"

folder = Path(sys.argv[1])
rank = os.environ.get("RANK", "0")
restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
behaviours = {name for name, _, of in (word.partition(":") for word in sys.argv[2:]) if of in ("", rank)}

if "stubborn" in behaviours:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", SLEEPER])
    subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True)
if "orphans" in behaviours and os.fork() == 0:
    os.setsid()
    subprocess.Popen(["sleep", "600"])
    os._exit(0)
if "follow-up" in behaviours:

    def lost(*_: object) -> None:
        raise ConnectionResetError("connection reset by peer")

    signal.signal(signal.SIGTERM, lost)

print(f"rank {rank} up")
(folder / f"up.{restart}.{rank}").touch()
deadline = time.monotonic() + LIMIT_S
while not (folder / "go").exists() and not (folder / f"go.{restart}").exists():
    if time.monotonic() > deadline:
        sys.exit("nobody said go")
    time.sleep(0.02)
if "fail" in behaviours or ("fail-once" in behaviours and restart == "0"):
    raise ValueError(f"rank {rank} has had enough")
if "record" in behaviours:
    error = {"message": f"RuntimeError: rank {rank} wrote this", "extraInfo": {"timestamp": "1"}}
    Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text(json.dumps({"message": error}))
    sys.exit(5)
print(f"rank {rank} done")
