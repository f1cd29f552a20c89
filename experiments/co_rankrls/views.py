"""
Two views of random basis rows, coupled on unscored rows, in the manner of the Co-RankRLS paper, on MQ2008.

Parameters are chosen by fivefold cross-validation over training queries: the paper's λ and ν, relative to sums over
the pairs, equal scores included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs.losses import drawn_weight
from corank.data.query_splits import QueryKFold
from corank.data.ranking import RankingData
from corank.metrics import evaluate
from corank.models.rls import CoRankRLS, PairSums, RankRLS
from corank.tables import ReportTable
from experiments.co_rankrls.draw import ViewsRepeat, draw_views
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]

N_FOLDS = 5
LAMBDAS = tuple(10.0**power for power in range(-3, 5))
NUS = (0.001, 0.01, 0.1, 1.0, 10.0)
"""The paper's weights of ‖f‖² and of the views' disagreement."""
HIDDEN = (0.5, 0.95)
"""Shares of the training rows without a score: the paper's, and one where scores are scarce."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
METHODS = (
    "RankRLS",
    "Sparse RankRLS, 20 basis rows",
    "Sparse RankRLS, both bases",
    "Two views, not coupled",
    "Co-RankRLS",
)
PAPER = {"RankRLS": 0.348, "Co-RankRLS": 0.326}


def views_table(options: ExperimentOptions, repeats: int, hidden: float) -> tuple[ReportTable, tuple[str, ...]]:
    """
    Compare RankRLS with Co-RankRLS and with what lies between them.

    options: seed and kept results.
    repeats: number of repeats.
    hidden: share of the training rows that are unscored.
    Returns: disagreement errors, and Wilcoxon's tests in words.
    """
    options.expect(repeats)
    cells = [_views_cell(options, repeat, hidden) for repeat in range(repeats)]
    rows = []
    for method in METHODS:
        means = [float(np.nanmean(_floats(cell[method]["errors"]))) for cell in cells]
        spread = float(np.std(means, ddof=1)) if repeats > 1 else None
        points = ", ".join(cell[method]["point"] for cell in cells)
        rows.append((method, float(np.mean(means)), spread, PAPER.get(method) if hidden == 0.5 else None, points))
    table = ReportTable(
        f"Disagreement error on test queries, {hidden:.0%} of the training rows unscored",
        ("method", "MQ2008", "s.d. over repeats", "paper (BioInfer)", "chosen"),
        tuple(rows),
        note="The paper ranks parses of sentences, half of them unscored, which are not public: compare differences.",
    )
    return table, tuple(_test(cells, base, "Co-RankRLS", hidden) for base in METHODS[:-1])


def curve_table(options: ExperimentOptions, repeats: int, hidden: float) -> ReportTable:
    """
    Show the error of Co-RankRLS against the number of unscored rows: figure 1 of the paper.

    options: seed and kept results.
    repeats: number of repeats; each resamples the unscored rows.
    hidden: share of the training rows that are unscored.
    Returns: mean errors, and their standard deviation over the repeats.
    """
    options.expect(repeats)
    cells = [_curve_cell(options, repeat, hidden) for repeat in range(repeats)]
    errors = np.array([[error for _, error in cell] for cell in cells])
    rows = tuple(
        (n, float(errors[:, index].mean()), float(errors[:, index].std(ddof=1)) if repeats > 1 else None)
        for index, n in enumerate(n for n, _ in cells[0])
    )
    return ReportTable(
        f"Co-RankRLS: disagreement error against the number of unscored rows, {1 - hidden:.0%} of the rows scored",
        ("unscored rows", "error", "s.d. over repeats"),
        rows,
        note="Scored rows, bases and parameters stay; parameters are those chosen with all unscored rows.",
    )


def _views_cell(options: ExperimentOptions, repeat: int, hidden: float) -> Any:
    key = {"experiment": "co-rankrls", "table": "views", "repeat": repeat, "hidden": hidden}
    return options.result(key, lambda: _trial(options, repeat, hidden))


def _curve_cell(options: ExperimentOptions, repeat: int, hidden: float) -> Any:
    key = {"experiment": "co-rankrls", "table": "curve", "repeat": repeat, "hidden": hidden}
    return options.result(key, lambda: _curve(options, repeat, hidden))


def _trial(options: ExperimentOptions, repeat: int, hidden: float) -> dict[str, Any]:
    drawn = draw_views(options.seed, repeat, hidden)
    both = np.sort(np.concatenate([view.basis for view in drawn.views]))
    return {
        "RankRLS": _ridge(drawn, None),
        "Sparse RankRLS, 20 basis rows": _ridge(drawn, drawn.views[0].basis),
        "Sparse RankRLS, both bases": _ridge(drawn, both),
        "Two views, not coupled": _coupled(drawn, (0.0,)),
        "Co-RankRLS": _coupled(drawn, NUS),
    }


