from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.models.rls.frame import ComparedRows
from corank.models.rls.leave_out import pairs_out
from corank.models.rls.spectrum import RidgeSpectrum

RNG = np.random.default_rng(4)
ALPHAS = np.array([1e-3, 1.0, 1e4, 1e18])


def test_one_grade_has_no_pair_to_leave_out():
    X = RNG.normal(size=(5, 2))
    frame = ComparedRows.of(RankingData.of(X, np.ones(5)), "pairs", ties=True)
    ((_, _, rows, t),) = frame.designs(X, np.asarray)
    assert np.isnan(
        pairs_out(RidgeSpectrum.of(rows.T @ rows, rows.T @ t), rows, frame, ALPHAS, frame.error_scales(0.0))
    ).all()


@pytest.mark.parametrize("weights", [np.ones(9), np.array([1, 2, 1, 1, 3, 1, 2, 1, 1.0])], ids=["plain", "weighted"])
def test_pairs_out_does_not_care_which_form_it_is_given(weights):
    X, y = RNG.normal(size=(9, 3)), np.array([0, 1, 2, 0, 1, 2, 0, 3, 1.0])
    frame = ComparedRows.of(RankingData.of(X, y, weights=weights), "pairs", ties=True)
    ((_, _, rows, t),) = frame.designs(X, np.asarray)
    M = rows @ rows.T
    u = np.sqrt(weights / weights.sum())
    dual = pairs_out(
        RidgeSpectrum.of(M + np.outer(u, u), t), None, frame, ALPHAS, frame.error_scales(np.sum(X**2, axis=1))
    )
    primal = pairs_out(RidgeSpectrum.of(rows.T @ rows, rows.T @ t), rows, frame, ALPHAS, frame.error_scales(0.0))
    np.testing.assert_allclose(dual, primal)
