"""
Table 5 of Tsivtsivadze and Heskes (2013) by protocol: raw squared errors, and with the level of the scores set.

The paper does not say how a ranker, whose scores have no level, is scored by the mean squared error, nor by which error
the parameters of the regression task were chosen. Here every method is measured in four ways: parameters chosen by the
disagreement error or by the squared error of the raw scores on held-out users; scores as they are, or moved by a
constant for each user, so that their mean over the training items is that of the training ratings.
"""

from __future__ import annotations

import numpy as np

from corank.comparison.report import Report
from corank.tables import ReportTable
from experiments.options import ExperimentOptions
from experiments.ranking_pursuit.grams import Grams
from experiments.ranking_pursuit.methods import METHODS, Floats, Method
from experiments.ranking_pursuit.run import DATA, try_methods
from experiments.ranking_pursuit.tables import PAPER_SQUARES, MethodResults
from experiments.ranking_pursuit.users import GROUPS, Users, draw_users

WIDTHS = tuple(2.0**power for power in range(-1, 16, 2))
REPEATS = 1
USERS = 150
QUICK_USERS = 20
PAPER = {**PAPER_SQUARES, "CRRP": (None, None, None)}
NOTHING = "All scores 0"


def nothing(grams: Grams, users: Users) -> tuple[Floats, Floats]:
    """Score all items 0; with the level set, this is the mean of the user's training ratings."""
    return np.zeros((len(users.test), 1)), np.zeros((len(users), 1))


TABLE_5 = {
    NOTHING: Method(NOTHING, ("",), nothing),
    **{name: METHODS[name] for name in (*PAPER, "CRRP with the mean first")},
}


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 1 repeat of 150 users by default; quick runs make 1 of 20.
    Returns: one table for each group of reference users.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    n_users = QUICK_USERS if options.quick else USERS
    options.expect(repeats * len(GROUPS))
    cells: dict[tuple[int, int], list[MethodResults]] = {group: [] for group in GROUPS}
    for repeat in range(repeats):
        for group in GROUPS:
            cells[group].append(_cell(options, group, repeat, n_users))
    return Report(
        "Table 5 of ranking pursuit by protocol",
        f"Jester, all training ratings known. Repeats: {repeats}, each with {n_users} test users and {n_users} other "
        f"users to choose parameters on; Gaussian kernel, {len(WIDTHS)} widths from 2⁻¹ to 2¹⁵. Mean squared error "
        "over users. By order, by squares: parameters chosen by the disagreement error, or by the squared error of the "
        "raw scores. Raw: scores as they are. Level set: a constant is added to the scores of each user, so that "
        "their mean over the training items is the mean training rating.",
        tuple(_table(group, index, cells[group]) for index, group in enumerate(GROUPS)),
        tuple(_finding(group, index, cells[group]) for index, group in enumerate(GROUPS)),
    )


def _cell(options: ExperimentOptions, group: tuple[int, int], repeat: int, n_users: int) -> MethodResults:
    key = {"experiment": "pursuit-squares", "group": list(group), "repeat": repeat, "users": n_users}

    def compute() -> MethodResults:
        rng = np.random.default_rng([options.seed, repeat, group[0]])
        drawn = draw_users(DATA["Jester"](), group, n_users, n_users, 1.0, rng)
        return try_methods(drawn, tuple(TABLE_5), WIDTHS, TABLE_5, by_squares=True)

    results: MethodResults = options.result(key, compute)
    return results


def _table(group: tuple[int, int], index: int, repeats: list[MethodResults]) -> ReportTable:
    columns = ("method", "paper", "raw, by order", "raw, by squares", "level set, by order", "level set, by squares")
    rows = tuple((name, PAPER.get(name, (None,) * 3)[index], *_errors(repeats, name)) for name in TABLE_5)
    formats = ("", ".1f", ".3g", ".3g", ".1f", ".1f")
    return ReportTable(f"Mean squared error, group {group[0]}-{group[1]}", columns, rows, digits=1, formats=formats)


def _errors(repeats: list[MethodResults], name: str) -> list[float]:
    """Raw and levelled errors, each with parameters chosen by order and by squares."""
    by_order, by_squares = name, f"{name}, by squares"
    if TABLE_5[name].by_squares:
        by_order, by_squares = f"{name}, by order", name
    return [
        float(np.mean([cell[which][what] for cell in repeats]))
        for what in ("squares", "levelled")
        for which in (by_order, by_squares)
    ]


def _finding(group: tuple[int, int], index: int, repeats: list[MethodResults]) -> str:
    """Say which protocol is nearest to the paper's figures of the methods that only rank."""
    rankers = ("RankSVM", "RankRLS", "Sparse RankRLS", "Ranking pursuit")
    ours = np.array([_errors(repeats, name) for name in rankers])
    theirs = np.array([[PAPER[name][index]] for name in rankers], dtype=np.float64)
    far = np.abs(np.log(ours / theirs)).mean(axis=0)
    ways = ("raw, by order", "raw, by squares", "level set, by order", "level set, by squares")
    order = np.argsort(far)
    return (
        f"Group {group[0]}-{group[1]}: for the four rankers the protocol nearest to the paper's figures is "
        f'"{ways[order[0]]}", by a mean factor of {np.exp(far[order[0]]):.2f}; next "{ways[order[1]]}", '
        f"{np.exp(far[order[1]]):.2f}."
    )
