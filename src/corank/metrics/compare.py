"""Compare two rankings query by query: Wilcoxon's signed-rank test and a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.metrics.evaluate import Evaluation
from corank.metrics.measure import Result
from corank.parameters import check_values, having, rng_of, seed

# resampled entries held in memory at once
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Comparison:
    """
    A paired comparison of one metric: `other` minus `base`.

    Attributes
    ----------
    metric : str
        Canonical name.
    base, other : float
        The two means over the compared queries.
    difference : float
        Mean of the differences per query.
    low, high : float
        Bootstrap percentile interval of the mean difference.
    level : float
        Its level.
    p_value : float
        Two-sided Wilcoxon signed-rank test; 1 where no query differs.
    n_queries : int
        Queries compared: those with a value in both evaluations.
    n_higher, n_lower : int
        Queries on which `other` has the higher and the lower value.
    """

    metric: str
    base: float
    other: float
    difference: float
    low: float
    high: float
    level: float
    p_value: float
    n_queries: int
    n_higher: int
    n_lower: int


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


def compare(
    base: Evaluation,
    other: Evaluation,
    metric: str,
    *,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    level: float = 0.95,
    n_resamples: int = 5000,
) -> Comparison:
    """
    Test whether two rankings of the same queries differ in a metric.

    Parameters
    ----------
    base, other : Evaluation
        Evaluations of the same queries under the same convention. Where ids of one are numbers and of the other text,
        as TREC files have them, they are matched as text.
    metric : str
        A metric that both contain.
    random_state : int, numpy Generator, numpy RandomState or None, default None
        Seed of the bootstrap samples.
    level : float
        Level of the interval.
    n_resamples : int
        Number of bootstrap samples of the queries.

    Returns
    -------
    Comparison
        Means, difference, interval and test.

    Examples
    --------
    >>> from corank.metrics.evaluate import evaluate
    >>> y, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> base = evaluate(y, [0, 1, 0, 1, 0, 1], qid, "RR")
    >>> other = evaluate(y, [1, 0, 0, 1, 1, 0], qid, "RR")
    >>> result = compare(base, other, "RR", random_state=0)
    >>> round(result.difference, 3), result.n_higher, result.n_lower
    (0.333, 2, 0)
    """
    check_values({"random_state": random_state}, {"random_state": seed | having("a numpy Generator", "integers")})
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; pass a number between 0 and 1, such as 0.95.")
    if n_resamples < 1:
        raise InputError(f"n_resamples is {n_resamples}; draw at least one sample.")
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
    low, high = _bootstrap(differences, rng_of(random_state), level, n_resamples)
    return Comparison(
        metric=str(first.metric),
        base=float(a.mean()),
        other=float(b.mean()),
        difference=float(differences.mean()),
        low=low,
        high=high,
        level=level,
        p_value=_wilcoxon(differences),
        n_queries=len(a),
        n_higher=int(np.count_nonzero(differences > 0)),
        n_lower=int(np.count_nonzero(differences < 0)),
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


def _wilcoxon(differences: NDArray[np.float64]) -> float:
    # scipy.stats takes longer to import than everything else here: only a comparison pays for it
    from scipy import stats

    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def _bootstrap(
    differences: NDArray[np.float64], rng: np.random.Generator, level: float, n_resamples: int
) -> tuple[float, float]:
    means = np.empty(n_resamples)
    step = max(1, _BLOCK // len(differences))
    for begin in range(0, n_resamples, step):
        block = means[begin : begin + step]
        block[:] = differences[rng.integers(len(differences), size=(len(block), len(differences)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
