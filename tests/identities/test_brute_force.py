"""
Least-squares rankers against a brute force over explicit pairs, written from their docstrings alone.

Every pair is listed, features come from an eigendecomposition of the Gram matrix, and the objective is minimised as
ordinary least squares with the penalty as further rows.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from corank.base.kernels import GaussianKernel, LinearKernel
from corank.base.kernels.views import View
from corank.data.splits import mask_scores
from corank.deploy.distributed import fit_parts
from corank.metrics import evaluate
from corank.models.rls import CoRankRLS, RankRLS, ViewRankRLS

pytestmark = pytest.mark.filterwarnings("ignore::corank.errors.UsageWarning")

KERNELS = {"linear": LinearKernel(), "gaussian": GaussianKernel(0.1)}
ALPHAS = (0.003, 0.05, 1.0)

kernels = pytest.mark.parametrize("kernel", KERNELS)
grades = pytest.mark.parametrize("graded", [False, True], ids=["distinct", "graded"])
with_ties = pytest.mark.parametrize("ties", [False, True], ids=["apart", "ties"])
query_weights = pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])


class Comparisons(NamedTuple):
    """Pairs (i, j) with weight ω and target t; the loss is Σ ω (t − m)² / total."""

    i: Any
    j: Any
    weight: Any
    target: Any
    total: float


def of_scores(
    y: Any, qid: Any, w: Any, prior: Any, query_weight: str, ties: bool, *, without: Any = None, unscored: bool = False
) -> Comparisons:
    """List the pairs of scored rows of each query (of unjudged rows with target 0)."""
    listed, total = [], 0.0
    for q in np.unique(qid):
        rows = [r for r in np.flatnonzero(qid == q) if np.isnan(y[r]) == unscored and w[r] > 0 and q != without]
        pairs = [(a, b) for a, b in combinations(rows, 2) if unscored or ties or y[a] != y[b]]
        own = sum(w[a] * w[b] for a, b in pairs)
        W = sum(w[r] for r in rows)
        if query_weight == "pairs":
            c = 1.0
        elif not pairs:
            c = 0.0
        else:
            c = 1.0 / (2.0 * own) if query_weight == "equal" else 1.0 / W
        listed += [(a, b, c * w[a] * w[b], 0.0 if unscored else y[a] - prior[a] - y[b] + prior[b]) for a, b in pairs]
        if not (ties or unscored):
            total += c * own
        elif query_weight == "rows":
            total += W / 2.0
        else:
            total += c * W * W / 2.0
    i, j, weight, target = (np.array(column) for column in zip(*listed, strict=True)) if listed else [np.empty(0)] * 4
    return Comparisons(i.astype(int), j.astype(int), weight, target, total)


def of_preferences(
    pairs: Any, v: Any, qid: Any, w: Any, prior: Any, query_weight: str, *, without: Any = None
) -> Comparisons:
    """List the preferences of each query, of target difference 1."""
    listed = []
    for q in np.unique(qid):
        own = [(a, b, u * w[a] * w[b]) for (a, b), u in zip(pairs, v, strict=True) if qid[a] == q and q != without]
        total, rows = sum(u for _, _, u in own), {r for a, b, u in own for r in (a, b)}
        if not total:
            continue
        c = {"pairs": 1.0, "equal": 1.0 / (2.0 * total), "rows": 1.0 / sum(w[r] for r in rows)}[query_weight]
        listed += [(a, b, c * u, 1.0 - prior[a] + prior[b]) for a, b, u in own]
    i, j, weight, target = (np.array(column) for column in zip(*listed, strict=True))
    return Comparisons(i, j, weight, target, weight.sum())


def features(K: Any, basis: Any = None) -> Any:
    """Return Φ with Φ Φᵀ = K, or its Nyström approximation on basis rows."""
    R = np.arange(len(K)) if basis is None else np.asarray(basis)
    kappa, U = np.linalg.eigh(K[np.ix_(R, R)])
    kept = kappa > 1e-12 * kappa.max()
    return K[:, R] @ U[:, kept] / np.sqrt(kappa[kept])


def solve(blocks: list[Any], penalties: list[Any], alpha: float) -> Any:
    """Minimise ½‖t − A w‖² + alpha/2 ‖w‖² as least squares; `blocks` are pairs (A, t), `penalties` rows of target 0."""
    k = blocks[0][0].shape[1]
    A = np.vstack([a for a, _ in blocks] + penalties + [np.sqrt(alpha) * np.eye(k)])
    t = np.concatenate([b for _, b in blocks] + [np.zeros(len(A) - sum(len(b) for _, b in blocks))])
    return np.linalg.lstsq(A, t, rcond=None)[0]


def rows_of(pairs: Comparisons, phi: Any) -> tuple[Any, Any]:
    root = np.sqrt(pairs.weight / pairs.total)
    return root[:, None] * (phi[pairs.i] - phi[pairs.j]), root * pairs.target


def one_view(pairs: Comparisons, phi: Any, alpha: float) -> Any:
    return phi @ solve([rows_of(pairs, phi)], [], alpha)


def views(pairs: Comparisons, agreement: Comparisons, phis: list[Any], alpha: float, coupling: float) -> Any:
    """Minimise the objective of `CoRankRLS`, and return the scores of each view."""
    ends = np.cumsum([0, *(phi.shape[1] for phi in phis)])
    place = [slice(a, b) for a, b in pairwise(ends)]
    blocks, penalties = [], []
    for v, phi in enumerate(phis):
        own, t = rows_of(pairs, phi)
        A = np.zeros((len(own), ends[-1]))
        A[:, place[v]] = own
        blocks.append((A, t))
        for u in range(len(phis)):
            A = np.zeros((len(agreement.i), ends[-1]))
            A[:, place[v]] += rows_of(agreement, phi)[0]
            A[:, place[u]] -= rows_of(agreement, phis[u])[0]
            # coupling · mean of squares, without the ½ of the loss
            penalties.append(np.sqrt(2.0 * coupling) * A)
    w = solve(blocks, penalties, alpha)
    return np.column_stack([phi @ w[own] for phi, own in zip(phis, place, strict=True)])


def factors(X: Any, qid: Any, w: Any) -> Any:
    """Return one over the standard deviation of each column inside queries."""
    centred = X.copy()
    for q in np.unique(qid):
        rows = qid == q
        if w[rows].sum():
            centred[rows] -= np.average(X[rows], axis=0, weights=w[rows])
    return 1.0 / np.sqrt(np.average(centred**2, axis=0, weights=w))


def problem(graded: bool, seed: int = 0) -> tuple[Any, ...]:
    """Return X, y with NaN, qid, row weights (some 0) and a prior."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(6), [6, 3, 1, 7, 5, 4])
    n = len(qid)
    X = rng.normal(size=(n, 4)) * [1.0, 0.3, 5.0, 2.0]
    y = rng.integers(0, 3, n).astype(float) if graded else rng.normal(size=n)
    y = mask_scores(y, fraction=0.25, random_state=seed)
    return X, y, qid, rng.choice([0.0, 0.5, 1.0, 2.5], n, p=[0.1, 0.3, 0.3, 0.3]), rng.normal(size=n)


