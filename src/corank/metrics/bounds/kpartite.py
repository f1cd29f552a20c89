"""
Bounds on the k-partite ranking error (Rajaram and Agarwal, Generalization bounds for k-partite ranking, 2005).

R̂ = (1/C) Σ over pairs of rows with grades l < m of (m − l)^power [wrong + ½ tie], C the number of such pairs. Given the
grades, replacing row i of grade l changes R̂ by at most c_i = Σ_{j: grade m ≠ l} |m − l|^power / C, so McDiarmid's
inequality holds with Σ_i c_i² = Σ_l ρ_l C_l² / M in the paper's symbols. The values of the grades count; in the paper
they are 1, ..., k. The cost is O(n log n) for powers 0 and 1, and O(n k) more for other powers and k grades.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from math import inf, log
from textwrap import wrap

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from corank.errors import InputError
from corank.metrics.conventions import CONVENTIONS
from corank.metrics.judgements import Judgements, ratio
from corank.metrics.measures import pair_counts
from corank.parameters import Rules, check_values, integer, number

Floats = NDArray[np.float64]

_WIDTH = 88


@dataclass(frozen=True)
class Bound:
    """An interval that contains an expected error with probability 1 − delta over the draw of the data."""

    name: str  # name of the error
    error: float  # observed error
    low: float  # low, high: ends of the interval, within [0, `worst`]
    high: float
    delta: float  # probability that the expected error is outside the interval
    worst: float  # largest possible expected error
    random: float  # error of a random order, or of equal scores
    parts: tuple[tuple[str, float], ...]  # terms of the bound
    assumptions: tuple[str, ...]  # assumptions, one sentence each

    @classmethod
    def around(
        cls,
        name: str,
        error: float,
        width: float,
        *,
        delta: float,
        worst: float,
        random: float,
        parts: tuple[tuple[str, float], ...],
        assumptions: tuple[str, ...],
    ) -> Bound:
        """Return a symmetric interval, clipped to [0, worst]."""
        low, high = max(0.0, error - width), min(worst, error + width)
        return cls(name, error, low, high, delta, worst, random, (("width", width), *parts), assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether the interval contains every possible error."""
        return self.low <= 0.0 and self.high >= self.worst

    @property
    def verdict(self) -> str:
        """A remark if the bound is vacuous or does not exclude a random order, else ""."""
        if self.vacuous:
            return "vacuous: the interval contains every possible error"
        return "a random order is not excluded" if self.low <= self.random <= self.high else ""

    def __repr__(self) -> str:
        compared = f"a random order has {self.random:.4f}, the worst one {self.worst:.4f}"
        blocks = [
            self._claim(),
            *([f"  {self.verdict}"] if self.verdict else []),
            *_indented("", f"{', '.join(self._listed())}; {compared}"),
            *(line for text in self.assumptions for line in _indented("assumed: ", text)),
        ]
        return "\n".join(blocks)

    def _repr_html_(self) -> str:
        parts = "".join(f"<tr><td>{escape(name)}</td><td>{_number(value)}</td></tr>" for name, value in self.parts)
        assumed = "".join(f"<li>{escape(text)}</li>" for text in self.assumptions)
        verdict = f"<p><strong>{escape(self.verdict)}</strong></p>" if self.verdict else ""
        return f"<div><p>{escape(self._claim())}</p>{verdict}<table>{parts}</table><ul>{assumed}</ul></div>"

    def _claim(self) -> str:
        return (
            f"{self.name} {self.error:.4f}: between {self.low:.4f} and {self.high:.4f} "
            f"with probability {1.0 - self.delta:g}"
        )

    def _listed(self) -> list[str]:
        return [f"{name} {_number(value)}" for name, value in self.parts]


def _number(value: float) -> str:
    return f"{value:d}" if isinstance(value, int) else f"{value:.4f}"


def _indented(first: str, text: str) -> list[str]:
    return wrap(first + text, _WIDTH, initial_indent="  ", subsequent_indent="  " + " " * len(first))


# bisections until doubles no longer change
_HALVINGS = 64


def hoeffding_end(mean: float, n: int, logs: float, towards: float) -> float:
    """
    Return an end of the confidence interval n kl(mean, p) ≤ logs of an expectation (Hoeffding, 1963, Theorem 1).

    kl(a, p) = a ln(a/p) + (1 − a) ln((1 − a)/(1 − p)) ≥ 2(a − p)², which gives the better known width √(logs/(2n)).
    Near 0 and 1 this interval is much narrower. Each side fails with probability at most exp(−logs).
    """
    inside, outside = mean, towards
    for _ in range(_HALVINGS):
        middle = 0.5 * (inside + outside)
        if n * _entropy(mean, middle) <= logs:
            inside = middle
        else:
            outside = middle
    return outside


def _entropy(a: float, p: float) -> float:
    return _share(a, p) + _share(1.0 - a, 1.0 - p)


