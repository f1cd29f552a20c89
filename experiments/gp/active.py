"""
Active learning on Boston housing: figure 2 of Chu and Ghahramani, Extensions of Gaussian Processes for Ranking.

Questions come from a pool of 1,000 random pairs of the 506 houses; the answer is the one with the higher price. The
error is the share of all 127,765 pairs that the posterior mean ranks wrongly (the 628 pairs of equal prices count one
half). The paper's parameters are κo = κ = 1/16, σ² = 0.001 and a graph of 3 neighbours: with
k(x, x) = 1 they are gamma = 1/32, sigma² = 0.016 and a graph of weight 1/16.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels import GaussianKernel
from corank.comparison.report import Report
from corank.data.durable.atomic import atomic_file
from corank.data.durable.text import open_text
from corank.errors import import_extra
from corank.models.gp import PreferenceGP, gains
from corank.tables import ReportTable
from experiments.datasets.catalog import dataset
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]

TRIALS, POOL, QUESTIONS = 20, 1000, 80
SHOWN = (5, 10, 20, 30, 40, 60, 80)
SIZE = 0.0625
PAPER: dict[str, Any] = {
    "kernel": GaussianKernel(SIZE / 2.0), "sigma": float(np.sqrt(0.001 / SIZE)), "learn": False, "scale": False,
}  # fmt: skip
# numbers of answers after which hyper-parameters are learnt again
RELEARN = (5, 10, 20, 40)
METHODS: dict[str, dict[str, Any]] = {
    "supervised": PAPER,
    "semi-supervised": {**PAPER, "graph_neighbors": 3, "graph_weight": SIZE},
    "supervised, learnt": {"scale": False},
}
RULES = ("entropy", "random")


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 trials by default; quick runs make 2 of 20 questions.
    Returns: errors by the number of questions, with paired tests, and a plot of the curves.
    """
    trials = options.repeats or (2 if options.quick else TRIALS)
    questions = 20 if options.quick else QUESTIONS
    shown = [n for n in SHOWN if n <= questions]
    X, y = boston()
    options.expect(len(METHODS) * len(RULES) * trials)
    curves: dict[tuple[str, str], Floats] = {}
    for method in METHODS:
        for rule in RULES:
            keys = [
                {"experiment": "gp-active", "method": method, "by": rule, "trial": t, "questions": questions}
                for t in range(trials)
            ]
            trial = partial(_trial, X, y, options.seed)
            curves[method, rule] = np.array([options.result(key, partial(trial, **_how(key))) for key in keys])
    picture = options.folder / "gp-active.png"
    plot_curves(curves, picture)
    rows = []
    for (method, rule), errors in curves.items():
        cells = [f"{errors[:, n - 1].mean():.3f} ± {errors[:, n - 1].std(ddof=1):.3f}" for n in shown]
        rows.append((method, rule, *cells))
    about = (
        f"{trials} trials; a pool of {POOL} random pairs of Boston housing (columns standardised), the same pool and "
        "first pair for every method of a trial; error on all 127,765 pairs, mean ± standard deviation over trials. "
        "The learnt method chooses the width and sigma by evidence after 5, 10, 20 and 40 answers."
    )
    table = ReportTable("Error by the number of questions", ("method", "by", *map(str, shown)), tuple(rows))
    return Report("The next question (Boston housing)", about, (table,), _findings(curves, shown[-1]), (picture,))


def boston() -> tuple[Floats, Floats]:
    """Rows of Boston housing, columns of mean 0 and standard deviation 1, and prices."""
    text = open_text(dataset("boston").path("boston_housing.csv")).read().tobytes().decode()
    table = np.array([line.split(",") for line in text.split()], dtype=np.float64)
    X = table[:, :-1]
    return (X - X.mean(axis=0)) / X.std(axis=0), table[:, -1]


def share_wrong(scores: Floats, y: Floats) -> float:
    """Share of all pairs that scores rank wrongly; ties of either count one half."""
    i, j = np.triu_indices(len(y), 1)
    return float(np.mean(0.5 - 0.5 * np.sign(scores[i] - scores[j]) * np.sign(y[i] - y[j])))


def _how(key: dict[str, Any]) -> dict[str, Any]:
    return {name: key[name] for name in ("method", "by", "trial", "questions")}


def _trial(X: Floats, y: Floats, seed: int, *, method: str, by: str, trial: int, questions: int) -> list[float]:
    """Errors after each question of one trial."""
    rng = np.random.default_rng([seed, trial])
    i, j = np.triu_indices(len(y), 1)
    at = rng.choice(len(i), POOL, replace=False)
    pool = np.column_stack([i[at], j[at]])
    pool = pool[y[pool[:, 0]] != y[pool[:, 1]]]  # pairs of equal prices have no answer
    pool = np.where((y[pool[:, 0]] > y[pool[:, 1]])[:, None], pool, pool[:, ::-1])
    # one width, as when the stored results were computed
    how = {"kernel": "gaussian", **METHODS[method]}
    model = PreferenceGP(**how).fit(X, pairs=pool[:1])
    answered, errors = [0], []
    for n in range(1, questions + 1):
        posterior = model.posterior()
        errors.append(share_wrong(posterior.mean, y))
        left = np.setdiff1d(np.arange(len(pool)), answered)
        chosen = left[0]  # the pool is in random order
        if by != "random":
            chosen = left[gains(posterior, 2.0 * model.sigma_**2, by, pool[left]).argmax()]
        answered.append(int(chosen))
        if how.get("learn", True) and n + 1 in RELEARN:
            model = PreferenceGP(**how).fit(X, pairs=pool[answered])
        else:
            model.partial_fit(pairs=pool[chosen : chosen + 1])
    return errors


def _findings(curves: dict[tuple[str, str], Floats], n: int) -> tuple[str, ...]:
    found = []
    for method in METHODS:
        entropy, random = curves[method, "entropy"], curves[method, "random"]
        reached = np.flatnonzero(entropy.mean(axis=0) <= random[:, n - 1].mean())
        tested = p_text(random[:, n - 1] - entropy[:, n - 1])
        found.append(
            f"{method}: {n} random questions give an error of {random[:, n - 1].mean():.3f}, as many chosen by entropy "
            f"{entropy[:, n - 1].mean():.3f} ({tested}); entropy reaches the error of random questions after "
            f"{reached[0] + 1 if len(reached) else 'more'} questions."
        )
    gap = curves["supervised", "entropy"][:, n - 1] - curves["semi-supervised", "entropy"][:, n - 1]
    found.append(f"The graph changes the error after {n} questions by {-gap.mean():+.3f} ({p_text(gap)}, entropy).")
    return tuple(found)


def plot_curves(curves: dict[tuple[str, str], Floats], path: Path) -> None:
    """Plot mean errors with bands of one standard deviation, one panel per method."""
    import_extra("matplotlib", "report")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(method for method, _ in curves))
    figure = Figure(figsize=(4.2 * len(methods), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for panel, method in zip(figure.subplots(1, len(methods), sharey=True, squeeze=False)[0], methods, strict=True):
        for rule, colour in zip(RULES, ("C0", "C1"), strict=True):
            errors = curves[method, rule]
            n, mean, spread = np.arange(1, errors.shape[1] + 1), errors.mean(axis=0), errors.std(axis=0)
            panel.fill_between(n, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
            panel.plot(n, mean, color=colour, label=rule)
        panel.set(title=method, xlabel="questions")
    figure.axes[0].set_ylabel("error on all pairs")
    figure.axes[0].legend()
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
