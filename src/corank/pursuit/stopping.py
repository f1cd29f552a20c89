"""When to stop: held-out queries, and patience with the errors on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import disagreement_error
from corank.pursuit.dictionary import Dictionary

Ints = NDArray[np.int64]


def hold_out(data: RankingData, fraction: float, rng: np.random.Generator) -> tuple[RankingData, Ints]:
    """
    Hold out whole queries, or rows where there is one query.

    Parameters
    ----------
    data : RankingData
        The problem, given by scores.
    fraction : float
        Share of the queries with scored rows, or of the scored rows.
    rng : numpy.random.Generator
        Draws them.

    Returns
    -------
    RankingData, array of int64
        The problem with the scores of held-out rows hidden, and the scored rows that were held out.
    """
    if data.y is None:
        raise InputError("early_stopping compares with held-out scores, but the problem is given by pairs; pass y.")
    codes, scored = data.queries.codes, np.flatnonzero(data.is_scored)
    units = codes[scored] if len(np.unique(codes[scored])) > 1 else scored
    distinct = np.unique(units)
    n_out = max(round(fraction * len(distinct)), 1)
    is_out = np.isin(units, rng.choice(distinct, n_out, replace=False))
    held_out = scored[is_out]
    y = data.y.copy()
    y[held_out] = np.nan
    train = RankingData.of_checked(data.X, y, data.queries)
    judged = RankingData.of_checked(data.X[held_out], data.y[held_out], Queries.of(codes[held_out], len(held_out)))
    if not (train.n_pairs and judged.n_pairs):
        raise InputError(
            f"early_stopping holds out {len(held_out)} of {len(scored)} scored rows, which leaves no pair to learn "
            "from or none to judge by; change validation_fraction, or set early_stopping=False."
        )
    return train, held_out


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

    Attributes
    ----------
    errors : list of float
        Error with 0, 1, 2, ... terms.
    """

    def __init__(self, seen: Dictionary, data: RankingData, rows: Ints, *, by_squares: bool, patience: int) -> None:
        assert data.y is not None
        self._seen, self._y, self._qid = seen, data.y[rows], data.queries.codes[rows]
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
