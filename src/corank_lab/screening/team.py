"""The answers of all judges of one collection, who has read what, and a session that settles conflicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data import read_regular
from corank.errors import InputError
from corank_lab.database.database import ANY_NUMBER, Project
from corank_lab.database.journal import NAME, Journal, journal_paths, project_logs, split_journal
from corank_lab.records.records import Records, records_from_json, records_to_json
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry, combine, find_conflicts, prior_entries
from corank_lab.screening.matching import UniqueRecords

if TYPE_CHECKING:  # it imports rapidfuzz
    from corank_lab.records.duplicates import DuplicateGroups

KNOWN = "labels of the file"
"""Name under which labels of the file count as answers on pages."""


class JudgeVerdict(NamedTuple):
    """What a judge answered, with reason and tags, and the judge's note, which may be empty."""

    judge: str
    entry: ScreeningEntry
    note: str


class OpenRecord(NamedTuple):
    """The number of a record that a judge may get next, and of the judges who may still read it."""

    number: int
    slots: int


class TeamAnswers:
    """
    The answers of all judges of one collection, in a journal or in memory.

    records: The records; with `UniqueRecords`, duplicates are judged as one.
    journal: Journal of one of the judges, who is the judge of the session; `begin` reads it.
    """

    def __init__(
        self,
        records: Records | UniqueRecords,
        journal: ScreeningJournal | None = None,
        *,
        share: bool = True,
        overlap: float = 0.0,
        readers: int = ANY_NUMBER,
    ) -> None:
        if not 0.0 <= overlap <= 1.0:
            raise InputError(f"overlap is {overlap!r}; pass a share of the records from 0 to 1, such as 0.1.")
        self.unique = records if isinstance(records, UniqueRecords) else UniqueRecords(records)
        self.records = self.unique.unique
        self.judge = "me" if journal is None else journal.judge
        self.judges: dict[str, ScreeningAnswers] = {}
        self._journal, self._is_shared = journal, share
        self._team: ScreeningAnswers | None = None
        self._n_applied = 0
        self._needed = np.where(drawn_records(self.records.ids, overlap if share else 1.0), max(readers, 1), 1)
        self._readers: dict[int, set[str]] = {}
        self._aside: dict[int, set[str]] = {}
        self._n_read = np.zeros(len(self.records), dtype=np.int64)
        self._has_read: dict[str, NDArray[np.bool_]] = {}

    def begin(self) -> None:
        if self._journal is not None:
            self._journal.begin(self.unique)
            self._apply_log()

    def add(self, judge: str, entry: ScreeningEntry) -> int | None:
        answers = self.answers_of(judge)
        number = answers.add(entry)
        if entry.action == "topic":
            self._team = None
        if number is None or entry.action == "note":
            return number
        readers, aside = (place.setdefault(number, set()) for place in (self._readers, self._aside))
        is_read = self._read_by(judge)[number] = number in answers.relevant
        is_read = is_read and answers.chosen_by[number] != "adjudication"
        (readers.add if is_read else readers.discard)(judge)
        (aside.add if number in answers.later else aside.discard)(judge)
        self._n_read[number] = len(readers)
        self._extend(number, entry)
        return number

    def answers_of(self, judge: str) -> ScreeningAnswers:
        if judge not in self.judges:
            self.judges[judge] = ScreeningAnswers(self.unique)
            self._team = None
        return self.judges[judge]

    @property
    def team(self) -> ScreeningAnswers:
        if len(self.judges) == 1:
            return next(iter(self.judges.values()))
        if self._team is None:
            self._team = combine(self.judges) if self.judges else ScreeningAnswers(self.unique)
        return self._team

    @property
    def unsettled(self) -> list[int]:
        """Records on which judges disagree, not settled, in the order of the file."""
        return find_conflicts(self.judges) if len(self.judges) > 1 else []

    @property
    def settled(self) -> dict[int, ScreeningEntry]:
        return {number: entry for answers in self.judges.values() for number, entry in answers.adjudicated.items()}

    def verdicts(self, record: int) -> list[JudgeVerdict]:
        return [
            JudgeVerdict(judge, answers.current[record], answers.notes.get(record, ""))
            for judge, answers in self.judges.items()
            if record in answers.relevant and answers.chosen_by[record] != "adjudication"
        ]

    def use_labels(self) -> None:
        """Count labels of the records as known answers of nobody; no judge reads these records."""
        labels = label_answers(self.unique)
        if labels.relevant:
            self.judges[KNOWN] = labels
            self._needed[list(labels.relevant)] = 0

    @property
    def n_finished(self) -> int:
        """Number of records that as many judges have read as are needed, or that are known or settled."""
        done = self._n_read >= self._needed
        done[list(self.settled)] = True
        return int(np.count_nonzero(done))

    def slots_for(self, judge: str, number: int) -> int:
        """Return how many judges may still read a record, if this judge may; 0 if not, or if the judge put it aside."""
        mine = self.answers_of(judge)
        if number in mine.relevant or number in mine.later or number in self.settled:
            return 0
        return max(int(self._needed[number] - self._n_read[number]), 0)

    def note(self, record: int, text: str) -> None:
        self._record(ScreeningEntry("note", self.records.ids[record], text=text))

    def history(self, search: str = "") -> list[tuple[int, ScreeningEntry]]:
        return self._mine.search(search, self.entries)

    @property
    def entries(self) -> Mapping[int, ScreeningEntry]:
        """The entry of the judge that holds for each answered or postponed record, by number."""
        return self._mine.current

    @property
    def notes(self) -> Mapping[int, str]:
        return self._mine.notes

    @property
    def tags(self) -> Mapping[int, tuple[str, ...]]:
        """The tags that the judge last gave to each record, by number; those of a withdrawn answer stay."""
        return self._mine.tags

    @property
    def _mine(self) -> ScreeningAnswers:
        return self.answers_of(self.judge)

    def _record(self, *entries: ScreeningEntry) -> None:
        if self._journal is None:
            for entry in entries:
                self.add(self.judge, entry)
        else:
            self._journal.extend(entries)
            self._apply_log(len(entries))

    def _apply_log(self, n_own: int = 0) -> None:
        """Apply what is new in the journal; `n_own` entries of it are of this session."""
        assert self._journal is not None
        new = self._journal.log[self._n_applied :]
        self._n_applied += len(new)
        heard = [(judge, entry) for judge, entry in new if self._is_shared or judge == self.judge]
        for judge, entry in heard:
            self.add(judge, entry)
        if len(heard) > n_own:
            self._hear()

    def _hear(self) -> None:
        """Answers came that were not given in this session."""

    def _extend(self, number: int, entry: ScreeningEntry) -> None:
        """Add an answer to those of the team, or have them made anew if it changes an earlier one."""
        team = self._team
        if team is None or (entry.action == "later" and number not in team.current):
            return
        if entry.action in ("relevant", "not") and entry.by not in ("history", "adjudication"):
            if number not in team.current:
                team.add(entry)
                return
            if team.current[number].action == entry.action and number not in self.settled:
                return
        self._team = None

    def _n_elsewhere(self) -> int:
        if self._journal is None or not self._is_shared:
            return 0
        held = (self.unique.find(item) for item in self._journal.held_by_others())
        aside = (number for number, judges in self._aside.items() if judges - {self.judge})
        numbers = {number for number in (*held, *aside) if number is not None}
        return sum(self._needed[number] == 1 and not self._n_read[number] for number in numbers)

    def _read_by(self, judge: str) -> NDArray[np.bool_]:
        if judge not in self._has_read:
            self._has_read[judge] = np.zeros(len(self.records), dtype=np.bool_)
        return self._has_read[judge]

    def _is_open(self, judge: str) -> NDArray[np.bool_]:
        is_open = (self._n_read < self._needed) & ~self._read_by(judge)
        is_open[list(self.settled)] = False
        return is_open


