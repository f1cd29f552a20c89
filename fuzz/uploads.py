"""
Uploads of the judging server, plain files and archives: valid, damaged, nested, or much larger than they look.

The first line of an input is the kind of work and the name of the file. What is accepted becomes the payload of a
project, which must be JSON, within the budget of the server.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import warnings
import zipfile
from pathlib import Path
from random import Random

from corank.data.durable.compressed import Budget, spending
from corank_lab.pages.app import KINDS
from corank_lab.pages.uploads import UploadedFile, file_name, sort_upload
from fuzz.format import Format, Wrong
from fuzz.judgements import Judgements
from fuzz.mutations import ODD_BYTES, mutate
from fuzz.records import RecordsFile
from fuzz.records import formats as records
from fuzz.tables import WORDS, TextTable
from fuzz.tables import formats as tables

LIMIT = 1 << 20
"""Bytes, and a tenth of it cells and values, that an upload may take."""

IMAGE = b"\x89PNG\r\n\x1a\n"
NAMES = ["x", "../../x", "C:\\x", "é", "\x1b[31m", "a" * 300, ".x", "__MACOSX/x", "/", "x.", "\u2028", "x/y/../z"]
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


class Uploads(Format):
    """Files that are sent as they are, or compressed."""

    name, suffix = "uploads", ".upload"
    sample = b"compare x.csv\nname\na\nb\n"

    def __init__(self) -> None:
        self._sources: list[Format] = [
            *(form for form in tables() if isinstance(form, TextTable) and form.name.startswith("items")),
            *records(),
        ]

    def generate(self, rng: Random) -> bytes:
        kind, suffix, content = self._file(rng)
        if rng.random() < 0.2:
            content, suffix = gzip.compress(content, 1, mtime=0), f"{suffix}.gz"
        if rng.random() < 0.1:
            content = mutate(content, rng, WORDS)
        return _input(rng, kind, suffix, content)

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        head, _, body = content.partition(b"\n")
        kind, _, name = head.decode("utf-8", "replace").partition(" ")
        before = set(os.listdir(folder))
        try:
            with spending(Budget(n_bytes=LIMIT, cells=LIMIT // 10, values=LIMIT // 10)):
                upload = sort_upload([UploadedFile(file_name(name), body)])
                created = KINDS.get(kind, KINDS["screen"]).create(upload)
        finally:
            if set(os.listdir(folder)) != before:
                raise Wrong("files left behind", os.listdir(folder))
        json.dumps([created.payload, created.settings, created.answers]).encode()
        if (
            sum(len(file.content) for file in upload.tables) + sum(len(one) for _, one in upload.images.values())
            > LIMIT
        ):
            raise Wrong("more than the budget")
        if any(set("/\\") & set(name) for name in (*upload.images, *(file.name for file in upload.tables))):
            raise Wrong("a path as a name", list(upload.images))
        return True

    def _file(self, rng: Random) -> tuple[str, str, bytes]:
        """Return the kind of work, the suffix and the content of a file."""
        if rng.random() < 0.2:
            suffix, _, content = Judgements().generate(rng).partition(b"\n")
            return "grade", suffix.decode("latin-1"), content
        form = rng.choice(self._sources)
        return "screen" if isinstance(form, RecordsFile) else "compare", form.suffix, form.generate(rng)


class Archives(Uploads):
    """Archives of files, of images and of archives; some members are long and compress well."""

    name = "archives"

    @property
    def sample(self) -> bytes:  # type: ignore[override]
        return b"compare x.zip\n" + _archive([("x.csv", b"name\na\nb\n")], Random(0))

    def generate(self, rng: Random) -> bytes:
        kind, suffix, content = self._file(rng)
        members = [(rng.choice(NAMES[:6]) + suffix, content)] if rng.random() < 0.95 else []
        while rng.random() < 0.35:
            other = rng.choice((IMAGE + rng.randbytes(9), self._file(rng)[2], _long(rng), b""))
            members.append((rng.choice(NAMES) + rng.choice((".png", suffix, ".zip", "")), other))
        if rng.random() < 0.15:
            members = [(f"{name}.gz", gzip.compress(content, 9, mtime=0)) for name, content in members]
        packed = _archive(members, rng)
        if rng.random() < 0.1:
            packed = _archive([("inner.zip", packed)], rng)
        if rng.random() < 0.35:
            packed = mutate(packed, rng, [*ODD_BYTES, b"PK\x01\x02", b"PK\x05\x06", b"\xff\xff\xff\xff"])
        return _input(rng, kind, ".zip", packed)


def _long(rng: Random) -> bytes:
    """Return up to 3 MB that compress to some kilobytes."""
    piece = rng.choice((b"0", b"[],", b"{}\n", b",", b"a\n", b"<a/>", b'"', b"TY  - JOUR\nTI  - T\nER  -\n\n"))
    head = rng.choice((b"", b"[", b'{"title": [', b"title,abstract\n", b"<records>", b"name\n"))
    return head + piece * (rng.choice((1 << 12, 1 << 19, 3 << 20)) // len(piece))


def _archive(members: list[tuple[str, bytes]], rng: Random) -> bytes:
    out = io.BytesIO()
    method = rng.choice(METHODS)
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")  # two members may have one name
        for name, content in members:
            packing = method if len(content) < LIMIT // 10 else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, packing)
    return out.getvalue()


def _input(rng: Random, kind: str, suffix: str, content: bytes) -> bytes:
    if rng.random() < 0.05:
        kind = rng.choice((*KINDS, "none", ""))
    name = (rng.choice(NAMES) if rng.random() < 0.2 else "x") + suffix
    return f"{kind} {name}".replace("\n", " ").encode("utf-8", "replace") + b"\n" + content
