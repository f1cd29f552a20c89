from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank import LCRA, View
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError, UsageWarning

PROBLEM = make_ranking(30, (2, 12), random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.5, random_state=0)


def lcra(**changes):
    usual = {"loss": "hinge", "alpha": 1e-2, "coupling": 0.1, "solver": "sgd", "n_steps": 2000, "random_state": 0}
    return LCRA(**{**usual, **changes})


SETTINGS = {
    "hinge": {},
    "batches": {"batch": 3, "unscored_batch": 5},
    "three views, averaged": {"views": 3, "average": True},
    "adagrad": {"rate": "adagrad"},
    "l1": {"l1": 0.01, "loss": "squared"},
    "mixed": {"mix": 0.5, "loss": "squared"},
    "overlapping": {"views": [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], list(range(5, 20))]},
    "two runs": {"n_jobs": 2, "project": True},
}


OTHER_DRAWS = {
    "check_sample_weight_equivalence_on_dense_data": "other draws",
    "check_sample_weight_equivalence_on_sparse_data": "other draws",
}


@pytest.mark.long  # the laws have it of the exact solvers, whose fit and predict are the same
@parametrize_with_checks(
    [LCRA(views=1), lcra(views=1), lcra()],
    expected_failed_checks=lambda model: {} if model.solver == "auto" else OTHER_DRAWS,
    xfail_strict=False,
)
def test_scikit_learn_accepts_the_descent(estimator, check):
    check(estimator)


def test_sums_over_batches_are_means_with_other_weights():
    """The paper's LCRA-k-l sums over k judged and l unjudged pairs; corank's means need alpha/k and coupling l/k."""
    k, count, lam, mu = 2, 10, 0.3, 0.05
    a, b = np.nonzero((QID[:, None] == QID) & (Y[:, None] > Y))
    c, d = np.nonzero((QID[:, None] == QID) & np.isnan(Y)[:, None] & np.isnan(Y))
    D, t, U = X[a] - X[b], Y[a] - Y[b], X[c] - X[d]  # a row drawn twice is a pair of difference 0
    views = [np.arange(10), np.arange(10, 20)]

    def expected_step(w):
        """Slope of the paper's objective: expectations of sums over a batch."""
        agreement = 4 * count * mu * (U[:, :10] @ w[:10] - U[:, 10:] @ w[10:]) / len(U)
        own = [k * D[:, v].T @ (D[:, v] @ w[v] - t) / len(D) + lam * w[v] for v in views]
        return np.concatenate(own) + np.concatenate([U[:, :10].T @ agreement, -U[:, 10:].T @ agreement])

    model = LCRA(views, mu * count / k, "squared", alpha=lam / k, scale=False, solver="exact").fit(X, Y, qid=QID)
    np.testing.assert_allclose(expected_step(model.view_coefs_.sum(axis=0)), 0.0, atol=1e-9)


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_learns_and_predicts_by_the_mean_of_its_views(changes):
    model = lcra(n_steps=10_000, **changes).fit(X, Y, qid=QID)
    assert model.score(X, PROBLEM.y, qid=QID) > 0.65
    assert model.objective_trace_[-1, 1] < model.objective_trace_[0, 1]
    np.testing.assert_allclose(model.predict(X), (X @ model.view_coefs_.T).mean(axis=1) + model.intercept_)
    for w, view in zip(model.view_coefs_, model.views_, strict=True):
        assert not np.delete(w, view.columns).any()
    np.testing.assert_allclose(model.predict_views(X).mean(axis=1), model.predict(X))
    assert model.view_gap_ > 0


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_a_resumed_run_is_the_whole_run_bit_for_bit(changes, tmp_path):
    whole = lcra(n_steps=900, **changes).fit(X, Y, qid=QID)
    corank.save(lcra(n_steps=333, **changes).fit(X, Y, qid=QID), tmp_path / "model.safetensors")
    resumed = corank.load(tmp_path / "model.safetensors").set_params(n_steps=567).partial_fit(X, Y, qid=QID)
    np.testing.assert_array_equal(resumed.view_coefs_, whole.view_coefs_)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.intercept_ == whole.intercept_


