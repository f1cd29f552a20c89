"""The rows of a comparison and their folds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.collection import Dataset
from corank.data.column_roles import column_numbers
from corank.data.inputs import as_scores
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import NamedRows, as_rows, encode_categories
from corank.data.splits import shared_rows
from corank.errors import InputError, warn
from corank.parameters import is_integer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALWAYS = -1
"""Part of the rows that are in every training set."""

# size of a group of rows that replaces a query, and the largest number of groups
_GROUP, _MAX_GROUPS = 10, 50


@dataclass(frozen=True, eq=False)
class InputRows:
    """Rows as the user passed them: arrays, a frame, a file that was read, or a `RankingData`."""

    X: Any  # X, y, qid: as for `Ranker.fit`; y is None without scores
    y: Any
    qid: Any
    docids: Any = None  # document ids, for conventions that order ties by them
    names: Sequence[str] | None = None  # column names, or None

    @classmethod
    def of(cls, X: Any, y: Any, qid: Any) -> InputRows:
        """Accept rows, or an object that holds rows, scores and queries."""
        if X is None:
            raise InputError("X is missing; pass the rows, or the result of corank.read.")
        if isinstance(X, Dataset | RankingData):
            if y is not None or qid is not None:
                raise InputError(f"y or qid was given with a {type(X).__name__}, which holds both; pass it alone.")
            if isinstance(X, Dataset):
                return cls(X.X, X.y, X.qid, X.docids, X.names)
            if X.pairs is not None:
                raise InputError(
                    "the data holds preferences only, but methods are evaluated by scores; pass one score per row, NaN "
                    "for unjudged rows."
                )
            return cls(X.X, X.y, X.queries.ids[X.queries.codes], None, X.names)
        X = encode_categories(X)
        names = X.names if isinstance(X, NamedRows) else None
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else names
        return cls(X, y, qid, None, names)

    def columns(self, prior: Sequence[int | str], n: int) -> tuple[int, ...]:
        """Return the numbers of prior columns, which must be among `n` columns."""
        result = tuple(column_numbers(prior, self.names, "prior"))
        if not result or not all(is_integer(i) and 0 <= i < n for i in result):
            raise InputError(f"prior is {list(result)!r}; pass one or more column names, or numbers from 0 to {n - 1}.")
        return tuple(int(i) for i in result)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names that a fitted model remembers; labels of a frame that are not strings are none."""
        if self.names is None or not all(isinstance(item, str) for item in getattr(self.X, "columns", ())):
            return None
        return tuple(self.names)


