"""
Two views of random basis rows that agree on unscored rows, in the manner of the Co-RankRLS paper, on MQ2008.

A repeat draws training and test queries (500 to 600, as the paper's sentences), hides the scores of half of the
training rows, and draws 20 basis rows for each view. Parameters are chosen by fivefold cross-validation over training
queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from corank.data.mq2008 import read_parts
from corank.data.ranking import RankingData
from corank.data.split import QueryKFold, hide_scores
from corank.experiments.report import Table
from corank.experiments.settings import Settings
from corank.kernels import GaussianKernel, Kernel
from corank.metrics import evaluate
from corank.rls import FeatureMap, RankRLS, Summary
from corank.views import View

Floats = NDArray[np.float64]

N_BASIS = 20
N_FOLDS = 5
TRAIN_SHARE = 500 / 1100
ALPHAS = tuple(10.0**power for power in range(-3, 5))
COUPLINGS = (0.001, 0.01, 0.1, 1.0, 10.0)
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


@dataclass(frozen=True, eq=False)
class Draw:
    """
    One repeat.

    Attributes
    ----------
    X, y, qid : arrays
        Training rows; y is NaN where a score is hidden.
    X_test, y_test, qid_test : arrays
        Test rows.
    views : list of View
        Two views, each with its basis rows and the kernel.
    """

    X: Floats
    y: Floats
    qid: NDArray[Any]
    X_test: Floats
    y_test: Floats
    qid_test: NDArray[Any]
    views: list[View]

    @property
    def kernel(self) -> Kernel:
        """The kernel of both views."""
        kernel: Kernel = self.views[0].kernel
        return kernel

    def errors(self, scores: Floats) -> Floats:
        """
        Return the disagreement error of each test query.

        Parameters
        ----------
        scores : array
            Scores of the test rows.

        Returns
        -------
        array
            NaN where a query has one grade.
        """
        return np.asarray(evaluate(self.y_test, scores, self.qid_test, "disagreement")["disagreement"].values)


def views_table(settings: Settings, repeats: int, hidden: float) -> tuple[Table, tuple[str, ...]]:
    """
    Compare RankRLS with Co-RankRLS and with what lies between them.

    Parameters
    ----------
    settings : Settings
        Seed and kept results.
    repeats : int
        Number of repeats.
    hidden : float
        Share of the training rows that are unscored.

    Returns
    -------
    Table, tuple of str
        Disagreement errors, and Wilcoxon's tests in words.
    """
    cells = [_views_cell(settings, repeat, hidden) for repeat in range(repeats)]
    rows = []
    for method in METHODS:
        means = [float(np.nanmean(_floats(cell[method]["errors"]))) for cell in cells]
        spread = float(np.std(means, ddof=1)) if repeats > 1 else None
        points = ", ".join(cell[method]["point"] for cell in cells)
        rows.append((method, float(np.mean(means)), spread, PAPER.get(method) if hidden == 0.5 else None, points))
    table = Table(
        f"Disagreement error on test queries, {hidden:.0%} of the training rows unscored",
        ("method", "MQ2008", "s.d. over repeats", "paper (BioInfer)", "chosen"),
        tuple(rows),
        note="The paper ranks parses of sentences, half of them unscored, which are not public: compare differences.",
    )
    return table, tuple(_test(cells, base, "Co-RankRLS", hidden) for base in METHODS[:-1])


def curve_table(settings: Settings, repeats: int, hidden: float) -> Table:
    """
    Show the error of Co-RankRLS against the number of unscored rows: figure 1 of the paper.

    Parameters
    ----------
    settings : Settings
        Seed and kept results.
    repeats : int
        Number of repeats; each resamples the unscored rows.
    hidden : float
        Share of the training rows that are unscored.

    Returns
    -------
    Table
        Mean errors, and their standard deviation over the repeats.
    """
    cells = [_curve_cell(settings, repeat, hidden) for repeat in range(repeats)]
    errors = np.array([[error for _, error in cell] for cell in cells])
    rows = tuple(
        (n, float(errors[:, at].mean()), float(errors[:, at].std(ddof=1)) if repeats > 1 else None)
        for at, n in enumerate(n for n, _ in cells[0])
    )
    return Table(
        f"Co-RankRLS: disagreement error against the number of unscored rows, {1 - hidden:.0%} of the rows scored",
        ("unscored rows", "error", "s.d. over repeats"),
        rows,
        note="Scored rows, bases and parameters stay; parameters are those chosen with all unscored rows.",
    )


def draw(seed: int, repeat: int, hidden: float) -> Draw:
    """
    Draw one repeat.

    Parameters
    ----------
    seed, repeat : int
        What the dice follow from.
    hidden : float
        Share of the training rows that are unscored.

    Returns
    -------
    Draw
        Training and test rows, and views.
    """
    rng = np.random.default_rng([seed, repeat])
    X, y, qid = _rows()
    queries = rng.permutation(np.unique(qid))
    train = np.isin(qid, queries[: round(TRAIN_SHARE * len(queries))])
    y_train = hide_scores(y[train], fraction=hidden, random_state=int(rng.integers(2**31)))
    kernel = GaussianKernel().fit(X[train], rng)
    basis = rng.choice(int(train.sum()), 2 * N_BASIS, replace=False)
    views = [View(None, kernel, np.sort(part)) for part in (basis[:N_BASIS], basis[N_BASIS:])]
    return Draw(X[train], y_train, qid[train], X[~train], y[~train], qid[~train], views)


@cache
def _rows() -> tuple[Floats, Floats, NDArray[Any]]:
    """Rows of the queries that have something to order."""
    file = read_parts()
    assert file.qid is not None
    codes = np.unique(file.qid, return_inverse=True)[1]
    y = np.asarray(file.y)
    several = np.array([len(np.unique(y[codes == q])) > 1 for q in range(codes.max() + 1)])
    kept = several[codes]
    return np.asarray(file.X)[kept], y[kept], codes[kept]


def _views_cell(settings: Settings, repeat: int, hidden: float) -> Any:
    key = {"experiment": "co-rankrls", "table": "views", "repeat": repeat, "hidden": hidden}
    return settings.result(key, lambda: _trial(settings, repeat, hidden))


def _curve_cell(settings: Settings, repeat: int, hidden: float) -> Any:
    key = {"experiment": "co-rankrls", "table": "curve", "repeat": repeat, "hidden": hidden}
    return settings.result(key, lambda: _curve(settings, repeat, hidden))


def _trial(settings: Settings, repeat: int, hidden: float) -> dict[str, Any]:
    drawn = draw(settings.seed, repeat, hidden)
    both = np.sort(np.concatenate([view.basis for view in drawn.views]))
    out: dict[str, Any] = {
        "RankRLS": _ridge(drawn, None),
        "Sparse RankRLS, 20 basis rows": _ridge(drawn, drawn.views[0].basis),
        "Sparse RankRLS, both bases": _ridge(drawn, both),
        "Two views, not coupled": _coupled(drawn, (0.0,)),
        "Co-RankRLS": _coupled(drawn, COUPLINGS),
    }
    return out


def _ridge(drawn: Draw, basis: NDArray[np.int64] | None) -> dict[str, Any]:
    """RankRLS on the scored rows; candidates come from one decomposition in each fold."""

    def path(y: Floats) -> RankRLS:
        how: dict[str, Any] = {} if basis is None else {"basis": basis}
        return RankRLS(kernel=drawn.kernel, alphas=ALPHAS, **how).fit(drawn.X, y, qid=drawn.qid)

    errors = np.zeros(len(ALPHAS))
    for held in _folds(drawn):
        scores = path(np.where(held, np.nan, drawn.y)).predict_path(drawn.X[held])
        errors += [_error(drawn, held, column) for column in scores.T]
    at = int(np.argmin(errors))
    scores = path(drawn.y).predict_path(drawn.X_test)[:, at]
    return {"errors": _listed(drawn.errors(scores)), "point": f"{ALPHAS[at]:g}"}


def _coupled(drawn: Draw, couplings: tuple[float, ...]) -> dict[str, Any]:
    """Co-RankRLS; a fold's scored rows are left out of the sums, its unscored rows stay out too."""
    errors = np.zeros((len(couplings), len(ALPHAS)))
    for held in _folds(drawn):
        summary = _summary(drawn, ~held)
        for c, coupling in enumerate(couplings):
            scores = _mean_scores(summary, coupling, drawn.X[held])
            errors[c] += [_error(drawn, held, column) for column in scores.T]
    c, a = (int(at) for at in np.unravel_index(int(np.argmin(errors)), errors.shape))
    scores = _mean_scores(_summary(drawn, np.ones(len(drawn.y), dtype=bool)), couplings[c], drawn.X_test)[:, a]
    point = f"{ALPHAS[a]:g}" if len(couplings) == 1 else f"{ALPHAS[a]:g} / {couplings[c]:g}"
    return {"errors": _listed(drawn.errors(scores)), "point": point, "alpha": ALPHAS[a], "coupling": couplings[c]}