def _share(a: float, p: float) -> float:
    return 0.0 if a == 0.0 else inf if p == 0.0 else a * log(a / p)


RULES: Rules = {
    "power": number(0),
    "delta": number(0, 1, inside="()"),
    "n_models": integer(1),
    "n_features": integer(1),
}
_CONVENTION = CONVENTIONS["corank"]
# differences of grades in memory at a time, for powers other than 0 and 1
_BLOCK = 4_000_000


def kpartite_interval(
    scores: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    power: float = 0.0,
    delta: float = 0.05,
    n_models: int = 1,
) -> Bound:
    """
    Return an interval for the expected k-partite error of a ranker, from rows that were not used for training.

    Without `qid`, rows are assumed to be independent (Theorem 1 of Rajaram and Agarwal; with two grades it is the
    interval of the AUC of Agarwal et al., √(ln(2/delta)/(2ρ(1 − ρ)n)) to either side). With `qid`, queries are: rows of
    a query depend on each other, and only the errors of different queries are independent. Hoeffding's inequality
    bounds the expectation of their mean over queries with a pair: its half-width is at most
    g^power √(ln(2 n_models/delta)/(2 n_queries)), g the range of the grades, and less if the error is small.

    Measured: it held in all of 200 resamples of MQ2008 and Boston housing, and was 3.1 to 13.6 times as wide as a
    bootstrap interval, which held in 92 % to 98 %.
    """
    check_values({"power": power, "delta": delta, "n_models": n_models}, RULES)
    usage = "These rows were not used for training."
    if n_models > 1:
        usage = f"These rows chose among {n_models} models and were not used for training any of them."
    return _of_models(judged_rows(scores, y, qid), qid is not None, power, delta, n_models, usage)


def finite_class(
    scores: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    n_models: int,
    power: float = 0.0,
    delta: float = 0.05,
) -> Bound:
    """
    Bound the expected k-partite error of a ranker that was chosen among finitely many by these rows (Theorem 1).

    Not measured on its own: the interval is that of `kpartite_interval`, under other assumptions.
    """
    check_values({"power": power, "delta": delta, "n_models": n_models}, RULES)
    usage = f"The ranker is one of {n_models} that were fixed before the rows were seen."
    return _of_models(judged_rows(scores, y, qid), qid is not None, power, delta, n_models, usage)


def linear_class(scores: ArrayLike, y: ArrayLike, *, n_features: int, power: float = 0.0, delta: float = 0.05) -> Bound:
    """
    Bound the expected k-partite error of a linear ranker that was trained on these rows (Theorems 2 and 3).

    The half-width is √(8 (ln r + ln(4/delta)) Σ_i c_i²), r the number of orders that linear rankers can give to twice
    as many rows. Each order is a face of an arrangement of N = Σ_{l<m} 2n_l 2n_m hyperplanes, hence
    r ≤ Σ_{j ≤ d} C(N, j) 2^j for d columns. The paper's Π_{l<m} (2e n_l n_m/d)^d is larger for more than two grades,
    and falls below 1, which is not a bound, if n_l n_m is much smaller than d.

    Measured: it was vacuous in all of 200 resamples of 100 and of 400 rows of Boston housing (13 columns).
    """
    check_values({"power": power, "delta": delta, "n_features": n_features}, RULES)
    judged = judged_rows(scores, y, None)
    influence, error = _Influence.of(judged, power), errors_of(judged, power)[0]
    # the theorem counts orders of twice the rows of each grade
    log_r = log_orders(4 * influence.n_pairs, n_features)
    return Bound.around(
        error_name(power), error, float(np.sqrt(8.0 * (log_r + np.log(4.0 / delta)) * influence.squares)),
        delta=delta, worst=influence.worst, random=0.5 * influence.worst,
        parts=(
            ("rows", influence.n_rows), ("grades", influence.n_grades), ("columns", int(n_features)), ("ln r", log_r),
        ),
        assumptions=("The ranker is linear in columns that were chosen before the rows were seen.", *_of_rows(judged)),
    )  # fmt: skip


def log_orders(n_pairs: int, n_features: int) -> float:
    """Bound the logarithm of the number of orders of N pairs by linear rankers: ln Σ_{j ≤ d} C(N, j) 2^j."""
    j = np.arange(min(n_features, n_pairs) + 1)
    return float(logsumexp(gammaln(n_pairs + 1) - gammaln(j + 1) - gammaln(n_pairs - j + 1) + j * np.log(2.0)))


