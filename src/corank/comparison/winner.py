"""
Recommend the method with the best expected result, with the probability that it is better than each other one.

v_qm is the value of method m on query q, out of fold, larger being better. The largest of several means of few queries
is too large on average, and few queries that agree by chance seem certain. Therefore κ pseudo-queries join the n judged
ones. On them, methods differ by b_m, their result on other collections, and differences vary between queries with
standard deviation σ. For normal differences with mean d and variance s², the expected difference is normal with

    mean (n d + κ b) / (n + κ),   variance c² (n s² + κ σ²) / (n + κ)² .

c widens it: the recommended method was selected for its lead, and the model that is fitted to all queries is not one of
those that were evaluated. b, κ, σ and c are learnt from collections by ``python -m experiments compare-advice``, which
shows that stated probabilities hold on collections that are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from corank.comparison.methods import METHODS
from corank.comparison.values import MethodOutcome, Rival
from corank.metrics import PairedTest, compare_runs, parse_metric

Floats = NDArray[np.float64]

PSEUDO = 7.5
"""κ: the weight of other collections, in queries."""

SIZES = (10, 20, 40, 80)
"""Numbers of queries at which `OFFSETS` were measured."""

OFFSETS: dict[str, tuple[float, ...]] = {
    "columns": (-0.0500, -0.0500, -0.0500, -0.0500),
    "rankrls": (0.0021, -0.0002, -0.0099, -0.0023),
    "lcra": (-0.0033, -0.0006, -0.0142, -0.0064),
    "ranking-pursuit": (-0.0110, -0.0138, -0.0268, -0.0103),
    "rankrls-gaussian": (0.0052, 0.0000, 0.0008, 0.0023),
    "lightgbm": (-0.0168, 0.0002, 0.0000, 0.0000),
    "lightgbm-tuned": (-0.0185, 0.0055, 0.0000, 0.0029),
    "auto": (0.0208, 0.0167, 0.0088, 0.0147),
}
"""b at each of `SIZES`: nDCG@10 minus that of the median learnt method."""

SPREAD = 0.129
"""σ: standard deviation, between queries, of the difference of two methods."""

INFLATION = 1.75
"""c: factor of all deviations."""

SURE, LIKELY = 0.95, 0.8
"""Probabilities from which a difference counts as settled, and below which the cheaper method is as good a choice."""

MARGIN = 0.005
"""Margin of practical equivalence: a smaller lead does not justify a more complex method."""

_LIKE = {
    "ranksvm": "rankrls", "spd": "rankrls", "crr": "rankrls", "view-rankrls": "rankrls", "lambdarank": "rankrls",
    "co-rankrls": "lcra", "co-ranking-pursuit": "ranking-pursuit", "ranksvm-gaussian": "rankrls-gaussian",
    "ordinal-gp": "rankrls-gaussian", "preference-gp": "rankrls-gaussian", "lambdarank-trees": "lightgbm",
}  # fmt: skip
"""Methods that were not measured, and the similar one whose offset they take."""

RULE = (
    "The recommended method has the best expected result: the mean over the judged queries, out of fold, combined with "
    f"results on other collections, which count as {PSEUDO:g} queries. A simpler method is preferred only if the lead "
    f"of the best is below {MARGIN:g} with probability {SURE:g} or more. If the probability that it is better than a "
    f"cheaper method is below {LIKELY:g}, and its expected lead below {MARGIN:g}, take the cheaper one. A random order "
    "is never recommended."
)

RANDOM = METHODS["random"].name

# metrics without an upper bound, where MARGIN is a share of the best mean and other collections say nothing
_UNBOUNDED = ("DCG", "MSE", "MAE")
# rivals that the verdict lists, and the number of queries below which it asks for more
_LISTED, _FEW = 3, 10
_MAX_NEEDED = 10**6


def offsets_at(n: int) -> dict[str, float]:
    """Return b of each known method for n judged queries, linear in log n between `SIZES`."""
    result = {name: float(np.interp(math.log(max(n, 1)), np.log(SIZES), of)) for name, of in OFFSETS.items()}
    return {**result, **{name: result[other] for name, other in _LIKE.items()}}


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected results of methods."""

    names: tuple[str, ...]
    values: Floats  # of each judged query, shape (n_queries, n_methods)
    offsets: Floats  # b, with mean 0
    pseudo: float = PSEUDO  # κ; 0 for no prior
    spread: float = SPREAD
    inflation: float = INFLATION

    @classmethod
    def of(cls, values: Mapping[str, Floats], offsets: Mapping[str, float], *prior: float) -> Expectation:
        """Take the values of the queries that all methods have, and the offsets of methods; 0 if they have none."""
        V = np.column_stack(list(values.values()))
        b = np.array([offsets.get(name, 0.0) for name in values])
        return cls(tuple(values), V[~np.isnan(V).any(axis=1)], b - b.mean(), *prior)

    @property
    def means(self) -> Floats:
        """Expected results."""
        n, k = len(self.values), self.pseudo
        return np.asarray((n * self.values.mean(axis=0) + k * (self.values.mean() + self.offsets)) / (n + k))

    def difference(self, first: str, second: str) -> float:
        """Return the expected lead of the first method over the second."""
        means = self.means
        return float(means[self.names.index(first)] - means[self.names.index(second)])

    def p_above(self, first: str, second: str, margin: float = 0.0) -> float:
        """Return the probability that the first method leads by more than a margin; ties count half."""
        n, k = len(self.values), self.pseudo
        s2 = float((self.values[:, self.names.index(first)] - self.values[:, self.names.index(second)]).var())
        sd = self.inflation * math.sqrt(n * s2 + k * self.spread**2) / (n + k)
        lead = self.difference(first, second) - margin
        return NormalDist().cdf(lead / sd) if sd > 0.0 else 0.5 * (1.0 + float(np.sign(lead)))

    def p_best(self, rng: np.random.Generator, n_draws: int = 4000) -> Floats:
        """Return the probability that each method is the best, by draws of the expected results."""
        n, k = len(self.values), self.pseudo
        draws = rng.standard_normal((n_draws, n)) @ (self.values - self.values.mean(axis=0))
        draws += math.sqrt(k / 2.0) * self.spread * rng.standard_normal((n_draws, len(self.names)))
        results = self.means + self.inflation * draws / (n + k)
        is_best = results >= results.max(axis=1, keepdims=True)
        return np.asarray((is_best / is_best.sum(axis=1, keepdims=True)).mean(axis=0))

    def n_needed(self, first: str, second: str) -> int | None:
        """
        Return how many judged queries would make a lead of the first method probable (`SURE`).

        Mean d and variance s² of the paired difference are assumed to stay as they are: the largest root N of
        (N d + κ b)² = c² z² (N s² + κ σ²), or n + 1 if it is smaller. Returns: None if the first does not lead on the
        judged queries, or if N is above a million.
        """
        a, b = (self.names.index(name) for name in (first, second))
        differences = self.values[:, a] - self.values[:, b]
        n, d = len(differences), float(differences.mean())
        if d <= 0.0 or n < 2:
            return None
        prior, k = self.pseudo * float(self.offsets[a] - self.offsets[b]), self.pseudo
        cz = (self.inflation * NormalDist().inv_cdf(SURE)) ** 2
        half = d * prior - 0.5 * cz * float(differences.var())
        root = (-half + math.sqrt(max(half**2 - d**2 * (prior**2 - cz * k * self.spread**2), 0.0))) / d**2
        return None if root > _MAX_NEEDED else max(math.ceil(root), n + 1)


