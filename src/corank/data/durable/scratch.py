"""
Scratch folders next to a target, and their removal after a writer was killed; system calls that `os` lacks.

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
import sys
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

if sys.platform != "win32":
    import fcntl

# flags of renameat2 on Linux, and of renamex_np on macOS
_FLAGS = {"exchange": {"linux": 2, "darwin": 2}, "new": {"linux": 1, "darwin": 4}}
_AT_FDCWD = -100
# errors of systems and file systems that do not know the flag
_UNKNOWN = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders in one step."""
    return _rename(one, other, "exchange")


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
