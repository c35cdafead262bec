"""Real routing from a file: an .npy array, a tensor that torch.save wrote (.pt, .pth), or lines of numbers (.csv).

The array is [world_size, tokens, topk], or [world_size × tokens, topk] with the ranks one after the other.
Nothing in a file is executed: pickles in .npy are refused, and a .pt file may name tensors and nothing else.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

TopkByRank = npt.NDArray[np.integer]


class TopkFileError(ValueError):
    """A file that holds no routing; its text is one sentence for the user."""


def read_topk_file(path: Path, world_size: int) -> TopkByRank:
    """Expert numbers [world_size, tokens, topk]. Raises TopkFileError; a file that cannot be opened raises OSError."""
    readers = {".npy": _read_npy, ".pt": _read_pt, ".pth": _read_pt, ".csv": _read_csv}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise TopkFileError(f"{path}: routing is read from {', '.join(readers)} files alone.")
    try:
        array = read(path)
    except _UNREADABLE as error:
        reason = re.split("\n|; use ", str(error))[0].rstrip(".") or type(error).__name__
        raise TopkFileError(f"{path}: this is no {path.suffix} file of expert numbers: {reason}.") from None
    if not isinstance(array, np.ndarray):
        raise TopkFileError(f"{path}: this holds a {type(array).__name__}, not one tensor of expert numbers.")
    if not np.issubdtype(array.dtype, np.integer):
        raise TopkFileError(f"{path}: expert numbers are integers, not {array.dtype}.")
    numbers: TopkByRank = array.astype(np.int64, copy=False)
    if numbers.ndim == 2 and len(numbers) % world_size == 0:
        numbers = numbers.reshape(world_size, -1, numbers.shape[1])
    if numbers.ndim != 3 or len(numbers) != world_size or not numbers.size:
        raise TopkFileError(
            f"{path}: routing of {world_size} ranks is [{world_size}, tokens, topk] or [{world_size} × tokens, topk], "
            f"not {list(numbers.shape)}."
        )
    return numbers


_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)
"""What damaged bytes make numpy's, zipfile's and pickle's readers raise."""


def _read_npy(path: Path) -> npt.NDArray[Any]:
    with path.open("rb") as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _read_csv(path: Path) -> npt.NDArray[np.int64]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines:
        raise ValueError("it is empty")
    return np.loadtxt(lines, delimiter=",", ndmin=2, dtype=np.int64, converters=int, encoding=None)


_STORAGES = {
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
}


def _read_pt(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        description = next((name for name in archive.namelist() if name.endswith("data.pkl")), None)
        if description is None:
            raise ValueError("the archive holds no data.pkl, as torch.save writes it")
        folder = description.removesuffix("data.pkl")
        order = "<"
        if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") == b"big":
            order = ">"
        with archive.open(description) as stream:
            return _TensorUnpickler(stream, archive, folder, order).load()


class _TensorUnpickler(pickle.Unpickler):
    """Builds numpy arrays from the descriptions of tensors, and refuses every other object."""

    def __init__(self, stream: IO[bytes], archive: zipfile.ZipFile, folder: str, order: str) -> None:
        super().__init__(stream)
        self._archive = archive
        self._folder = folder
        self._order = order

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if module == "torch" and name.endswith("Storage"):
            raise pickle.UnpicklingError(f"expert numbers are integers, not torch.{name}")
        raise pickle.UnpicklingError(f"it holds a {module}.{name}, not one integer tensor")

    def persistent_load(self, pid: Any) -> npt.NDArray[np.integer]:
        _, kind, key, _, _ = pid
        return np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), dtype=self._order + kind)


def _rebuild_tensor(
    storage: npt.NDArray[np.integer], offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> npt.NDArray[np.integer]:
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if min(size, default=1) > 0 and not (min((offset, *stride)) >= 0 and last < len(storage)):
        raise pickle.UnpicklingError("its tensor reaches beyond its storage")
    strides = tuple(step * storage.itemsize for step in stride)
    tensor: npt.NDArray[np.integer] = np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()
    return tensor
