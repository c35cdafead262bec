"""What a trace says of its run beside its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from morimon.trace.model import Trace


def world_size_of(trace: Trace) -> int | None:
    """Ranks of the run, where the trace says so: our own metadata, or PyTorch's."""
    own = trace.metadata.get("morimon")
    config = own.get("config") if isinstance(own, dict) else None
    for said in (config, trace.metadata.get("distributedInfo")):
        if (
            isinstance(said, dict)
            and isinstance(size := said.get("world_size"), int)
            and not isinstance(size, bool)
        ):
            return size
    return None
