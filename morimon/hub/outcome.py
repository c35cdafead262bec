"""How a run ended, and the first cause where it failed. Pure.

A collective fails everywhere at once: one rank dies, the others lose their connections, the agent ends them with
SIGTERM and prints a report of its own. The first cause is the first rank that died otherwise, with its own error text;
where its text is a follow-up (a lost connection), it is the rank that printed the first error of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

import msgspec

from morimon.logs import Causes
from morimon.model.events import Failure, Outcome, RankExited, RunEnded
from morimon.runs.folder import Exit

_LIKELY = {
    "SIGKILL": "somebody killed it, or the kernel did for want of memory",
    "SIGSEGV": "it touched memory that is not its own",
    "SIGBUS": "it touched memory that is not there (a full /dev/shm does this)",
    "SIGABRT": "it gave up by itself",
}


def judge(
    ended: Exit | None, exits: Sequence[RankExited], causes: Causes, *, t_ns: int, stopped_ns: int | None
) -> RunEnded:
    """The run's last event. `exits` are in the order of death; `ended` is None where no keeper was left to tell.

    A job that was asked to stop is stopped, unless a rank had failed before it was asked.
    """
    early = [one for one in exits if stopped_ns is None or one.t_ns < stopped_ns]
    failure = first_cause(early, causes)
    outcome: Outcome
    if ended is None:
        outcome = "stopped" if stopped_ns is not None and failure is None else "lost"
        if outcome == "lost" and failure is None:
            failure = Failure(
                rank=None, cause="The process that kept the job was killed: nobody saw how the job ended."
            )
    elif ended.error is not None:
        outcome = "failed"
        failure = Failure(rank=None, cause=ended.error, exitcode=ended.returncode)
    elif stopped_ns is not None or ended.stops:
        outcome = "failed" if failure else "stopped"
    elif ended.returncode == 0:
        outcome, failure = "finished", None
    else:
        outcome = "failed"
        failure = failure or causes.root() or _agents_own(ended)
    return RunEnded(
        t_ns=t_ns,
        outcome=outcome,
        exitcode=ended.returncode if ended else None,
        failure=failure if outcome in ("failed", "lost") else None,
        left_behind=ended.left_count if ended else 0,
    )


def first_cause(exits: Sequence[RankExited], causes: Causes) -> Failure | None:
    """Why the newest attempt fails, from its dead ranks and what was printed; None where no rank has failed."""
    newest = max((one.restart for one in exits), default=0)
    failed = [one for one in exits if one.restart == newest and _has_failed(one)]
    if not failed:
        return None
    first = failed[0]
    if first.signal == signal.SIGKILL:  # nobody prints an error about that
        return _silent(first)
    printed = causes.root() if first.exitcode else causes.of(first.rank)
    if printed is None:
        return _silent(first)
    rank = first.rank if printed.rank is None else printed.rank
    died = next((one for one in failed if one.rank == rank), None)
    if died is None:
        return printed
    return msgspec.structs.replace(
        printed, rank=rank, exitcode=died.exitcode, signal=_signal_name(died.signal)
    )


def _has_failed(one: RankExited) -> bool:
    """Whether a rank ended badly by itself: SIGTERM is how an agent ends the ranks that are well."""
    return bool(one.exitcode) or one.signal not in (None, signal.SIGTERM)


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _silent(dead: RankExited) -> Failure:
    """What the end of a rank itself says."""
    name = _signal_name(dead.signal)
    if name is None:
        cause = f"Rank {dead.rank} ended with exit code {dead.exitcode} and printed no error."
    else:
        likely = _LIKELY.get(name)
        cause = f"Rank {dead.rank} was ended by {name}" + (f": {likely}." if likely else ".")
    return Failure(rank=dead.rank, cause=cause, exitcode=dead.exitcode, signal=name)


def _agents_own(ended: Exit) -> Failure:
    how = f"was ended by {ended.signal}" if ended.signal else f"ended with exit code {ended.returncode}"
    return Failure(
        rank=None,
        cause=f"The job's first process {how}, and nobody printed an error.",
        exitcode=None if ended.signal else ended.returncode,
        signal=ended.signal,
    )
