"""A screening session: the next record to read, the answers, and an estimate of the recall."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.data.records.records import Records
from corank.errors import InputError
from corank.judging.screening.answers import ScreeningAnswers, ScreeningEntry, ScreeningJournal
from corank.judging.screening.model import ScreeningModel
from corank.judging.screening.stopping import RandomSample, RecallEstimate, stopping_rule
from corank.judging.screening.views import Views, make_views
from corank.parameters import is_integer


@dataclass(frozen=True)
class ScreeningProgress:
    """
    State of a screening.

    Attributes
    ----------
    n : int
        Number of records.
    read : int
        Number of answered records, including those known beforehand.
    found : int
        Number of relevant records among them.
    estimate : RecallEstimate or None
        Estimate of the recall; None before five finds, and once a random sample has begun.
    may_stop : bool
        Whether the stopping rule advises to stop, or all records are read.
    to_sample : int
        With the rule ``"sample"``, number of records of the random sample up to its next test.
    evidence : {None, "model", "sample", "all read"}
        What the advice to stop is based on; None without it. A model may be wrong: reading may stop before the target
        is reached.
    """

    n: int
    read: int
    found: int
    estimate: RecallEstimate | None
    may_stop: bool
    to_sample: int
    evidence: str | None = None


class Screening:
    """
    Find nearly all relevant records while reading few.

    The record with the highest score is read next, and every answer refits the model (see
    `corank.judging.screening.model`). Until the first relevant record is found, three ways of choosing take turns: the
    record most similar to the topic, the record most similar to all others, and a random record.

    Parameters
    ----------
    records : Records
        Records to screen; their labels are not used.
    topic : str, optional
        Description of relevant records; used until the first one is found.
    known : iterable of str
        Ids of records known to be relevant.
    rejected : iterable of str
        Ids of records known to be irrelevant.
    journal : ScreeningJournal, optional
        Journal that keeps the answers; answers in it are used.
    rule : {"decline", "poisson", "sample"}
        When reading may stop: by a careful model of the finds, by a cheap model, or by the cheap model and a random
        sample of the unread as proof (see `corank.judging.screening.stopping`).
    target : float
        Recall to reach.
    confidence : float
        Required probability that the target is reached.
    random_state : int
        Random seed.
    views : Views, optional
        Views of the same records, made before.

    Examples
    --------
    >>> from corank.judging.screening import Records, Screening
    >>> titles = ["tin mines", "tin price", "gold price", "copper mines", "gold rush"]
    >>> screening = Screening(Records(list("abcde"), titles, [""] * 5), known=["a"])
    >>> screening.answer(screening.next(), relevant=True)
    >>> screening.progress().found
    2
    """

    def __init__(
        self,
        records: Records,
        *,
        topic: str | None = None,
        known: Iterable[str] = (),
        rejected: Iterable[str] = (),
        journal: ScreeningJournal | None = None,
        rule: str = "decline",
        target: float = 0.95,
        confidence: float = 0.95,
        random_state: int = 0,
        views: Views | None = None,
    ) -> None:
        self.records = records
        self._seed = random_state
        self._journal = journal
        self._answers = ScreeningAnswers(records, journal.entries if journal else ())
        start = dict.fromkeys(records.numbers_of(known), "relevant")
        start |= dict.fromkeys(records.numbers_of(rejected), "not")
        start = {number: action for number, action in start.items() if number not in self._answers.relevant}
        n_known = len(start) + len(self._answers.beforehand)
        self._rule = stopping_rule(rule, len(records) - n_known, target, confidence)
        self._views = views if views is not None else make_views(records)
        self._model = ScreeningModel(self._views)
        for number, action in start.items():
            self._record(ScreeningEntry(action, records.ids[number], "known"))
        if topic and topic != self._answers.topic:
            self._record(ScreeningEntry("topic", text=topic))
        self._scores: NDArray[np.float32] | None = None
        self._prefetched: tuple[int, dict[bool, NDArray[np.float32]]] | None = None

    def next(self) -> int | None:
        """
        Choose the record to read next.

        Returns
        -------
        int or None
            Its number, from 0; None if every record is answered. Postponed records come when no other is left.
        """
        unread = self._unread()
        return None if not len(unread) else int(self._choose(unread))

    def answer(self, record: int, relevant: bool) -> None:
        """
        Record an answer. If there is a journal, the answer is on the disk when this returns.

        Parameters
        ----------
        record : int
            Number of the record, which must not be answered yet.
        relevant : bool
            Whether it is relevant.
        """
        self._require(record)
        if record in self._answers.relevant:
            raise InputError(f"record {self.records.ids[record]!r} is answered; withdraw the answer first with undo().")
        sample = self._sample()
        is_in_sample = sample is not None and record in sample.left
        chosen_by = "sample" if is_in_sample else "model" if self._answers.has_found else "start"
        self._record(ScreeningEntry("relevant" if relevant else "not", self.records.ids[record], chosen_by))
        prefetched, self._prefetched = self._prefetched, None
        self._scores = prefetched[1].get(relevant) if prefetched is not None and prefetched[0] == record else None

    def later(self, record: int) -> None:
        """
        Postpone a record until no other is left.

        Parameters
        ----------
        record : int
            Number of the record.
        """
        self._require(record)
        self._record(ScreeningEntry("later", self.records.ids[record]))

    def note(self, record: int, text: str) -> None:
        """
        Attach a note to a record.

        Parameters
        ----------
        record : int
            Number of the record.
        text : str
            The note; it replaces an older one.
        """
        self._require(record)
        self._record(ScreeningEntry("note", self.records.ids[record], text=text))

    def undo(self) -> int | None:
        """
        Withdraw the last answer or postponement.

        Returns
        -------
        int or None
            Number of the record, which is to be answered again; None if there is no answer.
        """
        last = self._answers.last
        if last is None:
            return None
        self._record(ScreeningEntry("undo", self.records.ids[last]))
        self._scores = self._prefetched = None
        return last

    def prefetch(self, record: int) -> None:
        """
        Fit the model for both answers to a record while it is being read, so that `next` returns at once.

        Parameters
        ----------
        record : int
            Number of the record.
        """
        self._require(record)
        judged, self._prefetched = self._answers.relevant, None
        if record not in judged:
            possible = (False, True) if self._answers.has_found else (True,)
            numbers, answers = [*judged, record], [*judged.values()]
            self._prefetched = (
                record,
                {answer: self._model.scores(numbers, [*answers, answer]) for answer in possible},
            )

    def progress(self) -> ScreeningProgress:
        """
        Return the state of the screening.

        Returns
        -------
        ScreeningProgress
            Counts, an estimate of the recall, and whether reading may stop.
        """
        answers = self._answers
        estimate = None
        if not answers.is_sampled:
            estimate = self._rule.estimate(answers.finds, len(answers.ranked), answers.n_known)
        sample = self._sample()
        to_sample = len(sample.left) if sample is not None else 0
        may_stop = self.unread == 0 or (self._may_stop() and not to_sample)
        by_rule = "sample" if self._rule.needs_sample else "model"
        evidence = None if not may_stop else by_rule if self.unread else "all read"
        return ScreeningProgress(
            len(self.records), len(answers.relevant), answers.n_found, estimate, may_stop, to_sample, evidence
        )

    @property
    def answers(self) -> dict[int, bool]:
        """The answers by record number, in the order of answering."""
        return dict(self._answers.relevant)

    @property
    def notes(self) -> dict[int, str]:
        """The notes by record number."""
        return dict(self._answers.notes)

    @property
    def unread(self) -> int:
        """Number of records without an answer."""
        return len(self.records) - len(self._answers.relevant)

    def _record(self, entry: ScreeningEntry) -> None:
        if self._journal is not None:
            self._journal.append(entry)
        self._answers.add(entry)

    def _require(self, record: int) -> None:
        if not (is_integer(record) and 0 <= record < len(self.records)):
            raise InputError(f"record is {record!r}; pass a number from 0 to {len(self.records) - 1}.")

    def _unread(self) -> NDArray[np.intp]:
        everything = np.arange(len(self.records))
        unread = np.delete(everything, [*self._answers.relevant])
        now = np.delete(everything, [*self._answers.relevant, *self._answers.later])
        return now if len(now) else unread

    def _choose(self, unread: NDArray[np.intp]) -> int:
        sample = self._sample()
        if sample is not None and sample.next is not None:
            return sample.next
        judged = self._answers.relevant
        if not self._answers.has_found:
            return choose_first(self._views, unread, judged, topic=self._answers.topic, seed=self._seed)
        if self._scores is None:
            self._scores = self._model.scores([*judged], [*judged.values()])
        return int(unread[np.argmax(self._scores[unread])])

    def _may_stop(self) -> bool:
        """Whether ranked reading may stop; it did if a sample has begun."""
        answers = self._answers
        if self._rule.needs_sample and answers.is_sampled:
            return True
        return self._rule.advises(answers.finds, len(answers.ranked), answers.n_known)

    def _sample(self) -> RandomSample | None:
        """The random sample, if the rule needs one and ranked reading may stop."""
        if not (self._rule.needs_sample and self._may_stop()):
            return None
        return RandomSample(self._answers, len(self.records), self._rule, self._seed)


def choose_first(
    views: Views, unread: NDArray[np.intp], rejected: Iterable[int], *, topic: str = "", seed: int = 0
) -> int:
    """
    Choose a record while no relevant one is known: most similar to the topic, most typical, and random, in turn.

    A typical record is similar to many records and to few rejected ones. The topic is not used as a relevant record: it
    has no citations, and the model would learn that.

    unread: numbers of the records to choose from.
    rejected: numbers of the records found irrelevant.
    topic: description of relevant records; without it the other two ways take turns.
    seed: random seed.
    """
    irrelevant = np.array([*rejected], dtype=np.intp)
    ways = ["topic", "typical", "random"] if topic else ["typical", "random"]
    way = ways[len(irrelevant) % len(ways)]
    if way == "random":
        return int(np.random.default_rng([seed, len(irrelevant)]).choice(unread))
    if way == "topic":
        scores = views.likeness(topic)
    else:
        scores = views.typical
        if len(irrelevant):
            scores = scores - views.times(views.take(irrelevant), np.full(len(irrelevant), 1 / len(irrelevant)))
    return int(unread[np.argmax(scores[unread])])
