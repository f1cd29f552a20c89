"""
Calibration of PreferenceGP with few answers: how often pairs are right that are said to be right with probability p.

30 items have values of variance 1, which are a linear or smooth function of their features, or unrelated to them, or
there are no features. Answers to random pairs have noise of standard deviation 0.3 or 1 on each value. For all pairs,
the probability of the more likely order is compared with the share of pairs in this order, in ten bins from 0.5 to 1.

"PreferenceGP" is the default, "one width" its Gaussian kernel. "Known" is the exact model: the true covariance of the
values and the true noise. "Six cases" only knows that values with features are linear, smooth or unrelated, that the
noise is 0.3 or 1, and that all cases are equally probable. It is the exact posterior of the experiment as a whole: what
it misses in one case is not in the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from corank.comparison.report import Report
from corank.models.gp import Posterior, PreferenceGP
from corank.tables import Cell, ReportTable
from corank_lab.preferences.answers import PairwiseAnswer
from corank_lab.preferences.model import PreferenceModel
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Probabilities = tuple[Floats, Floats]
"""Of the order of the values, and of an answer, for each pair."""

N, DRAWS, BINS, FEWEST = 30, 30, 10, 200
ANSWERS, NOISES = (5, 12, 30, 100), (0.3, 1.0)
PAIRS = np.column_stack(np.triu_indices(N, 1))
TRUTHS = ("linear", "smooth", "unrelated", "no features")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 30 draws by default; quick runs make 5.
    Returns: differences of stated and observed shares, by truth, number of answers and noise.
    """
    draws = options.repeats or (5 if options.quick else DRAWS)
    options.expect(len(METHODS) * len(ANSWERS) * len(TRUTHS) * len(NOISES))

    def totals(method: str, truth: str, m: int, noise: float) -> Floats:
        key = {
            "experiment": "gp-calibration", "method": method, "truth": truth, "answers": m, "noise": noise,
            "draws": draws,
        }  # fmt: skip
        return np.array(options.result(key, partial(measure, method, truth, m, noise, draws, options.seed)))

    cases: list[tuple[int, str, str, dict[str, Floats]]] = []
    summary: list[tuple[Cell, ...]] = []
    for m in ANSWERS:
        single = {
            (truth, noise): {method: totals(method, truth, m, noise) for method in METHODS}
            for truth in TRUTHS
            for noise in NOISES
        }
        cases += [(m, truth, f"{noise:g}", found) for (truth, noise), found in single.items()]
        cases.append((m, "all", "both", {method: sum(one[method] for one in single.values()) for method in METHODS}))  # type: ignore[misc]
        for features in ("yes", "no"):
            of = [found for (truth, _), found in single.items() if (truth == "no features") == (features == "no")]
            summary += [
                (m, features, method, *_figures(total[0]), *_figures(total[1]))
                for method, total in ((method, np.sum([one[method] for one in of], axis=0)) for method in METHODS)
            ]
    head = ("answers", "truth", "noise")
    bins = [f"{0.5 + 0.05 * k:.2f}" for k in range(BINS)]
    shown: list[tuple[Cell, ...]] = [
        (m, truth, noise, *_cells(found[DEFAULT][0]), _largest(found[SIX_CASES][0])) for m, truth, noise, found in cases
    ]
    largest: list[list[tuple[Cell, ...]]] = [
        [(m, truth, noise, *(_largest(of[k]) for of in found.values())) for m, truth, noise, found in cases]
        for k in (0, 1)
    ]
    figures = ("stated", "right", "log loss", "error")
    tables = (
        ReportTable(
            "Stated probability and frequency",
            (
                "answers",
                "features",
                "method",
                *(f"order: {name}" for name in figures),
                *(f"answer: {name}" for name in figures),
            ),
            tuple(summary),
            note="Of the more likely order of two values, and of the more likely answer, over all pairs, truths and "
            "noises: mean stated probability, share of pairs that are right, log loss in nats, and expected "
            f"calibration error over {BINS} bins.",
        ),
        ReportTable(
            f"Stated minus observed share of pairs in the more likely order, in hundredths: {DEFAULT}",
            (*head, "right", *bins, "largest", "six cases"),
            tuple(shown),
            note="Columns are bins of the stated probability, by their lower end; bins with fewer than "
            f"{FEWEST} pairs are left out. Positive numbers are too sure. Right: share of all pairs in the order "
            "that is more likely. Last column: the largest difference of the exact posterior.",
        ),
        ReportTable("Largest difference, probability of the order", (*head, *METHODS), tuple(largest[0])),
        ReportTable("Largest difference, probability of an answer", (*head, *METHODS), tuple(largest[1])),
    )
    about = (
        f"{N} items with two features, or none; {draws} draws in each row. Values of variance 1 are a linear or smooth "
        "function of the features, or unrelated to them. The noise is the standard deviation of an answer on each of "
        f"its two values. For all {len(PAIRS)} pairs, the stated probability is compared with the observed share. Six "
        "cases: the exact posterior of a model that knows the possible truths and noises. Known: of one that knows "
        "the covariance of the values and the noise."
    )
    return Report("Calibration with few answers", about, tables)


