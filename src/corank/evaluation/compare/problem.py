"""The rows of a comparison: the data and a pool, what each fold learns from and is judged by, on disk and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.problem.collection import Collection
from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.rows import as_rows
from corank.errors import InputError
from corank.parameters import is_whole


@dataclass(frozen=True, eq=False)
class Given:
    """
    Rows as they came.

    X, y, qid: as `Ranker.fit` takes them; y is None where there are no scores.
    docids: documents of the rows, for conventions that order ties by them.
    names: of the columns; None where they have none.
    """

    X: Any
    y: Any
    qid: Any
    docids: Any = None
    names: Sequence[str] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, qid: Any) -> Given:
        """Take rows, or what brings scores and queries along."""
        if X is None:
            raise InputError("X is missing; pass the rows, or what corank.read returns.")
        if isinstance(X, Collection | RankingData):
            if y is not None or qid is not None:
                raise InputError(f"y or qid came beside a {type(X).__name__}, which holds them; pass it alone.")
            if isinstance(X, Collection):
                return cls(X.X, X.y, X.qid, X.docids, X.names)
            if X.pairs is not None:
                raise InputError(
                    "the data holds preferences only, and methods are judged by scores; pass one score per row, NaN "
                    "where unscored."
                )
            return cls(X.X, X.y, X.queries.ids[X.queries.codes])
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        return cls(X, y, qid, None, names)

    def columns(self, prior: Sequence[int], n: int) -> tuple[int, ...]:
        """Check numbers of columns that are scores already, of `n` columns."""
        found = tuple(prior)
        if not found or not all(is_whole(at) and 0 <= at < n for at in found):
            raise InputError(f"prior is {list(found)!r}; pass one or more column numbers from 0 to {n - 1}.")
        return tuple(int(at) for at in found)

    def names_of(self, n: int) -> tuple[str, ...]:
        """Return names of `n` columns, or their numbers from 1."""
        return tuple(str(at + 1) for at in range(n)) if self.names is None else tuple(self.names)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALWAYS = -1
"""Part of the rows that every fold learns from."""

# rows of one query that stand for a query, and the most such groups
_GROUP, _MOST_GROUPS = 10, 50


@dataclass(frozen=True, eq=False)
class Problem:
    """
    Rows of the data, then those of the pool, each in the part that its query is judged in.

    X: float rows, dense or CSR.
    y: scores; NaN where unscored, as all rows of the pool are.
    codes: number of each row's query.
    parts: the fold in which each row is left out, or `ALWAYS`; a query of the data lies in one part, with the rows that
        the pool has of it.
    units: what metrics take for a query: its number or, where all scores lie in one query, that of a group of its rows;
        −1 for rows that are never judged.
    n_own: rows of the data.
    """

    X: Any
    y: Floats
    codes: Ints
    parts: Ints
    units: Ints
    n_own: int

    @property
    def unit(self) -> str:
        """What methods are paired by, in words."""
        judged = self.units >= 0
        return "queries" if (self.units[judged] == self.codes[judged]).all() else "groups of rows"

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.parts.max()) + 1

    @cached_property
    def judged(self) -> Ints:
        """Rows that are scored by models which did not learn from their query, ascending."""
        return np.flatnonzero(self.parts[: self.n_own] != ALWAYS)

    def test(self, fold: int) -> Ints:
        """Return the rows that a fold is judged by."""
        return np.asarray(self.judged[self.parts[self.judged] == fold])

    def train(self, fold: int | None, fraction: float = 1.0, dice: tuple[int, ...] = ()) -> tuple[Ints, Floats]:
        """
        Return what a fold learns from.

        fold: None leaves nothing out.
        fraction: share of the scored queries that keep their scores; smaller shares of the same dice are part of
            larger ones.
        dice: seeds of the choice.
        Returns: rows, and their scores.
        """
        rows = np.arange(len(self.y)) if fold is None else np.flatnonzero(self.parts != fold)
        y = np.array(self.y[rows])
        if fraction < 1.0:
            kept = self._some_units(np.unique(self.units[rows][~np.isnan(y)]), fraction, dice)
            y[~np.isin(self.units[rows], kept)] = np.nan
        return rows, y

    def _some_units(self, units: Ints, fraction: float, dice: tuple[int, ...]) -> Ints:
        """Draw scored queries, at least one of them with two different scores where there is any."""
        drawn = np.random.default_rng(dice).permutation(units)
        first = next((at for at, unit in enumerate(drawn) if unit in self.comparable), 0)
        drawn[[0, first]] = drawn[[first, 0]]
        return drawn[: max(2, round(fraction * len(units)))]

    @cached_property
    def comparable(self) -> frozenset[int]:
        """Units that hold two different scores."""
        scored = ~np.isnan(self.y)
        return frozenset(comparable(self.y[scored], self.units[scored]).tolist())

    @property
    def default_metrics(self) -> tuple[str, str]:
        """Metrics of grades where scores are whole numbers from 0 to 10, else of pairs."""
        y = self.y[~np.isnan(self.y)]
        are_grades = (y >= 0) & (y <= 10) & (y == np.round(y))
        return ("nDCG@10", "AP") if are_grades.all() else ("disagreement", "kendall")

    def save(self, folder: Path) -> None:
        """Write the arrays into an empty folder."""
        arrays = {name: getattr(self, name) for name in ("y", "codes", "parts", "units")}
        if sparse.issparse(self.X):
            arrays |= {name: getattr(self.X, name) for name in ("data", "indices", "indptr")}
        else:
            arrays["X"] = self.X
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
        (folder / "shape.json").write_text(json.dumps({"shape": self.X.shape, "n_own": self.n_own}))

    @classmethod
    def open(cls, folder: Path) -> Problem:
        """Map what `save` wrote."""
        arrays = {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in folder.glob("*.npy")}
        about = json.loads((folder / "shape.json").read_text())
        X: Any = arrays.get("X")
        if X is None:
            X = sparse.csr_matrix(tuple(arrays[name] for name in ("data", "indices", "indptr")), about["shape"])
        return cls(X, arrays["y"], arrays["codes"], arrays["parts"], arrays["units"], about["n_own"])

    @cached_property
    def fingerprint(self) -> str:
        """Hash of rows, scores and queries."""
        digest = hashlib.sha256(f"{self.X.shape} {self.n_own}".encode())
        parts = (self.X.data, self.X.indices, self.X.indptr) if sparse.issparse(self.X) else (self.X,)
        for array in (*parts, self.y, self.codes):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:24]


def comparable(y: Floats, groups: Ints) -> Ints:
    """Return the groups that hold two different scores, ascending."""
    order = np.lexsort((y, groups))
    y, groups = y[order], groups[order]
    rises = (groups[1:] == groups[:-1]) & (y[1:] > y[:-1])
    return np.unique(groups[1:][rises])


def deal(y: Floats, groups: Ints, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """
    Deal groups of scored rows to folds, those that hold two different scores first, so that each fold has its share.

    y, groups: of scored rows.
    Returns: fold of each of ``np.unique(groups)``.
    """
    names = np.unique(groups)
    order = rng.permutation(len(names))
    holds = np.isin(names, comparable(y, groups))
    order = order[np.argsort(~holds[order], kind="stable")]
    fold = np.empty(len(names), dtype=np.int64)
    fold[order] = np.arange(len(names)) % n_folds
    return fold


def deal_rows(y: Floats, n_groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal the scored rows of one query to groups that are alike: in the order of their scores, one to each in turn."""
    order = np.lexsort((rng.random(len(y)), y))
    group = np.empty(len(y), dtype=np.int64)
    group[order] = np.concatenate([rng.permutation(n_groups) for _ in range(-(-len(y) // n_groups))])[: len(y)]
    return group


def make_problem(given: Given, pool: Given | None, folds: int, seed: int) -> tuple[Problem, Queries]:
    """
    Check rows and deal their queries to folds.

    given: rows with scores.
    pool: further rows, without; None where there are none.
    folds: the most folds.
    Returns: the problem, and the queries of all its rows.
    """
    if given.y is None:
        raise InputError(
            "y is missing: methods are judged by scores, which preferences alone do not give; pass one score per row, "
            "NaN where unscored."
        )
    rows = as_rows(given.X)
    scores = as_scores(given.y, rows.shape[0])
    n = rows.shape[0]
    own = Queries.of(given.qid, n)
    RankingData.of_checked(rows, scores, own).require_pairs()
    queries = own
    if pool is not None:
        rows, queries = _with_pool(rows, given, own, pool)
        scores = np.concatenate([scores, np.full(rows.shape[0] - n, np.nan)])
    rng = np.random.default_rng([seed, 0])
    codes, scored = queries.codes, np.flatnonzero(~np.isnan(scores))
    units = np.where(np.isin(codes, codes[scored]), codes, -1)
    names = np.unique(codes[scored])
    if len(names) == 1:
        if len(scored) < 4:
            raise InputError(
                f"all {len(scored)} scored rows lie in one query, too few to learn from some and judge by others; "
                "score four rows or more, or pass the queries they belong to."
            )
        n_groups = int(np.clip(len(scored) // _GROUP, 2, _MOST_GROUPS))
        units = np.full(len(codes), -1)
        units[scored] = deal_rows(scores[scored], n_groups, rng)
        names = np.arange(n_groups)
    fold = deal(scores[scored], units[scored], min(folds, len(names)), rng)
    parts = np.full(len(codes), ALWAYS)
    is_judged = units >= 0
    parts[is_judged] = fold[np.searchsorted(names, units[is_judged])]
    return Problem(rows, scores, codes, parts, units, n), queries


def _with_pool(rows: Any, given: Given, own: Queries, pool: Given) -> tuple[Any, Queries]:
    """Put the rows of the pool behind those of the data; a query of both is one query."""
    more = as_rows(pool.X)
    if more.shape[1] != rows.shape[1]:
        raise InputError(
            f"the unscored rows have {more.shape[1]} features and the data has {rows.shape[1]}; pass rows of the same "
            "features."
        )
    theirs = Queries.of(pool.qid, more.shape[0])
    if (given.qid is None) != (pool.qid is None):
        raise InputError(
            "only one of the data and its unscored rows has query ids; pass them for both, or for neither."
        )
    same = _alike(own.ids.tolist(), theirs.ids.tolist())
    ids = [*own.ids[own.codes].tolist(), *(same[at] for at in theirs.codes.tolist())]
    kind = np.result_type(rows.dtype, more.dtype)
    if sparse.issparse(rows) or sparse.issparse(more):
        stacked: Any = sparse.csr_matrix(sparse.vstack([rows, more], format="csr", dtype=kind))
    else:
        stacked = np.concatenate([rows, more], dtype=kind)
    return stacked, Queries.of(ids, len(ids))


def _alike(own: list[Any], theirs: list[Any]) -> list[Any]:
    """
    Call the queries of the pool as the data calls them: by the same text where one has numbers and the other text.

    >>> _alike([1, 2], ["2", "3"])
    [2, '3']
    """
    known, texts = set(own), {_text(query): query for query in own}
    return [query if query in known else texts.get(_text(query), query) for query in theirs]


def _text(query: Any) -> str:
    # a column of whole numbers with a gap is one of floats to pandas
    return str(int(query)) if isinstance(query, float) and query.is_integer() else str(query)
