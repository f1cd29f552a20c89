"""
Intervals for the expected k-partite error by weighted resampling with one more observation, the worst possible one.

Queries. Let e_1, ..., e_n be the errors of independent queries, each between 0 and E. With w ~ Dirichlet(1, ..., 1) of
n + 1 weights, the upper end is the 1 − delta/2 quantile of Σ_i w_i e_i + w_0 E, and the lower end the delta/2 quantile
of Σ_i w_i e_i (Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable, 2005; Learned-Miller and Thomas, A new confidence interval for the mean of a bounded random variable, 2019).
For errors of 0 and E only, this is the exact interval of Clopper and Pearson. That it holds for every distribution is a
conjecture: no counterexample is known, and no proof.

Rows. With weights w_i of independent rows, W_l their sum over grade l, and f the scores,

    R(w) = Σ_{l<m} (m − l)^power Σ_{i: l, j: m} w_i w_j ([f_i > f_j] + ½ [f_i = f_j]) / Σ_{l<m} W_l W_m.

The weights are a Dirichlet vector of all rows and one more, which is ordered wrongly against all others (upper end) or
correctly (lower end) and has the grade that is worst for the end. If the shares ρ_l of grades are given, the weights of
each grade are then scaled to the sum ρ_l. If not, the interval is for the error under the unknown true shares, which
Rajaram and Agarwal (2005) leave as an open problem. For rows the interval is an approximation for large samples,
checked by simulation only. A draw costs O(n k) for k grades.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError
from corank.metrics.bounds.kpartite import (
    RULES,
    Bound,
    error_name,
    errors_of,
    judged_rows,
    kpartite_errors,
    unjudged_assumption,
)
from corank.metrics.judgements import Judgements
from corank.parameters import check_values, rng_of, seed

Floats = NDArray[np.float64]
_TAIL = 200
"""Draws expected beyond each end of the interval."""
_MAX_DRAWS = 4_000_000
_BLOCK = 4_000_000
"""Weights in memory at a time."""
_MAX_GRADES = 100


def resampling_interval(
    scores: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    power: float = 0.0,
    delta: float = 0.05,
    n_models: int = 1,
    shares: str | Mapping[float, float] = "observed",
    random_state: Any = 0,
) -> Bound:
    """
    Return a narrow interval for the expected k-partite error of a ranker, from rows that were not used for training.

    It is 1.3 to 5 times narrower than `kpartite_interval`, which is proved. With `qid`, queries are assumed to be
    independent, otherwise rows are.

    Measured with delta .05: it held in 97.5 % to 99.5 % of 2,000 samples in 21 settings, the bootstrap in 87 % to
    96.5 %.
    """
    given = {"power": power, "delta": delta, "n_models": n_models, "random_state": random_state}
    check_values(given, {**RULES, "random_state": seed})
    judged = judged_rows(scores, y, qid)
    errors = errors_of(judged, power)
    tail, rng = 0.5 * delta / n_models, rng_of(random_state)
    if qid is None:
        return _of_rows(judged, float(errors[0]), power, delta, n_models, _shares(judged, shares), rng)
    if shares != "observed":
        raise InputError("shares is for independent rows, but qid was given; leave out shares, or qid.")
    used = errors[~np.isnan(errors)]
    worst = float(np.ptp(judged.grades)) ** power
    low, high = _ends(len(used), tail, rng, lambda w: _of_errors(w, used, worst))
    upside_down = kpartite_errors(replace(judged, scores=-judged.grades), power)
    return Bound(
        error_name(power), float(used.mean()), low, high, delta, worst,
        0.5 * float(upside_down[~np.isnan(errors)].mean()),
        parts=(("queries", len(used)), ("models", n_models)),
        assumptions=(
            _usage(n_models),
            "Queries were drawn independently; rows within a query may depend on each other.",
            f"Queries without a pair do not count; {len(used)} of {len(errors)} have one.",
            *unjudged_assumption(judged),
            "The interval holds in all known simulations; it is not proved.",
        ),
    )  # fmt: skip


def _usage(n_models: int) -> str:
    if n_models == 1:
        return "These rows were not used for training."
    return f"These rows chose among {n_models} models and were not used for training any of them."


def _ends(n: int, tail: float, rng: np.random.Generator, values: Any) -> tuple[float, float]:
    """Return quantiles of the two values of each vector of n + 1 weights, which are exponential and not normalised."""
    n_draws = ceil(_TAIL / tail)
    if n_draws > _MAX_DRAWS:
        raise InputError(
            f"delta / n_models is {2.0 * tail:g}, which needs {n_draws:,} draws; pass a larger delta or fewer "
            "models, or use kpartite_interval."
        )
    step = max(1, _BLOCK // (n + 1))
    sizes = [min(step, n_draws - index) for index in range(0, n_draws, step)]
    drawn = [values(rng.standard_exponential((size, n + 1))) for size in sizes]
    lows, highs = (np.concatenate(part) for part in zip(*drawn, strict=True))
    return float(np.quantile(lows, tail)), float(np.quantile(highs, 1.0 - tail))


def _of_errors(w: Floats, errors: Floats, worst: float) -> tuple[Floats, Floats]:
    total, sums = w.sum(axis=1), w[:, 1:] @ errors
    return sums / total, (sums + w[:, 0] * worst) / total


def _shares(judged: Judgements, shares: str | Mapping[float, float]) -> Floats | None:
    """Return the share of each grade, ascending; None if they are unknown."""
    grades, counts = np.unique(judged.grades, return_counts=True)
    if len(grades) > _MAX_GRADES:
        raise InputError(
            f"y has {len(grades)} different grades; pass at most {_MAX_GRADES}, for example rounded ones, or qid."
        )
    if isinstance(shares, str):
        if shares not in ("observed", "unknown"):
            raise InputError(f"shares is {shares!r}; pass 'observed', 'unknown' or a dictionary of grade to share.")
        return counts / counts.sum() if shares == "observed" else None
    given = {float(grade): float(share) for grade, share in shares.items()}
    missing = sorted(set(grades.tolist()) ^ set(given))
    if missing or min(given.values()) < 0.0 or abs(sum(given.values()) - 1.0) > 1e-6 or max(given.values()) > 1 - 1e-12:
        raise InputError(
            f"shares has the grades {sorted(given)} with sum {sum(given.values()):g}, y has {grades.tolist()}; pass a "
            "share for each grade of y, with a sum of 1 and at least two above 0."
        )
    return np.array([given[grade] for grade in grades.tolist()])


@dataclass(frozen=True, eq=False)
class _WeightedError:
    """
    R(w) of rows in descending order of scores.

    first, last: for each row, the number of rows that score higher, and of those that score at least as high.
    """

    grade: NDArray[np.int64]  # number of each row's grade
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    costs: Floats  # (k, k): (m − l)^power for grades l < m, else 0

    @classmethod
    def of(cls, judged: Judgements, power: float) -> _WeightedError:
        order = np.argsort(-judged.scores, kind="stable")
        ascending = np.sort(-judged.scores)
        grades, grade = np.unique(judged.grades, return_inverse=True)
        gaps = grades[None, :] - grades[:, None]
        costs = np.where(gaps > 0.0, np.abs(gaps) ** power, 0.0)
        first, last = (np.searchsorted(ascending, ascending, side) for side in ("left", "right"))
        return cls(grade[order], first, last, costs)

    def __call__(self, w: Floats) -> tuple[Floats, Floats]:
        """
        Return L_lm = Σ_{i: l, j: m} w_i w_j loss_ij for all pairs of grades (n_draws, k, k), and W_l (n_draws, k).
        """
        k = len(self.costs)
        of_grade = (self.grade[:, None] == np.arange(k)).astype(np.float64)
        losses = np.empty((len(w), k, k))
        for low in range(k):
            above = np.zeros((len(w), w.shape[1] + 1))
            np.cumsum(w * of_grade[:, low], axis=1, out=above[:, 1:])
            losses[:, low] = (w * (0.5 * (above[:, self.first] + above[:, self.last]))) @ of_grade
        return losses, w @ of_grade


def _of_rows(
    judged: Judgements,
    error: float,
    power: float,
    delta: float,
    n_models: int,
    rho: Floats | None,
    rng: np.random.Generator,
) -> Bound:
    weighted, tail = _WeightedError.of(judged, power), 0.5 * delta / n_models
    counts = np.bincount(weighted.grade, minlength=len(weighted.costs))
    costs, pairs = weighted.costs, (weighted.costs > 0.0).astype(np.float64)

    def ends(w: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest error over the grades g of the further row."""
        losses, masses = weighted(w[:, 1:])
        results = []
        for g in range(len(counts)):
            more = w[:, :1] * (np.arange(len(counts)) == g)
            r = np.ones(masses.shape) if rho is None else rho / (masses + more)
            W = r * masses
            correct = np.einsum("blm,lm,bl,bm->b", losses, costs, r, r)
            wrong = np.einsum("bl,lm,bm->b", r * more, costs + costs.T, W)
            total = np.einsum("bl,lm,bm->b", W + r * more, pairs, W + r * more)
            results.append((correct / total, (correct + wrong) / total))
        lows, highs = zip(*results, strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    low, high = _ends(len(weighted.grade), tail, rng, ends)
    levels = np.unique(judged.grades)
    observed = counts / counts.sum()
    meant = observed if rho is None else rho
    worst = float(meant @ costs @ meant) / float(meant @ pairs @ meant)
    largest = worst if rho is not None else float(np.ptp(levels)) ** power
    sentence = "Future rows come from the distribution of these rows, whose shares of grades are unknown."
    if rho is not None:
        losses, _ = weighted((rho / counts)[weighted.grade][None, :])
        error = float((costs * losses[0]).sum()) / float(rho @ pairs @ rho)
        sentence = "Future rows have the same shares of grades."
        if not np.allclose(rho, observed):
            sentence = "Future rows have the given shares of grades, and within a grade the distribution of these rows."
    return Bound(
        error_name(power), error, low, high, delta, largest, 0.5 * worst,
        parts=(("rows", len(weighted.grade)), ("grades", len(levels)), ("models", n_models)),
        assumptions=(
            _usage(n_models),
            "Rows were drawn independently, unlike the rows of one search result.",
            sentence,
            *unjudged_assumption(judged),
            "The interval is checked by simulation; it is not proved.",
        ),
    )  # fmt: skip
