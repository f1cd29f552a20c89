"""Which method to use: paired tests of the best and of the simplest against all others, and the rule that chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corank.evaluation.compare.methods import METHODS
from corank.evaluation.compare.values import Outcome
from corank.metrics import PairedTest, compare_runs, parse_metric

ERROR = 0.05
"""Share of studies of equal methods in which one of them is called worse."""

RULE = (
    "The winner is the simplest method, a random order apart, that does not lose to the best mean: by a paired "
    f"Wilcoxon signed-rank test over queries at {ERROR:.0%}, after Holm's correction for the number of methods. Where "
    "queries are too few for any such test to tell, it is the best mean."
)

RANDOM = METHODS["random"].name


@dataclass(frozen=True)
class Verdict:
    """
    What tests say; see the attributes of the same names of `corank.evaluation.compare.Study`.

    tests, best, simplest, winner, sentence: empty where no method is complete.
    """

    tests: tuple[PairedTest, ...] = ()
    best: str = ""
    simplest: str = ""
    winner: str = ""
    sentence: str = "No method was done with all folds."


def judge(outcomes: Sequence[Outcome], metric: str, level: float, seed: int, unit: str = "queries") -> Verdict:
    """
    Choose a winner.

    outcomes: all methods.
    metric: what they are ordered by.
    level: of intervals.
    seed: of bootstrap samples.
    unit: what is paired, in words.
    """
    complete = {one.name: one for one in outcomes if one.evaluation is not None}
    real = sorted((one for one in complete.values() if one.name != RANDOM), key=lambda one: one.complexity)
    if not real:
        return Verdict()
    best = max(real, key=lambda one: quality(one, metric))
    simplest = real[0]
    if len(complete) == 1:
        return Verdict((), best.name, best.name, best.name, f"{_told(best, metric)}; nothing else was done to compare.")
    found = {one.name: one.evaluation for one in complete.values() if one.evaluation is not None}
    rng = np.random.default_rng([seed, 1])
    tests = compare_runs(found, metric, base=best.name, random_state=rng, level=level)
    against = {test.other: test for test in tests}
    n = max(test.n_queries for test in tests)
    if 2.0 ** (1 - n) * len(tests) > ERROR:  # the smallest p of so few, if all of them agree
        said = (
            f"{_told(best, metric)} is the best mean; {n} {unit} are too few for a test at {ERROR:.0%} to tell "
            f"{len(tests) + 1} methods apart: judge more {'rows' if unit != 'queries' else unit}."
        )
        return Verdict(tuple(tests), best.name, simplest.name, best.name, said)
    winner = next(one for one in real if one is best or not _loses(against[one.name]))
    if simplest is not best:
        # the best was tested against it already, in the family that the rule is about
        others = {name: one for name, one in found.items() if name != best.name}
        if len(others) > 1:
            tests += compare_runs(others, metric, base=simplest.name, random_state=rng, level=level)
    rivals = [test for test in tests if test.base == simplest.name and test.base != best.name and _gains(test)]
    said = _sentence(best, simplest, winner, against, bool(rivals), metric, unit)
    if winner is simplest and rivals:
        favoured = ", ".join(f"{complete[test.other].title} (p = {test.p_adjusted:.2g})" for test in rivals)
        said += f" Surely better than it by ranks, though not best by mean: {favoured}."
    if RANDOM in against and not _loses(against[RANDOM]):
        more = unit if unit == "queries" else "rows"
        said += f" The best mean is not surely better than that of a random order: judge more {more}."
    return Verdict(tuple(tests), best.name, simplest.name, winner.name, said)


def quality(outcome: Outcome, metric: str) -> float:
    """Return the mean of a metric, negated where smaller is better; lowest where there is none."""
    if outcome.evaluation is None or np.isnan(outcome.evaluation[metric].mean):
        return -np.inf
    mean = outcome.evaluation[metric].mean
    return mean if parse_metric(metric).measure.larger_is_better else -mean


def _loses(test: PairedTest) -> bool:
    """Whether the other is surely worse than the base."""
    return test.p_adjusted <= ERROR and _lean(test) < 0


def _gains(test: PairedTest) -> bool:
    """Whether the other is surely better than the base; a mean may be best by a few queries alone."""
    return test.p_adjusted <= ERROR and _lean(test) > 0


def _lean(test: PairedTest) -> float:
    """Direction of a test, by the ranks that its p-value comes from: above 0 where the other is better."""
    return test.rank_balance if parse_metric(test.metric).measure.larger_is_better else -test.rank_balance


def _sentence(
    best: Outcome,
    simplest: Outcome,
    winner: Outcome,
    against: dict[str, PairedTest],
    has_rivals: bool,
    metric: str,
    unit: str,
) -> str:
    """
    Say who wins, and what stands against the best mean.

    has_rivals: whether another than the best is surely better than the simplest.
    """
    if winner is not simplest:
        said = f"{winner.title} wins: {_value(winner, metric)}"
    else:
        lead = "The simplest method wins" if has_rivals else "Nothing beats the simplest method"
        said = f"{lead}, {_told(winner, metric)}"
    if winner is best:
        behind = "its mean is also the best" if winner is simplest else _behind(simplest, against[simplest.name])
        return f"{said}; {behind}."
    test = against[winner.name]
    top = f"the best mean, {test.base_mean:.4f} of {best.title}"
    sureness = f"(p = {test.p_adjusted:.2g} over {test.n_queries} {unit})"
    if _gains(test):
        return f"{said}; {top}, comes of larger differences, but by their ranks {winner.title} is ahead {sureness}."
    return f"{said}; {top}, is ahead by no more than chance explains {sureness}."


def _told(outcome: Outcome, metric: str) -> str:
    return f"{outcome.title}: {_value(outcome, metric)}"


def _value(outcome: Outcome, metric: str) -> str:
    assert outcome.evaluation is not None
    return f"{metric} {outcome.evaluation[metric].mean:.4f} ({outcome.low:.4f} to {outcome.high:.4f})"


def _behind(other: Outcome, test: PairedTest) -> str:
    return f"the simplest, {other.title}, is behind by {abs(test.difference):.4f} (p = {test.p_adjusted:.2g})"
