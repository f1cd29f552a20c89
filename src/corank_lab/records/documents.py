"""
Documents of a lawsuit: e-mails (.eml), mailboxes (.mbox), load files (.dat, .opt) and folders of e-mails and texts.

All become tables with the columns of e-mail exports. Attachments are documents of their own, in the family of their
e-mail; of those that are not text, the name alone is read. Messages of a conversation share a thread.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from corank.data import open_regular
from corank.errors import InputError
from corank_lab.records.parsed import LoadedFile, ParsedFile, decode, load_file
from corank_lab.records.tables import NumberedRow, parse_rows, read_rows

COLUMNS = (
    "Control Number", "Subject", "Body", "Date sent", "From", "To", "Custodian", "Family", "Thread", "Attachments",
    "File",
)  # fmt: skip
SUFFIXES = (".eml", ".mbox", ".txt")
"""Files of a folder that are read."""
MAX_BYTES = 2_000_000_000
"""Largest sum of the sizes of the files of a folder, and of the values of its table."""
MAX_HEADER, MAX_CONTENT_HEADER = 1 << 15, 1 << 11
"""Characters that are read of one header: Python parses some in a time that grows with the square of their length."""

_HEADER = re.compile(
    rb"(?i)(?:from|to|subject|date|message-id|received|return-path|mime-version|delivered-to|reply-to|x-[\w-]+):[ \t]"
)
_FROM = re.compile(rb"^From [^\n]*\d{4}\r?$", re.MULTILINE)
_REPLY = re.compile(r"^(?:\s*(?:re|aw|fw|fwd|wg)\s*(?:\[\d+\])?:)+\s*", re.IGNORECASE)
_QUOTE, _SEPARATOR, _NEWLINE = "\u00fe", "\x14", "\u00ae"
"""Marks of a Concordance load file: around a value, between values, and for a line break inside one."""

_BREAK = r"\r?\n|\r"
_SPELT = str.maketrans({_QUOTE: "th", _SEPARATOR: " ", _NEWLINE: "(R)"})
"""What stands for a mark inside a value of a written load file, which has no other way to keep it."""

LOAD_FORMAT = "Concordance load file"
PAGES, IMAGES = "Page Count", "Images"
"""Columns of what an Opticon file lists for a document."""

Document = dict[str, str]


def is_mail(content: bytes) -> bool:
    """Return whether a file begins as a mailbox or an e-mail: with two known headers at least."""
    if content.startswith(b"From "):
        if not _FROM.match(content):
            return False
        content = content[content.find(b"\n") + 1 :][:20_000]
    lines = content[:20_000].lstrip(b"\xef\xbb\xbf").splitlines()
    head = lines[: next((i for i, line in enumerate(lines) if not line.strip()), len(lines))]
    known = sum(bool(_HEADER.match(line)) for line in head)
    return known >= 2 and all(re.match(rb"[!-9;-~]+:|[ \t]", line) for line in head)


def parse_mail(content: bytes, name: str) -> ParsedFile:
    """Parse an e-mail or a mailbox."""
    messages = enumerate(_messages(content), 1)
    documents = [document for number, item in messages for document in _documents(item, f"{name}#{number}", "")]
    return _table(documents, name, "mailbox" if content.startswith(b"From ") else "e-mail")


def is_load_file(text: str) -> bool:
    """Return whether a text is a Concordance load file."""
    return text.startswith(_QUOTE) and f"{_QUOTE}{_SEPARATOR}{_QUOTE}" in text[:20_000]


def parse_load_file(text: str, name: str) -> ParsedFile:
    """Parse a Concordance load file: a header, then one document per line that begins with a quote."""
    rows: list[NumberedRow] = []
    number = 1
    for line in text.split(f"\n{_QUOTE}"):
        cells = [cell.removeprefix(_QUOTE).removesuffix(_QUOTE) for cell in line.rstrip("\r\n").split(_SEPARATOR)]
        rows.append((number, [cell.replace(_NEWLINE, "\n") for cell in cells]))
        number += line.count("\n") + 1
    return parse_rows(rows, name, LOAD_FORMAT, "line")


def load_file_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows, the header first, as a Concordance load file."""
    lines = (
        _SEPARATOR.join(f"{_QUOTE}{re.sub(_BREAK, _NEWLINE, str(cell).translate(_SPELT))}{_QUOTE}" for cell in row)
        for row in rows
    )
    return "".join(f"{line}\r\n" for line in lines)


