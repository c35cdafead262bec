"""Real jobs for tests: started through the hub, led by files, and looked after to the last process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from morimon.hub.control import request_stop
from morimon.hub.launch import LaunchSpec, start
from morimon.hub.marked import marked
from morimon.model.codec import decode
from morimon.model.events import RecordEvent, RunEnded
from morimon.runs.folder import RunFolder
from morimon.runs.identity import ProcessIdentity
from morimon.runs.listing import has_ended
from morimon.runs.lock import holder, is_held

SUPPORT = Path(__file__).parent
DEADLINE_S = 40.0
T = TypeVar("T")
E = TypeVar("E", bound=RecordEvent)


def until(look: Callable[[], T | None], what: str) -> T:
    """The first true answer of `look`, asked again and again until the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if answer := look():
            return answer
        time.sleep(0.01)
    raise AssertionError(f"waited {DEADLINE_S:.0f} s in vain until {what}")


@dataclass
class Job:
    """One started job."""

    folder: RunFolder
    signs: Path
    """Where its ranks write that they are up, and wait for `go`."""

    def wait_up(self, ranks: int, restart: int = 0) -> None:
        paths = [self.signs / f"up.{restart}.{rank}" for rank in range(ranks)]
        until(lambda: all(path.exists() for path in paths), "all ranks are up")

    def go(self, restart: int | None = None) -> None:
        """Let all attempts go on, or one."""
        (self.signs / ("go" if restart is None else f"go.{restart}")).touch()

    def wait_for(self, kind: type[E], count: int = 1) -> list[E]:
        """All events of a kind, when there are at least `count`."""
        until(lambda: len(self.all_of(kind)) >= count, f"{count} × {kind.__name__} are recorded")
        return self.all_of(kind)

    def events(self) -> list[RecordEvent]:
        """The record so far; a line that is none fails the test."""
        try:
            data = self.folder.events_path.read_bytes()
        except FileNotFoundError:
            return []
        return [decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]

    def all_of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events() if isinstance(event, kind)]

    def end(self) -> RunEnded:
        """The record's last event, when hub and job are gone."""
        until(lambda: has_ended(self.folder), "the end is recorded")
        self.wait_hub_gone()
        last = self.events()[-1]
        assert isinstance(last, RunEnded)
        return last

    def wait_hub_gone(self) -> None:
        until(lambda: not is_held(self.folder.lock_path), "the hub has ended")

    def hub(self) -> ProcessIdentity:
        return until(lambda: holder(self.folder.lock_path), "a hub lives")

    def kill(self, process: ProcessIdentity, signum: int = signal.SIGKILL) -> None:
        """Signal a process; after SIGKILL it is gone when this returns."""
        os.kill(process.pid, signum)
        if signum == signal.SIGKILL:
            until(lambda: not process.is_alive(), "the killed process is gone")

    def keeper(self) -> ProcessIdentity:
        owners = until(self.folder.owners, "the keeper is up")
        return owners.keeper

    def agent(self) -> ProcessIdentity:
        owners = until(self.folder.owners, "the keeper is up")
        return owners.agent

    def output(self, pattern: str) -> str:
        """Text of all output files that match, in order of their names."""
        return "".join(path.read_text() for path in sorted(self.folder.path.glob(pattern)))

    def left(self) -> list[ProcessIdentity]:
        """Live processes of the job, its keeper and its hub."""
        launch = self.folder.launch()
        found = marked(self.folder.run_id, launch.socket) if launch else []
        owners = self.folder.owners()
        return found + [process for process in [owners and owners.keeper] if process and process.is_alive()]

    def wait_gone(self) -> None:
        until(lambda: not self.left(), "no process of the job is left")
        self.wait_hub_gone()

    def assert_nothing_left(self) -> None:
        self.wait_gone()
        launch = self.folder.launch()
        assert launch
        assert not Path(launch.socket).exists()


class Bench:
    """A place for runs, with a stand-in for torchrun."""

    def __init__(self, path: Path, runs_dir: Path) -> None:
        self.path = path
        self.runs_dir = runs_dir
        self.jobs: list[Job] = []
        package = path / "stub" / "torch" / "distributed"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        (package / "__init__.py").touch()
        stub = str(SUPPORT / "stub_torchrun.py")
        (package / "run.py").write_text(f"import runpy\nrunpy.run_path({stub!r}, run_name='__main__')\n")

    def start(
        self,
        *behaviours: str,
        nproc: int = 2,
        options: tuple[str, ...] = (),
        real_torchrun: bool = False,
        grace_s: float = 30,
    ) -> Job:
        """A job of `rank_script.py`."""
        signs = Path(tempfile.mkdtemp(dir=self.path))
        env = {**os.environ, "STUB_GRACE_S": str(grace_s)}
        if not real_torchrun:
            env["PYTHONPATH"] = str(self.path / "stub")
        return self.launch(
            LaunchSpec(
                kind="script",
                argv=(str(SUPPORT / "rank_script.py"), str(signs), *behaviours),
                nproc=nproc,
                torchrun_options=options,
                python=sys.executable,
                cwd=self.path,
                env=env,
            ),
            signs,
        )

    def launch(self, spec: LaunchSpec, signs: Path | None = None) -> Job:
        job = Job(start(spec, self.runs_dir), signs or self.path)
        self.jobs.append(job)
        return job


@contextmanager
def bench(monkeypatch_env: Callable[[str, str], None], runs_dir: Path | None = None) -> Iterator[Bench]:
    """A bench in a short temporary folder (sockets need short paths); whatever a failed test left is killed."""
    path = Path(tempfile.mkdtemp(prefix="mm-"))
    monkeypatch_env("XDG_RUNTIME_DIR", str(path))
    made = Bench(path, runs_dir or path / "runs")
    try:
        yield made
    finally:
        for job in made.jobs:
            request_stop(job.folder, force=True)
        for job in made.jobs:
            job.wait_gone()
        shutil.rmtree(path)