@pytest.mark.thin(3)
@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_dense_and_csr_agree(changes):
    dense, csr = lcra(**changes).fit(X, Y, qid=QID), lcra(**changes).fit(sparse.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(dense.view_coefs_, csr.view_coefs_, atol=1e-10)


def test_stronger_coupling_makes_views_agree():
    gaps = [
        lcra(coupling=c, loss="squared", n_steps=30_000, average=True).fit(X, Y, qid=QID).view_gap_ for c in (1e-6, 1.0)
    ]
    assert gaps[1] < gaps[0]


def unscored_pairs(is_scored, query_weight, w):
    """Pairs of unjudged rows and what each weighs, one by one."""
    found = []
    for q in np.unique(QID):
        rows = np.flatnonzero((q == QID) & ~is_scored)
        total = w[rows].sum() ** 2 - (w[rows] ** 2).sum()
        c = {"pairs": 1.0, "equal": 1.0 / total if total else 0.0, "rows": 1.0 / max(w[rows].sum(), 1e-300)}
        found += [(a, b, c[query_weight] * w[a] * w[b]) for k, a in enumerate(rows) for b in rows[:k]]
    a, b, weight = np.array(found).T
    return a.astype(int), b.astype(int), weight / weight.sum()


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("by_pairs", [False, True])
def test_the_gap_of_views_is_that_of_their_margins(query_weight, by_pairs):
    w = np.random.default_rng(0).integers(1, 4, len(Y)) / 2
    given, is_scored = {"y": Y}, ~np.isnan(Y)
    if by_pairs:
        pairs = [(i, j) for i in range(40) for j in range(40) if QID[i] == QID[j] and Y[i] > Y[j]]
        given, is_scored = {"pairs": pairs}, np.isin(np.arange(len(Y)), pairs)
    a, b, weight = unscored_pairs(is_scored, query_weight, w)
    for solver, tolerance in (("exact", 1e-9), ("sgd", 0.15)):
        model = lcra(views=3, loss="squared", solver=solver, query_weight=query_weight)
        model.fit(X, qid=QID, sample_weight=w, **given)
        m = model.predict_views(X)[a] - model.predict_views(X)[b]
        gaps = [weight @ (m[:, v] - m[:, u]) ** 2 for v, u in ((0, 1), (0, 2), (1, 2))]
        assert model.view_gap_ == pytest.approx(np.mean(gaps), rel=tolerance)


@pytest.mark.parametrize("solver", ["exact", "sgd"])
def test_without_unscored_rows_nothing_is_coupled_and_a_warning_says_so(solver):
    one = lcra(coupling=0.0, loss="squared", solver=solver).fit(X, PROBLEM.y, qid=QID)
    with pytest.warns(UsageWarning, match="coupling is 5, but no query holds two") as caught:
        other = lcra(coupling=5.0, loss="squared", solver=solver).fit(X, PROBLEM.y, qid=QID)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(one.view_coefs_, other.view_coefs_)
    assert np.isnan(other.view_gap_)


def test_views_may_be_written_in_several_ways():
    columns = [slice(0, 10), View(list(range(10, 20)))]
    model = lcra(views=columns).fit(X, Y, qid=QID)
    assert [view.columns.tolist() for view in model.views_] == [list(range(10)), list(range(10, 20))]
    parts = lcra(views=3).fit(X, Y, qid=QID).views_
    assert sorted(np.concatenate([view.columns for view in parts]).tolist()) == list(range(20))
    with pytest.raises(InputError, match="views=21 needs one column per view"):
        lcra(views=21).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="views is 0; pass a whole number of at least"):
        lcra(views=0).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="LCRA supports only linear views"):
        lcra(views=[View(kernel="gaussian"), [0]]).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="a view has column 50"):
        lcra(views=[[50], [0]]).fit(X, Y, qid=QID)


@pytest.mark.parametrize("query_weight", ["pairs", "rows"])
def test_an_unscored_row_of_weight_two_is_the_row_twice(query_weight):
    weights = np.where(np.isnan(Y), np.random.default_rng(0).integers(0, 3, len(Y)), 1)
    rows = np.repeat(np.arange(len(Y)), weights)
    model = lcra(views=[slice(0, 10), slice(10, 20)], loss="squared", solver="exact", query_weight=query_weight)
    one = model.fit(X, Y, qid=QID, sample_weight=weights).view_coefs_
    np.testing.assert_allclose(one, model.fit(X[rows], Y[rows], qid=QID[rows]).view_coefs_, rtol=1e-8, atol=1e-12)


def test_the_exact_solver_takes_the_squared_loss_only():
    with pytest.raises(InputError, match="solver='exact' is not available for LCRA"):
        lcra(solver="exact").fit(X, Y, qid=QID)


def test_penalties_of_views_scale_as_their_columns():
    """alpha_v for view v is alpha = 1 on columns divided by √alpha_v, with weights multiplied by it."""
    views, alphas = [list(range(8)), list(range(8, X.shape[1]))], [0.3, 2.0]
    root = np.sqrt(np.repeat(alphas, [len(view) for view in views]))
    model = LCRA(views=views, alpha=alphas, scale=False).fit(X, Y, qid=QID)
    other = LCRA(views=views, alpha=1.0, scale=False).fit(X / root, Y, qid=QID)
    np.testing.assert_allclose(model.view_coefs_ * root, other.view_coefs_, rtol=1e-7, atol=1e-10)
    assert model.objective_ == pytest.approx(other.objective_)
    np.testing.assert_array_equal(model.alpha_, alphas)


def test_lists_of_equal_penalties_and_rates_change_nothing(tmp_path):
    one = lcra(eta0=0.5).fit(X, Y, qid=QID)
    each = lcra(alpha=[1e-2, 1e-2], eta0=[0.5, 0.5]).fit(X, Y, qid=QID)
    np.testing.assert_allclose(each.view_coefs_, one.view_coefs_, rtol=1e-9)
    other = lcra(alpha=[1e-2, 1.0], eta0=[0.5, 0.1]).fit(X, Y, qid=QID)
    assert np.linalg.norm(other.view_coefs_[1]) < 0.5 * np.linalg.norm(one.view_coefs_[1])
    corank.save(other, tmp_path / "model")
    again = corank.load(tmp_path / "model")
    np.testing.assert_array_equal(again.eta0_, [0.5, 0.1])
    np.testing.assert_array_equal(again.partial_fit(X, Y, qid=QID).coef_, other.partial_fit(X, Y, qid=QID).coef_)


@pytest.mark.parametrize("changes", [{"alpha": [1.0]}, {"eta0": [0.1, 0.2, 0.3]}, {"alpha": [1.0, -1.0]}])
def test_lists_of_another_length_are_refused(changes):
    with pytest.raises(InputError, match=next(iter(changes))):
        lcra(**changes).fit(X, Y, qid=QID)