def _curve(settings: Settings, repeat: int, hidden: float) -> list[tuple[int, float]]:
    drawn = draw(settings.seed, repeat, hidden)
    chosen = _views_cell(settings, repeat, hidden)["Co-RankRLS"]
    unscored = np.random.default_rng([settings.seed, repeat, 1]).permutation(np.flatnonzero(np.isnan(drawn.y)))
    at, found = ALPHAS.index(chosen["alpha"]), []
    for share in SHARES:
        kept = ~np.isnan(drawn.y)
        kept[unscored[: round(share * len(unscored))]] = True
        scores = _mean_scores(_summary(drawn, kept), chosen["coupling"], drawn.X_test)[:, at]
        found.append((round(share * len(unscored)), float(np.nanmean(drawn.errors(scores)))))
    return found


def _summary(drawn: Draw, kept: NDArray[np.bool_]) -> Summary:
    """Sums over some training rows, seen from the basis rows of all."""
    maps = tuple(FeatureMap.on_basis(view, drawn.X, view.basis) for view in drawn.views)
    return Summary.of(maps, RankingData.of(drawn.X[kept], drawn.y[kept], drawn.qid[kept]))


def _mean_scores(summary: Summary, coupling: float, rows: Floats) -> Floats:
    """Mean of the views for each of `ALPHAS`."""
    W = summary.spectrum(coupling).solve(ALPHAS)
    parts = zip(summary.maps, summary.blocks, strict=True)
    return np.asarray(np.mean([phi(rows) @ W[block] for phi, block in parts], axis=0))


