"""Real routing from a file: an .npy array, a tensor that torch.save wrote (.pt, .pth), or lines of numbers (.csv).

The array is [world_size, tokens, topk], or [world_size × tokens, topk] with the ranks one after the other.
Nothing in a file is executed: pickles in .npy are refused, and a .pt file may name tensors and nothing else.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

TopkByRank = npt.NDArray[np.integer]


class TopkFileError(ValueError):
    """A file that holds no routing; its text is one sentence for the user."""


def read_topk_file(path: Path, world_size: int) -> TopkByRank:
    """Expert numbers [world_size, tokens, topk]. Raises TopkFileError; missing files raise OSError."""
    try:
        match path.suffix.lower():
            case ".npy":
                array = np.load(path, allow_pickle=False)
            case ".pt" | ".pth":
                array = _read_pt(path)
            case ".csv" | ".txt":
                array = np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.int64)
            case other:
                raise TopkFileError(
                    f"{path}: routing is read from .npy, .pt and .csv files, not from {other or 'this'}."
                )
    except TopkFileError:
        raise
    except (ValueError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TopkFileError(f"{path}: this is no readable {path.suffix} file ({reason}).") from None
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.integer):
        raise TopkFileError(
            f"{path}: expert numbers are integers, not {getattr(array, 'dtype', 'an archive')}."
        )
    if array.ndim == 3 and len(array) == world_size:
        return array
    if array.ndim == 2 and len(array) and len(array) % world_size == 0:
        return array.reshape(world_size, -1, array.shape[1])
    raise TopkFileError(
        f"{path}: routing of {world_size} ranks is [{world_size}, tokens, topk] or [{world_size} × tokens, topk], "
        f"not {list(array.shape)}."
    )


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
            raise TopkFileError(f"{path}: this archive holds no data.pkl: was it written by torch.save?")
        folder = description.removesuffix("data.pkl")
        order = "<"
        if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") == b"big":
            order = ">"
        with archive.open(description) as stream:
            return _TensorUnpickler(stream, archive, folder, order).load()


class _TensorUnpickler(pickle.Unpickler):
    """Builds numpy arrays from the descriptions of tensors, and refuses every other object."""

    def __init__(self, stream: BinaryIO | Any, archive: zipfile.ZipFile, folder: str, order: str) -> None:
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
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()
