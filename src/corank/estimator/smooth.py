"""
Smooth: text beside what its neighbours are about, learnt from all rows, judged or not.

    φ(x) = [√(1 − w)·x, √w·z],  z ∝ u + mean of u over the k fitted rows nearest to x

u is x in the r leading directions of a singular value decomposition of the fitted rows; u and z have norm 1. So
φ(x)·φ(x') = (1 − w) x·x' + w z·z': words that never met in a judged row are near where unjudged rows join them.

Costs O(r · non-zeros) to fit, n·r + d·r numbers of memory for n rows of d columns, and O(n r) for each row transformed;
similarities are computed a block of rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd, row_norms
from sklearn.utils.validation import check_is_fitted

from corank.core.threads import spread
from corank.data.problem.rows import as_rows
from corank.errors import InputError, warn
from corank.estimator.contract import Learner, check_parameters, checked_rows, install, note_columns
from corank.parameters import Rules, number, rng_of, seed, whole

FEW = 1000
"""Rows below which smoothing was found to bring nothing, or to hurt."""

_BLOCK = 1 << 22  # numbers that a thread holds: similarities, and the neighbours of its rows
_SAME = 1.0 - 1e-5  # cosine of rows that are one and the same, but for rounding in float32


@dataclass(frozen=True, eq=False)
class FittedSmooth:
    """The fitted attributes of `Smooth`."""

    components: NDArray[Any]
    embedding: NDArray[Any]


class Smooth(OneToOneFeatureMixin, TransformerMixin, Learner):
    """
    Put beside each row the mean of its nearest rows in a space of few dimensions.

    It pays for text (rows of tf-idf, of norm 1) with 1,000 unjudged rows or more, a handful of judged ones, and a
    theme that about 1 % of the rows share; it hurts where what is looked for is rarer, since the few dimensions have no
    room for it. It warns where it was found to bring nothing: fewer rows, tables of numbers. Fit it on all rows.

    A row is no neighbour of its own: of the fitted rows that look exactly like it in the few dimensions, one is passed
    over. So a fitted row is transformed alike whenever it comes, and a new one that repeats a fitted row is that row. A
    row without a word the fitted rows know has no neighbours, and keeps zeros in their place.

    Parameters
    ----------
    weight : float
        w, the share of the neighbours in the similarity of two rows; at 1 the row's own words are left out.
    n_neighbors : int
        k, the fitted rows that are averaged; all others where there are fewer.
    n_components : int
        r, the dimensions in which neighbours are near; at most half the fitted rows, and the columns.
    random_state : int, RandomState or None
        Seed of the decomposition.

    Attributes
    ----------
    components_ : array of shape (r, n_features)
        The directions, orthonormal.
    embedding_ : array of shape (n_fitted, r)
        u for each fitted row that is not zero there.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> texts = ["tin prices rise", "price of tin", "wheat harvest", "wheat and corn", "corn prices", "tin mine"]
    >>> X = TfidfVectorizer().fit_transform(texts)
    >>> Smooth(n_neighbors=2, n_components=3, random_state=0).fit_transform(X).shape == (6, X.shape[1] + 3)
    True
    """

    _rules: ClassVar[Rules] = {
        "weight": number(0, 1),
        "n_neighbors": whole(1),
        "n_components": whole(1),
        "random_state": seed,
    }

    components_: NDArray[Any]
    embedding_: NDArray[Any]

    def __init__(
        self, weight: float = 0.25, n_neighbors: int = 10, n_components: int = 200, *, random_state: Any = None
    ) -> None:
        self.weight = weight
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """
        Find the directions, and where all rows stand in them.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows, judged or not.
        y : object, optional
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        check_parameters(self)
        rows = as_rows(X)
        if rows.shape[0] < 2:
            raise InputError("X has 1 sample, which has no neighbour; pass at least two rows.")
        _warn_of(rows)
        r = min(self.n_components, max(1, rows.shape[0] // 2), rows.shape[1])
        dice = int(rng_of(self.random_state).integers(2**31))
        directions = np.ascontiguousarray(randomized_svd(rows, r, n_iter=4, random_state=dice)[2])
        embedding = _embed(rows, directions)
        return install(self, FittedSmooth(directions, embedding[embedding.any(axis=1)]), note_columns(X, rows))

    def transform(self, X: Any) -> Any:
        """
        Put what the neighbours are about beside each row.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray or CSR matrix, shape (n_rows, n_features + r)
            CSR where X is sparse; in the precision of X.
        """
        rows = checked_rows(self, X)
        z = self._smoothed(_embed(rows, self.components_.astype(rows.dtype, copy=False)))
        parts = [rows * rows.dtype.type(np.sqrt(1.0 - self.weight)), z * rows.dtype.type(np.sqrt(self.weight))]
        if not sparse.issparse(rows):
            return np.hstack(parts)
        return sparse.hstack([parts[0], type(rows)(parts[1])], format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """
        Name the columns: those of X, then ``smooth0``, ``smooth1``, ...

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X.

        Returns
        -------
        array of str objects
            One name a column.
        """
        check_is_fitted(self)
        ours = np.array([f"smooth{j}" for j in range(len(self.components_))], dtype=object)
        return np.concatenate([super().get_feature_names_out(input_features), ours])

    def _smoothed(self, u: NDArray[Any]) -> NDArray[Any]:
        """z for rows whose place is u."""
        fitted = self.embedding_.astype(u.dtype, copy=False)
        k = min(self.n_neighbors, len(fitted) - 1)
        if k < 1:
            return u
        z = np.empty_like(u)

        def work(first: int, last: int) -> None:
            here = u[first:last]
            z[first:last] = here + fitted[_neighbours(here, fitted, k)].mean(axis=1)

        step = max(1, _BLOCK // max(len(fitted), k * u.shape[1]))
        spread(work, [(first, min(first + step, len(u))) for first in range(0, len(u), step)])
        z[~u.any(axis=1)] = 0.0
        return np.asarray(normalize(z, copy=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _embed(rows: Any, directions: NDArray[Any]) -> NDArray[Any]:
    """Rows in the given directions, of norm 1; zero where nothing of a row but rounding lies in them."""
    u = np.asarray(rows @ directions.T)
    u[row_norms(u) <= 1e3 * np.finfo(u.dtype).eps * row_norms(rows)] = 0.0
    return np.asarray(normalize(u, copy=False))


def _neighbours(u: NDArray[Any], fitted: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Numbers of the k fitted rows nearest to each row, one that is the row itself passed over."""
    cosines = u @ fitted.T
    near = np.argpartition(cosines, -(k + 1), axis=1)[:, -(k + 1) :]
    values = np.take_along_axis(cosines, near, axis=1)
    best = values.argmax(axis=1)
    is_there = np.take_along_axis(values, best[:, None], axis=1)[:, 0] >= _SAME
    passed_over = np.where(is_there, best, values.argmin(axis=1))
    kept = np.arange(k + 1) != passed_over[:, None]
    return np.asarray(near[kept].reshape(len(u), k))


def _warn_of(rows: Any) -> None:
    """Warn where smoothing was found to bring nothing."""
    if not sparse.issparse(rows):
        warn("Smooth got a dense table; it pays for sparse text, and was found to hurt on tables of numbers.")
    elif rows.shape[0] < FEW:
        warn(f"Smooth got {rows.shape[0]} rows; it needs about {FEW:,}, judged or not, and may hurt with fewer.")
    else:
        norms = row_norms(rows)
        if np.abs(norms[norms > 0] - 1.0).max(initial=0.0) > 1e-3:
            warn("Smooth got rows whose norm is not 1, which upsets its weight; normalise them, as tf-idf does.")
