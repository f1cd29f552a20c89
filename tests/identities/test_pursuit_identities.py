"""The identities of pursuits: with other libraries, with each other, and with what they are limits of."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import OrthogonalMatchingPursuit

from corank.base.kernels import GaussianKernel
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.models import pursuit

# columns as they are: these tests compute by hand
RankingPursuit = partial(pursuit.RankingPursuit, scale=False)
CoRankingPursuit = partial(pursuit.CoRankingPursuit, scale=False)

PROBLEM = make_ranking(8, (3, 9), random_state=7)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.4, random_state=0)
KERNEL = GaussianKernel(0.05)


def test_regression_with_back_fitting_is_orthogonal_matching_pursuit():
    unit = X / np.linalg.norm(X, axis=0)
    model = RankingPursuit(6, dictionary="columns", mix=1.0, fitting="back", fit_intercept=False).fit(unit, PROBLEM.y)
    for p in (1, 3, 6):
        other = OrthogonalMatchingPursuit(n_nonzero_coefs=p, fit_intercept=False).fit(unit, PROBLEM.y)
        assert set(model.terms_[:p]) == set(np.flatnonzero(other.coef_))
        np.testing.assert_allclose(model.predict(unit, n_terms=p), unit @ other.coef_, rtol=1e-8)


def test_ranking_one_query_is_regression_on_what_was_centred():
    centred = X - X.mean(axis=0)
    one = RankingPursuit(6, dictionary="columns", fitting="back").fit(X, PROBLEM.y)
    other = RankingPursuit(6, dictionary="columns", mix=1.0, fitting="back").fit(centred, PROBLEM.y - PROBLEM.y.mean())
    np.testing.assert_array_equal(one.terms_, other.terms_)
    np.testing.assert_allclose(one.term_path_, other.term_path_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("coupling", [0.0, 0.3, 50.0])
def test_identical_views_are_one_view_at_any_coupling(coupling):
    one = RankingPursuit(6, KERNEL, dictionary="all").fit(X, Y, qid=QID)
    views = CoRankingPursuit(6, [KERNEL, KERNEL, KERNEL], coupling=coupling, search="shared").fit(X, Y, qid=QID)
    np.testing.assert_array_equal(views.terms_, np.repeat(one.terms_[:, None], 3, axis=1))
    np.testing.assert_allclose(views.predict(X), one.predict(X), rtol=1e-8, atol=1e-10)


def test_uncoupled_views_with_separate_residues_are_independent_pursuits():
    kernels = [KERNEL, GaussianKernel(0.01)]
    views = CoRankingPursuit(6, kernels, coupling=0.0, residual="separate").fit(X, Y, qid=QID)
    for v, kernel in enumerate(kernels):
        alone = RankingPursuit(6, kernel, dictionary="all").fit(X, Y, qid=QID)
        np.testing.assert_array_equal(views.terms_[:, v], alone.terms_)
        np.testing.assert_allclose(views.predict_views(X)[:, v], alone.predict(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("search", ["joint", "shared"])
def test_what_the_mean_of_the_views_leaves_over_never_grows(search):
    model = CoRankingPursuit(12, [KERNEL, GaussianKernel(0.01)], coupling=0.2, search=search).fit(X, Y, qid=QID)
    scored = ~np.isnan(Y)
    lefts = []
    for p in range(len(model.term_coefs_) + 1):
        r = Y[scored] - model.predict(X[scored], n_terms=p)
        lefts.append(sum(len(rows) * ((r[rows] - r[rows].mean()) ** 2).sum() for rows in _queries(QID[scored])))
    assert (np.diff(lefts) <= 1e-9).all()


def test_combined_pursuit_lies_between_ranking_and_regression():
    how = {"fitting": "back", "query_weight": "rows", "fit_intercept": False}
    ends = {mix: RankingPursuit(8, KERNEL, mix, **how) for mix in (0.0, 0.5, 1.0)}
    for model in ends.values():
        model.fit(X, PROBLEM.y, qid=QID)

    def parts(model):
        r = PROBLEM.y - model.predict(X)
        return sum(((r[rows] - r[rows].mean()) ** 2).sum() for rows in _queries(QID)), (r**2).sum()

    ranking, middle, regression = (parts(ends[mix]) for mix in (0.0, 0.5, 1.0))
    assert ranking[0] <= middle[0] * 1.01
    assert regression[1] <= middle[1] * 1.01
    assert middle[1] < ranking[1]


def _queries(qid):
    return [np.flatnonzero(qid == q) for q in np.unique(qid)]
