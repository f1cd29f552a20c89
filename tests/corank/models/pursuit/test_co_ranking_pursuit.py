"""CoRankingPursuit against a search over all choices with explicit systems."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import cross_val_score

from corank.base.kernels import GaussianKernel, PrecomputedKernel
from corank.base.kernels.views import View
from corank.base.pairs import Laplacian
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.splits import QueryKFold, mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models import pursuit

# columns as they are: these tests compute by hand
RankingPursuit = partial(pursuit.RankingPursuit, scale=False)
CoRankingPursuit = partial(pursuit.CoRankingPursuit, scale=False)

PROBLEM = make_ranking(5, (3, 6), random_state=4)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.5, random_state=0)
KERNELS = [GaussianKernel(0.05), GaussianKernel(0.01), GaussianKernel(0.2)]


def brute(kernels, coupling, n_basis, shared, separate=False):
    """Choices, coefficients and gains by forming J for every γ; separate: J of whole views, not of the step."""
    M, n = len(kernels), len(Y)
    scored = ~np.isnan(Y)
    L, U = np.zeros((n, n)), np.zeros((n, n))
    for rows, out in ((np.flatnonzero(scored), L), (np.flatnonzero(~scored), U)):
        out[np.ix_(rows, rows)] = Laplacian.per_query(Queries.of(QID[rows], len(rows))).toarray()
    K = [kernel(X) for kernel in kernels]
    R = [np.where(scored, Y, 0.0) for _ in range(M)]
    F = [np.zeros(n) for _ in range(M)]

    def objective(moves):
        J = sum((R[v] - moves[v]) @ L @ (R[v] - moves[v]) for v in range(M))
        for v, u in product(range(M), repeat=2):
            gap = F[v] + moves[v] - F[u] - moves[u]
            J += coupling * gap @ U @ gap
        return J

    every = [(j,) * M for j in range(n)] if shared else list(product(range(n), repeat=M))
    steps = []
    for _ in range(n_basis):
        best = None
        for gamma in every:
            k = [K[v][:, j] for v, j in enumerate(gamma)]
            A = np.array([[-2 * coupling * k[v] @ U @ k[u] for u in range(M)] for v in range(M)])
            for v in range(M):
                A[v, v] = k[v] @ L @ k[v] + 2 * coupling * (M - 1) * k[v] @ U @ k[v]
            e = [k[v] @ L @ R[v] - 2 * coupling * sum(k[v] @ U @ (F[v] - F[u]) for u in range(M)) for v in range(M)]
            a = np.linalg.solve(A, e)
            J = objective([a[v] * k[v] for v in range(M)])
            if best is None or best[0] - 1e-9 > J:
                best = (J, gamma, a, k)
        J, gamma, a, k = best
        steps.append((gamma, a, objective([np.zeros(n)] * M) - J))
        moves = [a[v] * k[v] for v in range(M)]
        if separate:
            F = [f + move for f, move in zip(F, moves, strict=True)]
        R = [r - (move if separate else np.mean(moves, axis=0)) for r, move in zip(R, moves, strict=True)]
    return steps


@pytest.mark.thin(5)
@pytest.mark.parametrize("coupling", [0.0, 0.05, 3.0])
@pytest.mark.parametrize("search", ["joint", "shared"])
@pytest.mark.parametrize("residual", ["shared", "separate"])
def test_two_views_choose_what_brute_force_chooses(coupling, search, residual):
    model = CoRankingPursuit(3, KERNELS[:2], coupling=coupling, search=search, residual=residual).fit(X, Y, qid=QID)
    for p, (gamma, a, gain) in enumerate(brute(KERNELS[:2], coupling, 3, search == "shared", residual == "separate")):
        assert model.terms_[p].tolist() == list(gamma)
        np.testing.assert_allclose(model.term_coefs_[p], a, rtol=1e-6, atol=1e-9)
        assert model.gains_[p] == pytest.approx(gain)


def test_three_views_shared_is_brute_force_and_joint_is_no_worse():
    steps = brute(KERNELS, 0.05, 3, shared=True)
    shared = CoRankingPursuit(3, KERNELS, coupling=0.05, search="shared").fit(X, Y, qid=QID)
    assert shared.terms_.tolist() == [list(gamma) for gamma, _, _ in steps]
    joint = CoRankingPursuit(1, KERNELS, coupling=0.05).fit(X, Y, qid=QID)
    # a coordinate search ends where no single view can do better
    scored = ~np.isnan(Y)
    L = Laplacian.per_query(Queries.of(QID[scored], int(scored.sum()))).toarray()
    U = Laplacian.per_query(Queries.of(QID[~scored], int((~scored).sum()))).toarray()
    K = [kernel(X) for kernel in KERNELS]

    def gain(gamma):
        k = [K[v][scored, j] for v, j in enumerate(gamma)]
        u = [K[v][~scored, j] for v, j in enumerate(gamma)]
        A = np.array([[-0.1 * u[v] @ U @ u[w] for w in range(3)] for v in range(3)])
        for v in range(3):
            A[v, v] = k[v] @ L @ k[v] + 0.2 * u[v] @ U @ u[v]
        e = np.array([k[v] @ L @ Y[scored] for v in range(3)])
        return e @ np.linalg.solve(A, e)

    found = joint.terms_[0]
    assert joint.gains_[0] == pytest.approx(gain(found))
    for v in range(3):
        for j in range(len(Y)):
            other = found.copy()
            other[v] = j
            assert gain(other) <= joint.gains_[0] * (1 + 1e-9)


def test_with_separate_residuals_the_objective_never_increases_and_gains_sum_to_its_decrease():
    model = CoRankingPursuit(25, KERNELS[:2], coupling=0.5, residual="separate").fit(X, Y, qid=QID)
    scored = ~np.isnan(Y)
    L = Laplacian.per_query(Queries.of(QID[scored], int(scored.sum()))).toarray()
    U = Laplacian.per_query(Queries.of(QID[~scored], int((~scored).sum()))).toarray()
    J = []
    for p in range(len(model.gains_) + 1):
        f = model.predict_views(X, p)
        left, gap = Y[scored, None] - f[scored], f[~scored, 0] - f[~scored, 1]
        J.append(np.trace(left.T @ L @ left) + 2 * 0.5 * gap @ U @ gap)
    assert (np.diff(J) < 0.0).all()
    np.testing.assert_allclose(-np.diff(J), model.gains_, rtol=1e-6, atol=1e-9 * J[0])


@pytest.mark.parametrize("M", [2, 3])
def test_separate_uncoupled_views_are_independent_pursuits(M):
    model = CoRankingPursuit(6, KERNELS[:M], coupling=0.0, residual="separate").fit(X, Y, qid=QID)
    for v in range(M):
        alone = RankingPursuit(6, KERNELS[v], dictionary="all").fit(X, Y, qid=QID)
        np.testing.assert_allclose(model.predict_views(X)[:, v], alone.predict(X), rtol=1e-9, atol=1e-9)


def test_the_mean_of_the_views_is_the_prediction_at_every_length():
    model = CoRankingPursuit(6, 2, KERNELS[0], coupling=0.1, random_state=0).fit(X, Y, qid=QID)
    for p in (0, 2, 6):
        short = CoRankingPursuit(max(p, 1), 2, KERNELS[0], coupling=0.1, random_state=0).fit(X, Y, qid=QID)
        if p:
            np.testing.assert_allclose(model.predict(X, n_terms=p), short.predict(X))
        np.testing.assert_allclose(model.predict_views(X, p).mean(axis=1), model.predict(X, n_terms=p))
    with pytest.raises(InputError, match="n_terms is 7; this model has 0 to 6 terms"):
        model.predict(X, n_terms=7)


def test_a_dictionary_can_be_split_into_views():
    model = CoRankingPursuit(5, 2, KERNELS[0], coupling=0.1, split="dictionary", random_state=0).fit(X, Y, qid=QID)
    parts = [set(view.basis.tolist()) for view in model.views_]
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == set(range(len(Y)))
    assert set(model.terms_[:, 0]) <= parts[0]
    assert set(model.terms_[:, 1]) <= parts[1]


def test_early_stopping_learns_that_many_terms_from_all_rows():
    problem = make_ranking(40, 8, random_state=0)
    y = mask_scores(problem.y, fraction=0.3, random_state=0)
    how = {"views": KERNELS[:2], "coupling": 0.05, "random_state": 0}
    model = CoRankingPursuit(40, early_stopping=True, **how).fit(problem.X, y, qid=problem.qid)
    best = max(int(np.argmin(model.validation_errors_)), 1)
    again = CoRankingPursuit(best, **how).fit(problem.X, y, qid=problem.qid)
    np.testing.assert_array_equal(model.predict(problem.X), again.predict(problem.X))


def test_early_stopping_does_not_see_rows_of_weight_zero():
    problem = make_ranking(20, 8, random_state=0)
    y = mask_scores(problem.y, fraction=0.3, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    kept = weights > 0
    model = CoRankingPursuit(
        10, KERNELS[:2], coupling=0.05, early_stopping=True, validation_fraction=0.3, random_state=0
    )
    # scores of rows of weight 0 are arbitrary
    model.fit(problem.X, np.where(kept, y, 1e3), qid=problem.qid, sample_weight=weights)
    errors, scores = model.validation_errors_, model.predict(problem.X)
    model.fit(problem.X[kept], y[kept], qid=problem.qid[kept], sample_weight=weights[kept])
    np.testing.assert_allclose(errors, model.validation_errors_)
    np.testing.assert_allclose(scores, model.predict(problem.X), rtol=1e-7, atol=1e-9)
    model.set_params(early_stopping=False).fit(problem.X, y, qid=problem.qid)
    assert not hasattr(model, "validation_errors_")


def test_a_precomputed_kernel_is_split_by_scikit_learn():
    K, how = KERNELS[0](X), {"params": {"qid": QID}, "cv": QueryKFold(3), "error_score": "raise"}
    deal = {"split": "dictionary", "random_state": 0}
    with config_context(enable_metadata_routing=True):
        by_rows = cross_val_score(CoRankingPursuit(4, 2, KERNELS[0], **deal), X, PROBLEM.y, **how)
        by_similarities = cross_val_score(CoRankingPursuit(4, 2, "precomputed", **deal), K, PROBLEM.y, **how)
        by_views = cross_val_score(CoRankingPursuit(4, [PrecomputedKernel()]), K, PROBLEM.y, **how)
        by_one = cross_val_score(CoRankingPursuit(4, [KERNELS[0]]), X, PROBLEM.y, **how)
    np.testing.assert_allclose(by_rows, by_similarities)
    np.testing.assert_allclose(by_one, by_views)
    with pytest.raises(InputError, match="needs the Gram matrix of the training rows"):
        CoRankingPursuit(4, 2, "precomputed", **deal).fit(K[:, :9], Y, qid=QID)


def test_without_unscored_rows_coupling_changes_nothing():
    full = PROBLEM.y
    one = CoRankingPursuit(5, KERNELS[:2], coupling=0.0).fit(X, full, qid=QID).predict(X)
    other = CoRankingPursuit(5, KERNELS[:2], coupling=9.0).fit(X, full, qid=QID).predict(X)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"views": 30}, "views=30 needs one column per view, but X has n_features = 20"),
        ({"views": 400, "split": "dictionary"}, r"views=400 requires a row per view, but the dictionary has \d+ rows"),
        (
            {"views": KERNELS, "split": "dictionary"},
            "requires a number of views, but views is a list of 3; pass a number, or give each View a basis",
        ),
        (
            {"views": 2, "split": "dictionary", "search": "shared"},
            "search='shared' requires the same rows",
        ),
        (
            {"views": [View(None, "linear", [0, 1]), View(None, "linear", [2, 3])], "search": "shared"},
            "search='shared' requires the same basis in all views",
        ),
    ],
)
def test_parameters_that_do_not_fit_each_other(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        CoRankingPursuit(3, **{"kernel": "linear", **parameters}).fit(X, Y, qid=QID)


def test_similarities_have_no_columns_to_split():
    with pytest.raises(InputError, match="has no columns to split into views"):
        CoRankingPursuit(3, 2, "precomputed").fit(KERNELS[0](X), Y, qid=QID)


def test_objects_are_compared_by_a_function():
    words = [f"{a}{b}" for a in "abcdef" for b in "abc"]
    y = np.array([word.count("a") for word in words], dtype=float)

    def shared(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    one = RankingPursuit(6, shared, fitting="back").fit(words, y)
    K = shared(words, words)
    np.testing.assert_allclose(
        one.predict(words), RankingPursuit(6, "precomputed", fitting="back").fit(K, y).predict(K)
    )
    views = [View(None, shared), View(None, shared)]
    two = CoRankingPursuit(6, views, coupling=0.0).fit(words, y)
    assert two.score(words, y) > 0.8


def test_one_view_is_ranking_pursuit():
    one = CoRankingPursuit(6, [KERNELS[0]], coupling=5.0).fit(X, Y, qid=QID)
    other = RankingPursuit(6, KERNELS[0], dictionary="all").fit(X, Y, qid=QID)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [3, 17, 29])
def test_three_views_searched_jointly_gain_no_less_than_with_one_row_for_all(seed):
    problem = make_ranking(8, 8, random_state=seed)
    y = mask_scores(problem.y, fraction=0.5, random_state=seed)
    gains = [
        CoRankingPursuit(1, KERNELS, coupling=1.0, search=search).fit(problem.X, y, qid=problem.qid).gains_[0]
        for search in ("joint", "shared")
    ]
    assert gains[0] >= gains[1] * (1 - 1e-12)


@pytest.mark.parametrize("residual", ["shared", "separate"])
def test_a_constant_view_has_no_effect(residual):
    flat = np.column_stack([np.ones(len(X)), X])
    views = [[0], list(range(1, flat.shape[1]))]
    model = CoRankingPursuit(4, views, "linear", coupling=0.0, residual=residual).fit(flat, Y, qid=QID)
    assert (model.term_coefs_[:, 0] == 0.0).all()
    alone = RankingPursuit(1, "linear", dictionary="all").fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict_views(flat, 1)[:, 1], alone.predict(X), rtol=1e-9)
    assert not model.predict_views(flat)[:, 0].any()


@pytest.mark.parametrize("search", ["joint", "shared"])
@pytest.mark.parametrize("coupling", [1.0, 1e6, 1e12, 1e14, 1e20, 1e300])
def test_equal_views_are_not_penalised_for_any_coupling(coupling, search):
    every, kernel = list(range(X.shape[1])), KERNELS[0]
    one = RankingPursuit(4, kernel, dictionary="all").fit(X, Y, qid=QID)
    both = CoRankingPursuit(4, [every, every], kernel, coupling=coupling, search=search).fit(X, Y, qid=QID)
    assert both.terms_.tolist() == np.column_stack([one.terms_, one.terms_]).tolist()
    np.testing.assert_allclose(both.predict(X), one.predict(X), rtol=1e-4, atol=1e-6)


def test_the_dictionary_is_bounded_by_default():
    many = make_ranking(150, 10, random_state=0)
    y = mask_scores(many.y, fraction=0.9, random_state=0)
    model = CoRankingPursuit(3, [KERNELS[0], KERNELS[1]], random_state=0)
    rows = pursuit.dictionary.choose_rows(
        model.dictionary, RankingData.of(many.X, y, many.qid), np.random.default_rng(0)
    )
    assert len(rows) == len(np.unique(rows)) == 1000
    # with fewer rows, all are candidates
    every = CoRankingPursuit(4, KERNELS[:2], dictionary="all").fit(X, Y, qid=QID)
    np.testing.assert_array_equal(CoRankingPursuit(4, KERNELS[:2]).fit(X, Y, qid=QID).terms_, every.terms_)
