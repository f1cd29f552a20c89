"""The centring kernel against dense matrices (more in tests/identities/test_graph_identities.py)."""

import numpy as np
import pytest

from corank.core.rows.blocks import FULL, HALF, HALF_T, INVERSE, Blocks, centre_blocks

ROWS, STARTS = np.array([5, 0, 3, 6, 1, 2], dtype=np.uint64), np.array([0, 2, 6], dtype=np.uint64)
SCALE = np.array([2.0, 1.5])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("form", [FULL, HALF, HALF_T, INVERSE])
@pytest.mark.parametrize("grades", [[4], [1, 3], [2, 1, 1]])
def test_one_block_equals_its_matrix_and_other_rows_are_left_alone(weighted, r, form, grades):
    rng = np.random.default_rng(0)
    V, out = rng.standard_normal((7, r)), np.full((7, r), np.nan)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 0.7, 1.0]) if weighted else np.empty(0)
    w = weights[2:] if weighted else np.ones(4)
    run, W = np.repeat(np.arange(len(grades)), grades), w.sum()
    k = np.sqrt(1 - np.bincount(run, w) / W) if len(grades) > 1 else np.ones(1)
    runs = np.cumsum([0, 2, *grades]).astype(np.uint64)
    block_runs = np.array([0, 1, 1 + len(grades)], dtype=np.uint64)
    # s Σ over pairs of different runs (of one run: over all pairs) of w_i w_j (e_i − e_j)(e_i − e_j)ᵀ / W
    L = np.zeros((4, 4))
    for i in range(4):
        for j in range(i):
            if len(grades) == 1 or run[i] != run[j]:
                e = np.eye(4)[i] - np.eye(4)[j]
                L += 1.5 * w[i] * w[j] / W * np.outer(e, e)

    def applied(block, form):
        blocks = Blocks(ROWS, STARTS, runs, block_runs, np.append(1.0, k), weights, SCALE)
        centre_blocks(block, out, blocks, form, 1, 2)
        assert np.isnan(out[[0, 4, 5]]).all()
        return out[[3, 6, 1, 2]].copy()

    if form == INVERSE:
        V[[3, 6, 1, 2]] -= np.average(V[[3, 6, 1, 2]], axis=0, weights=w)
        halved = np.zeros_like(V)
        halved[[3, 6, 1, 2]] = applied(V, HALF)
        np.testing.assert_allclose(applied(halved, INVERSE), V[[3, 6, 1, 2]], atol=1e-12)
        return
    found = applied(V, form)
    if form == FULL:
        np.testing.assert_allclose(found, L @ V[[3, 6, 1, 2]], atol=1e-12)
        return
    out = np.full((7, 4), np.nan)
    E = np.zeros((7, 4))
    E[[3, 6, 1, 2]] = np.eye(4)
    H = applied(E, HALF)
    np.testing.assert_allclose(H.T @ H, L, atol=1e-12)
    np.testing.assert_allclose(found, (H if form == HALF else H.T) @ V[[3, 6, 1, 2]], atol=1e-12)
