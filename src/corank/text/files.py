"""
Files of documents, links and queries, and corpora in files.

Documents are read from JSON lines, tables and folders, one at a time. A corpus is stored as safetensors, whose arrays
are memory-mapped and read only when they are used. Because kernels use their indices, the arrays are checked when a
file is opened, in one pass.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from corank.core.text.postings import Postings
from corank.data.durable.atomic import atomic_file
from corank.data.durable.compressed import PIECE, STANDARD, SUFFIXES
from corank.data.durable.files import map_bytes, require_regular, require_unchanged
from corank.data.durable.text import TextFile, open_text
from corank.errors import InputError, reason
from corank.text.corpus import NOT_IN_NAMES, Corpus
from corank.text.words import Words

FORMAT = 1

_TYPES: dict[str, tuple[str, Any]] = {
    "starts": ("U64", np.uint64), "docs": ("U32", np.uint32), "counts": ("U32", np.uint32),
    "lengths": ("I64", np.int64), "id_bytes": ("U8", np.uint8), "id_stops": ("I64", np.int64),
    "term_bytes": ("U8", np.uint8), "term_stops": ("I64", np.int64),
}  # fmt: skip


def save_corpus(corpus: Corpus, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """
    Write a corpus to a file atomically.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "metals.index")
    >>> save_corpus(Corpus.of(["tin is soft", "iron rusts"], language=None), path)
    >>> open_corpus(path)
    <Corpus: 2 documents, 4 terms, 4 postings>
    """
    tensors: dict[str, NDArray[Any]] = {
        "starts": corpus.postings.starts, "docs": corpus.postings.docs, "counts": corpus.postings.values,
        "lengths": corpus.lengths,
    }  # fmt: skip
    tensors["id_bytes"], tensors["id_stops"] = _packed(corpus.ids)
    tensors["term_bytes"], tensors["term_stops"] = _packed(corpus.terms)
    metadata = {"format": FORMAT, "language": corpus.words.language, "stop_words": corpus.words.stop_words}
    with atomic_file(path, overwrite=overwrite) as scratch:
        try:
            save_file(tensors, scratch, metadata={"corank index": json.dumps(metadata)})
        except SafetensorError as error:  # raised on a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); no file was made.") from error


def open_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Open a corpus written by `save_corpus`; its postings are memory-mapped."""
    file = Path(path)
    require_regular(file)
    if not file.exists():
        raise InputError(f"{path} does not exist; make an index with: corank index DOCUMENTS -o {path}.")
    words = _words(file)
    arrays = _mapped(file)
    require_unchanged(*arrays.values())
    ids, terms = (_unpacked(arrays[f"{name}_bytes"], arrays[f"{name}_stops"], path) for name in ("id", "term"))
    postings = Postings(arrays["starts"], arrays["docs"], arrays["counts"])
    fault = _fault(postings, arrays["lengths"], ids, terms)
    if fault is not None:
        raise _damaged(path, fault)
    return Corpus(ids, terms, postings, arrays["lengths"], words)


def _words(path: Path) -> Words:
    try:
        with safe_open(path, "numpy") as file:
            metadata = json.loads((file.metadata() or {}).get("corank index", "null"))
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        raise InputError(f"{path} is not an index ({reason(error)}); make one with: corank index.") from error
    if not isinstance(metadata, dict):
        raise InputError(f"{path} is not an index; make one with: corank index.")
    if metadata.get("format") != FORMAT:
        raise InputError(f"{path} is an index of another format; upgrade corank, or make it again.")
    language, stop_words = metadata.get("language"), metadata.get("stop_words")
    are_words = isinstance(stop_words, list) and all(isinstance(word, str) for word in stop_words)
    if not are_words or not isinstance(language, str | None):
        raise _damaged(path, "it has no valid tokeniser")
    return Words.of(language, stop_words)


def _mapped(path: Path) -> dict[str, NDArray[Any]]:
    """Return the memory-mapped arrays of a file whose header safetensors has validated."""
    content = map_bytes(path)
    try:
        header = 8 + int(content[:8].view("<u8")[0])
        entries = json.loads(content[8:header].tobytes())
        places = {
            name: (item["dtype"], *item["shape"], *item["data_offsets"])
            for name, item in entries.items()
            if name in _TYPES
        }
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged(path, "it was changed while it was opened") from None
    arrays = {}
    for name, (code, kind) in _TYPES.items():
        result, *numbers = places.get(name, ("", 0))
        if result != code or len(numbers) != 3:
            raise _damaged(path, f"it lacks {name}")
        _, begin, end = numbers
        part = content[header + begin : header + end]
        # safetensors aligns its arrays; other writers may not
        arrays[name] = (part if part.ctypes.data % 8 == 0 else part.copy()).view(kind)
    return arrays


def _fault(
    postings: Postings, lengths: NDArray[np.int64], ids: NDArray[np.object_], terms: NDArray[np.object_]
) -> str | None:
    starts, docs, counts = postings
    if len(starts) != len(terms) + 1 or len(docs) != len(counts) or len(lengths) != len(ids):
        return "its arrays differ in length"
    if starts[0] != 0 or starts[-1] != len(docs) or (starts[1:] < starts[:-1]).any():
        return "the starts of its words are not ascending"
    if len(docs) and (int(docs.max()) >= len(ids) or counts.min() < 1):
        return "it has postings of documents that do not exist"
    falls = np.flatnonzero(docs[1:] <= docs[:-1]) + 1
    if not np.isin(falls, starts).all():
        return "the documents of a word are not ascending"
    if not np.array_equal(np.bincount(docs, counts, minlength=len(ids)), lengths):
        return "the lengths of its documents differ from their word counts"
    if not all(map(str.strip, ids.tolist())) or NOT_IN_NAMES.search("".join(ids.tolist())):
        return "an id is empty, or has control characters or line breaks"
    if len(set(ids.tolist())) < len(ids) or len(set(terms.tolist())) < len(terms):
        return "two documents or words are equal"
    return None


