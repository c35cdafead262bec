"""The job as its hub holds it: through the keeper, and with bare hands where the keeper was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal, TypeAlias

from morimon.hub.marked import marked, send
from morimon.hub.terminal import JobTerminal
from morimon.runs.folder import Exit, Launch, Owners, RunFolder
from morimon.runs.identity import ProcessIdentity

JobLook: TypeAlias = Literal["starting", "kept", "orphaned", "over"]

_KEEPER = Path(__file__).parents[1] / "keeper.py"
_LEFT_GRACE_S = 5.0


class Job:
    """One run's job. `look` is to be called again and again; it says how things stand."""

    def __init__(self, folder: RunFolder, launch: Launch) -> None:
        self._folder = folder
        self._launch = launch
        self._keeper: subprocess.Popen[bytes] | None = None
        self._stops = 0
        self._ending_since_s: float | None = None
        self.owners: Owners | None = None
        self.exit: Exit | None = None
        """What the keeper saw of the end; stays None where it was killed."""
        self.terminal: JobTerminal | None = None
        """What a whole command prints on; None for a hub that took the run over."""

    def start(self) -> None:
        """Start the keeper, and by it the command; where that is impossible the job is over at once."""
        folder, launch = self._folder, self._launch
        try:
            self.terminal = JobTerminal() if launch.terminal else None
            sides = (self.terminal.ours, self.terminal.theirs) if self.terminal else ()
            option = [f"--terminal={sides[0]},{sides[1]}"] if sides else []
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", _KEEPER, folder.path, *option, "--", *launch.command],
                cwd=launch.cwd,
                env={**os.environ, "MORIMON_RUN": folder.run_id, "MORIMON_SOCKET": launch.socket},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=sides,
            )
        except OSError as error:
            reason = f"The keeper cannot be started in {launch.cwd}: {error.strerror}"
            self.exit = Exit(returncode=127, error=reason)
        if self.terminal:
            self.terminal.handed_over()

    def look(self) -> JobLook:
        """How things stand now.

        An orphaned job (its keeper was killed) goes on; when its agent is gone, what is left of it is ended here.
        """
        buried = self._keeper is None or self._keeper.poll() is not None
        self.owners = self.owners or self._folder.owners()
        alive = self.owners.keeper.is_alive() if self.owners else not buried
        # The end is looked for after the keeper was seen alive or dead: it tells before it dies.
        self.exit = self.exit or self._folder.exit()
        if self.exit is not None:
            return "over"
        if alive:
            return "kept" if self.owners else "starting"
        if self.terminal:
            self.terminal.copy_to(self._folder.console_path)
        if self.owners and self.owners.agent.is_alive():
            return "orphaned"
        is_left = self._end_what_is_left()
        if self.terminal:
            self.terminal.copy()
        return "orphaned" if is_left else "over"

    def stop(self, *, force: bool = False) -> None:
        """Ask the agent to end; by `force`, or when asked again, kill all there is."""
        self._stops += 1
        signum = signal.SIGQUIT if force or self._stops > 1 else signal.SIGTERM
        if self.owners and send(self.owners.keeper, signum):
            return
        if self.owners is None and self._keeper and self._keeper.poll() is None:
            self._keeper.send_signal(signum)
        elif signum == signal.SIGTERM and self.owners:
            send(self.owners.agent, signal.SIGTERM)
        else:
            self._signal_marked(signal.SIGKILL)

    def _end_what_is_left(self) -> bool:
        """End the processes that carry the run's mark; whether there are any."""
        now_s = time.monotonic()
        if self._ending_since_s is None:
            self._ending_since_s = now_s
            return self._signal_marked(signal.SIGTERM)
        if now_s - self._ending_since_s > _LEFT_GRACE_S:
            return self._signal_marked(signal.SIGKILL)
        return bool(self._marked())

    def _signal_marked(self, signum: int) -> bool:
        return sum(send(process, signum) for process in self._marked()) > 0

    def _marked(self) -> list[ProcessIdentity]:
        return marked(self._folder.run_id, self._launch.socket)
