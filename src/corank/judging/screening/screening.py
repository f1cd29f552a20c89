"""Screening: which record to read next, what was answered, and how much is probably still to be found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corank.data.records.records import Records
from corank.errors import InputError
from corank.judging.screening.answers import Answers
from corank.judging.screening.journal import Line
from corank.judging.screening.model import Model
from corank.judging.screening.sample import Sample
from corank.judging.screening.start import choose_first
from corank.judging.screening.stopping import Estimate, Rule
from corank.judging.screening.views import Views, make_views
from corank.parameters import is_whole

if TYPE_CHECKING:
    from corank.judging.screening.journal import Journal


@dataclass(frozen=True)
class Progress:
    """
    How far a screening has come.

    Attributes
    ----------
    n : int
        Number of records.
    read : int
        Records that were answered, those known beforehand among them.
    found : int
        Relevant ones among them.
    estimate : Estimate or None
        What is probably still unread, by the model of finds; None before five finds, and once a random sample began.
    may_stop : bool
        Whether the rule says that the target is reached.
    to_sample : int
        With the rule ``"sample"``, records of the random sample up to its next test, if sampling began or begins now.
    """

    n: int
    read: int
    found: int
    estimate: Estimate | None
    may_stop: bool
    to_sample: int


class Screening:
    """
    Find nearly all relevant records while reading few.

    The record with the highest score is read next; every answer refits the model (see
    `corank.judging.screening.model`). Until the first relevant record is known, records are chosen in turn by likeness
    to the topic, by how many others they resemble, and at random.

    Parameters
    ----------
    records : Records
        What to screen; labels are not looked at.
    topic : str, optional
        What relevant records are about; used until the first is found.
    known : iterable of str
        Ids of records that are known to be relevant.
    rejected : iterable of str
        Ids of records that are known not to be.
    journal : Journal, optional
        Where answers are kept; those that it holds are taken up.
    rule : {"decline", "poisson", "sample"}
        When reading may stop: a careful model of finds, a cheap one, or the cheap one and then a random sample of the
        unread that proves the target (see `corank.judging.screening.stopping`).
    target, confidence : float
        The recall that is wanted, and how sure of it one must be.
    random_state : int
        Seed of the records that are chosen at random.
    views : Views, optional
        Made from the same records before.

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
        journal: Journal | None = None,
        rule: str = "decline",
        target: float = 0.95,
        confidence: float = 0.95,
        random_state: int = 0,
        views: Views | None = None,
    ) -> None:
        self.records = records
        self._seed = random_state
        self._journal = journal
        self._answers = Answers(records, journal.lines if journal else ())
        start = dict.fromkeys(records.numbers_of(known), "relevant")
        start |= dict.fromkeys(records.numbers_of(rejected), "not")
        start = {number: action for number, action in start.items() if number not in self._answers.relevant}
        n_known = len(start) + len(self._answers.beforehand)
        self._rule = Rule(rule, len(records) - n_known, target, confidence)
        self._views = views if views is not None else make_views(records)
        self._model = Model(self._views)
        for number, action in start.items():
            self._note(Line(action, records.ids[number], "known"))
        if topic and topic != self._answers.topic:
            self._note(Line("topic", text=topic))
        self._scores: NDArray[np.float32] | None = None
        self._foreseen: tuple[int, dict[bool, NDArray[np.float32]]] | None = None

    def next(self) -> int | None:
        """
        Choose the record to read next.

        Returns
        -------
        int or None
            Its number, from 0; None where every record was answered. Records put off come when no other is left.
        """
        unread = self._unread()
        return None if not len(unread) else int(self._choose(unread))

    def answer(self, record: int, relevant: bool) -> None:
        """
        Take an answer; it is on the disk when this returns, where there is a journal.

        Parameters
        ----------
        record : int
            Number of the record; any that is not answered.
        relevant : bool
            Whether it is relevant.
        """
        self._require(record)
        if record in self._answers.relevant:
            raise InputError(f"record {self.records.ids[record]!r} was answered; take that back first with undo().")
        sample = self._sample()
        is_sampled = sample is not None and record in sample.left
        by = "sample" if is_sampled else "model" if self._answers.has_found else "start"
        self._note(Line("relevant" if relevant else "not", self.records.ids[record], by))
        foreseen, self._foreseen = self._foreseen, None
        self._scores = foreseen[1].get(relevant) if foreseen is not None and foreseen[0] == record else None

    def later(self, record: int) -> None:
        """
        Put a record off until no other is left.

        Parameters
        ----------
        record : int
            Number of the record.
        """
        self._require(record)
        self._note(Line("later", self.records.ids[record]))

    def note(self, record: int, text: str) -> None:
        """
        Keep a note with a record.

        Parameters
        ----------
        record : int
            Number of the record.
        text : str
            The note; it takes the place of an older one.
        """
        self._require(record)
        self._note(Line("note", self.records.ids[record], text=text))

    def undo(self) -> int | None:
        """
        Take the last answer, or the last putting off, back.

        Returns
        -------
        int or None
            Number of the record, which is to be answered again; None where nothing was answered.
        """
        last = self._answers.last
        if last is None:
            return None
        self._note(Line("undo", self.records.ids[last]))
        self._scores = self._foreseen = None
        return last

    def foresee(self, record: int) -> None:
        """
        Learn both answers to a record while it is being read, so that the next one is known at once.

        Parameters
        ----------
        record : int
            Number of the record that is being read.
        """
        self._require(record)
        judged, self._foreseen = self._answers.relevant, None
        if record not in judged:
            learns = (False, True) if self._answers.has_found else (True,)
            numbers, answers = [*judged, record], [*judged.values()]
            self._foreseen = (record, {answer: self._model.scores(numbers, [*answers, answer]) for answer in learns})

    def progress(self) -> Progress:
        """
        Say how far it has come.

        Returns
        -------
        Progress
            With an estimate of the recall.
        """
        answers, rule = self._answers, self._rule
        finds, read = answers.finds, len(answers.ordered)
        estimate = None if answers.is_sampled else rule.estimate(finds, read, answers.n_known)
        sample = self._sample()
        to_sample = len(sample.left) if sample is not None else 0
        may_stop = self.unread == 0 or (self._may_stop() and not to_sample)
        return Progress(len(self.records), len(answers.relevant), answers.n_found, estimate, may_stop, to_sample)

    @property
    def answers(self) -> dict[int, bool]:
        """What was answered, by the number of the record, in the order of answering."""
        return dict(self._answers.relevant)

    @property
    def notes(self) -> dict[int, str]:
        """Notes, by the number of the record."""
        return dict(self._answers.notes)

    @property
    def unread(self) -> int:
        """Number of records that are not answered."""
        return len(self.records) - len(self._answers.relevant)

    def _note(self, line: Line) -> None:
        if self._journal is not None:
            self._journal.append(line)
        self._answers.take(line)

    def _require(self, record: int) -> None:
        if not (is_whole(record) and 0 <= record < len(self.records)):
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
        """Whether ranked reading may stop; once a sample was begun, it did."""
        answers = self._answers
        if self._rule.name == "sample" and answers.is_sampled:
            return True
        return self._rule.advises(answers.finds, len(answers.ordered), answers.n_known)

    def _sample(self) -> Sample | None:
        """The random sample, where the rule asks for one and it began or is to begin; None in ranked reading."""
        if self._rule.name != "sample" or not self._may_stop():
            return None
        return Sample(self._answers, len(self.records), self._rule, self._seed)