def _of_models(judged: Judgements, by_query: bool, power: float, delta: float, n_models: int, usage: str) -> Bound:
    """Apply Theorem 1 to rows or Hoeffding's inequality to queries, with a union bound over models."""
    logs, models = float(np.log(2.0 * n_models / delta)), ("models", int(n_models))
    errors = errors_of(judged, power)
    if by_query:
        return _of_queries(judged, errors, power, delta, logs, (models,), usage)
    influence = _Influence.of(judged, power)
    return Bound.around(
        error_name(power), errors[0], float(np.sqrt(0.5 * logs * influence.squares)), delta=delta,
        worst=influence.worst, random=0.5 * influence.worst,
        parts=(("rows", influence.n_rows), ("grades", influence.n_grades), models),
        assumptions=(usage, *_of_rows(judged)),
    )  # fmt: skip


def _of_queries(
    judged: Judgements,
    errors: Floats,
    power: float,
    delta: float,
    logs: float,
    parts: tuple[tuple[str, float], ...],
    usage: str,
) -> Bound:
    used, lowest, highest = ~np.isnan(errors), float(judged.grades.min()), float(judged.grades.max())
    n_queries, worst, error = int(used.sum()), (highest - lowest) ** power, float(errors[used].mean())
    low, high = (worst * hoeffding_end(min(error / worst, 1.0), n_queries, logs, end) for end in (0.0, 1.0))
    upside_down = kpartite_errors(replace(judged, scores=-judged.grades), power)
    return Bound(
        error_name(power), error, low, high, delta, worst, 0.5 * float(upside_down[used].mean()),
        parts=(("queries", n_queries), *parts),
        assumptions=(
            usage,
            "Queries were drawn independently; rows within a query may depend on each other.",
            f"Queries without a pair do not count; {n_queries} of {len(errors)} have one.",
            *((f"All grades are between {lowest:g} and {highest:g}.",) if power > 0.0 else ()),
            *unjudged_assumption(judged),
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class _Influence:
    """How much single independent rows can change the error."""

    n_rows: int  # n_rows, n_grades, n_pairs: number of judged rows, of grades, and of pairs of different grade (C)
    n_grades: int
    n_pairs: int
    squares: float  # σ_i c_i²
    worst: float  # error if every pair is ordered wrongly

    @classmethod
    def of(cls, judged: Judgements, power: float) -> _Influence:
        levels, counts = np.unique(judged.grades, return_counts=True)
        n_rows = int(counts.sum())
        n_pairs = (n_rows**2 - int((counts.astype(object) ** 2).sum())) // 2
        moves = _moves(levels - levels[0], counts, power) / n_pairs
        return cls(n_rows, len(levels), n_pairs, float(counts @ moves**2), 0.5 * float(counts @ moves))


def _moves(levels: Floats, counts: NDArray[np.int64], power: float) -> Floats:
    """Return Σ_{m ≠ l} n_m |m − l|^power for each level l, ascending."""
    if power == 0.0:
        return np.asarray(counts.sum() - counts, dtype=np.float64)
    if power == 1.0:
        below, total = np.cumsum(counts), np.cumsum(counts * levels)
        return np.asarray(levels * (2.0 * below - below[-1]) + total[-1] - 2.0 * total)
    step = max(1, _BLOCK // len(levels))
    blocks = [levels[index : index + step, None] for index in range(0, len(levels), step)]
    return np.concatenate([np.abs(block - levels) ** power @ counts for block in blocks])


def judged_rows(scores: ArrayLike, y: ArrayLike, qid: ArrayLike | None) -> Judgements:
    """Return the judged rows, with scores and grades checked."""
    return Judgements.of(y, scores, qid, _CONVENTION)


def kpartite_errors(judged: Judgements, power: float) -> Floats:
    """Return the k-partite error of each query, NaN without a pair."""
    loss, pairs, _ = pair_counts(judged, judged.ranked.grades, power)
    return ratio(loss, pairs)


def errors_of(judged: Judgements, power: float) -> Floats:
    """Return the errors; raise `InputError` if no query has a pair, or if the power of a difference overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = kpartite_errors(judged, power)
        largest = np.ptp(judged.grades) ** power if len(judged.grades) else 0.0
    if np.isnan(errors).all():
        raise InputError(
            f"no two of the {len(judged.grades)} judged rows of a query have different grades, so there is no pair to "
            "order; pass rows of at least two grades."
        )
    if not np.isfinite(largest * len(judged.grades)):
        raise InputError(f"differences of grades of up to {np.ptp(judged.grades):g} overflow; pass smaller grades.")
    return errors


def _of_rows(judged: Judgements) -> tuple[str, ...]:
    return (
        "Rows were drawn independently, unlike the rows of one search result.",
        "Future rows have the same shares of grades.",
        *unjudged_assumption(judged),
    )


def unjudged_assumption(judged: Judgements) -> tuple[str, ...]:
    """Return the assumption about unjudged rows, if there are any."""
    n = judged.n_unjudged_rows
    return (f"The {n} unjudged rows, which are left out, have the same distribution as the others.",) if n else ()


def error_name(power: float) -> str:
    """Return the name of the error."""
    return f"k-partite error (power {power:g})" if power else "disagreement error"
