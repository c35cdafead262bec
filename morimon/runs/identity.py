"""Which process is meant: a pid together with the moment it started, since pids are used again.

Start times are clock ticks since boot, as /proc/PID/stat gives them (field 22), and hold for one boot alone.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec


class ProcessIdentity(msgspec.Struct, frozen=True, gc=False):
    """One process of this boot."""

    pid: int
    start: int
    """Clock ticks since boot."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Identity of the live process `pid`; None where there is none, a zombie included."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        fields = stat[stat.rindex(b")") + 2 :].split()
        return None if fields[0] in b"ZX" else cls(pid, int(fields[19]))

    def is_alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        return ProcessIdentity.of(self.pid) == self


@cache
def boot_id() -> str:
    """The kernel's name for the time since it booted."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
