"""Tests of significance paired by query: sign flips with their intervals, Holm's correction, Wilcoxon's test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError, suggest_names, warn
from corank.metrics.evaluation import Evaluation
from corank.metrics.judgements import MetricResult
from corank.parameters import check_values, having, rng_of, seed
from corank.tables import ReportTable

Floats = NDArray[np.float64]

# resampled entries in memory at a time
_BLOCK = 4_000_000
# number of values up to which all sets are enumerated, and up to which random sets are drawn
_MAX_ENUMERATED, _MAX_DRAWN = 12, 1000


def wilcoxon(differences: ArrayLike) -> float:
    """Test whether paired differences are symmetric about zero, by Wilcoxon's two-sided signed-rank test."""
    # scipy.stats is slow to import
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    return float(stats.wilcoxon(values).pvalue) if values.any() else 1.0


def holm(p_values: ArrayLike) -> Floats:
    """
    Adjust p-values for multiple tests (Holm, 1979).

    Rejecting adjusted p-values of at most 0.05 keeps the family-wise error rate at 0.05, however the tests depend on
    each other.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


class MeanTest(NamedTuple):
    """Result of `sign_flip`: an interval of a mean, and the p-value of the same test that the mean is 0."""

    low: float  # low, high: ends of the interval; infinite if there are too few values, NaN without values
    high: float
    p_value: float  # two-sided p-value


def sign_flip(
    values: ArrayLike, rng: np.random.Generator | None = None, level: float = 0.95, n_resamples: int = 9999
) -> MeanTest:
    """
    Return an interval of a mean and the p-value that it is 0, by flipping signs (Fisher, 1935; Hartigan, 1969).

    If values x₁, ..., xₙ are distributed symmetrically around μ, as differences of two exchangeable rankings are around
    0, then all 2ⁿ choices of signs in Σ ±(xᵢ − μ) are equally probable. Let m(S) be the mean of the values of a set S.
    Changing the signs of S does not lower the sum exactly if m(S) ≤ μ. Over all G = 2ⁿ sets, the empty one included,

        p(μ) = 2 min(1 + #{S : m(S) ≤ μ}, 1 + #{S : m(S) ≥ μ}) / G,   at most 1.

    The interval is all μ with p(μ) ≥ 1 − level: with j the largest integer below (1 − level) G / 2, from the j-th
    smallest to the j-th largest m(S). It excludes 0 exactly if the p-value p(0) is below 1 − level. The level holds for
    every n, also with ties and zeros, and approximately if the values are skewed. If j = 0, which at 95 % means five or
    fewer values, no choice of signs is rare enough, and the interval is unbounded.

    Up to 12 values, all sets are used; up to 1,000 values `n_resamples` random sets, with G = n_resamples + 1, which is
    valid, too; beyond, the normal distribution of the sums, whose variance is Σ (xᵢ − μ)².
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[~np.isnan(x)]
    n, alpha = len(x), 1.0 - level
    if n == 0:
        return MeanTest(np.nan, np.nan, np.nan)
    if n > _MAX_DRAWN:
        return _normal_sign_flip(x, alpha)
    means = _set_means(x, np.random.default_rng(0) if rng is None else rng, n_resamples)
    # a mean of exactly 0 must not become positive or negative by rounding
    means[np.abs(means) <= 1e-13 * np.abs(x).max()] = 0.0
    G = len(means) + 1
    n_tail = 1 + min(int((means <= 0.0).sum()), int((means >= 0.0).sum()))
    j = math.ceil(round(alpha * G / 2.0, 9)) - 1
    low, high = (-np.inf, np.inf) if j < 1 else np.partition(means, [j - 1, len(means) - j])[[j - 1, len(means) - j]]
    return MeanTest(float(low), float(high), min(1.0, 2.0 * n_tail / G))


def _set_means(x: Floats, rng: np.random.Generator, n_resamples: int) -> Floats:
    """Return the means of all sets of few values except the empty set, or of random sets of more."""
    n = len(x)
    if n <= _MAX_ENUMERATED:
        sets = (np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1
        return np.asarray(sets @ x / sets.sum(axis=1))
    means = np.empty(n_resamples)
    step = max(1, _BLOCK // n)
    for begin in range(0, n_resamples, step):
        block = means[begin : begin + step]
        packed = rng.integers(256, size=(len(block), -(-n // 8)), dtype=np.uint8)
        drawn = np.unpackbits(packed, axis=1, count=n)
        drawn[~drawn.any(axis=1), 0] = 1  # not the empty set, which G counts once
        block[:] = drawn @ x / drawn.sum(axis=1, dtype=np.int64)
    return means


def _normal_sign_flip(x: Floats, alpha: float) -> MeanTest:
    """
    Approximate the sums of many flipped values by a normal distribution.

    μ is inside if (x̄ − μ)² ≤ z² Σ (xᵢ − μ)² / n², or (x̄ − μ)² (n − z²) ≤ z² s² with s² = Σ (xᵢ − x̄)² / n.
    """
    n, mean, z = len(x), float(x.mean()), NormalDist().inv_cdf(1.0 - alpha / 2.0)
    size = float(np.sqrt(x @ x))
    p_value = 2.0 * NormalDist().cdf(-n * abs(mean) / size) if size > 0.0 else 1.0
    if z * z >= n:
        return MeanTest(-np.inf, np.inf, p_value)
    half = z * float(x.std()) / math.sqrt(n - z * z)
    return MeanTest(mean - half, mean + half, p_value)


def min_values(level: float = 0.95) -> int:
    """Return the number of values from which an interval of `sign_flip` is bounded."""
    alpha = 1.0 - level
    return next(n for n in count(1) if 2.0 / 2**n < round(alpha, 12))


def few_note(n: int, level: float = 0.95, unit: str = "queries") -> str:
    """Return a sentence on the intervals of so few values that they are unbounded; "" with more values."""
    if n >= min_values(level):
        return ""
    return (
        f" Fewer than {min_values(level)} {unit}: without further assumptions, no test excludes any value at the level "
        f"{level:.0%}, so the interval is unbounded (-inf to inf)."
    )


def standard_error(values: ArrayLike, axis: int = 0) -> Floats:
    """Return the standard error of the mean over repeats, the axis `axis`; NaN for a single repeat."""
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[axis]
    if n < 2:
        return np.full(np.delete(values.shape, axis), np.nan)
    return np.asarray(values.std(axis=axis, ddof=1) / np.sqrt(n))


@dataclass(frozen=True)
class PairedTest:
    """
    A paired test of one metric between two evaluations of the same queries: `other` minus `base`.

    metric: Canonical name.
    base, other: Names of the two evaluations.
    base_mean, other_mean: Their means over the compared queries.
    difference: Mean of the differences per query.
    low, high: Interval of the mean difference by `sign_flip`; it excludes 0 exactly if `p_value` < 1 − `level`, and is
        infinite with too few queries (five or fewer at 95 %).
    level: Its level.
    p_value: Two-sided sign-flip test; 1 if no query differs.
    p_adjusted: The same after Holm's correction for the number of tests.
    n_queries: Queries with a value in both evaluations.
    n_higher, n_lower: Queries on which `other` has the higher and the lower value.
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


class PairedTests(list[PairedTest]):
    """
    Result of `compare_runs`: a list of `PairedTest` that prints as a table.

    iterable: The tests.
    """

    def __repr__(self) -> str:
        return self._table().plain() if self else "no tests"

    def _table(self) -> ReportTable:
        formats = {"metric": "", "base": "", "other": "", "base mean": ".4f", "other mean": ".4f"}
        formats |= dict.fromkeys(("difference", "low", "high"), "+.4f")
        formats |= {"p": ".2g", "p (Holm)": ".2g", "queries": "", "higher": "", "lower": ""}
        rows = tuple(
            (
                item.metric, item.base, item.other, item.base_mean, item.other_mean, item.difference, item.low,
                item.high, item.p_value, item.p_adjusted, item.n_queries, item.n_higher, item.n_lower,
            )
            for item in self
        )  # fmt: skip
        levels = ", ".join(f"{level:.0%}" for level in sorted({item.level for item in self}))
        note = (
            f"Difference: other minus base, paired by query, with a {levels} interval; p: sign-flip test, without and "
            "with Holm's correction; higher, lower: queries on which other is so."
        ) + few_queries_note(self)
        return ReportTable("", tuple(formats), rows, note=note, formats=tuple(formats.values()))

    def to_frame(self) -> Any:
        """Return the tests as a pandas DataFrame."""
        return self._table().to_frame()

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return self._table().html()


def holes_note(tests: Sequence[PairedTest], evaluations: Mapping[str, Evaluation], metric: str) -> str:
    """Return a sentence on differences smaller than what unjudged documents could change; "" if there is none."""
    sizes = {}
    for name in {name for test in tests for name in (test.base, test.other)}:
        holes = evaluations[name].holes(metric)
        judged, _, low, high = (1.0, 0.0, 0.0, 0.0) if holes is None else holes.means()
        sizes[name] = high - low, judged
    unclear = [
        (max(sizes[test.base], sizes[test.other]), test)
        for test in tests
        if 0.0 < abs(test.difference) < max(sizes[test.base][0], sizes[test.other][0])
    ]
    if not unclear:
        return ""
    (size, judged), test = max(unclear, key=lambda pair: pair[0][0])
    return (
        f"{len(unclear)} of {len(tests)} differences of {test.metric} are smaller than what unjudged documents could "
        f"change, such as {test.difference:+.4f} of {test.other} (up to {size:.4f}; {judged:.0%} of the first "
        "documents are judged); judge the top of both lists."
    )


def few_queries_note(tests: Sequence[PairedTest]) -> str:
    """Return a sentence if a test has so few queries that its interval is unbounded; "" if none has."""
    few = [test for test in tests if math.isinf(test.low)]
    return few_note(few[0].n_queries, few[0].level) if few else ""


def compare_runs(
    evaluations: Mapping[str, Evaluation],
    metric: str,
    *,
    base: str | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    level: float = 0.95,
    n_resamples: int = 9999,
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
        Random seed of the sign flips.
    level : float
        Level of the intervals.
    n_resamples : int
        Number of random sign flips; up to 12 queries, all are used. See `sign_flip`.

    Returns
    -------
    PairedTests
        A list with one `PairedTest` per pair, which prints as a table; p-values are corrected for their number.

    Examples
    --------
    >>> from corank.metrics.evaluation import evaluate
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
    if sentence := holes_note(tests, evaluations, metric):
        warn(sentence)
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
    low, high, p_value = sign_flip(differences, rng, level, n_resamples)
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
    )


def _result(evaluation: Evaluation, metric: str) -> MetricResult:
    try:
        return evaluation[metric]
    except KeyError as error:
        raise InputError(f"{error.args[0]}; evaluate both rankings with it.") from None


def _matching(base: Evaluation, other: Evaluation) -> NDArray[np.int64]:
    """Return the positions in `other` of the queries of `base`."""
    wanted, result = base.query_ids.tolist(), other.query_ids.tolist()
    texts = [[str(query) for query in ids] for ids in (wanted, result)]
    # ids of TREC files are text
    if set(wanted) != set(result) and sorted(set(texts[0])) == sorted(texts[0]) == sorted(texts[1]):
        wanted, result = texts
    positions = {query: i for i, query in enumerate(result)}
    missing = [query for query in wanted if query not in positions]
    if missing or len(result) != len(wanted):
        example = f", and query {missing[0]} is in one of them only" if missing else ""
        raise InputError(
            f"the evaluations have {base.n_queries} and {other.n_queries} queries{example}; "
            "evaluate both on the same rows."
        )
    return np.array([positions[query] for query in wanted], dtype=np.int64)
