"""
Recommend the method with the best expected result, with the probability that it is better than each other one.

v_qm is the value of method m on query q, out of fold, larger being better. The Bayesian bootstrap (Rubin, 1981) draws
weights w ~ Dirichlet(1, ..., 1) of the n queries; Σ_q w_q v_qm is a draw of the expected value of m. All methods share
w, so differences are paired by query. The largest of several means of few queries is too large on average, and few
queries that agree by chance seem certain. Therefore κ pseudo-queries join the judged ones. On them, methods differ by
b_m, their result on other collections, and differences vary between queries with standard deviation σ:

    μ_m = λ Σ_q w_q v_qm + (1 − λ)(v̿ + b_m + ε_m),    λ = n / (n + κ),    ε_m ~ N(0, σ² / 2κ),

where v̿ is the mean of all methods and queries. For normal differences with mean d̄ and variance s² this is the posterior
of a conjugate model: mean (n d̄ + κ b) / (n + κ), variance (n s² + κ σ²) / (n + κ)². Deviations of μ from its mean are
multiplied by c: the recommended method was selected for its lead, and the model that is fitted to all queries is not
one of those that were evaluated. c was chosen so that stated probabilities hold on collections at hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.comparison.methods import METHODS
from corank.comparison.values import MethodOutcome, Rival
from corank.metrics import PairedTest, compare_runs, parse_metric

Floats = NDArray[np.float64]

PSEUDO = 10.0
"""κ: the weight of other collections, in queries. Chosen by ``python -m experiments compare-advice``."""

SIZES = (10, 20, 40, 80)
"""Numbers of queries at which `OFFSETS` were measured."""

OFFSETS: dict[str, tuple[float, float, float, float]] = {
    "columns": (-0.0500, -0.0500, -0.0500, -0.0500),
    "rankrls": (0.0018, 0.0034, 0.0014, -0.0001),
    "lcra": (0.0017, -0.0027, -0.0047, -0.0085),
    "ranking-pursuit": (-0.0126, -0.0105, -0.0089, -0.0047),
    "rankrls-gaussian": (0.0087, 0.0007, 0.0126, 0.0204),
    "lightgbm": (-0.0114, -0.0041, -0.0017, 0.0372),
}
"""b at each of `SIZES`: nDCG@10 minus that of the median learnt method, on five collections, by the same command."""

SPREAD = 0.14
"""σ: standard deviation, between queries, of the difference of two methods, by the same command."""

INFLATION = 2.0
"""c: factor of all deviations; chosen on 20 collections, see docs/experiments/compare-advice.md."""

SURE = 0.95
"""Probability from which a difference counts as settled."""

N_DRAWS = 4000

# normal quantile of `SURE`
_Z = 1.6449

_MOST = 10**6


_LIKE = {
    "ranksvm": "rankrls", "spd": "rankrls", "crr": "rankrls", "view-rankrls": "rankrls", "lambdarank": "rankrls",
    "co-rankrls": "lcra", "co-ranking-pursuit": "ranking-pursuit", "ranksvm-gaussian": "rankrls-gaussian",
    "ordinal-gp": "rankrls-gaussian", "preference-gp": "rankrls-gaussian", "lambdarank-trees": "lightgbm",
}  # fmt: skip
"""Methods that were not measured, and the similar one whose offset they take."""


def offsets_at(n: int) -> dict[str, float]:
    """Return b of each known method for n judged queries, linear in log n between `SIZES`."""
    result = {name: float(np.interp(math.log(max(n, 1)), np.log(SIZES), of)) for name, of in OFFSETS.items()}
    return {**result, **{name: result[other] for name, other in _LIKE.items()}}


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected results of methods."""

    names: tuple[str, ...]  # the methods
    means: Floats  # μ of each, shape (n_methods,)
    draws: Floats  # from the distribution of the expected values, shape (n_draws, n_methods)
    values: Floats  # of each judged query, shape (n_queries, n_methods)
    offsets: Floats  # b, with mean 0
    pseudo: float  # κ; 0 for no prior

    @classmethod
    def of(
        cls,
        values: Mapping[str, Floats],
        offsets: Mapping[str, float],
        rng: np.random.Generator,
        pseudo: float = PSEUDO,
    ) -> Expectation:
        """Compute the distribution of the expected values."""
        names = tuple(values)
        V = np.column_stack([values[name] for name in names])
        V = V[~np.isnan(V).any(axis=1)]
        n = len(V)
        b = np.array([offsets.get(name, 0.0) for name in names])
        b -= b.mean()
        rate = n / (n + pseudo)
        prior = V.mean() + b
        draws = rate * (rng.dirichlet(np.ones(n), N_DRAWS) @ V)
        if pseudo > 0.0:
            noise = SPREAD / math.sqrt(2.0 * pseudo) * rng.standard_normal((N_DRAWS, len(names)))
            draws += (1.0 - rate) * (prior + noise)
        means = rate * V.mean(axis=0) + (1.0 - rate) * prior
        return cls(names, means, means + INFLATION * (draws - means), V, b, pseudo)

    def difference(self, first: str, second: str) -> float:
        """Return the expected lead of the first method over the second."""
        a, b = (self.names.index(name) for name in (first, second))
        return float(self.means[a] - self.means[b])

    def p_above(self, first: str, second: str, margin: float = 0.0) -> float:
        """Return the probability that the first method leads by more than a margin; ties count half."""
        a, b = (self.names.index(name) for name in (first, second))
        lead = self.draws[:, a] - self.draws[:, b] - margin
        return float(np.mean(lead > 0.0) + 0.5 * np.mean(lead == 0.0))

    def n_needed(self, first: str, second: str) -> int | None:
        """
        Return how many judged queries would make a lead of the first method probable (`SURE`).

        Mean and standard deviation s of the paired difference are assumed to stay as they are: the smallest N above n
        with (N d̄ + κ b) / √(N s² + κ σ²) ≥ c z, by the normal approximation. Returns: None if the first does not lead
        on the judged queries, or if N is above a million.
        """
        a, b = (self.names.index(name) for name in (first, second))
        d = self.values[:, a] - self.values[:, b]
        if d.mean() <= 0.0 or len(d) < 2:
            return None
        mean, s2 = float(d.mean()), float(d.var(ddof=1))
        prior, noise = self.pseudo * float(self.offsets[a] - self.offsets[b]), self.pseudo * SPREAD**2

        def is_enough(n: int) -> bool:
            return n * mean + prior >= INFLATION * _Z * math.sqrt(n * s2 + noise)

        low, high = len(d), _MOST  # the judged ones were not enough
        if not is_enough(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high


MARGIN = 0.005
"""Margin of practical equivalence: a smaller lead does not justify a more complex method."""

RULE = (
    "The recommended method has the best expected result. The expected result is the mean over the judged queries, out "
    f"of fold, combined with results on other collections, which count as {PSEUDO:g} queries. A simpler method is "
    f"preferred only if the lead of the best is below {MARGIN:g} with probability {SURE:g} or more. Probabilities "
    "come from the Bayesian bootstrap over queries. A random order is never recommended."
)

RANDOM = METHODS["random"].name

# metrics without an upper bound, where MARGIN is a share of the best mean and other collections say nothing
_UNBOUNDED = ("DCG", "MSE", "MAE")

# rivals that the verdict lists, and the number of queries below which it asks for more
_LISTED, _FEW = 3, 10


@dataclass(frozen=True)
class WinnerChoice:
    """
    The winner, its rivals and the tests; see the attributes of the same names of `corank.comparison.Study`.

    All are empty if no method is complete.
    """

    tests: tuple[PairedTest, ...] = ()
    best: str = ""
    simplest: str = ""
    winner: str = ""
    sentence: str = "No method finished all folds."
    rivals: tuple[Rival, ...] = ()


def choose_winner(
    outcomes: Sequence[MethodOutcome], metric: str, level: float, seed: int, unit: str = "queries"
) -> WinnerChoice:
    """Choose a winner."""
    complete = {outcome.name: outcome for outcome in outcomes if outcome.evaluation is not None}
    real = sorted((entry for entry in complete.values() if entry.name != RANDOM), key=lambda item: item.complexity)
    if not real:
        return WinnerChoice()
    best = max(real, key=lambda element: quality(element, metric))
    simplest = real[0]
    if len(complete) == 1:
        return WinnerChoice(
            (), best.name, best.name, best.name, f"{best.title}: {_value(best, metric)}; no other method finished."
        )
    result = {entry.name: entry.evaluation for entry in complete.values() if entry.evaluation is not None}
    tests = compare_runs(result, metric, base=best.name, random_state=np.random.default_rng([seed, 1]), level=level)
    if simplest is not best and len(result) > 2:
        # the first family has already tested it against the best
        others = {name: entry for name, entry in result.items() if name != best.name}
        rng = np.random.default_rng([seed, 3])
        tests += compare_runs(others, metric, base=simplest.name, random_state=rng, level=level)
    sign = 1.0 if parse_metric(metric).measure.larger_is_better else -1.0
    values = {entry.name: sign * result[entry.name][metric].values for entry in real}
    is_unbounded = parse_metric(metric).measure.name in _UNBOUNDED
    margin = MARGIN * (abs(result[best.name][metric].mean) if is_unbounded else 1.0)
    pseudo = 0.0 if is_unbounded else PSEUDO
    offsets = _offsets(real, result[best.name][metric].n_used)
    winner, leader, expected = recommend(values, np.random.default_rng([seed, 4]), margin, offsets, pseudo)
    rivals = tuple(
        Rival(
            name,
            expected.difference(winner, name),
            expected.p_above(winner, name),
            expected.p_above(winner, name, -margin) - expected.p_above(winner, name, margin),
            expected.n_needed(winner, name),
        )
        for name in values
        if name != winner
    )
    rivals = tuple(sorted(rivals, key=lambda one: one.p_better))
    text = _sentence(complete, winner, leader, rivals, expected, margin, metric, unit)
    p_random = 1.0
    if RANDOM in result:
        pair = {name: sign * result[name][metric].values for name in (winner, RANDOM)}
        p_random = Expectation.of(pair, {}, np.random.default_rng([seed, 5]), pseudo).p_above(winner, RANDOM)
    if p_random < SURE:
        text += f" It is better than a random order with probability {p_random:.2f} only."
    is_open = any(rival.p_better < SURE for rival in rivals)
    if p_random < SURE or (is_open and len(expected.values) < _FEW):
        text += f" Judge more {unit if unit == 'queries' else 'rows'}."
    return WinnerChoice(tuple(tests), best.name, simplest.name, winner, text, rivals)


def recommend(
    values: Mapping[str, Floats],
    rng: np.random.Generator,
    margin: float = MARGIN,
    offsets: Mapping[str, float] | None = None,
    pseudo: float = PSEUDO,
) -> tuple[str, str, Expectation]:
    """Apply the rule."""
    n = max(int(np.count_nonzero(~np.isnan(value))) for value in values.values())
    expected = Expectation.of(values, offsets_at(n) if offsets is None else offsets, rng, pseudo)
    leader = expected.names[int(np.argmax(expected.means))]
    simple_enough = (
        name for name in expected.names if name == leader or expected.p_above(leader, name, margin) <= 1.0 - SURE
    )
    return next(simple_enough), leader, expected


def _offsets(outcomes: Sequence[MethodOutcome], n: int) -> dict[str, float]:
    """Return the results of methods on other collections; not of a user's estimators, nor of prior columns."""
    known = offsets_at(n)
    named = [
        outcome for outcome in outcomes if outcome.name in known and outcome.tuning == METHODS[outcome.name].tuning
    ]
    return {
        item.name: known[item.name] for item in named if item.name != "columns" or item.title == "mean of all columns"
    }


def quality(outcome: MethodOutcome, metric: str) -> float:
    """Return the mean of a metric, negated if smaller is better; −inf without an evaluation."""
    if outcome.evaluation is None or np.isnan(outcome.evaluation[metric].mean):
        return -np.inf
    mean = outcome.evaluation[metric].mean
    return mean if parse_metric(metric).measure.larger_is_better else -mean


def _sentence(
    outcomes: Mapping[str, MethodOutcome],
    winner: str,
    leader: str,
    rivals: Sequence[Rival],
    expected: Expectation,
    margin: float,
    metric: str,
    unit: str,
) -> str:
    """Return the recommendation, how sure it is, and what more judgements would settle."""
    title = outcomes[winner].title
    text = f"{title} is recommended: {_value(outcomes[winner], metric)}"
    if winner == leader:
        text += f", the best expected result of {len(rivals) + 1} methods."
    else:
        below = 1.0 - expected.p_above(leader, winner, margin)
        text += (
            f". {outcomes[leader].title} is expected to be better by {expected.difference(leader, winner):.4f}, which "
            f"is less than {margin:.2g} with probability {below:.2f}; {title} is simpler."
        )
    n = len(expected.values)
    open_ones = [rival for rival in rivals if rival.p_better < SURE]
    if not rivals:
        return text
    if not open_ones:
        return f"{text} It is better than every other method with probability {SURE:g} or more ({n} {unit})."
    listed = "; ".join(f"{outcomes[item.name].title} ({item.p_better:.2f})" for item in open_ones[:_LISTED])
    more = f"; and {len(open_ones) - _LISTED} more" if len(open_ones) > _LISTED else ""
    text += f" {n} {unit} do not settle it. The probability that it is better is below {SURE:g} against {listed}{more}."
    if n < _FEW:
        return text
    near = [item for item in open_ones if abs(item.difference) < margin]
    if near:
        names = "; ".join(outcomes[item.name].title for item in near[:_LISTED])
        text += f" Expected differences below {margin:.2g}, so that the choice matters little: {names}."
    far = next((item for item in open_ones if item not in near and item.n_needed is not None), None)
    if far is not None:
        text += (
            f" About {_rounded(far.n_needed or 0)} {unit} would make its lead over {outcomes[far.name].title} probable "
            f"({SURE:g}), if the difference stays as it is."
        )
    return text


def _value(outcome: MethodOutcome, metric: str) -> str:
    assert outcome.evaluation is not None
    return f"{metric} {outcome.evaluation[metric].mean:.4f} ({outcome.low:.4f} to {outcome.high:.4f})"


def _rounded(n: int) -> str:
    """Write a number with two digits that count."""
    unit = 10 ** max(0, len(str(n)) - 2)
    return f"{-(-n // unit) * unit:,}"
