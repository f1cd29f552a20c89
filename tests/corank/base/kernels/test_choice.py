from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.base.kernels.basis import choose_basis
from corank.base.kernels.views import View
from corank.core.rows.access import ScaledRows
from corank.errors import InputError
from corank.models.rls import RankRLS

X = np.random.default_rng(0).normal(size=(50, 3))
CANDIDATES = np.arange(0, 50, 2)


def choose(n_basis=5, basis="random", view=None, rows=X, seed=0):
    return choose_basis(view or View(), rows, CANDIDATES, n_basis, basis, np.random.default_rng(seed))


@pytest.mark.parametrize("basis", ["random", "kmeans++"])
@pytest.mark.parametrize("rows", [X, sparse.csr_array(X)], ids=["dense", "csr"])
def test_chosen_rows_are_candidates_and_differ(basis, rows):
    chosen = choose(basis=basis, rows=rows)
    assert len(np.unique(chosen)) == 5
    assert np.isin(chosen, CANDIDATES).all()
    np.testing.assert_array_equal(chosen, choose(basis=basis, rows=rows))


def test_every_candidate_is_equally_likely():
    counts = sum(np.bincount(choose(seed=seed), minlength=50) for seed in range(2000))[CANDIDATES]
    # binomial(2000, 1/5) for each: five standard deviations
    assert np.abs(counts - 400).max() < 5 * np.sqrt(2000 * 0.2 * 0.8)


def test_kmeans_spreads_rows():
    clusters = np.repeat(np.eye(3) * 100, [48, 1, 1], axis=0) + X
    chosen = choose_basis(View(), clusters, np.arange(50), 3, "kmeans++", np.random.default_rng(0))
    assert {48, 49} <= set(chosen.tolist())


def test_kmeans_does_not_see_where_the_origin_is():
    clusters = np.repeat(np.eye(3) * 100, [48, 1, 1], axis=0) + np.round(X, 1)
    far = clusters + 2.0**40
    for seed in range(5):
        chosen = [
            choose_basis(View(), rows, np.arange(50), 3, "kmeans++", np.random.default_rng(seed))
            for rows in (far - 2.0**40, far)
        ]
        np.testing.assert_array_equal(*chosen)


def test_all_candidates_where_none_or_too_many_are_asked_for():
    np.testing.assert_array_equal(choose(n_basis=None), CANDIDATES)
    np.testing.assert_array_equal(choose(n_basis=99), CANDIDATES)


def test_given_rows_and_a_view_of_its_own_go_first():
    assert choose(basis=[7, 3]).tolist() == [3, 7]
    assert choose(basis=[7, 3], view=View(basis=[1])).tolist() == [1]


@pytest.mark.parametrize(
    ("basis", "sentence"),
    [
        ("best", "basis is 'best'; choose one of random, kmeans\\+\\+, or pass row numbers"),
        ([50], "basis names row 50, but X has rows 0 to 49"),
        ([-1, 3], "basis names row -1"),
        ([0.5], "pass 'random', 'kmeans\\+\\+' or a list of row numbers"),
        ([], "pass 'random', 'kmeans\\+\\+' or a list of row numbers"),
    ],
)
def test_bad_bases_get_one_sentence(basis, sentence):
    with pytest.raises(InputError, match=sentence):
        choose(basis=basis)


def test_kmeans_needs_columns_and_sees_them_scaled():
    with pytest.raises(InputError, match="use basis='random'"):
        choose(basis="kmeans++", view=View(None, "precomputed"))
    with pytest.raises(InputError, match="use basis='random'"):
        choose(basis="kmeans++", view=View(None, len), rows=np.full(50, "word", dtype=object))
    factors = np.array([1e-6, 1.0, 1e3])
    np.testing.assert_array_equal(
        choose(basis="kmeans++", rows=ScaledRows(X, factors)), choose(basis="kmeans++", rows=X * factors)
    )


def test_a_fit_takes_its_dice_from_a_random_state():
    q, y = np.repeat(np.arange(10), 5), X[:, 0]
    running = np.random.RandomState(3)
    one, later, same = (
        RankRLS(kernel="gaussian", n_basis=5, random_state=state).fit(X, y, qid=q).basis_.numbers
        for state in (running, running, np.random.RandomState(3))
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, later)
