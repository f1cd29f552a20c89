"""Compare rankings query by query: Wilcoxon's signed-rank test, corrected for how many, and a bootstrap interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names
from corank.metrics.chance import bootstrap_interval, holm, rank_balance, wilcoxon
from corank.metrics.evaluate import Evaluation
from corank.metrics.measure import Result
from corank.parameters import check_values, having, rng_of, seed


@dataclass(frozen=True)
class PairedTest:
    """
    A paired test of one metric between two named evaluations of the same queries: `other` minus `base`.

    Attributes
    ----------
    metric : str
        Canonical name.
    base, other : str
        Names of the two evaluations.
    base_mean, other_mean : float
        Their means over the compared queries.
    difference : float
        Mean of the differences per query.
    low, high : float
        Bootstrap percentile interval of the mean difference.
    level : float
        Its level.
    p_value : float
        Two-sided Wilcoxon signed-rank test; 1 where no query differs.
    p_adjusted : float
        The same after Holm's correction for the number of tests that were made together.
    n_queries : int
        Queries compared: those with a value in both evaluations.
    n_higher, n_lower : int
        Queries on which `other` has the higher and the lower value.
    rank_balance : float
        The direction of the test, from −1 to 1: (W₊ − W₋) / (W₊ + W₋) of its sums of ranks, below 0 where `other` has
        the lower values. It need not agree with the counts, nor with the mean difference.
    """

    metric: str
    base: str
    other: str
    base_mean: float
    other_mean: float
    difference: float
    low: float
    high: float
    level: float
    p_value: float
    p_adjusted: float
    n_queries: int
    n_higher: int
    n_lower: int
    rank_balance: float


def compare_runs(
    evaluations: Mapping[str, Evaluation],
    metric: str,
    *,
    base: str | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    level: float = 0.95,
    n_resamples: int = 5000,
) -> list[PairedTest]:
    """
    Test which of two or more rankings of the same queries differ in a metric.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Names, and evaluations of the same queries under the same convention. Where ids of one are numbers and of
        another text, as TREC files have them, they are matched as text.
    metric : str
        A metric that all contain.
    base : str, optional
        The one that every other is tested against; None tests every two, the one that comes first as base.
    random_state : int, numpy Generator, numpy RandomState or None, default None
        Seed of the bootstrap samples.
    level : float
        Level of the intervals.
    n_resamples : int
        Number of bootstrap samples of the queries.

    Returns
    -------
    list of PairedTest
        Means, difference, interval and test of each two; p-values are corrected for the length of the list.

    Examples
    --------
    >>> from corank.metrics.evaluate import evaluate
    >>> y, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> runs = {"old": [0, 1, 0, 1, 0, 1], "new": [1, 0, 0, 1, 1, 0], "same": [0, 1, 0, 1, 0, 1]}
    >>> found = {name: evaluate(y, scores, qid, "RR") for name, scores in runs.items()}
    >>> first, second = compare_runs(found, "RR", base="old", random_state=0)
    >>> first.other, round(first.difference, 3), first.n_higher, first.n_lower, first.p_value, first.p_adjusted
    ('new', 0.333, 2, 0, 0.5, 1.0)
    """
    check_values({"random_state": random_state}, {"random_state": seed | having("a numpy Generator", "integers")})
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; pass a number between 0 and 1, such as 0.95.")
    if n_resamples < 1:
        raise InputError(f"n_resamples is {n_resamples}; draw at least one sample.")
    names = list(evaluations)
    if len(names) < 2:
        raise InputError(f"{len(names)} evaluations came, and it takes two to compare; pass more.")
    if base is not None and base not in names:
        raise InputError(f"base is {base!r}, which is no evaluation that came; {suggest_names(base, names)}.")
    pairs = list(combinations(names, 2)) if base is None else [(base, name) for name in names if name != base]
    rng = rng_of(random_state)
    tests = [_test(pair, evaluations, metric, rng, level, n_resamples) for pair in pairs]
    adjusted = holm([test.p_value for test in tests])
    return [replace(test, p_adjusted=float(p)) for test, p in zip(tests, adjusted, strict=True)]


def _test(
    names: tuple[str, str],
    evaluations: Mapping[str, Evaluation],
    metric: str,
    rng: np.random.Generator,
    level: float,
    n_resamples: int,
) -> PairedTest:
    """Test one pair, as if it were alone."""
    base, other = (evaluations[name] for name in names)
    if base.convention != other.convention:
        raise InputError(
            f"the evaluations follow the conventions {base.convention.name!r} and {other.convention.name!r}; "
            "evaluate both under one."
        )
    first = _result(base, metric)
    a, b = first.values, _result(other, metric).values[_matching(base, other)]
    paired = ~(np.isnan(a) | np.isnan(b))
    a, b = a[paired], b[paired]
    if len(a) == 0:
        raise InputError(f"no query has a value of {first.metric} in both evaluations, so there is nothing to compare.")
    differences = b - a
    low, high = bootstrap_interval(differences, rng, level, n_resamples)
    p_value = wilcoxon(differences)
    return PairedTest(
        metric=str(first.metric),
        base=names[0],
        other=names[1],
        base_mean=float(a.mean()),
        other_mean=float(b.mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        level=level,
        p_value=p_value,
        p_adjusted=p_value,
        n_queries=len(a),
        n_higher=int(np.count_nonzero(differences > 0)),
        n_lower=int(np.count_nonzero(differences < 0)),
        rank_balance=rank_balance(differences),
    )


def _result(evaluation: Evaluation, metric: str) -> Result:
    try:
        return evaluation[metric]
    except KeyError as error:
        raise InputError(f"{error.args[0]}; evaluate both rankings with it.") from None


def _matching(base: Evaluation, other: Evaluation) -> NDArray[np.int64]:
    """Positions in `other` of the queries of `base`."""
    wanted, found = base.query_ids.tolist(), other.query_ids.tolist()
    texts = [[str(query) for query in ids] for ids in (wanted, found)]
    # the same queries from files that keep other types of ids: TREC's are text
    if set(wanted) != set(found) and sorted(set(texts[0])) == sorted(texts[0]) == sorted(texts[1]):
        wanted, found = texts
    positions = {query: at for at, query in enumerate(found)}
    missing = [query for query in wanted if query not in positions]
    if missing or len(found) != len(wanted):
        example = f", such as {missing[0]}, which only one of them has" if missing else ""
        raise InputError(
            f"the evaluations have {base.n_queries} and {other.n_queries} queries{example}; "
            "evaluate both on the same rows."
        )
    return np.array([positions[query] for query in wanted], dtype=np.int64)