def add_images(parsed: ParsedFile, path: str | os.PathLike[str]) -> ParsedFile:
    """
    Add the number of pages and the images of each document, if an Opticon file stands beside its load file.

    The Opticon file has the name of the load file and the suffix .opt. Its paths of images are kept as text, and never
    opened.
    """
    file = next((file for suffix in (".opt", ".OPT") if (file := Path(path).with_suffix(suffix)).is_file()), None)
    if file is None:
        return parsed
    if file.is_symlink():
        raise InputError(f"{file} is a link to another file; copy the file there, or remove the link.")
    documents = {rows[0][0]: rows for rows in _images(decode(load_file(file).content)[0], os.fspath(file))}
    n_matched = 0
    for record in parsed.records:
        ids = (value.strip() for column in parsed.names.get("id", ()) for value in record.get(column, ()))
        rows = next((documents[id] for id in ids if id in documents), None)
        if rows is not None:
            n_matched += 1
            listed = rows[0][6].strip()  # a file of several pages is one image
            record.setdefault(PAGES, [listed if listed.isdecimal() else str(len(rows))])
            record.setdefault(IMAGES, [_comma_separated(rows)])
    remark = f"{file.name} lists images of {len(documents)} documents; {n_matched} of them are in this file."
    header = tuple(dict.fromkeys((*parsed.header, PAGES, IMAGES)))
    return replace(parsed, header=header, remarks=(*parsed.remarks, remark))


def _images(text: str, name: str) -> Iterator[list[list[str]]]:
    """Yield the rows of each document of an Opticon file: image, volume, path, Y at a document, folder, box, pages."""
    rows: list[list[str]] = []
    lines, error = read_rows(text, ",", name, strict=False)
    if error:
        raise InputError(f"{name}, line {error[0]}: {error[1]}; write values that are separated by commas.")
    for line, row in lines:
        if not any(row):
            continue
        if len(row) < 4 or not row[0].strip() or row[3].strip().upper() not in ("", "Y"):
            raise InputError(
                f"{name}, line {line}: expected an image, its volume and path, and Y or nothing, separated by commas; "
                f"found {','.join(row)[:80]!r}. Correct the line, or give the file another name."
            )
        if row[3].strip() and rows:
            yield rows
            rows = []
        rows.append([row[0].strip(), *row[1:7], *[""] * (7 - len(row))])
    if rows:
        yield rows


