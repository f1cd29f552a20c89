"""Renames that `os` lacks: two names exchanged in one step, and a name that is taken only while it is free."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path

# flags of renameat2 on Linux, and of renamex_np on macOS
_FLAGS = {"exchange": {"linux": 2, "darwin": 2}, "new": {"linux": 1, "darwin": 4}}
_AT_FDCWD = -100
# what a system or a file system answers that does not know the flag
_UNKNOWN = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(one: Path, other: Path) -> bool:
    """
    Let two files or folders change places in one step, so that nobody ever sees a name without its content.

    Returns: false, and nothing is changed, where the system or the file system cannot.
    """
    return _rename(one, other, "exchange")


def rename_new(source: Path, place: Path) -> None:
    """
    Rename where nothing stands yet; `FileExistsError` where something does.

    Where the file system cannot do both in one step, a file that appears in between is replaced.
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
    except AttributeError:  # a C library from before these calls
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