def _folds(drawn: Draw) -> list[NDArray[np.bool_]]:
    held = []
    for _, test in QueryKFold(N_FOLDS).split(drawn.X, qid=drawn.qid):
        mask = np.zeros(len(drawn.y), dtype=bool)
        mask[test] = True
        held.append(mask)
    return held


def _error(drawn: Draw, held: NDArray[np.bool_], scores: Floats) -> float:
    return evaluate(drawn.y[held], scores, drawn.qid[held], "disagreement")["disagreement"].mean


def _test(cells: list[dict[str, Any]], base: str, other: str, hidden: float) -> str:
    a, b = (np.concatenate([_floats(cell[name]["errors"]) for cell in cells]) for name in (base, other))
    both = ~(np.isnan(a) | np.isnan(b))
    difference = b[both] - a[both]
    p = float(stats.wilcoxon(difference).pvalue) if difference.any() else 1.0
    return (
        f"{hidden:.0%} unscored, {other} against {base}: {difference.mean():+.4f} in disagreement error over "
        f"{len(difference)} test queries of all repeats (Wilcoxon p = {p:.2g}; a query may be in several repeats)."
    )


def _listed(errors: Floats) -> list[float | None]:
    return [None if np.isnan(error) else round(float(error), 6) for error in errors]


def _floats(errors: list[float | None]) -> Floats:
    return np.array([np.nan if error is None else error for error in errors])
