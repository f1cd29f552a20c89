"""Leaving out is refitting on data full of ties, where every rounding error would be a rank."""

from __future__ import annotations

from decimal import localcontext

import numpy as np
import pytest

from corank.base.kernels import GaussianKernel
from corank.base.kernels.views import View
from corank.metrics import evaluate
from corank.models.rls import CoRankRLS, RankRLS
from helpers import decimal_rls
from helpers.explicit_rls import order_of_folds

GAMMA, COUPLING = 0.25, 0.1
# powers of two, so that scores that are equal on paper are equal in decimals
ALPHAS = np.array([2.0**-10, 0.125, 8.0])
METRICS = ("disagreement", "nDCG@10", "AP", "kendall")
QUERY_WEIGHTS = ("pairs", "equal", "rows")
seeds = pytest.mark.parametrize("seed", range(16))


def parameters(seed):
    some = {"query_weight": QUERY_WEIGHTS[seed % 3], "metric": METRICS[seed % 4], "ties": bool(seed // 2 % 2)}
    return {**some, "alphas": ALPHAS}


def tied_rows(rng):
    """Few different rows in few queries: two-valued or three-valued columns, one constant in queries, rows repeated."""
    sizes = rng.integers(1, 6, rng.integers(3, 6))
    sizes[:2] = np.maximum(sizes[:2], 2)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.integers(0, rng.integers(2, 4), (len(qid), rng.integers(1, 5))).astype(float)
    if rng.random() < 0.3:
        X[:, 0] = qid
    elif rng.random() < 0.5:
        X = X * rng.choice([-2.0, 0.5, 3.0], X.shape[1]) + rng.integers(-4, 5, X.shape[1])
    y = rng.integers(0, 3, len(qid)).astype(float)
    y[[0, 1, sizes[0], sizes[0] + 1]] = 0.0, 1.0, 0.0, 1.0
    return X, y, qid


def means(views, y, qid, how, weights=None, coupling=0.0, unscored=None):
    """Scores of the metric by long refits, one for each alpha."""
    out = []
    size = float(max(abs(one) for K, _ in views for one in K.ravel()))
    kind = {"query_weight": how["query_weight"], "ties": how["ties"], "weights": weights}
    for alpha in how["alphas"]:
        held, judged = np.zeros(len(y)), np.full(len(y), np.nan)
        for q in np.unique(qid):
            own = (qid == q) & ~np.isnan(y)
            if len(y[own] if how["ties"] else np.unique(y[own])) < 2:
                continue
            rest = np.where(qid == q, np.nan, y)
            with localcontext(prec=decimal_rls.DIGITS):
                L, weight = decimal_rls.laplacian(rest, qid, **kind)
                # agreement keeps its weight beside the sums of the other queries
                left = weight / decimal_rls.laplacian(y, qid, **kind)[1]
                L = L / weight if weight else L
                side = L @ decimal_rls.long(np.nan_to_num(rest))
                beside = decimal_rls.Decimal(coupling) / left if left else 0.0
            f = decimal_rls.scores(views, L, side, float(alpha), beside, unscored)
            held[own], judged[own] = decimal_rls.ranked(f[own], size / (1.0 + alpha)), y[own]
        out.append(evaluate(judged, held, qid, how["metric"])[how["metric"]].mean)
    return out


@pytest.mark.thin(7)
@seeds
@pytest.mark.parametrize("form", ["primal", "dual", "gaussian", "linear basis", "gaussian basis"])
def test_leaving_out_a_query_is_a_long_refit(seed, form):
    rng = np.random.default_rng([seed, len(form)])
    X, y, qid = tied_rows(rng)
    weights = None if rng.random() < 0.5 else rng.choice([0.5, 1.0, 2.0], len(y))
    if form == "dual":
        X = np.hstack([X, np.zeros((len(X), len(X)))])
    is_gaussian = form.startswith("gaussian")
    basis = np.sort(rng.permutation(len(y))[: max(2, len(y) // 2)]) if form.endswith("basis") else np.arange(len(y))
    chosen = {"basis": basis} if form.endswith("basis") else {}
    how = parameters(seed)
    kernel = GaussianKernel(GAMMA) if is_gaussian else "linear"
    model = RankRLS(kernel=kernel, scale=False, **how, **chosen).fit(X, y, qid=qid, sample_weight=weights)
    views = [(decimal_rls.gram(X, "gaussian" if is_gaussian else "linear", GAMMA), basis)]
    np.testing.assert_allclose(model.loo_scores_, means(views, y, qid, how, weights), atol=1e-12)


@seeds
def test_leaving_out_a_query_of_coupled_views_is_a_long_refit(seed):
    rng = np.random.default_rng(seed)
    X, y, qid = tied_rows(rng)
    second = np.searchsorted(qid, 1)
    hidden = rng.random(len(y)) < 0.5
    hidden[[0, 1, second, second + 1]] = False
    y, basis, half = np.where(hidden, np.nan, y), np.arange(0, len(y), 2), max(1, X.shape[1] // 2)
    how = parameters(seed)
    views = [View(np.arange(half), GaussianKernel(GAMMA), basis), View()]
    model = CoRankRLS(views, COUPLING, scale=False, **how)
    with localcontext(prec=decimal_rls.DIGITS):
        unscored = np.where(np.isnan(y), 0.0, np.nan)
        L, weight = decimal_rls.laplacian(unscored, qid, how["query_weight"], ties=True)
        L = L / weight if weight else L
    if not weight:
        pytest.skip("nothing to agree on")
    model.fit(X, y, qid=qid)
    both = [
        (decimal_rls.gram(X[:, :half], "gaussian", GAMMA), basis),
        (decimal_rls.gram(X, "linear"), np.arange(len(y))),
    ]
    np.testing.assert_allclose(model.loo_scores_[0], means(both, y, qid, how, None, COUPLING, L), atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", GaussianKernel(GAMMA)], ids=str)
@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
def test_where_nothing_is_left_to_learn_from_every_pair_is_a_tie(kernel, query_weight):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        # rows of all queries but the first are equal, so that without it f is 0
        X = np.vstack([rng.normal(size=(5, 3)), np.repeat(rng.normal(size=(3, 3)), 4, axis=0)])
        y, qid = rng.permutation(17) % 3 * 1.0, np.repeat([0, 1, 2, 3], [5, 4, 4, 4])
        model = RankRLS(kernel=kernel, alphas=np.logspace(-6, 6, 7), metric="disagreement", query_weight=query_weight)
        np.testing.assert_array_equal(model.fit(X, y, qid=qid).loo_scores_, 0.5)


@seeds
@pytest.mark.parametrize("form", ["linear", "gaussian", "basis"])
def test_leaving_out_preferences_of_a_query_is_a_long_refit(seed, form):
    rng = np.random.default_rng([seed, len(form)])
    X, y, qid = tied_rows(rng)
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    keep = (rng.random(len(i)) < 0.8) | (qid[i] < 2)
    pairs = np.stack([i[keep], j[keep]], axis=1)
    queries = np.unique(qid[pairs[:, 0]])
    own = rng.choice([0.5, 1.0, 2.0], len(pairs))
    basis = np.unique(pairs) if form != "basis" else np.unique(pairs)[::2]
    chosen = {} if form == "linear" else {"basis": basis}
    kernel = GaussianKernel(GAMMA) if form == "gaussian" else "linear"
    model = RankRLS(kernel=kernel, alphas=ALPHAS, scale=False, **chosen).fit(X, pairs=pairs, qid=qid, pair_weight=own)
    K = decimal_rls.gram(X, "gaussian" if form == "gaussian" else "linear", GAMMA)
    for alpha, score in zip(ALPHAS, model.loo_scores_, strict=True):
        errors = []
        for q in queries:
            out = qid[pairs[:, 0]] == q
            with localcontext(prec=decimal_rls.DIGITS):
                L, side = decimal_rls.preferences(len(y), pairs[~out], own[~out])
            f = decimal_rls.ranked(decimal_rls.scores([(K, basis)], L, side, float(alpha)), 1.0)
            a, b = pairs[out].T
            errors.append(np.mean(np.where(f[a] == f[b], 0.5, f[a] < f[b])))
        assert score == pytest.approx(np.mean(errors), abs=1e-12)


@pytest.mark.thin(7)
@seeds
@pytest.mark.parametrize("form", ["primal", "gaussian", "basis"])
@pytest.mark.parametrize("ties", [False, True], ids=["tenths", "pairs"])
def test_leaving_out_rows_of_one_query_is_a_long_refit(seed, form, ties):
    rng = np.random.default_rng([seed, len(form)])
    n = int(rng.integers(6, 11))
    X, y = rng.integers(0, 2, (n, rng.integers(1, 4))).astype(float), rng.permutation(n) % 3 * 1.0
    weights = None if seed % 2 else rng.choice([0.5, 1.0, 2.0], n)
    basis = np.arange(n) if form != "basis" else np.arange(0, n, 2)
    kernel = GaussianKernel(GAMMA) if form == "gaussian" else "linear"
    chosen = {"basis": basis} if form == "basis" else {}
    model = RankRLS(kernel=kernel, alphas=ALPHAS, metric="disagreement", ties=ties, scale=False, **chosen)
    model.fit(X, y, sample_weight=weights)
    assert model.alpha_from_ == ("leave-pair-out" if ties else f"{n // 2}-fold") + " disagreement"
    order = order_of_folds(X, y, weights)
    parts = [np.array(two) for two in zip(*np.triu_indices(n, 1), strict=True)] if ties else [
        order[part :: n // 2] for part in range(n // 2)
    ]  # fmt: skip
    K, qid = decimal_rls.gram(X, "gaussian" if form == "gaussian" else "linear", GAMMA), np.zeros(n)
    for alpha, score in zip(ALPHAS, model.loo_scores_, strict=True):
        errors = []
        for out in parts:
            rest = y.copy()
            rest[out] = np.nan
            with localcontext(prec=decimal_rls.DIGITS):
                L, weight = decimal_rls.laplacian(rest, qid, ties=ties, weights=weights)
                if not weight:
                    continue
                side = L @ decimal_rls.long(np.nan_to_num(rest)) / weight
                f = decimal_rls.scores([(K, basis)], L / weight, side, float(alpha))
            f = decimal_rls.ranked(f, 1.0)
            errors += [0.5 if f[i] == f[j] else float(f[i] < f[j]) for i in out for j in out if y[i] > y[j]]
        assert score == pytest.approx(np.mean(errors), abs=1e-12)