class Adjudication(TeamAnswers):
    """
    Settle the conflicts of judges, one record at a time.

    journal: Journal of the adjudicator, which has the answers of all judges.
    """

    def __init__(self, records: Records | UniqueRecords, journal: ScreeningJournal) -> None:
        super().__init__(records, journal)
        self.begin()
        self.conflicts = find_conflicts(self.judges, settled=True)
        self._postponed: dict[int, None] = {}

    @property
    def left(self) -> list[int]:
        """Records whose conflict is not settled, those put aside last."""
        settled = self.settled
        left = [number for number in self.conflicts if number not in settled]
        return sorted(left, key=lambda number: number in self._postponed)

    def next(self) -> int | None:
        return next(iter(self.left), None)

    def answer(self, record: int, relevant: bool, *, reason: str = "", tags: Iterable[str] = ()) -> None:
        if record not in self.conflicts:
            raise InputError(f"record {record} is not in conflict; settle one of those that next() returns.")
        action = "relevant" if relevant else "not"
        self._record(ScreeningEntry(action, self.records.ids[record], "adjudication", reason=reason, tags=tuple(tags)))

    change = answer

    def later(self, record: int, *, tags: Iterable[str] = ()) -> None:
        """Put a record aside until no other conflict is left, in this session."""
        self._postponed.pop(record, None)
        self._postponed[record] = None

    def undo(self) -> int | None:
        last = self._mine.last_adjudicated
        if last is not None:
            self._record(ScreeningEntry("undo", self.records.ids[last], "adjudication"))
        return last

    @property
    def entries(self) -> Mapping[int, ScreeningEntry]:
        return self._mine.adjudicated


def unique_records(
    records: Records, groups: DuplicateGroups | None, entries: Iterable[ScreeningEntry]
) -> UniqueRecords:
    """Return the records to judge: duplicates as one, less those that a judge has separated."""
    distinct = [entry for entry in entries if entry.action == "distinct"]
    if groups is None or not distinct:
        return UniqueRecords(records, groups)
    single = UniqueRecords(records)
    pairs = {(single.find(entry.id), single.find(entry.of)) for entry in distinct}
    separate = [(item, other) for item, other in pairs if item is not None and other is not None and item != other]
    return UniqueRecords(records, groups.without(separate) if separate else groups)


def label_answers(unique: UniqueRecords) -> ScreeningAnswers:
    """Return the labels of records as known answers."""
    known = ScreeningAnswers(unique)
    for entry in prior_entries(known, (), (), labels=True):
        known.add(entry)
    return known


def drawn_records(ids: Sequence[str], share: float) -> NDArray[np.bool_]:
    """Return which records several judges read."""
    if share <= 0.0 or share >= 1.0:
        return np.full(len(ids), share >= 1.0)
    hashes = (hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest() for name in ids)
    values = np.frombuffer(b"".join(hashes), dtype=">u8").astype(np.float64) / 2.0**64
    return np.asarray(values < share)


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

    @property
    def settings(self) -> Mapping[str, Any]:
        assert self.project is not None, "a session sets the project"
        return self.project.settings

    def find_records(self, records: Records) -> Project | None:
        self._single = UniqueRecords(records)
        return self.find(records_hash(records), records.sources[0].name if records.sources else "")

    @classmethod
    def hash_of(cls, payload: Any) -> str:
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