def same(found: Any, expected: Any) -> None:
    scale = max(1.0, float(np.abs(expected).max()))
    assert np.abs(np.asarray(found) - expected).max() / scale < 1e-8


@pytest.mark.thin(5)
@kernels
@grades
@with_ties
@query_weights
@pytest.mark.parametrize("case", ["plain", "weights", "prior", "scale", "basis", "all"])
def test_scores(kernel, graded, ties, query_weight, case):
    X, y, qid, w, prior = problem(graded)
    w = w if case in ("weights", "all") else np.ones(len(y))
    s0 = prior if case in ("prior", "all") else np.zeros(len(y))
    basis = [0, 4, 7, 11, 12, 20] if case in ("basis", "all") else None
    scale = case in ("scale", "all")
    Z = X * factors(X, qid, w) if scale else X
    phi = features(KERNELS[kernel](Z), basis)
    how = {"kernel": KERNELS[kernel], "query_weight": query_weight, "ties": ties, "scale": scale}
    how |= {} if basis is None else {"basis": basis}
    more = {"sample_weight": w, **({"prior": s0} if s0.any() else {})}
    ask = {"prior": s0} if s0.any() else {}
    pairs = of_scores(y, qid, w, s0, query_weight, ties)
    for alpha in ALPHAS:
        model = RankRLS(alpha, **how).fit(X, y, qid=qid, **more)
        same(model.predict(X, **ask), s0 + one_view(pairs, phi, alpha))
    # leave-query-out: a refit without the pairs of the query
    model = RankRLS(alphas=ALPHAS, metric="disagreement", **how).fit(X, y, qid=qid, **more)
    same(model.predict_path(X, **ask), np.column_stack([s0 + one_view(pairs, phi, alpha) for alpha in ALPHAS]))
    known = ~np.isnan(y) & (w > 0)
    for alpha, found in zip(ALPHAS, model.loo_scores_, strict=True):
        f = np.zeros(len(y))
        for q in np.unique(qid):
            rest = of_scores(y, qid, w, s0, query_weight, ties, without=q)
            f[qid == q] = (s0 + one_view(rest, phi, alpha))[qid == q]
        expected = evaluate(y[known], f[known], qid[known], "disagreement")["disagreement"].mean
        assert abs(found - expected) < 1e-12


