"""Recommend the method with the best expected result, with the probability that it is better than each other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.comparison.expectation import PSEUDO, SURE, Expectation, offsets_at
from corank.comparison.methods import METHODS
from corank.comparison.values import MethodOutcome, Rival
from corank.metrics import PairedTest, compare_runs, parse_metric

Floats = NDArray[np.float64]

MARGIN = 0.005
"""Margin of practical equivalence: a smaller lead does not justify a more complex method."""

RULE = (
    "The recommended method has the best expected result. The expected result is the mean over the judged queries, out "
    f"of fold, combined with results on other collections, which count as {PSEUDO:g} queries. A simpler method is "
    f"preferred only if the lead of the best is below {MARGIN:g} with probability {SURE:g} or more. Probabilities "
    "come from the Bayesian bootstrap over queries. A random order is never recommended."
)

RANDOM = METHODS["random"].name

# metrics without an upper bound, where MARGIN is a share of the best mean and other collections say nothing
_UNBOUNDED = ("DCG", "MSE", "MAE")

# rivals that the verdict lists, and the number of queries below which it asks for more
_LISTED, _FEW = 3, 10


@dataclass(frozen=True)
class WinnerChoice:
    """
    The winner, its rivals and the tests; see the attributes of the same names of `corank.comparison.Study`.

    All are empty if no method is complete.
    """

    tests: tuple[PairedTest, ...] = ()
    best: str = ""
    simplest: str = ""
    winner: str = ""
    sentence: str = "No method finished all folds."
    rivals: tuple[Rival, ...] = ()


def choose_winner(
    outcomes: Sequence[MethodOutcome], metric: str, level: float, seed: int, unit: str = "queries"
) -> WinnerChoice:
    """Choose a winner."""
    complete = {one.name: one for one in outcomes if one.evaluation is not None}
    real = sorted((one for one in complete.values() if one.name != RANDOM), key=lambda one: one.complexity)
    if not real:
        return WinnerChoice()
    best = max(real, key=lambda one: quality(one, metric))
    simplest = real[0]
    if len(complete) == 1:
        return WinnerChoice(
            (), best.name, best.name, best.name, f"{best.title}: {_value(best, metric)}; no other method finished."
        )
    found = {one.name: one.evaluation for one in complete.values() if one.evaluation is not None}
    tests = compare_runs(found, metric, base=best.name, random_state=np.random.default_rng([seed, 1]), level=level)
    if simplest is not best and len(found) > 2:
        # the first family has already tested it against the best
        others = {name: one for name, one in found.items() if name != best.name}
        rng = np.random.default_rng([seed, 3])
        tests += compare_runs(others, metric, base=simplest.name, random_state=rng, level=level)
    sign = 1.0 if parse_metric(metric).measure.larger_is_better else -1.0
    values = {one.name: sign * found[one.name][metric].values for one in real}
    is_unbounded = parse_metric(metric).measure.name in _UNBOUNDED
    margin = MARGIN * (abs(found[best.name][metric].mean) if is_unbounded else 1.0)
    pseudo = 0.0 if is_unbounded else PSEUDO
    offsets = _offsets(real, found[best.name][metric].n_used)
    winner, leader, expected = recommend(values, np.random.default_rng([seed, 4]), margin, offsets, pseudo)
    rivals = tuple(
        Rival(
            name,
            expected.difference(winner, name),
            expected.p_above(winner, name),
            expected.p_above(winner, name, -margin) - expected.p_above(winner, name, margin),
            expected.n_needed(winner, name),
        )
        for name in values
        if name != winner
    )
    rivals = tuple(sorted(rivals, key=lambda one: one.p_better))
    text = _sentence(complete, winner, leader, rivals, expected, margin, metric, unit)
    p_random = 1.0
    if RANDOM in found:
        pair = {name: sign * found[name][metric].values for name in (winner, RANDOM)}
        p_random = Expectation.of(pair, {}, np.random.default_rng([seed, 5]), pseudo).p_above(winner, RANDOM)
    if p_random < SURE:
        text += f" It is better than a random order with probability {p_random:.2f} only."
    is_open = any(one.p_better < SURE for one in rivals)
    if p_random < SURE or (is_open and len(expected.values) < _FEW):
        text += f" Judge more {unit if unit == 'queries' else 'rows'}."
    return WinnerChoice(tuple(tests), best.name, simplest.name, winner, text, rivals)


def recommend(
    values: Mapping[str, Floats],
    rng: np.random.Generator,
    margin: float = MARGIN,
    offsets: Mapping[str, float] | None = None,
    pseudo: float = PSEUDO,
) -> tuple[str, str, Expectation]:
    """Apply the rule."""
    n = max(int(np.count_nonzero(~np.isnan(one))) for one in values.values())
    expected = Expectation.of(values, offsets_at(n) if offsets is None else offsets, rng, pseudo)
    leader = expected.names[int(np.argmax(expected.means))]
    simple_enough = (
        name for name in expected.names if name == leader or expected.p_above(leader, name, margin) <= 1.0 - SURE
    )
    return next(simple_enough), leader, expected


def _offsets(outcomes: Sequence[MethodOutcome], n: int) -> dict[str, float]:
    """Return the results of methods on other collections; not of a user's estimators, nor of prior columns."""
    known = offsets_at(n)
    named = [one for one in outcomes if one.name in known and one.tuning == METHODS[one.name].tuning]
    return {one.name: known[one.name] for one in named if one.name != "columns" or one.title == "mean of all columns"}


