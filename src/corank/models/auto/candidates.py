"""
The short list of `AutoRanker`, in order of cost: rankers whose errors differ, with weak and strong penalties.

Penalties are multiples of the rule of `corank.base.solvers.penalty`. Least squares are evaluated on all folds, at
little cost; logistic pairs on five, trees on two halves, since each fit costs as much as all least squares together.

Two candidates learn next to nothing: the mean of all columns, and the one column, falling or rising, whose correlation
with the grades inside queries is largest on average. With five judged queries, that choice was .019 nDCG@10 better than
the column of the best nDCG@10 on twenty collections. Two others see the rank of each column inside its query instead of
its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.base import Ranker
from corank.base.priors import ColumnMean
from corank.base.solvers.penalty import alpha_of, freedom
from corank.data.columns import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError, suggest_names
from corank.models.lambdarank import LambdaRank
from corank.models.linear import SPD
from corank.models.rls import RankRLS

Floats = NDArray[np.float64]
Make = Callable[[RankingData, float, int], Ranker]

# basis rows of kernel rankers
_N_BASIS = 300
# trees, their leaves and learning rate: below this number of judged rows, and from it on
_MANY_ROWS, _SMALL_TREES, _LARGE_TREES = 1000, (50, 8, 0.2), (100, 16, 0.1)
# columns of sparse rows up to which trees and kernels are tried
_MAX_SPARSE_COLUMNS = 2000
# numbers of a problem up to which columns are ranked
MAX_RANKED = 1 << 24
# sum of squared deviations, relative to the sum of squares, that is all rounding errors
_ROUNDING = 1e-20
# mean squared distance of two rows in the space of a radial kernel whose width is the median distance: 2 (1 − 1/e)
_KERNEL_DISTANCE = 1.26


@dataclass(frozen=True)
class Candidate:
    """A ranker to try."""

    name: str
    make: Make  # returns the unfitted ranker for a problem, the alpha of the rule for linear models, and a seed
    cost: float  # rough time of a fit, relative to the first candidate
    kernel: str | None = None  # of least squares; candidates of the same kernel share their features
    n_folds: int | None = None  # largest number of folds; folds are left out together if there are more
    needs_dense: bool = False  # whether it is left out for wide sparse rows
    needs_lightgbm: bool = False  # whether it grows trees
    is_column: bool = False  # whether it only weighs columns as they are; not tried with a prior
    needs_sparse: bool = False  # whether it is tried with sparse rows only
    by_ranks: bool = False  # whether it sees columns as `ranks_inside` their query

    def suits(self, data: RankingData) -> bool:
        """Return whether to try it on a problem."""
        if self.needs_lightgbm and find_spec("lightgbm") is None:
            return False
        if self.is_column and (data.prior is not None or sparse.issparse(data.X)):
            return False
        if self.needs_sparse and not sparse.issparse(data.X):
            return False
        if self.by_ranks and (sparse.issparse(data.X) or data.n_rows * data.n_features > MAX_RANKED):
            return False
        return not (self.needs_dense and sparse.issparse(data.X) and data.n_features > _MAX_SPARSE_COLUMNS)

    def describe(self, data: RankingData) -> str:
        """Return the name, and the column if it is one."""
        if self.make is not _best_column:
            return self.name
        model = _best_column(data, 0.0, 0)
        column = model.columns[0]
        name = f"column {column if data.names is None else data.names[column]}"
        return name if model.signs[0] > 0.0 else f"{name}, lowest first"


def _linear(multiple: float) -> Make:
    return lambda data, alpha, seed: RankRLS(multiple * alpha)


def _kernel(name: str, multiple: float) -> Make:
    def make(data: RankingData, alpha: float, seed: int) -> Ranker:
        n_basis = _N_BASIS if data.n_scored > _N_BASIS else None
        own = multiple * alpha_of(_KERNEL_DISTANCE, 0, freedom(data))
        return RankRLS(own, name, n_basis=n_basis, random_state=seed)

    return make


def _logistic(data: RankingData, alpha: float, seed: int) -> Ranker:
    return SPD("logistic", random_state=seed)


def _mean(data: RankingData, alpha: float, seed: int) -> Ranker:
    n = n_columns(data)
    return ColumnMean(range(n), column_factors(data)[:n], method=None)


def _best_column(data: RankingData, alpha: float, seed: int) -> ColumnMean:
    correlations = column_correlations(data)
    best = int(np.argmax(np.abs(correlations)))
    return ColumnMean([best], [1.0 if correlations[best] >= 0.0 else -1.0], method=None)


def ranks_inside(X: Any, queries: Queries) -> Floats:
    """Return the rank of each value in its column and query, from 0 to 1; equal values have the mean of their ranks."""
    if X.shape[0] * X.shape[1] > MAX_RANKED and sparse.issparse(X):
        raise InputError(
            f"X is sparse and has {X.shape[1]:,} columns, too many to rank; leave out candidates of ranks."
        )
    codes, result = queries.codes, np.empty(X.shape)
    sizes = np.bincount(codes)
    begins = np.cumsum(sizes) - sizes
    for j in range(X.shape[1]):
        column = X[:, [j]].toarray()[:, 0] if sparse.issparse(X) else X[:, j]
        values = np.asarray(column, dtype=np.float64)
        order = np.lexsort((values, codes))
        is_new = (np.diff(values[order], prepend=np.nan) != 0.0) | (np.diff(codes[order], prepend=-1) != 0)
        starts = np.flatnonzero(is_new)
        middles = (starts + np.append(starts[1:], len(order))) / 2.0
        result[order, j] = middles[np.cumsum(is_new) - 1]
    return np.asarray((result - begins[codes][:, None]) / sizes[codes][:, None])


def n_columns(data: RankingData) -> int:
    """Return the number of columns without indicators of missing values."""
    return data.n_features - (0 if data.filling is None else len(data.filling.columns))


def column_correlations(data: RankingData) -> Floats:
    """Return the mean over queries of the correlation of each column with the grades, or its lead in preferences."""
    if data.pairs is not None:
        gaps = np.asarray(data.X[data.pairs[:, 0]] - data.X[data.pairs[:, 1]], dtype=np.float64)[:, : n_columns(data)]
        size = np.sqrt((gaps**2).sum(axis=0))
        return np.asarray(np.divide(gaps.sum(axis=0), size, out=np.zeros_like(size), where=size > 0.0))
    assert data.y is not None
    rows = data.order[~np.isnan(data.y[data.order])]  # sorted by query
    X, y = np.asarray(data.X[rows], dtype=np.float64)[:, : n_columns(data)], data.y[rows]
    codes = data.queries.codes[rows]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    sizes = np.diff(np.append(starts, len(rows)))
    noise = _ROUNDING * np.add.reduceat(X * X, starts)
    X = X - np.repeat(np.add.reduceat(X, starts) / sizes[:, None], sizes, axis=0)
    y = y - np.repeat(np.add.reduceat(y, starts) / sizes, sizes)
    squares = np.add.reduceat(X * X, starts)
    scale = np.sqrt(squares * np.add.reduceat(y * y, starts)[:, None])
    products = np.add.reduceat(X * y[:, None], starts)
    varies = (scale > 0.0) & (squares > noise)
    return np.asarray(np.divide(products, scale, out=np.zeros_like(scale), where=varies).mean(axis=0))


def _trees(data: RankingData, alpha: float, seed: int) -> Ranker:
    # gains of nDCG need grades
    lambdas = "ranknet" if data.y is None or (data.y < 0.0).any() else None
    n_trees, n_leaves, rate = _SMALL_TREES if data.n_scored < _MANY_ROWS else _LARGE_TREES
    # no target of an export has sets of categories
    leaves = {"num_leaves": n_leaves, "categorical_feature": ""}
    return LambdaRank(lambdas, "trees", n_steps=n_trees, eta0=rate, tree_params=leaves, scale=False, random_state=seed)


_ALL = (
    Candidate("linear", _linear(1.0), 1.0, "linear"),
    Candidate("linear-weak", _linear(0.1), 1.0, "linear"),
    Candidate("linear-strong", _linear(10.0), 1.0, "linear"),
    Candidate("linear-strongest", _linear(100.0), 1.0, "linear"),
    Candidate("mean", _mean, 1.0, is_column=True),
    Candidate("column", _best_column, 1.0, is_column=True),
    Candidate("gaussian", _kernel("gaussian", 1.0), 5.0, "gaussian", needs_dense=True),
    Candidate("gaussian-weak", _kernel("gaussian", 0.1), 5.0, "gaussian", needs_dense=True),
    Candidate("gaussian-weakest", _kernel("gaussian", 0.01), 5.0, "gaussian", needs_dense=True),
    Candidate("gaussian-least", _kernel("gaussian", 0.001), 5.0, "gaussian", needs_dense=True),
    Candidate("laplacian", _kernel("laplacian", 1.0), 5.0, "laplacian", needs_dense=True),
    Candidate("laplacian-weak", _kernel("laplacian", 0.1), 5.0, "laplacian", needs_dense=True),
    Candidate("laplacian-weakest", _kernel("laplacian", 0.01), 5.0, "laplacian", needs_dense=True),
    Candidate("ranks", _linear(1.0), 2.0, "linear", by_ranks=True),
    Candidate("ranks-gaussian", _kernel("gaussian", 1.0), 5.0, "gaussian", by_ranks=True),
    Candidate("logistic", _logistic, 5.0, n_folds=5, needs_sparse=True),
    Candidate("trees", _trees, 20.0, n_folds=2, needs_dense=True, needs_lightgbm=True),
)

CANDIDATES: dict[str, Candidate] = {candidate.name: candidate for candidate in _ALL}
"""All candidates by name, cheapest first."""


def chosen_candidates(names: Any, data: RankingData) -> list[Candidate]:
    """Return the candidates to try on a problem, cheapest first."""
    if names is None:
        return [candidate for candidate in CANDIDATES.values() if candidate.suits(data)]
    if not len(names):
        raise InputError("candidates is empty; pass None for all that suit the data, or some names.")
    for name in names:
        if name not in CANDIDATES:
            raise InputError(f"there is no candidate {name!r}; {suggest_names(str(name), list(CANDIDATES))}.")
    return [candidate for name, candidate in CANDIDATES.items() if name in list(names)]


# rows of the problem that candidates are fitted to: trees need some to split
_N_QUERIES, _N_ROWS = 6, 12


def export_targets() -> list[str]:
    """Return the names of all targets."""
    return list(_registry().TARGETS)


def deployable(candidates: Sequence[Candidate | None], target: str) -> list[NDArray[np.int64]]:
    """
    Return the groups of candidates, None being the prior, whose averages a target can run; raise if there is none.

    Each candidate is fitted to a few rows and exported in memory: the targets decide. A target that refuses
    sums of several kinds, such as linear models and trees, gets a group of each kind.
    """
    data = _small_problem()
    fitted = [candidate for candidate in candidates if candidate is not None]
    models = [candidate.make(data, 0.1, 0).fit(data) for candidate in fitted]
    kinds = [
        None if candidate.by_ranks else _kind(model, target) for candidate, model in zip(fitted, models, strict=True)
    ]
    known = list(dict.fromkeys(kind for kind in kinds if kind is not None))
    first = [models[kinds.index(kind)] for kind in known]
    groups: list[list[int]] = []
    for k, model in enumerate(first):
        home = next((group for group in groups if _runs([*(first[j] for j in group), model], target)), None)
        if home is None:
            groups.append([k])
        else:
            home.append(k)
    if not groups:
        raise InputError(f"deploy is {target!r}, which can run none of the candidates; choose other candidates.")
    return [np.flatnonzero([kind is not None and known.index(kind) in group for kind in kinds]) for group in groups]


def _kind(model: Ranker, target: str) -> type[Any] | None:
    """Return the type of a model in exports; None if the target cannot run it."""
    try:
        return type(_registry().make_export(model, target)[0].scorer)
    except InputError:
        return None


def _runs(models: list[Ranker], target: str) -> bool:
    """Return whether a target can run the sum of some models."""
    try:
        _registry().make_export(models, target)
    except InputError:
        return False
    return True


def _registry() -> Any:
    """Return the module with the targets; a higher layer, which is looked up when it is needed."""
    return import_module("corank.deploy.export.export")


def _small_problem() -> RankingData:
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(_N_QUERIES * _N_ROWS, 3)), np.repeat(np.arange(_N_QUERIES), _N_ROWS)
    return RankingData.of(X, np.digitize(X[:, 0], [0.0, 1.0]).astype(np.float64), qid)
