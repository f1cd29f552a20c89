from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from corank.data.durable import atomic
from corank.data.durable.atomic import atomic_file, atomic_folder, explain_write_errors, folder_exists, require_place
from corank.errors import InputError


def listing(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    store.mkdir()
    (store / "old").write_text("1")
    return store


@pytest.fixture(params=["exchange", "two renames"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to replace a folder, on any system."""
    if request.param == "two renames":
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    return str(request.param)


def write_store(store: Path, *, overwrite: bool = True) -> None:
    with atomic_folder(store, overwrite=overwrite) as scratch:
        (scratch / "new").write_text("1")


def test_a_file_is_replaced_on_request_only_and_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(InputError, match=r"a\.txt exists already; .*overwrite=True"), atomic_file(target):
        pass
    with atomic_file(target, overwrite=True) as scratch:
        scratch.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert listing(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("atomic_flag", [True, False])
def test_what_appears_while_a_file_or_folder_is_written_is_not_lost(tmp_path: Path, monkeypatch, atomic_flag) -> None:
    if not atomic_flag:
        monkeypatch.setattr("corank.data.durable.atomic._rename", lambda source, place, how: False)

    def write_file() -> None:
        with atomic_file(tmp_path / "a.txt") as scratch:
            scratch.write_text("mine")
            (tmp_path / "a.txt").write_text("another's")

    def write_folder() -> None:
        with atomic_folder(tmp_path / "store"):
            (tmp_path / "store").mkdir()
            (tmp_path / "store" / "x").write_text("another's")

    for write in (write_file, write_folder):
        with pytest.raises(InputError, match="exists already"):
            write()
    assert (tmp_path / "a.txt").read_text() == "another's"
    assert (tmp_path / "store" / "x").read_text() == "another's"
    assert listing(tmp_path) == ["a.txt", "store"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write() -> None:
        with atomic_file(target, overwrite=True) as scratch:
            scratch.write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write()
    assert target.read_text() == "old"
    assert listing(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_permissions_are_those_that_open_and_mkdir_give(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with atomic_file(tmp_path / "file") as scratch:
            os.close(os.open(scratch, os.O_CREAT, 0o600))  # as safetensors makes its files
        with atomic_folder(tmp_path / "folder") as inside:
            (inside / "file").write_text("")
        (tmp_path / "plain").write_text("")
        (tmp_path / "plain_folder").mkdir()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["file"] == modes["plain"] == stat.S_IMODE((tmp_path / "folder" / "file").stat().st_mode)
    assert modes["folder"] == modes["plain_folder"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_replacement_keeps_the_permissions(tmp_path: Path, store: Path, way: str) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o640)
    store.chmod(0o750)
    with atomic_file(file, overwrite=True) as scratch:
        scratch.write_text("new")
    write_store(store)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, store)] == [0o640, 0o750]


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_file(link, overwrite=True) as scratch:
        scratch.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "store"
    with atomic_folder(target) as scratch:
        (scratch / "deep").mkdir()
        (scratch / "deep" / "x").write_text("1")
        assert not target.exists()
    assert (target / "deep" / "x").read_text() == "1"
    assert listing(tmp_path) == ["store"]


def test_a_folder_is_replaced_on_request_or_when_empty(tmp_path: Path, store: Path, way: str) -> None:
    with pytest.raises(InputError, match="store exists already"):
        write_store(store, overwrite=False)
    assert listing(store) == ["old"]
    write_store(store)
    assert listing(store) == ["new"]
    (tmp_path / "empty").mkdir()
    write_store(tmp_path / "empty", overwrite=False)
    assert listing(tmp_path / "empty") == ["new"]
    assert listing(tmp_path) == ["empty", "store"]


def test_a_failed_replacement_leaves_the_old_folder(tmp_path: Path, store: Path, monkeypatch) -> None:
    monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    rename = os.rename

    def refuse(source: Path, place: Path) -> None:
        if source.name == "new" and not place.exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, place)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(InputError, match="store cannot be written"):
        write_store(store)
    assert listing(store) == ["old"]
    assert listing(tmp_path) == ["store"]


def test_an_interrupt_between_the_renames_brings_the_old_folder_back(tmp_path: Path, store: Path, monkeypatch) -> None:
    monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    rename = os.rename

    def interrupted(source: Path, place: Path) -> None:
        rename(source, place)
        if source == store.resolve():
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_store(store)
    assert listing(store) == ["old"]
    assert listing(tmp_path) == ["store"]


def move_aside(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state after a kill between the two renames: the scratch folder exists unlocked, the target does not exist."""

    def write() -> None:
        with atomic_folder(store, overwrite=True) as scratch:
            os.rename(store, scratch.parent / "old")
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(RuntimeError, match="killed"):
            write()
    assert not store.exists()


def test_a_folder_that_was_moved_aside_is_moved_back_by_a_reader(tmp_path: Path, store: Path, monkeypatch) -> None:
    move_aside(store, monkeypatch)
    assert folder_exists(store)
    assert listing(store) == ["old"]
    assert listing(tmp_path) == ["store"]
    assert not folder_exists(tmp_path / "none")
    assert not folder_exists(tmp_path / "none" / "none")


def test_a_folder_that_was_moved_aside_is_not_overwritten(tmp_path: Path, store: Path, monkeypatch) -> None:
    move_aside(store, monkeypatch)
    with pytest.raises(InputError, match="store exists already"):
        require_place(store, overwrite=False, folder=True)
    assert listing(store) == ["old"]
    write_store(store)
    assert listing(store) == ["new"]
    assert listing(tmp_path) == ["store"]


def test_a_folder_that_was_moved_aside_is_kept_if_it_cannot_be_moved_back(store: Path, monkeypatch) -> None:
    def refuse(source: Path, place: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    move_aside(store, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("corank.data.durable.atomic.rename_new", refuse)
        assert not folder_exists(store)
    assert folder_exists(store)
    assert listing(store) == ["old"]


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, folder, message in (
        (tmp_path / "none" / "a", False, "there is no folder"),
        (tmp_path / "none" / "a", True, "there is no folder"),
        (tmp_path, False, "is a folder; pass the name of a file"),
        (tmp_path / "file", True, "is a file, but a folder is to be written"),
    ):
        with pytest.raises(InputError, match=message):
            require_place(path, overwrite=True, folder=folder)
        write = atomic_folder(path, overwrite=True) if folder else atomic_file(path, overwrite=True)
        with pytest.raises(InputError, match=message), write:
            pass
    assert listing(tmp_path) == ["file"]


def test_a_target_can_be_checked_before_it_is_written(tmp_path: Path, store: Path) -> None:
    (tmp_path / "file").write_text("old")
    for name, folder in (("file", False), ("store", True)):
        with pytest.raises(InputError, match="exists already"):
            require_place(tmp_path / name, overwrite=False, folder=folder)
        require_place(tmp_path / name, overwrite=True, folder=folder)
    require_place(tmp_path / "new", overwrite=False)
    require_place(tmp_path / "new", overwrite=False, folder=True)
    assert listing(tmp_path) == ["file", "store"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_device_or_pipe_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a device or a pipe"), atomic_file(tmp_path / "pipe", overwrite=True):
        pass
    assert (tmp_path / "pipe").is_fifo()
    assert listing(tmp_path) == ["pipe"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_raises_and_names_the_target(tmp_path: Path, number: int) -> None:
    for write in (atomic_file, atomic_folder):
        with (
            pytest.raises(InputError, match=r"a\.txt cannot be written"),
            write(tmp_path / "a.txt"),
        ):
            raise OSError(number, os.strerror(number))
    assert listing(tmp_path) == []


def test_errors_inside_the_scratch_folder_name_what_was_asked_for(tmp_path: Path) -> None:
    """Readers of a message should not look for a hidden file that is gone."""
    target = tmp_path / "out"
    with (
        pytest.raises(InputError, match=r"out cannot be written \(No space left") as found,
        atomic_folder(target) as folder,
        atomic_file(folder / "plot.png"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert ".part" not in str(found.value)
    for error in (errno.EIO, errno.EROFS):
        with pytest.raises(InputError, match=r"out cannot be written \(") as found, atomic_file(target) as scratch:
            raise OSError(error, os.strerror(error), str(scratch))
        assert ".part" not in str(found.value)

    def write_twice() -> None:
        with atomic_folder(target) as folder:
            (folder / "a").mkdir()
            for _ in range(2):
                with atomic_file(folder / "a" / "b.txt") as scratch:
                    scratch.touch()

    with pytest.raises(InputError, match=r"out/a/b\.txt exists already") as found:
        write_twice()
    assert ".part" not in str(found.value)
    assert listing(tmp_path) == []


def test_other_errors_of_the_block_are_unchanged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "a.txt"):
        (tmp_path / "source").read_bytes()
    with (
        pytest.raises(InputError, match="log cannot be written"),
        explain_write_errors("log"),
    ):
        raise OSError("odd")
