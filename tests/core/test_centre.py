"""The centring kernel against dense matrices (more in tests/identities/test_graph_identities.py)."""

import numpy as np
import pytest

from corank.core.centre import FULL, HALF, HALF_T, centre_blocks


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("form", [FULL, HALF, HALF_T])
def test_one_block_equals_its_matrix_and_other_rows_are_left_alone(weighted, r, form):
    rng = np.random.default_rng(0)
    V, out = rng.standard_normal((7, r)), np.full((7, r), np.nan)
    rows, starts = np.array([5, 0, 3, 6, 1], dtype=np.uint64), np.array([0, 2, 5], dtype=np.uint64)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 0.0]) if weighted else np.empty(0)
    scale = np.array([2.0, 1.5])
    centre_blocks(V, out, rows, starts, weights, scale, form, 1, 2)
    w = weights[2:] if weighted else np.ones(3)
    u, W = np.sqrt(w), w.sum()
    H = np.sqrt(1.5) * (np.eye(3) - np.outer(u, u) / W) @ np.diag(u)
    matrix = {FULL: H.T @ H, HALF: H, HALF_T: H.T}[form]
    np.testing.assert_allclose(out[[3, 6, 1]], matrix @ V[[3, 6, 1]], atol=1e-12)
    assert np.isnan(out[[0, 2, 4, 5]]).all()
