"""
Two views of random basis rows, coupled on unscored rows, in the manner of the Co-RankRLS paper, on MQ2008.

A repeat computes test errors at every point of the grids, of one half of the queries. Every parameter is the one with
the best mean over the repeats of the other half, so that no test row and no row of its queries chooses it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.basis import stack_features
from corank.data.ranking import RankingData
from corank.models.rls import CoRankRLS, PairSums, RankRLS
from corank.models.rls.spectrum import ridge_of
from corank.tables import ReportTable
from experiments.co_rankrls.draw import N_BASIS, ViewsRepeat, draw_views
from experiments.lcra.run import Panel, choose, plot_panels
from experiments.lcra.trial import ALPHAS, COUPLINGS
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]

HIDDEN = (0.5, 0.95)
"""Shares of the training rows without a score: the paper's, and one where scores are scarce."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the unscored rows that are used: figure 1 of the paper."""
SPARSE, BOTH = f"Sparse RankRLS, {N_BASIS} basis rows", "Sparse RankRLS, both bases"
UNCOUPLED, COUPLED = "Two views, not coupled", "Co-RankRLS"
METHODS = ("RankRLS", SPARSE, BOTH, UNCOUPLED, COUPLED)
PAPER = {"RankRLS": 0.348, COUPLED: 0.326}
SHOWN = tuple(10.0**power for power in range(-6, 4))
"""Alphas of the table of gains."""


def trials_of(options: ExperimentOptions, repeats: int, hidden: float) -> list[dict[str, Any]]:
    """Return the test errors of every repeat, at every point of the grids."""
    options.expect(repeats)
    return [
        options.result(
            {"experiment": "co-rankrls", "table": "grid", "repeat": repeat, "hidden": hidden},
            partial(grid_errors, options.seed, repeat, hidden),
        )
        for repeat in range(repeats)
    ]


def views_table(trials: list[dict[str, Any]], hidden: float) -> tuple[ReportTable, tuple[str, ...]]:
    """Compare RankRLS with Co-RankRLS and with what lies between them; also Wilcoxon's tests in words."""
    errors = {method: choose(_grid(trials, method), -1.0) for method in METHODS}
    rows = tuple(
        (method, float(of.mean()), float(of.std(ddof=1)), PAPER.get(method) if hidden == 0.5 else None)
        for method, of in errors.items()
    )
    table = ReportTable(
        f"Disagreement error on test queries, {hidden:.0%} of the training rows unscored",
        ("method", "MQ2008", "s.d. over repeats", "paper (BioInfer)"),
        rows,
        note="The paper ranks parses of sentences, half of them unscored, which are not public: compare differences. "
        "Co-RankRLS may choose coupling 0.",
    )
    return table, tuple(
        f"{hidden:.0%} unscored, {COUPLED} against {base}: {(errors[COUPLED] - errors[base]).mean():+.4f} in "
        f"disagreement error over {len(trials)} repeats (Wilcoxon {p_text(errors[COUPLED] - errors[base])})."
        for base in METHODS[:-1]
    )


def alpha_table(trials: dict[float, list[dict[str, Any]]]) -> ReportTable:
    """Show the gain of coupling against alpha."""
    places = [int(np.argmin(np.abs(np.log(np.array(ALPHAS) / alpha)))) for alpha in SHOWN]
    rows = []
    for hidden, of in trials.items():
        views = _grid(of, COUPLED)
        gains = [float((views[:, 0, a] - choose(views[:, 1:, a], -1.0)).mean()) for a in places]
        best = views.mean(axis=0)
        rows.append((f"{hidden:.0%}", *gains, f"{ALPHAS[int(np.argmin(best[0]))]:g}", best[0].min(), best[1:].min()))
    return ReportTable(
        "Gain of coupling over two views with the same alpha",
        ("unscored", *(f"alpha {alpha:g}" for alpha in SHOWN), "best alpha", "best uncoupled", "best coupled"),
        tuple(rows),
        note="Positive gains are lower errors. The coupling, above 0, is chosen for each alpha on the other half. The "
        "last columns are the lowest means over the grid on the test parts: bounds of what a choice can reach.",
    )


