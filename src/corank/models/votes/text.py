"""Show a leaderboard: tables, sentences and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corank.errors import import_extra
from corank.models.votes.laplace import log_probabilities
from corank.tables import ReportTable

if TYPE_CHECKING:
    from corank.models.votes.leaderboard import Leaderboard

MAX_ITEMS = 60
"""Items of the plot of intervals; the matrix shows half as many."""


def board_table(board: Leaderboard) -> ReportTable:
    """Return the items with scores, intervals, ranks and numbers of votes, the best first."""
    against = (board.win_matrix().sum(axis=1) - 0.5) / max(len(board.items_) - 1, 1)
    columns = (board.scores_, board.lower_, board.upper_, against)
    rows = tuple(
        (str(best) if best == worst else f"{best}–{worst}", name, *map(float, values), int(n))
        for (best, worst), name, values, n in zip(
            board.ranks_.tolist(), board.items_, zip(*columns, strict=True), board.n_votes_, strict=True
        )
    )
    return ReportTable(
        "", ("ranks", "item", "score", "low", "high", "wins", "votes"), rows, digits=2,
        note=f"score: difference to the mean item, with its {board.level:.0%} interval; ranks: sets that hold together "
        f"with probability {board.level:.0%}; wins: expected share of wins against the others, ties half.",
    )  # fmt: skip


def judge_table(board: Leaderboard) -> ReportTable:
    """Return the judges with their votes, reliability and worth, the most reliable first."""
    votes = board.votes_
    a, b = np.triu_indices(len(board.items_), 1)
    delta = (board.scores_[a] - board.scores_[b])[:: max(len(a) // 2000, 1)]

    def information_of(r: float) -> float:
        p = np.exp(log_probabilities(r * delta, float(np.log(board.tie_weight_ or 1e-300))))
        return float(r * r * np.mean(p[:, 0] + p[:, 2] - (p[:, 0] - p[:, 2]) ** 2))

    worth = [information_of(float(r)) / information_of(1.0) for r in board.reliabilities_]
    n_votes = np.zeros(0) if votes.judge is None else np.bincount(votes.judge, votes.count, len(votes.judges))
    counts = dict(zip(votes.judges, n_votes.astype(int).tolist(), strict=False))
    half = 1.96 * board.reliability_std_
    rows = tuple(
        (board.judges_[i], counts[board.judges_[i]], float(board.reliabilities_[i]),
         float(board.reliabilities_[i] - half[i]), float(board.reliabilities_[i] + half[i]), worth[i])
        for i in np.argsort(-board.reliabilities_, kind="stable").tolist()
    )  # fmt: skip
    return ReportTable(
        "Judges", ("judge", "votes", "reliability", "low", "high", "worth"), rows, digits=2,
        note="reliability: 1 is typical, 0 a coin, below 0 the reverse order, with its 95 % interval; worth: votes of "
        "a typical judge that one vote of this judge replaces.",
    )  # fmt: skip


def sentences(board: Leaderboard) -> tuple[str, ...]:
    """Return what the votes decide, the most important first."""
    first, second = board.items_[:2]
    win, tie, _ = board.predict_proba(first, second)[0].tolist()
    n, votes = board.votes_to_separate(), board.votes_
    lead = f"{first} leads {second}: it gets {win + 0.5 * tie:.0%} of their votes, ties half"
    if board.slope_ is None and not any({first, second} <= set(part) for part in votes.components()):
        lead = f"No chain of votes connects {first} and {second}, so that their difference is not determined."
    elif board.scores_[0] - board.scores_[1] < 1e-6:
        lead = f"{first} and {second} have equal scores so far."
    elif n == 0:
        lead += f"; the difference is certain at {board.level:.0%}."
    elif n is None:
        lead += "; more than a million votes on the two would be needed to separate them."
    else:
        lead += f"; about {n:,} more votes on the two would separate them if the difference stays."
    out, top = [lead], [name for name, (best, _) in zip(board.items_, board.ranks_, strict=True) if best == 1]
    if len(top) > 1:
        out.append(f"{len(top)} items may be the best: {listed(top)}.")
    if board.slope_ is not None:
        out.append(
            f"The cheap judge's scores correlate with the people's by about {board.correlation_:.2f}: one unit is "
            f"{board.slope_:.2f} of the people's, and {board.tau_:.2f} (standard deviation) is not explained."
        )
    if abs(board.side_bias_) >= 0.005:
        p = np.exp(log_probabilities(np.array([board.side_bias_]), np.log(board.tie_weight_ or 1e-300)))[0]
        out.append(
            f"The item shown first gets {p[0] + 0.5 * p[1]:.0%} of the votes on equal items; scores exclude this."
        )
    if votes.n_ties:
        bad = f", of which {votes.n_both_bad:,} are both bad" if votes.n_both_bad else ""
        out.append(f"{votes.n_ties:,} of {len(votes):,} votes are ties{bad}.")
    if board.dispersion_ > 1.0:
        what = "judge" if votes.group is None else "group"
        out.append(f"Votes of a {what} depend on each other: variances are multiplied by {board.dispersion_:.2f}.")
    if len(votes.judges) == 1:
        out.append("All votes are from one judge, so that reliability and agreement cannot be estimated.")
    return (*out, *(f"{note}." for note in votes.notes))


def draw(board: Leaderboard, path: Any = None) -> Any:
    """Return a figure of intervals and win probabilities, and write it if a path is given."""
    import_extra("matplotlib", "report")
    from matplotlib.figure import Figure

    n = min(len(board.items_), MAX_ITEMS)
    k, names = min(n, MAX_ITEMS // 2), [name if len(name) <= 28 else name[:27] + "…" for name in board.items_[:n]]
    figure = Figure((11.0, max(1.2 + 0.26 * n, 3.6)), layout="constrained")
    left, right = figure.subplots(1, 2)
    score, low, high = board.scores_[:n], board.lower_[:n], board.upper_[:n]
    left.errorbar(score, np.arange(n), xerr=[score - low, high - score], fmt="o", color="#014c9c", capsize=2)
    left.axvline(0.0, color="#c9ced6", linewidth=1, zorder=0)
    left.set_yticks(np.arange(n), names)
    left.set_ylim(n - 0.5, -0.5)
    left.set_xlabel(f"score, difference to the mean item, {board.level:.0%} interval")
    matrix = board.win_matrix()[:k, :k]
    image = right.imshow(np.where(np.eye(k, dtype=bool), np.nan, matrix), vmin=0.0, vmax=1.0, cmap="RdBu")
    right.set_xticks(np.arange(k), names[:k], rotation=90)
    right.set_yticks(np.arange(k), names[:k])
    right.set_title("share of votes of the row\nagainst the column, ties half", fontsize=10)
    for a, b in np.argwhere(~np.eye(k, dtype=bool)) if k <= 12 else ():
        color = "w" if abs(matrix[a, b] - 0.5) > 0.3 else "k"
        right.text(b, a, f"{matrix[a, b]:.2f}", ha="center", va="center", fontsize=8, color=color)
    figure.colorbar(image, ax=right, shrink=0.8)
    if path is not None:
        suffix = str(path).rsplit(".", 1)[-1]
        figure.savefig(path, dpi=150, format=suffix if suffix in ("png", "svg", "pdf") else "png")
    return figure


def listed(names: Sequence[str], n: int = 6) -> str:
    """Join names, at most n of them."""
    return ", ".join(names[:n]) + (f" and {len(names) - n} more" if len(names) > n else "")