@dataclass(frozen=True)
class WinnerChoice:
    """The winner, its rivals and the tests, as in `corank.comparison.Study`; all empty if no method is complete."""

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
    best, simplest = max(real, key=lambda element: quality(element, metric)), real[0]
    if len(complete) == 1:
        return WinnerChoice(
            (), best.name, best.name, best.name, f"{best.title}: {_value(best, metric)}; no other method finished."
        )
    result = {entry.name: entry.evaluation for entry in complete.values() if entry.evaluation is not None}
    tests = compare_runs(result, metric, base=best.name, random_state=np.random.default_rng([seed, 1]), level=level)
    measure = parse_metric(metric).measure
    sign = 1.0 if measure.larger_is_better else -1.0
    values = {name: sign * entry[metric].values for name, entry in result.items()}
    is_unbounded = measure.name in _UNBOUNDED
    margin = MARGIN * (abs(result[best.name][metric].mean) if is_unbounded else 1.0)
    pseudo = 0.0 if is_unbounded else PSEUDO
    offsets = _offsets(real, result[best.name][metric].n_used)
    winner, leader, expected = recommend({entry.name: values[entry.name] for entry in real}, margin, offsets, pseudo)
    rivals = sorted(
        (
            Rival(
                name, expected.difference(winner, name), expected.p_above(winner, name), expected.n_needed(winner, name)
            )
            for name in expected.names
            if name != winner
        ),
        key=lambda rival: rival.p_better,
    )
    text = _sentence(complete, winner, leader, rivals, expected, margin, metric, unit)
    p_random = 1.0
    if RANDOM in result:
        pair = {name: values[name] for name in (winner, RANDOM)}
        p_random = Expectation.of(pair, {}, pseudo).p_above(winner, RANDOM)
    if p_random < SURE:
        text += f" It is better than a random order with probability {p_random:.2f} only."
    is_open = any(rival.p_better < SURE for rival in rivals)
    if p_random < SURE or (is_open and len(expected.values) < _FEW):
        text += f" Judge more {unit if unit == 'queries' else 'rows'}."
    return WinnerChoice(tuple(tests), best.name, simplest.name, winner, text, tuple(rivals))


