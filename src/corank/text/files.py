"""
A corpus in a file: safetensors, whose arrays are mapped into memory and not read before a search asks for them.

A file may hold anything, and kernels follow its numbers: they are held against each other when it is opened, in one
pass at the speed of memory or of the disk.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from corank.core.text.postings import Postings
from corank.data.durable.atomic import atomic_file
from corank.errors import InputError, reason
from corank.text.corpus import Corpus
from corank.text.words import Words

FORMAT = 1

_TYPES: dict[str, tuple[str, Any]] = {
    "starts": ("U64", np.uint64), "docs": ("U32", np.uint32), "counts": ("U32", np.uint32),
    "lengths": ("I64", np.int64), "id_bytes": ("U8", np.uint8), "id_stops": ("I64", np.int64),
    "term_bytes": ("U8", np.uint8), "term_stops": ("I64", np.int64),
}  # fmt: skip


def save_corpus(corpus: Corpus, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """
    Write a corpus to a file, which appears whole or not at all.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    path : path
        The file.
    overwrite : bool, default False
        Whether a file that stands at `path` is replaced.

    Examples
    --------
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
    about = {"format": FORMAT, "language": corpus.words.language, "stop_words": corpus.words.stop_words}
    with atomic_file(path, overwrite=overwrite) as scratch:
        try:
            save_file(tensors, scratch, metadata={"corank index": json.dumps(about)})
        except SafetensorError as error:  # what it makes of a full disk
            raise InputError(f"{path} cannot be written ({reason(error)}); nothing was kept.") from error


def open_corpus(path: str | os.PathLike[str]) -> Corpus:
    """
    Open a corpus that `save_corpus` wrote; its postings stay in the file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Corpus
        The documents.
    """
    place = Path(path)
    if place.is_dir():
        raise InputError(f"{path} is a folder; name an index file, such as corank index DOCUMENTS -o FILE writes.")
    if not place.is_file():
        raise InputError(f"there is no index {path}; make one with: corank index DOCUMENTS -o {path}.")
    words = _words(place)
    arrays = _mapped(place)
    ids, terms = (_unpacked(arrays[f"{name}_bytes"], arrays[f"{name}_stops"], path) for name in ("id", "term"))
    postings = Postings(arrays["starts"], arrays["docs"], arrays["counts"])
    fault = _fault(postings, arrays["lengths"], ids, terms)
    if fault is not None:
        raise _damaged(path, fault)
    return Corpus(ids, terms, postings, arrays["lengths"], words)


def _words(place: Path) -> Words:
    try:
        with safe_open(place, "numpy") as file:
            about = json.loads((file.metadata() or {}).get("corank index", "null"))
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        raise InputError(f"{place} is not an index ({reason(error)}); make one with: corank index.") from error
    if not isinstance(about, dict):
        raise InputError(f"{place} is not an index; make one with: corank index.")
    if about.get("format") != FORMAT:
        raise InputError(f"{place} is an index of another format; upgrade corank, or make it again.")
    language, stop_words = about.get("language"), about.get("stop_words")
    if not isinstance(stop_words, list) or not isinstance(language, str | None):
        raise _damaged(place, "it does not say how text becomes words")
    return Words.of(language, stop_words)


def _mapped(place: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file that safetensors has found to be sound, over one map of it."""
    whole = np.asarray(np.memmap(place, np.uint8, mode="r"))
    header = 8 + int(whole[:8].view("<u8")[0])
    entries = json.loads(whole[8:header].tobytes())
    arrays = {}
    for name, (code, kind) in _TYPES.items():
        entry = entries.get(name)
        if entry is None or entry["dtype"] != code or len(entry["shape"]) != 1:
            raise _damaged(place, f"it lacks {name}")
        begin, end = entry["data_offsets"]
        part = whole[header + begin : header + end]
        # safetensors aligns what it writes; another writer may not
        arrays[name] = (part if part.ctypes.data % 8 == 0 else part.copy()).view(kind)
    return arrays


def _fault(
    postings: Postings, lengths: NDArray[np.int64], ids: NDArray[np.object_], terms: NDArray[np.object_]
) -> str | None:
    starts, docs, counts = postings
    if len(starts) != len(terms) + 1 or len(docs) != len(counts) or len(lengths) != len(ids):
        return "its arrays are not of one corpus"
    if starts[0] != 0 or starts[-1] != len(docs) or (starts[1:] < starts[:-1]).any():
        return "its words do not follow each other"
    if len(docs) and (int(docs.max()) >= len(ids) or counts.min() < 1):
        return "it counts words of documents that are not there"
    if not np.array_equal(np.bincount(docs, counts, minlength=len(ids)), lengths):
        return "its documents are not as long as their words"
    if len(set(ids.tolist())) < len(ids) or len(set(terms.tolist())) < len(terms):
        return "two documents or words are called the same"
    return None


def _packed(texts: NDArray[np.object_]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    parts = [text.encode(errors="surrogatepass") for text in texts.tolist()]
    return np.frombuffer(b"".join(parts), dtype=np.uint8), np.cumsum([len(part) for part in parts], dtype=np.int64)


def _unpacked(content: NDArray[np.uint8], stops: NDArray[np.int64], path: object) -> NDArray[np.object_]:
    text, ends = content.tobytes(), [0, *stops.tolist()]
    if ends[-1] != len(text) or any(a > b for a, b in pairwise(ends)):
        raise _damaged(path, "its names do not follow each other")
    found = np.empty(len(stops), dtype=object)
    try:
        found[:] = [text[a:b].decode(errors="surrogatepass") for a, b in pairwise(ends)]
    except UnicodeDecodeError:
        raise _damaged(path, "its names are no text") from None
    return found


def _damaged(path: object, what: str) -> InputError:
    return InputError(f"{path} is damaged: {what}; make the index again.")
