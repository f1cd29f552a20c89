from __future__ import annotations

import numpy as np
import pytest
from corank.basis.gram import basis_of, gram_of

from corank.errors import InputError
from corank.kernels import CallableKernel, GaussianKernel, PolynomialKernel, PrecomputedKernel
from corank.rls import gram as module
from corank.views import View

X = np.random.default_rng(0).normal(size=(20, 3))
ROWS = np.arange(0, 20, 2)


def gram(kernel, rows=X, chosen=ROWS):
    view = View(None, kernel)
    return gram_of(view, rows, chosen, basis_of(view, rows, chosen))


def test_columns_functions_and_given_similarities_agree():
    K = GaussianKernel(0.2)(X)
    for kernel, rows in (
        (GaussianKernel(0.2), X),
        (CallableKernel(GaussianKernel(0.2)), X),
        (PrecomputedKernel(), K),
        (PrecomputedKernel(), K.astype(np.float32)),
    ):
        found = gram(kernel, rows)
        assert found.dtype == np.float64
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, K[np.ix_(ROWS, ROWS)], atol=1e-7)


def test_what_a_function_returned_is_not_overwritten():
    K = GaussianKernel(0.2)(X)
    assert not np.shares_memory(gram(CallableKernel(lambda A, B: K), chosen=np.arange(20)), K)


@pytest.mark.parametrize("block", [3, 256])
@pytest.mark.parametrize("at", [(0, 9), (8, 1), (5, 4)])
def test_a_matrix_that_is_not_symmetric_is_refused(monkeypatch, block, at):
    monkeypatch.setattr(module, "_BLOCK", block)
    K = GaussianKernel(0.2)(X[ROWS])
    K[at] += 1e-6
    for kernel in (CallableKernel(lambda A, B: K), PrecomputedKernel()):
        with pytest.raises(InputError, match="Gram matrix is not symmetric"):
            gram(kernel, K, np.arange(10))


def test_numbers_beyond_float64_are_refused():
    with pytest.raises(InputError, match="the kernel function returned NaN or infinity"):
        gram(CallableKernel(lambda A, B: np.full((len(A), len(B)), np.nan)))
    with pytest.raises(InputError, match="exceed what float64 holds; scale the columns"):
        gram(PolynomialKernel(3), X * 1e110)
