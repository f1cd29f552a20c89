"""
Uploaded files: limits of archives, types of images by their content, and names that never become paths; and a preview
of files before they become a project: the kind of work they fit, first rows, roles of columns.
"""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from corank.data import (
    ZIP_DAMAGE,
    Budget,
    ColumnChoice,
    csv_text,
    current_budget,
    looks_like_votes,
    read_member,
    read_table,
    require_plausible_size,
    spending,
)
from corank.errors import InputError
from corank_lab.http import MEGABYTE
from corank_lab.pages.markup import one_line
from corank_lab.records.columns import find_columns
from corank_lab.records.parsed import ParsedFile, load_file
from corank_lab.records.reading import parse_file

MAX_FILES = 2000
MAX_IMAGE = 20 * MEGABYTE
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif",
}  # fmt: skip
_SAFE = re.compile(r"[^\w.-]+")
_SUFFIX = re.compile(r"(\.\w{1,8}){1,2}$", re.ASCII)
Report = Callable[[str, float], None]  # takes the stage of a long work and the share that is done


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


ANY = "any"  # kind of an upload that waits for the owner's decision what it is for
SAVED = "project"  # kind of an upload that holds a saved project

ROLES: dict[str, dict[str, str]] = {
    "screen": {
        "title": "title", "abstract": "abstract", "year": "year", "authors": "authors", "keywords": "keywords",
        "doi": "doi", "id": "record id", "label": "included",
    },
    "grade": {"qid": "query", "docid": "docid", "y": "rating", "judge": "judge", "position": "position"},
    "compare": {"name": "name", "first": "item_a", "second": "item_b", "winner": "winner", "voter": "judge"},
}  # fmt: skip
"""Roles that a column may have in each kind of work, and the name that its reader expects."""
ROWS = {
    "screen": "each entry is a record", "grade": "each row is a document of a query", "compare": "each row is an item",
    "votes": "each row is a vote between two items",
}  # fmt: skip
"""What was recognised."""
LEFT_OUT = "none"  # role of a column that is left out

N_ROWS, MAX_SHOWN_COLUMNS, MAX_CELL = 5, 60, 80  # rows and columns of a preview, and characters of a cell
MAX_PREVIEW_BYTES, MAX_PREVIEW_VALUES = 8 * MEGABYTE, 200_000
"""What is unpacked and parsed for a preview, beside the server's other work."""
MAX_UNPACKED_BYTES, MAX_CORRECTED_CELLS = 200 * MEGABYTE, 2_000_000
_HEAD = 1 << 18
_RUN = re.compile(rb"\s*\S+\s+(?:Q0|\d+)\s+\S+\s+\d+\s+[-+.\deE]+\s+\S+[ \t]*\r?$", re.MULTILINE)
_BOOK = re.compile(rb'"query_doc_pairs"\s*:')
_TABLES = ("CSV", "TSV", "Excel", "JSON", "JSON lines", "Parquet")


@dataclass(frozen=True)
class FilePreview:
    """One file."""

    name: str  # its name
    format: str  # what was recognised; empty if it was not read
    columns: tuple[str, ...] = ()  # columns or tags
    rows: tuple[tuple[str, ...], ...] = ()  # first rows
    roles: Mapping[str, Mapping[str, str]] | None = None  # recognised column by kind and role; None if there are none
    remarks: tuple[str, ...] = ()  # what was assumed, or why there is no preview
    kind: str = ""  # kind of work that it fits

    def role_of(self, kind: str, column: str) -> str:
        """Return the role of a column, empty without one."""
        return next((role for role, item in (self.roles or {}).get(kind, {}).items() if item == column), "")


def preview_files(files: Sequence[UploadedFile]) -> tuple[str, list[FilePreview]]:
    """Return the kind of work that files fit, and a preview of each."""
    if any(is_saved(file.content) for file in files):
        return SAVED, [FilePreview(file.name, "corank", kind=SAVED) for file in files]
    with spending(Budget(n_bytes=MAX_UNPACKED_BYTES)):
        upload = sort_upload(files)
    previews = [preview_file(file) for file in upload.tables]
    kinds = {preview.kind for preview in previews}
    if not previews:
        return "compare", [FilePreview(name, kind, kind="compare") for name, (kind, _) in upload.images.items()]
    # beside a run or a table of pairs, other tables hold the texts
    return next((kind for kind in ("grade", "screen", "compare") if kind in kinds), ""), previews


def preview_file(file: UploadedFile) -> FilePreview:
    """Return a preview of one file; nothing is refused."""
    if _RUN.match(file.content) or (_BOOK.search(file.content[:_HEAD]) and file.content.lstrip()[:1] == b"{"):
        lines = file.content[:_HEAD].decode("utf-8", "replace").splitlines()[:N_ROWS]
        is_run = _RUN.match(file.content) is not None
        rows: tuple[tuple[str, ...], ...] = tuple((one_line(line, 200),) for line in lines) if is_run else ()
        return FilePreview(file.name, "TREC run" if is_run else "Quepid book", ("",) * is_run, rows, kind="grade")
    try:
        with spending(Budget(n_bytes=MAX_PREVIEW_BYTES, cells=MAX_PREVIEW_VALUES, values=MAX_PREVIEW_VALUES)):
            parsed = _parse(_head(file))
    except InputError as error:
        return FilePreview(file.name, "", remarks=(str(error),))
    columns = tuple(item for item in parsed.columns if item)
    if not parsed.records or not columns:
        return FilePreview(file.name, "", remarks=(f"{file.name} has no rows below a header.",))
    kind = _kind(parsed, columns)
    roles = _roles(parsed, columns) if _is_table(parsed) else None
    rows = tuple(
        tuple(one_line("; ".join(record.get(column, ())), MAX_CELL) for column in columns[:MAX_SHOWN_COLUMNS])
        for record in parsed.records[:N_ROWS]
    )
    what = ROWS["votes" if kind == "compare" and looks_like_votes(columns) else kind]
    return FilePreview(file.name, parsed.format, columns, rows, roles, (what, *parsed.remarks), kind)


