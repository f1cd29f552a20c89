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
smaller of the two widths is used. ``form="printed"`` computes the paper's bound instead. The rankers f_k and the share
of each are those of any randomised ranker f'_Θ in equation 2, ε(f) ≤ bound of ε(f'_Θ) + D: `randomised_bound`. The
paper has two grades. With more, a pair is weighted by the difference of its
grades: that error is a mean over the ways to split the grades in two, and the inequality holds for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pickle import PicklingError
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags

from corank._moved import old_parameters
from corank.data.inputs import as_numbers, as_scores
from corank.data.queries import Queries
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.rows import take_rows
from corank.data.splits import Fold, QueryKFold
from corank.errors import InputError
from corank.metrics.bounds.kpartite import Bound, hoeffding_end
from corank.metrics.conventions import CONVENTIONS
from corank.metrics.judgements import Judgements, ratio
from corank.metrics.measures import pair_counts
from corank.parameters import Rules, check_values, having, integer, is_integer, number, one_of, rng_of, seed

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_RULES: Rules = {
    "cv": integer(2) | having("a splitter", "split"),
    "delta": number(0, 1, inside="()"),
    "form": one_of("tight", "printed"),
    "random_state": seed,
}


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
    form: Literal["tight", "printed"] = "tight",
    random_state: Any = 0,
) -> Bound:
    """
    Bound the expected error of a ranker fitted on all judged queries, by cross-validation and unjudged queries.

    The error of a query is the share of its wrongly ordered pairs, weighted by the differences of grades, a tie
    counting ½; a query with a single grade counts 0. Costs K + 1 fits. ``form="printed"`` is the wider bound of the
    paper, which draws one fold for each unjudged query with `random_state`.

    Measured: it held in all of 200 resamples of MQ2008 and Boston housing, and was 0.21 to 0.55 above the true error,
    mostly because folds are small. The mean of the folds plus 1.64 standard errors held in 94 % to 96 %.
    """
    check_values({"cv": cv, "delta": delta, "form": form, "random_state": random_state}, _RULES)
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
    errors, sizes, distances, n_paired = [], [], [], 0
    for train, test in _folds(cv, X, grades, queries, judged):
        model, ranks = fit(train)
        held, paired = list_errors(predict_with_qid(model, take_rows(X, test), ids[test]), grades[test], ids[test])
        errors.append(float(held.mean()))
        sizes.append(len(held))
        n_paired += paired
        distances.append(list_distances(full_ranks, ranks, of_others))
    rng = rng_of(random_state) if form == "printed" else None
    return _bound(errors, np.array(sizes), np.array(distances), n_paired, delta, rng)


def randomised_bound(
    scores: ArrayLike,
    others: Sequence[ArrayLike],
    qid: ArrayLike,
    upper: float,
    *,
    weights: ArrayLike | None = None,
    delta: float = 0.05,
    random_state: Any = 0,
) -> Bound:
    """
    Bound the expected error of a ranker by that of a randomised ranker and their distance on unjudged queries.

    scores: of the ranker, on rows of unjudged queries that were used for nothing else.
    others: scores of the same rows by each ranker that the randomised one draws from; `weights` are their
        probabilities, equal by default. One is drawn for each query (Usunier et al., equation 2).
    upper: a bound of the error of the randomised ranker that holds with probability 1 − delta/2.
    """
    rules = {"delta": _RULES["delta"], "upper": number(0, 1), "random_state": seed}
    check_values({"delta": delta, "upper": upper, "random_state": random_state}, rules)
    distances = [_distances(scores, scores_k, qid) for scores_k in others]
    shares = np.full(len(others), 1.0) if weights is None else as_numbers(weights, "weights", "weight")
    are_shares = len(shares) == len(distances) and bool((shares >= 0.0).all()) and 0.0 < shares.sum() < np.inf
    if not are_shares:
        raise InputError(
            f"weights has {len(shares)} values for {len(distances)} rankers in others; pass one or more rankers, and "
            "one number from 0 for each, not all 0."
        )
    distance, width = _drawn(np.array(distances), shares / shares.sum(), delta, rng_of(random_state))
    return Bound(
        "weighted disagreement error", min(1.0, upper + distance), 0.0, min(1.0, upper + distance + width), delta, 1.0,
        0.5,
        parts=(
            ("rankers", len(shares)), ("unjudged queries", distances[0].size),
            ("bound of the randomised ranker", float(upper)),
            ("distance to its rankers", distance), ("width of the distance", width),
        ),
        assumptions=(
            f"The bound of the randomised ranker holds with probability {1.0 - 0.5 * delta:g}.",
            "The unjudged queries are independent draws that were not used for training or tuning.",
        ),
    )  # fmt: skip


