"""Rules that choose a method from its values of the judged queries, and what each choice costs on other queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from corank.comparison.winner import Expectation, recommend
from corank.metrics.significance import holm, rank_balance, wilcoxon

Floats = NDArray[np.float64]
Values = Mapping[str, Floats]
"""Name to the values of every judged query, out of fold; the simplest method first."""

LEVEL = 0.05


def not_proven_worse(values: Values) -> str:
    """Return the simplest method that does not lose to the best mean by Wilcoxon's test with Holm's correction."""
    best = best_mean(values)
    others = [name for name in values if name != best]
    n = len(values[best])
    if 2.0 ** (1 - n) * len(others) > LEVEL:
        return best
    differences = [values[name] - values[best] for name in others]
    p = dict(zip(others, holm([wilcoxon(one) for one in differences]), strict=True))
    loses = {
        name for name, one in zip(others, differences, strict=True) if p[name] <= LEVEL and rank_balance(one) < 0.0
    }
    return next(name for name in values if name not in loses)


def best_mean(values: Values) -> str:
    """Return the method with the best mean; the simpler one of equals."""
    return max(values, key=lambda name: float(values[name].mean()))


def one_standard_error(values: Values) -> str:
    """Return the simplest method whose mean is within one standard error of the best mean."""
    best = values[best_mean(values)]
    least = best.mean() - best.std(ddof=1) / np.sqrt(len(best))
    return next(name for name in values if values[name].mean() >= least)


def new_rule(values: Values) -> str:
    """Return the recommendation of `corank compare`."""
    return recommend(values, np.random.default_rng(0))[0]


def shrunk(values: Values, offsets: Mapping[str, float], pseudo: float) -> str:
    """Return the method with the best expected result, given offsets and their weight in queries."""
    expected = Expectation.of(values, offsets, np.random.default_rng(0), pseudo)
    return expected.names[int(np.argmax(expected.means))]


def always(name: str) -> Callable[[Values], str]:
    """Return a rule that looks at no value."""
    return partial(_named, name)


def _named(name: str, values: Values) -> str:
    return name


RULES: dict[str, Callable[[Values], str]] = {
    "new: best expected": new_rule,
    "best mean": best_mean,
    "one standard error": one_standard_error,
    "before: simplest not proven worse": not_proven_worse,
    "always RankRLS": always("rankrls"),
    "no judgements: mean of columns": always("columns"),
}
"""The rules of the tables."""
