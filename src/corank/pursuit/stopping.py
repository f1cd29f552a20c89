"""When to stop: held-out queries, and patience with the errors on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.data.split import keep_scores
from corank.errors import InputError
from corank.metrics import disagreement_error
from corank.pursuit.dictionary import Dictionary

Ints = NDArray[np.int64]


def hold_out(
    data: RankingData,
    weights: NDArray[np.float64] | None,
    fraction: float,
    rng: np.random.Generator,
    *,
    by_squares: bool,
) -> tuple[RankingData, Ints]:
    """
    Hold out whole queries that can be judged, or rows where there is one such query.

    Parameters
    ----------
    data : RankingData
        The problem, given by scores.
    weights : array of shape (n_rows,), optional
        Row weights; rows of weight zero are as if they were not there.
    fraction : float
        Share of the queries that hold a pair (scored rows, by squares), or of the rows of the only one.
    rng : numpy.random.Generator
        Draws them.
    by_squares : bool
        Whether the squared error will judge, which needs no pair.

    Returns
    -------
    RankingData, array of int64
        The problem with the scores of held-out rows hidden, and the scored rows that were held out.
    """
    if data.y is None:
        raise InputError("early_stopping compares with held-out scores, but the problem is given by pairs; pass y.")
    known = data if weights is None else keep_scores(data, weights > 0.0)
    codes, judged = data.queries.codes, np.flatnonzero(_judgements(known, by_squares))
    rows = np.flatnonzero(known.is_scored & np.isin(codes, judged))
    units = codes[rows] if len(judged) > 1 else rows
    distinct = np.unique(units)
    # one row of a query compares with nothing
    least = 1 if by_squares or len(judged) > 1 else 2
    drawn = rng.choice(distinct, max(round(fraction * len(distinct)), least), replace=False)
    is_out = np.zeros(data.n_rows, dtype=bool)
    is_out[rows[np.isin(units, drawn)]] = True
    train, test = keep_scores(known, ~is_out), keep_scores(known, is_out)
    if not all(_judgements(part, by_squares).any() for part in (train, test)):
        raise InputError(
            f"early_stopping holds out {test.n_scored} of {known.n_scored} scored rows, which leaves no "
            f"{'row' if by_squares else 'pair'} to learn from or none to judge by; change validation_fraction, or set "
            "early_stopping=False."
        )
    return train, np.flatnonzero(is_out)


def _judgements(data: RankingData, by_squares: bool) -> Ints:
    """Count in each query what an error is a mean of: scored rows, or pairs."""
    return data.scored_stops - data.starts[:-1] if by_squares else data.pairs_per_query


class Watch:
    """
    Judge each model of a path on held-out rows; true when enough steps went by without improvement.

    Parameters
    ----------
    seen : Dictionary
        The dictionary over the held-out rows.
    data : RankingData
        The problem with all scores.
    rows : array of int64
        The held-out rows.
    by_squares : bool
        Whether the squared error counts, rather than the disagreement error.
    patience : int
        Steps without improvement.
    level : float
        What predictions add to the dictionary's terms.

    Attributes
    ----------
    errors : list of float
        Error with 0, 1, 2, ... terms.
    """

    def __init__(
        self, seen: Dictionary, data: RankingData, rows: Ints, *, by_squares: bool, patience: int, level: float = 0.0
    ) -> None:
        assert data.y is not None
        self._seen, self._y, self._qid = seen, data.y[rows] - level, data.queries.codes[rows]
        self._by_squares, self._patience = by_squares, patience
        self.errors = [self._error(np.zeros(len(rows)))]

    def __call__(self, indices: Ints, coefs: NDArray[np.float64]) -> bool:
        """Note the error of the model, and say whether to stop."""
        f = self._seen.D[:, indices] @ coefs
        self.errors.append(self._error(np.asarray(f, dtype=np.float64)))
        return len(self.errors) - 1 - best_length(np.array(self.errors)) >= self._patience

    def _error(self, f: NDArray[np.float64]) -> float:
        return float(np.mean((self._y - f) ** 2)) if self._by_squares else disagreement_error(self._y, f, self._qid)


def best_length(errors: NDArray[np.float64]) -> int:
    """
    Return the shortest model among the best.

    Parameters
    ----------
    errors : array of shape (P + 1,)
        Error with 0, 1, 2, ... terms.

    Returns
    -------
    int
        Its number of terms.
    """
    return int(np.argmin(errors))
