"""Locks on open files, which end with the process that holds them, however it ends."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    import fcntl


def lock(handle: int, *, wait: bool) -> bool:
    """
    Lock an open file until it is closed; where another holds the lock, wait, or raise `BlockingIOError`.

    Returns: false where the system or the file system has no locks.
    """
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True
