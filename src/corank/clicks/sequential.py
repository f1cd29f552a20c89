"""
InterleavingTest: decide which of two rankers users prefer, with a test that may be looked at after every list.

Credits x_1, x_2, ... ∈ [−1, 1] arrive one list at a time; positive ones favour A. With ψ(λ) = −log(1 − λ) − λ,

    exp(λ x − ψ(λ) x²) ≤ 1 + λ x    for x ≥ −1 and 0 ≤ λ < 1                        (Fan, Grama and Liu, 2015)

so that L_n(λ) = exp(λ Σ (x_i − μ_i) − ψ(λ) Σ x_i²) is a supermartingale, where μ_i is the mean of x_i given all lists
before it. Its mixture over λ, with 1 − λ from a gamma distribution cut at 1, is one too. With s = Σ x_i − Σ μ_i and
v = Σ x_i² it has the closed form (Howard, Ramdas, McAuliffe and Sekhon, 2021, proposition 9)

    m(s, v) = e^(s+v) Γ(v+ρ) P(v+ρ, s+v+ρ) (s+v+ρ)^−(v+ρ) / [Γ(ρ) P(ρ, ρ) ρ^−ρ],

P the regularised lower incomplete gamma function. By Ville's inequality m exceeds 2/alpha at some time with probability
alpha/2 at most. The same holds for −x, hence with u(v) the solution of m(u, v) = 2/alpha

    |Σ x_i/n − Σ μ_i/n| < u(v)/n    for all n at once, with probability 1 − alpha.

No distribution and no stationarity are assumed. The state is three sums, so a test is rebuilt exactly from a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError
from corank.parameters import check_values, integer, number

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """
    Result of an `InterleavingTest` so far.

    p_value: p-value, valid at any time: the smallest alpha at which the lists so far decide, at the most extreme time.
    """

    winner: str | None  # ``"A"`` or ``"B"`` once the interval has excluded 0, None before. It does not change later.
    decided_at: int | None  # number of lists after which that happened
    mean: float  # mean credit; positive values favour A. NaN without lists.
    low: float  # low, high: interval of the mean credit, valid at all times together
    high: float
    p_value: float
    n_lists: int  # n_lists, n_decisive: number of lists, and of those whose credit is not 0
    n_decisive: int

    def __str__(self) -> str:
        interval = f"mean credit {self.mean:+.4f} ({self.low:+.4f} to {self.high:+.4f}), {self.n_lists} lists"
        if self.winner is None:
            return f"not decided: {interval}"
        return f"{self.winner} is better, decided after {self.decided_at} lists: {interval}"


class InterleavingTest:
    """
    Sequential test of two rankers by credits of interleaved lists, or of an A/B test; look at it as often as you like.

    The probability that it ever names a winner is at most `alpha` if neither ranker is better, however many lists are
    shown and however often one looks.

    alpha: Probability of a false alarm.
    bound: Largest credit of a list: 1 for `TeamDraft`. Credits beyond it are refused.
    tuned_for: Number of decisive lists at which the interval is narrow; a matter of power, not of validity.
    """

    def __init__(self, alpha: float = 0.05, *, bound: float = 1.0, tuned_for: int = 1000) -> None:
        check_values(
            {"alpha": alpha, "bound": bound, "tuned_for": tuned_for},
            {"alpha": number(0, 1, inside="()"), "bound": number(0, inside="()"), "tuned_for": integer(1)},
        )
        self.alpha, self.bound, self.tuned_for = float(alpha), float(bound), int(tuned_for)
        self._n = self._decisive = 0
        self._total = self._squares = 0.0
        self._evidence = 0.0
        self._decided: int | None = None
        self._winner: str | None = None

    def add(self, credits: ArrayLike) -> Self:
        """Add lists."""
        values = np.atleast_1d(np.asarray(credits, dtype=np.float64))
        fits = np.abs(values) <= self.bound
        if values.ndim != 1 or not fits.all():
            bad = int(np.argmin(fits))
            result = f"shape {values.shape}" if values.ndim != 1 else f"{values[bad]:g} for list {bad}"
            raise InputError(
                f"credits has {result}; pass one number per list between {-self.bound:g} and {self.bound:g}, or a "
                "larger bound."
            )
        if not len(values):
            return self
        x = values / self.bound
        # cumsum adds from left to right, so that a batch gives the bits of single lists
        totals = np.cumsum(np.concatenate([[self._total], x]))[1:]
        squares = np.cumsum(np.concatenate([[self._squares], x * x]))[1:]
        evidence = log_mixture(np.abs(totals), squares, self._rho)
        crossed = np.flatnonzero(evidence >= self._threshold)
        if self._winner is None and len(crossed):
            self._decided = self._n + int(crossed[0]) + 1
            self._winner = "A" if totals[crossed[0]] > 0 else "B"
        self._evidence = max(self._evidence, float(evidence.max()))
        self._n += len(x)
        self._decisive += int(np.count_nonzero(x))
        self._total, self._squares = float(totals[-1]), float(squares[-1])
        return self

    def verdict(self) -> Verdict:
        """Return the winner, if there is one, and the interval so far."""
        mean, margin = float("nan"), self.bound
        if self._n:
            mean = self._total / self._n * self.bound
            margin = _margin(self._squares, self._rho, self._threshold) / self._n * self.bound
        middle = mean if self._n else 0.0
        low, high = max(middle - margin, -self.bound), min(middle + margin, self.bound)
        p_value = min(1.0, 2.0 * float(np.exp(-self._evidence)))
        return Verdict(self._winner, self._decided, mean, low, high, p_value, self._n, self._decisive)

    def state(self) -> dict[str, Any]:
        """Return the state, as values that JSON stores exactly."""
        return {
            "alpha": self.alpha, "bound": self.bound, "tuned_for": self.tuned_for, "n_lists": self._n,
            "n_decisive": self._decisive, "total": self._total, "squares": self._squares, "evidence": self._evidence,
            "decided_at": self._decided, "winner": self._winner,
        }  # fmt: skip

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> InterleavingTest:
        """Continue a test."""
        expected = set(cls().state())
        if not isinstance(state, dict) or set(state) != expected:
            raise InputError(f"state does not have the keys {', '.join(sorted(expected))}; pass what state() returned.")
        test = cls(state["alpha"], bound=state["bound"], tuned_for=state["tuned_for"])
        counts = {name: state[name] for name in ("n_lists", "n_decisive")}
        check_values(counts, dict.fromkeys(counts, integer(0)))
        sums = [state[name] for name in ("total", "squares", "evidence")]
        n, decisive, decided, winner = *counts.values(), state["decided_at"], state["winner"]
        is_valid = all(isinstance(item, float | int) and isfinite(item) for item in sums) and (
            abs(sums[0]) <= decisive <= n and 0 <= sums[1] <= decisive and (decided is None) == (winner is None)
        )
        if not is_valid or winner not in (None, "A", "B"):
            raise InputError("the sums of state contradict its counts; pass what state() returned.")
        test._n, test._decisive, test._decided, test._winner = n, decisive, decided, winner
        test._total, test._squares, test._evidence = map(float, sums)
        return test

    @property
    def _rho(self) -> float:
        """ρ, for which the interval is about narrowest at v = tuned_for (Howard et al., 2021, section 3.5)."""
        spent = 2.0 * log(2.0 / self.alpha)
        return self.tuned_for / (spent + log(1.0 + spent))

    @property
    def _threshold(self) -> float:
        return log(2.0 / self.alpha)


def log_mixture(s: ArrayLike, v: ArrayLike, rho: float) -> Floats:
    """Return log m(s, v); −∞ where s + v + ρ ≤ 0, which is below its value."""
    from scipy.special import gammainc, gammaln

    sums, squares = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(v, np.float64))
    a, x = squares + rho, sums + squares + rho
    with np.errstate(divide="ignore", invalid="ignore"):
        result = sums + squares + gammaln(a) + np.log(gammainc(a, x)) - a * np.log(x)
    normaliser = float(gammaln(rho) + np.log(gammainc(rho, rho)) - rho * np.log(rho))
    return np.asarray(np.where(x > 0.0, result, -np.inf) - normaliser, np.float64)


def _margin(v: float, rho: float, threshold: float) -> float:
    """Return u(v), the sum at which log m reaches the threshold."""
    from scipy.optimize import brentq

    high = 1.0
    while log_mixture(high, v, rho) < threshold:
        high *= 2.0
    return float(brentq(lambda s: float(log_mixture(s, v, rho)) - threshold, 0.0, high, xtol=1e-12, rtol=1e-14))
