"""
Does agreement of views on unjudged rows help? Tsivtsivadze, Hofmann and Heskes, Large Scale Co-Regularized Ranking.

A repeat draws a training and a test part of one half of the tasks and hides most training scores. SPD sees all
columns; SPD-MV averages two rankers of one view each; LCRA couples them on the unjudged rows, with coupling 0 among the
candidates. All parameters are those with the best mean on test parts of the other half of the tasks. The squared loss
is minimised exactly, the others by stochastic steps. Pursuits, which have no ridge, are compared in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from corank.metrics import wilcoxon
from corank.models.linear import LCRA, SPD
from corank.tables import ReportTable
from experiments.lcra.problems import ProblemSource, problems
from experiments.lcra.trial import (
    ALPHAS,
    COUPLINGS,
    DEFAULT_COUPLING,
    DESCENT_ALPHAS,
    DESCENT_COUPLINGS,
    N_STEPS,
    N_TERMS,
    descent_values,
    draw_repeat,
    exact_values,
    pursuit_values,
)
from experiments.options import ExperimentOptions
from experiments.significance import p_text

PAPER = ("SPD", "SPD-MV", "LCRA-1-1", "LCRA-1-10", "LCRA-1-100")
"""Methods of the paper's table 1."""
PAPER_JUDGED = 0.2
LOSSES = ("hinge",)
LOSS_PROBLEMS = ("MQ2008", "wide redundant views")
PURSUITS = (("MQ2008", 5), ("Jester", 0.2), ("wide redundant views", 0.05))
"""Problems of the pursuits, and what is judged."""
SHOWN = tuple(10.0**power for power in range(-4, 4))
"""Alphas of the table of gains."""