@dataclass(frozen=True, eq=False)
class ComparisonProblem:
    """
    Rows of the data followed by those of the pool, with the fold of each.

    units: the unit over which metrics average: the query or, if all scores are in one query, a group of its rows;
        −1 for rows that are not evaluated.
    """

    X: Any  # float rows, dense or CSR
    y: Floats  # scores; NaN for unjudged rows, which include all rows of the pool
    codes: Ints  # number of each row's query
    parts: Ints  # the fold that leaves a row out, or `ALWAYS`; all rows of a query, also in the pool, are in one part
    units: Ints
    n_own: int  # number of rows of the data
    names: tuple[str, ...] | None = None  # names of the columns, or None

    @property
    def unit(self) -> str:
        """Unit of the paired tests in words."""
        judged = self.units >= 0
        return "queries" if (self.units[judged] == self.codes[judged]).all() else "groups of rows"

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.parts.max()) + 1

    @cached_property
    def judged(self) -> Ints:
        """Rows that get out-of-fold scores, ascending."""
        return np.flatnonzero(self.parts[: self.n_own] != ALWAYS)

    def test(self, fold: int) -> Ints:
        """Return the test rows of a fold."""
        return np.asarray(self.judged[self.parts[self.judged] == fold])

    def train(self, fold: int | None, fraction: float = 1.0, seeds: tuple[int, ...] = ()) -> tuple[Ints, Floats]:
        """Return the training rows of a fold and their scores."""
        rows = np.arange(len(self.y)) if fold is None else np.flatnonzero(self.parts != fold)
        y = np.array(self.y[rows])
        if fold is not None and self.shared is not None:
            y[np.isin(self.shared[rows], self.shared[self.parts == fold])] = np.nan
        if fraction < 1.0:
            drawn = self._some_units(np.unique(self.units[rows][~np.isnan(y)]), fraction, seeds)
            y[~np.isin(self.units[rows], drawn)] = np.nan
        return rows, y

    @cached_property
    def shared(self) -> Ints | None:
        """
        Number of the first row that equals each row, which is not learnt from in other folds either.

        None if no scored row occurs in two folds, or if some fold would have nothing to learn from.
        """
        result = shared_rows(self.X, self.parts, np.flatnonzero(~np.isnan(self.y)))
        if result is None:
            return None
        for fold in range(self.n_folds):
            remaining = (self.parts != fold) & ~np.isnan(self.y) & ~np.isin(result, result[self.parts == fold])
            if not len(comparable(self.y[remaining], self.codes[remaining])):
                return None
        return result

    def _some_units(self, units: Ints, fraction: float, seeds: tuple[int, ...]) -> Ints:
        """Draw scored queries, if possible one with two different scores among them."""
        drawn = np.random.default_rng(seeds).permutation(units)
        first = next((i for i, unit in enumerate(drawn) if unit in self.comparable), 0)
        drawn[[0, first]] = drawn[[first, 0]]
        return drawn[: max(2, round(fraction * len(units)))]

    @cached_property
    def comparable(self) -> frozenset[int]:
        """Units with two different scores."""
        scored = ~np.isnan(self.y)
        return frozenset(comparable(self.y[scored], self.units[scored]).tolist())

    @property
    def default_metrics(self) -> tuple[str, str]:
        """Graded metrics if scores are whole numbers from 0 to 10, else pairwise metrics."""
        y = self.y[~np.isnan(self.y)]
        are_grades = (y >= 0) & (y <= 10) & (y == np.round(y))
        return ("nDCG@10", "AP") if are_grades.all() else ("disagreement", "kendall")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of rows, scores, queries and names of columns."""
        digest = hashlib.sha256(f"{self.X.shape} {self.n_own} {json.dumps(self.names)}".encode())
        parts = (self.X.data, self.X.indices, self.X.indptr) if sparse.issparse(self.X) else (self.X,)
        for array in (*parts, self.y, self.codes):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:24]


def comparable(y: Floats, groups: Ints) -> Ints:
    """Return the groups with two different scores, ascending."""
    order = np.lexsort((y, groups))
    y, groups = y[order], groups[order]
    rises = (groups[1:] == groups[:-1]) & (y[1:] > y[:-1])
    return np.unique(groups[1:][rises])


def assign_folds(y: Floats, groups: Ints, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign groups of scored rows to folds, balancing the groups that have two different scores."""
    names = np.unique(groups)
    order = rng.permutation(len(names))
    is_comparable = np.isin(names, comparable(y, groups))
    order = order[np.argsort(~is_comparable[order], kind="stable")]
    fold = np.empty(len(names), dtype=np.int64)
    fold[order] = np.arange(len(names)) % n_folds
    return fold


