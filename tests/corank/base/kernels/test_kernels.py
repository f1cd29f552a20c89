"""Kernels against their formulas written out row by row, and against each other."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF

from corank.base.kernels import (
    KERNELS,
    ARDKernel,
    CallableKernel,
    ChiSquareKernel,
    CosineKernel,
    GaussianKernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    PrecomputedKernel,
    SumKernel,
    as_kernel,
)
from corank.base.kernels.kernel import inverse_root, is_precomputed, require_inner_product
from corank.deploy.persist.codec import decode, encode
from corank.errors import InputError


def chi_square(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def cosine(x, z):
    norms = np.linalg.norm(x) * np.linalg.norm(z)
    return x @ z / norms if norms else 0.0


FORMULAS = [
    (LinearKernel(), lambda x, z: x @ z),
    (PolynomialKernel(3, 0.5, 2.0), lambda x, z: (0.5 * (x @ z) + 2.0) ** 3),
    (CosineKernel(), cosine),
    (GaussianKernel(0.3), lambda x, z: np.exp(-0.3 * np.sum((x - z) ** 2))),
    (LaplacianKernel(0.3), lambda x, z: np.exp(-0.3 * np.sum(np.abs(x - z)))),
    (ChiSquareKernel(0.3), lambda x, z: np.exp(-0.3 * chi_square(x, z))),
    (CallableKernel(lambda X, Z: X @ Z.T + 1), lambda x, z: x @ z + 1),
]


def rows(n, seed, dtype=np.float64):
    X = np.random.default_rng(seed).random((n, 5)).astype(dtype)
    X[X < 0.3] = 0
    X[0] = 0
    return X


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_and_diagonal_equal_the_formula(kernel, formula, dtype):
    X, Z = rows(7, 0, dtype), rows(70, 1, dtype)
    expected = np.array([[formula(x, z) for z in Z.astype(float)] for x in X.astype(float)])
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-12}
    gram = kernel(X, Z)
    assert gram.dtype == dtype
    np.testing.assert_allclose(gram, expected, **close)
    np.testing.assert_allclose(kernel(Z), kernel(Z, Z), **close)
    np.testing.assert_allclose(kernel.diag(Z), np.diagonal(kernel(Z)), **close)
    assert kernel.diag(X).dtype == dtype


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in FORMULAS[:6]])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_give_the_dense_result_or_a_sentence(kernel, kind):
    X, Z = rows(7, 0), rows(5, 1)
    if not kernel.takes_sparse:
        with pytest.raises(InputError, match=r"needs dense rows; pass X.toarray"):
            kernel(kind(X))
        return
    for left, right in product((X, kind(X)), (Z, kind(Z))):
        np.testing.assert_allclose(kernel(left, right), kernel(X, Z), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(kind(X)), kernel.diag(X))


@pytest.mark.parametrize(
    ("kernel", "distance", "at_median"),
    [
        (GaussianKernel(), lambda x, z: np.sum((x - z) ** 2), 0.125),
        (LaplacianKernel(), lambda x, z: np.sum(np.abs(x - z)), 1.0),
        (ChiSquareKernel(), chi_square, 1.0),
    ],
)
def test_median_gamma_is_that_of_all_pairs(kernel, distance, at_median):
    X = rows(30, 2)
    D = [distance(x, z) for i, x in enumerate(X) for j, z in enumerate(X) if i != j]
    fitted = kernel.fit(X, np.random.default_rng(0))
    # of few rows all pairs are looked at: the lower of the two in the middle, each pair being there twice
    np.testing.assert_allclose(fitted.gamma, at_median / np.sort(D)[(len(D) - 1) // 2])
    many = kernel.fit(np.repeat(X, 10, axis=0), np.random.default_rng(0))
    np.testing.assert_allclose(many.gamma, fitted.gamma, rtol=0.1)
    times = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = kernel.fit(X, np.random.default_rng(0), times.astype(float))
    assert weighted.gamma == pytest.approx(kernel.fit(np.repeat(X, times, axis=0), np.random.default_rng(0)).gamma)
    assert fitted == kernel.fit(X, np.random.default_rng(0))
    assert fitted.fit(X[:2], np.random.default_rng(0)) is fitted
    assert kernel.fit(np.ones((3, 2)), np.random.default_rng(0)).gamma == 1.0
    with pytest.raises(InputError, match=r"call kernel.fit"):
        kernel(X)
    with pytest.raises(InputError, match="the median distance of 1 rows is undefined"):
        kernel.fit(X[:1], np.random.default_rng(0))


def test_median_gamma_of_sparse_rows_is_that_of_dense_rows():
    X = rows(30, 2)
    dense, csr = (GaussianKernel().fit(A, np.random.default_rng(0)) for A in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense.gamma, csr.gamma)


def long_gaussian(X, Z, gamma):
    """exp(−gamma ‖x − z‖²) pair by pair, differences before squares, in extended precision."""
    rows = [np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.longdouble) for A in (X, Z)]
    return np.exp(-np.longdouble(gamma) * ((rows[0][:, None] - rows[1]) ** 2).sum(axis=2)).astype(float)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, -1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gaussian_kernel_does_not_see_where_the_origin_is(offset, dtype):
    rng = np.random.default_rng(0)
    X, Z = ((rng.normal(size=(n, 4)) + offset).astype(dtype) for n in (30, 9))
    kernel, exact = GaussianKernel(0.2), np.finfo(dtype).eps
    pairs = {"dense": (X, Z), "csr": (sparse.csr_array(X), sparse.csr_array(Z))}
    pairs |= {"mixed": (pairs["csr"][0], Z), "mixed too": (X, pairs["csr"][1]), "itself": (X, X)}
    for left, right in pairs.values():
        np.testing.assert_allclose(kernel(left, right), long_gaussian(left, right, 0.2), atol=4 * exact, rtol=0)
    # distances of the median too: offsets that float64 rows hold leave it alone
    median = GaussianKernel().fit(X, np.random.default_rng(1)).gamma
    near = GaussianKernel().fit(X.astype(np.float64) - dtype(offset), np.random.default_rng(1)).gamma
    assert median == pytest.approx(near, rel=1e-6)


def test_a_gaussian_kernel_sees_two_clusters_far_from_each_other():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1e9]], 10, axis=0) + rng.normal(size=(20, 3))
    np.testing.assert_allclose(GaussianKernel(0.2)(X), long_gaussian(X, X, 0.2), atol=1e-15)


def test_a_column_that_few_sparse_rows_lack_may_be_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.3)
    X[:, 2] = 1e7 + rng.normal(size=20)
    X[4, 2] = 0.0
    A = sparse.csr_array(X)
    np.testing.assert_allclose(GaussianKernel(0.2)(A), long_gaussian(X, X, 0.2), atol=1e-14)
    np.testing.assert_allclose(GaussianKernel(0.2)(A[4:6], A), long_gaussian(X[4:6], X, 0.2), atol=1e-14)


@pytest.mark.parametrize(("size", "word"), [(1e200, "large"), (1e-200, "small")])
@pytest.mark.parametrize("kernel", [GaussianKernel(), ChiSquareKernel()], ids=["gaussian", "chi-square"])
def test_distances_beyond_float64_are_said_to_be_those_of_the_rows(kernel, size, word):
    with pytest.raises(InputError, match=f"X has numbers so {word} .* rescale the columns"):
        kernel.fit(rows(10, 2) * size, np.random.default_rng(0))
    if word == "large":
        with np.errstate(over="ignore"):
            assert np.isnan(GaussianKernel(1.0)(rows(10, 2) * 1e307)).all()
    # single precision holds less, but its distances are not computed in it
    assert 0 < GaussianKernel().fit((rows(10, 2) * 1e30).astype(np.float32), np.random.default_rng(0)).gamma < 1e-59


def test_a_precomputed_kernel_hands_back_similarities():
    K = np.ascontiguousarray(rows(4, 0)[:, :4])
    kernel = PrecomputedKernel()
    assert kernel(K) is K
    assert kernel(K[:2], K).tolist() == K[:2].tolist()
    assert kernel(K, np.array([3, 1])).tolist() == K[:, [3, 1]].tolist()
    assert kernel.diag(K).tolist() == np.diag(K).tolist()
    with pytest.raises(InputError, match="similarities to 4 rows, but Z has 2"):
        kernel(K, K[:2])
    with pytest.raises(InputError, match="pass the square Gram matrix"):
        kernel.diag(K[:2])


def test_names_functions_and_kernels_are_kernels():
    assert {as_kernel(name) for name in KERNELS} == {kind() for kind in KERNELS.values()}
    kernel = GaussianKernel(2.0)
    assert as_kernel(kernel) is kernel
    np.testing.assert_allclose(as_kernel(lambda X, Z: X @ Z.T)(rows(3, 0)), LinearKernel()(rows(3, 0)))


@pytest.mark.parametrize("kernel", [PolynomialKernel(3, 0.5), GaussianKernel(0.25), ChiSquareKernel(), LinearKernel()])
def test_a_saved_kernel_comes_back_equal(kernel):
    assert decode(encode(kernel, "kernel", {}), {}) == kernel


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_kernel("rbq"), "kernel is 'rbq'; choose one of"),
        (lambda: as_kernel(3), "kernel is 3; choose one of"),
        (lambda: as_kernel(GaussianKernel), "pass a Kernel"),
        (lambda: GaussianKernel("mean"), "gamma is 'mean'; pass a positive number or \"median\""),
        (lambda: GaussianKernel(-1.0), "gamma is -1.0"),
        (lambda: PolynomialKernel(gamma=np.inf), "gamma is inf"),
        (lambda: PolynomialKernel(degree=1.5), "degree is 1.5"),
        (lambda: PolynomialKernel(coef0=-1), "coef0 is -1"),
        (lambda: LinearKernel()(rows(2, 0), rows(2, 0)[:, :3]), "X has 5 columns and Z 3"),
        (lambda: ChiSquareKernel(1.0)([[1.0, 2.0], [0.0, -3.0]]), "X is -3.0 at row 1, column 1"),
        (lambda: CallableKernel(lambda X, Z: X)(rows(3, 0)), r"returned shape \(3, 5\) for 3 and 3 rows"),
        (lambda: encode(CallableKernel(len), "kernel", {}), "cannot be saved"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("make", [lambda: GaussianKernel(None), lambda: PolynomialKernel(gamma=None)])
def test_a_parameter_that_is_no_number_is_named(make):
    with pytest.raises(InputError, match="gamma is None; pass a positive number"):
        make()
    with pytest.raises(InputError, match="coef0 is None; pass a number of at least 0"):
        PolynomialKernel(coef0=None)


def test_an_entry_stored_in_two_parts_counts_once():
    X = sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    for kernel in (LinearKernel(), PolynomialKernel(), GaussianKernel(0.1), CosineKernel()):
        np.testing.assert_allclose(kernel(X), kernel(X.toarray()))
        np.testing.assert_allclose(kernel.diag(X), kernel.diag(X.toarray()))


def test_a_function_of_whole_numbers_gives_floats_and_one_of_others_a_sentence():
    whole = CallableKernel(lambda X, Z: (X @ Z.T > 0).astype(int))(rows(5, 0))
    assert whole.dtype == np.float64
    with pytest.raises(InputError, match="the kernel function returned values of type"):
        CallableKernel(lambda X, Z: X @ Z.T * 1j)(rows(5, 0))


def test_features_from_the_inverse_root_have_the_products_of_the_kernel():
    K = LinearKernel()(rows(9, 3))
    T = inverse_root(K.copy())
    assert T.shape == (9, 5)
    np.testing.assert_allclose((K @ T) @ (K @ T).T, K, atol=1e-10)


@pytest.mark.parametrize("kernel", [PrecomputedKernel(), CallableKernel(len)])
def test_what_a_user_brings_must_be_an_inner_product(kernel):
    K = LinearKernel()(rows(9, 3))
    require_inner_product(K.copy(), kernel)
    for bad in (-K, K - 0.5 * np.diag(np.diag(K))):
        with pytest.raises(InputError, match="the kernel is not positive semidefinite"):
            require_inner_product(bad.copy(), kernel)
        # the kernels of corank are trusted
        require_inner_product(bad.copy(), LinearKernel())
    K[0, 1] += 1.0
    with pytest.raises(InputError, match="the kernel is not symmetric"):
        require_inner_product(K, kernel)
    with pytest.raises(InputError, match=r"NaN|overflow"):
        require_inner_product(K * np.nan, kernel)


def test_precomputed_is_told_by_name_and_by_kernel():
    assert [is_precomputed(kernel) for kernel in ("precomputed", PrecomputedKernel())] == [True, True]
    assert not any(is_precomputed(kernel) for kernel in ("linear", LinearKernel(), None, np.arange(3), len))


def test_a_sum_is_the_sum_of_its_parts():
    rng = np.random.default_rng(0)
    X, Z = rng.random((6, 4)), rng.random((3, 4))
    kernel = SumKernel(
        (GaussianKernel("median"), LinearKernel(), LinearKernel()), (0.5, 2.0, 0.0), ((0, 2), None, (1,))
    )
    kernel = kernel.fit(X, rng)
    gaussian = kernel.kernels[0]
    np.testing.assert_allclose(kernel(X, Z), 0.5 * gaussian(X[:, [0, 2]], Z[:, [0, 2]]) + 2.0 * X @ Z.T)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)))
    np.testing.assert_allclose(kernel(sparse.csr_matrix(X), sparse.csr_matrix(Z)), kernel(X, Z))
    assert kernel == SumKernel(kernel.kernels, kernel.weights, kernel.columns)
    assert not SumKernel((LinearKernel(), CosineKernel()), (1.0, 1.0)).scales_columns
    for kernels, weights in (((), ()), ((LinearKernel(),), (1.0, 2.0)), ((LinearKernel(),), (-1.0,))):
        with pytest.raises(InputError, match="pass"):
            SumKernel(kernels, weights)
    indefinite = SumKernel((CallableKernel(lambda A, B: -(A @ B.T)),), (1.0,))
    with pytest.raises(InputError, match="not positive semidefinite"):
        indefinite(X)


LEARNABLE = [
    GaussianKernel(0.3),
    ARDKernel((0.5, 0.1, 0.2, 0.9, 0.4)),
    CallableKernel(0.7 * RBF(1.5)),
]


@pytest.mark.parametrize("kernel", LEARNABLE, ids=lambda kernel: type(kernel).__name__)
def test_gradient_of_learnable_parameters_is_the_difference_quotient(kernel):
    X, Q = rows(8, 2), np.random.default_rng(3).normal(size=(8, 8))
    Q = Q + Q.T
    assert kernel.with_theta(kernel.theta).theta == pytest.approx(kernel.theta)
    assert kernel.with_theta(np.empty(0)) is kernel
    expected = approx_fprime(kernel.theta, lambda theta: np.sum(Q * kernel.with_theta(theta)(X)), 1e-6)
    assert kernel.theta_gradient(X, kernel(X), Q) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_properties_of_kernels():
    for name, kind in KERNELS.items():
        kernel = kind()
        assert kernel.is_linear == (name == "linear")
        assert kernel.is_precomputed == (name == "precomputed") == (not kernel.is_positive_definite)
        assert not kernel.is_user_function
    function = CallableKernel(lambda X, Z: X @ Z.T)
    assert function.is_user_function
    assert not function.is_positive_definite
    assert not function.is_linear
    for kernel in (function, LinearKernel(), PrecomputedKernel()):
        assert len(kernel.theta) == len(kernel.theta_gradient(None, None, None)) == 0
