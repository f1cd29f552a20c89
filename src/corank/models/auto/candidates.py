"""
The short list of `AutoRanker`, in order of cost: rankers whose errors differ, with weak and strong penalties.

Penalties are multiples of the rule of `corank.base.solvers.penalty`. Least squares are evaluated on all folds, at
little cost; logistic pairs on five, trees on two halves, since each fit costs as much as all least squares together.
Additive kernels, pursuits, linear LambdaRank, stronger penalties, the best single column, and trees of two sizes on all
folds were tried, too: they cost time and did not raise the mean over the development collections of
``benchmarks/bench_auto.py``.

The best single column on left-out queries: what an order that is known already, such as BM25, gives by itself.

Without each fold, the column and its direction are those of the best mean metric over the other queries; the fold is
then ordered by that column. It is a baseline of the leaderboard and not averaged: on the development collections of
``benchmarks/bench_auto.py``, an average with it, or weights shrunk towards it where it leads, changed the mean nDCG@10
by −.0015 to −.001 with 5 judged queries and by −.0016 to +.002 with 20, within chance. Few queries do not say which
column it is; a user who knows passes it as prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.base import Ranker
from corank.base.solvers.penalty import alpha_of, freedom
from corank.data.ranking import RankingData
from corank.errors import InputError, suggest_names
from corank.models.auto.left_out import LeftOut
from corank.models.lambdarank import LambdaRank
from corank.models.linear import SPD
from corank.models.rls import RankRLS

Make = Callable[[RankingData, float, int], Ranker]

# basis rows of kernel rankers
_N_BASIS = 300
# trees, their leaves and learning rate: below this number of judged rows, and from it on
_MANY_ROWS, _SMALL_TREES, _LARGE_TREES = 1000, (50, 8, 0.2), (100, 16, 0.1)
# columns of sparse rows up to which trees and kernels are tried
_MOST_COLUMNS = 2000
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

    def suits(self, data: RankingData) -> bool:
        """Return whether to try it on a problem."""
        if self.needs_lightgbm and find_spec("lightgbm") is None:
            return False
        return not (self.needs_dense and sparse.issparse(data.X) and data.n_features > _MOST_COLUMNS)


def _linear(multiple: float) -> Make:
    return lambda data, alpha, seed: RankRLS(multiple * alpha)


def _kernel(name: str, multiple: float) -> Make:
    def make(data: RankingData, alpha: float, seed: int) -> Ranker:
        n_basis = _N_BASIS if data.n_scored > _N_BASIS else None
        own = multiple * alpha_of(_KERNEL_DISTANCE, 0, freedom(data))
        return RankRLS(own, name, n_basis=n_basis, random_state=seed)

    return make


def _trees(data: RankingData, alpha: float, seed: int) -> Ranker:
    # gains of nDCG need grades
    lambdas = "ranknet" if data.y is None or (data.y < 0.0).any() else None
    n_trees, n_leaves, rate = _SMALL_TREES if data.n_scored < _MANY_ROWS else _LARGE_TREES
    leaves = {"num_leaves": n_leaves}
    return LambdaRank(lambdas, "trees", n_steps=n_trees, eta0=rate, tree_params=leaves, scale=False, random_state=seed)


_ALL = (
    Candidate("linear", _linear(1.0), 1.0, "linear"),
    Candidate("linear-strong", _linear(10.0), 1.0, "linear"),
    Candidate("gaussian", _kernel("gaussian", 1.0), 5.0, "gaussian", needs_dense=True),
    Candidate("gaussian-weak", _kernel("gaussian", 0.1), 5.0, "gaussian", needs_dense=True),
    Candidate("gaussian-weakest", _kernel("gaussian", 0.01), 5.0, "gaussian", needs_dense=True),
    Candidate("laplacian", _kernel("laplacian", 1.0), 5.0, "laplacian", needs_dense=True),
    Candidate("laplacian-weak", _kernel("laplacian", 0.1), 5.0, "laplacian", needs_dense=True),
    Candidate("logistic", lambda data, alpha, seed: SPD("logistic", random_state=seed), 5.0, n_folds=5),
    Candidate("trees", _trees, 20.0, n_folds=2, needs_dense=True, needs_lightgbm=True),
)

CANDIDATES: dict[str, Candidate] = {one.name: one for one in _ALL}
"""All candidates by name, cheapest first."""


def chosen_candidates(names: Any, data: RankingData) -> list[Candidate]:
    """Return the candidates to try on a problem, cheapest first."""
    if names is None:
        return [one for one in CANDIDATES.values() if one.suits(data)]
    for name in names:
        if name not in CANDIDATES:
            raise InputError(f"there is no candidate {name!r}; {suggest_names(str(name), list(CANDIDATES))}.")
    return [one for name, one in CANDIDATES.items() if name in list(names)]


Floats = NDArray[np.float64]

# largest numbers of left-out queries and of values for which columns are compared
_MOST_LISTS, _MOST_VALUES = 40, 1 << 20


class BestColumn(NamedTuple):
    """A column and its direction."""

    name: str  # for people
    values: Floats  # (n_lists,): metric of each left-out list, ordered by the column that is best on other folds


def find_best_column(left_out: LeftOut, names: tuple[str, ...] | None) -> BestColumn | None:
    """Compare the columns, falling and rising."""
    X = left_out.data.X
    too_large = left_out.n_lists > _MOST_LISTS or len(left_out.rows) * X.shape[1] > _MOST_VALUES
    if sparse.issparse(X) or too_large or left_out.n_folds < 2:
        return None
    columns = np.asarray(X[left_out.rows], dtype=np.float64)
    values = left_out.values(np.hstack([columns, -columns]))
    fold_of_list = np.zeros(left_out.n_lists, dtype=np.int64)
    fold_of_list[left_out.lists] = left_out.folds
    known, found = np.nan_to_num(values), np.empty(left_out.n_lists)
    for fold in range(left_out.n_folds):
        out = fold_of_list == fold
        found[out] = values[out, np.argmax(known[~out].mean(axis=0))]
    best = int(np.argmax(known.mean(axis=0)))
    column = best % X.shape[1]
    name = f"column {column if names is None else names[column]}"
    return BestColumn(name if best < X.shape[1] else f"{name}, lowest first", found)
