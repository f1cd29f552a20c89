"""
Atomic files and folders: they are written to a scratch folder next to the target, flushed to disk, then renamed.

Existing files are only replaced with ``overwrite=True``. A folder is replaced by one exchange of names. If the system
or the file system has no such call (other systems than Linux and macOS; NFS and a few others), the old folder first
moves into the scratch folder. After a kill between the two renames, the next reader or writer moves it back.

A writer of ``NAME`` works in ``.NAME.HOST-TOKEN.part`` and locks the file ``lock`` in it. The lock ends with the
process. The next writer of ``NAME`` tries to lock every such folder; if that succeeds, its writer is dead and the
folder is removed. A folder from another machine, whose locks a network file system may not show, and a folder on a
system without locks (Windows, some network file systems) is removed only if it was not touched for a day.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import shutil
import stat
import sys
import time
import uuid
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from corank.errors import InputError, reason

if sys.platform != "win32":
    import fcntl

# flags of renameat2 on Linux, and of renamex_np on macOS
_FLAGS = {"exchange": {"linux": 2, "darwin": 2}, "new": {"linux": 1, "darwin": 4}}
_AT_FDCWD = -100
# errors of systems and file systems that do not know the flag
_UNKNOWN = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two files or folders in one step."""
    return _rename(first, second, "exchange")


def rename_new(source: Path, place: Path) -> None:
    """
    Rename to a name that does not exist; raise `FileExistsError` if it does.

    If the file system cannot check and rename in one step, a file that appears in between is replaced.
    """
    if not _rename(source, place, "new"):
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
        os.rename(source, place)


def _rename(source: Path, place: Path, how: str) -> bool:
    flag = _FLAGS[how].get(sys.platform)
    if flag is None:
        return False
    names = os.fsencode(source), os.fsencode(place)
    try:
        if sys.platform == "darwin":
            code = _libc().renamex_np(*names, flag)
        else:
            code = _libc().renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flag)
    except AttributeError:  # an old C library without these calls
        return False
    if code == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(place))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed or the process ends."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


OLD = "old"
"""Name, inside a scratch folder, of a folder that was moved aside to be replaced."""

_LOCK = "lock"
_DAY = 86_400.0


@contextmanager
def scratch_folder(place: Path) -> Iterator[Path]:
    """Remove scratch folders of dead writers of `place`, and make a new one next to it."""
    remove_leftovers(place)
    folder, handle = _claim(place)
    try:
        yield folder
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(place: Path) -> None:
    """Remove scratch folders of dead writers of `place`; a folder moved aside and not replaced is moved back."""
    for folder in _leftovers(place):
        try:
            handle = _lock(folder)
        except OSError:  # its writer is alive, it is gone, or access is denied
            continue
        try:
            is_surely_dead = handle is not None and f".{_host()}-" in folder.name
            if is_surely_dead or time.time() - _last_touched(folder) > _DAY:
                _clear(folder, place)
        finally:
            if handle is not None:
                os.close(handle)


def _clear(folder: Path, place: Path) -> None:
    try:
        rename_new(folder / OLD, place)
    except (FileNotFoundError, FileExistsError):  # there is no old folder, or a new one exists
        pass
    except OSError:  # this may be the only copy: keep it
        return
    shutil.rmtree(folder, ignore_errors=True)


def mode_of_new_file(folder: Path) -> int:
    """Permissions of a new file in a scratch folder, by the umask or the folder's rules."""
    return (folder / _LOCK).stat().st_mode & 0o777


def _claim(place: Path) -> tuple[Path, int | None]:
    while True:
        folder = place.with_name(f".{_label(place)}.{_host()}-{uuid.uuid4().hex[:12]}.part")
        folder.mkdir(mode=0o700)  # unfinished files are private
        try:
            return folder, _lock(folder)
        except (BlockingIOError, FileNotFoundError):  # removed before it was locked
            continue


def _lock(folder: Path) -> int | None:
    """Lock a scratch folder."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        is_locked = lock(handle, wait=False)
        if is_locked and not os.path.samestat(os.fstat(handle), os.stat(folder / _LOCK)):
            raise FileNotFoundError(errno.ENOENT, "it was removed before it was locked", str(folder))
    except OSError:
        os.close(handle)
        raise
    if is_locked:
        return handle
    os.close(handle)  # on Windows an open file could not be removed
    return None


def _leftovers(place: Path) -> list[Path]:
    pattern = re.compile(rf"\.{re.escape(_label(place))}\.[0-9a-f]{{8}}-[0-9a-f]{{12}}\.part")
    try:
        with os.scandir(place.parent) as entries:
            return [
                place.parent / entry.name
                for entry in entries
                if pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _label(place: Path) -> str:
    """The start of a name, short enough for the limit of 255 bytes."""
    return place.name.encode(errors="ignore")[:200].decode(errors="ignore")


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _last_touched(folder: Path) -> float:
    times = [0.0]
    for entry in (folder, *folder.rglob("*")):
        with suppress(OSError):
            times.append(entry.lstat().st_mtime)
    return max(times)


# suffixes of models and indices, which are not read as part of a folder of texts or tables
_NO_PARTS = (".index", ".safetensors")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Write a file so that readers see the old one or the complete new one, never a part."""
    place = _file_place(path, overwrite)
    with _scratch_for(path, place) as folder:
        scratch = folder / "new"
        yield scratch
        with explain_write_errors(path):
            _flush(scratch)
            _set_mode(scratch, _mode(place) if place.exists() else mode_of_new_file(folder))
            try:
                (os.replace if overwrite else rename_new)(scratch, place)
            except FileExistsError:
                raise _taken(path) from None
            _flush_folder(place.parent)