def _packed(texts: NDArray[np.object_]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    parts = [text.encode(errors="surrogatepass") for text in texts.tolist()]
    return np.frombuffer(b"".join(parts), dtype=np.uint8), np.cumsum([len(part) for part in parts], dtype=np.int64)


def _unpacked(content: NDArray[np.uint8], stops: NDArray[np.int64], path: object) -> NDArray[np.object_]:
    text, ends = content.tobytes(), [0, *stops.tolist()]
    if ends[-1] != len(text) or any(a > b for a, b in pairwise(ends)):
        raise _damaged(path, "the ends of its names are not ascending")
    texts = np.empty(len(stops), dtype=object)
    try:
        texts[:] = [text[a:b].decode(errors="surrogatepass") for a, b in pairwise(ends)]
    except UnicodeDecodeError:
        raise _damaged(path, "its names are not UTF-8") from None
    return texts


def _damaged(path: object, fault: str) -> InputError:
    return InputError(f"{path} is damaged: {fault}; make the index again.")


TEXT_KEYS = ("title", "text", "contents", "abstract", "body")
"""Keys of the text of a JSON object, in this order."""

ID_KEYS = ("id", "_id", "docid", "doc_id")
"""Keys of the id of a JSON object."""


def read_corpus(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    language: str | None = "english",
    stop_words: str | Iterable[str] | None = "english",
) -> Corpus:
    """Count the words of documents in files, without keeping the texts."""
    ids: list[str] = []
    return Corpus.of(_texts(paths, ids), ids, language=language, stop_words=stop_words)


def add_documents(corpus: Corpus, paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Corpus:
    """Append the documents of files to a corpus."""
    ids: list[str] = []
    return corpus.add(_texts(paths, ids), ids)


def read_pairs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Read links: a table of two tab-separated columns."""
    source, pairs = open_text(path), []
    for number, line in _lines(source):
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 2:
            raise InputError(
                f"{source}, line {number}: {len(cells)} columns; write two, separated by a tab, one link per line."
            )
        pairs.append((cells[0], cells[1]))
    return pairs


def read_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read texts with ids, such as queries."""
    texts: dict[str, str] = {}
    for name, text in read_documents(path):
        if name in texts:
            raise InputError(f"{path} has two texts with the id {name!r}; use distinct ids.")
        texts[name] = text
    return texts


def read_documents(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield documents one by one."""
    for name, fields in read_document_fields(path):
        yield name, "\n".join(fields.values())


def read_document_fields(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield documents one by one, with titles and texts apart."""
    file = Path(path)
    if file.is_dir():
        yield from _of_folder(file)
        return
    name = file.name
    while name.endswith(SUFFIXES):
        name = name.rpartition(".")[0]
    source = open_text(path)
    is_json = name.endswith((".jsonl", ".json", ".ndjson"))
    if name == STANDARD:  # standard input has no suffix
        is_json = source.first_line().lstrip().startswith(b"{")
    parse = _of_json if is_json else _of_table
    for number, line in _lines(source):
        yield parse(line, f"{source}, line {number}")


def _texts(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], ids: list[str]) -> Iterator[str]:
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        for name, text in read_documents(path):
            ids.append(name)
            yield text


def _of_folder(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() == ".txt" and file.is_file())
    if not files:
        raise InputError(f"{folder} contains no .txt file; pass a folder of texts, a .jsonl file or a table.")
    for file in files:
        name = file.relative_to(folder).with_suffix("").as_posix()
        yield name, {"text": _decoded(file.read_bytes(), str(file))}


def _of_json(line: str, where: str) -> tuple[str, dict[str, str]]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected one JSON object; write one document per line.")
    name = next((entry[key] for key in ID_KEYS if key in entry), None)
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise InputError(f"{where}: the document has no id; give it one, as text or a whole number.")
    parts = {key: entry[key] for key in TEXT_KEYS if entry.get(key) is not None}
    if not all(isinstance(part, str) for part in parts.values()):
        raise InputError(f"{where}: one of {', '.join(TEXT_KEYS)} is not a string; write each as one string.")
    if not parts:
        raise InputError(f"{where}: the document has no text; add one of the keys {', '.join(TEXT_KEYS)}.")
    return str(name), parts


def _of_table(line: str, where: str) -> tuple[str, dict[str, str]]:
    name, tab, text = line.partition("\t")
    if not tab:
        raise InputError(f"{where}: expected an id, a tab and a text; or pass a .jsonl file or a folder.")
    return name, {"text": text}


def _lines(source: TextFile) -> Iterator[tuple[int, str]]:
    """Yield lines that are not empty, and their numbers from 1."""
    rest, number = b"", 0
    for begin in range(0, source.size, PIECE):
        *lines, rest = (rest + source.read(begin, min(begin + PIECE, source.size)).tobytes()).split(b"\n")
        for line in lines:
            number += 1
            if line.strip():
                yield number, _decoded(line, f"{source}, line {number}").rstrip("\r")
    if rest.strip():
        yield number + 1, _decoded(rest, f"{source}, line {number + 1}").rstrip("\r")


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start + 1}; save it as UTF-8.") from None
