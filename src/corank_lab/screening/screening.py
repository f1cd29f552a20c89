"""A screening session: the next record to read, the answers, and an estimate of the recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.parameters import is_integer
from corank_lab.database.store import ANY_NUMBER
from corank_lab.records.records import Records
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry, prior_entries
from corank_lab.screening.choosing import choose_first
from corank_lab.screening.journal import ScreeningJournal
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.model import ScreeningModel
from corank_lab.screening.progress import ScreeningProgress
from corank_lab.screening.stopping import DEFAULT_RULE, stopping_rule
from corank_lab.screening.stopping.forecast import Forecaster
from corank_lab.screening.stopping.sampling import RandomSample
from corank_lab.screening.team import TeamScreening
from corank_lab.screening.views import Views, make_views


class Screening:
    """
    Find nearly all relevant records while reading few.

    The record with the highest score is read next, and every answer refits the model (see
    `corank_lab.screening.model`). Until the first relevant record is found, three ways of choosing take turns: the
    record most similar to the topic, the record most similar to all others, and a random record.

    records: Records to screen; with `UniqueRecords`, duplicates are judged as one.
    topic: Description of relevant records; used until the first one is found.
    known: Ids of records known to be relevant.
    rejected: Ids of records known to be irrelevant.
    journal: Keeps the answers in a database; answers in it are used. Without one, they are in memory only.
    labels: Whether labels of the records are used as known answers. If not, those that a journal holds are withdrawn.
    share: Whether to read together with the other judges of the journal's project: a record that another judge has
        answered, put aside or has on the screen is not shown, and the model learns from the answers of all.
    overlap: Share of the records that every judge reads nevertheless. A hash of the record draws them, so that all
        judges draw the same.
    rule: When reading may stop (see `corank_lab.screening.stopping.rules`). By a model of the finds with which an exact
        test agrees: "agree" (default). By a model alone: "decline", "poisson". By an exact test: "hypergeometric",
        "draws". By a proof: "sample". Rule of thumb, which missed the target in half of the replays: "consecutive".
    target: Recall to reach.
    confidence: Required probability that the target is reached.
    random_state: Random seed.
    views: Views of the same records, made before.

    >>> from corank_lab.screening import Records, Screening
    >>> titles = ["tin mines", "tin price", "gold price", "copper mines", "gold rush"]
    >>> screening = Screening(Records(list("abcde"), titles, [""] * 5), known=["a"])
    >>> screening.answer(screening.next(), relevant=True)
    >>> screening.progress().found
    2
    """

    def __init__(
        self,
        records: Records | UniqueRecords,
        *,
        topic: str | None = None,
        known: Iterable[str] = (),
        rejected: Iterable[str] = (),
        journal: ScreeningJournal | None = None,
        labels: bool = False,
        share: bool = False,
        overlap: float = 0.0,
        rule: str = DEFAULT_RULE,
        target: float = 0.95,
        confidence: float = 0.95,
        random_state: int = 0,
        views: Views | None = None,
    ) -> None:
        self.unique = records if isinstance(records, UniqueRecords) else UniqueRecords(records)
        self.records = self.unique.unique
        self._seed = random_state
        if not 0.0 <= overlap <= 1.0:
            raise InputError(f"overlap is {overlap!r}; pass a share of the records from 0 to 1, such as 0.1.")
        self._journal, self._is_shared = journal, share and journal is not None
        self._judge = "me" if journal is None else journal.judge
        self._judges = TeamScreening(self.unique, overlap=ANY_NUMBER, shared=overlap if self._is_shared else 1.0)
        self._answers = self._judges.answers_of(self._judge)
        self._open = np.ones(len(self.records), dtype=np.bool_)
        self._scores: NDArray[np.float32] | None = None
        self._prefetched: tuple[int, dict[bool, NDArray[np.float32]]] | None = None
        self._n_applied = 0
        if journal is not None:
            journal.begin(self.unique)
            self._apply_log()
        start = prior_entries(self._answers, known, rejected, labels=labels)
        n_known = len(self._answers.beforehand) + sum(-1 if entry.action == "undo" else 1 for entry in start)
        self._rule = stopping_rule(rule, len(self.records) - n_known, target, confidence)
        self._forecaster = Forecaster(self._rule)
        self.views = views if views is not None else make_views(self.unique.linked())
        self._model = ScreeningModel(self.views)
        self._record(*start)
        if topic and topic != self._answers.topic:
            self._record(ScreeningEntry("topic", text=topic))
        self._shown: tuple[int, ScreeningEntry] | None = None

    def next(self) -> int | None:
        """Choose the record to read next; None if every record is answered, or with another judge."""
        journal = self._journal
        if journal is None:
            return self._choose(self._open)
        while True:
            journal.refresh()
            self._apply_log()
            is_open = self._open
            if self._is_shared:
                is_open = is_open & ~self._judges.taken_from(self._judge)
                is_open[[number for number in self._held() if self._judges.slots(number) == 1]] = False
            record = self._choose(is_open)
            if record is None:
                journal.release()
                return None
            if journal.claim(self.records.ids[record], self._judges.slots(record)):
                return record

    def answer(self, record: int, relevant: bool, *, reason: str = "", tags: Iterable[str] = ()) -> None:
        """Record an answer. If there is a journal, the answer is on the disk when this returns."""
        self._require_open(record)
        self._record(self._entry("relevant" if relevant else "not", record, reason=reason, tags=tuple(tags)))
        prefetched = self._prefetched
        self._forget_scores()
        if prefetched is not None and prefetched[0] == record:
            self._scores = prefetched[1].get(relevant)

    def change(self, record: int, relevant: bool, *, reason: str = "", tags: Iterable[str] = ()) -> None:
        """Change an earlier answer, or answer a record that was put aside."""
        self._require(record)
        if record not in self._answers.current:
            raise InputError(f"record {self.records.ids[record]!r} is not answered; answer it when it is shown.")
        action = "relevant" if relevant else "not"
        self._record(ScreeningEntry(action, self.records.ids[record], "history", reason=reason, tags=tuple(tags)))
        self._forget_scores()

    def later(self, record: int, *, tags: Iterable[str] = ()) -> None:
        """Put a record aside until no other is left."""
        self._require_open(record)
        self._record(self._entry("later", record, tags=tuple(tags)))

    def duplicate(self, record: int, of: int) -> None:
        """Record that a record is a duplicate of another one, whose answer counts for both."""
        self._require(record)
        self._require(of)
        if record == of:
            raise InputError(f"record {self.records.ids[record]!r} cannot be a duplicate of itself; pass another one.")
        if record in self._answers.relevant:
            entry = ScreeningEntry("duplicate", self.records.ids[record], "history", of=self.records.ids[of])
        else:
            entry = self._entry("duplicate", record, of=self.records.ids[of])
        self._record(entry)
        self._forget_scores()

    def distinct(self, record: int) -> None:
        """Record that the duplicates that are judged with a record are other works; the next session shows them."""
        self._require(record)
        first, *others = (self.unique.everything.ids[number] for number in self.unique.members(record))
        if not others:
            raise InputError(f"record {first!r} has no duplicates; there is nothing to separate.")
        self._record(*(ScreeningEntry("distinct", first, of=other) for other in others))

    def note(self, record: int, text: str) -> None:
        """Attach a note to a record."""
        self._require(record)
        self._record(ScreeningEntry("note", self.records.ids[record], text=text))

    def undo(self) -> int | None:
        """Withdraw the last answer, change or postponement, and return its record; an answer before it holds again."""
        last = self._answers.last
        if last is None:
            return None
        if self._journal is not None:
            self._journal.claim(self.records.ids[last])
        self._record(ScreeningEntry("undo", self.records.ids[last]))
        self._forget_scores()
        return last

    def prefetch(self, record: int) -> None:
        """Fit the model for both answers to a record while it is being read, so that `next` returns at once."""
        self._require(record)
        self._prefetched = None
        if self._open[record]:
            numbers, answers = self.judged
            possible = (False, True) if self._team.has_found else (True,)
            fitted = {answer: self._model.scores([*numbers, record], [*answers, answer]) for answer in possible}
            self._prefetched = (record, fitted)

    def progress(self) -> ScreeningProgress:
        """Return the state of the screening."""
        team = self._team
        sample = self._sample()
        to_sample = len(sample.left) if sample is not None else 0
        unread = len(self.records) - len(team.relevant)
        may_stop = unread == 0 or (self._may_stop() and not to_sample)
        by_rule = "sample" if self._rule.needs_sample else "model"
        evidence = None if not may_stop else by_rule if unread else "all read"
        since = None
        if evidence == "model":
            n_other = len(team.relevant) - len(team.ranked)
            since = n_other + (self._rule.advised_since(team.finds, len(team.ranked), team.n_known) or 0)
        elsewhere = self._judges.n_elsewhere(self._judge, self._held()) if self._is_shared else 0
        estimate, lines = None, sample.lines() if sample is not None else ()
        if not team.is_sampled:
            forecast = self._forecaster.forecast(team.finds, len(team.ranked), team.n_known)
            estimate, lines = forecast.estimate, forecast.lines()
        return ScreeningProgress(
            len(self.records), len(team.relevant), team.n_found, estimate, may_stop, to_sample, evidence,
            len(self._answers.later), elsewhere, lines, since,
        )  # fmt: skip

    def history(self, search: str = "") -> list[tuple[int, ScreeningEntry]]:
        """Return the answered and postponed records, the last one first."""
        return self._answers.search(search)

    @property
    def judged(self) -> tuple[list[int], list[bool]]:
        """The records and answers that the model learns from, those of other judges in a shared reading included."""
        return self._team.judged

    @property
    def answers(self) -> dict[int, bool]:
        """The answers by record number, in the order of answering; duplicates of other records are not relevant."""
        return dict(self._answers.relevant)

    @property
    def notes(self) -> dict[int, str]:
        """The notes by record number."""
        return self._answers.notes

    @property
    def tags(self) -> Mapping[int, tuple[str, ...]]:
        """The tags that were last given to each record, by number; those of a withdrawn answer stay."""
        return self._answers.tags

    @property
    def unread(self) -> int:
        """Number of records without an answer."""
        return len(self.records) - len(self._answers.relevant)

    @property
    def unmatched(self) -> list[ScreeningEntry]:
        """Entries of the journal about records that are not among these; they stay in the journal."""
        return self._answers.unmatched

    @property
    def entries(self) -> Mapping[int, ScreeningEntry]:
        """The entry that holds for each answered or postponed record, by number."""
        return self._answers.current

    @property
    def _team(self) -> ScreeningAnswers:
        """The answers of all judges in a shared reading, else the own ones."""
        return self._judges.team

    def _held(self) -> list[int]:
        """Records that other judges hold."""
        assert self._journal is not None
        found = (self.unique.find(item) for item in self._journal.held_by_others())
        return [number for number in found if number is not None]

    def _entry(self, action: str, record: int, **values: Any) -> ScreeningEntry:
        """Make an entry that says why the record was shown."""
        if self._shown is not None and self._shown[0] == record:
            why = self._shown[1]
        else:
            why = ScreeningEntry("", by="model" if self._team.has_found else "start")
        return replace(why, action=action, id=self.records.ids[record], **values)

    def _record(self, *entries: ScreeningEntry) -> None:
        """Write entries, then apply them."""
        if self._journal is None:
            for entry in entries:
                self._apply(self._judge, entry)
            return
        self._journal.extend(entries)
        self._apply_log(len(entries))

    def _apply_log(self, n_own: int = 0) -> None:
        """Apply what is new in the journal; `n_own` entries of it are of this session."""
        assert self._journal is not None
        new = self._journal.log[self._n_applied :]
        self._n_applied += len(new)
        heard = [(judge, entry) for judge, entry in new if self._is_shared or judge == self._judge]
        for judge, entry in heard:
            self._apply(judge, entry)
        if len(heard) > n_own:
            self._forget_scores()

    def _apply(self, judge: str, entry: ScreeningEntry) -> None:
        number = self._judges.add(judge, entry)
        if number is not None:
            self._open[number] = number not in self._answers.relevant

    def _forget_scores(self) -> None:
        self._scores = self._prefetched = None

    def _require_open(self, record: int) -> None:
        self._require(record)
        if not self._open[record]:
            raise InputError(
                f"record {self.records.ids[record]!r} is answered; withdraw the answer first with undo(), or change "
                "it with change()."
            )

    def _require(self, record: int) -> None:
        if not (is_integer(record) and 0 <= record < len(self.records)):
            raise InputError(f"record is {record!r}; pass a number from 0 to {len(self.records) - 1}.")

    def _choose(self, is_open: NDArray[np.bool_]) -> int | None:
        """Choose one of the open records; postponed ones only if there is no other."""
        unread = np.flatnonzero(is_open)
        if not len(unread):
            return None
        sample = self._sample()
        if sample is not None and (left := [number for number in sample.left if is_open[number]]):
            record = next((number for number in left if number not in self._answers.later), left[0])
            self._shown = (record, ScreeningEntry("", by="sample"))
            return record
        if self._answers.later:
            now = is_open.copy()
            now[list(self._answers.later)] = False
            unread = np.flatnonzero(now) if now.any() else unread
        team = self._team
        if not team.has_found:
            record = choose_first(self.views, unread, team.relevant, topic=team.topic, seed=self._seed)
            self._shown = (record, ScreeningEntry("", by="start"))
            return record
        if self._scores is None:
            self._scores = self._model.scores(*self.judged)
        record = int(unread[np.argmax(self._scores[unread])])
        score = self._scores[record]
        rank = 1 + int(np.count_nonzero(self._scores[is_open] > score))
        self._shown = (record, ScreeningEntry("", by="model", rank=rank, score=round(float(score), 4)))
        return record

    def _may_stop(self) -> bool:
        """Whether ranked reading may stop; it did if a sample has begun."""
        answers = self._team
        if self._rule.needs_sample and answers.is_sampled:
            return True
        return self._rule.advises(answers.finds, len(answers.ranked), answers.n_known)

    def _sample(self) -> RandomSample | None:
        """The random sample, if the rule needs one and ranked reading may stop."""
        if not (self._rule.needs_sample and self._may_stop()):
            return None
        return RandomSample(self._team, len(self.records), self._rule, self._seed)
