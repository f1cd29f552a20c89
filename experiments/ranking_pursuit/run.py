"""
Rank items for many users, each from a few ratings: Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013.

The features of an item are the ratings that 300 reference users gave it (their median if missing). Half of a user's
ratings are for training, the other half is to be ranked. The width of the Gaussian kernel and every other
parameter is chosen by the mean error over held-out users, drawn as the tested ones are. In the semi-supervised tables
only a share of the training ratings is known. The paper's two views each have half of the scored and half of the
unscored items as dictionary; two other views, not in the paper, have the ratings of half of the reference users as
features. The item mean and Collaborative, not in the paper, learn from all users who are neither held out nor tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from corank.comparison.report import Report
from experiments.datasets import jester, movielens
from experiments.options import ExperimentOptions
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.methods import METHODS, Method, errors_of
from experiments.ranking_pursuit.tables import CellKey, Cells, MethodResults, tables_of
from experiments.ranking_pursuit.users import GROUPS, Users, UsersRepeat, draw_users

WIDTHS = tuple(2.0**power for power in range(-15, 16))
DATA: dict[str, Callable[[], NDArray[np.float32]]] = {
    "Jester": jester.read_ratings,
    "MovieLens": movielens.read_ratings,
}
REPEATS = 10
SCARCE_REPEATS = 3
"""Largest number of repeats with less than half of the ratings known, a setting that the paper lacks."""
USERS = 300
QUICK_USERS = 50

SUPERVISED = (
    "RLS",
    "Matching pursuit",
    "RankSVM",
    "RankRLS",
    "Sparse RankRLS",
    "Ranking pursuit",
    "CRRP",
    "CRRP, rows and pairs of equal weight",
    "CRRP with the mean first",
)
VIEWS = (
    "Ranking pursuit",
    "Two dictionaries, scored items",
    "Two dictionaries, not coupled",
    "SS ranking pursuit",
    "Two sets of users, not coupled",
    "SS pursuit, two sets of users",
)
SHARED = ("Item mean", "Collaborative")
SHARES: dict[float, tuple[str, ...]] = {
    1.0: (*SUPERVISED, *SHARED),
    0.5: (*SUPERVISED[:5], *VIEWS, *SHARED),
    0.15: ("RankRLS", *VIEWS, *SHARED),
}
"""Shares of the training ratings that are known (1 and 0.5 are the paper's), and the methods compared there."""


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 10 repeats of 300 users by default; quick runs make 1 of 50, and try every third width.
    Returns: the paper's five tables next to our results, sparsity, and paired tests.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    n_users, widths = (QUICK_USERS, WIDTHS[::3]) if options.quick else (USERS, WIDTHS)
    wanted = [(name, share, group) for name in DATA for share in SHARES for group in GROUPS]
    trials = [(of, repeat) for repeat in range(repeats) for of in wanted if repeat < SCARCE_REPEATS or of[1] >= 0.5]
    options.expect(len(trials))
    cells: Cells = {of: [] for of in wanted}
    for of, repeat in trials:
        cells[of].append(_cell(options, of, repeat, n_users, widths))
    tables, findings = tables_of(cells)
    return Report(
        "Ranking pursuit: rank items from a few ratings",
        f"Repeats: {repeats} ({min(repeats, SCARCE_REPEATS)} with three ratings in twenty known), each with {n_users} "
        f"test users and {n_users} users to choose parameters on; Gaussian kernel exp(−d²/(2 width²)), {len(widths)} "
        "widths from 2⁻¹⁵ to 2¹⁵. Jester: the 24,983 users of part 1, who rated at least 36 jokes, so the group "
        "20-40 has 36 to 40. Parameters of ranking methods are chosen by the disagreement error, those of RLS and "
        "matching pursuit by the squared error and, in separate rows, by the disagreement error. Pairs of equal "
        "ratings are ignored. Tests are Wilcoxon's over users; a user may be in several repeats.",
        tables,
        findings,
    )


def _cell(
    options: ExperimentOptions, of: CellKey, repeat: int, n_users: int, widths: tuple[float, ...]
) -> MethodResults:
    name, share, group = of
    key = {
        "experiment": "ranking-pursuit", "data": name, "scored": share, "group": list(group), "repeat": repeat,
        "users": n_users,
    }  # fmt: skip

    def compute() -> MethodResults:
        rng = np.random.default_rng([options.seed, repeat, group[0]])
        drawn = draw_users(DATA[name](), group, n_users, n_users, share, rng)
        return try_methods(drawn, SHARES[share], widths)

    results: MethodResults = options.result(key, compute)
    return results


def try_methods(
    drawn: UsersRepeat,
    names: tuple[str, ...],
    widths: tuple[float, ...] = WIDTHS,
    methods: dict[str, Method] = METHODS,
    *,
    by_squares: bool = False,
) -> MethodResults:
    """
    Choose parameters on the held-out users, and test.

    drawn: one repeat.
    names: methods of `methods`.
    widths: widths of the kernel to choose from.
    methods: methods by name.
    by_squares: whether to test each ranking method once more, as ``"..., by squares"``, with parameters chosen by the
        squared error.
    Returns: for each method, and each regression method once more as ``"..., by order"``: the width and parameters
        chosen, the disagreement and squared error of each tested user, raw and with the level of the scores set to
        that of the training ratings, and the mean share of training items in use.
    """
    # systems of some tens of rows are too small for threads of the linear algebra
    with threadpool_limits(1, user_api="blas"):
        best = _chosen(drawn, [methods[name] for name in names], widths)
        out: MethodResults = {}
        for name in names:
            out[name] = _tested(methods[name], drawn, *best[name, methods[name].by_squares])
            if methods[name].by_squares:
                out[f"{name}, by order"] = _tested(methods[name], drawn, *best[name, False])
            elif by_squares:
                out[f"{name}, by squares"] = _tested(methods[name], drawn, *best[name, True])
    return out


def _chosen(
    drawn: UsersRepeat, methods: list[Method], widths: tuple[float, ...]
) -> dict[tuple[str, bool], tuple[float, int]]:
    """Width and point of the grid with the least mean error on the held-out users, by order and by squares."""
    least: dict[tuple[str, bool], float] = {}
    best: dict[tuple[str, bool], tuple[float, int]] = {}
    for width in widths:
        grams = Grams(drawn, width)
        if grams.is_blind:
            continue
        for method in methods:
            scores, _ = method.scores(grams, _seen_by(method, drawn.held_out))
            for by_squares, errors in zip((False, True), errors_of(scores, drawn.held_out), strict=True):
                means = np.nanmean(errors, axis=0)
                index = int(np.argmin(means))
                if means[index] < least.get((method.name, by_squares), np.inf):
                    least[method.name, by_squares], best[method.name, by_squares] = float(means[index]), (width, index)
    return best


def _seen_by(method: Method, users: Users) -> Users:
    return users if method.sees_unscored else users.scored()


def _tested(method: Method, drawn: UsersRepeat, width: float, index: int) -> dict[str, Any]:
    grams, users = Grams(drawn, width), _seen_by(method, drawn.tested)
    scores, shares = method.scores(grams, users)
    disagreement, squares = errors_of(scores[:, [index]], users)
    trained = users.on_training_items()
    missing = trained.y_test - method.scores(grams, trained)[0][:, index]
    level = np.add.reduceat(missing, trained.test_starts[:-1]) / np.diff(trained.test_starts)
    _, levelled = errors_of(scores[:, [index]] + level[users.test_user, None], users)
    return {
        "width": width,
        "point": method.grid[index],
        "errors": [None if np.isnan(error) else round(float(error), 6) for error in disagreement[:, 0]],
        "squares": [round(float(error), 5) for error in squares[:, 0]],
        "levelled": [round(float(error), 5) for error in levelled[:, 0]],
        "share": round(float(np.mean(shares[:, index])), 4),
    }
