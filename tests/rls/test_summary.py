from __future__ import annotations

import pickle

import numpy as np
import pytest

from corank.basis.features import FeatureMap
from corank.data.make import make_ranking
from corank.data.ranking import RankingData
from corank.data.split import hide_scores
from corank.errors import InputError
from corank.kernels import GaussianKernel
from corank.rls import CoRankRLS
from corank.rls.summary import Summary
from corank.views import View

PROBLEM = make_ranking(12, 6, random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = hide_scores(PROBLEM.y, fraction=0.4, random_state=0)
MAPS = (
    FeatureMap.on_basis(View(None, GaussianKernel(0.05)), X, np.arange(0, 72, 9)),
    FeatureMap.of_columns(View([0, 1, 2]), 3),
)


def part(chosen, maps=MAPS):
    return Summary.of(maps, RankingData.of(X[chosen], Y[chosen], QID[chosen]))


def test_a_sum_of_parts_in_any_order_is_the_whole():
    whole = part(QID >= 0)
    parts = [part(r == QID % 3) for r in range(3)]
    for order in ([0, 1, 2], [2, 0, 1]):
        total = parts[order[0]] + parts[order[1]] + parts[order[2]]
        np.testing.assert_allclose(total.system(0.7)[0], whole.system(0.7)[0], rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(total.system(0.7)[1], whole.system(0.7)[1], rtol=1e-10, atol=1e-9)


def test_a_summary_from_another_process_can_be_added():
    one, other = part(QID < 6), pickle.loads(pickle.dumps(part(QID >= 6)))
    np.testing.assert_allclose((one + other).system(0.1)[0], part(QID >= 0).system(0.1)[0], atol=1e-9)


def test_summaries_of_other_features_are_refused():
    other = (FeatureMap.on_basis(View(None, GaussianKernel(0.05)), X, np.arange(1, 72, 9)), MAPS[1])
    with pytest.raises(InputError, match="different views or basis rows"):
        part(QID < 6) + part(QID >= 6, other)


def test_the_system_is_positive_whatever_the_coupling():
    for coupling in (0.0, 1.0, 1e6):
        A, _ = part(QID >= 0).system(coupling)
        assert np.linalg.eigvalsh(A).min() > -1e-9 * np.trace(A)


def test_one_view_disagrees_with_nobody():
    assert np.isnan(part(QID >= 0, MAPS[:1]).disagreement(np.zeros(MAPS[0].n_features)))


def test_a_part_may_hold_no_pair_but_the_whole_may_not():
    y = np.where(QID < 6, np.nan, Y)
    model = CoRankRLS(2, coupling=0.1, random_state=0)
    whole = model.summary(X, y, qid=QID)
    unscored = model.summary(X[QID < 6], y[QID < 6], qid=QID[QID < 6], like=whole)
    rest = model.summary(X[QID >= 6], y[QID >= 6], qid=QID[QID >= 6], like=whole)
    np.testing.assert_allclose(
        model.fit_summary(unscored + rest).predict(X), model.fit(X, y, qid=QID).predict(X), atol=1e-9
    )
    with pytest.raises(InputError, match="no part of the summary holds two scored rows"):
        model.fit_summary(unscored)