def recommend(
    values: Mapping[str, Floats],
    margin: float = MARGIN,
    offsets: Mapping[str, float] | None = None,
    *prior: float,
) -> tuple[str, str, Expectation]:
    """Apply the rule to values of methods, the simplest first: return the winner, and the best expected method."""
    n = max(int(np.count_nonzero(~np.isnan(value))) for value in values.values())
    expected = Expectation.of(values, offsets_at(n) if offsets is None else offsets, *prior)
    leader = expected.names[int(np.argmax(expected.means))]
    simple_enough = (
        name for name in expected.names if name == leader or expected.p_above(leader, name, margin) <= 1.0 - SURE
    )
    return next(simple_enough), leader, expected


def _offsets(outcomes: Sequence[MethodOutcome], n: int) -> dict[str, float]:
    """Return the results of methods on other collections; not of a user's estimators, nor of prior columns."""
    return {
        outcome.name: offset
        for name, offset in offsets_at(n).items()
        for outcome in outcomes
        if outcome.name == name
        and outcome.tuning == METHODS[name].tuning
        and (name != "columns" or outcome.title == "mean of all columns")
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
    title, n = outcomes[winner].title, len(expected.values)
    text = f"{title} is recommended: {_value(outcomes[winner], metric)}"
    if winner == leader:
        text += f", the best expected result of {len(rivals) + 1} methods."
    else:
        below = 1.0 - expected.p_above(leader, winner, margin)
        text += (
            f". {outcomes[leader].title} is expected to be better by {expected.difference(leader, winner):.4f}, which "
            f"is less than {margin:.2g} with probability {below:.2f}; {title} is simpler."
        )
    open_rivals = [rival for rival in rivals if rival.p_better < SURE]
    if not rivals:
        return text
    if not open_rivals:
        return f"{text} It is better than every other method with probability {SURE:g} or more ({n} {unit})."
    listed = "; ".join(f"{outcomes[item.name].title} ({item.p_better:.2f})" for item in open_rivals[:_LISTED])
    more = f"; and {len(open_rivals) - _LISTED} more" if len(open_rivals) > _LISTED else ""
    text += f" {n} {unit} do not settle it. The probability that it is better is below {SURE:g} against {listed}{more}."
    cheap = (
        item.name
        for item in open_rivals
        if item.p_better < LIKELY
        and item.difference < margin
        and outcomes[item.name].fit_seconds < outcomes[winner].fit_seconds
    )
    if cheaper := min(cheap, key=lambda name: outcomes[name].fit_seconds, default=""):
        text += f" {outcomes[cheaper].title} is cheaper and as good a choice."
    far = next((item for item in open_rivals if abs(item.difference) >= margin and item.n_needed is not None), None)
    if n >= _FEW and far is not None:
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