@kernels
@query_weights
@pytest.mark.parametrize("case", ["plain", "weights", "prior", "all"])
def test_preferences(kernel, query_weight, case):
    X, _, qid, w, prior = problem(False)
    rng = np.random.default_rng(3)
    pairs = np.array([(a, b) for a, b in combinations(range(len(qid)), 2) if qid[a] == qid[b] and rng.random() < 0.5])
    pairs[::2] = pairs[::2, ::-1]
    v = rng.uniform(0.2, 3.0, len(pairs)) if case in ("weights", "all") else np.ones(len(pairs))
    w = np.maximum(w, 0.5) if case in ("weights", "all") else np.ones(len(qid))
    s0 = prior if case in ("prior", "all") else np.zeros(len(qid))
    more = {"prior": s0} if s0.any() else {}
    phi = features(KERNELS[kernel](X))
    listed = of_preferences(pairs, v, qid, w, s0, query_weight)
    how = {"kernel": KERNELS[kernel], "query_weight": query_weight, "scale": False}
    model = RankRLS(alphas=ALPHAS, **how).fit(X, pairs=pairs, pair_weight=v, qid=qid, sample_weight=w, **more)
    for at, alpha in enumerate(ALPHAS):
        same(model.predict_path(X, **more)[:, at], s0 + one_view(listed, phi, alpha))
        shares = []
        for q in np.unique(qid[pairs[:, 0]]):
            rest = of_preferences(pairs, v, qid, w, s0, query_weight, without=q)
            f = s0 + one_view(rest, phi, alpha)
            shares.append(np.mean([f[a] < f[b] for a, b in pairs if qid[a] == q]))
        assert abs(model.loo_scores_[at] - np.mean(shares)) < 1e-12