Floats = NDArray[np.float64]
Compute = Callable[[ProblemSource, float, int, int], dict[str, Any]]
Row = tuple[str | float, ...]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 repeats by default; quick runs make 4.
    Returns: gains by problem and number of judgements, by alpha, of pursuits, by loss, the paper's table for MQ2008,
        and a plot against alpha.
    """
    repeats = options.repeats or (4 if options.quick else 20)
    known = problems()
    trials = Trials(options, known, repeats)
    rows = [(name, judged) for name, problem in known.items() for judged in problem.judged]
    exact = {cell: trials.of("exact", *cell, exact_values) for cell in rows}
    plot = options.folder / "lcra-alpha.png"
    plot_alphas({name: exact[name, problem.judged[1]] for name, problem in known.items()}, known, plot)
    chosen = {(name, judged): Comparison.of(cell, known[name].sign) for (name, judged), cell in exact.items()}
    return Report(
        "Co-regularised ranking from scored and unscored rows",
        f"Two views, 70 % of the queries or rows to train on and 30 % to test on, {repeats} repeats (Jester: ten users "
        "each), half of them on either half of the tasks: queries, users, topics, categories, reviews, or generated "
        "problems. Every parameter is the one with the best mean on the other half. Alpha is one of "
        f"{len(ALPHAS)} from {ALPHAS[0]:g} to {ALPHAS[-1]:g}, coupling one of "
        f"{', '.join(f'{c:g}' for c in COUPLINGS)}. Features of MQ2008 and MSLR are scaled to [0, 1] in each query; a "
        "view of text has 100 singular dimensions. Tests are Wilcoxon's over repeats; those of one half share rows, so "
        "they are optimistic.",
        (
            ReportTable("Problems", ("problem", "tasks"), tuple((p.name, p.about) for p in known.values())),
            _chosen_table(known, chosen),
            _alpha_table(known, exact),
            _default_table(known, exact),
            _pursuit_table(trials, known, chosen),
            _loss_table(trials, known),
            _paper_table(options, known["MQ2008"], exact["MQ2008", PAPER_JUDGED], repeats),
        ),
        _findings(chosen),
        (plot,),
    )


class Trials:
    """Stored trials of one run; `of` returns those of a cell in order of their repeats."""

    def __init__(self, options: ExperimentOptions, known: dict[str, ProblemSource], repeats: int) -> None:
        self.options, self.known, self.repeats = options, known, repeats

    def of(self, kind: str, name: str, judged: float, compute: Compute) -> list[dict[str, Any]]:
        """Compute one trial for each repeat."""
        problem = self.known[name]
        n = self.repeats * (problem.n_draws if kind == "exact" else 1)
        self.options.expect(n)
        key = {"experiment": "lcra", "what": kind, "problem": name, "judged": judged}
        return [
            self.options.result({**key, "repeat": repeat}, partial(compute, problem, judged, repeat, self.options.seed))
            for repeat in range(n)
        ]


def choose(values: Floats, sign: float) -> Floats:
    """
    Return the value of each repeat at the point with the best mean over the repeats of the other half.

    values (n_repeats, ...): test values of all points; even repeats are one half.
    """
    flat = np.reshape(values, (len(values), -1))
    best = [int(np.argmax(sign * flat[half::2].mean(axis=0))) for half in (0, 1)]
    return np.array([flat[repeat, best[1 - repeat % 2]] for repeat in range(len(flat))])


def _values(trials: list[dict[str, Any]], name: str) -> Floats:
    return np.array([trial[name] for trial in trials])


def judged_text(judged: float) -> str:
    """Return what is judged in words."""
    return f"{judged:.0f} queries" if judged >= 1 else f"{judged:.0%}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """SPD, SPD-MV and LCRA on the repeats of a cell, parameters chosen on the other half; positive gains are better."""

    spd: Floats
    views: Floats
    coupled: Floats
    gain: Floats  # over SPD-MV
    against_better: Floats  # over SPD or SPD-MV, whichever is better on the other half

    @classmethod
    def of(cls, trials: list[dict[str, Any]], sign: float) -> Comparison:
        """Choose on one half, compare on the other."""
        spd, grid = _values(trials, "SPD"), _values(trials, "views")
        item, views, coupled = choose(spd, sign), choose(grid[:, 0], sign), choose(grid, sign)
        better = choose(np.hstack([spd, grid[:, 0]]), sign)
        return cls(item, views, coupled, sign * (coupled - views), sign * (coupled - better))

    @property
    def means(self) -> tuple[float, float, float, float, str]:
        """Means of the three methods, the mean gain over SPD-MV and its p-value."""
        means = [float(values.mean()) for values in (self.spd, self.views, self.coupled, self.gain)]
        return means[0], means[1], means[2], means[3], p_text(self.gain, before="")


def _chosen_table(known: dict[str, ProblemSource], chosen: dict[tuple[str, float], Comparison]) -> ReportTable:
    return ReportTable(
        "Parameters chosen on other tasks, exact optima",
        (
            "problem", "measure", "judged", "SPD", "SPD-MV", "LCRA", "gain over SPD-MV", "p", "gain over the better",
            "p of that",
        ),
        tuple(
            (
                name, known[name].metric, judged_text(judged), *of.means, float(of.against_better.mean()),
                p_text(of.against_better, before=""),
            )
            for (name, judged), of in chosen.items()
        ),
        note="Positive gains are better, for errors too. LCRA may choose coupling 0. The better of SPD and SPD-MV is "
        "that on the other half of the tasks.",
    )  # fmt: skip


def _alpha_table(known: dict[str, ProblemSource], exact: dict[tuple[str, float], list[dict[str, Any]]]) -> ReportTable:
    position = [int(np.argmin(np.abs(np.log(np.array(ALPHAS) / alpha)))) for alpha in SHOWN]
    rows: list[Row] = []
    for name, problem in known.items():
        trials, sign = exact[name, problem.judged[1]], problem.sign
        views = _values(trials, "views")
        gains = [float((sign * (choose(views[:, 1:, a], sign) - views[:, 0, a])).mean()) for a in position]
        best = [float(sign * np.max(sign * views[:, c].mean(axis=0))) for c in range(len(COUPLINGS))]
        alphas = [ALPHAS[int(np.argmax(sign * views[:, c].mean(axis=0)))] for c in range(len(COUPLINGS))]
        rows.append(
            (
                name,
                judged_text(problem.judged[1]),
                *gains,
                f"{alphas[0]:g}",
                best[0],
                max(best[1:], key=lambda v: sign * v),
            )
        )
    return ReportTable(
        "Gain of coupling over SPD-MV with the same alpha",
        ("problem", "judged", *(f"alpha {alpha:g}" for alpha in SHOWN), "best alpha", "best SPD-MV", "best coupled"),
        tuple(rows),
        note="The coupling, above 0, is chosen for each alpha on the other half. The last columns are the best means "
        "over the grid on the test parts, with and without coupling: bounds of what a choice can reach.",
    )


def _default_table(
    known: dict[str, ProblemSource], exact: dict[tuple[str, float], list[dict[str, Any]]]
) -> ReportTable:
    rows: list[Row] = []
    for (name, judged), trials in exact.items():
        values, sign = _values(trials, "default"), known[name].sign
        gain = sign * (values[:, 2] - values[:, 0])
        rows.append(
            (name, judged_text(judged), *map(float, values.mean(axis=0)), float(gain.mean()), p_text(gain, before=""))
        )
    return ReportTable(
        "Defaults: alpha by corank's rule, nothing chosen",
        ("problem", "judged", "SPD", "SPD-MV", f"LCRA, coupling {DEFAULT_COUPLING:g}", "LCRA against SPD", "p"),
        tuple(rows),
    )


def _pursuit_table(
    trials: Trials, known: dict[str, ProblemSource], chosen: dict[tuple[str, float], Comparison]
) -> ReportTable:
    rows: list[Row] = []
    for name, judged in PURSUITS:
        of = Comparison.of(trials.of("pursuit", name, judged, pursuit_values), known[name].sign)
        rows.append((name, judged_text(judged), *of.means, float(chosen[name, judged].spd.mean())))
    return ReportTable(
        "Learners without ridge: pursuits",
        (
            "problem",
            "judged",
            "RankingPursuit",
            "CoRankingPursuit, not coupled",
            "coupled",
            "gain",
            "p",
            "SPD with ridge",
        ),
        tuple(rows),
        note=f"Linear kernel, at most {N_TERMS} terms, residual 'separate'; number of terms and coupling are chosen on "
        "the other half. The last column is that of the first table (Jester: of ten times as many users).",
    )


def _loss_table(trials: Trials, known: dict[str, ProblemSource]) -> ReportTable:
    rows: list[Row] = []
    for name in LOSS_PROBLEMS:
        judged, sign = known[name].judged[1], known[name].sign
        for loss in LOSSES:
            of = Comparison.of(trials.of(loss, name, judged, partial(descent_values, loss=loss)), sign)
            rows.append((name, judged_text(judged), loss, *of.means))
    return ReportTable(
        "Other losses, by stochastic steps",
        ("problem", "judged", "loss", "SPD", "SPD-MV", "LCRA", "gain over SPD-MV", "p"),
        tuple(rows),
        note=f"{N_STEPS:,} steps; alpha is one of {', '.join(f'{a:g}' for a in DESCENT_ALPHAS)}, coupling one of "
        f"{', '.join(f'{c:g}' for c in DESCENT_COUPLINGS)}.",
    )


def _paper_table(
    options: ExperimentOptions, problem: ProblemSource, exact: list[dict[str, Any]], repeats: int
) -> ReportTable:
    options.expect(repeats)
    values = np.array(
        [
            options.result(
                {"experiment": "lcra", "what": "paper", "repeat": repeat, "steps": N_STEPS},
                partial(_stochastic, problem, exact, repeat, options.seed),
            )
            for repeat in range(repeats)
        ]
    )
    rows: list[Row] = []
    for method, name in enumerate(PAPER):
        against = [p_text(values[:, method] - values[:, base], before="") if method > base else "" for base in (0, 1)]
        gain = float((values[:, method] - values[:, 0]).mean())
        rows.append((name, float(values[:, method].mean()), float(values[:, method].std(ddof=1)), gain, *against))
    return ReportTable(
        f"MQ2008, {PAPER_JUDGED:.0%} of the training rows judged, stochastic descent: MAP over {repeats} repeats",
        ("method", "MAP", "deviation", "against SPD", "p against SPD", "p against SPD-MV"),
        tuple(rows),
        note=f"LCRA-k-l draws k judged and l unjudged pairs in each of {N_STEPS:,} steps, with the parameters of the "
        "first table, but a coupling above 0. The paper's table 1 (LETOR 3.0) reports LCRA above SPD and SPD-MV on all "
        "of its sets.",
    )


def _stochastic(problem: ProblemSource, exact: list[dict[str, Any]], repeat: int, seed: int) -> list[float]:
    draw, y = draw_repeat(problem, PAPER_JUDGED, repeat, seed)
    others = exact[1 - repeat % 2 :: 2]
    spd, views = _values(others, "SPD").mean(axis=0), _values(others, "views").mean(axis=0)
    c, a = np.unravel_index(int(np.argmax(views[1:])), views[1:].shape)
    points = {"SPD": (int(np.argmax(spd)), 0), "SPD-MV": (int(np.argmax(views[0])), 0), "LCRA": (int(a), 1 + int(c))}
    tested = []
    for name in PAPER:
        method, _, unscored_batch = name.partition("-1-")
        position, coupling = points[method]
        how: dict[str, Any] = {
            "loss": "squared", "alpha": ALPHAS[position], "scale": False, "solver": "sgd", "n_steps": N_STEPS,
            "average": True, "random_state": repeat,
        }  # fmt: skip
        model: SPD | LCRA = SPD(**how)
        if method != "SPD":
            how |= {"batch": 1, "unscored_batch": int(unscored_batch or 1)}
            model = LCRA(views=draw.views, coupling=COUPLINGS[coupling], **how)
        model.fit(draw.X[draw.train], y, qid=draw.qid[draw.train])
        tested.append(float(draw.measure(problem.metric, model.predict(draw.X[draw.test])[:, None])[0]))
    return tested


def _findings(chosen: dict[tuple[str, float], Comparison]) -> tuple[str, ...]:
    counts = [
        sum(wilcoxon(gain) < 0.05 and sign * gain.mean() > 0 for gain in gains)
        for gains in ([of.gain for of in chosen.values()], [of.against_better for of in chosen.values()])
        for sign in (1, -1)
    ]
    return (
        f"Of {len(chosen)} comparisons with SPD-MV, LCRA is better in {counts[0]} and worse in {counts[1]} with p "
        f"below .05; with the better of SPD and SPD-MV, better in {counts[2]} and worse in {counts[3]}.",
    )


def plot_alphas(trials: dict[str, list[dict[str, Any]]], known: dict[str, ProblemSource], path: Path) -> None:
    """Plot mean test values against alpha, a panel for each problem: SPD, SPD-MV, and LCRA with three couplings."""
    panels = [
        Panel(
            f"{name}, {judged_text(known[name].judged[1])}",
            "error" if known[name].sign < 0 else known[name].metric,
            *(_values(cell, part).mean(axis=0) for part in ("SPD", "views")),
        )
        for name, cell in trials.items()
    ]
    plot_panels(panels, path)


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of a plot against alpha."""

    title: str
    measure: str
    single: Floats  # (n_alphas,): values of one model of all columns
    views: Floats  # (n_couplings, n_alphas): values of two views


