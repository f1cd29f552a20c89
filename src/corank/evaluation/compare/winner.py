"""Choose the winner of a study by paired tests of the best and of the simplest method against all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corank.evaluation.compare.methods import METHODS
from corank.evaluation.compare.values import MethodOutcome
from corank.metrics import PairedTest, compare_runs, parse_metric

ERROR = 0.05
"""Significance level: the family-wise probability that an equal method is called worse."""

RULE = (
    "The winner is the simplest method that is not significantly worse than the one with the best mean. The test is "
    f"Wilcoxon's signed-rank test, paired by query, at level {ERROR:.0%} with Holm's correction for the number of "
    "methods. With too few queries for any such test, the method with the best mean wins. A random order cannot win."
)

RANDOM = METHODS["random"].name


@dataclass(frozen=True)
class WinnerChoice:
    """
    The winner and its tests; see the attributes of the same names of `corank.evaluation.compare.Study`.

    All are empty if no method is complete.
    """

    tests: tuple[PairedTest, ...] = ()
    best: str = ""
    simplest: str = ""
    winner: str = ""
    sentence: str = "No method finished all folds."


def choose_winner(
    outcomes: Sequence[MethodOutcome], metric: str, level: float, seed: int, unit: str = "queries"
) -> WinnerChoice:
    """
    Choose a winner.

    level: level of intervals.
    seed: random seed of the bootstrap.
    unit: unit of the paired tests in words.
    """
    complete = {one.name: one for one in outcomes if one.evaluation is not None}
    real = sorted((one for one in complete.values() if one.name != RANDOM), key=lambda one: one.complexity)
    if not real:
        return WinnerChoice()
    best = max(real, key=lambda one: quality(one, metric))
    simplest = real[0]
    if len(complete) == 1:
        return WinnerChoice(
            (), best.name, best.name, best.name, f"{_described(best, metric)}; no other method finished."
        )
    found = {one.name: one.evaluation for one in complete.values() if one.evaluation is not None}
    rng = np.random.default_rng([seed, 1])
    tests = compare_runs(found, metric, base=best.name, random_state=rng, level=level)
    against = {test.other: test for test in tests}
    n = max(test.n_queries for test in tests)
    if 2.0 ** (1 - n) * len(tests) > ERROR:  # the smallest possible p-value of n pairs
        text = (
            f"{_described(best, metric)} has the best mean; {n} {unit} are too few to distinguish {len(tests) + 1} "
            f"methods at level {ERROR:.0%}: judge more {'rows' if unit != 'queries' else unit}."
        )
        return WinnerChoice(tuple(tests), best.name, simplest.name, best.name, text)
    winner = next(one for one in real if one is best or not _loses(against[one.name]))
    if simplest is not best:
        # the first family has already tested it against the best
        others = {name: one for name, one in found.items() if name != best.name}
        if len(others) > 1:
            tests += compare_runs(others, metric, base=simplest.name, random_state=rng, level=level)
    rivals = [test for test in tests if test.base == simplest.name and test.base != best.name and _gains(test)]
    text = _sentence(best, simplest, winner, against, bool(rivals), metric, unit)
    if winner is simplest and rivals:
        favoured = ", ".join(f"{complete[test.other].title} (p = {test.p_adjusted:.2g})" for test in rivals)
        text += f" Significantly better by ranks, although not by mean: {favoured}."
    if RANDOM in against and not _loses(against[RANDOM]):
        more = unit if unit == "queries" else "rows"
        text += f" The best mean is not significantly better than a random order: judge more {more}."
    return WinnerChoice(tuple(tests), best.name, simplest.name, winner.name, text)


def quality(outcome: MethodOutcome, metric: str) -> float:
    """Return the mean of a metric, negated if smaller is better; −inf without an evaluation."""
    if outcome.evaluation is None or np.isnan(outcome.evaluation[metric].mean):
        return -np.inf
    mean = outcome.evaluation[metric].mean
    return mean if parse_metric(metric).measure.larger_is_better else -mean


def _loses(test: PairedTest) -> bool:
    """Return whether the other method is significantly worse than the base."""
    return test.p_adjusted <= ERROR and _direction(test) < 0


def _gains(test: PairedTest) -> bool:
    """Return whether the other method is significantly better than the base by ranks."""
    return test.p_adjusted <= ERROR and _direction(test) > 0


def _direction(test: PairedTest) -> float:
    """Return the direction of a test by its ranks: above 0 if the other method is better."""
    return test.rank_balance if parse_metric(test.metric).measure.larger_is_better else -test.rank_balance


def _sentence(
    best: MethodOutcome,
    simplest: MethodOutcome,
    winner: MethodOutcome,
    against: dict[str, PairedTest],
    has_rivals: bool,
    metric: str,
    unit: str,
) -> str:
    """
    Return a sentence about the winner and the best mean.

    has_rivals: whether a method other than the best is significantly better than the simplest.
    """
    if winner is not simplest:
        text = f"{winner.title} wins: {_value(winner, metric)}"
    else:
        lead = "The simplest method wins" if has_rivals else "No method beats the simplest one"
        text = f"{lead}, {_described(winner, metric)}"
    if winner is best:
        behind = "its mean is also the best" if winner is simplest else _behind(simplest, against[simplest.name])
        return f"{text}; {behind}."
    test = against[winner.name]
    top = f"the best mean, {test.base_mean:.4f} of {best.title}"
    evidence = f"(p = {test.p_adjusted:.2g} over {test.n_queries} {unit})"
    if _gains(test):
        return f"{text}; {top}, is due to a few large differences: by ranks {winner.title} is better {evidence}."
    return f"{text}; {top}, is not significantly better {evidence}."


def _described(outcome: MethodOutcome, metric: str) -> str:
    return f"{outcome.title}: {_value(outcome, metric)}"


def _value(outcome: MethodOutcome, metric: str) -> str:
    assert outcome.evaluation is not None
    return f"{metric} {outcome.evaluation[metric].mean:.4f} ({outcome.low:.4f} to {outcome.high:.4f})"


def _behind(other: MethodOutcome, test: PairedTest) -> str:
    return f"the simplest, {other.title}, is behind by {abs(test.difference):.4f} (p = {test.p_adjusted:.2g})"
