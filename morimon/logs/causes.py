"""Why a run failed, from what its ranks and its agent printed: the first cause, not the others' follow-up errors."""

from __future__ import annotations

import re
import signal

import msgspec

from morimon.model.events import Failure

# What a rank prints because another one is gone, or because it is told to end.
_FOLLOW_UP = re.compile(
    r"connection[^\n]{0,40} (?:reset|closed|refused|aborted)|broken pipe|closed by peer|recvValue failed"
    r"|failed to recv|remote process exited|ncclRemoteError|ncclSystemError|got signal: |SIGTERM|KeyboardInterrupt"
    r"|ProcessRaisedException|ProcessExitedException|ChildFailedError|timeout|timed out",
    re.IGNORECASE,
)
_LIKELY = {
    "SIGKILL": "by hand, or by the kernel for want of memory (`dmesg` tells)",
    "SIGBUS": "a full /dev/shm does this",
}
_ORDERLY = ("SIGTERM", "SIGINT", "SIGHUP")

_OWN, _UNEXPLAINED, _FOLLOWED = range(3)


def signal_name(number: int) -> str:
    """SIGKILL for 9; some signals have a number alone."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def ended(rank: int, code: int) -> Failure:
    """How a rank's process ended, from its exit code as Python counts it: negative for a signal."""
    if code >= 0:
        return Failure(rank=rank, cause=f"Rank {rank} exited with code {code}.", exitcode=code)
    name = signal_name(-code)
    likely = _LIKELY.get(name)
    return Failure(
        rank=rank, cause=f"Rank {rank} was ended by {name}{f': {likely}' if likely else ''}.", signal=name
    )


class Causes:
    """Gathers the errors of all output files of one run, in the order in which they arrive.

    Of each rank the first error of its own, the first that follows from another rank's, and its end are kept.
    """

    def __init__(self) -> None:
        self._own: dict[int | None, Failure] = {}
        self._followed: dict[int | None, Failure] = {}
        self._ends: dict[int | None, Failure] = {}
        self._order: dict[tuple[int | None, int], int] = {}

    def add(self, failure: Failure) -> None:
        """Take note of an error that somebody printed, or of how a process ended (`ended`)."""
        if failure.exitcode is not None or failure.signal is not None:
            self._ends.setdefault(failure.rank, failure)
        elif _FOLLOW_UP.search(failure.cause):
            self._followed.setdefault(failure.rank, failure)
        else:
            self._own.setdefault(failure.rank, failure)
        self._order.setdefault((failure.rank, self._weight(failure.rank)), len(self._order))

    def of(self, rank: int | None) -> Failure | None:
        """Why one rank failed: its first own error, else a follow-up one, with how its process ended."""
        end = self._ends.get(rank)
        words = self._own.get(rank) or self._followed.get(rank)
        if words is None or end is None:
            return words or end
        return msgspec.structs.replace(words, exitcode=end.exitcode, signal=end.signal)

    def root(self) -> Failure | None:
        """Why the run failed; None as long as there is no error.

        A rank that failed by itself goes before one that only ended with some exit code, and this before one that
        followed. Among equals one that is known to have ended goes first, then the earliest.
        """
        ranks = {*self._own, *self._followed, *self._ends}
        if not ranks:
            return None

        def precedence(rank: int | None) -> tuple[int, bool, int]:
            weight = self._weight(rank)
            return weight, rank not in self._ends, self._order[rank, weight]

        return self.of(min(ranks, key=precedence))

    def _weight(self, rank: int | None) -> int:
        end = self._ends.get(rank)
        if rank in self._own:
            return _OWN
        if end is not None and end.signal is not None and end.signal not in _ORDERLY:
            # a runtime that throws because a peer is gone ends by SIGABRT
            return _FOLLOWED if end.signal == "SIGABRT" and rank in self._followed else _OWN
        if rank in self._followed or (end is not None and end.signal is not None):
            return _FOLLOWED
        return _UNEXPLAINED
