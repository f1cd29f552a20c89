"""
Which pair to ask next: entropy, mutual information and random pairs, on four sets.

Each run draws some items and one first pair; a judge answers by the true values without noise. Boston, cement
strength and abalone have features (Gaussian kernel by the median distance); sushi has none, and each run is another
person.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.data.durable.text import open_text
from corank.models.gp import PreferenceGP, suggest_pairs
from corank.tables import Cell, ReportTable
from experiments.datasets.catalog import dataset
from experiments.gp.active import boston, share_wrong
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

RUNS, ITEMS = 20, 30
QUESTIONS = {"Boston": 20, "cement_strength": 20, "abalone": 20, "sushi": 20}
RULES = ("entropy", "bald", "random")
SIGMA = 0.1


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 runs by default; quick runs make 2.
    Returns: mean error over the questions, and differences with intervals.
    """
    runs = options.repeats or (2 if options.quick else RUNS)
    options.expect(len(QUESTIONS) * runs)
    found = {name: [_run(options, name, repeat) for repeat in range(runs)] for name in QUESTIONS}
    errors = {
        (name, rule): np.array([one[rule] for one in results]) for name, results in found.items() for rule in RULES
    }
    return Report(
        "Which pair to ask next",
        f"{runs} runs on each set: {ITEMS} random items (sushi: the 10 kinds, for another person), one random first "
        "pair, then questions by each rule, answered without noise. PreferenceGP with a fixed kernel (median distance; "
        f"linear without features) and sigma {SIGMA}. The error is the share of all pairs in the wrong order.",
        (_means(errors), _differences(errors)),
        _findings(errors),
    )


def _run(options: ExperimentOptions, name: str, repeat: int) -> dict[str, list[float]]:
    key = {"experiment": "gp-questions", "set": name, "repeat": repeat, "questions": QUESTIONS[name]}
    value: dict[str, list[float]] = options.result(key, lambda: curves(name, [options.seed, repeat]))
    return value


def items_of(name: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw items: rows and true values."""
    if name == "sushi":
        text = open_text(dataset("sushi").path("sushi_rankings.csv")).read().tobytes().decode()
        lines = text.split()[-5000:]
        return np.eye(10), -np.array(lines[rng.integers(len(lines))].split(","), dtype=np.float64)
    if name == "Boston":
        X, y = boston()
    else:
        text = open_text(dataset("ordinal").path(f"chu_gagolews/{name}.csv")).read().tobytes().decode()
        table = np.array([line.split(",") for line in text.split()[1:]], dtype=np.float64)
        X, y = table[:, 1:], table[:, 0]
    at = rng.permutation(len(y))[:ITEMS]
    X = X[at]
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), y[at]


def curves(name: str, seed: list[int]) -> dict[str, list[float]]:
    """Error after each question, by rule."""
    rng = np.random.default_rng(seed)
    X, y = items_of(name, rng)
    every = np.column_stack(np.triu_indices(len(y), 1))
    every = every[y[every[:, 0]] != y[every[:, 1]]]  # ties have no answer
    first = every[rng.integers(len(every))]

    def answer(pair: NDArray[np.int64]) -> NDArray[np.int64]:
        return pair if y[pair[0]] > y[pair[1]] else pair[::-1]

    found = {}
    for rule in RULES:
        how: dict[str, Any] = {"sigma": SIGMA, "learn": False, "scale": False, "random_state": 0}
        model = PreferenceGP("linear" if name == "sushi" else "gaussian", **how).fit(X, pairs=[answer(first)])
        errors = []
        for number in range(QUESTIONS[name]):
            errors.append(share_wrong(model.posterior().mean, y))
            options: dict[str, Any] = {"strategy": rule, "candidates": every, "asked": model.answered()}
            pair = suggest_pairs(model, random_state=1000 * seed[-1] + number, **options)[0]
            model.partial_fit(pairs=[answer(pair)])
        found[rule] = [*errors, share_wrong(model.posterior().mean, y)]
    return found


def _means(errors: dict[tuple[str, str], Floats]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for (name, rule), of in errors.items():
        half = of.shape[1] // 2
        rows.append((name, rule, float(of[:, half].mean()), float(of[:, -1].mean()), float(of.mean())))
    columns = ("set", "rule", "error after half of the questions", "error after all", "mean over all questions")
    return ReportTable("Share of pairs in the wrong order", columns, tuple(rows))


def _interval(gaps: Floats) -> tuple[float, float]:
    """Mean of paired differences, and half of its 95 % interval by Student's t."""
    from scipy.stats import t

    n = len(gaps)
    return float(gaps.mean()), float(t.ppf(0.975, n - 1) * gaps.std(ddof=1) / np.sqrt(n))


def _differences(errors: dict[tuple[str, str], Floats]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    names = list(dict.fromkeys(name for name, _ in errors))
    for name in [*names, "all sets"]:
        cells = []
        for rule in RULES[1:]:
            of = [errors[one, RULES[0]].mean(axis=1) - errors[one, rule].mean(axis=1) for one in names]
            gaps = np.mean(of, axis=0) if name == "all sets" else of[names.index(name)]
            middle, half = _interval(gaps)
            cells.append(f"{middle:+.4f} ± {half:.4f}")
        rows.append((name, *cells))
    return ReportTable(
        "Error of entropy minus that of another rule, mean over all questions",
        ("set", *(f"minus {rule}" for rule in RULES[1:])),
        tuple(rows),
        note="Paired by run; ± is half of the 95 % interval. Below 0, entropy is better.",
    )


def _findings(errors: dict[tuple[str, str], Floats]) -> tuple[str, ...]:
    names = list(dict.fromkeys(name for name, _ in errors))
    lines = []
    for rule in RULES[1:]:
        gaps = np.mean([errors[one, RULES[0]].mean(axis=1) - errors[one, rule].mean(axis=1) for one in names], axis=0)
        middle, half = _interval(gaps)
        clear = "entropy is better" if middle < 0.0 else "entropy is worse"
        verdict = clear if abs(middle) > half else "no clear difference"
        lines.append(f"entropy against {rule}, all sets: {middle:+.4f} ± {half:.4f} in error: {verdict}.")
    return tuple(lines)