@pytest.mark.thin(5)
@kernels
@grades
@with_ties
@query_weights
@pytest.mark.parametrize("case", ["plain", "weights", "prior", "scale", "basis"])
def test_coupled_views(kernel, graded, ties, query_weight, case):
    X, y, qid, w, prior = problem(graded, seed=4)
    w = w if case == "weights" else np.ones(len(y))
    s0 = prior if case == "prior" else np.zeros(len(y))
    basis = [1, 3, 8, 13, 19] if case == "basis" else None
    Z = X * factors(X, qid, w) if case == "scale" else X
    chosen = [[0, 1], [2, 3]]
    phis = [features(KERNELS[kernel](Z[:, columns]), basis) for columns in chosen]
    more = {"prior": s0} if s0.any() else {}
    pairs = of_scores(y, qid, w, s0, query_weight, ties)
    agreement = of_scores(y, qid, w, s0, query_weight, ties, unscored=True)
    how = {"query_weight": query_weight, "ties": ties, "scale": case == "scale"}
    entries = [View(columns, KERNELS[kernel], basis) for columns in chosen]
    couplings = (0.02, 0.7)
    model = CoRankRLS(entries, alphas=ALPHAS, couplings=couplings, metric="disagreement", **how)
    model.fit(X, y, qid=qid, sample_weight=w, **more)
    known = ~np.isnan(y) & (w > 0)
    for (c, coupling), (a, alpha) in zip([(0, 0.02), (1, 0.7)], [(1, 0.05), (2, 1.0)], strict=True):
        one = CoRankRLS(entries, coupling, alpha, **how).fit(X, y, qid=qid, sample_weight=w, **more)
        expected = views(pairs, agreement, phis, alpha, coupling)
        same(one.predict_views(X, **more), s0[:, None] + expected)
        same(one.predict(X, **more), s0 + expected.mean(axis=1))
        f = np.zeros(len(y))
        for q in np.unique(qid):
            rest = of_scores(y, qid, w, s0, query_weight, ties, without=q)
            # the agreement keeps its weight relative to the sum over the other queries
            kept = coupling * pairs.total / rest.total
            f[qid == q] = (s0 + views(rest, agreement, phis, alpha, kept).mean(axis=1))[qid == q]
        error = evaluate(y[known], f[known], qid[known], "disagreement")["disagreement"].mean
        assert abs(model.loo_scores_[c, a] - error) < 1e-12


@kernels
@grades
@with_ties
@query_weights
def test_weighted_views(kernel, graded, ties, query_weight):
    X, y, qid, w, _ = problem(graded, seed=7)
    chosen = [[0, 1], [2, 3]]
    model = ViewRankRLS(
        [View(columns, KERNELS[kernel]) for columns in chosen], alphas=ALPHAS, query_weight=query_weight, ties=ties
    ).fit(X, y, qid=qid, sample_weight=w)
    pairs, Z = of_scores(y, qid, w, np.zeros(len(y)), query_weight, ties), X * factors(X, qid, w)
    total = np.zeros((len(y), len(y)))
    for c, columns in zip(model.view_weights_, chosen, strict=True):
        K = KERNELS[kernel](Z[:, columns])
        squares = K[pairs.i, pairs.i] + K[pairs.j, pairs.j] - 2.0 * K[pairs.i, pairs.j]
        total += c * K / (pairs.weight @ squares / pairs.total)
    same(model.predict(X), one_view(pairs, features(total), model.alpha_))


@pytest.mark.thin(3)
@grades
@with_ties
@query_weights
@pytest.mark.parametrize("scale", [False, True], ids=["as given", "scaled"])
@pytest.mark.parametrize("name", ["RankRLS", "RankRLS basis", "CoRankRLS"])
def test_parts(name, graded, ties, query_weight, scale):
    X, y, qid, _, _ = problem(graded, seed=2)
    w = np.ones(len(y))
    how = {"query_weight": query_weight, "ties": ties, "scale": scale}
    model = {
        "RankRLS": lambda: RankRLS(0.05, **how),
        "RankRLS basis": lambda: RankRLS(0.05, GaussianKernel(0.1), n_basis=5, random_state=0, **how),
        "CoRankRLS": lambda: CoRankRLS([[0, 1], [2, 3]], 0.7, 0.05, **how),
    }[name]()
    parts = [(X[part], y[part], qid[part]) for part in (qid < 2, (qid >= 2) & (qid < 4), qid >= 4)]
    fit_parts(model, parts)
    pairs, Z = of_scores(y, qid, w, np.zeros(len(y)), query_weight, ties), X * factors(X, qid, w) if scale else X
    if name == "CoRankRLS":
        agreement = of_scores(y, qid, w, np.zeros(len(y)), query_weight, ties, unscored=True)
        expected = views(pairs, agreement, [Z[:, :2], Z[:, 2:]], 0.05, 0.7).mean(axis=1)
    else:
        phi = Z
        if name == "RankRLS basis":
            with_basis = GaussianKernel(0.1)(np.vstack([model.basis_.rows, Z]))
            phi = features(with_basis, np.arange(5))[5:]
        expected = one_view(pairs, phi, 0.05)
    same(model.predict(X), expected)
