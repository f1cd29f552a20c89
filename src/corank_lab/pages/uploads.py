"""Uploaded files: limits of archives, types of images by their content, and names that never become paths."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from corank.data import ZIP_DAMAGE, current_budget, read_member, require_plausible_size
from corank.errors import InputError
from corank_lab.http import MEGABYTE
from corank_lab.pages.markup import one_line

MAX_FILES = 2000
MAX_IMAGE = 20 * MEGABYTE
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif",
}  # fmt: skip
_SAFE = re.compile(r"[^\w.-]+")
_SUFFIX = re.compile(r"(\.\w{1,8}){1,2}$", re.ASCII)
Report = Callable[[str, float], None]
"""Takes the stage of a long work and the share that is done."""


def no_report(stage: str, share: float) -> None:
    """Ignore the progress."""


class UploadedFile(NamedTuple):
    """A file that a browser sent."""

    name: str  # its last part, for people; it is not used as a path
    content: bytes  # bytes


@dataclass(frozen=True)
class Upload:
    """The files of a new project."""

    tables: Sequence[UploadedFile]  # files that readers understand
    images: dict[str, tuple[str, bytes]]  # media type and content by name
    report: Report = no_report  # called while they are read

    @contextmanager
    def on_disk(self) -> Iterator[list[Path]]:
        """Write the tables under safe names into a temporary folder, and yield their paths; no message names it."""
        with tempfile.TemporaryDirectory(prefix="corank-") as folder:
            paths = []
            for number, file in enumerate(self.tables):
                place = Path(folder, str(number))
                place.mkdir()
                path = place / _safe(file.name)
                path.write_bytes(file.content)
                paths.append(path)
            try:
                yield paths
            except InputError as error:
                message = str(error)
                for path, file in zip(paths, self.tables, strict=True):
                    message = message.replace(str(path), file.name)
                raise InputError(message) from None


def sort_upload(files: Sequence[UploadedFile]) -> Upload:
    """Unpack archives and separate images from tables; raise `InputError` if a limit is exceeded."""
    unpacked: list[UploadedFile] = []
    for file in files:
        if _is_archive(file):
            unpacked += _members(file)
        else:
            current_budget().take("bytes", len(file.content), file.name)
            unpacked.append(file)
        if len(unpacked) > MAX_FILES:
            raise InputError(f"the upload has more than {MAX_FILES} files, which is the limit; send fewer.")
    tables, images = [], {}
    for file in unpacked:
        kind = image_type(file.content)
        if kind is None:
            tables.append(file)
        elif len(file.content) > MAX_IMAGE:
            raise InputError(f"{file.name} has {len(file.content) // MEGABYTE} MB; images may have 20 MB at most.")
        else:
            images[file.name] = (kind, file.content)
    return Upload(tables, images)


def image_type(content: bytes) -> str | None:
    """Return the media type of an image, by its first bytes; None for anything else, SVG included."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), None)


def file_name(name: str) -> str:
    """Return the last part of a name, for people."""
    last = re.split(r"[/\\]", name)[-1]
    suffix = match.group() if len(last) > 100 and (match := _SUFFIX.search(last)) else ""
    return one_line(last.removesuffix(suffix), 100 - len(suffix)) + suffix or "file"


def _safe(name: str) -> str:
    """Return a name for the disk, of at most 255 bytes, that begins with a letter or digit and keeps its suffix."""
    safe = _SAFE.sub("-", name)[-60:]
    return safe if safe[:1].isalnum() else f"file{safe}"


def _is_archive(file: UploadedFile) -> bool:
    return file.name.lower().endswith(".zip") and file.content.startswith(b"PK")


def _members(file: UploadedFile) -> list[UploadedFile]:
    """Unpack an archive in memory."""
    result: list[UploadedFile] = []
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            members = [item for item in archive.infolist() if not item.is_dir()]
            if len(members) > MAX_FILES:
                raise InputError(f"{file.name} holds {len(members)} files; the limit is {MAX_FILES}.")
            require_plausible_size(file.name, len(file.content), sum(member.file_size for member in members))
            for member in members:
                name = file_name(member.filename)
                if name.startswith(".") or member.filename.startswith("__MACOSX"):
                    continue
                result.append(UploadedFile(name, read_member(archive, member, file.name)))
    except InputError:
        raise
    except ZIP_DAMAGE as error:
        raise InputError(f"{file.name} cannot be unpacked ({type(error).__name__}); send a plain .zip file.") from None
    return result