def plot_panels(
    panels: list[Panel],
    path: Path,
    *,
    names: tuple[str, str, str] = ("SPD", "SPD-MV (coupling 0)", "LCRA"),
    width: int = 4,
) -> None:
    """Write a PNG file with `width` panels in a row; `names` are those of the three methods."""
    import_extra("matplotlib", "report")
    # no window system is used, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_rows = -(-len(panels) // width)
    figure = Figure(figsize=(3.0 * width, 2.7 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(n_rows, width, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        axis.plot(ALPHAS, panel.single, color="0.5", linestyle=":", label=names[0])
        axis.plot(ALPHAS, panel.views[0], color="#c8553d", label=names[1])
        for coupling, colour in zip((0.1, 1.0, 10.0), ("#86b6d6", "#2f7fb5", "#123f63"), strict=True):
            label = f"{names[2]}, coupling {coupling:g}"
            axis.plot(ALPHAS, panel.views[COUPLINGS.index(coupling)], color=colour, label=label)
        axis.set_xscale("log")
        axis.set_title(panel.title, fontsize=9)
        axis.set_ylabel(panel.measure, fontsize=8)
        axis.tick_params(labelsize=7)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    axes[len(panels) - 1].legend(fontsize=7)
    figure.supxlabel("alpha", fontsize=9)
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
