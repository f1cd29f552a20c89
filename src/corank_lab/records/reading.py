"""Read record files of any format into one collection with stable, unique ids."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from corank.errors import InputError
from corank_lab.records.fields.interpret import Entry, interpret
from corank_lab.records.identity import fingerprint
from corank_lab.records.parsers.documents import load_folder
from corank_lab.records.parsers.encoding import load_file
from corank_lab.records.parsers.recognise import parse_file
from corank_lab.records.records import Records, RecordSource


def read_files(paths: Sequence[str | os.PathLike[str]], title: str | None = None, text: str | None = None) -> Records:
    """Read files of any format, one after another; see `corank_lab.records.records.read_records`."""
    named = {field: column for field, column in (("title", title), ("abstract", text)) if column is not None}
    seen: dict[str, None] = {}
    names = _source_names(paths)
    entries: list[Entry] = []
    sources = []
    for path, source in zip(paths, names, strict=True):
        loaded = load_folder(path) if os.path.isdir(path) else load_file(path)
        parsed = parse_file(loaded)
        present = {field: column for field, column in named.items() if column in parsed.columns}
        seen |= dict.fromkeys(parsed.columns)
        found, remarks = interpret(parsed, loaded.name, source, present)
        entries += found
        sources.append(RecordSource(source, loaded.sha256, parsed.format, len(found), tuple(remarks)))
    for field, column in named.items():
        if column not in seen:
            listed = ", ".join(one[:40] for one in seen)[:300]
            name = "title" if field == "title" else "text"
            raise InputError(
                f"{name} is {column!r}, but {', '.join(names)} has the columns {listed}; pass one of them."
            )
    ids = stable_ids(entries)
    try:
        return Records(
            ids,
            [one.title for one in entries],
            [one.abstract for one in entries],
            [one.references for one in entries],
            np.array([one.label for one in entries]),
            [one.fields for one in entries],
            [one.details for one in entries],
            sources,
        )
    except InputError as error:
        raise InputError(f"{', '.join(names)}: {error}") from None


def _source_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the name of each file; its path where two files have the same name."""
    names = [Path(path).name for path in paths]
    times = Counter(names)
    return [os.fspath(path) if times[name] > 1 else name for path, name in zip(paths, names, strict=True)]


def stable_ids(entries: Sequence[Entry]) -> list[str]:
    """
    Return an id for each record that does not depend on its place.

    It is the given id if no other record has it, otherwise the first of DOI, PubMed id, accession number and
    fingerprint that no other record has. Records that share all of them get a number in the order of their contents.
    """
    candidates = [_candidates(one) for one in entries]
    times = Counter(one for row in candidates for one in set(row))
    ids = [next((one for one in row if times[one] == 1), "") for row in candidates]
    taken = {one for one in ids if one}
    shared: dict[str, list[int]] = {}
    for at, one in enumerate(ids):
        if not one:
            shared.setdefault(candidates[at][0], []).append(at)
    for one, members in shared.items():
        members.sort(key=lambda at: (_content(entries[at]), at))
        number = 0
        for at in members:
            while True:
                number += 1
                name = one if number == 1 else f"{one}#{number}"
                if name not in taken:
                    break
            ids[at] = name
            taken.add(name)
    return ids


def _candidates(entry: Entry) -> list[str]:
    one = entry.details
    mark = fingerprint(entry.title, one.year, one.authors)
    known = (
        one.given_id, one.doi and f"doi:{one.doi}", one.pmid and f"pmid:{one.pmid}",
        one.accession and f"accession:{one.accession}",
        f"title:{mark}" if mark else f"content:{_content(entry)[:16]}",
    )  # fmt: skip
    return [text for text in known if text]


def _content(entry: Entry) -> str:
    """Return a hash of the texts and fields of a record."""
    said = json.dumps([entry.title, entry.abstract, sorted(entry.fields.items())], ensure_ascii=True)
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
