"""A paragraph for the methods section of a review, with the numbers filled in; it states only what is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank import __version__
from corank.console import one_line
from corank.metrics import cohen_kappa
from corank.tables import ReportTable
from corank_lab.screening.answers import Judges, find_conflicts, independent
from corank_lab.screening.prisma import NO_REASON, PrismaCounts
from corank_lab.screening.stopping.rules import StoppingRule, accepted_error
from corank_lab.screening.stopping.urns import require_richness

MAX_REASONS = 8
"""Number of reasons that the paragraph lists; more are counted together."""

EVIDENCE = {
    "estimated": "That the target is reached is an estimate of a model, not a proof.",
    "tested": "That the target is missed was rejected by a statistical test.",
    "proved": "That the target is reached was shown by an exact bound from a random sample.",
}
"""What each kind of evidence amounts to."""


class PairAgreement(NamedTuple):
    """Agreement of two judges on one question."""

    first: str  # first, second: the judges
    second: str
    question: str  # "included", or a reason of exclusion: whether a judge gave it, among the records that both excluded
    n_both: int  # number of records that both answered
    n_same: int  # number of these with the same answer
    n_yes: int  # number of these for which both answered yes
    kappa: float  # Cohen's kappa; NaN if it is undefined
    # low, high: 95 % interval of kappa: quantiles of its posterior under a Jeffreys prior of the four shares
    low: float
    high: float


@dataclass(frozen=True)
class ScreeningFacts:
    """What is known about a screening; what is empty is not mentioned."""

    counts: PrismaCounts  # numbers of records
    judges: Sequence[str] = ()  # names of the judges
    model: str = ""  # the model that orders records, such as "a linear model of words and citations"
    seed: int | None = None  # random seed
    rule: StoppingRule | None = None  # the stopping rule
    is_reached: bool = False  # whether the rule advised to stop
    bound: float | None = None  # lower bound of the recall that a random sample proves at the confidence
    duplicates_by: str = ""  # how duplicates were found, such as "identifiers and similar titles"
    n_known: int = 0  # number of records whose answer was known before the screening
    n_searched: int = 0  # number of records that a judge looked for, outside of the ranking
    n_sampled: int = 0  # number of records that were drawn at random
    n_double: int = 0  # number of records that at least two judges read
    agreement: Sequence[PairAgreement] = ()  # agreement of each pair of judges on inclusion
    n_settled: int = 0  # number of disagreements that an adjudicator settled
    adjudicators: Sequence[str] = ()  # names of the adjudicators
    version: str = __version__  # version of corank


def methods_paragraph(facts: ScreeningFacts) -> str:
    """
    Describe a screening in plain scientific English.

    >>> counts = PrismaCounts((("PubMed", 12),), 1, 0, (("animals", 8),), 3)
    >>> print(methods_paragraph(ScreeningFacts(counts, ["ann"], version="1.0")))
    The search identified 12 records from PubMed. 1 duplicate was removed, which left 11 records. One judge (ann)
    screened titles and abstracts with corank, version 1.0. All 11 records were screened. Of the 11 screened records,
    8 were excluded (animals: 8), and 3 were included, to be sought for full text.
    """
    parts = [_identified, _duplicates, _judges, _order, _agreement, _stopping, _result]
    return one_line(" ".join(sentence for part in parts if (sentence := part(facts))))


def protocol_paragraph(n: int, files: Mapping[str, str], rule: StoppingRule, seed: int, richness: int) -> str:
    """
    Describe a screening before it begins, to be registered: what a certificate cannot show was fixed beforehand.

    n: Number of records to judge.
    files: SHA-256 of the file of each name.
    """
    listed = "; ".join(f"{name} (SHA-256 {sha256})" for name, sha256 in files.items())
    first = " First, {} random records are read, to estimate how many are relevant." if richness else ""
    first = first.format(require_richness(richness, n))
    sample = (
        " When its model expects that the target is reached, random unread records are read in the order of the seed "
        "until an exact test proves the target; its looks share the error: a half, a quarter, and so on."
    )
    return (
        f"{_n(n, 'record')} of {listed} will be screened by title and abstract with corank, version {__version__}, "
        f"random seed {seed}.{first} The records that a model finds most likely relevant are read first; it learns "
        f"from every answer. Reading stops when the rule '{rule.name}' advises it, which aims at a recall of "
        f"{rule.target:g} with an accepted error of {accepted_error(rule.confidence)}, over many screenings. Kind of "
        f"evidence: {rule.evidence}.{sample if rule.needs_sample else ''} The rule assumes: {rule.assumes} Files, "
        "rule, target, error and seed will not be changed once the first record is read; a certificate will state them "
        "with hashes of all answers."
    )


def _identified(facts: ScreeningFacts) -> str:
    counts = facts.counts
    if len(counts.identified) == 1:
        return f"The search identified {_n(counts.n_identified, 'record')} from {counts.identified[0][0]}."
    sources = [f"{name} ({n})" for name, n in counts.identified]
    return f"The search identified {_n(counts.n_identified, 'record')} from {len(sources)} sources: {_listed(sources)}."


def _duplicates(facts: ScreeningFacts) -> str:
    counts = facts.counts
    how = f" by {facts.duplicates_by}" if facts.duplicates_by else ""
    if not counts.n_duplicates:
        return f"corank searched for duplicates{how} and found none." if how else ""
    result, marked = counts.duplicates_found, counts.duplicates_marked
    left = f"which left {_n(counts.unique, 'record')}."
    if result and marked:
        return (
            f"{_n(result, 'duplicate')} {_were(result)} removed{_aside(how)}, and judges marked {marked} more, {left}"
        )
    if marked:
        return f"Judges marked {_n(marked, 'duplicate')}, {left}"
    return f"{_n(result, 'duplicate')} {_were(result)} removed{_aside(how)}, {left}"


def _aside(how: str) -> str:
    return f" (found{how})" if how else ""


def _judges(facts: ScreeningFacts) -> str:
    tool = f"with corank, version {facts.version}"
    n = len(facts.judges)
    if not n:
        return f"Titles and abstracts were screened {tool}."
    sentence = (
        f"{_word(n)} {'judge' if n == 1 else 'judges'} ({_listed(facts.judges)}) screened titles and abstracts {tool}."
    )
    if facts.n_known:
        sentence += f" The answer to {_n(facts.n_known, 'record')} was known before the screening."
    if facts.n_searched:
        sentence += f" {_n(facts.n_searched, 'record')} {_were(facts.n_searched)} looked for, outside of the ranking."
    return sentence


def _order(facts: ScreeningFacts) -> str:
    if not facts.model:
        return ""
    seed = "" if facts.seed is None else f" (random seed {facts.seed})"
    sample = f" {_n(facts.n_sampled, 'record')} {_were(facts.n_sampled)} drawn at random." if facts.n_sampled else ""
    return (
        f"The records were read in the order of {facts.model}, which learned from every answer{seed}: the record with "
        f"the highest score was read next.{sample}"
    )


def _agreement(facts: ScreeningFacts) -> str:
    sentences = []
    if facts.n_double:
        sentences.append(f"At least two judges read {_n(facts.n_double, 'record')}.")
    for item in facts.agreement:
        pair = (
            f"{item.first} and {item.second}" if len(facts.agreement) > 1 or len(facts.judges) > 2 else "the two judges"
        )
        both = f"{_n(item.n_both, 'record')} read by both"
        if math.isnan(item.kappa):
            sentences.append(f"Cohen's kappa of {pair} is undefined ({both}).")
        else:
            interval = f"95 % interval {item.low:.2f} to {item.high:.2f}, {both}"
            sentences.append(
                f"Cohen's kappa of {pair} for inclusion was {round(item.kappa, 2) + 0.0:.2f} ({interval})."
            )
    n_open = facts.counts.conflicts
    if facts.n_settled:
        who = f"Adjudication ({_listed(facts.adjudicators)})" if facts.adjudicators else "Adjudication"
        sentences.append(f"{who} settled {_n(facts.n_settled, 'disagreement')}.")
    if n_open:
        sentences.append(f"{_n(n_open, 'disagreement')} {'is' if n_open == 1 else 'are'} not settled.")
    return " ".join(sentences)


def _stopping(facts: ScreeningFacts) -> str:
    counts, rule = facts.counts, facts.rule
    if not counts.unread:
        return f"All {_n(counts.unique, 'record')} were screened." if counts.unique > 1 else ""
    left = f"{_n(counts.unread, 'record')} {_were(counts.unread)} not screened"
    if rule is None:
        return f"{left}: {counts.why_unread}." if counts.stopped_by else f"{left}; the screening was not finished."
    goal = f"a recall of {rule.target:.4g} at a confidence of {rule.confidence:.4g}"
    proved = "" if facts.bound is None else f" The sample proves a recall of at least {_down(facts.bound)}."
    if not facts.is_reached:
        return (
            f"The screening was not finished: {left}, and the stopping rule '{rule.name}' ({goal}) did not advise to "
            f"stop.{proved}"
        )
    return (
        f"Screening stopped after {_n(counts.screened, 'record')} by the rule '{rule.name}', which aims at {goal}; "
        f"{left}. {EVIDENCE[rule.evidence]}{proved} The rule assumes: {rule.assumes}"
    )


def _result(facts: ScreeningFacts) -> str:
    counts = facts.counts
    if not counts.screened:
        return "No record was screened yet."
    shown = list(counts.excluded[:MAX_REASONS])
    rest = counts.excluded[MAX_REASONS:]
    shown += [(f"{len(rest)} further reasons", sum(n for _, n in rest))] if rest else []
    reasons = "; ".join(f"{reason}: {n}" for reason, n in shown)
    why = f" ({reasons})" if counts.excluded and [reason for reason, _ in counts.excluded] != [NO_REASON] else ""
    n, k, undecided = counts.n_excluded, counts.included, counts.conflicts
    end = f", and {undecided} {'is' if undecided == 1 else 'are'} undecided." if undecided else "."
    between = ", " if undecided else ", and "
    return (
        f"Of the {_n(counts.screened, 'screened record')}, {n} {_were(n)} excluded{why}{between}{k} {_were(k)} "
        f"included, to be sought for full text{end}"
    )


def _down(share: float) -> str:
    """A share with three digits, rounded down, since it is a lower bound."""
    return f"{math.floor(share * 1000 + 1e-6) / 1000:g}"


def _n(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _word(n: int) -> str:
    return ("No", "One", "Two", "Three", "Four", "Five", "Six")[n] if n <= 6 else str(n)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


DRAWS = 4000
"""Draws of the posterior of kappa."""


@dataclass(frozen=True)
class ScreeningAgreement:
    """How far the judges of a screening agree."""

    pairs: tuple[PairAgreement, ...]  # for each pair of judges, inclusion first, then each reason
    n_conflicts: int  # number of records on which judges disagree
    n_settled: int  # number of these that an adjudicator settled

    def table(self) -> ReportTable:
        """Return the agreement as a table."""
        rows = tuple((f"{pair.first}, {pair.second}", *pair[2:]) for pair in self.pairs)
        conflicts = f"{self.n_conflicts} conflict{'s' * (self.n_conflicts != 1)}"
        note = (
            f"{conflicts}, {self.n_settled} settled. Kappa with 95 % interval; reasons are compared on records that "
            "both judges excluded."
        )
        columns = ("judges", "question", "both read", "same", "both yes", "kappa", "low", "high")
        return ReportTable("Agreement of judges", columns, rows, digits=2, note=note)


def screening_agreement(judges: Judges) -> ScreeningAgreement:
    """Measure how far judges agree, on inclusion and on each reason of exclusion."""
    read = {judge: independent(answers) for judge, answers in judges.items()}
    pairs = []
    for item, other in combinations(judges, 2):
        both = [number for number in read[item] if number in read[other]]
        if not both:
            continue
        a, b = (np.array([read[judge][number] for number in both]) for judge in (item, other))
        pairs.append(_pair(item, other, "included", a, b))
        excluded = [number for number, *verdicts in zip(both, a, b, strict=True) if not any(verdicts)]
        given = [[judges[judge].current[number].reason for number in excluded] for judge in (item, other)]
        for reason in sorted({*given[0], *given[1]} - {""}):
            sides = (np.array([text == reason for text in side]) for side in given)
            pairs.append(_pair(item, other, reason, *sides))
    n_conflicts = len(find_conflicts(judges, settled=True))
    return ScreeningAgreement(tuple(pairs), n_conflicts, n_conflicts - len(find_conflicts(judges)))


def _pair(this: str, other: str, question: str, a: NDArray[np.bool_], b: NDArray[np.bool_]) -> PairAgreement:
    low, high = kappa_interval(a, b)
    kappa = cohen_kappa(a.astype(float), b.astype(float))
    counts = len(a), int((a == b).sum()), int((a & b).sum())
    return PairAgreement(this, other, question, *counts, kappa, float(np.fmin(low, kappa)), float(np.fmax(high, kappa)))


def kappa_interval(a: NDArray[np.bool_], b: NDArray[np.bool_], confidence: float = 0.95) -> tuple[float, float]:
    """
    Return an interval of Cohen's kappa of two judges who answer yes or no.

    The four shares of a table of two judges have a Dirichlet posterior, by Jeffreys' prior of 1/2 each. Unlike the
    usual standard error, the interval has a width if the judges never disagree.
    """
    counts = np.array([(a & b).sum(), (a & ~b).sum(), (~a & b).sum(), (~a & ~b).sum()]) + 0.5
    yes, first, second, no = np.random.default_rng(0).dirichlet(counts, DRAWS).T
    chance = (yes + first) * (yes + second) + (no + first) * (no + second)
    low, high = np.quantile((yes + no - chance) / (1 - chance), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
