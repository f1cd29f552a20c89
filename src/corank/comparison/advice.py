"""
Recommend the method with the best expected result, with the probability that it is better than each other one.

x̄ holds the means of the methods over n judged queries, out of fold, larger being better; S is the covariance of their
values between queries, shrunk to that of other collections. The largest of several means of few queries is too large on
average, and what was measured with few queries differs from what the final model does. Methods are therefore assumed to
differ as on one of the collections that were measured before, which has the results θ_i with n_i queries, up to
differences of its own of standard deviation h, which is one of `WIDTHS`. Given i and h, differences have

    mean θ_i + G (x̄ − θ_i),   covariance H − G H,   G = H (H + c² S/n)⁻¹,   H = h² I,

and (i, h) has the prior weight min(n/n_i, n_i/n) times the normal density of x̄ around θ_i with covariance H + c² S/n. A
small h lets other collections decide, a large one the judged queries. A method without results on other collections
takes the mean of the others, with a wide h. θ and c are learnt by ``python -m experiments compare-advice``, which shows
that stated probabilities hold on collections that are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from corank.comparison.methods import METHODS
from corank.comparison.outcomes import MethodOutcome, Rival
from corank.metrics import PairedTest, compare_runs, parse_metric

Floats = NDArray[np.float64]

SURE, LIKELY = 0.95, 0.8
"""Probabilities from which a difference counts as settled, and below which the cheaper method is as good a choice."""

MARGIN = 0.005
"""Margin of practical equivalence: a smaller lead does not justify a more complex method."""

_LIKE = {
    "ranksvm": "rankrls", "spd": "rankrls", "crr": "rankrls", "view-rankrls": "rankrls", "lambdarank": "rankrls",
    "co-rankrls": "lcra", "co-ranking-pursuit": "ranking-pursuit", "ranksvm-gaussian": "rankrls-gaussian",
    "ordinal-gp": "rankrls-gaussian", "preference-gp": "rankrls-gaussian", "lambdarank-trees": "lightgbm",
}  # fmt: skip
"""Methods that were not measured, and the similar one whose results they take."""

RULE = (
    "The recommended method has the best expected result: the mean over the judged queries, out of fold, combined with "
    f"results on other collections. A simpler method is preferred only if the best is better by less than {MARGIN:g} "
    f"with probability {SURE:g}. A cheaper method is named if the recommended one is better with a probability below "
    f"{LIKELY:g} and by less than {MARGIN:g}. A random order is never recommended."
)

RANDOM = METHODS["random"].name

# metrics without an upper bound: values are divided by the best mean, and other collections say nothing
_UNBOUNDED = ("DCG", "MSE", "MAE")
WIDTHS = (0.005, 0.01, 0.02, 0.04, 0.08)
"""h: how far results differ from those on a similar collection; all are equally probable."""

# standard deviation of results between collections of a method that was not measured
_WIDE = 0.06
# queries that the covariance of other collections counts as
_PSEUDO = 10
# rivals that the verdict lists, and the number of queries below which it asks for more
_MAX_LISTED, _MIN_QUERIES = 3, 10
_MAX_NEEDED = 10**6


@dataclass(frozen=True, eq=False)
class Prior:
    """Results of methods on other collections."""

    methods: tuple[str, ...]
    sizes: Floats  # n_i: number of judged queries of each row
    results: Floats  # θ: mean results on further queries, shape (n_rows, n_methods)
    spread: float  # standard deviation, between queries, of the difference of two methods
    inflation: float  # c

    @classmethod
    @cache
    def read(cls) -> Prior:
        """Return the results that corank was measured with."""
        record = json.loads(Path(__file__).with_name("advice.json").read_text(encoding="utf-8"))
        sizes, results = (np.array(record[name], dtype=np.float64) for name in ("sizes", "results"))
        return cls(tuple(record["methods"]), sizes, results, record["spread"], record["inflation"])


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected results of methods: a mixture of normal distributions, one for each width and collection."""

    names: tuple[str, ...]
    values: Floats  # of each judged query, shape (n_queries, n_methods)
    weights: Floats  # shape (n_widths, n_collections), with sum 1
    centres: Floats  # means given both, minus that of the first method, shape (n_widths, n_collections, n_methods)
    covariances: Floats  # of the differences from the first method, shape (n_widths, n_methods, n_methods)
    inflation: float

    @classmethod
    def of(cls, values: Mapping[str, Floats], known: Mapping[str, str], prior: Prior | None = None) -> Self:
        """
        Take the queries that all methods have.

        known: for methods with results on other collections, the name of these results.
        """
        prior = Prior.read() if prior is None else prior
        V = np.column_stack(list(values.values()))
        V = V[~np.isnan(V).any(axis=1)]
        (n, m), rows = V.shape, len(prior.sizes)
        theta = np.full((rows, m), np.nan)
        for column, name in enumerate(values):
            if known.get(name) in prior.methods:
                theta[:, column] = prior.results[:, prior.methods.index(known[name])]
        is_new = np.isnan(theta[0])
        theta[:, is_new] = 0.0 if is_new.all() else theta[:, ~is_new].mean(axis=1, keepdims=True)
        scatter = np.cov(V.T, ddof=0) * n if n > 1 else np.zeros((m, m))
        S = (scatter + _PSEUDO * 0.5 * prior.spread**2 * np.eye(m)) / (max(n - 1, 0) + _PSEUDO)
        C = np.hstack([-np.ones((m - 1, 1)), np.eye(m - 1)])  # differences from the first method
        noise = C @ (prior.inflation**2 / max(n, 1) * S) @ C.T
        apart = (V.mean(axis=0) - theta) @ C.T if n else np.zeros((rows, m - 1))
        log_weights, centres, covariances = [], np.zeros((len(WIDTHS), rows, m)), np.zeros((len(WIDTHS), m, m))
        for k, width in enumerate(WIDTHS):
            H = C @ np.diag(np.where(is_new, _WIDE, width) ** 2) @ C.T
            gain = np.linalg.solve(H + noise, H)
            squares = (apart * np.linalg.solve(H + noise, apart.T).T).sum(axis=1)
            log_weights.append(-0.5 * squares - 0.5 * np.linalg.slogdet(H + noise)[1])
            centres[k, :, 1:], covariances[k, 1:, 1:] = theta @ C.T + apart @ gain, H - H @ gain
        weights = np.array(log_weights) - np.abs(np.log(max(n, 1) / prior.sizes))
        weights = np.exp(weights - weights.max())
        return cls(tuple(values), V, weights / weights.sum(), centres, covariances, prior.inflation)

    @property
    def means(self) -> Floats:
        """Expected results, minus that of the first method."""
        return np.asarray(np.einsum("ki,kim->m", self.weights, self.centres))

    def difference(self, first: str, second: str) -> float:
        """Return the expected lead of the first method over the second."""
        means = self.means
        return float(means[self.names.index(first)] - means[self.names.index(second)])

    def p_above(self, first: str, second: str, margin: float = 0.0) -> float:
        """Return the probability that the first method leads by more than a margin; ties count half."""
        a, b = self.names.index(first), self.names.index(second)
        variances = self.covariances[:, a, a] + self.covariances[:, b, b] - 2.0 * self.covariances[:, a, b]
        if not (variances > 0.0).all():  # both are the same method
            return 0.5
        leads = self.centres[:, :, a] - self.centres[:, :, b] - margin
        return float((self.weights * np.vectorize(NormalDist().cdf)(leads / np.sqrt(variances)[:, None])).sum())

    def n_needed(self, first: str, second: str) -> int | None:
        """
        Return how many judged queries would make a lead of the first method probable (`SURE`) without a prior.

        Mean d and variance s² of the paired difference are assumed to stay as they are: N = (c z s/d)², or n + 1 if it
        is smaller. Returns: None if the first does not lead on the judged queries, or if N is above a million.
        """
        differences = self.values[:, self.names.index(first)] - self.values[:, self.names.index(second)]
        n, d = len(differences), float(differences.mean()) if len(differences) else 0.0
        if d <= 0.0 or n < 2:
            return None
        needed = (self.inflation * NormalDist().inv_cdf(SURE)) ** 2 * float(differences.var(ddof=1)) / d**2
        return None if needed > _MAX_NEEDED else max(math.ceil(needed), n + 1)


