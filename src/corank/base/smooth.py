"""
NeighborSmoother: latent semantic features of text, averaged over nearest neighbours; unjudged rows take part.

    φ(x) = [√(1 − w)·x, √w·z],  z ∝ u + mean of u over the k fitted rows nearest to x

u is the projection of x to the r leading singular vectors of the fitted rows; u and z have norm 1. Hence
φ(x)·φ(x') = (1 − w) x·x' + w z·z': words that never occur together in a judged row become similar through unjudged
rows.

Fitting takes O(r · non-zeros) time and n·r + d·r numbers of memory for n rows of d columns; transforming takes O(n r)
per row, a block of rows at a time.
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

from corank.base.contract import Estimator, check_parameters, checked_rows, install, note_columns
from corank.base.docs import shared_parameters
from corank.core.threads import parallel_map
from corank.data.rows import as_rows, encode_categories
from corank.data.scoring import repeat_first
from corank.errors import InputError, warn
from corank.fitted import Relations, Shapes
from corank.parameters import Rules, integer, number, rng_of, seed

FEW = 1000
"""Number of rows below which smoothing was measured to have no benefit, or to hurt."""

_BLOCK = 1 << 22  # numbers per thread: similarities, and the neighbours of its rows
_SAME = 1.0 - 1e-5  # cosine of identical rows, up to rounding in float32


@dataclass(frozen=True, eq=False)
class FittedNeighborSmoother:
    """The fitted attributes of `NeighborSmoother`."""

    components: NDArray[Any]
    embedding: NDArray[Any]


@shared_parameters
class NeighborSmoother(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """
    Append to each row the mean of its nearest neighbours in a latent semantic space (truncated SVD).

    It was measured to help for text (tf-idf rows of norm 1) with at least 1,000 unjudged rows, a handful of judged
    ones, and a topic shared by about 1 % of the rows. It hurts for rarer topics, which the few dimensions do not
    represent. It warns if a benefit is unlikely: fewer rows, or tables of numbers. Fit it on all rows.

    A row is not its own neighbour: one of the fitted rows with the same embedding is left out. So a fitted row is
    always transformed to the same features, as is a new row that repeats it. A row without any word of the fitted rows
    has no neighbours and gets zeros.

    Parameters
    ----------
    weight : float
        w, the share of the neighbours in the similarity of two rows; 1 drops the row's own words.
    n_neighbors : int
        k, the number of fitted rows that are averaged; at most all others.
    n_components : int
        r, the number of dimensions; at most half the fitted rows, and the columns.
    {random_state}

    Attributes
    ----------
    components_ : array of shape (r, n_features)
        The singular vectors.
    embedding_ : array of shape (n_fitted, r)
        u for each fitted row with a non-zero projection.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> texts = ["tin prices rise", "price of tin", "wheat harvest", "wheat and corn", "corn prices", "tin mine"]
    >>> X = TfidfVectorizer().fit_transform(texts)
    >>> NeighborSmoother(n_neighbors=2, n_components=3, random_state=0).fit_transform(X).shape == (6, X.shape[1] + 3)
    True
    """

    _rules: ClassVar[Rules] = {
        "weight": number(0, 1),
        "n_neighbors": integer(1),
        "n_components": integer(1),
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {"components_": ("r", "n_features_in_"), "embedding_": ("rows", "r")}
    _relations: ClassVar[Relations] = {
        "rows of both arrays have length 1": lambda m: (
            max(np.linalg.norm(rows, axis=1).max(initial=0.0) for rows in (m.components_, m.embedding_)) <= 1.001
        ),
        "both arrays are numbers": lambda m: {m.components_.dtype.kind, m.embedding_.dtype.kind} == {"f"},
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
        """Compute the singular vectors and the embedding of all rows, judged or not; y is ignored."""
        check_parameters(self)
        X = encode_categories(X)
        rows = as_rows(X)
        if rows.shape[0] < 2:
            raise InputError("X has 1 sample, but neighbours need at least two; pass more rows.")
        _warn_if_useless(rows)
        r = min(self.n_components, max(1, rows.shape[0] // 2), rows.shape[1])
        random_bits = int(rng_of(self.random_state).integers(2**31))
        directions = np.ascontiguousarray(randomized_svd(rows, r, n_iter=4, random_state=random_bits)[2])
        embedding = _embed(rows, directions)
        return install(
            self, FittedNeighborSmoother(directions, embedding[embedding.any(axis=1)]), note_columns(X, rows)
        )

    def transform(self, X: Any) -> Any:
        """Append the features of the neighbours to each row: CSR if X is sparse, in the precision of X."""
        rows = checked_rows(self, X)
        z = repeat_first(rows, self._smoothed(_embed(rows, self.components_.astype(rows.dtype, copy=False))))
        parts = [rows * rows.dtype.type(np.sqrt(1.0 - self.weight)), z * rows.dtype.type(np.sqrt(self.weight))]
        if not sparse.issparse(rows):
            return np.hstack(parts)
        return sparse.hstack([parts[0], type(rows)(parts[1])], format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns: those of X, then ``smooth0``, ``smooth1``, ..."""
        check_is_fitted(self)
        appended = np.array([f"smooth{j}" for j in range(len(self.components_))], dtype=object)
        return np.concatenate([super().get_feature_names_out(input_features), appended])

    def _smoothed(self, u: NDArray[Any]) -> NDArray[Any]:
        """Return z for rows with embedding u."""
        fitted = self.embedding_.astype(u.dtype, copy=False)
        k = min(self.n_neighbors, len(fitted) - 1)
        if k < 1:
            return u
        z = np.empty_like(u)

        def smooth_block(first: int, last: int) -> None:
            block = u[first:last]
            z[first:last] = block + fitted[_neighbours(block, fitted, k)].mean(axis=1)

        step = max(1, _BLOCK // max(len(fitted), k * u.shape[1]))
        parallel_map(smooth_block, [(first, min(first + step, len(u))) for first in range(0, len(u), step)])
        z[~u.any(axis=1)] = 0.0
        return np.asarray(normalize(z, copy=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _embed(rows: Any, directions: NDArray[Any]) -> NDArray[Any]:
    """Return normalised projections of rows; zero if the projection is zero up to rounding."""
    u = np.asarray(rows @ directions.T)
    u[row_norms(u) <= 1e3 * np.finfo(u.dtype).eps * row_norms(rows)] = 0.0
    return np.asarray(normalize(u, copy=False))


def _neighbours(u: NDArray[Any], fitted: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return the numbers of the k fitted rows nearest to each row, without the row itself."""
    cosines = u @ fitted.T
    near = np.argpartition(cosines, -(k + 1), axis=1)[:, -(k + 1) :]
    values = np.take_along_axis(cosines, near, axis=1)
    best = values.argmax(axis=1)
    is_fitted = np.take_along_axis(values, best[:, None], axis=1)[:, 0] >= _SAME
    left_out = np.where(is_fitted, best, values.argmin(axis=1))
    kept = np.arange(k + 1) != left_out[:, None]
    return np.asarray(near[kept].reshape(len(u), k))


def _warn_if_useless(rows: Any) -> None:
    """Warn about rows for which smoothing was measured to be useless."""
    if not sparse.issparse(rows):
        warn("X is dense, but NeighborSmoother is for sparse text and hurt on tables of numbers; omit it.")
    elif rows.shape[0] < FEW:
        warn(f"X has {rows.shape[0]} rows; NeighborSmoother needs about {FEW:,} and may hurt with fewer.")
    else:
        norms = row_norms(rows)
        if np.abs(norms[norms > 0] - 1.0).max(initial=0.0) > 1e-3:
            warn("X has rows whose norm is not 1, which distorts NeighborSmoother; normalise them, as tf-idf does.")
