"""How likely people are to look at each place of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.formats.click_log import ClickLog
from corank.data.problem.rows import as_rows
from corank.errors import InputError
from corank.parameters import check_values, number, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PositionBias:
    """
    Probability that somebody looks at each place of a list, relative to the first place.

    Attributes
    ----------
    examined : array of shape (n_positions,)
        θ_k of place k + 1; the first is 1.
    method : str
        How it came about: ``"moved"``, ``"regression"`` or ``"power"``.
    """

    examined: Floats
    method: str

    @classmethod
    def power(cls, eta: float, n_positions: int) -> PositionBias:
        """
        Make a bias that falls as a power of the place, θ_k = k^-η.

        Parameters
        ----------
        eta : float
            η: 0 is no bias; about 1 is usual for search.
        n_positions : int
            Number of places.

        Returns
        -------
        PositionBias
            The bias.

        Examples
        --------
        >>> PositionBias.power(1.0, 4).examined.round(2).tolist()
        [1.0, 0.5, 0.33, 0.25]
        """
        check_values({"eta": eta, "n_positions": n_positions}, {"eta": number(0), "n_positions": whole(1)})
        return cls(np.arange(1.0, n_positions + 1) ** -eta, "power")

    def at(self, position: ArrayLike) -> Floats:
        """
        Look up places.

        Parameters
        ----------
        position : array of int
            Places, the first is 1.

        Returns
        -------
        array of float64
            θ of each.
        """
        places = np.asarray(position, dtype=np.int64)
        if len(places) and places.min() < 1:
            raise InputError(f"there is no place {places.min()}; the first place of a list is 1.")
        if len(places) and places.max() > len(self.examined):
            raise InputError(
                f"the log shows place {places.max()}, but the bias is known to place {len(self.examined)}; estimate it "
                "from this log, or cut the lists."
            )
        return self.examined[places - 1]


@dataclass(frozen=True, eq=False)
class Shown:
    """
    A log as counts: how often each answer stood at each place, and was clicked there.

    item, place: number of the answer, and place from 0, of each count.
    shown, clicks: how often.
    """

    item: Ints
    place: Ints
    shown: Floats
    clicks: Floats
    n_places: int

    @classmethod
    def of(cls, log: ClickLog) -> Shown:
        """Count a log."""
        n_places = int(log.position.max())
        cells, inverse = np.unique(log.items * n_places + log.position - 1, return_inverse=True)
        clicks = np.bincount(inverse, weights=log.clicked.astype(np.float64))
        shown = np.bincount(inverse).astype(np.float64)
        return cls(cells // n_places, cells % n_places, shown, np.asarray(clicks, np.float64), n_places)


def position_bias(
    log: ClickLog,
    *,
    X: Any = None,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
) -> PositionBias:
    """
    Estimate how likely people are to look at each place.

    A click needs a look at the place and a document that is wanted there: P(click) = θ_k r, θ_k of the place, r of
    the document and query. Where documents were moved, by randomised swaps or because rankers changed, clicks c and
    showings n of one document at several places tell θ without r: given a document's clicks C = Σ_k c_k, each fell on
    place k with probability n_k θ_k / Σ_j n_j θ_j, so θ minimises the convex

        Σ_documents C log Σ_k n_k θ_k - Σ_k c_k log θ_k ,

    whose slopes have mean zero at the true θ whatever r is, however seldom a document was shown. Documents that stood
    at one place only say nothing.

    Where nothing was moved, pass rows of features: r = 1 / (1 + exp(-w·x - b)) on columns of deviation 1, and θ, w, b
    are the likeliest, less ½‖w‖². That takes for granted that r is a function of the features, and that places are
    none.

    Parameters
    ----------
    log : ClickLog
        What was shown and clicked.
    X : array or CSR matrix of shape (n_rows, n_features), optional
        Features of documents, for logs in which nothing was moved.
    qid, docids : arrays of shape (n_rows,), optional
        Query and document of each row of X.

    Returns
    -------
    PositionBias
        θ relative to the first place.

    References
    ----------
    Joachims, Swaminathan and Schnabel, Unbiased Learning-to-Rank with Biased Feedback, 2017 (swaps); Agarwal et al.,
    Estimating Position Bias without Intrusive Interventions, 2019 (rankers that changed); Wang et al., Position Bias
    Estimation for Unbiased Learning to Rank in Personal Search, 2018 (regression).

    Examples
    --------
    >>> log = ClickLog.of(["a"] * 8, ["x", "y"] * 2 + ["y", "x"] * 2, [1, 2] * 4, [1, 0, 1, 0, 1, 1, 0, 0])
    >>> position_bias(log).examined.round(2).tolist()
    [1.0, 0.33]
    """
    if not log.clicked.any():
        raise InputError(f"nothing was clicked in {log.n_impressions} lists; a bias needs clicks.")
    if X is None:
        return _of_moved(Shown.of(log))
    if qid is None or docids is None:
        raise InputError("X came without qid or docids; pass both, so that rows can be found in the log.")
    features, rows = as_rows(X), log.find(qid, docids)
    if features.shape[0] != len(np.asarray(qid)):
        raise InputError(f"X has {features.shape[0]} rows for {len(np.asarray(qid))} query ids; pass one for each.")
    if (rows < 0).any():
        first = int(np.flatnonzero(rows < 0)[0])
        raise InputError(
            f"document {log.docids[first]!r} of query {log.qid[first]!r} was shown, but is no row of X; pass a row for "
            "every document shown."
        )
    return _by_regression(log, features, rows)


def _of_moved(counts: Shown) -> PositionBias:
    from scipy.optimize import minimize

    total = np.bincount(counts.item, weights=counts.clicks)
    n_moved = np.bincount(counts.item)
    used = (total > 0)[counts.item] & (n_moved > 1)[counts.item]
    item, place = np.unique(counts.item[used], return_inverse=True)[1], counts.place[used]
    shown, clicks = counts.shown[used], counts.clicks[used]
    n_places = counts.n_places
    _require_compared(item, place, clicks, n_places)
    C, c = np.bincount(item, weights=clicks), np.bincount(place, weights=clicks, minlength=n_places)

    def cost(log_theta: Floats) -> tuple[float, Floats]:
        expected = shown * np.exp(log_theta)[place]
        S = np.bincount(item, weights=expected)
        slope = np.bincount(place, weights=expected * (C / S)[item], minlength=n_places) - c
        return float(C @ np.log(S) - c @ log_theta) / C.sum(), slope / C.sum()

    log_theta = minimize(
        cost, np.zeros(n_places), jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 1e-15}
    ).x
    return PositionBias(np.exp(log_theta - log_theta[0]), "moved")


def _require_compared(item: Ints, place: Ints, clicks: Floats, n_places: int) -> None:
    """Refuse logs that leave θ open: it is finite and one only where clicks lead from every place to every other."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n_items = int(item.max()) + 1 if len(item) else 0
    stood = sparse.csr_array((np.ones(len(item)), (place, item)), shape=(n_places, n_items))
    clicked = sparse.csr_array((clicks, (place, item)), shape=(n_places, n_items))
    groups = connected_components(clicked @ stood.T, directed=True, connection="strong")[1]
    apart = np.flatnonzero(groups != groups[0]) + 1
    if len(apart):
        raise InputError(
            f"clicks do not tell how places 1 and {apart[0]} compare: too few documents with clicks were seen at both, "
            "or at places between; swap documents at random, cut the lists, estimate by features, or guess that looks "
            "fall as a power of the place."
        )