def quality(outcome: MethodOutcome, metric: str) -> float:
    """Return the mean of a metric, negated if smaller is better; −inf without an evaluation."""
    if outcome.evaluation is None or np.isnan(outcome.evaluation[metric].mean):
        return -np.inf
    mean = outcome.evaluation[metric].mean
    return mean if parse_metric(metric).measure.larger_is_better else -mean


def _sentence(
    outcomes: Mapping[str, MethodOutcome],
    winner: str,
    leader: str,
    rivals: Sequence[Rival],
    expected: Expectation,
    margin: float,
    metric: str,
    unit: str,
) -> str:
    """Return the recommendation, how sure it is, and what more judgements would settle."""
    title = outcomes[winner].title
    text = f"{title} is recommended: {_value(outcomes[winner], metric)}"
    if winner == leader:
        text += f", the best expected result of {len(rivals) + 1} methods."
    else:
        below = 1.0 - expected.p_above(leader, winner, margin)
        text += (
            f". {outcomes[leader].title} is expected to be better by {expected.difference(leader, winner):.4f}, which "
            f"is less than {margin:.2g} with probability {below:.2f}; {title} is simpler."
        )
    n = len(expected.values)
    open_ones = [one for one in rivals if one.p_better < SURE]
    if not rivals:
        return text
    if not open_ones:
        return f"{text} It is better than every other method with probability {SURE:g} or more ({n} {unit})."
    listed = "; ".join(f"{outcomes[one.name].title} ({one.p_better:.2f})" for one in open_ones[:_LISTED])
    more = f"; and {len(open_ones) - _LISTED} more" if len(open_ones) > _LISTED else ""
    text += f" {n} {unit} do not settle it. The probability that it is better is below {SURE:g} against {listed}{more}."
    if n < _FEW:
        return text
    near = [one for one in open_ones if abs(one.difference) < margin]
    if near:
        names = "; ".join(outcomes[one.name].title for one in near[:_LISTED])
        text += f" Expected differences below {margin:.2g}, so that the choice matters little: {names}."
    far = next((one for one in open_ones if one not in near and one.n_needed is not None), None)
    if far is not None:
        text += (
            f" About {_rounded(far.n_needed or 0)} {unit} would make its lead over {outcomes[far.name].title} probable "
            f"({SURE:g}), if the difference stays as it is."
        )
    return text


def _value(outcome: MethodOutcome, metric: str) -> str:
    assert outcome.evaluation is not None
    return f"{metric} {outcome.evaluation[metric].mean:.4f} ({outcome.low:.4f} to {outcome.high:.4f})"


def _rounded(n: int) -> str:
    """Write a number with two digits that count."""
    unit = 10 ** max(0, len(str(n)) - 2)
    return f"{-(-n // unit) * unit:,}"
