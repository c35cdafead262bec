"""How a run ended, and the first cause where it failed. Pure.

A collective fails everywhere at once: one rank dies, the others lose their connections, the agent ends them with
SIGTERM and prints a report of its own. `morimon.logs.Causes` weighs what was printed against how the ranks' processes
ended; here it is told the latter, attempt by attempt: torchrun may start its ranks anew, and only the newest attempt's
failure is the run's.
"""

from __future__ import annotations

import signal

import msgspec

from morimon.logs import Causes
from morimon.logs.causes import ended
from morimon.model.events import Failure, Outcome, RankExited, RunEnded
from morimon.runs.folder import Exit

_ORDERLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals by which agents and keepers end ranks that are well."""


class Attempts:
    """What is known of the failure of each attempt."""

    def __init__(self) -> None:
        self._causes: dict[int, Causes] = {}
        self._failed: list[RankExited] = []
        self._ended: dict[tuple[int, int], bool] = {}
        """(restart, rank) of every rank that has ended -> whether it ended well."""
        self._newest = 0
        self.console: Causes = _Newest(self)
        """For output that all attempts share: its errors are the newest one's."""

    def of(self, restart: int) -> Causes:
        """What the ranks of one attempt printed."""
        self._newest = max(self._newest, restart)
        return self._causes.setdefault(restart, Causes())

    def newest(self) -> Causes:
        """The attempt that counts."""
        return self.of(self._newest)

    def take(self, exited: RankExited) -> None:
        """Learn how a rank's process ended, in the order of death; a rank that was asked to end is not told here."""
        code = exited.exitcode if exited.signal is None else -exited.signal
        self._ended[exited.restart, exited.rank] = code == 0
        if not code:
            return
        self.of(exited.restart).add(ended(exited.rank, code))
        if code > 0 or -code not in _ORDERLY:
            self._failed.append(exited)

    def all_well(self) -> bool:
        """Whether every rank of the newest attempt is known to have ended well."""
        ended = [well for (restart, _), well in self._ended.items() if restart == self._newest]
        return bool(ended) and all(ended)

    def first_cause(self) -> Failure | None:
        """Why the newest attempt fails; None where none of its ranks has failed."""
        failed = {one.rank: one for one in self._failed if one.restart == self._newest}
        printed = self.newest().root() if failed else None
        if printed is None or printed.rank is not None or len(failed) > 1:
            return printed
        ((rank, _),) = failed.items()
        end = self.newest().of(rank) or printed
        return msgspec.structs.replace(printed, rank=rank, exitcode=end.exitcode, signal=end.signal)


class _Newest(Causes):
    """Hands on to the newest attempt."""

    def __init__(self, attempts: Attempts) -> None:
        super().__init__()
        self._attempts = attempts

    def add(self, failure: Failure) -> None:
        self._attempts.newest().add(failure)


def judge(seen: Exit | None, attempts: Attempts, *, t_ns: int, was_stopped: bool) -> RunEnded:
    """The run's last event. `seen` is None where no keeper was left to tell.

    A job that was asked to stop is stopped, unless one of its ranks had failed before.
    """
    failure = attempts.first_cause()
    was_stopped = was_stopped or (seen is not None and seen.stops > 0)
    outcome: Outcome
    if failure is None and was_stopped:
        outcome = "stopped"
    elif seen is None:
        outcome = "failed" if failure else "finished" if attempts.all_well() else "lost"
        if outcome == "lost":
            failure = Failure(
                rank=None, cause="Nobody saw how the job ended: no keeper of ours was there to tell."
            )
    elif seen.error is not None:
        outcome = "failed"
        failure = Failure(rank=None, cause=f"{seen.error}.", exitcode=seen.returncode)
    elif seen.returncode == 0:
        outcome, failure = "finished", None
    else:
        outcome = "failed"
        failure = failure or _agents(seen, attempts.newest().root())
    return RunEnded(
        t_ns=t_ns,
        outcome=outcome,
        exitcode=seen.returncode if seen else None,
        failure=failure,
        left_behind=seen.left_count if seen else 0,
    )


def _agents(seen: Exit, printed: Failure | None) -> Failure:
    """Why the agent failed although no rank did: what was printed, unless that only tells how the agent's end went on."""
    if printed is not None and printed.signal not in [one.name for one in _ORDERLY]:
        return printed
    how = f"was ended by {seen.signal}" if seen.signal else f"ended with exit code {seen.returncode}"
    return Failure(
        rank=None,
        cause=f"The job's first process {how}, and nobody printed an error.",
        exitcode=None if seen.signal else seen.returncode,
        signal=seen.signal,
    )