def _by_regression(log: ClickLog, X: Any, rows: Ints) -> PositionBias:
    from scipy import sparse
    from scipy.optimize import minimize
    from scipy.special import expit
    from sklearn.preprocessing import StandardScaler

    counts = Shown.of(log)
    row_of = np.zeros(int(log.items.max()) + 1, dtype=np.int64)
    row_of[log.items] = rows
    items = X[row_of]
    items = StandardScaler(with_mean=not sparse.issparse(items)).fit_transform(items)
    item, place, n, c = counts.item, counts.place, counts.shown, counts.clicks
    k = counts.n_places

    def cost(free: Floats) -> tuple[float, Floats]:
        """Minus the log of the likelihood, and its slopes; θ = 1 / (1 + exp(-a))."""
        a, b, w = free[:k], free[k], free[k + 1 :]
        theta, r = expit(a), expit(items @ w + b)
        p = theta[place] * r[item]
        missed = np.maximum(1.0 - p, 1e-12)
        value = -(c @ np.log(np.maximum(p, 1e-300)) + (n - c) @ np.log(missed))
        pull = (n - c) * p / missed - c  # p times the slope by p
        slope_a = np.bincount(place, weights=pull, minlength=k) * (1.0 - theta)
        slope_s = np.bincount(item, weights=pull) * (1.0 - r)
        slopes = np.concatenate([slope_a, [slope_s.sum()], items.T @ slope_s + w])
        return (value + 0.5 * w @ w) / n.sum(), slopes / n.sum()

    start = np.concatenate([np.full(k, 2.0), np.zeros(1 + items.shape[1])])
    exact = {"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-8, "ftol": 1e-13}
    a = minimize(cost, start, jac=True, method="L-BFGS-B", options=exact).x[:k]
    return PositionBias(expit(a) / expit(a[0]), "regression")
