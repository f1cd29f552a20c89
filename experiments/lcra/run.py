"""
Does agreement of views on unjudged rows help? Tsivtsivadze, Hofmann and Heskes, Large Scale Co-Regularized Ranking.

A repeat draws a training and a test part, hides most training scores row by row, and chooses parameters by fivefold
cross-validation on what is left. SPD sees all columns; SPD-MV averages two rankers of one view each; LCRA couples them
on the unscored rows. Parameters are chosen with the exact solver of the same (squared) objective; the paper's table is
then filled by stochastic descent, LCRA-k-l drawing k scored and l unscored pairs a step. `experiments.lcra.losses`
repeats the comparison with other losses and with natural views.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.metrics import wilcoxon
from corank.models.linear import LCRA, SPD
from corank.tables import ReportTable
from experiments.lcra.plot import plot_gains
from experiments.lcra.problems import ProblemSource, problems
from experiments.lcra.trial import ALPHAS, COUPLINGS, GRIDS, N_FOLDS, Outcomes, draw_repeat, try_grids
from experiments.options import ExperimentOptions
from experiments.significance import TOO_FEW, is_testable, p_text

FRACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
PAPER_FRACTION = 0.2
METHODS = ("SPD", "SPD-MV", "LCRA-1-1", "LCRA-1-10", "LCRA-1-100")
N_STEPS = 100_000
Floats = NDArray[np.float64]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 repeats by default; quick runs make 3, of three fractions.
    Returns: the paper's table for MQ2008, gains by fraction for every problem, and a plot of them.
    """
    repeats = options.repeats or (3 if options.quick else 20)
    fractions = (0.02, 0.1, 0.2) if options.quick else FRACTIONS
    known = problems()
    wanted = {
        (name, fraction): range(repeats * problem.n_draws)
        for name, problem in known.items()
        for fraction in fractions
        if fraction >= problem.least
    }
    options.expect(sum(map(len, wanted.values())) + repeats)
    cells = {
        (name, fraction): [_cell(options, known[name], fraction, repeat) for repeat in draws]
        for (name, fraction), draws in wanted.items()
    }
    gains = {
        name: [(fraction, _gain(problem, found)) for (of, fraction), found in cells.items() if of == name]
        for name, problem in known.items()
    }
    plot = options.folder / "lcra-gains.png"
    plot_gains(gains, plot)
    return Report(
        "Co-regularised ranking from scored and unscored rows",
        "Squared loss, two views, 70 % of the queries to train on and 30 % to test on (Jester: jokes), features of "
        f"MQ2008 and MSLR scaled to [0, 1] in each query, {repeats} repeats (Jester: ten users each). By "
        f"{N_FOLDS}-fold cross-validation on the scored training rows (disagreement error), alpha is one of "
        f"{', '.join(map(str, ALPHAS))} and coupling one of {', '.join(map(str, COUPLINGS))}. Tests are Wilcoxon's "
        "over repeats; repeats share rows, so they are optimistic, and one test in twenty is below 0.05 by chance.",
        (
            ReportTable("Problems", ("problem", "one repeat"), tuple((p.name, p.about) for p in known.values())),
            _paper_table(options, known["MQ2008"], repeats),
            _gain_table(known, cells),
        ),
        _findings(gains),
        (plot,),
    )


def _cell(options: ExperimentOptions, problem: ProblemSource, fraction: float, repeat: int) -> Outcomes:
    key = {"experiment": "lcra", "problem": problem.name, "fraction": fraction, "repeat": repeat}
    found: Outcomes = options.result(key, lambda: try_grids(problem, fraction, repeat, options.seed))
    return found


def _better(problem: ProblemSource, base: Floats, other: Floats) -> Floats:
    return other - base if problem.metric == "AP" else base - other


def _chosen(cells: list[Outcomes], method: str) -> Floats:
    return np.array([cell[method]["values"][cell[method]["chosen"]] for cell in cells])


def _gain(problem: ProblemSource, cells: list[Outcomes]) -> Floats:
    """Improvement of LCRA over the better of the two supervised methods' means, repeat by repeat."""
    supervised = [_chosen(cells, method) for method in ("SPD", "SPD-MV")]
    best = max(supervised, key=lambda values: float(_better(problem, np.zeros(1), values).mean()))
    return _better(problem, best, _chosen(cells, "LCRA"))


