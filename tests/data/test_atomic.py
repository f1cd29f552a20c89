from __future__ import annotations

import os
from pathlib import Path

import pytest

from corank.data.atomic import atomic_file, atomic_folder
from corank.errors import InputError


def listing(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_replaced_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with atomic_file(target) as scratch:
        scratch.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert listing(tmp_path) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write() -> None:
        with atomic_file(target) as scratch:
            scratch.write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write()
    assert target.read_text() == "old"
    assert listing(tmp_path) == ["a.txt"]


def test_a_file_obeys_the_umask_and_follows_links(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    plain = tmp_path / "plain"
    plain.write_text("")
    with atomic_file(link) as scratch:
        scratch.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode == plain.stat().st_mode


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "store"
    with atomic_folder(target) as scratch:
        (scratch / "deep").mkdir()
        (scratch / "deep" / "x").write_text("1")
        assert not target.exists()
    assert (target / "deep" / "x").read_text() == "1"
    assert listing(tmp_path) == ["store"]


def test_a_folder_is_replaced_on_request_only(tmp_path: Path) -> None:
    target = tmp_path / "store"
    target.mkdir()
    (target / "old").write_text("1")
    with pytest.raises(InputError, match="exists already"), atomic_folder(target):
        pass
    with atomic_folder(target, replace=True) as scratch:
        (scratch / "new").write_text("1")
    assert listing(target) == ["new"]
    assert listing(tmp_path) == ["store"]


def test_a_failed_folder_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "store"
    target.mkdir()
    (target / "old").write_text("1")
    rename = os.rename

    def refuse(source: Path, place: Path) -> None:
        if source.name.endswith(".part") and (source / "new").exists():
            raise OSError("disk full")
        rename(source, place)

    monkeypatch.setattr(os, "rename", refuse)

    def write() -> None:
        with atomic_folder(target, replace=True) as scratch:
            (scratch / "new").write_text("1")

    with pytest.raises(OSError, match="disk full"):
        write()
    assert listing(target) == ["old"]
    assert listing(tmp_path) == ["store"]


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"), atomic_file(tmp_path / "none" / "a"):
        pass
    with pytest.raises(InputError, match="is a folder"), atomic_file(tmp_path):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="exists already"), atomic_folder(tmp_path / "file", replace=True):
        pass


def test_an_interrupt_between_the_renames_brings_the_old_folder_back(tmp_path: Path, monkeypatch) -> None:
    target = tmp_path / "store"
    target.mkdir()
    (target / "old").write_text("1")
    rename = os.rename

    def interrupted(source: Path, place: Path) -> None:
        rename(source, place)
        if source == target.resolve():
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)

    def write() -> None:
        with atomic_folder(target, replace=True) as scratch:
            (scratch / "new").write_text("1")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert listing(target) == ["old"]
    assert listing(tmp_path) == ["store"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_device_or_pipe_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a device or a pipe"), atomic_file(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()
    assert listing(tmp_path) == ["pipe"]