def _comma_separated(rows: Iterable[Sequence[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().strip("\n")


def image_file_text(images: Iterable[str]) -> str:
    """Return the values of `IMAGES` as an Opticon file."""
    documents = [rows for text in images for rows in _images(text, IMAGES)]
    if not documents:
        raise InputError(
            "no record has images, so that no .opt file can be written; read a .dat file with an .opt file of the same "
            "name beside it, or write .dat."
        )
    return _comma_separated(row for rows in documents for row in rows).replace("\n", "\r\n") + "\r\n"


def load_folder(path: str | os.PathLike[str]) -> LoadedFile:
    """Read the e-mails and texts of a folder as one table; folders directly inside are custodians."""
    folder, documents, size = Path(path), [], 0
    root = folder.resolve()
    files = sorted(item for item in folder.rglob("*") if item.is_file() and item.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(
            f"{folder} is a folder without {', '.join(SUFFIXES)} files; pass a folder that contains some, or a file."
        )
    for file in files:
        if not file.resolve().is_relative_to(root):
            raise InputError(f"{file} is a link to a file outside the folder; copy the file there, or remove the link.")
        size += file.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{folder} holds more than {MAX_BYTES / 1e9:g} GB of text; pass smaller folders.")
        place = file.relative_to(folder)
        with open_regular(file) as handle:
            content = handle.read()
        custodian = place.parts[0] if len(place.parts) > 1 else ""
        if file.suffix.lower() == ".txt":
            documents.append(_text(content, place.as_posix(), custodian))
            continue
        messages = _messages(content)
        for number, message in enumerate(messages, 1):
            known_as = place.as_posix() + (f"#{number}" if len(messages) > 1 else "")
            documents += _documents(message, known_as, custodian)
    if sum(len(value) for document in documents for value in document.values()) > MAX_BYTES:
        raise InputError(f"{folder} gives a table of more than {MAX_BYTES / 1e9:g} GB; pass smaller folders.")
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, COLUMNS, restval="")
    table.writeheader()
    table.writerows(documents)
    content = buffer.getvalue().encode("utf-8", "replace")
    return LoadedFile(os.fspath(path), content, hashlib.sha256(content).hexdigest())


def _table(documents: list[Document], name: str, format: str) -> ParsedFile:
    rows = [[*COLUMNS], *([document.get(column, "") for column in COLUMNS] for document in documents)]
    return parse_rows(list(enumerate(rows)), name, format, "document")


def _messages(content: bytes) -> list[bytes]:
    """Split a mailbox at its lines "From ..."; anything else is one message."""
    if not content.startswith(b"From "):
        return [content]
    starts = [*(match.start() for match in _FROM.finditer(content)), len(content)]
    parts = (content[begin:end].partition(b"\n")[2] for begin, end in pairwise(starts))
    return [re.sub(rb"(?m)^>(>*From )", rb"\1", part) for part in parts]


def _documents(content: bytes, place: str, custodian: str) -> list[Document]:
    """Return an e-mail and its attachments."""
    try:
        return list(_parts(content, place, custodian))
    except RecursionError:
        raise InputError(
            f"{place} has parts or comments of headers inside each other that are too deep to be read; remove it."
        ) from None


class _PlainHeaders(policy.EmailPolicy):
    """Rules of Python for e-mails, but long headers are cut, visibly, and only those of the content are parsed."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        most = MAX_CONTENT_HEADER if name.lower().startswith("content-") else MAX_HEADER
        return name, value if len(value) <= most else f"{value[:most]} ..."

    def header_fetch_parse(self, name: str, value: str) -> Any:
        if name.lower().startswith("content-"):
            try:
                return super().header_fetch_parse(name, value)
            except RecursionError:
                raise
            except Exception:  # the parser of Python fails in many ways
                return super().header_fetch_parse(name, "")
        text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        try:  # Python parses addresses in a time that grows with the square of their length
            return str(make_header(decode_header(text)))
        except (HeaderParseError, LookupError, ValueError):
            return text


def _parts(content: bytes, place: str, custodian: str) -> Iterator[Document]:
    message = BytesParser(policy=_PlainHeaders()).parsebytes(content)
    if not isinstance(message, EmailMessage):
        raise InputError(f"{place} is not an e-mail; expected headers such as From and Subject.")
    subject = _header(message, "Subject")
    id = _header(message, "Message-ID").strip("<> ") or place
    attached = list(message.iter_attachments()) if message.is_multipart() else []
    names = [part.get_filename() or f"attachment {number}" for number, part in enumerate(attached, 1)]
    first = (_header(message, "References") or _header(message, "In-Reply-To")).split()
    start = _REPLY.sub("", subject).casefold() if _REPLY.match(subject) else id
    email: Document = {
        "Control Number": id, "Subject": subject or "(no subject)", "Body": _body(message),
        "Date sent": _date(message), "From": _header(message, "From"), "To": _header(message, "To"),
        "Custodian": custodian, "Family": id, "Attachments": "; ".join(names), "File": place,
        "Thread": first[0].strip("<>") if first else start,
    }  # fmt: skip
    yield email
    for number, (part, name) in enumerate(zip(attached, names, strict=True), 1):
        text = _content(part) if part.get_content_maintype() == "text" else ""
        changed = {"Control Number": f"{id}.{number}", "Subject": name, "Body": text, "Attachments": ""}
        yield {**email, **changed}


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split())


def _date(message: EmailMessage) -> str:
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain", "html"))
    text = "" if part is None else _content(part)
    if part is not None and part.get_content_subtype() == "html":
        text = re.sub(r"<[^<>]*>", " ", re.sub(r"(?is)<(style|script)\b.*?(?:</\1>|\Z)", " ", text))
    return text.strip()


def _content(part: MIMEPart) -> str:
    """Return the text of a part, also if it names an unknown encoding."""
    try:
        if codecs.lookup(part.get_content_charset("ascii")).name == "punycode":  # no text has it, and it is slow
            raise LookupError
        return str(part.get_content())
    except (LookupError, KeyError, ValueError, TypeError):
        payload = part.get_payload(decode=True)
        return decode(payload)[0] if isinstance(payload, bytes) else ""


def _text(content: bytes, place: str, custodian: str) -> Document:
    """Return a text file; its first line is the subject."""
    text = decode(content)[0].strip()
    first = text.splitlines()[0].strip()[:120] if text else ""
    return {
        "Control Number": place, "Subject": first or place, "Body": text, "Custodian": custodian, "Family": place,
        "Thread": place, "File": place,
    }  # fmt: skip