def _gain_table(known: dict[str, ProblemSource], cells: dict[tuple[str, float], list[Outcomes]]) -> ReportTable:
    rows: list[tuple[str | float, ...]] = []
    for (name, fraction), found in cells.items():
        problem = known[name]
        means = [float(_chosen(found, method).mean()) for method in GRIDS]
        gain = _gain(problem, found)
        fixed = {method: np.mean([cell[method]["values"] for cell in found], axis=0) for method in GRIDS}
        best = [float(v.max() if problem.metric == "AP" else v.min()) for v in fixed.values()]
        rows.append(
            (name, problem.metric, f"{fraction:.0%}", *means, float(gain.mean()), p_text(gain, before=""), *best)
        )
    return ReportTable(
        "Exact optima: chosen by cross-validation, and the best fixed point of the grid on the test part (a bound)",
        (
            "problem", "measure", "scored", "SPD", "SPD-MV", "LCRA", "gain", "p", "SPD bound", "SPD-MV bound",
            "LCRA bound",
        ),
        tuple(rows),
        note="The gain is LCRA against the better of SPD and SPD-MV; positive is better, for errors too.",
    )  # fmt: skip


def _paper_table(options: ExperimentOptions, problem: ProblemSource, repeats: int) -> ReportTable:
    values = np.array(
        [
            options.result(
                {"experiment": "lcra", "table": "stochastic", "repeat": repeat, "steps": N_STEPS},
                lambda repeat=repeat: _stochastic(options, problem, repeat),  # type: ignore[misc]
            )
            for repeat in range(repeats)
        ]
    )
    rows: list[tuple[str | float, ...]] = []
    for at, name in enumerate(METHODS):
        against = [p_text(values[:, at] - values[:, base], before="") if at > base else "" for base in (0, 1)]
        gain = float((values[:, at] - values[:, 0]).mean())
        rows.append((name, float(values[:, at].mean()), float(values[:, at].std(ddof=1)), gain, *against))
    return ReportTable(
        f"MQ2008, {PAPER_FRACTION:.0%} of the training rows scored, stochastic descent: MAP over {repeats} repeats",
        ("method", "MAP", "deviation", "against SPD", "p against SPD", "p against SPD-MV"),
        tuple(rows),
        note="The paper's table 1 (LETOR 3.0) reports LCRA above SPD and SPD-MV on all of its sets.",
    )


def _stochastic(options: ExperimentOptions, problem: ProblemSource, repeat: int) -> list[float]:
    tuned = _cell(options, problem, PAPER_FRACTION, repeat)
    draw, y = draw_repeat(problem, PAPER_FRACTION, repeat, options.seed)
    found = []
    for name in METHODS:
        method, _, unscored_batch = name.partition("-1-")
        alpha, coupling = GRIDS[method][tuned[method]["chosen"]]
        how: dict[str, Any] = {
            "loss": "squared", "alpha": alpha, "scale": False, "solver": "sgd", "n_steps": N_STEPS, "average": True,
            "random_state": repeat,
        }  # fmt: skip
        model: SPD | LCRA = SPD(**how)
        if method != "SPD":
            model = LCRA(views=draw.views, coupling=coupling, batch=1, unscored_batch=int(unscored_batch or 1), **how)
        model.fit(draw.X[draw.train], y, qid=draw.qid[draw.train])
        found.append(problem.measure(draw, model.predict(draw.X[draw.test])))
    return found


def _findings(gains: dict[str, list[tuple[float, Floats]]]) -> tuple[str, ...]:
    lines = []
    for name, by_fraction in gains.items():
        helps = [f"{fraction:.0%}" for fraction, gain in by_fraction if gain.mean() > 0 and wilcoxon(gain) < 0.05]
        hurts = [f"{fraction:.0%}" for fraction, gain in by_fraction if gain.mean() < 0 and wilcoxon(gain) < 0.05]
        if not all(is_testable(gain) for _, gain in by_fraction):
            lines.append(f"{name}: {TOO_FEW}.")
            continue
        words = [f"helps at {', '.join(helps)} scored"] if helps else []
        words += [f"hurts at {', '.join(hurts)} scored"] if hurts else []
        lines.append(f"{name}: co-regularisation {' and '.join(words) or 'makes no significant difference'}.")
    return tuple(lines)