def assign_groups(y: Floats, n_groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign the scored rows of one query to groups with similar scores, stratified by score."""
    order = np.lexsort((rng.random(len(y)), y))
    group = np.empty(len(y), dtype=np.int64)
    group[order] = np.concatenate([rng.permutation(n_groups) for _ in range(-(-len(y) // n_groups))])[: len(y)]
    return group


def make_problem(inputs: InputRows, pool: InputRows | None, folds: int, seed: int) -> tuple[ComparisonProblem, Queries]:
    """Check rows and assign their queries to folds."""
    if inputs.y is None:
        raise InputError(
            "y is missing, but methods are evaluated by scores; pass one score per row, NaN for unjudged rows."
        )
    rows = as_rows(inputs.X, missing=True)
    scores = as_scores(inputs.y, rows.shape[0])
    n = rows.shape[0]
    own = Queries.of(inputs.qid, n)
    RankingData.of_checked(rows, scores, own).require_pairs()
    queries = own
    if pool is not None:
        rows, queries = _with_pool(rows, inputs, own, pool)
        scores = np.concatenate([scores, np.full(rows.shape[0] - n, np.nan)])
    rng = np.random.default_rng([seed, 0])
    codes, scored = queries.codes, np.flatnonzero(~np.isnan(scores))
    units = np.where(np.isin(codes, codes[scored]), codes, -1)
    names = np.unique(codes[scored])
    if len(names) == 1:
        if len(scored) < 4:
            raise InputError(
                f"all {len(scored)} scored rows are in one query, too few to split into training and test rows; "
                "score at least four rows, or pass their query ids."
            )
        n_groups = int(np.clip(len(scored) // _GROUP, 2, _MAX_GROUPS))
        units = np.full(len(codes), -1)
        units[scored] = assign_groups(scores[scored], n_groups, rng)
        names = np.arange(n_groups)
    fold = assign_folds(scores[scored], units[scored], min(folds, len(names)), rng)
    parts = np.full(len(codes), ALWAYS)
    is_judged = units >= 0
    parts[is_judged] = fold[np.searchsorted(names, units[is_judged])]
    problem = ComparisonProblem(rows, scores, codes, parts, units, n, inputs.feature_names)
    _warn_of_shared_rows(problem)
    return problem, queries


def _warn_of_shared_rows(problem: ComparisonProblem) -> None:
    """Warn if rows of a test fold occur in other folds, too."""
    result = shared_rows(problem.X, problem.parts, np.flatnonzero(~np.isnan(problem.y)))
    if result is None:
        return
    distinct = np.unique(np.stack([result, problem.parts]), axis=1)[0]
    n = int((np.bincount(distinct) > 1).sum())
    if problem.shared is None:
        done = "the values hold for rows that were seen in training; add features of the query"
    else:
        done = "methods are trained without those of the test queries"
    warn(f"{n} scored rows occur in several queries; {done}.")


def _with_pool(rows: Any, inputs: InputRows, own: Queries, pool: InputRows) -> tuple[Any, Queries]:
    """Append the rows of the pool to those of the data; equal query ids mean the same query."""
    more = as_rows(pool.X, missing=True)
    if more.shape[1] != rows.shape[1]:
        raise InputError(
            f"the unjudged rows have {more.shape[1]} features and the data has {rows.shape[1]}; pass rows with the "
            "same features."
        )
    theirs = Queries.of(pool.qid, more.shape[0])
    if (inputs.qid is None) != (pool.qid is None):
        raise InputError(
            "only one of the data and the unjudged rows has query ids; pass them for both, or for neither."
        )
    # ids match as text if one is a number and the other a string
    known, texts = set(own.ids.tolist()), {_text(query): query for query in own.ids.tolist()}
    same = [query if query in known else texts.get(_text(query), query) for query in theirs.ids.tolist()]
    ids = [*own.ids[own.codes].tolist(), *(same[i] for i in theirs.codes.tolist())]
    kind = np.result_type(rows.dtype, more.dtype)
    if sparse.issparse(rows) or sparse.issparse(more):
        return sparse.csr_matrix(sparse.vstack([rows, more], format="csr", dtype=kind)), Queries.of(ids, len(ids))
    return np.concatenate([rows, more], dtype=kind), Queries.of(ids, len(ids))


def _text(query: Any) -> str:
    # pandas reads whole numbers with a missing value as floats
    return str(int(query)) if isinstance(query, float) and query.is_integer() else str(query)