def curve_table(trials: list[dict[str, Any]], hidden: float) -> ReportTable:
    """Show the error of Co-RankRLS against the number of unscored rows: figure 1 of the paper."""
    whole = _grid(trials, COUPLED).reshape(len(trials), -1)
    best = [int(np.argmin(whole[half::2].mean(axis=0))) for half in (0, 1)]
    rows = []
    for index, share in enumerate(SHARES):
        errors = np.array([np.ravel(trial["curve"][index])[best[1 - r % 2]] for r, trial in enumerate(trials)])
        rows.append((f"{share:.0%}", float(errors.mean()), float(errors.std(ddof=1))))
    return ReportTable(
        f"Co-RankRLS against the share of the unscored rows that is used, {1 - hidden:.0%} of the rows scored",
        ("used", "error", "s.d. over repeats"),
        tuple(rows),
        note="Scored rows, bases and parameters stay; parameters are those chosen with all unscored rows.",
    )


def plot_gains(trials: dict[float, list[dict[str, Any]]], path: Path) -> None:
    """Plot mean test errors against alpha, a panel for each share of unscored rows."""
    panels = [
        Panel(
            f"MQ2008, {hidden:.0%} unscored", "disagreement error", _grid(of, "RankRLS").mean(axis=0),
            _grid(of, COUPLED).mean(axis=0),
        )
        for hidden, of in trials.items()
    ]  # fmt: skip
    plot_panels(panels, path, names=("RankRLS, all rows", "two views, coupling 0", "Co-RankRLS"), width=2)


def grid_errors(seed: int, repeat: int, hidden: float) -> dict[str, Any]:
    """
    Return test errors of one repeat at every alpha, for two views also at every coupling.

    "curve" has the errors of the coupled views for each of `SHARES` of the unscored rows.
    """
    drawn = draw_views(seed, repeat, hidden)
    whole = pair_sums(drawn)
    bases = [view.basis for view in drawn.views]
    order = np.random.default_rng([seed, repeat, 1]).permutation(np.flatnonzero(np.isnan(drawn.y)))
    curve = []
    for share in SHARES:
        kept = ~np.isnan(drawn.y)
        kept[order[: round(share * len(order))]] = True
        curve.append(_view_errors(drawn, pair_sums(drawn, kept, whole)))
    return {
        "RankRLS": _path_errors(drawn, None),
        SPARSE: _path_errors(drawn, bases[0]),
        BOTH: _path_errors(drawn, np.sort(np.concatenate(bases))),
        UNCOUPLED: curve[-1][0],
        COUPLED: curve[-1],
        "curve": curve,
    }


def pair_sums(
    drawn: ViewsRepeat, kept: NDArray[np.bool_] | slice = slice(None), like: PairSums | None = None
) -> PairSums:
    """Sum over some training rows, for every alpha and coupling; `like` has the basis rows, which are of all."""
    model = CoRankRLS(drawn.views, ties=True, scale=False)
    return model.pair_sums(drawn.X[kept], drawn.y[kept], qid=drawn.qid[kept], like=like)


def view_scores(summary: PairSums, coupling: float, rows: Floats) -> Floats:
    """Score rows by the mean of the views, a column for each alpha."""
    solved = ridge_of(summary.equations(coupling), np.array(ALPHAS)).solve(np.array(ALPHAS))
    return np.asarray(stack_features(summary.maps)(rows) @ solved / len(summary.maps))


def _view_errors(drawn: ViewsRepeat, summary: PairSums) -> list[list[float]]:
    return [drawn.mean_errors(view_scores(summary, coupling, drawn.X_test)) for coupling in COUPLINGS]


def _path_errors(drawn: ViewsRepeat, basis: NDArray[np.int64] | None) -> list[float]:
    """RankRLS on the scored rows, dense or with basis rows; all alphas come from one decomposition."""
    model = RankRLS(
        kernel=drawn.kernel, alphas=ALPHAS, metric="evidence", ties=True, scale=False,
        n_basis=None, basis="random" if basis is None else basis,
    )  # fmt: skip
    model.fit(RankingData.of(drawn.X, drawn.y, drawn.qid))
    return drawn.mean_errors(model.predict_path(drawn.X_test))


def _grid(trials: list[dict[str, Any]], method: str) -> Floats:
    return np.array([trial[method] for trial in trials])