@dataclass(frozen=True)
class Advice:
    """The winner, its rivals and the tests, as in `corank.comparison.Study`; all empty if no method is complete."""

    tests: tuple[PairedTest, ...] = ()
    best: str = ""
    simplest: str = ""
    winner: str = ""
    sentence: str = "No method finished all folds."
    rivals: tuple[Rival, ...] = ()


def give_advice(
    outcomes: Sequence[MethodOutcome], metric: str, level: float, seed: int, unit: str = "queries"
) -> Advice:
    """Choose a winner."""
    complete = {outcome.name: outcome for outcome in outcomes if outcome.evaluation is not None}
    real = sorted((item for item in complete.values() if item.name != RANDOM), key=lambda item: item.complexity)
    if not real:
        return Advice()
    best, simplest = max(real, key=lambda item: quality(item, metric)), real[0]
    if len(complete) == 1:
        text = f"{best.title}: {_value(best, metric)}; no other method finished."
        return Advice((), best.name, best.name, best.name, text)
    result = {item.name: item.evaluation for item in complete.values() if item.evaluation is not None}
    tests = compare_runs(result, metric, base=best.name, random_state=np.random.default_rng([seed, 1]), level=level)
    measure = parse_metric(metric).measure
    is_unbounded = measure.name in _UNBOUNDED
    scale = (abs(quality(best, metric)) or 1.0) if is_unbounded else 1.0
    sign = 1.0 if measure.larger_is_better else -1.0
    values = {name: sign / scale * entry[metric].values for name, entry in result.items()}
    known, prior = _known(real), Prior.read()
    if is_unbounded:
        known, prior = {}, replace(prior, spread=0.0)
    winner, leader, expected = recommend({item.name: values[item.name] for item in real}, known, prior)
    rivals = sorted(
        (
            Rival(
                name, scale * expected.difference(winner, name), expected.p_above(winner, name),
                expected.n_needed(winner, name),
            )
            for name in expected.names
            if name != winner
        ),
        key=lambda rival: rival.p_better,
    )  # fmt: skip
    text = _sentence(complete, winner, leader, rivals, expected, scale, metric, unit)
    p_random = 1.0
    if RANDOM in result:
        p_random = Expectation.of({name: values[name] for name in (winner, RANDOM)}, {}, prior).p_above(winner, RANDOM)
    if p_random < SURE:
        text += f" It is better than a random order with probability {p_random:.2f} only."
    is_open = any(rival.p_better < SURE for rival in rivals)
    if p_random < SURE or (is_open and len(expected.values) < _MIN_QUERIES):
        text += f" Judge more {unit if unit == 'queries' else 'rows'}."
    return Advice(tuple(tests), best.name, simplest.name, winner, text, tuple(rivals))