def ranking_distance(scores: ArrayLike, others: ArrayLike, qid: ArrayLike) -> float:
    """
    Return D, the mean over queries of how much larger the error of one ranker can be than that of another.

    It holds whatever is relevant, needs no judgement, and lies between 0 and 1: error(scores) ≤ error(others) + D.
    """
    return float(_distances(scores, others, qid).mean())


class DistanceScorer:
    """
    A scorer that chooses models by their errors on held-out queries and by D on unjudged queries.

    The score is minus the error of the model of a fold, minus the distance to it of the model of all judged queries:
    the mean over folds is minus the `cv_bound` without its widths. Pass it as ``metric`` of `corank.QuerySearchCV`,
    with the judged queries of that search and `unjudged`, a pair (X, qid).

    >>> from corank import QuerySearchCV, RankRLS, make_ranking
    >>> data, more = make_ranking(12, random_state=0), make_ranking(40, random_state=1)
    >>> by_distance = DistanceScorer(data.X, data.y, data.qid, (more.X, more.qid))
    >>> search = QuerySearchCV(RankRLS(), {"alpha": [0.01, 1.0, 100.0]}, metric=by_distance)
    >>> search.fit(data.X, data.y, qid=data.qid).best_params_
    {'alpha': 100.0}
    """

    def __init__(self, X: Any, y: ArrayLike, qid: ArrayLike, unjudged: tuple[Any, ArrayLike]) -> None:
        self._judged, (self._others, self._queries) = (X, y, qid), _unscored(unjudged)
        self._ranks: dict[str, Floats] = {}  # of the model of all judged queries, by its parameters

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, *, qid: ArrayLike) -> float:
        """Score a model that was fitted without the queries of X."""
        distances = list_distances(self._ranks_of_all(estimator), self._rank(estimator), self._queries)
        errors, _ = list_errors(predict_with_qid(estimator, X, qid), np.asarray(y, dtype=np.float64), np.asarray(qid))
        return -float(errors.mean()) - float(distances.mean())

    def _ranks_of_all(self, estimator: Any) -> Floats:
        """Return the ranks by the model of all judged queries; it is fitted once for parameters that can be pickled."""
        from joblib import hash as hash_of
        from sklearn import clone

        try:
            key = hash_of(clone(estimator))
        except (PicklingError, TypeError, AttributeError):  # such as a kernel that is a lambda
            return self._rank(fit_with_qid(estimator, *self._judged))
        if key not in self._ranks:
            self._ranks[key] = self._rank(fit_with_qid(estimator, *self._judged))
        return self._ranks[key]

    def _rank(self, model: Any) -> Floats:
        queries = self._queries
        return mean_ranks(predict_with_qid(model, self._others, queries.ids[queries.codes]), queries)

    def get_metadata_routing(self) -> Any:
        """Request `qid` from scikit-learn."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request


def _distances(scores: ArrayLike, others: ArrayLike, qid: ArrayLike) -> Floats:
    first, second = as_numbers(scores, "scores", "score"), as_numbers(others, "others", "score")
    if len(first) != len(second) or not len(first) or not np.isfinite([first, second]).all():
        raise InputError(
            f"scores and others have {len(first)} and {len(second)} values; pass the finite scores of the same rows."
        )
    queries = Queries.of(qid, len(first))
    return list_distances(mean_ranks(first, queries), mean_ranks(second, queries), queries)


def _drawn(distances: Floats, shares: Floats, delta: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean distance to one ranker drawn for each query, and its width."""
    K, m = distances.shape
    drawn = distances[rng.choice(K, m, p=shares), np.arange(m)]
    return float(drawn.mean()), float(np.sqrt(np.log(2.0 / delta) / (2.0 * m)))


def _bound(
    errors: list[float], sizes: Numbers, distances: Floats, n_paired: int, delta: float, rng: np.random.Generator | None
) -> Bound:
    """Add the terms; `rng` draws the fold of each unjudged query for the printed form."""
    n_judged, (K, m) = int(sizes.sum()), distances.shape
    once, union = float(np.log(2.0 / delta)), np.log(2.0 * K / delta)
    width, error = float(np.sqrt(union / (2.0 * sizes)).mean()), float(np.mean(errors))
    if rng is not None:
        distance, further = _drawn(distances, np.full(K, 1.0 / K), delta, rng)
    else:
        width = min(float(np.sqrt(once / (2.0 * sizes.min()))), width)
        distance = float((distances.sum(axis=0) / K).mean())
        further = hoeffding_end(distance, m, once, 1.0) - distance
    return Bound(
        "weighted disagreement error", error, 0.0, min(1.0, error + width + distance + further), delta, 1.0,
        0.5 * n_paired / n_judged,
        parts=(
            ("folds", K), ("judged queries", n_judged), ("unjudged queries", m), ("width of the folds", width),
            ("distance to the folds' models", distance),
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
    loss, worst = (pair_counts(order, order.ranked.grades, 1.0)[0] for order in (judged, upside_down))
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
