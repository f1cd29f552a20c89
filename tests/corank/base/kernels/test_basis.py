from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.base.kernels import CallableKernel, GaussianKernel, PolynomialKernel, PrecomputedKernel
from corank.base.kernels import basis as module
from corank.base.kernels import kernel as grams
from corank.base.kernels.basis import Basis, FeatureMap
from corank.base.kernels.views import View
from corank.core.rows.access import ScaledRows
from corank.data.scoring import score_columns
from corank.deploy.persist.codec import decode, encode
from corank.errors import InputError
from corank.models.linear import RankSVM
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from corank.models.rls import CoRankRLS, RankRLS

X = np.random.default_rng(0).normal(size=(20, 3))
ROWS = np.arange(0, 20, 2)
GAUSSIAN = GaussianKernel(0.2)


def gram(kernel, rows=X, chosen=ROWS):
    return Basis.of(View(None, kernel), rows, chosen).gram(rows)


def test_columns_functions_and_given_similarities_agree():
    K = GAUSSIAN(X)
    for kernel, rows in (
        (GAUSSIAN, X),
        (CallableKernel(GAUSSIAN), X),
        (PrecomputedKernel(), K),
        (PrecomputedKernel(), K.astype(np.float32)),
    ):
        basis = Basis.of(View(None, kernel), rows, ROWS)
        found = basis.gram(rows)
        assert found.dtype == np.float64
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, K[np.ix_(ROWS, ROWS)], atol=1e-7)
        np.testing.assert_allclose(basis.similarities(rows), K[:, ROWS], atol=1e-7)
        smaller = basis.subset(np.array([3, 1, 3]))
        assert (len(smaller), smaller.numbers.tolist()) == (2, [2, 6])
        np.testing.assert_allclose(smaller.similarities(rows), K[:, [2, 6]], atol=1e-7)


@pytest.mark.parametrize("rows", [X, sparse.csr_array(X), X.astype(np.float32)], ids=["dense", "csr", "single"])
def test_scaled_rows_are_seen_scaled(rows):
    factors, view = np.array([1.0, 10.0, 0.1]), View([0, 2], GAUSSIAN)
    scaled = ScaledRows(rows, factors)
    basis = Basis.of(view, scaled, ROWS)
    expected = GAUSSIAN((X * factors)[:, [0, 2]])
    np.testing.assert_allclose(basis.gram(scaled), expected[np.ix_(ROWS, ROWS)], atol=1e-6)
    np.testing.assert_allclose(basis.similarities(scaled), expected[:, ROWS], atol=1e-6)
    np.testing.assert_allclose(basis.score(scaled, np.arange(10.0)), expected[:, ROWS] @ np.arange(10.0), atol=1e-5)


def test_scores_come_in_blocks(monkeypatch):
    basis, a = Basis.of(View(None, GAUSSIAN), X, ROWS), np.arange(20.0).reshape(10, 2)
    whole = basis.score(X, a)
    monkeypatch.setattr(module, "_ROWS", 7)
    np.testing.assert_allclose(basis.score(X, a), whole)
    np.testing.assert_allclose(basis.score(X, a[:, 0]), whole[:, 0])
    np.testing.assert_allclose(np.vstack([K for _, K in basis.blocks(X, ROWS)]), basis.gram(X))
    np.testing.assert_allclose(score_columns(X, a[:3]), X @ a[:3])
    np.testing.assert_allclose(score_columns(sparse.csr_array(X), a[:3, 0]), X @ a[:3, 0])
    assert not basis.subset(np.arange(0)).score(X, np.empty(0)).any()


def test_blocks_of_a_large_basis_are_of_few_rows():
    rows = np.ones((2000, 1))
    blocks = [K.size for _, K in Basis.of(View(None, "linear"), rows, np.arange(2000)).blocks(rows)]
    assert sum(blocks) == 2000**2
    assert max(blocks) <= 2**21


UNSOUND = {
    "is not symmetric": lambda A, B: (A @ B.T) * (1.0 + 0.1 * (A[:, :1] > B[:, 0])),
    "is not positive semidefinite": lambda A, B: -(A @ B.T),
    "returned NaN or infinity": lambda A, B: np.full((len(A), len(B)), np.nan),
}


