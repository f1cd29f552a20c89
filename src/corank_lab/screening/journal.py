"""The journal of a screening: the project of records in a database, and files of JSON lines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from corank.data import read_regular
from corank_lab.database.database import Project
from corank_lab.database.journal import NAME, Journal, journal_paths, project_logs, split_journal
from corank_lab.records.records import Records, records_from_json, records_to_json
from corank_lab.screening.answers import ScreeningEntry
from corank_lab.screening.matching import UniqueRecords

RECORDS = "records/"
"""Begin of the names under which a project keeps the files of records: ``records/NUMBER/NAME``."""


class ScreeningJournal(Journal[ScreeningEntry]):  # noqa: D101
    __doc__ = Journal.__doc__
    entry = ScreeningEntry
    kind = "screen"
    folder = "answers"

    def begin(self, unique: UniqueRecords, contents: Mapping[str, bytes] | None = None, **settings: Any) -> None:
        """Use the project of records, which is made at the first time."""
        self._unique, self._single = unique, UniqueRecords(unique.everything)
        records = unique.everything
        file = records.sources[0].name if records.sources else ""
        files = {
            f"{RECORDS}{number}/{name}": ("application/octet-stream", content)
            for number, (name, content) in enumerate((contents or {}).items())
        }
        self._begin(records_hash(records), lambda: records_payload(unique), file, files, **settings)
        if files and not self.store.file_names(self.id):  # a project that was made from Python
            self.store.add_files(self.id, files)

    def find_records(self, records: Records) -> Project | None:
        """Find the project of records."""
        self._single = UniqueRecords(records)
        return self.find(records_hash(records), records.sources[0].name if records.sources else "")

    @classmethod
    def hash_of(cls, payload: Any) -> str:
        """Return a hash of the files of the records, or of ids and titles if they were not read from files."""
        return records_hash(records_from_json(payload["records"]))

    def shares(self, payload: Any) -> bool:
        """Return whether half of the records of a project, or of the records now if these are fewer, are in both."""
        before = UniqueRecords(records_from_json(payload["records"])).everything
        result = sum(
            self._single.find(id, keys, title) is not None
            for id, keys, title in zip(before.ids, before.keys, before.titles, strict=True)
        )
        return 2 * result >= min(len(before), len(self._single.everything))

    def completed(self, entry: ScreeningEntry) -> tuple[str, ScreeningEntry]:
        """Return the id of the record that is judged, and the entry with the keys and the title of the record."""
        unique = self._unique
        number = unique.find(entry.id, entry.keys, entry.title) if entry.id else None
        if number is None:
            return "", entry if entry.records else replace(entry, records=unique.hash)
        whole = entry if entry.keys else entry.about(unique, number)
        return unique.unique.ids[number], whole if whole.records else replace(whole, records=unique.hash)


def records_payload(unique: UniqueRecords) -> dict[str, Any]:
    """Return records and pairs of duplicates as a project keeps them."""
    pairs = [] if unique.groups is None else [list(pair) for pair in unique.groups.pairs]
    return {"records": records_to_json(unique.everything), "pairs": pairs}


def records_hash(records: Records) -> str:
    """Return a hash of the files that records were read from; of ids and titles if there are none."""
    if records.sources:
        text = "".join(source.sha256 for source in records.sources)
    else:
        text = "\n".join(part for pair in zip(records.ids, records.titles, strict=True) for part in pair)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def read_logs(paths: Sequence[Path], records: Records, folder: Path | None = None) -> list[tuple[str, bytes]]:
    """Return judge and JSON lines of all logs about records: of their project, then of files."""
    result: list[tuple[str, bytes]] = []
    database = (paths[0].absolute().parent if folder is None else folder) / NAME
    if database.is_file():
        with ScreeningJournal(database) as journal:
            project = journal.find_records(records)
            if project is not None:
                result += project_logs(journal.store, project.id).items()
    for path in journal_paths(Path(f"{paths[0]}.{ScreeningJournal.folder}") if folder is None else folder):
        result += split_journal(read_regular(path), path).items()
    return result
