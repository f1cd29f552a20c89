from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from corank.data.durable import atomic as scratch
from corank.data.durable.atomic import remove_leftovers, scratch_folder


def listing(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def dead(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state after a writer was killed: its folder, without a lock."""
    with monkeypatch.context() as patch, scratch_folder(place) as folder:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        (folder / "new").write_text("half")
    return folder


def age(folder: Path, seconds: float) -> None:
    for path in (folder, *folder.iterdir()):
        os.utime(path, (time.time() - seconds,) * 2)


def test_the_next_writer_removes_folders_of_dead_writers(tmp_path: Path, monkeypatch) -> None:
    left, other = dead(tmp_path / "a", monkeypatch), dead(tmp_path / "a.b", monkeypatch)
    assert listing(tmp_path) == sorted([left.name, other.name])
    with scratch_folder(tmp_path / "a") as folder:
        assert listing(tmp_path) == sorted([folder.name, other.name])
    assert listing(tmp_path) == [other.name]


def test_the_folder_of_a_live_writer_is_kept_at_any_age(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "a") as mine:
        (mine / "new").write_text("half")
        age(mine, 1e6)
        with scratch_folder(tmp_path / "a") as other:
            assert mine != other
            assert (mine / "new").read_text() == "half"
        remove_leftovers(tmp_path / "a")
        assert (mine / "new").read_text() == "half"
    assert listing(tmp_path) == []


@pytest.mark.parametrize("why", ["another machine", "no locks"])
def test_without_reliable_locks_a_folder_is_kept_for_a_day(tmp_path: Path, monkeypatch, why: str) -> None:
    left = dead(tmp_path / "a", monkeypatch)
    if why == "another machine":
        monkeypatch.setattr("platform.node", lambda: "another")
    else:
        monkeypatch.setattr(scratch, "lock", lambda handle, wait: False)
    remove_leftovers(tmp_path / "a")
    assert listing(tmp_path) == [left.name]
    age(left, 86_400 * 1.5)
    (left / "new").write_text("touched again")
    remove_leftovers(tmp_path / "a")
    assert listing(tmp_path) == [left.name]
    age(left, 86_400 * 1.5)
    remove_leftovers(tmp_path / "a")
    assert listing(tmp_path) == []


def test_a_folder_removed_before_it_was_locked_is_made_again(tmp_path: Path, monkeypatch) -> None:
    made, mkdir = [], Path.mkdir

    def swept(self: Path, *args: object, **kwargs: object) -> None:
        mkdir(self, *args, **kwargs)
        made.append(self)
        if len(made) == 1:
            remove_leftovers(tmp_path / "a")

    monkeypatch.setattr(Path, "mkdir", swept)
    with scratch_folder(tmp_path / "a") as folder:
        assert listing(tmp_path) == [folder.name]
        assert made == [made[0], folder]
        assert made[0] != folder


def test_other_names_are_left_alone(tmp_path: Path) -> None:
    names = [".a.part", ".a.0123.part", ".a.01234567-0123456789ab.part.txt", "a.01234567-0123456789ab.part"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / ".a.01234567-0123456789ab.part").write_text("a file of this name")
    (tmp_path / ".a.89abcdef-0123456789ab.part").symlink_to(tmp_path / names[0])
    before = listing(tmp_path)
    with scratch_folder(tmp_path / "a"):
        pass
    assert listing(tmp_path) == before


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "[a]*"])
def test_any_file_name_can_be_written(tmp_path: Path, monkeypatch, name: str) -> None:
    dead(tmp_path / name, monkeypatch)
    with scratch_folder(tmp_path / name) as folder:
        os.rename(shutil.copy(__file__, folder / "new"), tmp_path / name)
    assert listing(tmp_path) == [name]
