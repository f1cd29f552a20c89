from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from corank.data.io.stores import StoreFolder, digest, is_store, store_folder


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.array(["é", "bc"]), np.empty(0, np.int64)])
def test_arrays_are_written_as_raw_bytes_with_their_checksum(tmp_path: Path, array: np.ndarray) -> None:
    folder = StoreFolder(tmp_path)
    folder.put("a", array)
    assert (tmp_path / "a.bin").read_bytes() == array.tobytes()
    assert digest(array) == hashlib.sha256(array.tobytes()).hexdigest()


def test_other_byte_orders_and_strides_are_straightened(tmp_path: Path) -> None:
    array = np.arange(12).reshape(3, 4)
    StoreFolder(tmp_path).put("a", array.astype(">i8")[:, ::2])
    assert np.fromfile(tmp_path / "a.bin", "<i8").tolist() == array[:, ::2].ravel().tolist()


def test_an_array_in_its_room_is_kept_and_cut(tmp_path: Path) -> None:
    folder = StoreFolder(tmp_path)
    room = folder.allocate("a", (100,), np.float64)
    assert room.tolist() == [0.0] * 100
    room[:40] = np.arange(40)
    folder.put("a", room[:40])
    assert np.fromfile(tmp_path / "a.bin").tolist() == list(range(40))


def test_another_array_takes_the_place_of_the_room(tmp_path: Path) -> None:
    folder = StoreFolder(tmp_path)
    folder.allocate("a", (100,), np.float64)
    folder.put("a", np.arange(3.0))
    assert np.fromfile(tmp_path / "a.bin").tolist() == [0, 1, 2]


def test_a_folder_is_a_store_once_it_has_its_header(tmp_path: Path) -> None:
    with store_folder(tmp_path / "s", overwrite=False) as folder:
        folder.put("a", np.arange(3))
        assert not is_store(folder.path)
        folder.write_header(n_rows=3)
        assert is_store(folder.path)
    assert is_store(tmp_path / "s")
