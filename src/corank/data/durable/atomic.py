"""
Files and folders that appear whole or not at all: written beside their place, flushed, then renamed.

Nothing that stands is replaced unless that was asked for. A folder is replaced by one exchange of names; where the
system or the file system has none (not Linux or macOS; NFS and a few others), the old one first moves into the scratch
folder (`corank.data.durable.scratch`), and whoever reads or writes there after a kill between the two renames puts it
back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from corank.data.durable.renames import exchange, rename_new
from corank.data.durable.scratch import OLD, mode_of_new_file, scratch_folder, sweep
from corank.errors import InputError, reason

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """
    Write a file so that a reader sees the old one or the whole new one, never a part.

    path: where the file shall stand; a link is followed.
    overwrite: whether a file that stands there is replaced; the new one gets its permissions.
    Yields: A name to write to. It takes the place of `path` when the block ends well and is removed when it raises.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "scores.txt")
    >>> with atomic_file(target) as scratch:
    ...     _ = scratch.write_text("0.5")
    >>> target.read_text(), [entry.name for entry in target.parent.iterdir()]
    ('0.5', ['scores.txt'])
    """
    place = _file_place(path, overwrite)
    with _beside(path, place) as folder:
        scratch = folder / "new"
        yield scratch
        with naming_faults(path):
            _flush(scratch)
            _set_mode(scratch, _mode(place) if place.exists() else mode_of_new_file(folder))
            try:
                (os.replace if overwrite else rename_new)(scratch, place)
            except FileExistsError:
                raise _taken(path) from None
            _flush_folder(place.parent)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """
    Write a folder so that it appears with all its files or not at all.

    path: where the folder shall stand; an empty one that stands there is always replaced.
    overwrite: whether another folder that stands there is replaced; the new one gets its permissions.
    Yields: A new, empty folder to write into. It takes the place of `path` when the block ends well and is removed,
        with all it holds, when the block raises.
    """
    place = _folder_place(path, overwrite)
    with _beside(path, place) as folder:
        scratch = folder / "new"
        scratch.mkdir()
        yield scratch
        with naming_faults(path):
            for entry in scratch.rglob("*"):
                if entry.is_file():
                    _flush(entry)
            _flush_folder(scratch)
            if place.exists():
                _set_mode(scratch, _mode(place))
            try:
                os.rename(scratch, place)  # in the place of nothing, or of an empty folder
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                if not overwrite:
                    raise _taken(path) from None
                _replace(scratch, place, folder / OLD)
            _flush_folder(place.parent)


def require_place(path: str | os.PathLike[str], *, overwrite: bool, folder: bool = False) -> None:
    """
    Refuse, before any work is done, what could not be written after it; one sentence says why.

    path: where it shall stand.
    overwrite: whether what stands there may be replaced.
    folder: whether it is to be a folder.
    """
    with _beside(path, (_folder_place if folder else _file_place)(path, overwrite)):
        pass


def folder_stands(path: Path) -> bool:
    """
    Say whether there is a folder, and first put back one that a killed writer had moved aside.

    Returns: true where there is.
    """
    if not os.path.lexists(path):
        sweep(Path(os.path.realpath(path)))
    return path.is_dir()


@contextmanager
def naming_faults(path: str | os.PathLike[str], numbers: tuple[int, ...] | None = None) -> Iterator[None]:
    """
    Turn what the system answers to a write into a sentence that names the file.

    path: the file as the user knows it.
    numbers: error numbers that are meant; all of them by default.
    """
    try:
        yield
    except OSError as error:
        if numbers is not None and error.errno not in numbers:
            raise
        what = os.strerror(error.errno) if error.errno else reason(error)
        advice = "make room there" if error.errno in _FULL else "choose another place, or make this one writable"
        raise InputError(f"{path} cannot be written ({what}); {advice}.") from error


def _place(path: str | os.PathLike[str]) -> Path:
    if os.fspath(path) == "-":
        raise InputError("- is standard output, which takes text only; name a file to write.")
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {place.parent}; create it first.")
    return place


def _file_place(path: str | os.PathLike[str], overwrite: bool) -> Path:
    place = _place(path)
    if place.is_dir():
        raise InputError(f"{path} is a folder; name a file to write.")
    if place.exists() and not place.is_file():
        raise InputError(f"{path} is a device or a pipe, which cannot be replaced whole; name a file to write.")
    if place.exists() and not overwrite:
        raise _taken(path)
    return place


def _folder_place(path: str | os.PathLike[str], overwrite: bool) -> Path:
    place = _place(path)
    stands = folder_stands(place)
    if os.path.lexists(place) and not stands:
        raise InputError(f"{path} is a file, and a folder is to be written; choose another name.")
    if not overwrite and stands and any(place.iterdir()):
        raise _taken(path)
    return place


def _taken(path: str | os.PathLike[str]) -> InputError:
    return InputError(f"{path} exists already; choose another name, or replace it with overwrite=True.")


@contextmanager
def _beside(path: str | os.PathLike[str], place: Path) -> Iterator[Path]:
    """A folder to write in, and a sentence where it cannot be made or the disk is full."""
    with ExitStack() as leaving:
        with naming_faults(path):
            folder = leaving.enter_context(scratch_folder(place))
        with naming_faults(path, _FULL):
            yield folder


def _replace(scratch: Path, place: Path, old: Path) -> None:
    """Put a folder where another stands, which comes back when that fails or is interrupted."""
    if exchange(scratch, place):
        return
    try:
        os.rename(place, old)
        os.rename(scratch, place)
    finally:
        if not place.exists():
            os.rename(old, place)


def _mode(place: Path) -> int:
    return place.stat().st_mode & 0o777


def _set_mode(scratch: Path, mode: int) -> None:
    if _mode(scratch) != mode:
        with suppress(OSError):  # a file system without permissions
            scratch.chmod(mode)


def _flush(path: Path) -> None:
    with path.open("rb+") as handle:
        os.fsync(handle.fileno())


def _flush_folder(path: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