@contextmanager
def atomic_folder(
    path: str | os.PathLike[str], *, overwrite: bool = False, known: Container[str] | None = None
) -> Iterator[Path]:
    """
    Write a folder that appears with all its files or not at all.

    known: names of an earlier output; a folder that holds others is not replaced. None if the caller checked it.
    """
    place = _folder_place(path, overwrite)
    if known is not None and place.exists():
        others = sorted(entry.name for entry in place.iterdir() if entry.name not in known)
        if others:
            raise InputError(f"{path} holds {others[0]}, which would be lost; choose another folder.")
    with _scratch_for(path, place) as folder:
        scratch = folder / "new"
        scratch.mkdir()
        yield scratch
        with explain_write_errors(path):
            for entry in scratch.rglob("*"):
                if entry.is_file():
                    _flush(entry)
            _flush_folder(scratch)
            if place.exists():
                _set_mode(scratch, _mode(place))
            try:
                os.rename(scratch, place)  # replaces nothing, or an empty folder
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                if not overwrite:
                    raise _taken(path) from None
                _replace(scratch, place, folder / OLD)
            _flush_folder(place.parent)


def require_place(path: str | os.PathLike[str], *, overwrite: bool, folder: bool = False) -> None:
    """Raise `InputError` if a file or folder could not be written later; call it before long work."""
    with _scratch_for(path, (_folder_place if folder else _file_place)(path, overwrite)):
        pass


def require_no_input(
    path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]], *, keeps_folder: bool = False
) -> None:
    """Raise `InputError` if an existing output is an input or part of one; links and hard links are followed."""
    place = _status(path, 1)
    if place is None:
        return
    for item in inputs:
        result = _status(item, 0)
        if result is None:
            continue
        name = "standard output" if os.fspath(path) == "-" else path
        if os.path.samestat(place, result):
            same = "is also an input" if os.fspath(path) == os.fspath(item) else f"is the same file as the input {item}"
            raise InputError(f"{name} {same}, which would be lost; choose another output.")
        output, source = Path(os.path.realpath(path)), Path(os.path.realpath(item))
        if stat.S_ISDIR(place.st_mode) and output in source.parents and not keeps_folder:
            raise InputError(f"{path} contains the input {item}, which would be lost; choose another output.")
        if source in output.parents and output.suffix not in _NO_PARTS and os.fspath(path) != "-":
            raise InputError(f"{path} is part of the input {item}, which would be changed; choose another output.")


def _status(path: str | os.PathLike[str], standard: int) -> os.stat_result | None:
    """Return the status of a file or folder; None for terminals, pipes and what does not exist."""
    try:
        status = os.fstat(standard) if os.fspath(path) == "-" else os.stat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else None


def folder_exists(path: Path) -> bool:
    """Return whether a folder exists, after moving back one that a killed writer had moved aside."""
    if not os.path.lexists(path):
        remove_leftovers(Path(os.path.realpath(path)))
    return path.is_dir()


@contextmanager
def explain_write_errors(path: str | os.PathLike[str], numbers: tuple[int, ...] | None = None) -> Iterator[None]:
    """Turn an `OSError` of a write into an `InputError` that names the file."""
    try:
        yield
    except OSError as error:
        if numbers is not None and error.errno not in numbers:
            raise
        what = os.strerror(error.errno) if error.errno else reason(error)
        advice = "free some space there" if error.errno in _FULL else "choose another place, or make this one writable"
        raise InputError(f"{path} cannot be written ({what}); {advice}.") from error


def _place(path: str | os.PathLike[str]) -> Path:
    if os.fspath(path) == "-":
        raise InputError("- is standard output, which accepts text only; pass the name of a file.")
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {place.parent}; create it first.")
    return place


def _file_place(path: str | os.PathLike[str], overwrite: bool) -> Path:
    place = _place(path)
    if place.is_dir():
        raise InputError(f"{path} is a folder; pass the name of a file.")
    if place.exists() and not place.is_file():
        raise InputError(f"{path} is a device or a pipe, which cannot be replaced; pass the name of a file.")
    if place.exists() and not overwrite:
        raise _taken(path)
    return place


def _folder_place(path: str | os.PathLike[str], overwrite: bool) -> Path:
    place = _place(path)
    exists = folder_exists(place)
    if os.path.lexists(place) and not exists:
        raise InputError(f"{path} is a file, but a folder is to be written; choose another name.")
    if not overwrite and exists and any(place.iterdir()):
        raise _taken(path)
    return place


def _taken(path: str | os.PathLike[str]) -> InputError:
    return InputError(f"{path} exists already; choose another name, or replace it with overwrite=True.")


@contextmanager
def _scratch_for(path: str | os.PathLike[str], place: Path) -> Iterator[Path]:
    """Make a scratch folder; errors of writing in it name the file that the user asked for."""
    with ExitStack() as stack:
        with explain_write_errors(path):
            folder = stack.enter_context(scratch_folder(place))
        try:
            with explain_write_errors(path, _FULL):
                yield folder
        except (OSError, InputError) as error:
            if str(folder) not in str(error):
                raise
            # a writer inside a folder names a file of the scratch folder
            cause = error.__cause__ if isinstance(error, InputError) else error
            if isinstance(cause, OSError):
                with explain_write_errors(path):
                    raise cause from None
            raise InputError(str(error).replace(str(folder / "new"), os.fspath(path))) from error


def _replace(scratch: Path, place: Path, old: Path) -> None:
    """Replace a folder; the old one is moved back if that fails or is interrupted."""
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
    if os.name == "nt":  # Windows cannot open a folder
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
