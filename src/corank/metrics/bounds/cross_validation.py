"""
A bound from cross-validation and unjudged queries (Usunier, Truong, Amini and Gallinari, Ranking with unlabeled data: a
first study, 2005).

f is fitted on all judged queries, and f_k on those outside fold k, which measures the error of f_k. How much worse f
can be than f_k needs no judgement: with relevant rows S of a list of K, p = |S|, Δ(f) − Δ(f') = Σ_{i ∈ S} (rg(i) −
rg'(i)) / (p (K − p)) for ranks rg from 0. Hence, whatever is relevant, Δ(f) − Δ(f') ≤ d(f, f') = max_p Σ of the p
largest rg(i) − rg'(i) / (p (K − p)). Tied rows share the mean of their ranks, which counts ties as ½. With probability
1 − delta

    ε(f) ≤ mean_k ε̂_k + √(ln(2/delta)/(2 min n_k)) + D,  D the largest p with m kl(mean_{j, k} d(f(x_j), f_k(x_j)), p) ≤
    ln(2/delta), which is not above the mean + √(ln(2/delta)/(2m)).

The paper's second term is mean_k √(ln(2K/delta)/(2n_k)), by a union over folds, and it draws one k at random for each
unjudged query. Neither is needed: exp(mean_k) ≤ mean_k exp, and the mean over all k has the same expectation. The
smaller of the two widths is used. The paper has two grades. With more, a pair is weighted by the difference of its
grades: that error is a mean over the ways to split the grades in two, and the inequality holds for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags

from corank._moved import old_parameters
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.query_splits import Fold, QueryKFold
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import take_rows
from corank.errors import InputError
from corank.metrics.bounds.bound import Bound, hoeffding_end
from corank.metrics.conventions import CONVENTIONS
from corank.metrics.judgements import Judgements, ratio
from corank.metrics.pairwise import pair_counts
from corank.parameters import Rules, check_values, having, integer, is_integer, number

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_RULES: Rules = {"cv": integer(2) | having("a splitter", "split"), "delta": number(0, 1, inside="()")}


@old_parameters(unscored="unjudged")
def cv_bound(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    qid: ArrayLike,
    unjudged: tuple[Any, ArrayLike],
    *,
    cv: Any = 5,
    delta: float = 0.05,
) -> Bound:
    """
    Bound the expected error of a ranker fitted on all judged queries, by cross-validation and unjudged queries.

    The error of a query is the share of its wrongly ordered pairs, weighted by the differences of grades, a tie
    counting ½; a query with a single grade counts 0. Costs K + 1 fits.

    Measured: it held in all of 200 resamples of MQ2008 and Boston housing, and was 0.21 to 0.55 above the true error,
    mostly because folds are small. The mean of the folds plus 1.64 standard errors held in 94 % to 96 %.
    """
    check_values({"cv": cv, "delta": delta}, _RULES)
    if get_tags(estimator).input_tags.pairwise:
        raise InputError("kernel='precomputed' cannot score the unjudged rows; use another kernel.")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    grades, queries, (others, of_others) = as_scores(y, n_rows), Queries.of(qid, n_rows), _unscored(unjudged)
    judged = _judged_rows(grades, queries)
    ids = queries.ids[queries.codes]

    def fit(rows: Numbers) -> tuple[Any, Floats]:
        """Return a model fitted on some rows, and its ranks of the unjudged rows."""
        model = fit_with_qid(estimator, take_rows(X, rows), grades[rows], ids[rows])
        return model, mean_ranks(predict_with_qid(model, others, of_others.ids[of_others.codes]), of_others)

    full_ranks = fit(np.arange(n_rows))[1]
    errors, sizes, distances, n_paired = [], [], np.zeros(len(of_others)), 0
    for train, test in _folds(cv, X, grades, queries, judged):
        model, ranks = fit(train)
        held, paired = list_errors(predict_with_qid(model, take_rows(X, test), ids[test]), grades[test], ids[test])
        errors.append(float(held.mean()))
        sizes.append(len(held))
        n_paired += paired
        distances += list_distances(full_ranks, ranks, of_others)
    return _bound(errors, np.array(sizes), distances / len(errors), n_paired, delta)


def _bound(errors: list[float], sizes: Numbers, distances: Floats, n_paired: int, delta: float) -> Bound:
    n_judged = int(sizes.sum())
    once, union = np.log(2.0 / delta), np.log(2.0 * len(sizes) / delta)
    width = min(np.sqrt(once / (2.0 * sizes.min())), np.sqrt(union / (2.0 * sizes)).mean())
    error, distance = float(np.mean(errors)), float(distances.mean())
    further = hoeffding_end(distance, len(distances), float(once), 1.0) - distance
    return Bound(
        "weighted disagreement error", error, 0.0, min(1.0, error + float(width) + distance + further), delta, 1.0,
        0.5 * n_paired / n_judged,
        parts=(
            ("folds", len(sizes)), ("judged queries", n_judged), ("unjudged queries", len(distances)),
            ("width of the folds", float(width)), ("distance to the folds' models", distance),
            ("width of the distance", further),
        ),
        assumptions=(
            "Judged and unjudged queries were drawn independently from the same distribution.",
            "The unjudged queries were not used for training or tuning.",
            "Pairs are weighted by the difference of their grades; a query with a single grade counts 0, as "
            f"{n_judged - n_paired} of the judged ones do.",
        ),
    )  # fmt: skip


def mean_ranks(scores: Floats, queries: Queries) -> Floats:
    """Rank rows within queries from 0, the best; tied rows share the mean of their ranks."""
    order = np.lexsort((-scores, queries.codes))
    codes, sorted_scores = queries.codes[order], scores[order]
    begins = np.flatnonzero(np.r_[True, (codes[1:] != codes[:-1]) | (sorted_scores[1:] != sorted_scores[:-1])])
    sizes = np.diff(np.append(begins, len(order)))
    ranks = np.empty(len(order))
    ranks[order] = np.repeat(begins + 0.5 * (sizes - 1), sizes) - queries.starts[codes]
    return ranks


def list_distances(ranks: Floats, others: Floats, queries: Queries) -> Floats:
    """Return, for each query, how much worse the first of two orders can be than the second, whatever is relevant."""
    rises = ranks - others
    order = np.lexsort((-rises, queries.codes))
    sums = np.cumsum(rises[order])
    sizes, starts = queries.sizes, queries.starts[:-1]
    sums -= np.repeat(sums[starts] - rises[order][starts], sizes)
    p = np.arange(len(order)) - np.repeat(starts, sizes) + 1
    rest = np.repeat(sizes, sizes) - p
    values = np.divide(sums, p * rest, out=np.zeros(len(order)), where=rest > 0)
    # rounding may make a zero sum negative
    return np.asarray(np.maximum(np.maximum.reduceat(values, starts), 0.0))


def list_errors(scores: Floats, grades: Floats, qid: NDArray[Any]) -> tuple[Floats, int]:
    """Return the error of each query as defined by `cv_bound`, and the number of queries with a pair."""
    judged = Judgements.of(grades, scores, qid, CONVENTIONS["corank"])
    upside_down = replace(judged, scores=-judged.grades)
    loss, worst = (pair_counts(one, one.ranked.grades, 1.0)[0] for one in (judged, upside_down))
    return np.nan_to_num(ratio(loss, worst)), int(np.count_nonzero(worst))


def _unscored(unjudged: Any) -> tuple[Any, Queries]:
    if not isinstance(unjudged, tuple | list) or len(unjudged) != 2:
        raise InputError(f"unjudged is a {type(unjudged).__name__}; pass a pair (X, qid) of unjudged queries.")
    X, qid = unjudged
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if not n_rows or qid is None:
        raise InputError(
            f"unjudged has {n_rows} rows{' without qid' if qid is None else ''}; pass rows with their query ids."
        )
    return X, Queries.of(qid, n_rows)


def _judged_rows(grades: Floats, queries: Queries) -> Numbers:
    """Return the rows of the judged queries; raise `InputError` if a query is judged in part."""
    scored = np.bincount(queries.codes, weights=~np.isnan(grades), minlength=len(queries))
    partly = np.flatnonzero((scored > 0) & (scored < queries.sizes))
    if len(partly):
        q = int(partly[0])
        raise InputError(
            f"query {queries.ids[q]} has {int(scored[q])} of {queries.sizes[q]} rows scored, but whole lists are "
            "compared; score all rows of a query, or remove its unjudged rows."
        )
    if not scored.any():
        raise InputError("y holds no score; pass some judged queries.")
    return np.flatnonzero(scored[queries.codes] > 0)


def _folds(cv: Any, X: Any, grades: Floats, queries: Queries, judged: Numbers) -> Iterator[Fold]:
    """Yield training rows, with the unjudged ones, and test rows."""
    splitter, codes = QueryKFold(int(cv)) if is_integer(cv) else cv, queries.codes
    unjudged = np.setdiff1d(np.arange(len(codes)), judged)
    for train, test in splitter.split(take_rows(X, judged), grades[judged], codes[judged]):
        held = np.bincount(codes[judged[test]], minlength=len(queries))
        cut = np.flatnonzero((held > 0) & (held < queries.sizes))
        if len(cut):
            raise InputError(
                f"cv holds out {held[cut[0]]} of the {queries.sizes[cut[0]]} rows of query {queries.ids[cut[0]]}; pass "
                "a splitter that keeps queries whole, such as QueryKFold."
            )
        yield np.sort(np.concatenate([judged[train], unjudged])), judged[test]
