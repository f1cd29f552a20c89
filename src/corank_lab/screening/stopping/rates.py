"""
A model of the finds: a Poisson process over the order of reading, whose rate declines.

At position i of n the rate is proportional to

    h(i) = (1 − ε) g(i/n) / Σ_j g(j/n) + ε / n,

where g is a stretched exponential or a power law and ε is the share of relevant records that lie anywhere in the order.
The curves and ε lie on a grid with a uniform prior, and the number of relevant records has the prior 1/λ. With r finds
among the first `read` records and the curve h, the number of relevant records among the unread is negative binomial:

    P(missing ≤ m) = I_H(r, m + 1),   H = Σ_{i ≤ read} h(i),

with the regularised incomplete beta function I. The weights of the curves are (∏ h(find) / H^r)^τ.

No curve is exactly right, and with many finds the model would be far too sure. Two constants allow for that: finds
count as at most `enough` when curves are weighted, τ = 1 / (1 + r/enough), and the odds (1 − H)/H of a relevant record
to be unread are multiplied by a lognormal factor with the standard deviation `misfit`. Rules decide by (100, 0.5).
Intervals use `WIDE`, since they must hold at every moment of a screening, and rules stop at one moment only. Their
lower end is also below every recall that the bets (`corank_lab.screening.stopping.urns`) do not reject at `DOUBT`,
since nothing in the finds tells of a second topic that is still unread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from corank_lab.screening.stopping.urns import missing_allowed, p_of_missing, smallest

MIN_FOUND = 5
"""Number of finds below which no estimate is made."""
PLACES = 2000
"""Maximum number of positions at which cumulated rates are tabulated; they are interpolated in between."""

SHAPES, SLOPES = (0.3, 0.5, 0.7, 1.0), np.r_[0.0, np.geomspace(0.5, 200, 40)]
"""Values of c and b of stretched exponentials."""
OFFSETS, EXPONENTS = np.geomspace(0.002, 2.0, 12), np.linspace(0.0, 5.0, 21)
"""Values of s and a of power laws."""
BACKGROUNDS = (0.0, 0.02)
"""Values of ε."""
LARGE, MAX_SHARES = 5000, 200
"""Number of records from which intervals are computed with fewer shares, and their number."""
WIDE = (30, 1.5)
"""Values of enough and misfit for intervals, chosen on replays."""
DOUBT = 0.1
"""p-value of the bets above which a number of missing records is inside the interval."""
NODES = np.linspace(-2.0, 2.0, 5)
"""Points at which the lognormal factor is evaluated, in standard deviations."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RecallEstimate:
    """Estimate of the recall reached so far."""

    recall: float  # posterior median
    low: float  # low, high: 95 % interval; `low` is below 1 as long as records are unread
    high: float
    probability: float  # that the target is reached


