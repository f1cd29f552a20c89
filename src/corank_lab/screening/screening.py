"""
A screening session: the next record of each judge, the answers, and an estimate of the recall.

One class serves a single judge, who is a team of one, and several judges. `next` fits the model first; pages, whose
questions wait for no model, take records from `open_for` and run `fit` and `plan_advice` in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.parameters import is_integer
from corank_lab.database.database import ANY_NUMBER, ClaimableItem
from corank_lab.records.records import Records
from corank_lab.screening.answers import BEFOREHAND, ScreeningEntry, prior_entries
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.model import ScreeningModel, choose_first
from corank_lab.screening.prior import Prior
from corank_lab.screening.stopping import DEFAULT_CONFIDENCE, DEFAULT_RULE, StoppingRule, stopping_rule
from corank_lab.screening.stopping.forecast import Forecaster, ScreeningAdvice, ScreeningProgress, advice_sentence
from corank_lab.screening.stopping.urns import RandomSample, draw_order, require_richness, richness_sentence
from corank_lab.screening.team import OpenRecord, ScreeningJournal, TeamAnswers
from corank_lab.screening.views import Views, make_views

N_AHEAD = 64
"""Number of records that are offered to a judge of a team before all are."""


class Screening(TeamAnswers):
    """
    Find nearly all relevant records while reading few.

    The record with the highest score is read next, and every answer refits the model (see
    `corank_lab.screening.model`). Until the first relevant record is found, the record that prior knowledge prefers,
    the record most similar to all others, and a random record take turns.

    records: Records to screen; with `UniqueRecords`, duplicates are judged as one.
    topic: Description of relevant records, such as the criteria of inclusion; a source of prior knowledge.
    prior: Further sources: old reviews, and probabilities in a column (`corank_lab.screening.prior`).
    known: Ids of records known to be relevant.
    rejected: Ids of records known to be irrelevant.
    journal: Keeps the answers in a database; answers in it are used. Without one, they are in memory only.
    labels: Whether labels of the records are used as known answers. If not, those that a journal holds are withdrawn.
    share: Whether to read together with the other judges of the journal's project: a record that another judge has
        answered, put aside or has on the screen is not shown, and the model learns from the answers of all.
    overlap: Share of the records that several judges read nevertheless. A hash of the record draws them, so that all
        judges draw the same.
    readers: Number of judges who read a record of that share; all by default.
    rule: When reading may stop: a name in `corank_lab.screening.STOPPING_RULES`.
    target: Recall to reach.
    confidence: Required probability that the target is reached.
    richness: Number of random records to read before all others, which estimate the share of relevant records.
    random_state: Random seed.
    views: Views of the same records, made before; else `prepare` makes them.

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
        prior: Prior | None = None,
        known: Iterable[str] = (),
        rejected: Iterable[str] = (),
        journal: ScreeningJournal | None = None,
        labels: bool = False,
        share: bool = False,
        overlap: float = 0.0,
        readers: int = ANY_NUMBER,
        rule: str = DEFAULT_RULE,
        target: float = 0.95,
        confidence: float = DEFAULT_CONFIDENCE,
        richness: int = 0,
        random_state: int = 0,
        views: Views | None = None,
    ) -> None:
        super().__init__(records, journal, share=share, overlap=overlap, readers=readers)
        self.topic, self._prior, self._seed = "", prior or Prior(), random_state
        self._sources: tuple[str, NDArray[np.float64]] | None = None
        self.views = views
        self._model: ScreeningModel | None = None
        self._model_sources: NDArray[np.float64] | None = None
        self._scores: NDArray[np.float32] | None = None
        self._prefetched: tuple[int, dict[bool, NDArray[np.float32]]] | None = None
        self._shown: tuple[int, ScreeningEntry] | None = None
        self._rule = stopping_rule(rule, len(self.records), target, confidence)
        self._forecaster = Forecaster(self._rule)
        self._advice = ScreeningAdvice()
        self._n_richness = require_richness(richness, len(self.records))
        self.begin()
        known, rejected = list(known), list(rejected)
        if journal is not None or known or rejected or labels:
            self._record(*prior_entries(self._mine, known, rejected, labels=labels))
        if topic and topic != self._mine.topic:
            self._record(ScreeningEntry("topic", text=topic))

    def next(self) -> int | None:
        """Choose the record to read next; None if every record is answered, or with another judge."""
        if self._journal is not None:
            self._journal.refresh()
            self._apply_log()
        if self.team.has_found and self._scores is None:
            self._scores = self.fit(self.judged)
        elif self.views is None:
            self.prepare()
        ids = self.records.ids
        for most in (N_AHEAD if self._is_shared else 1, None):
            is_open = self.open_for(self.judge, most, with_aside=not self._is_shared)
            chosen: int | None = is_open[0].number if is_open else None
            if self._journal is not None:
                item = self._journal.claim([ClaimableItem(ids[number], slots) for number, slots in is_open])
                chosen = next((number for number, _ in is_open if ids[number] == item), None)
            if chosen is not None:
                self._shown = (chosen, self.why(chosen))
                return chosen
            if most is None or len(is_open) < most:
                break
        if self._journal is not None:
            self._journal.release()
        return None

    def answer(self, record: int, relevant: bool, *, reason: str = "", tags: Iterable[str] = ()) -> None:
        """Record an answer. If there is a journal, the answer is on the disk when this returns."""
        self._require_open(record)
        self._record(self._entry("relevant" if relevant else "not", record, reason=reason, tags=tuple(tags)))
        prefetched = self._prefetched
        self._hear()
        if prefetched is not None and prefetched[0] == record:
            self._scores = prefetched[1].get(relevant)

    def change(self, record: int, relevant: bool, *, reason: str = "", tags: Iterable[str] = ()) -> None:
        """Change an earlier answer, or answer a record that was put aside."""
        self._require(record)
        if record not in self.entries:
            raise InputError(f"record {self.records.ids[record]!r} is not answered; answer it when it is shown.")
        action = "relevant" if relevant else "not"
        self._record(ScreeningEntry(action, self.records.ids[record], "history", reason=reason, tags=tuple(tags)))
        self._hear()

    def later(self, record: int, *, tags: Iterable[str] = ()) -> None:
        self._require_open(record)
        self._record(self._entry("later", record, tags=tuple(tags)))

    def duplicate(self, record: int, of: int) -> None:
        """Record that a record is a duplicate of another one, whose answer counts for both."""
        self._require(record)
        self._require(of)
        if record == of:
            raise InputError(f"record {self.records.ids[record]!r} cannot be a duplicate of itself; pass another one.")
        if record in self._mine.relevant:
            entry = ScreeningEntry("duplicate", self.records.ids[record], "history", of=self.records.ids[of])
        else:
            entry = self._entry("duplicate", record, of=self.records.ids[of])
        self._record(entry)
        self._hear()

    def distinct(self, record: int) -> None:
        """Record that the duplicates that are judged with a record are other works; the next session shows them."""
        self._require(record)
        first, *others = (self.unique.everything.ids[number] for number in self.unique.members(record))
        if not others:
            raise InputError(f"record {first!r} has no duplicates; there is nothing to separate.")
        self._record(*(ScreeningEntry("distinct", first, of=other) for other in others))

    def note(self, record: int, text: str) -> None:
        self._require(record)
        super().note(record, text)

    def undo(self) -> int | None:
        """Withdraw the last answer, change or postponement, and return its record; an answer before it holds again."""
        last = self._mine.last
        if last is None:
            return None
        if self._journal is not None:
            self._journal.claim([ClaimableItem(self.records.ids[last], ANY_NUMBER)])
        self._record(ScreeningEntry("undo", self.records.ids[last]))
        self._hear()
        return last

    def prefetch(self, record: int) -> None:
        """Fit the model for both answers to a record while it is being read, so that `next` returns at once."""
        self._require(record)
        self._prefetched = None
        if record not in self._mine.relevant:
            numbers, answers = self.judged
            fitted = {}
            for answer in (False, True):
                scores = self.fit(([*numbers, record], [*answers, answer]))
                if scores is not None:
                    fitted[answer] = scores
            self._prefetched = (record, fitted)

    def progress(self) -> ScreeningProgress:
        team = self.team
        return ScreeningProgress(
            **vars(self.plan_advice()()), n=len(self.records), read=len(team.relevant), found=team.n_found,
            aside=len(self._mine.later), elsewhere=self._n_elsewhere(),
        )  # fmt: skip

    @property
    def judged(self) -> tuple[list[int], list[bool]]:
        """The records and answers that the model learns from, those of other judges in a shared reading included."""
        return self.team.judged

    @property
    def answers(self) -> dict[int, bool]:
        """The answers by record number, in the order of answering; duplicates of other records are not relevant."""
        return dict(self._mine.relevant)

    @property
    def unread(self) -> int:
        return len(self.records) - len(self._mine.relevant)

    @property
    def unmatched(self) -> list[ScreeningEntry]:
        """Entries of the journal about records that are not among these; they stay in the journal."""
        return self._mine.unmatched

    @property
    def rule(self) -> StoppingRule:
        """The stopping rule for the records that the ranking orders; those that judges looked for are left out."""
        n = len(self.records) - len(self.team.beforehand)
        if n != self._rule.n:
            self._rule = stopping_rule(self._rule.name, n, self._rule.target, self._rule.confidence)
        return self._rule

    def open_for(self, judge: str, most: int | None = None, *, with_aside: bool = True) -> list[OpenRecord]:
        """
        Return the records that a judge may read next, by decreasing priority.

        Records that others have read and that need another judge come first, then a random sample, the rest of the
        family of the last record, and the records that the model finds most likely relevant. What the judge put aside
        comes after these, and last what others did.
        """
        later, is_open = self.answers_of(judge).later, self._is_open(judge)
        aside = [number for number, judges in self._aside.items() if judges - {judge} and is_open[number]]
        if not with_aside:  # they stay with the judge who put them aside
            is_open[[number for number in aside if self._needed[number] == 1]] = False
            aside = [number for number in aside if is_open[number]]
        sample = self._sample()
        drawn = [] if sample is None else [number for number in sample.left if is_open[number]]
        drawn = [number for number in drawn if number not in later] or drawn
        last = [number for number in dict.fromkeys([*later, *aside]) if is_open[number] and number not in drawn]
        first = [number for number in self._richness_records if is_open[number] and number not in last]
        is_open[[*last, *drawn, *first]] = False
        again = set(np.flatnonzero(is_open & (self._n_read > 0)).tolist())
        second = [number for number in self.team.relevant if number in again] if again else []
        is_open[second] = False
        last_read = self.answers_of(judge).last
        family = [] if last_read is None else [item for item in self.unique.family(last_read) if is_open[item]]
        is_open[family] = False
        chosen: list[int] = [*second, *first, *drawn, *family, *self._ranked(np.flatnonzero(is_open), most), *last]
        return [OpenRecord(number, int(self._needed[number] - self._n_read[number])) for number in chosen[:most]]

    def why(self, number: int, judge: str | None = None) -> ScreeningEntry:
        if number in self._richness_records:
            return ScreeningEntry("", by="richness")
        sample = self._sample()
        if sample is not None and number in sample.left:
            return ScreeningEntry("", by="sample")
        if not self.team.has_found or self._scores is None:
            return ScreeningEntry("", by="start")
        score = self._scores[number]
        rank = 1 + int(np.count_nonzero(self._scores[self._is_open(judge or self.judge)] > score))
        return ScreeningEntry("", by="model", rank=rank, score=round(float(score), 4))

    @cached_property
    def _richness_records(self) -> dict[int, None]:
        """The first records, in random order; a larger number continues the order."""
        return dict.fromkeys(draw_order(len(self.records), (), self._seed)[: self._n_richness])

    def richness(self) -> str:
        """
        Return a sentence on the share of relevant records, by the first random sample.

        Only a sample without gaps is random: a record that was put aside ends it, and the share is stated when all of
        the sample is answered.
        """
        team = self.team
        if "richness" not in team.chosen_by.values():
            return ""
        drawn = draw_order(len(self.records), (), self._seed)
        size = next((i for i, number in enumerate(drawn) if team.chosen_by.get(number) not in BEFOREHAND), len(drawn))
        if size < self._n_richness:
            return f"Richness: {size} of {self._n_richness} random records are read."
        return richness_sentence(len(drawn), size, sum(team.relevant[number] for number in drawn[:size]))

    def prepare(self) -> None:
        if self.views is None:
            self.views = make_views(self.unique.linked())

    def fit(self, judged: tuple[Sequence[int], Sequence[bool]]) -> NDArray[np.float32] | None:
        """Return scores of all records; None before a relevant one is known. One thread may call it at a time."""
        self.prepare()
        sources = self.sources
        if self._model is None or self._model_sources is not sources:
            assert self.views is not None
            self._model, self._model_sources = ScreeningModel(self.views, sources), sources
        return self._model.scores(*judged) if any(judged[1]) else None

    @property
    def sources(self) -> NDArray[np.float64]:
        """Scores of the records by prior knowledge, one column for each source; the topic may change."""
        topic = self.topic or self.team.topic
        if self._sources is None or self._sources[0] != topic:
            assert self.views is not None
            self._sources = topic, self._prior.columns(self.records, self.views, topic)
        return self._sources[1]

    def install(self, scores: NDArray[np.float32] | None) -> None:
        self._scores = scores

    @property
    def advice(self) -> ScreeningAdvice:
        """The last advice; it is withheld if answers were withdrawn or a find was added since it was computed."""
        n_answers, finds = self._advice.given
        n_now = len(self.team.relevant)
        holds = n_now >= n_answers and tuple(self.team.finds) == finds
        if holds and self._advice.evidence == "all read":
            holds = n_now == len(self.records)
        if holds:
            return self._advice
        return replace(self._advice, may_stop=False, evidence=None, advised_since=None, advice="")

    @advice.setter
    def advice(self, advice: ScreeningAdvice) -> None:
        self._advice = advice

    def plan_advice(self) -> Callable[[], ScreeningAdvice]:
        """Return a function that computes the advice for the answers so far, in any thread."""
        team, rule, sample = self.team, self.rule, self._sample()
        richness = [sentence] if (sentence := self.richness()) else []
        finds, n_ranked, n_known = list(team.finds), len(team.ranked), team.n_known
        n_answers = len(team.relevant)
        unread = len(self.records) - n_answers
        to_sample = len(sample.left) if sample is not None else 0
        sampled = sample.lines() if sample is not None and team.is_sampled else None
        if self._forecaster.rule is not rule:
            self._forecaster = Forecaster(rule)
        forecaster, given = self._forecaster, (n_answers, tuple(finds))

        def compute() -> ScreeningAdvice:
            since, evidence, sentence = None, None, ""
            if not unread:
                evidence, sentence = "all read", "All records are read."
            elif rule.needs_sample:
                if sample is not None and not to_sample:
                    evidence, sentence = "sample", "You may stop: the random sample proves the target recall."
            else:
                since, sentence = advice_sentence(rule, finds, n_ranked, n_known, before=n_answers - n_ranked)
                evidence = "rule" if since is not None else None
            may_stop = evidence is not None
            if sampled is not None and unread:
                return ScreeningAdvice(
                    (*sampled, *richness), may_stop, to_sample, evidence, None, sentence, given=given
                )
            figures = forecaster.forecast(finds, n_ranked, n_known)
            return ScreeningAdvice(
                (*figures.lines(), *richness), may_stop, to_sample, evidence, since, sentence, figures, given
            )

        return compute

    def _entry(self, action: str, record: int, **values: Any) -> ScreeningEntry:
        if self._shown is not None and self._shown[0] == record:
            why = self._shown[1]
        else:
            why = ScreeningEntry("", by="model" if self.team.has_found else "start")
        return replace(why, action=action, id=self.records.ids[record], **values)

    def _hear(self) -> None:
        self._scores = self._prefetched = None

    def _require_open(self, record: int) -> None:
        self._require(record)
        if record in self._mine.relevant:
            raise InputError(
                f"record {self.records.ids[record]!r} is answered; withdraw the answer first with undo(), or change "
                "it with change()."
            )

    def _require(self, record: int) -> None:
        if not (is_integer(record) and 0 <= record < len(self.records)):
            raise InputError(f"record is {record!r}; pass a number from 0 to {len(self.records) - 1}.")

    def _ranked(self, unread: NDArray[np.intp], most: int | None) -> Iterable[int]:
        """Order unread records; if only some are wanted, the others are not sorted."""
        if not len(unread):
            return []
        if self._scores is not None and self.team.has_found:
            scores = self._scores[unread]
            if most == 1:
                return [int(unread[np.argmax(scores)])]
            if most is not None and most < len(unread):
                kept = np.sort(np.argpartition(-scores, most)[:most])
                unread, scores = unread[kept], scores[kept]
            return [int(number) for number in unread[np.argsort(-scores, kind="stable")]]
        rejected, first = self.team.relevant, []
        if self.views is not None and not self.team.has_found:
            first = [choose_first(self.views, unread, rejected, sources=self.sources, seed=self._seed)]
        order = np.random.default_rng([self._seed, len(rejected)]).permutation(unread).tolist()
        return list(dict.fromkeys([*first, *order]))

    def _sample(self) -> RandomSample | None:
        """The random sample, if the rule needs one and ranked reading may stop; it did if a sample has begun."""
        team, rule = self.team, self.rule
        if not rule.needs_sample:
            return None
        if not team.is_sampled and not rule.advises(team.finds, len(team.ranked), team.n_known):
            return None
        return RandomSample(team, len(self.records), rule, self._seed)
