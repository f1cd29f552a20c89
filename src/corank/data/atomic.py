"""Files and folders that appear whole or not at all: written beside their place, flushed, then renamed."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corank.errors import InputError


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    Write a file so that a reader sees the old one or the whole new one, never a part.

    path: where the file shall stand; an existing file is replaced, a link is followed.
    Yields: A name beside `path` to write to. It takes the place of `path` when the block ends well and is removed when
        the block raises.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "scores.txt")
    >>> with atomic_file(target) as scratch:
    ...     _ = scratch.write_text("0.5")
    >>> target.read_text(), [entry.name for entry in target.parent.iterdir()]
    ('0.5', ['scores.txt'])
    """
    place = _place(path)
    if place.is_dir():
        raise InputError(f"{path} is a folder; name a file to write.")
    if place.exists() and not place.is_file():
        raise InputError(f"{path} is a device or a pipe, which cannot be replaced whole; name a file to write.")
    scratch = _beside(place)
    try:
        yield scratch
        _flush(scratch)
        os.replace(scratch, place)
        _flush_folder(place.parent)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """
    Write a folder so that it appears with all its files or not at all.

    path: where the folder shall stand.
    replace: whether a folder that stands there is replaced: it is moved aside, and removed once the new one stands.
    Yields: A new, empty folder beside `path` to write into. It takes the place of `path` when the block ends well and
        is removed, with all it holds, when the block raises.
    """
    place = _place(path)
    if os.path.lexists(place) and not (replace and place.is_dir()):
        raise InputError(f"{path} exists already; remove it or choose another name.")
    scratch = _beside(place)
    scratch.mkdir()
    try:
        yield scratch
        for entry in scratch.rglob("*"):
            if entry.is_file():
                _flush(entry)
        _flush_folder(scratch)
        _exchange(scratch, place)
        _flush_folder(place.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _place(path: str | os.PathLike[str]) -> Path:
    if os.fspath(path) == "-":
        raise InputError("- is standard output, which takes text only; name a file to write.")
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {place.parent}; create it first.")
    return place


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name[:200]}.{uuid.uuid4().hex[:12]}.part")


def _exchange(scratch: Path, place: Path) -> None:
    """Put `scratch` where `place` stands; an old folder comes back when that fails or is interrupted."""
    if not place.exists():
        os.rename(scratch, place)
        return
    old = _beside(place)
    try:
        os.rename(place, old)
        os.rename(scratch, place)
    finally:
        if not place.exists():
            os.rename(old, place)
        shutil.rmtree(old, ignore_errors=True)


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
