"""Tests of significance paired by query: Wilcoxon's signed-rank test, Holm's correction, bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError, suggest_names
from corank.metrics.evaluate import Evaluation
from corank.metrics.measure import MetricResult
from corank.parameters import check_values, having, rng_of, seed
from corank.tables import ReportTable

Floats = NDArray[np.float64]

# resampled entries in memory at a time
_BLOCK = 4_000_000


def wilcoxon(differences: ArrayLike) -> float:
    """
    Test whether paired differences are symmetric about zero, by Wilcoxon's two-sided signed-rank test.

    Parameters
    ----------
    differences : array-like of shape (n,)
        Differences of pairs.

    Returns
    -------
    float
        The p-value; 1 if all differences are zero.

    Examples
    --------
    >>> wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0])
    0.0625
    """
    # scipy.stats is slow to import
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    return float(stats.wilcoxon(values).pvalue) if values.any() else 1.0


def rank_balance(differences: ArrayLike) -> float:
    """
    Return the rank-biserial correlation of paired differences, the direction of Wilcoxon's test.

    Returns: (W₊ − W₋) / (W₊ + W₋), where W₊ and W₋ are the sums of the ranks of |difference| above and below zero,
        without zeros: from −1 (all below) to 1; 0 if all differences are zero.

    >>> rank_balance([1.0, 2.0, 3.0, -4.0])
    0.2
    """
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0.0]
    ranks = stats.rankdata(np.abs(values))
    return float(np.sign(values) @ ranks / ranks.sum()) if len(values) else 0.0


def holm(p_values: ArrayLike) -> Floats:
    """
    Adjust p-values for multiple tests (Holm, 1979).

    Rejecting adjusted p-values of at most 0.05 keeps the family-wise error rate at 0.05, however the tests depend on
    each other.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        p-values of m tests.

    Returns
    -------
    array of shape (m,)
        The running maximum, in ascending order of p, of (m − i) · p_i for i = 0, 1, ..., at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator, level: float = 0.95, n_resamples: int = 5000
) -> tuple[float, float]:
    """
    Return the bootstrap percentile interval of a mean.

    Parameters
    ----------
    values : array-like of shape (n,)
        One or more values, such as a metric of each query.
    rng : numpy.random.Generator
        Random generator.
    level : float
        Level of the interval.
    n_resamples : int
        Number of bootstrap samples.

    Returns
    -------
    low, high : float
        Percentiles of the bootstrap means.

    Examples
    --------
    >>> bootstrap_interval([2.0, 2.0], np.random.default_rng(0))
    (2.0, 2.0)
    """
    sample = np.asarray(values, dtype=np.float64)
    means = np.empty(n_resamples)
    step = max(1, _BLOCK // len(sample))
    for begin in range(0, n_resamples, step):
        block = means[begin : begin + step]
        block[:] = sample[rng.integers(len(sample), size=(len(block), len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def standard_error(values: ArrayLike, axis: int = 0) -> Floats:
    """
    Return the standard error of the mean over repeats, the axis `axis`; NaN for a single repeat.

    >>> standard_error([[1.0, 2.0], [3.0, 2.0]]).tolist()
    [1.0, 0.0]
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[axis]
    if n < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return np.asarray(values.std(axis=axis, ddof=1) / np.sqrt(n))


@dataclass(frozen=True)
class PairedTest:
    """
    A paired test of one metric between two evaluations of the same queries: `other` minus `base`.

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
        Two-sided Wilcoxon signed-rank test; 1 if no query differs.
    p_adjusted : float
        The same after Holm's correction for the number of tests.
    n_queries : int
        Queries with a value in both evaluations.
    n_higher, n_lower : int
        Queries on which `other` has the higher and the lower value.
    rank_balance : float
        Direction of the test, from −1 to 1: (W₊ − W₋) / (W₊ + W₋) of its rank sums, below 0 if `other` has the lower
        values. It may differ in sign from the mean difference.
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


class PairedTests(list[PairedTest]):
    """
    Result of `compare_runs`: a list of `PairedTest` that prints as a table.

    Parameters
    ----------
    iterable : iterable of PairedTest
        The tests.

    Examples
    --------
    >>> PairedTests()
    no tests
    """

    def __repr__(self) -> str:
        if not self:
            return "no tests"
        table = self._table()
        cells = [table.columns, *(tuple(table.texts(row)) for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                f"{text:>{width}}" if table.is_number(at) else f"{text:<{width}}"
                for at, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, table.note])

    def _table(self) -> ReportTable:
        formats = {"metric": "", "base": "", "other": "", "base mean": ".4f", "other mean": ".4f"}
        formats |= dict.fromkeys(("difference", "low", "high"), "+.4f")
        formats |= {"p": ".2g", "p (Holm)": ".2g", "queries": "", "higher": "", "lower": ""}
        rows = tuple(
            (
                one.metric, one.base, one.other, one.base_mean, one.other_mean, one.difference, one.low, one.high,
                one.p_value, one.p_adjusted, one.n_queries, one.n_higher, one.n_lower,
            )
            for one in self
        )  # fmt: skip
        levels = ", ".join(f"{level:.0%}" for level in sorted({one.level for one in self}))
        note = (
            f"Difference: other minus base, paired by query, with a {levels} bootstrap interval; p: Wilcoxon's "
            "signed-rank test, without and with Holm's correction; higher, lower: queries on which other is so."
        )
        return ReportTable("", tuple(formats), rows, note=note, formats=tuple(formats.values()))

    def to_frame(self) -> Any:
        """
        Return the tests as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per test, with unrounded numbers.
        """
        return self._table().to_frame()

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return self._table().html()


def compare_runs(
    evaluations: Mapping[str, Evaluation],
    metric: str,
    *,
    base: str | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    level: float = 0.95,
    n_resamples: int = 5000,
) -> PairedTests:
    """
    Test the differences between two or more rankings of the same queries in a metric.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Evaluations of the same queries under the same convention, by name. If the ids of one are numbers and those of
        another are text, as in TREC files, they are matched as text.
    metric : str
        A metric of all evaluations.
    base : str, optional
        The evaluation that all others are tested against; None tests all pairs, with the earlier one as base.
    random_state : int, numpy Generator, numpy RandomState or None, default None
        Random seed of the bootstrap.
    level : float
        Level of the intervals.
    n_resamples : int
        Number of bootstrap samples of the queries.

    Returns
    -------
    PairedTests
        A list with one `PairedTest` per pair, which prints as a table; p-values are corrected for their number.

    Examples
    --------
    >>> from corank.metrics.evaluate import evaluate
    >>> y, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> runs = {"old": [0, 1, 0, 1, 0, 1], "new": [1, 0, 0, 1, 1, 0], "same": [0, 1, 0, 1, 0, 1]}
    >>> evaluations = {name: evaluate(y, scores, qid, "RR") for name, scores in runs.items()}
    >>> first, second = compare_runs(evaluations, "RR", base="old", random_state=0)
    >>> first.other, round(first.difference, 3), first.n_higher, first.n_lower, first.p_value, first.p_adjusted
    ('new', 0.333, 2, 0, 0.5, 1.0)
    >>> frame = compare_runs(evaluations, "RR", base="old", random_state=0).to_frame()  # needs pandas
    >>> frame["other"].tolist()
    ['new', 'same']
    """
    check_values({"random_state": random_state}, {"random_state": seed | having("a numpy Generator", "integers")})
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; pass a number between 0 and 1, such as 0.95.")
    if n_resamples < 1:
        raise InputError(f"n_resamples is {n_resamples}; draw at least one sample.")
    names = list(evaluations)
    if len(names) < 2:
        raise InputError(f"evaluations has {len(names)} entries; pass at least two to compare.")
    if base is not None and base not in names:
        raise InputError(f"base is {base!r}, which is not among the evaluations; {suggest_names(base, names)}.")
    pairs = list(combinations(names, 2)) if base is None else [(base, name) for name in names if name != base]
    rng = rng_of(random_state)
    tests = [_test(pair, evaluations, metric, rng, level, n_resamples) for pair in pairs]
    adjusted = holm([test.p_value for test in tests])
    return PairedTests(replace(test, p_adjusted=float(p)) for test, p in zip(tests, adjusted, strict=True))


def _test(
    names: tuple[str, str],
    evaluations: Mapping[str, Evaluation],
    metric: str,
    rng: np.random.Generator,
    level: float,
    n_resamples: int,
) -> PairedTest:
    """Test one pair without correction."""
    base, other = (evaluations[name] for name in names)
    if base.convention != other.convention:
        raise InputError(
            f"the evaluations follow the conventions {base.convention.name!r} and {other.convention.name!r}; "
            "evaluate both under the same one."
        )
    first = _result(base, metric)
    a, b = first.values, _result(other, metric).values[_matching(base, other)]
    paired = ~(np.isnan(a) | np.isnan(b))
    a, b = a[paired], b[paired]
    if len(a) == 0:
        raise InputError(
            f"no query has a value of {first.metric} in both evaluations; evaluate both on judged queries."
        )
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


def _result(evaluation: Evaluation, metric: str) -> MetricResult:
    try:
        return evaluation[metric]
    except KeyError as error:
        raise InputError(f"{error.args[0]}; evaluate both rankings with it.") from None


def _matching(base: Evaluation, other: Evaluation) -> NDArray[np.int64]:
    """Return the positions in `other` of the queries of `base`."""
    wanted, found = base.query_ids.tolist(), other.query_ids.tolist()
    texts = [[str(query) for query in ids] for ids in (wanted, found)]
    # ids of TREC files are text
    if set(wanted) != set(found) and sorted(set(texts[0])) == sorted(texts[0]) == sorted(texts[1]):
        wanted, found = texts
    positions = {query: at for at, query in enumerate(found)}
    missing = [query for query in wanted if query not in positions]
    if missing or len(found) != len(wanted):
        example = f", and query {missing[0]} is in one of them only" if missing else ""
        raise InputError(
            f"the evaluations have {base.n_queries} and {other.n_queries} queries{example}; "
            "evaluate both on the same rows."
        )
    return np.array([positions[query] for query in wanted], dtype=np.int64)
