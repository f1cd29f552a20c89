from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank import LCRA, View
from corank.data.make import make_ranking
from corank.data.split import hide_scores
from corank.errors import InputError

PROBLEM = make_ranking(30, (2, 12), random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = hide_scores(PROBLEM.y, fraction=0.5, random_state=0)


def lcra(**changes):
    return LCRA(**{"alpha": 1e-2, "coupling": 0.1, "solver": "sgd", "n_steps": 2000, "random_state": 0, **changes})


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


@parametrize_with_checks(
    [lcra(views=1), lcra()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "other draws",
        "check_sample_weight_equivalence_on_sparse_data": "other draws",
    },
    xfail_strict=False,
)
def test_scikit_learn_accepts_the_descent(estimator, check):
    check(estimator)


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_learns_and_predicts_by_the_mean_of_its_views(changes):
    model = lcra(n_steps=10_000, **changes).fit(X, Y, qid=QID)
    assert model.score(X, PROBLEM.y, qid=QID) > 0.65
    assert model.objective_trace_[-1, 1] < model.objective_trace_[0, 1]
    np.testing.assert_allclose(model.predict(X), (X @ model.view_coefs_.T).mean(axis=1) + model.intercept_)
    for w, columns in zip(model.view_coefs_, model.views_, strict=True):
        assert not np.delete(w, columns).any()
    assert 0 <= model.disagreement_ <= 1


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_a_resumed_run_is_the_whole_run_bit_for_bit(changes, tmp_path):
    whole = lcra(n_steps=900, **changes).fit(X, Y, qid=QID)
    corank.save(lcra(n_steps=333, **changes).fit(X, Y, qid=QID), tmp_path / "model.safetensors")
    resumed = corank.load(tmp_path / "model.safetensors").set_params(n_steps=567).partial_fit(X, Y, qid=QID)
    np.testing.assert_array_equal(resumed.view_coefs_, whole.view_coefs_)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.intercept_ == whole.intercept_


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_dense_and_csr_agree(changes):
    dense, csr = lcra(**changes).fit(X, Y, qid=QID), lcra(**changes).fit(sparse.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(dense.view_coefs_, csr.view_coefs_, atol=1e-10)


def test_stronger_coupling_makes_views_agree():
    gaps = [
        lcra(coupling=c, loss="squared", n_steps=30_000, average=True).fit(X, Y, qid=QID).disagreement_
        for c in (1e-6, 1.0)
    ]
    assert gaps[1] < gaps[0]


def test_without_unscored_rows_nothing_is_coupled():
    one = lcra(coupling=0.0).fit(X, PROBLEM.y, qid=QID)
    other = lcra(coupling=5.0).fit(X, PROBLEM.y, qid=QID)
    np.testing.assert_array_equal(one.view_coefs_, other.view_coefs_)
    assert np.isnan(other.disagreement_)


def test_views_may_be_written_in_several_ways():
    columns = [slice(0, 10), View(list(range(10, 20)))]
    model = lcra(views=columns).fit(X, Y, qid=QID)
    assert [v.tolist() for v in model.views_] == [list(range(10)), list(range(10, 20))]
    parts = lcra(views=3).fit(X, Y, qid=QID).views_
    assert sorted(np.concatenate(parts).tolist()) == list(range(20))
    with pytest.raises(InputError, match="views=21 needs a column for each, but X has n_features = 20"):
        lcra(views=21).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="LCRA is linear in each view's columns"):
        lcra(views=[View(kernel="gaussian"), [0]]).fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="a view sees column 50, but X has columns 0 to 19"):
        lcra(views=[[50], [0]]).fit(X, Y, qid=QID)


def test_the_exact_solver_takes_the_squared_loss_only():
    with pytest.raises(InputError, match="solver='exact' needs the squared loss, but loss is 'hinge'"):
        lcra(solver="exact").fit(X, Y, qid=QID)
