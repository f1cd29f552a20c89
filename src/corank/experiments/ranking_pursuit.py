"""
Order items for many users, each from a few ratings: Tsivtsivadze and Heskes, Semi-supervised ranking pursuit, 2013.

The features of an item are the ratings that 300 reference users gave it (their median where they gave none). Half of a
user's ratings are learnt from, the other half is to be ordered. The width of the Gaussian kernel and every other
parameter is chosen by the mean error over held-out users, drawn as the tested ones are. In the semi-supervised tables
half of the training ratings are hidden; each of two views has half of the scored and half of the unscored items
as its dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data import jester, movielens
from corank.experiments.pursuit_methods import METHODS, Method, errors_of
from corank.experiments.pursuit_tables import tables_of
from corank.experiments.pursuit_users import GROUPS, Draw, Users, draw
from corank.experiments.report import Report
from corank.experiments.settings import Settings

WIDTHS = tuple(2.0**power for power in range(-15, 16))
DATA: dict[str, Callable[[], NDArray[np.float32]]] = {
    "Jester": jester.read_ratings,
    "MovieLens": movielens.read_ratings,
}
REPEATS = 10
USERS = 300
QUICK_USERS = 50

SUPERVISED = ("RLS", "Matching pursuit", "RankSVM", "RankRLS", "Sparse RankRLS", "Ranking pursuit", "CRRP")
SEMI = (*SUPERVISED[:-1], "Two views, not coupled", "SS ranking pursuit")

Cell = dict[str, dict[str, Any]]


def run(settings: Settings) -> Report:
    """
    Run the experiment.

    Parameters
    ----------
    settings : Settings
        10 repeats of 300 users by default; quick runs make 1 of 50.

    Returns
    -------
    Report
        The paper's five tables with ours beside, sparsity, and paired tests.
    """
    repeats = settings.repeats or (1 if settings.quick else REPEATS)
    n_users = QUICK_USERS if settings.quick else USERS
    settings.expect(2 * len(DATA) * len(GROUPS) * repeats)
    cells = {
        (name, hide, group): [_cell(settings, name, hide, group, repeat, n_users) for repeat in range(repeats)]
        for name in DATA
        for hide in (False, True)
        for group in GROUPS
    }
    tables, findings = tables_of(cells)
    return Report(
        "Ranking pursuit: order items from a few ratings",
        f"{repeats} repeats of {n_users} users to test on and {n_users} to choose parameters on; Gaussian kernel "
        "exp(−d²/(2 width²)), widths 2⁻¹⁵ to 2¹⁵. Jester: the 24,983 users of part 1, who rated 36 jokes or more, so "
        "that the group 20-40 is one of 36 to 40. Ranking methods are chosen by the disagreement error; RLS and "
        "matching pursuit by the squared error, and in rows of their own by the disagreement error. Tests are "
        "Wilcoxon's over users; a user may be in several repeats.",
        tables,
        findings,
    )


def _cell(settings: Settings, name: str, hide: bool, group: tuple[int, int], repeat: int, n_users: int) -> Cell:
    key = {
        "experiment": "ranking-pursuit", "data": name, "hide": hide, "group": list(group), "repeat": repeat,
        "users": n_users,
    }  # fmt: skip

    def compute() -> Cell:
        rng = np.random.default_rng([settings.seed, repeat, group[0]])
        drawn = draw(DATA[name](), group, n_users, n_users, hide, rng)
        return trial(drawn, SEMI if hide else SUPERVISED)

    found: Cell = settings.result(key, compute)
    return found


def trial(drawn: Draw, names: tuple[str, ...]) -> Cell:
    """
    Choose parameters on the held-out users, and test.

    Parameters
    ----------
    drawn : Draw
        One repeat.
    names : tuple of str
        Methods of `METHODS`.

    Returns
    -------
    dict
        For each method, and each regression method once more as ``"..., by order"``: the width and parameters chosen,
        the disagreement and squared error of each tested user, and the mean share of training items in use.
    """
    best: dict[tuple[str, bool], tuple[float, float, int]] = {}
    for width in WIDTHS:
        K = gram(drawn.distances, width)
        if K is None:
            continue
        for name in names:
            scores, _ = METHODS[name].run(K, _seen_by(METHODS[name], drawn.held_out))
            for by_squares, errors in zip((False, True), errors_of(scores, drawn.held_out), strict=True):
                means = np.nanmean(errors, axis=0)
                at = int(np.argmin(means))
                if (name, by_squares) not in best or means[at] < best[name, by_squares][0]:
                    best[name, by_squares] = (float(means[at]), width, at)
    out: Cell = {}
    for name in names:
        out[name] = _tested(METHODS[name], drawn, *best[name, METHODS[name].by_squares][1:])
        if METHODS[name].by_squares:
            out[f"{name}, by order"] = _tested(METHODS[name], drawn, *best[name, False][1:])
    return out


def gram(distances: NDArray[np.float64], width: float) -> NDArray[np.float64] | None:
    """
    Compute the Gram matrix of a width.

    Parameters
    ----------
    distances : array of shape (N, N)
        Squared distances.
    width : float
        Of the Gaussian.

    Returns
    -------
    array of shape (N, N), or None
        None where no two different items have any similarity left, so that nothing can be predicted.
    """
    K = np.exp(distances / (-2.0 * width**2))
    # numbers whose squares are too small to be held make arithmetic a hundred times slower, and tell nothing
    K[np.sqrt(np.finfo(np.float64).tiny) > K] = 0.0
    return K if (K[distances > 0.0] > 0.0).any() else None


def _seen_by(method: Method, users: Users) -> Users:
    return users if method.sees_unscored else users.scored()


def _tested(method: Method, drawn: Draw, width: float, at: int) -> dict[str, Any]:
    K = gram(drawn.distances, width)
    assert K is not None
    scores, shares = method.run(K, _seen_by(method, drawn.tested))
    disagreement, squares = errors_of(scores[:, [at]], drawn.tested)
    return {
        "width": width,
        "point": method.grid[at],
        "errors": [None if np.isnan(error) else round(float(error), 6) for error in disagreement[:, 0]],
        "squares": [round(float(error), 5) for error in squares[:, 0]],
        "share": round(float(np.mean(shares[:, at])), 4),
    }