@pytest.mark.parametrize("fault", UNSOUND)
@pytest.mark.parametrize("ranker", [RankRLS, CoRankRLS, RankSVM, RankingPursuit, CoRankingPursuit], ids=str)
def test_every_ranker_judges_a_kernel_alike(ranker, fault):
    y, kernel = np.where(np.arange(20) < 15, X[:, 0], np.nan), UNSOUND[fault]
    how = {"views": [View(None, kernel)] * 2} if "views" in ranker().get_params() else {"kernel": kernel}
    with pytest.raises(InputError, match=f"the kernel.* {fault}"):
        ranker(**how).fit(X, y)
    K = -np.eye(20) if "definite" in fault else np.triu(np.ones((20, 20)))
    how = {"views": [View(None, "precomputed")] * 2} if "views" in how else {"kernel": "precomputed"}
    with pytest.raises(InputError, match=r"the kernel is not (symmetric|positive semidefinite); use a kernel"):
        ranker(**how).fit(K, y)


def test_a_large_basis_is_judged_by_some_of_its_rows():
    seen = []
    kernel = CallableKernel(lambda A, B: seen.append(len(A)) or A @ B.T)
    rows = np.ones((1000, 1))
    Basis.of(View(None, kernel), rows, np.arange(1000)).check(rows)
    assert seen == [512]


def test_what_a_function_returned_is_not_overwritten():
    K = GAUSSIAN(X)
    assert not np.shares_memory(gram(CallableKernel(lambda A, B: K), chosen=np.arange(20)), K)


@pytest.mark.parametrize("block", [3, 256])
@pytest.mark.parametrize("at", [(0, 9), (8, 1), (5, 4)])
def test_a_matrix_that_is_not_symmetric_is_refused(monkeypatch, block, at):
    monkeypatch.setattr(grams, "_BLOCK", block)
    K = GAUSSIAN(X[ROWS])
    K[at] += 1e-6
    for kernel in (CallableKernel(lambda A, B: K), PrecomputedKernel()):
        with pytest.raises(InputError, match="the kernel is not symmetric"):
            gram(kernel, K, np.arange(10))
    K[at] -= 1e-6 - 1e-9
    found = gram(PrecomputedKernel(), K, np.arange(10))
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("how", [{}, {"n_basis": 8}, {"alphas": [1.0]}, {"alpha": 1e6}])
@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda A, B: A @ B.T + A[:, :1], "the kernel is not symmetric; use a kernel with k"),
        (
            lambda A, B: GAUSSIAN(A, B) - 0.5 * (A @ B.T),
            "the kernel is not positive semidefinite; use a kernel",
        ),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "the kernel function returned NaN or infinity"),
    ],
)
def test_a_bad_kernel_gets_one_sentence_whoever_meets_it(how, function, sentence):
    y, qid = X[:, 0], np.repeat(np.arange(5), 4)
    with pytest.raises(InputError, match=sentence):
        RankRLS(kernel=function, random_state=0, **how).fit(X, y, qid=qid)
    with pytest.raises(InputError, match=sentence):
        FeatureMap.on_basis(Basis.of(View(None, function), X, ROWS), X)


def test_numbers_beyond_float64_are_refused():
    with pytest.raises(InputError, match="overflow float64; rescale the columns"):
        gram(PolynomialKernel(3), X * 1e110)


def test_similarities_that_are_all_zero_are_an_inner_product():
    assert not gram(CallableKernel(lambda A, B: np.zeros((len(A), len(B))))).any()


def test_objects_are_rows():
    words = np.array(["rank", "pair", "ranked"], dtype=object)
    basis = Basis.of(View(None, lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A]), words, np.array([0, 2]))
    assert basis.gram(words).tolist() == [[4.0, 4.0], [4.0, 6.0]]
    assert basis.similarities(words).tolist() == [[4.0, 4.0], [2.0, 2.0], [4.0, 6.0]]


@pytest.mark.parametrize("rows", [X, sparse.csr_array(X)], ids=["dense", "csr"])
def test_a_basis_made_elsewhere_is_known_again_and_saved(rows):
    basis = Basis.of(View([0, 2], GAUSSIAN), rows, ROWS)
    assert basis.is_like(Basis.of(View([0, 2], GAUSSIAN), rows.copy(), ROWS))
    assert not basis.is_like(Basis.of(View([0, 1], GAUSSIAN), rows, ROWS))
    assert not basis.is_like(Basis.of(View([0, 2], GaussianKernel(0.3)), rows, ROWS))
    assert not basis.is_like(Basis.of(View([0, 2], GAUSSIAN), rows, ROWS + 1))
    assert not basis.is_like(basis.subset(np.arange(3)))
    tensors = {}
    again = decode(encode(basis, "basis", tensors), tensors)
    assert basis.is_like(again)
    np.testing.assert_array_equal(again.numbers, ROWS)
