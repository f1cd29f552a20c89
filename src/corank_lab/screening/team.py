"""
A screening by several judges at once, whose answers are stored elsewhere: who reads what next, and what is known.

Each record is read by `overlap` judges if it belongs to the shared part, else by one; a hash of the record draws that
part. One model learns from all answers. Fitting (`fit`) and installing (`install`) are apart, so that a thread may fit
while questions are answered from the last scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry, prior_entries
from corank_lab.screening.choosing import choose_first
from corank_lab.screening.judges import combine, find_conflicts
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.model import ScreeningModel
from corank_lab.screening.stopping.forecast import Forecast, make_forecast
from corank_lab.screening.stopping.rule import StoppingRule
from corank_lab.screening.stopping.rules import DEFAULT_RULE, stopping_rule
from corank_lab.screening.stopping.sampling import RandomSample
from corank_lab.screening.views import Views, make_views

KNOWN = "labels of the file"
"""Name under which labels of the file count as answers."""


class OpenRecord(NamedTuple):
    """
    A record that a judge may get next.

    number: of the record.
    slots: number of judges who may still read it.
    """

    number: int
    slots: int


@dataclass(frozen=True)
class TeamForecast:
    """
    What is known of the recall.

    lines: what is estimated, tested and proved, one sentence each.
    may_stop: whether the stopping rule advises to stop, or all records are read.
    evidence {"", "model", "sample", "all read"}: what the advice is based on.
    figures: the numbers behind the lines; None before the first forecast and while a sample is read.
    advised_since: number of records read when the present advice of a model came; None without it.
    n_found: number of relevant records known at the forecast.
    """

    lines: tuple[str, ...] = ()
    may_stop: bool = False
    evidence: str = ""
    figures: Forecast | None = None
    advised_since: int | None = None
    n_found: int = 0


class TeamScreening:
    """
    The answers of all judges of one collection.

    unique: The records; duplicates are judged as one.
    overlap: Number of judges who read a record of the shared part.
    shared: Share of the records that `overlap` judges read.
    topic: Description of relevant records, used until the first one is found.
    labels: Whether labels of the records are used as known answers.
    rule, target, confidence: As in `corank_lab.screening.Screening`.
    random_state: Random seed.

    judges: The answers of each judge.
    views: Views of the records; None until `prepare` is called.
    forecast: The last forecast.

    >>> from corank_lab.records.records import Records
    >>> titles = ["tin mines", "tin price", "gold price", "gold rush"]
    >>> team = TeamScreening(UniqueRecords(Records(list("abcd"), titles, [""] * 4)))
    >>> team.add("ann", ScreeningEntry("relevant", "a"))
    0
    >>> team.prepare()
    >>> team.install(team.fit(team.snapshot()))
    >>> team.open_for("bob")[0].number
    1
    """

    def __init__(
        self,
        unique: UniqueRecords,
        *,
        overlap: int = 1,
        shared: float = 1.0,
        topic: str = "",
        labels: bool = False,
        rule: str = DEFAULT_RULE,
        target: float = 0.95,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> None:
        self.unique, self.records = unique, unique.unique
        n = len(self.records)
        known = label_answers(unique) if labels else ScreeningAnswers(unique)
        self.judges: dict[str, ScreeningAnswers] = {KNOWN: known} if known.relevant else {}
        self._rule = stopping_rule(rule, n - len(known.relevant), target, confidence)
        self.topic, self._seed = topic, random_state
        self._needed = np.where(drawn_records(self.records.ids, shared), max(overlap, 1), 1)
        self._needed[list(known.relevant)] = 0
        self._readers: dict[int, set[str]] = {}
        self._n_read = np.zeros(n, dtype=np.int64)
        self._aside: dict[int, set[str]] = {}
        self._team: ScreeningAnswers | None = None
        self.views: Views | None = None
        self._model: ScreeningModel | None = None
        self._scores: NDArray[np.float32] | None = None
        self.forecast = TeamForecast()

    def add(self, judge: str, entry: ScreeningEntry) -> int | None:
        """Apply an entry of a judge."""
        answers = self.answers_of(judge)
        number = answers.add(entry)
        if entry.action == "topic":
            self._team = None
        if number is None or entry.action == "note":
            return number
        readers, aside = (place.setdefault(number, set()) for place in (self._readers, self._aside))
        is_read = number in answers.relevant and answers.chosen_by[number] != "adjudication"
        (readers.add if is_read else readers.discard)(judge)
        (aside.add if number in answers.later else aside.discard)(judge)
        self._n_read[number] = len(readers)
        self._extend(number, entry)
        return number

    def answers_of(self, judge: str) -> ScreeningAnswers:
        """Return the answers of a judge."""
        if judge not in self.judges:
            self.judges[judge] = ScreeningAnswers(self.unique)
            self._team = None
        return self.judges[judge]

    @property
    def team(self) -> ScreeningAnswers:
        """The answers of all judges together."""
        if len(self.judges) == 1:
            return next(iter(self.judges.values()))
        if self._team is None:
            self._team = combine(self.judges) if self.judges else ScreeningAnswers(self.unique)
        return self._team

    @property
    def rule(self) -> StoppingRule:
        """The stopping rule for the records that the ranking orders; those that judges looked for are left out."""
        n = len(self.records) - len(self.team.beforehand)
        if n != self._rule.n:
            self._rule = stopping_rule(self._rule.name, n, self._rule.target, self._rule.confidence)
        return self._rule

    @property
    def conflicts(self) -> list[int]:
        """Records on which judges disagree, not settled, in the order of the file."""
        return find_conflicts(self.judges) if len(self.judges) > 1 else []

    @property
    def n_finished(self) -> int:
        """Number of records that as many judges have read as are needed, or that are known or settled."""
        done = self._n_read >= self._needed
        done[self._settled] = True
        return int(np.count_nonzero(done))

    def open_for(self, judge: str, most: int | None = None) -> list[OpenRecord]:
        """
        Return the records that a judge may read next, by decreasing priority.

        Records that others have read and that need another judge come first, then the records that the model finds
        most likely relevant. What the judge put aside comes after these, and last what others put aside.
        """
        mine = self.answers_of(judge)
        is_open = self._n_read < self._needed
        is_open[[*mine.relevant, *self._settled]] = False
        later = [number for number in mine.later if is_open[number]]
        is_open[later] = False
        others = [number for number, judges in self._aside.items() if judges and is_open[number]]
        is_open[others] = False
        second = [number for number in self.team.relevant if is_open[number] and self._n_read[number]]
        is_open[second] = False
        chosen: list[int] = [*second, *self._ranked(np.flatnonzero(is_open), most), *later, *others]
        chosen = chosen if most is None else chosen[:most]
        return [OpenRecord(number, int(self._needed[number] - self._n_read[number])) for number in chosen]

    def slots_for(self, judge: str, number: int) -> int:
        """Return how many judges may still read a record, if this judge may; 0 if not, or if the judge put it aside."""
        mine = self.answers_of(judge)
        if number in mine.relevant or number in mine.later or number in self._settled:
            return 0
        return max(int(self._needed[number] - self._n_read[number]), 0)

    def slots(self, number: int) -> int:
        """Return how many judges read a record."""
        return int(self._needed[number])

    def taken_from(self, judge: str) -> NDArray[np.bool_]:
        """Return which records other judges have read or put aside, and this judge need not read."""
        taken = self._n_read >= self._needed
        aside = [number for number, judges in self._aside.items() if judges - {judge}]
        taken[[number for number in aside if self._needed[number] == 1]] = True
        return taken

    def n_elsewhere(self, judge: str, held: Sequence[int]) -> int:
        """Return the number of records that nobody has read, but that others hold or have put aside."""
        numbers = {*held, *(number for number, judges in self._aside.items() if judges - {judge})}
        return sum(self._needed[number] == 1 and not self._n_read[number] for number in numbers)

    def why(self, number: int) -> ScreeningEntry:
        """Return an entry without an action that says why a record is shown: by what, rank and score."""
        sample = self._sample()
        if sample is not None and number in sample.left:
            return ScreeningEntry("", by="sample")
        if not self.team.has_found or self._scores is None:
            return ScreeningEntry("", by="start")
        score = self._scores[number]
        rank = 1 + int(np.count_nonzero(self._scores[self._n_read < self._needed] > score))
        return ScreeningEntry("", by="model", rank=rank, score=round(float(score), 4))

    def prepare(self, views: Views | None = None) -> None:
        """Make the views that the model needs, or use those that were made before."""
        if self.views is None:
            views = make_views(self.records) if views is None else views
            self._model = ScreeningModel(views)
            self.views = views

    def snapshot(self) -> tuple[list[int], list[bool]]:
        """Return the records and answers that the model learns from."""
        return self.team.judged

    def fit(self, judged: tuple[Sequence[int], Sequence[bool]]) -> NDArray[np.float32] | None:
        """Return scores of all records; None before a relevant one is known. One thread may call it at a time."""
        if self._model is None or not any(judged[1]):
            return None
        return self._model.scores(*judged)

    def install(self, scores: NDArray[np.float32] | None) -> None:
        """Use new scores."""
        self._scores = scores

    @property
    def advice(self) -> TeamForecast:
        """The last forecast; its advice is withheld if the answers no longer fit it, until the next forecast."""
        if self.forecast.evidence == "all read":
            holds = len(self.team.relevant) == len(self.records)
        else:
            holds = self.forecast.n_found == self.team.n_found
        if holds:
            return self.forecast
        return replace(self.forecast, may_stop=False, evidence="", advised_since=None)

    def plan_forecast(self) -> Callable[[], TeamForecast]:
        """Return a function that computes the forecast for the answers so far, in any thread."""
        team, rule = self.team, self.rule
        finds, n_ranked, n_known = list(team.finds), len(team.ranked), team.n_known
        n_found, n_other = team.n_found, len(team.relevant) - len(team.ranked)
        unread, is_sampled = len(self.records) - len(team.relevant), team.is_sampled
        sample = self._sample()
        to_sample = len(sample.left) if sample is not None else 0

        def compute() -> TeamForecast:
            if not unread:
                figures = make_forecast(rule, finds, n_ranked, n_known)
                return TeamForecast(figures.lines(), True, "all read", figures, n_found=n_found)
            may_stop = (is_sampled or rule.advises(finds, n_ranked, n_known)) and not to_sample
            evidence = "" if not may_stop else "sample" if rule.needs_sample else "model"
            if is_sampled:
                done = f"{to_sample} records until its next test" if to_sample else "its test has succeeded"
                line = f"Proof: the random sample is being read; {done}."
                return TeamForecast((line,), may_stop, evidence, n_found=n_found)
            since = None
            if evidence == "model":
                since = (rule.advised_since(finds, n_ranked, n_known) or 0) + n_other
            figures = make_forecast(rule, finds, n_ranked, n_known)
            return TeamForecast(figures.lines(), may_stop, evidence, figures, since, n_found)

        return compute

    def _ranked(self, unread: NDArray[np.intp], most: int | None) -> Iterable[int]:
        """Order unread records; if only some are wanted, the others are not sorted."""
        if not len(unread):
            return []
        sample = self._sample()
        first: list[int] = []
        if sample is not None:
            is_unread = np.zeros(len(self.records), dtype=np.bool_)
            is_unread[unread] = True
            first = [number for number in sample.left if is_unread[number]]
            unread = np.setdiff1d(unread, np.array(first, dtype=np.intp))
        if self._scores is not None and self.team.has_found:
            scores = self._scores[unread]
            if most is not None and most < len(unread):
                kept = np.argpartition(-scores, most)[:most]
                unread, scores = unread[kept], scores[kept]
            return [*first, *unread[np.argsort(-scores, kind="stable")].tolist()]
        rejected = self.team.relevant
        order = np.random.default_rng([self._seed, len(rejected)]).permutation(unread).tolist()
        if self.views is not None and len(unread) and not self.team.has_found:
            topic = self.topic or self.team.topic
            first.append(choose_first(self.views, unread, rejected, topic=topic, seed=self._seed))
        return list(dict.fromkeys([*first, *order]))

    @property
    def _settled(self) -> list[int]:
        return [number for answers in self.judges.values() for number in answers.adjudicated]

    def _sample(self) -> RandomSample | None:
        team, rule = self.team, self.rule
        if not rule.needs_sample:
            return None
        if not team.is_sampled and not rule.advises(team.finds, len(team.ranked), team.n_known):
            return None
        return RandomSample(team, len(self.records), rule, self._seed)

    def _extend(self, number: int, entry: ScreeningEntry) -> None:
        """Add an answer to those of the team, or have them made anew if it changes an earlier one."""
        team = self._team
        if team is None or (entry.action == "later" and number not in team.current):
            return
        if entry.action in ("relevant", "not") and entry.by not in ("history", "adjudication"):
            if number not in team.current:
                team.add(entry)
                return
            if team.current[number].action == entry.action and number not in self._settled:
                return
        self._team = None


def label_answers(unique: UniqueRecords) -> ScreeningAnswers:
    """Return the labels of records as known answers."""
    known = ScreeningAnswers(unique)
    for entry in prior_entries(known, (), (), labels=True):
        known.add(entry)
    return known


def drawn_records(ids: Sequence[str], share: float) -> NDArray[np.bool_]:
    """Return which records every judge reads."""
    if share <= 0.0 or share >= 1.0:
        return np.full(len(ids), share >= 1.0)
    hashes = (hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest() for name in ids)
    values = np.frombuffer(b"".join(hashes), dtype=">u8").astype(np.float64) / 2.0**64
    return np.asarray(values < share)
