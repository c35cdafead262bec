"""Columns that events are read into, whichever way they were decoded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from morimon.trace.group import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Id = int | str
BEGIN, END, COMPLETE = 1, 2, 3
KINDS = {"B": BEGIN, "E": END, "X": COMPLETE}
ASIDE = {
    "M": "metadata",
    "C": "counter",
    **dict.fromkeys("iIR", "instant"),
    **dict.fromkeys("stf", "flow"),
    **dict.fromkeys("bneSTpF", "asynchronous"),
    **dict.fromkeys("NODv(", "object or other"),
    **dict.fromkeys(")cPV", "object or other"),
}
LARGEST_NS = 1 << 62


class Names(dict[str | None, int]):
    """Name -> code, in the order in which they came; an event without a name has the code of ""."""

    def __init__(self) -> None:
        self.table: list[str] = []

    def __missing__(self, name: str | None) -> int:
        if name is None:
            code = self[""]
        else:
            code = len(self.table)
            self.table.append(name)
        self[name] = code
        return code


class ThreadCodes(dict[tuple[Id, Id], int]):
    """(pid, tid) as written -> code. 3 and "3" are one id; `ids` holds the ids by code."""

    def __init__(self) -> None:
        self.ids: list[tuple[Id, Id]] = []
        self._known: dict[tuple[Id, Id], int] = {}
        self._tables: dict[int, NDArray[np.int32]] = {}

    def __missing__(self, key: tuple[Id, Id]) -> int:
        plain = plain_id(key[0]), plain_id(key[1])
        code = self._known.get(plain)
        if code is None:
            code = self._known[plain] = len(self.ids)
            self.ids.append(plain)
        self[key] = code
        return code

    def of_arrays(self, pid: NDArray[np.int64], tid: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of whole columns; quick where there is one pid and warps are small numbers."""
        first = int(pid[0])
        top = int(tid.max())
        if top >= 1 << 20 or (pid != first).any():
            return np.fromiter(
                (self[key] for key in zip(pid.tolist(), tid.tolist(), strict=True)), np.int32, pid.size
            )
        table = self._tables.get(first)
        if table is None or table.size <= top:
            grown = np.full(2 * top + 1024, -1, np.int32)
            if table is not None:
                grown[: table.size] = table
            table = self._tables[first] = grown
        codes = table[tid]
        if (codes < 0).any():
            for new in distinct(tid[codes < 0]).tolist():
                table[new] = self[first, new]
            codes = table[tid]
        return codes


def plain_id(value: Any) -> Id:
    """An id as a number where it is one, else as text."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None:
        return 0
    return value if isinstance(value, int) else str(value)


class Damage(dict[str, tuple[int, int]]):
    """Reason -> (offset of its first case in the decoded text, number of cases)."""

    def note(self, offset: int, reason: str) -> None:
        """Count one more case."""
        first, count = self.get(reason, (offset, 0))
        self[reason] = first, count + 1


class Events:
    """The columns while they grow: begin, end and complete events in file order; everything else is counted.

    ts_ns is `ts` × 1000 exactly (ts is in microseconds whatever displayTimeUnit says); duration_ns is 0 but for
    complete events.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.threads = ThreadCodes()
        self.count = 0
        self.set_aside: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.process_names: dict[Id, str] = {}
        self.thread_names: dict[int, str] = {}
        self._pieces: list[tuple[NDArray[Any], ...]] = []
        self._complete = False

    def add(
        self,
        kind: NDArray[np.int8],
        ts_ns: NDArray[np.int64],
        name: NDArray[np.int32],
        thread: NDArray[np.int32],
        duration_ns: NDArray[np.int64] | None = None,
    ) -> None:
        """Append checked columns of equal length."""
        if duration_ns is not None and not duration_ns.any():
            duration_ns = None
        self._complete |= duration_ns is not None
        self._pieces.append(
            (kind, ts_ns, name, thread, duration_ns if duration_ns is not None else ts_ns[:0])
        )

    def add_aside(self, ph: str, name: str | None, pid: Id, tid: Id, args: Any) -> None:
        """Count an event that has no duration, and keep the names that metadata give to processes and threads."""
        self.set_aside[ASIDE.get(ph, "unknown kind")] += 1
        given = args.get("name") if ph == "M" and isinstance(args, dict) else None
        if isinstance(given, (str, int)):
            if name == "process_name":
                self.process_names[plain_id(pid)] = str(given)
            elif name == "thread_name":
                self.thread_names[self.threads[pid, tid]] = str(given)

    def columns(self) -> Columns:
        """All pieces as one; the pieces are let go."""
        pieces, self._pieces = self._pieces, []
        if not pieces:
            empty = np.zeros(0, np.int32)
            return Columns(empty.astype(np.int8), empty.astype(np.int64), empty, empty, None)
        duration = None
        if self._complete:
            duration = np.concatenate([p[4] if p[4].size else np.zeros(p[0].size, np.int64) for p in pieces])
        kind, ts_ns, name, thread = (np.concatenate(part) for part in list(zip(*pieces, strict=True))[:4])
        return Columns(kind, ts_ns, name, thread, duration)


class Columns:
    """Begin, end and complete events in file order. `origin_ns` was taken off every time."""

    def __init__(
        self,
        kind: NDArray[np.int8],
        ts_ns: NDArray[np.int64],
        name: NDArray[np.int32],
        thread: NDArray[np.int32],
        duration_ns: NDArray[np.int64] | None,
    ) -> None:
        self.kind, self.ts_ns, self.name, self.thread, self.duration_ns = (
            kind,
            ts_ns,
            name,
            thread,
            duration_ns,
        )

    def __len__(self) -> int:
        return self.kind.size


def kinds(phs: Sequence[str]) -> NDArray[np.int8]:
    """Codes of event kinds, 0 for those that are set aside."""
    get = KINDS.get
    return np.fromiter([get(ph, 0) for ph in phs], np.int8, len(phs))
