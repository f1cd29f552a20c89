"""The page of a leaderboard from votes: intervals, win probabilities, judges, next votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank.comparison.report.blocks import BulletList, Code, Document, Facts, PageBlock, Paragraph, Plot, Section
from corank.comparison.report.charts import IntervalRow, interval_chart
from corank.tables import ReportTable

if TYPE_CHECKING:
    from corank.models import Leaderboard

MAX_INTERVALS, MAX_COLUMNS, N_NEXT = 40, 12, 5
"""Items of the chart and of the matrix of wins, and number of next votes."""


def leaderboard_page(board: Leaderboard, title: str, command: str = "") -> str:
    """Return one self-contained HTML page."""
    first, *rest = board.sentences()
    votes = board.votes_
    facts = (
        ("votes", f"{len(votes):,}"), ("items", str(len(board.items_))), ("ties", f"{votes.n_ties:,}"),
        ("both bad", f"{votes.n_both_bad:,}"), ("judges", str(len(votes.judges) or "unknown")),
        ("groups", str(len(votes.groups) or "none")),
    )  # fmt: skip
    sections = [
        Section("result", "Leaderboard", [Paragraph(first, "verdict"), Facts(facts), _intervals(board), board.table()]),
        Section("wins", "Win probabilities", [_matrix(board)]),
        Section(
            "groups",
            "Items that cannot be told apart",
            [BulletList(tuple(", ".join(group) for group in board.groups_))],
        ),
        Section("judges", "Judges", [board.judge_table()] if board.judges_ else []),
        Section("next", "Next votes", [_next(board)]),
        Section("notes", "Notes", [BulletList(tuple(rest))] if rest else []),
        Section("repeat", "How to repeat", [Code(command)] if command else []),
    ]
    return Document(title, sections).html()


def _intervals(board: Leaderboard) -> PageBlock:
    rows = [
        IntervalRow(name, float(board.scores_[i]), float(board.lower_[i]), float(board.upper_[i]), is_strong=i == 0)
        for i, name in enumerate(board.items_[:MAX_INTERVALS])
    ]
    chart = interval_chart(rows, "score, difference to the mean item")
    described = "; ".join(f"{row.name} {row.mean:.2f}, {row.low:.2f} to {row.high:.2f}" for row in rows)
    caption = f"Score of each item with its {board.level:.0%} interval."
    return Plot.of(chart, "scores", "Scores", described, caption, is_lone=True)


def _matrix(board: Leaderboard) -> PageBlock:
    n = min(len(board.items_), MAX_COLUMNS)
    wins = board.win_matrix()[:n, :n]
    rows = tuple(
        (name, *(None if a == b else float(wins[a, b]) for b in range(n))) for a, name in enumerate(board.items_[:n])
    )
    note = "Expected share of votes of the row against the column, ties half."
    more = f" The first {n} of {len(board.items_)} items." if n < len(board.items_) else ""
    return ReportTable("Wins", ("item", *board.items_[:n]), rows, digits=2, note=note + more)


def _next(board: Leaderboard) -> PageBlock:
    rows = tuple((a, b, who or "anybody") for a, b, who in board.next_votes(N_NEXT))
    return ReportTable("Votes that say most about the best item", ("item", "against", "judge"), rows)
