"""A small agent that behaves as torchrun's does, without torch: layout of the logs, environment, signals, report.

Takes the options that morimon gives and `--max-restarts`; `STUB_GRACE_S` replaces the 30 s between SIGTERM and SIGKILL.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

GRACE_S = float(os.environ.get("STUB_GRACE_S", "30"))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--standalone", action="store_true")
    parser.add_argument("--nproc-per-node", type=int)
    parser.add_argument("--log-dir", type=Path)
    parser.add_argument("--redirects")
    parser.add_argument("--max-restarts", type=int, default=0)
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    return parser.parse_args()


def start(chosen: argparse.Namespace, logs: Path, restart: int) -> list[subprocess.Popen[bytes]]:
    ranks = []
    for rank in range(chosen.nproc_per_node):
        folder = logs / f"attempt_{restart}" / str(rank)
        folder.mkdir(parents=True)
        env = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "GROUP_RANK": "0",
            "WORLD_SIZE": str(chosen.nproc_per_node),
            "LOCAL_WORLD_SIZE": str(chosen.nproc_per_node),
            "TORCHELASTIC_RUN_ID": "stub",
            "TORCHELASTIC_RESTART_COUNT": str(restart),
            "TORCHELASTIC_ERROR_FILE": str(folder / "error.json"),
        }
        to_files = chosen.redirects == "3"
        out = (folder / "stdout.log").open("wb") if to_files else None
        err = (folder / "stderr.log").open("wb") if to_files else None
        command = [sys.executable, "-u", chosen.script, *chosen.args]
        ranks.append(subprocess.Popen(command, env=env, stdout=out, stderr=err, start_new_session=True))
    return ranks


def end(ranks: list[subprocess.Popen[bytes]]) -> None:
    for rank in ranks:
        if rank.poll() is None:
            print(
                f"W0821 17:10:00.1 10 api.py:900] Sending process {rank.pid} closing signal SIGTERM",
                file=sys.stderr,
            )
            rank.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while any(rank.poll() is None for rank in ranks) and time.monotonic() < deadline:
        time.sleep(0.01)
    for rank in ranks:
        rank.kill()
        rank.wait()


def run(chosen: argparse.Namespace, logs: Path, restart: int) -> int:
    """Exit code of one attempt."""
    ranks = start(chosen, logs, restart)

    def on_term(signum: int, frame: FrameType | None) -> None:
        end(ranks)
        sys.exit(128 + signum)

    signal.signal(signal.SIGTERM, on_term)
    while True:
        codes = [rank.poll() for rank in ranks]
        failed = next((at for at, code in enumerate(codes) if code), None)
        if failed is not None:
            end(ranks)
            print(
                f"E0821 17:10:01.0 10 api.py:874] failed (exitcode: {codes[failed]}) local_rank: {failed} "
                f"(pid: {ranks[failed].pid}) of binary: {sys.executable}",
                file=sys.stderr,
            )
            return 1
        if all(code == 0 for code in codes):
            return 0
        time.sleep(0.1)


def main() -> int:
    chosen = options()
    chosen.log_dir.mkdir(parents=True, exist_ok=True)
    logs = Path(tempfile.mkdtemp(prefix="stub_", dir=chosen.log_dir))
    for restart in range(chosen.max_restarts + 1):
        if run(chosen, logs, restart) == 0:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