@dataclass(frozen=True, eq=False)
class RateModel:
    """
    Stretched exponentials g(x) = e^(−b x^c), and power laws g(x) = (x + s)^(−a), whose tails are heavier.

    s is the share of the order up to which the rate is nearly constant, a the speed of the decline after it. No decline
    (a = 0) is one of the curves. With heavy tails, a stretch without finds says less about the records far behind it
    than with exponential ones; the finds decide which curves fit.
    """

    n: int  # number of records that are read in the order of the ranking
    enough: float = 100  # number of finds that count in the weights of the curves
    misfit: float = 0.5  # standard deviation of the logarithm of the odds
    wide: tuple[float, float] = WIDE  # the same two for intervals
    doubt: float = DOUBT  # p-value of the bets down to which a recall is inside the interval

    def estimate(self, finds: Sequence[int], read: int, known: int, target: float) -> RecallEstimate | None:
        if len(finds) < MIN_FOUND:
            return None
        cdf, _ = self._missing_cdf(finds, read, *self.wide, n_shares=MAX_SHARES if self.n > LARGE else None)
        n_unread, result = self.n - read, len(finds) + known

        def quantile(level: float) -> int:
            return smallest(lambda missing: cdf(missing) >= level, 0, n_unread)

        median, most, least = quantile(0.5), quantile(0.975), quantile(0.025)
        most = max(most, min(n_unread, 1))  # an unread record may be relevant, whatever a model says
        if most < n_unread and p_of_missing(finds, read, self.n, most + 1) > self.doubt:
            most = smallest(
                lambda more: p_of_missing(finds, read, self.n, more + 1, 2) <= self.doubt, most + 1, n_unread
            )
        recall, low, high = (result / (result + missing) for missing in (median, most, least))
        return RecallEstimate(recall, low, high, self.probability(finds, read, known, target))

    def probability(self, finds: Sequence[int], read: int, known: int, target: float) -> float:
        """Return the probability that the target is reached; 0 with fewer than `MIN_FOUND` finds."""
        allowed = missing_allowed(len(finds) + known, target)
        if len(finds) < MIN_FOUND or allowed >= self.n - read:
            return float(len(finds) >= MIN_FOUND)
        return self._missing_cdf(finds, read, self.enough, self.misfit)[0](allowed)

    def place_of(self, finds: Sequence[int], read: int, known: int, target: float) -> int | None:
        """
        Return where the target recall is expected to be reached, as a number of records read.

        It is the first place at which the expected number of finds is the target share of the expected number of
        relevant records. Parameters as in `estimate`.
        """
        if len(finds) < MIN_FOUND:
            return None
        _, posterior = self._missing_cdf(finds, read, self.enough, self.misfit)
        mass, result = self._cumulated(read), len(finds) + known

        def expected(place: int) -> float:
            return result + float(len(finds) * posterior @ (self._cumulated(place) / mass - 1))

        goal = target * expected(self.n)
        return smallest(lambda place: expected(place) >= goal, read, self.n)

    def _missing_cdf(
        self, finds: Sequence[int], read: int, enough: float, misfit: float, n_shares: int | None = None
    ) -> tuple[Callable[[int], float], Floats]:
        """Distribution function of the number of relevant records among the unread, and the posterior of the rates."""
        r, mass_read = len(finds), self._cumulated(read)
        evidence = (self._log_likelihood(finds) - r * np.log(mass_read)) / (1 + r / enough)
        posterior = np.exp(evidence - evidence.max())
        posterior /= posterior.sum()
        share = np.minimum(mass_read / self._cumulated(self.n), 1.0)
        likely = posterior > 1e-6 * posterior.max()  # a part of the curves
        weight, share = posterior[likely] / posterior[likely].sum(), share[likely]
        odds = (1 - share) / np.maximum(share, 1e-300)
        shares = 1 / (1 + np.exp(misfit * NODES)[:, None] * odds)
        nodes = np.exp(-0.5 * NODES**2)
        nodes /= nodes.sum()
        if n_shares is not None and shares.size > n_shares:  # neighbours as one, by equal weights
            order = np.argsort(shares, axis=None)
            mass = np.multiply.outer(nodes, weight).ravel()[order]
            part = np.minimum((mass.cumsum() * n_shares).astype(np.intp), n_shares - 1)
            weight = np.bincount(part, mass, n_shares)
            mean = np.bincount(part, mass * shares.ravel()[order], n_shares) / np.maximum(weight, 1e-300)
            shares, nodes = mean[None], np.ones(1)
        return lambda missing: float(nodes @ betainc(r, missing + 1, shares) @ weight), posterior

    def _log_likelihood(self, finds: Sequence[int]) -> Floats:
        """Sum of the logarithms of the rates at the finds; a sum for the first of them is extended."""
        begun = self._sums.get("finds", ([], np.zeros(1)))
        places, total = begun if list(finds[: len(begun[0])]) == begun[0] else ([], np.zeros(1))
        if len(finds) > len(places):
            total = total + self._log_rates(np.array(finds[len(places) :])).sum(axis=1)
            self._sums["finds"] = ([*finds], total)
        return total

    @cached_property
    def _sums(self) -> dict[str, tuple[list[int], Floats]]:
        return {}

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Positions, and the cumulated curves up to them."""
        begin = np.arange(min(self.n, PLACES // 2))  # every position where rates decline fast
        edges = np.unique(np.r_[begin, np.linspace(len(begin), self.n, min(self.n, PLACES) + 1).round()])
        middles, widths = (edges[1:] + edges[:-1] + 1) / 2, np.diff(edges)
        sums = (np.exp(log_curves(middles / self.n)) * widths).cumsum(axis=1)
        return edges, np.hstack([np.zeros((len(sums), 1)), sums])

    def _cumulated(self, place: int) -> Floats:
        edges, sums = self._table
        i = min(int(np.searchsorted(edges, place)), len(edges) - 1)
        before = max(i - 1, 0)
        part = (place - edges[before]) / (edges[i] - edges[before]) if i else 0.0
        falling = (1 - part) * sums[:, before] + part * sums[:, i]
        return np.concatenate([(1 - share) * falling / sums[:, -1] + share * place / self.n for share in BACKGROUNDS])

    def _log_rates(self, places: NDArray[np.intp]) -> Floats:
        falling = np.exp(log_curves(places / self.n)) / self._table[1][:, -1:]
        rates = [(1 - share) * falling + share / self.n for share in BACKGROUNDS]
        return np.log(np.maximum(np.concatenate(rates), 1e-300))


def log_curves(shares: Floats) -> Floats:
    """Return the logarithm of each curve (rows), up to a constant, at some shares i/n of the order (columns)."""
    b, c = (values.reshape(-1, 1) for values in np.meshgrid(SLOPES, SHAPES))
    s, a = (values.reshape(-1, 1) for values in np.meshgrid(OFFSETS, EXPONENTS))
    return np.vstack([-b * shares**c, -a * np.log((shares + s) / s)])