def recommend(
    values: Mapping[str, Floats], known: Mapping[str, str] | None = None, prior: Prior | None = None
) -> tuple[str, str, Expectation]:
    """Apply the rule to values of methods, the simplest first: return the winner, and the best expected method."""
    expected = Expectation.of(values, {name: name for name in values} if known is None else known, prior)
    leader = expected.names[int(np.argmax(expected.means))]
    simple_enough = (
        name for name in expected.names if name == leader or expected.p_above(leader, name, MARGIN) <= 1.0 - SURE
    )
    return next(simple_enough), leader, expected


def _known(outcomes: Sequence[MethodOutcome]) -> dict[str, str]:
    """Return the methods that were measured on other collections; no estimators of the user, nor prior columns."""
    return {
        outcome.name: _LIKE.get(outcome.name, outcome.name)
        for outcome in outcomes
        if outcome.name in METHODS
        and outcome.tuning == METHODS[outcome.name].tuning
        and (outcome.name != "columns" or outcome.title == "mean of all columns")
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
    scale: float,
    metric: str,
    unit: str,
) -> str:
    """Return the recommendation, how sure it is, and what more judgements would settle."""
    title, n, margin = outcomes[winner].title, len(expected.values), scale * MARGIN
    text = f"{title} is recommended: {_value(outcomes[winner], metric)}"
    if winner == leader:
        text += f", the best expected result of {len(rivals) + 1} methods."
    else:
        below, lead = 1.0 - expected.p_above(leader, winner, MARGIN), scale * expected.difference(leader, winner)
        text += (
            f". {outcomes[leader].title} is expected to be better by {lead:.4f}, "
            f"which is less than {margin:.2g} with probability {below:.2f}; {title} is simpler."
        )
    open_rivals = [rival for rival in rivals if rival.p_better < SURE]
    if not rivals:
        return text
    if not open_rivals:
        return f"{text} It is better than every other method with probability {SURE:g} or more ({n} {unit})."
    listed = "; ".join(f"{outcomes[item.name].title} ({item.p_better:.2f})" for item in open_rivals[:_MAX_LISTED])
    more = f"; and {len(open_rivals) - _MAX_LISTED} more" if len(open_rivals) > _MAX_LISTED else ""
    text += f" {n} {unit} do not settle it. The probability that it is better is below {SURE:g} against {listed}{more}."
    cheap = [
        item
        for item in open_rivals
        if item.p_better < LIKELY
        and item.difference < margin
        and outcomes[item.name].fit_seconds < outcomes[winner].fit_seconds
    ]
    if cheaper := min(cheap, key=lambda item: outcomes[item.name].fit_seconds, default=None):
        text += f" {outcomes[cheaper.name].title} is cheaper, and expected to be {cheaper.difference:.4f} worse."
    far = next((item for item in open_rivals if abs(item.difference) >= margin and item.n_needed is not None), None)
    if n >= _MIN_QUERIES and far is not None and far.n_needed is not None:
        unit_of_n = 10 ** max(0, len(str(far.n_needed)) - 2)
        text += (
            f" About {-(-far.n_needed // unit_of_n) * unit_of_n:,} {unit} would make its lead over "
            f"{outcomes[far.name].title} probable ({SURE:g}), if the difference stays as it is."
        )
    return text


def _value(outcome: MethodOutcome, metric: str) -> str:
    assert outcome.evaluation is not None
    return f"{metric} {outcome.evaluation[metric].mean:.4f} ({outcome.low:.4f} to {outcome.high:.4f})"
