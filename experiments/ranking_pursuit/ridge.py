"""
Regularised least squares of one user's ratings for all penalties, by one reduction to a tridiagonal matrix.

On differences it equals `RankRLS`, on ratings kernel ridge regression; the estimators would take hours for so many
users and widths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

Floats = NDArray[np.float64]

# added to the diagonal of a basis' Gram matrix, which is near singular for wide kernels
_JITTER = 1e-10


def ridge(K: Floats, y: Floats, penalties: Sequence[float], *, centred: bool) -> Floats:
    """
    Minimise (y − f)ᵀC(y − f) + alpha ‖f‖², C centring or the identity, over f = Ka.

    The optimum is a = C(CKC + alpha I)⁻¹Cy.

    K (n, n): Gram matrix of the items.
    penalties: values of alpha.
    centred: whether differences are learnt.
    Returns: a, one column for each penalty.
    """
    if not centred:
        return solve_shifted(K, y, penalties)
    A = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    a = solve_shifted(A, y - y.mean(), penalties)
    return np.asarray(a - a.mean(axis=0))


def sparse_ridge(K: Floats, y: Floats, penalties: Sequence[float]) -> Floats:
    """
    Minimise the objective of `ridge` on differences over f of the first items only: sparse RankRLS.

    With K̂ = RRᵀ the Gram matrix of the basis and Φ = KR⁻ᵀ, a = R⁻ᵀ(ΦᵀCΦ + alpha I)⁻¹ΦᵀCy.

    K (n, r): similarities of the items to the first r of them.
    penalties: values of alpha.
    Returns: a, one column for each penalty.
    """
    r = K.shape[1]
    root = np.linalg.cholesky(K[:r] + _JITTER * np.eye(r))
    features = solve_triangular(root, K.T, lower=True, check_finite=False).T
    features = features - features.mean(axis=0)
    w = solve_shifted(features.T @ features, features.T @ y, penalties)
    return np.asarray(solve_triangular(root, w, lower=True, trans="T", check_finite=False))


def solve_shifted(A: Floats, b: Floats, shifts: Sequence[float]) -> Floats:
    """
    Solve (A + α I) x = b for every shift α.

    A = Q T Qᵀ with T tridiagonal costs about as much as one or two plain solves, a twentieth of an eigendecomposition
    for some tens of rows; each shift then takes O(n) and one column of a product with Q.

    A (n, n): symmetric, positive semi-definite.
    b (n,): right side.
    shifts: each α > 0.
    Returns: x, one column for each shift.

    >>> solve_shifted(np.diag([1.0, 3.0]), np.array([2.0, 2.0]), (1.0,))[:, 0].tolist()
    [1.0, 0.5]
    """
    n = len(b)
    if n == 1:
        return np.asarray(b[:, None] / (A[0, 0] + np.asarray(shifts)))
    reflected, diagonal, off_diagonal, tau, _ = lapack.dsytrd(A, lower=1)
    # the reflectors of LAPACK's sytrd act on rows 1..n-1, as those of a QR decomposition of that block do
    vectors = np.asfortranarray(reflected[1:, :-1])

    def rotate(columns: Floats, transposed: str) -> None:
        """Replace columns by Q columns or Qᵀ columns."""
        columns[1:] = lapack.dormqr("L", transposed, vectors, tau, columns[1:], max(64 * columns.shape[1], 1))[0]

    turned = np.array(b, dtype=np.float64, order="F")[:, None]
    rotate(turned, "T")
    x = np.empty((n, len(shifts)), order="F")
    for index, shift in enumerate(shifts):
        x[:, index] = lapack.dptsv(diagonal + shift, off_diagonal, turned)[2][:, 0]
    rotate(x, "N")
    return x
