"""LETOR text: rows from its grammar, damaged, read with all settings of `read_letor`, compared with plain Python."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

import corank
from corank.data.collection import Dataset
from corank.data.durable import compressed, text
from corank.data.io import letor_pieces as pieces
from corank.data.io.letor_reader import read_letor
from corank.data.io.read import detect_format
from corank.data.io.stores import open_store, store_letor
from corank.data.io.write import write_letor
from corank.errors import InputError
from fuzz.format import Format, Wrong, tune
from fuzz.mutations import EDGE_INTEGERS, HARD_NUMBERS, ODD_BYTES, mutate, number
from fuzz.reference import LARGEST_ID, LARGEST_SINGLE, Row, letor_docid, letor_qids, read_number
from fuzz.reference import read_letor as read_slowly

LARGE = 1 << 26
"""Size of a dense table above which it may be rejected; it is then not compared."""

WORDS = [*ODD_BYTES, *(word.encode() for word in HARD_NUMBERS), *(b" %d:" % k for k in EDGE_INTEGERS)]


@dataclass(frozen=True)
class Way:
    """
    A setting of the reader.

    piece, held, chunk: bytes per thread, size from which a text
        stays in its file, and bytes that are read or decompressed at once.
    route: whether the text is one file or two, passes through a store or the writer, or is overwritten after reading.
    """

    dtype: Any = "float64"
    layout: Any = "auto"
    n_features: int | None = None
    piece: int = 1
    held: int = 0
    chunk: int = 7
    jobs: int = 1
    unjudged: float | None = None
    route: str = "file"


WAYS = (
    Way(),
    Way("float32"),
    Way(layout="dense", piece=1 << 20, held=1 << 20, chunk=1 << 20),
    Way("float32", "csr"),
    Way(layout="csr", n_features=5, piece=40),
    Way("float32", "dense", n_features=5, piece=20),
    Way(unjudged=-1.0, jobs=2, piece=8),
    Way(layout="csr", route="two files"),
    Way("float32", route="store"),
    Way(route="writer"),
    Way(layout="csr", route="cut"),
    Way(layout="dense", held=1 << 20, route="overwritten"),
    Way("float32", route="read"),
)


class Letor(Format):
    name = "letor"
    suffix = ".txt"
    share = 3.0
    ways, quick = len(WAYS), 6
    is_text = True
    sample = b"2 qid:7 1:0.5 3:1e-3 #docid = GX1 inc = 1\n\n# note\n0 qid:a 2:0.123456789012345678901\r\n"

    def generate(self, rng: Random) -> bytes:
        return make_text(rng) if rng.random() < 0.4 else mutate(make_text(rng), rng, WORDS, lambda: make_text(rng))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        return check_text(content, content, WAYS[way], folder)


def make_text(rng: Random) -> bytes:
    """Generate a text from the grammar; half of them are valid, apart from hard numbers."""
    fine = rng.random() < 0.5
    ids = _qids(rng, fine) if rng.random() < 0.85 else None
    glue = rng.choice((b" ", b" ", b" ", b"\t", b"  \t"))
    lines = [_line(rng, fine, ids, glue) for _ in range(rng.choice((1, 1, 2, 3, 4, 6, 9)))]
    if rng.random() < 0.1:
        lines *= rng.randrange(1, 8)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice((b"", b" \t", b"\r", b"#", b"# 1 qid:2 3:4", b" #x")))
    end = rng.choice((b"\n", b"\n", b"\n", b"\r\n", b" \n"))
    mark = b"\xef\xbb\xbf" if rng.random() < 0.03 else b""
    return mark + end.join(lines) + (end if rng.random() < 0.7 else b"")


def _qids(rng: Random, fine: bool) -> list[bytes]:
    kind = rng.random()
    if kind < 0.5:
        return [b"%d" % rng.randrange(-3, 40) for _ in range(3)]
    if kind < 0.7:
        return [b"%d" % rng.choice(EDGE_INTEGERS) for _ in range(3)]
    odd = [b"a", b"a:1", b"q:2:3:4", b"\xc3\xa9", b"\xff\xfe", b"-", b"-0", b"007", b"+1", b"1.0", b"qid:1", b"0" * 18,
           b"0" * 19, b"9" * 18, b"-" + b"9" * 18, b"\x0b", b"x" * 40, b"\xd9\xa3"]  # fmt: skip
    return rng.choices(odd if fine else [*odd, b"", b"\0", b"a\0", b"\x1a"], k=3)


def _line(rng: Random, fine: bool, ids: list[bytes] | None, glue: bytes) -> bytes:
    words = [_number(rng, fine)]
    if ids is not None and (fine or rng.random() < 0.97):
        words.append(b"qid:" + rng.choice(ids))
    feature = 0
    for _ in range(rng.choice((0, 1, 2, 2, 3, 5))):
        step = rng.choice((1, 1, 1, 2, 7)) if fine else rng.choice((0, 1, 1, 1, 1, 2, 50, -1))
        feature = rng.choice(EDGE_INTEGERS) if rng.random() < (0.01 if fine else 0.05) else feature + step
        form = rng.choice((b"%d:", b"%d:", b"%d:", b"%03d:", b"%010d:" if fine else b"%011d:"))
        words.append(form % feature + _number(rng, fine))
    line = glue.join(words)
    if rng.random() < 0.4:
        line += rng.choice((b"", b" ")) + b"#" + _comment(rng)
    return line


def _number(rng: Random, fine: bool) -> bytes:
    while True:
        word = number(rng).encode()
        value = read_number(word)
        if not fine or (value is not None and abs(value) < LARGEST_SINGLE):
            return word


def _comment(rng: Random) -> bytes:
    form = rng.choice(
        (b"docid = %s", b"docid=%s inc = 1", b" %s", b"%s 1:2 qid:3", b"docid %s", b" docid\t=\t%s", b"%s#")
    )
    return form % rng.choice((b"GX1", b"", b"\xc3\xa9", b"\xff", b"a:b", b"\0", b"\x0b", b"x" * 30, b"="))


def check_text(content: bytes, plain: bytes | None, way: Way, folder: Path) -> bool:
    """
    Read a file of LETOR text and compare it with the reference.

    content: the file.
    plain: its decompressed text; None if it cannot be decompressed and must be rejected.
    Returns: whether it was accepted.
    """
    tune(pieces, PIECE=way.piece)
    tune(text, MAX_HELD_BYTES=way.held, PIECE=way.chunk)
    tune(compressed, PIECE=way.chunk)
    parts = [content]
    if way.route == "two files" and 0 < (middle := content.find(b"\n", len(content) // 2) + 1) < len(content):
        parts = [content[:middle], content[middle:]]
    paths = [folder / f"{k}.txt" for k in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        path.unlink(missing_ok=True)
        path.write_bytes(part)
    limit = LARGEST_SINGLE if way.dtype == "float32" else float("inf")
    rows = None
    if plain is not None:
        rows = read_slowly(parts if plain is content else [plain], way.n_features or LARGEST_ID, limit)
    try:
        found = _read(paths, way, folder)
    except InputError as error:
        if rows is not None and not _is_large(rows, way):
            raise Wrong("refused", error) from error
        return False
    if found is None:
        return True
    if rows is None:
        raise Wrong("accepted", "expected a refusal")
    if way.route == "cut":
        with paths[0].open("r+b") as file:
            file.truncate(len(content) // 2)
    elif way.route == "overwritten":
        with paths[0].open("r+b") as file:
            file.write(b"x" * len(content))
    _compare(found, rows, way)
    # empty comments are not written, so that a text with only empty comments returns none
    if way.route == "writer" and found.X.shape[1] and (found.comments is None or any(found.comments)):
        again = folder / "again.txt"
        write_letor(again, found.X, found.y, found.qid, found.comments, overwrite=True)
        _compare(read_letor(again, dtype="float64", layout=_layout(found), n_features=found.X.shape[1]), rows, way)
    return True


def _read(paths: list[Path], way: Way, folder: Path) -> Dataset | None:
    """Read the files with corank; None if they are read as a table."""
    if way.route == "read":
        rows = corank.read(paths, unjudged=way.unjudged, dtype=way.dtype, layout=way.layout, judges="keep")
        return rows if detect_format(paths[0]) == "text" else None
    options = {"dtype": way.dtype, "layout": way.layout, "n_features": way.n_features, "unjudged": way.unjudged}
    if way.route != "store":
        return read_letor(paths, **options, n_jobs=way.jobs)
    shutil.rmtree(folder / "store", ignore_errors=True)
    try:
        store_letor(folder / "store", list(paths), **options, n_jobs=way.jobs)
    except InputError:
        if (folder / "store").exists():
            raise Wrong("a store of text that was refused") from None
        raise
    return open_store(folder / "store")


def _layout(found: Dataset) -> Any:
    return "csr" if sparse.issparse(found.X) else "dense"


def _width(rows: list[Row], way: Way) -> int:
    return way.n_features or max(max(row.values, default=0) for row in rows)


def _is_large(rows: list[Row], way: Way) -> bool:
    size = len(rows) * _width(rows, way) * int(np.dtype(way.dtype).itemsize)
    return way.layout != "csr" and size > LARGE


def _compare(found: Dataset, rows: list[Row], way: Way) -> None:
    y = np.array([row.label for row in rows])
    y[y == way.unjudged] = np.nan
    if found.y.tobytes() != y.tobytes():
        raise Wrong("labels", f"{found.y.tolist()} for {y.tolist()}")
    _compare_values(found.X, rows, way)
    qid, found_qid = letor_qids(rows), found.qid if found.qid is None else found.qid.tolist()
    if found_qid != qid:
        raise Wrong("query ids", f"{found_qid} for {qid}")
    comments = ["" if row.comment is None else row.comment.decode(errors="surrogateescape") for row in rows]
    docids = [letor_docid(row.comment) for row in rows]
    if all(row.comment is None for row in rows):
        comments = docids = None  # type: ignore[assignment]
    try:
        found_docids, found_comments = found.docids, found.comments
    except InputError:
        if way.route in ("cut", "overwritten"):
            return
        raise
    if (found_docids if found_docids is None else found_docids.tolist()) != docids:
        raise Wrong("documents", f"{found_docids} for {docids}")
    if way.route != "store" and (found_comments if found_comments is None else found_comments.tolist()) != comments:
        raise Wrong("comments", f"{found_comments} for {comments}")


def _compare_values(X: Any, rows: list[Row], way: Way) -> None:
    shape = (len(rows), _width(rows, way))
    if X.shape != shape or X.dtype != way.dtype:
        raise Wrong("shape", f"{X.shape} {X.dtype} for {shape} {way.dtype}")
    if sparse.issparse(X):
        stops = np.cumsum([0] + [len(row.values) for row in rows])
        indices = [feature - 1 for row in rows for feature in row.values]
        if X.indptr.tolist() != stops.tolist() or X.indices.tolist() != indices:
            raise Wrong("places of values", f"{X.indptr} {X.indices} for {stops} {indices}")
        values = np.array([value for row in rows for value in row.values.values()]).astype(way.dtype)
        X = X.data
    else:
        if X.nbytes > LARGE:
            return
        values = np.zeros(shape)
        for k, row in enumerate(rows):
            for feature, value in row.values.items():
                values[k, feature - 1] = value
        values = values.astype(way.dtype)
    if X.tobytes() != values.tobytes():
        raise Wrong("values", f"{X.tolist()} for {values.tolist()}")
