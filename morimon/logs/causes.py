"""Why a run failed, from what its ranks and its agent printed: the first cause, not the others' follow-up errors."""

from __future__ import annotations

from morimon.model.events import Failure


class Causes:
    """Gathers the errors of all output files of one run, in the order in which they arrive."""

    def add(self, failure: Failure) -> None:
        """Take note of an error that somebody printed."""
        raise NotImplementedError

    def of(self, rank: int) -> Failure | None:
        """Why one rank failed, as far as it printed it: its first own error, else a follow-up one."""
        raise NotImplementedError

    def root(self) -> Failure | None:
        """Why the run failed; None as long as nobody printed an error."""
        raise NotImplementedError
