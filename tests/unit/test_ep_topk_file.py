from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from morimon.ep.topk_file import TopkFileError, _rebuild_tensor, read_topk_file

ROUTING = np.array([[[0, 3], [1, -1]], [[2, 2], [-1, 0]], [[1, 0], [3, 2]]])


def saved(path: Path, array: object) -> Path:
    if path.suffix == ".csv":
        np.savetxt(path, np.asarray(array), fmt="%d", delimiter=",")
    elif path.suffix == ".npy":
        np.save(path, np.asarray(array))
    else:
        torch = pytest.importorskip("torch", reason="torch is not installed: it writes the .pt files")
        torch.save(torch.from_numpy(array) if isinstance(array, np.ndarray) else array, path)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".pt"])
def test_ranks_follow_one_another(tmp_path: Path, suffix: str) -> None:
    path = saved(tmp_path / f"topk{suffix}", ROUTING.reshape(6, 2))
    assert np.array_equal(read_topk_file(path, 3), ROUTING)


@pytest.mark.parametrize("suffix", [".npy", ".pt"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8])
def test_ranks_are_the_first_axis(tmp_path: Path, suffix: str, dtype: type) -> None:
    path = saved(tmp_path / f"topk{suffix}", ROUTING.astype(dtype))
    assert np.array_equal(read_topk_file(path, 3), ROUTING)


def test_tensors_that_are_views_of_a_storage(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: it writes the .pt files")
    whole = torch.arange(48).reshape(6, 8)
    for name, view in (("columns", whole[:, 2:5]), ("transposed", whole.T[:6]), ("stepped", whole[::2])):
        path = tmp_path / f"{name}.pt"
        torch.save(view, path)
        read = read_topk_file(path, 3)
        assert np.array_equal(read.reshape(-1, read.shape[2]), view.numpy()), name


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", "1,x\n", "this is no .csv file of expert numbers: could not convert string 'x' to int64"),
        ("a.csv", "", "this is no .csv file of expert numbers: it is empty."),
        ("a.csv", "1,2\n3\n", "the number of columns changed from 2 to 1 at row 2."),
        ("a.csv", "1.5,2\n", "could not convert string '1.5' to int64"),
        ("a.csv", "1,2\n3,4\n", "routing of 3 ranks is [3, tokens, topk] or [3 × tokens, topk], not [2, 2]."),
        ("a.npy", "junk", "this is no .npy file of expert numbers: EOF"),
        ("a.npy", "junk that is longer than a header", "magic string is not correct"),
        ("a.pt", "junk", "this is no .pt file of expert numbers: File is not a zip file."),
        ("a.xlsx", "1,2", "routing is read from .npy, .pt, .pth, .csv files alone."),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: str, sentence: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(TopkFileError) as caught:
        read_topk_file(path, 3)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".npy", ".pt"])
def test_experts_are_integers(tmp_path: Path, suffix: str) -> None:
    path = saved(tmp_path / f"a{suffix}", ROUTING.astype(np.float32))
    with pytest.raises(TopkFileError, match="expert numbers are integers, not"):
        read_topk_file(path, 3)


def test_an_archive_may_hold_one_tensor_only(tmp_path: Path) -> None:
    with pytest.raises(TopkFileError, match="this holds a list, not one tensor of expert numbers"):
        read_topk_file(saved(tmp_path / "a.pt", [1, 2]), 3)
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as archive:
        archive.writestr("b/version", "3")
    with pytest.raises(TopkFileError, match=r"the archive holds no data\.pkl"):
        read_topk_file(tmp_path / "b.pt", 3)


class Escape:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("suffix", [".pt", ".npy"])
def test_nothing_in_a_file_is_executed(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / "made by a pickle"
    path = tmp_path / f"evil{suffix}"
    if suffix == ".pt":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("evil/data.pkl", pickle.dumps(Escape(target)))
    else:
        np.save(path, np.array([Escape(target)], dtype=object), allow_pickle=True)
    with pytest.raises(TopkFileError):
        read_topk_file(path, 3)
    assert not target.exists()


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(0, (3, 2), (2, 1000)), (5, (3, 2), (2, 1)), (-1, (3, 2), (2, 1)), (0, (3, 2), (-2, 1))],
)
def test_a_tensor_may_not_reach_beyond_its_storage(
    offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    with pytest.raises(pickle.UnpicklingError, match="beyond its storage"):
        _rebuild_tensor(np.arange(6), offset, size, stride)


def test_a_missing_file_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_topk_file(tmp_path / "absent.npy", 3)
