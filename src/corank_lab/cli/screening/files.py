"""The files of a screening: records, their duplicates, the project with the answers and the reasons of exclusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.errors import InputError

if TYPE_CHECKING:
    from corank_lab.database.database import Database
    from corank_lab.records.duplicates import DuplicateGroups
    from corank_lab.records.records import Records
    from corank_lab.screening import ScreeningAnswers, ScreeningJournal, UniqueRecords

REASONS = "reasons.txt"
"""File of the reasons of exclusion in the folder in which version 0.2 kept the answers."""
MAX_REASONS = 9


@dataclass(frozen=True)
class ScreeningFiles:
    """The files that a command names."""

    paths: tuple[Path, ...]  # files of records
    answers: Path | None  # folder of the database; None means that of the first file
    is_grouped: bool  # whether duplicates are judged as one
    # columns of title and text that the user named, as `read_records` takes them
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        """The database, which need not exist."""
        from corank_lab.database.journal import NAME

        return (self.paths[0].absolute().parent if self.answers is None else self.answers) / NAME

    @property
    def old_folder(self) -> Path:
        """Folder in which version 0.2 kept the answers; it need not exist."""
        from corank_lab.screening import ScreeningJournal

        return Path(f"{self.paths[0]}.{ScreeningJournal.folder}") if self.answers is None else self.answers

    @cached_property
    def records(self) -> Records:
        """All records."""
        from corank_lab.records.records import read_records

        return read_records(*self.paths, **self.columns)

    @cached_property
    def groups(self) -> DuplicateGroups | None:
        """Groups of duplicates; None if every record is judged."""
        from corank_lab.records.duplicates import find_duplicates

        return find_duplicates(self.records) if self.is_grouped else None

    @property
    def has_answers(self) -> bool:
        """Whether there is a project of the files, or a journal of version 0.2."""
        from corank_lab.database.journal import journal_paths
        from corank_lab.screening import ScreeningJournal

        if journal_paths(self.old_folder):
            return True
        if not self.database.is_file():
            return False
        with ScreeningJournal(self.database) as journal:
            return journal.find_records(self.records) is not None

    @contextmanager
    def journal(
        self, judge: str = "me", *, store: Database | None = None, **settings: Any
    ) -> Iterator[tuple[ScreeningJournal, list[str]]]:
        """Open the journal of a judge in the project of the files."""
        from corank.data import explain_write_errors, read_regular, read_utf8
        from corank_lab.screening import ScreeningJournal, UniqueRecords

        for path in self.paths:
            if path.is_dir():
                raise InputError(
                    f"{path} is a folder, which may change; make one file of it with `corank records {path} -o "
                    "documents.csv`, and pass that file."
                )
        unique = UniqueRecords(self.records, self.groups)
        with explain_write_errors(self.database):
            self.database.parent.mkdir(parents=True, exist_ok=True)
        with ScreeningJournal(store or self.database, judge) as journal:
            journal.begin(unique, {path.name: read_regular(path) for path in self.paths}, **settings)
            said = journal.import_old(self.old_folder)
            listed = self.old_folder / REASONS
            assert journal.project is not None
            if listed.exists() and not journal.project.settings.get("reasons"):
                journal.change_settings(reasons="\n".join(_lines(read_utf8(listed))))
            yield journal, [said] if said else []

    def unique(self, journal: ScreeningJournal) -> UniqueRecords:
        """Return the records, with groups of duplicates less those that a judge has separated."""
        from corank_lab.screening import UniqueRecords

        if self.groups is None:
            return UniqueRecords(self.records)
        single = UniqueRecords(self.records)
        pairs = {
            (single.find(entry.id), single.find(entry.of)) for _, entry in journal.log if entry.action == "distinct"
        }
        separate = [(item, other) for item, other in pairs if item is not None and other is not None and item != other]
        return UniqueRecords(self.records, self.groups.without(separate) if separate else self.groups)

    @cached_property
    def judged(self) -> tuple[UniqueRecords, dict[str, ScreeningAnswers]]:
        """The records and the answers of each judge; raise if there are none."""
        from corank_lab.screening import ScreeningAnswers
        from corank_lab.screening.answers import LABEL
        from corank_lab.screening.team import KNOWN, label_answers

        judges: dict[str, ScreeningAnswers] = {}
        if self.has_answers:
            with self.journal() as (journal, _):
                unique, entries = self.unique(journal), journal.by_judge()
                judges = {judge: ScreeningAnswers(unique, listed) for judge, listed in entries.items()}
                assert journal.project is not None
                # pages do not store labels as answers of a judge
                uses_labels = journal.project.settings.get("use_labels", True)
                if judges and uses_labels and all(entry.text != LABEL for _, entry in journal.log):
                    labels = label_answers(unique)
                    judges |= {KNOWN: labels} if labels.relevant else {}
        if not judges:
            name = self.paths[0]
            raise InputError(f"there are no answers for {name} yet; run corank screen {name} first.")
        return unique, judges

    @property
    def judges(self) -> dict[str, ScreeningAnswers]:
        """The answers of each judge; raise if there are none."""
        return self.judged[1]


def store_reasons(journal: ScreeningJournal, given: Sequence[str], listed: Path | None) -> list[str]:
    """Return the reasons of exclusion: those given now, which are stored for later sessions, or the stored ones."""
    from corank.data import read_utf8

    assert journal.project is not None
    stored = _lines(str(journal.project.settings.get("reasons", "")))
    reasons = [*given, *(_lines(read_utf8(listed)) if listed is not None else ())]
    reasons = list(dict.fromkeys(" ".join(reason.split()) for reason in reasons if reason.strip()))
    if len(reasons) > MAX_REASONS:
        raise InputError(f"there are {len(reasons)} reasons; the keys 1 to 9 allow {MAX_REASONS}, so merge some.")
    if reasons and reasons != stored:
        journal.change_settings(reasons="\n".join(reasons))
    return reasons or stored


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
