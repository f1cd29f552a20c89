"""System calls that `os` lacks: exchange of two names, rename without replacement, and file locks."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
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
