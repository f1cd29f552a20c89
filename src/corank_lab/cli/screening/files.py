"""The files of a screening: records, their duplicates, the folder of answers and the reasons of exclusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.errors import InputError

if TYPE_CHECKING:
    from corank_lab.records.records import Records
    from corank_lab.screening import ScreeningAnswers, UniqueRecords

REASONS = "reasons.txt"
"""File of the reasons of exclusion, one per line, in the folder of answers."""
MAX_REASONS = 9


@dataclass(frozen=True)
class ScreeningFiles:
    """
    The files that a command names.

    paths: files of records.
    answers: folder of the answers; None means the one next to the first file.
    is_grouped: whether duplicates are judged as one.
    columns: columns of title and text that the user named, as `read_records` takes them.
    """

    paths: tuple[Path, ...]
    answers: Path | None
    is_grouped: bool
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Folder of the answers, which need not exist."""
        from corank_lab.screening import ScreeningJournal

        return ScreeningJournal.folder_of(self.paths[0], self.answers)

    @cached_property
    def records(self) -> Records:
        """All records."""
        from corank_lab.records.records import read_records

        return read_records(*self.paths, **self.columns)

    @cached_property
    def unique(self) -> UniqueRecords:
        """The records, with groups of duplicates less those that a judge has separated."""
        from corank_lab.screening import UniqueRecords

        if not self.is_grouped:
            return UniqueRecords(self.records)
        from corank_lab.records.duplicates import find_duplicates

        groups = find_duplicates(self.records)
        single = UniqueRecords(self.records)
        pairs = {
            (single.find(entry.id), single.find(entry.of))
            for entries in self.journals.values()
            for entry in entries
            if entry.action == "distinct"
        }
        separate = [(one, other) for one, other in pairs if one is not None and other is not None and one != other]
        return UniqueRecords(self.records, groups.without(separate) if separate else groups)

    @property
    def journals(self) -> dict[str, list[Any]]:
        """The entries of each judge."""
        from corank_lab.screening import ScreeningJournal

        return dict(ScreeningJournal.read_all(self.paths[0], self.answers))

    @cached_property
    def judges(self) -> dict[str, ScreeningAnswers]:
        """The answers of each judge; raise if there are none."""
        from corank_lab.screening import read_judges

        judges = read_judges(self.unique, self.paths[0], self.answers)
        if not judges:
            name = self.paths[0]
            raise InputError(f"there are no answers for {name} yet; run corank screen {name} first.")
        return judges

    def reasons(self, given: Sequence[str], listed: Path | None) -> list[str]:
        """
        Return the reasons of exclusion: those given now, which are stored for later sessions, or the stored ones.

        given: reasons.
        listed: a file with one reason per line.
        """
        from corank.data import atomic_file, read_utf8

        stored = self.folder / REASONS
        reasons = [*given, *(_lines(read_utf8(listed)) if listed is not None else ())]
        if not reasons:
            return _lines(read_utf8(stored)) if stored.exists() else []
        reasons = list(dict.fromkeys(" ".join(reason.split()) for reason in reasons if reason.strip()))
        if len(reasons) > MAX_REASONS:
            raise InputError(f"there are {len(reasons)} reasons; the keys 1 to 9 allow {MAX_REASONS}, so merge some.")
        if not stored.exists() or _lines(read_utf8(stored)) != reasons:
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_file(stored, overwrite=True) as scratch:
                scratch.write_text("".join(f"{reason}\n" for reason in reasons), encoding="utf-8")
        return reasons


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
