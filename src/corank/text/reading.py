"""Documents, links and queries from files, read as they are needed: JSON lines, tables, and folders of texts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from corank.data.formats.compressed import PIECE, STANDARD, SUFFIXES
from corank.data.formats.text import TextFile, open_text
from corank.errors import InputError
from corank.text.corpus import Corpus

TEXT_KEYS = ("title", "text", "contents", "abstract", "body")
"""What of a JSON object is text, in this order."""

ID_KEYS = ("id", "_id", "docid", "doc_id")
"""What a JSON object calls itself by."""


def read_corpus(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    language: str | None = "english",
    stop_words: str | Iterable[str] | None = "english",
) -> Corpus:
    """
    Count the words of documents in files, without keeping the texts.

    Parameters
    ----------
    paths : path, or several
        JSON lines (``.jsonl``, an object a line, with ``id`` and any of ``title``, ``text``, ``contents``,
        ``abstract``, ``body``), tables (an id, a tab, a text), or folders, whose ``.txt`` (or ``.TXT``) files are
        documents, called as they are without that ending. Files may be packed (``.gz``, ``.xz``, ``.zst``); "-" is
        standard input.
    language, stop_words
        As in `Corpus.of`.

    Returns
    -------
    Corpus
        The documents.
    """
    ids: list[str] = []
    return Corpus.of(_texts(paths, ids), ids, language=language, stop_words=stop_words)


def add_documents(corpus: Corpus, paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Corpus:
    """
    Put the documents of files behind those of a corpus.

    Parameters
    ----------
    corpus : Corpus
        Documents that are there already.
    paths : path, or several
        As in `read_corpus`.

    Returns
    -------
    Corpus
        All documents.
    """
    ids: list[str] = []
    return corpus.add(_texts(paths, ids), ids)


def read_pairs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """
    Read links: a table of two columns, parted by tabs.

    Parameters
    ----------
    path : path
        The file; lines that begin with # are passed over.

    Returns
    -------
    list of pairs of str
        What the two documents of each link, or a query and its document, are called.
    """
    source, found = open_text(path), []
    for at, line in _lines(source):
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 2:
            raise InputError(f"{source}, line {at}: {len(cells)} columns; write two, parted by a tab, one link a line.")
        found.append((cells[0], cells[1]))
    return found


def read_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """
    Read texts that are called by ids, such as queries.

    Parameters
    ----------
    path : path
        One file or folder, as in `read_corpus`.

    Returns
    -------
    dict of str to str
        Text by id.
    """
    found: dict[str, str] = {}
    for name, text in read_documents(path):
        if name in found:
            raise InputError(f"{path} calls two texts {name!r}; call each by a name of its own.")
        found[name] = text
    return found


def read_documents(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """
    Yield documents one by one.

    Parameters
    ----------
    path : path
        One file or folder, as in `read_corpus`.

    Yields
    ------
    id, text : str
        A document.
    """
    place = Path(path)
    if place.is_dir():
        yield from _of_folder(place)
        return
    name = place.name
    while name.endswith(SUFFIXES):
        name = name.rpartition(".")[0]
    source = open_text(path)
    is_json = name.endswith((".jsonl", ".json", ".ndjson"))
    if name == STANDARD:  # which has no name to tell it by
        is_json = source.first_line().lstrip().startswith(b"{")
    parse = _of_json if is_json else _of_table
    for at, line in _lines(source):
        yield parse(line, f"{source}, line {at}")


def _texts(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], ids: list[str]) -> Iterator[str]:
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        for name, text in read_documents(path):
            ids.append(name)
            yield text


def _of_folder(place: Path) -> Iterator[tuple[str, str]]:
    files = sorted(file for file in place.rglob("*") if file.suffix.lower() == ".txt" and file.is_file())
    if not files:
        raise InputError(f"{place} holds no .txt file; name a folder of texts, a .jsonl file or a table.")
    for file in files:
        name = file.relative_to(place).with_suffix("").as_posix()
        yield name, _decoded(file.read_bytes(), str(file))


def _of_json(line: str, where: str) -> tuple[str, str]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected one JSON object; write one document a line.")
    name = next((entry[key] for key in ID_KEYS if key in entry), None)
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise InputError(f"{where}: the document has no id; give it one, as text or a whole number.")
    parts = [entry[key] for key in TEXT_KEYS if entry.get(key) is not None]
    if not all(isinstance(part, str) for part in parts):
        raise InputError(f"{where}: one of {', '.join(TEXT_KEYS)} is no text; write each as one string.")
    if not parts:
        raise InputError(f"{where}: the document has no text; call it one of {', '.join(TEXT_KEYS)}.")
    return str(name), "\n".join(parts)


def _of_table(line: str, where: str) -> tuple[str, str]:
    name, tab, text = line.partition("\t")
    if not tab:
        raise InputError(f"{where}: expected an id, a tab and a text; or name a .jsonl file or a folder.")
    return name, text


def _lines(source: TextFile) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, and their numbers from 1."""
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
