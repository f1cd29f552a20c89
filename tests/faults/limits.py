"""Targets that cannot be written: without permission, and on a full disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """A folder without write permission; root becomes another user meanwhile."""
    mode, is_root = folder.stat().st_mode, os.geteuid() == 0
    folder.chmod(0o555)
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o001:  # the other user must be able to reach the folder
            parent.chmod(0o755)
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(mode)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Limit the size of files, which looks like a full disk to a process."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