def measure(method: str, truth: str, m: int, noise: float, draws: int, seed: int) -> list[list[list[float]]]:
    """
    Sums over pairs in each bin, for the order and for an answer.

    Returns (2, BINS, 4): number of pairs, stated probabilities, true probabilities and log losses.
    """
    totals = np.zeros((2, BINS, 4))
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, m, round(10 * noise), TRUTHS.index(truth)])
        problem = Problem.draw(truth, noise, rng)
        gap = problem.f[PAIRS[:, 0]] - problem.f[PAIRS[:, 1]]
        stated = METHODS[method](problem, answers(problem.f, m, noise, rng))
        for total, p, true in zip(totals, stated, ((gap > 0.0) * 1.0, ndtr(gap / (np.sqrt(2.0) * noise))), strict=True):
            q, right = np.maximum(p, 1.0 - p), np.where(p < 0.5, 1.0 - true, true)
            at = np.minimum((2 * BINS * (q - 0.5)).astype(np.int64), BINS - 1)
            q_inside = np.minimum(q, 1.0 - 1e-12)
            loss = -right * np.log(q_inside) - (1.0 - right) * np.log1p(-q_inside)
            for k, weight in enumerate((np.ones_like(q), q, right, loss)):
                total[:, k] += np.bincount(at, weight, BINS)
    return totals.tolist()


@dataclass(frozen=True)
class Problem:
    """
    Items and their values.

    X: features; the identity if there are none.
    f (N,): values of mean 0 and variance 1.
    covariances: those that the values may have, by truth; `truth` is that of f.
    """

    X: Floats
    f: Floats
    covariances: dict[str, Floats]
    truth: str
    noise: float

    @classmethod
    def draw(cls, truth: str, noise: float, rng: np.random.Generator) -> Problem:
        """Draw features and values."""
        X = rng.normal(size=(N, 2))
        kernels = {
            "linear": X @ X.T,
            "smooth": np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=-1)),
            "unrelated": np.eye(N),
        }
        if truth == "no features":
            X, kernels = np.eye(N), {"no features": np.eye(N)}
        H = np.eye(N) - 1.0 / N
        covariances = {name: H @ K @ H * (N / np.trace(H @ K)) for name, K in kernels.items()}
        f = root(covariances[truth]) @ rng.normal(size=N)
        return cls(X, (f - f.mean()) / f.std(), covariances, truth, noise)


def root(K: Floats) -> Floats:
    """R with R Rᵀ = K."""
    return np.asarray(np.linalg.cholesky(K + 1e-9 * np.eye(N)), dtype=np.float64)


def answers(f: Floats, m: int, noise: float, rng: np.random.Generator) -> Integers:
    """Noisy answers about random pairs, the preferred item first."""
    pairs = PAIRS[rng.integers(0, len(PAIRS), m)]
    gap = f[pairs[:, 0]] - f[pairs[:, 1]] + np.sqrt(2.0) * noise * rng.normal(size=m)
    return np.where(gap[:, None] > 0.0, pairs, pairs[:, ::-1])


def _order(posterior: Posterior) -> Floats:
    mean, var = posterior.differences(PAIRS)
    return np.asarray(ndtr(mean / np.sqrt(np.maximum(var, 1e-12))))


def _learnt(kernel: str, problem: Problem, pairs: Integers) -> Probabilities:
    model = PreferenceGP(kernel, random_state=0).fit(problem.X, pairs=pairs)
    return _order(model.posterior()), model.predict_pair(problem.X, PAIRS)


def _ask(problem: Problem, pairs: Integers) -> Probabilities:
    rows = np.empty((N, 0)) if problem.truth == "no features" else problem.X
    model = PreferenceModel(rows).learn([PairwiseAnswer(*pair) for pair in pairs.tolist()])
    posterior = model.posterior()
    mean, var = posterior.differences(PAIRS)
    return _order(posterior), np.asarray(ndtr(mean / np.sqrt(var + 2.0 * model.sigma_**2)))


def _known(problem: Problem, pairs: Integers) -> Probabilities:
    return _exact([(problem.covariances[problem.truth], problem.noise)], pairs)


def _six_cases(problem: Problem, pairs: Integers) -> Probabilities:
    return _exact([(K, noise) for K in problem.covariances.values() for noise in NOISES], pairs)


def _exact(cases: list[tuple[Floats, float]], pairs: Integers) -> Probabilities:
    """The posterior if the covariance and the noise are one of these, with equal probability."""
    evidence, stated = [], []
    for K, noise in cases:
        R = root(K)
        model = PreferenceGP("linear", noise, learn=False, scale=False).fit(R, pairs=pairs)
        evidence.append(model.log_evidence_)
        stated.append((_order(model.posterior()), model.predict_pair(R, PAIRS)))
    order, answer = np.tensordot(softmax(evidence), np.array(stated), 1)
    return order, answer


DEFAULT, SIX_CASES = "PreferenceGP", "six cases"
METHODS: dict[str, Callable[[Problem, Integers], Probabilities]] = {
    DEFAULT: partial(_learnt, "auto"),
    "one width": partial(_learnt, "gaussian"),
    "corank prefer": _ask,
    SIX_CASES: _six_cases,
    "known": _known,
}


def _cells(total: Floats) -> list[str]:
    """Share of pairs in the more likely order, differences in the bins, and the largest one."""
    count, _, right, _ = total.T
    shown = ["" if np.isnan(one) else f"{100 * one:+.0f}".replace("-", "−") for one in _gaps(total)]
    return [f"{right.sum() / count.sum():.3f}", *shown, _largest(total)]


def _figures(total: Floats) -> list[str]:
    """Mean stated probability, share that is right, log loss and expected calibration error."""
    count, stated, right, loss = total.T
    n = count.sum()
    return [f"{value / n:.3f}" for value in (stated.sum(), right.sum(), loss.sum(), np.abs(stated - right).sum())]


def _largest(total: Floats) -> str:
    return f"{100 * np.nanmax(np.abs(_gaps(total))):.0f}"


def _gaps(total: Floats) -> Floats:
    count, stated, right, _ = total.T
    return np.where(count >= FEWEST, (stated - right) / np.maximum(count, 1.0), np.nan)