def _ridge(drawn: ViewsRepeat, basis: NDArray[np.int64] | None) -> dict[str, Any]:
    """RankRLS on the scored rows; candidates come from one decomposition in each fold."""

    def path(y: Floats) -> RankRLS:
        data = RankingData.of(drawn.X, y, drawn.qid)
        model = RankRLS(
            kernel=drawn.kernel, alphas=np.array(LAMBDAS) / drawn_weight(data, "pairs"), ties=True, scale=False,
            basis="random" if basis is None else basis,
        )  # fmt: skip
        return model.fit(data)

    errors = np.zeros(len(LAMBDAS))
    for held in _folds(drawn):
        scores = path(np.where(held, np.nan, drawn.y)).predict_path(drawn.X[held])
        errors += [_error(drawn, held, column) for column in scores.T]
    index = int(np.argmin(errors))
    scores = path(drawn.y).predict_path(drawn.X_test)[:, index]
    return {"errors": _listed(drawn.errors(scores)), "point": f"{LAMBDAS[index]:g}"}


def _coupled(drawn: ViewsRepeat, nus: tuple[float, ...]) -> dict[str, Any]:
    """Co-RankRLS; a fold's scored rows are left out of the sums, its unscored rows stay out too."""
    whole, errors = _summary(drawn), np.zeros((len(nus), len(LAMBDAS)))
    for held in _folds(drawn):
        part = _summary(drawn, ~held, whole)
        for k, nu in enumerate(nus):
            for j, lam in enumerate(LAMBDAS):
                errors[k, j] += _error(drawn, held, _scores(drawn, part, lam, nu, drawn.X[held]))
    k, j = (int(index) for index in np.unravel_index(int(np.argmin(errors)), errors.shape))
    lam, nu = LAMBDAS[j], nus[k]
    scores = _scores(drawn, whole, lam, nu, drawn.X_test)
    point = f"{lam:g}" if len(nus) == 1 else f"{lam:g} / {nu:g}"
    return {"errors": _listed(drawn.errors(scores)), "point": point, "lambda": lam, "nu": nu}


def _curve(options: ExperimentOptions, repeat: int, hidden: float) -> list[tuple[int, float]]:
    drawn = draw_views(options.seed, repeat, hidden)
    chosen = _views_cell(options, repeat, hidden)["Co-RankRLS"]
    unscored = np.random.default_rng([options.seed, repeat, 1]).permutation(np.flatnonzero(np.isnan(drawn.y)))
    whole, results = _summary(drawn), []
    for share in SHARES:
        kept = ~np.isnan(drawn.y)
        kept[unscored[: round(share * len(unscored))]] = True
        part = _summary(drawn, kept, whole)
        scores = _scores(drawn, part, chosen["lambda"], chosen["nu"], drawn.X_test)
        results.append((round(share * len(unscored)), float(np.nanmean(drawn.errors(scores)))))
    return results


def _summary(
    drawn: ViewsRepeat, kept: NDArray[np.bool_] | slice = slice(None), like: PairSums | None = None
) -> PairSums:
    """Sums over some training rows, for every λ and ν; `like` brings the basis rows, which are of all."""
    model = CoRankRLS(drawn.views, ties=True, scale=False)
    return model.pair_sums(drawn.X[kept], drawn.y[kept], qid=drawn.qid[kept], like=like)


def _scores(drawn: ViewsRepeat, summary: PairSums, lam: float, nu: float, rows: Floats) -> Floats:
    P, U = summary.weights
    model = CoRankRLS(drawn.views, coupling=0.5 * nu * U / P, alpha=lam / P, ties=True, scale=False)
    return model.fit_pair_sums(summary).predict(rows)


def _folds(drawn: ViewsRepeat) -> list[NDArray[np.bool_]]:
    held = []
    for _, test in QueryKFold(N_FOLDS).split(drawn.X, qid=drawn.qid):
        mask = np.zeros(len(drawn.y), dtype=bool)
        mask[test] = True
        held.append(mask)
    return held


def _error(drawn: ViewsRepeat, held: NDArray[np.bool_], scores: Floats) -> float:
    return evaluate(drawn.y[held], scores, drawn.qid[held], "disagreement")["disagreement"].mean


def _test(cells: list[dict[str, Any]], base: str, other: str, hidden: float) -> str:
    a, b = (np.concatenate([_floats(cell[name]["errors"]) for cell in cells]) for name in (base, other))
    both = ~(np.isnan(a) | np.isnan(b))
    difference = b[both] - a[both]
    return (
        f"{hidden:.0%} unscored, {other} against {base}: {difference.mean():+.4f} in disagreement error over "
        f"{len(difference)} test queries of all repeats (Wilcoxon {p_text(difference)}; a query may be in "
        "several repeats)."
    )


def _listed(errors: Floats) -> list[float | None]:
    return [None if np.isnan(error) else round(float(error), 6) for error in errors]


def _floats(errors: list[float | None]) -> Floats:
    return np.array([np.nan if error is None else error for error in errors])
