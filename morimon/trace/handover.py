"""A loaded trace as files, so that one process can read it and another look at it without copying.

A folder holds one .npy a column and trace.json, which is written last and by rename: no trace.json, no trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from morimon.trace.model import Intervals, Spans, Threads, Trace, TraceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORM = 1
NPY_HEADER = 128
TABLE = "trace.json"
SPANS = ("start_ns", "end_ns", "slot", "thread", "iteration", "role", "idle")
THREADS = ("process", "tid", "role")
INTERVALS = ("row", "slot", "start_ns", "end_ns")
COLUMNS = {"spans": SPANS, "threads": THREADS, "intervals": INTERVALS}
PLAIN = tuple(f for f in Trace.__struct_fields__ if f not in COLUMNS)


class _Table(msgspec.Struct):
    form: int
    thread_names: tuple[str, ...]
    trace: dict[str, Any]


def save(trace: Trace, folder: str | Path) -> None:
    """Write `trace` into `folder`, which is made if it is missing. Raises TraceError if that fails."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TABLE).unlink(missing_ok=True)
        for part, names in COLUMNS.items():
            for name in names:
                np.save(folder / f"{part}.{name}.npy", getattr(getattr(trace, part), name))
        table = _Table(FORM, trace.threads.name, {name: getattr(trace, name) for name in PLAIN})
        part_file = folder / f"{TABLE}.part"
        part_file.write_bytes(msgspec.json.encode(table))
        part_file.replace(folder / TABLE)
    except OSError as error:
        raise TraceError(
            f"{folder}: the loaded trace cannot be written: {error.strerror or error}"
        ) from error


def open_saved(folder: str | Path) -> Trace:
    """What `save` wrote, its columns memory-mapped. Raises TraceError if it is not there or not whole."""
    folder = Path(folder)
    try:
        table = msgspec.json.decode((folder / TABLE).read_bytes(), type=_Table)
        if table.form != FORM:
            raise TraceError(
                f"{folder}: written by another version (form {table.form}, this one reads {FORM})"
            )
        columns: dict[str, dict[str, NDArray[Any]]] = {
            part: {name: _mapped(folder / f"{part}.{name}.npy") for name in names}
            for part, names in COLUMNS.items()
        }
        spans = Spans(**columns["spans"])
        threads = Threads(**columns["threads"], name=table.thread_names)
        intervals = Intervals(**columns["intervals"])
        return msgspec.convert(
            table.trace | {"spans": spans, "threads": threads, "intervals": intervals}, Trace
        )
    except FileNotFoundError as error:
        raise TraceError(f"{folder}: no loaded trace there, or not yet ({error.filename})") from error
    except (OSError, ValueError) as error:
        raise TraceError(f"{folder}: the loaded trace cannot be read: {error}") from error


def _mapped(path: Path) -> NDArray[Any]:
    """A column without copying; numpy cannot map one of length 0."""
    array: NDArray[Any] = np.load(path, mmap_mode="r") if path.stat().st_size > NPY_HEADER else np.load(path)
    return array
