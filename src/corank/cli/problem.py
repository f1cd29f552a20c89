"""Read the DATA of a command: LETOR text, a store, or Parquet, told apart by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError


class Source(Protocol):
    """An opened file: a `LetorFile`, a `Store`, or `ParquetRows`."""

    @property
    def data(self) -> RankingData:
        """The problem."""

    @property
    def qid(self) -> NDArray[Any] | None:
        """One query id per row."""

    @property
    def docids(self) -> NDArray[Any] | None:
        """One document id per row."""


@dataclass(frozen=True, eq=False)
class Problem:
    """
    Rows to learn from or to rank, and the file that they came from.

    Attributes
    ----------
    data : RankingData
        Rows, scores and queries as the command wants them.
    source : Source
        The file, with its query ids and document ids.
    """

    data: RankingData
    source: Source


def read_problem(
    paths: Sequence[Path], *, unscored: float | None = None, qid: str | None = None, n_features: int | None = None
) -> Problem:
    """
    Read rows from files.

    Parameters
    ----------
    paths : sequence of Path
        One store, one Parquet file, or one or several LETOR files.
    unscored : float, optional
        Label that marks an unscored row.
    qid : str, optional
        "none" ignores query ids; any other name is the id column of a Parquet file.
    n_features : int, optional
        Number of columns of X, for LETOR text; the largest feature id by default.

    Returns
    -------
    Problem
        The rows.
    """
    source = _open(paths, qid, unscored, n_features)
    data = source.data
    y = np.asarray(data.y)
    if unscored is not None and (y == unscored).any():
        y = np.where(y == unscored, np.nan, y)
        data = RankingData.of_checked(data.X, y, data.queries)
    if qid == "none":
        data = RankingData.of_checked(data.X, y, Queries.of(None, data.n_rows))
    return Problem(data, source)


def _open(paths: Sequence[Path], qid: str | None, unscored: float | None, n_features: int | None) -> Source:
    first = Path(paths[0])
    is_frame = first.suffix == ".parquet"
    if (first.is_dir() or is_frame) and len(paths) > 1:
        raise InputError(f"{len(paths)} inputs came with {first}; pass one store, one Parquet file, or LETOR files.")
    if qid not in (None, "none") and not is_frame:
        raise InputError(f"--qid {qid!r} names a column, but {first} is not Parquet; pass 'none' to ignore query ids.")
    if first.is_dir():
        from corank.data.store import open_store

        return open_store(first)
    if is_frame:
        from corank.data.frames import parquet_columns, read_parquet

        names = parquet_columns(first)
        ids = (qid if qid != "none" else None) or ("qid" if "qid" in names else None)
        return read_parquet(first, qid=ids, docid="docid" if "docid" in names else None)
    from corank.data.letor import read_letor

    return read_letor([Path(path) for path in paths], unscored=unscored, n_features=n_features)