def with_roles(file: UploadedFile, kind: str, roles: Mapping[str, str]) -> UploadedFile:
    """Return a table whose corrected columns have the names that readers of the kind expect; `LEFT_OUT` drops one."""
    if not roles:
        return file
    chosen = [role for role in roles.values() if role != LEFT_OUT]
    if twice := next((role for role in chosen if chosen.count(role) > 1), ""):
        raise InputError(f"{file.name}: two columns have the role {ROLES[kind][twice]!r}; choose one of them.")
    with spending(Budget(n_bytes=8 * MAX_PREVIEW_BYTES, cells=MAX_CORRECTED_CELLS, values=MAX_CORRECTED_CELLS)):
        parsed = _parse(file)
    names = {column: ROLES[kind][role] for column, role in roles.items() if role != LEFT_OUT}
    taken = {name.casefold() for name in names.values()}
    columns = [column for column in dict.fromkeys(parsed.columns) if column and roles.get(column) != LEFT_OUT]
    header = [names.get(item) or (f"{item} (source)" if item.casefold() in taken else item) for item in columns]
    rows = [["; ".join(record.get(column, ())) for column in columns] for record in parsed.records]
    return UploadedFile(f"{file.name.rpartition('.')[0] or file.name}.csv", csv_text([header, *rows]).encode())


def is_saved(content: bytes) -> bool:
    """Return whether an archive looks like a project that corank saved."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {"project.json", "answers.jsonl"} <= set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return False


def _head(file: UploadedFile) -> UploadedFile:
    """Return the beginning of a long text whose lines stand alone, and other files as they are."""
    content, start = file.content, file.content.lstrip()[:4]
    is_cut = len(content) > _HEAD and start[:1] not in (b"<", b"[", b"P", b"\x1f", b"\xfd", b"(")
    is_cut &= not (start[:1] == b"{" and content[:_HEAD].count(b"\n") < 2)
    end = content.rfind(b"\n", 0, _HEAD) + 1
    if not is_cut or not end:
        return file
    odd, whole = content.count(b'"', 0, end) % 2, end
    while odd and whole > _HEAD // 2:  # inside a quoted cell of several lines
        begin = content.rfind(b"\n", 0, whole - 1) + 1
        odd ^= content.count(b'"', begin, whole) % 2
        whole = begin
    return UploadedFile(file.name, content[: end if odd else whole])


def _parse(file: UploadedFile) -> ParsedFile:
    """Parse a file of any format, such as records, whatever it is for."""
    with tempfile.TemporaryDirectory(prefix="corank-") as folder:
        path = Path(folder, "table.parquet")
        path.write_bytes(file.content)
        try:
            if not file.content.startswith(b"PAR1"):
                return parse_file(replace(load_file(path), name=file.name))
            table = read_table(path)
            columns, rows = table.names, table.rows()
        except InputError as error:
            raise InputError(str(error).replace(str(path), file.name)) from None
    records = [{name: [str(value)] for name, value in row.items() if value is not None} for _, row in rows]
    return ParsedFile("Parquet", records, [place for place, _ in rows], find_columns(columns), header=columns)


def _is_table(parsed: ParsedFile) -> bool:
    return parsed.is_table or parsed.format in _TABLES


def _kind(parsed: ParsedFile, columns: Sequence[str]) -> str:
    """Return the kind of work that a file fits: by votes, query and document, known fields of records, or items."""
    if not _is_table(parsed):
        return "screen"
    if looks_like_votes(columns):
        return "compare"
    if not {"qid", "docid"} - _grading_roles(columns).keys():
        return "grade"
    known = parsed.names.keys() & {"abstract", "authors", "year", "journal", "doi", "pmid"}
    return "screen" if ("title" in parsed.names and known) or "abstract" in parsed.names else "compare"


def _roles(parsed: ParsedFile, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the column that readers of each kind of work take for each role, as far as its name shows it."""
    present = {field: [item for item in names if item in columns] for field, names in parsed.names.items()}
    records = {role: names[0] for role, names in present.items() if role in ROLES["screen"] and names}
    folded = {column.casefold(): column for column in reversed(columns)}
    name = next((folded[item] for item in ("name", "title", "item", "id") if item in folded), columns[0])
    items = {} if looks_like_votes(columns) else {"name": name}
    return {"screen": records, "grade": _grading_roles(columns), "compare": items}


def _grading_roles(columns: Sequence[str]) -> dict[str, str]:
    try:
        roles = ColumnChoice(y=False).roles(columns, "")
    except InputError:  # several columns look alike
        return {}
    result = {"qid": roles.qid, "docid": roles.docid, "y": roles.y, "judge": roles.judge}
    return {role: column for role, column in result.items() if column is not None}
