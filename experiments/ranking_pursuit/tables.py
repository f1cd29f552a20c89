"""The five tables of the ranking pursuit paper next to our results, and paired tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.metrics import wilcoxon
from corank.tables import ReportTable
from experiments.ranking_pursuit.users import GROUPS

PAPER: dict[tuple[str, float], dict[str, tuple[float, float, float]]] = {
    ("Jester", 1.0): {
        "RLS": (0.425, 0.419, 0.383),
        "Matching pursuit": (0.428, 0.417, 0.381),
        "RankSVM": (0.412, 0.404, 0.372),
        "RankRLS": (0.409, 0.407, 0.374),
        "Sparse RankRLS": (0.414, 0.410, 0.380),
        "Ranking pursuit": (0.410, 0.404, 0.373),
        "CRRP": (0.413, 0.408, 0.373),
    },
    ("Jester", 0.5): {
        "RLS": (0.449, 0.434, 0.405),
        "Matching pursuit": (0.451, 0.433, 0.404),
        "RankSVM": (0.428, 0.417, 0.391),
        "RankRLS": (0.429, 0.418, 0.393),
        "Sparse RankRLS": (0.431, 0.424, 0.397),
        "Ranking pursuit": (0.428, 0.417, 0.393),
        "SS ranking pursuit": (0.419, 0.411, 0.381),
    },
    ("MovieLens", 1.0): {
        "RLS": (0.495, 0.494, 0.482),
        "Matching pursuit": (0.494, 0.497, 0.484),
        "RankSVM": (0.481, 0.472, 0.453),
        "RankRLS": (0.479, 0.472, 0.455),
        "Sparse RankRLS": (0.484, 0.478, 0.460),
        "Ranking pursuit": (0.480, 0.472, 0.453),
    },
    ("MovieLens", 0.5): {
        "RLS": (0.497, 0.495, 0.487),
        "Matching pursuit": (0.498, 0.495, 0.485),
        "RankSVM": (0.487, 0.479, 0.464),
        "RankRLS": (0.486, 0.479, 0.463),
        "Sparse RankRLS": (0.490, 0.485, 0.470),
        "Ranking pursuit": (0.487, 0.479, 0.462),
        "SS ranking pursuit": (0.481, 0.474, 0.458),
    },
}
"""Disagreement errors of Tables 1 to 4 (and CRRP's of Table 5) by group."""

PAPER_SQUARES = {
    "RLS": (21.6, 19.3, 15.2),
    "Matching pursuit": (20.1, 18.7, 14.9),
    "RankSVM": (34.2, 31.6, 28.9),
    "RankRLS": (33.8, 31.3, 29.2),
    "Sparse RankRLS": (36.5, 33.8, 32.9),
    "Ranking pursuit": (34.0, 30.9, 29.1),
}
"""Mean squared errors of Table 5."""

MethodResults = dict[str, dict[str, Any]]
"""Results of each method in one repeat."""
CellKey = tuple[str, float, tuple[int, int]]
"""Data set, share of known ratings, and group."""
Cells = dict[CellKey, list[MethodResults]]
Floats = NDArray[np.float64]


def tables_of(cells: Cells) -> tuple[tuple[ReportTable, ...], tuple[str, ...]]:
    """
    Build the tables of all results.

    cells: for each data set, setting and group, the repeats.
    Returns: for the report.
    """
    tables = [
        _errors(cells, "Table 1: Jester, supervised", "Jester", 1.0),
        _errors(cells, "Table 2: Jester, semi-supervised", "Jester", 0.5),
        _errors(cells, "Table 3: MovieLens, supervised", "MovieLens", 1.0),
        _errors(cells, "Table 4: MovieLens, semi-supervised", "MovieLens", 0.5),
        _squares(cells, "Table 5: mean squared error, Jester, supervised", "squares"),
        _squares(cells, "Table 5 with the level of each user's scores set to that of the training ratings", "levelled"),
        _errors(cells, "Jester, three ratings in twenty known", "Jester", 0.15),
        _errors(cells, "MovieLens, three ratings in twenty known", "MovieLens", 0.15),
        _shares(cells, "supervised", 1.0),
        _shares(cells, "semi-supervised", 0.5),
    ]
    tests, findings = _tests(cells)
    return (*tables, tests), findings


def _errors(cells: Cells, title: str, name: str, share: float) -> ReportTable:
    paper = PAPER.get((name, share), {})
    rows = tuple(
        (method, *_and_paper(cells, name, share, method, "errors", paper))
        for method in cells[name, share, GROUPS[0]][0]
    )
    return ReportTable(f"{title}, disagreement error", _columns(bool(paper)), rows, digits=3)


def _squares(cells: Cells, title: str, what: str) -> ReportTable:
    paper = PAPER_SQUARES if what == "squares" else {}
    rows = tuple(
        (method, *_and_paper(cells, "Jester", 1.0, method, what, paper))
        for method in cells["Jester", 1.0, GROUPS[0]][0]
    )
    note = "The disagreement errors of Table 5 are those of Table 1." if paper else ""
    return ReportTable(title, _columns(bool(paper)), rows, digits=1, note=note)


def _and_paper(
    cells: Cells, name: str, share: float, method: str, what: str, paper: dict[str, tuple[float, float, float]]
) -> tuple[float | None, ...]:
    """Our mean in each group, each followed by the paper's, if any."""
    ours = [float(np.nanmean(_values(cells, name, share, group, method, what))) for group in GROUPS]
    if not paper:
        return tuple(ours)
    theirs = paper.get(method, (None, None, None))
    return tuple(value for both in zip(ours, theirs, strict=True) for value in both)


def _columns(with_paper: bool) -> tuple[str, ...]:
    groups = [f"{low}-{high}" for low, high in GROUPS]
    return ("method", *(heading for group in groups for heading in ((group, "paper") if with_paper else (group,))))


def _shares(cells: Cells, what: str, share: float) -> ReportTable:
    names = ("Jester", "MovieLens")
    headings = tuple(f"{name} {low}-{high}" for name in names for low, high in GROUPS)
    rows: tuple[tuple[str | float | None, ...], ...] = tuple(
        (
            method,
            *(
                float(np.mean([cell[method]["share"] for cell in cells[name, share, group]]))
                for name in names
                for group in GROUPS
            ),
        )
        for method in cells["Jester", share, GROUPS[0]][0]
    )
    return ReportTable(
        f"Share of the training items that a model rests on, {what}", ("method", *headings), rows, digits=2
    )


SUPERVISED_PAIRS = (
    ("RankRLS", "RLS"),
    ("Ranking pursuit", "Matching pursuit"),
    ("Ranking pursuit", "RankRLS"),
    ("Ranking pursuit", "RankSVM"),
    ("CRRP", "Ranking pursuit"),
    ("CRRP with the mean first", "Ranking pursuit"),
)
VIEW_PAIRS = (
    ("SS ranking pursuit", "Ranking pursuit"),
    ("Two dictionaries, scored items", "Ranking pursuit"),
    ("Two dictionaries, not coupled", "Two dictionaries, scored items"),
    ("SS ranking pursuit", "Two dictionaries, not coupled"),
    ("SS pursuit, two sets of users", "Ranking pursuit"),
    ("SS pursuit, two sets of users", "Two sets of users, not coupled"),
    ("SS pursuit, two sets of users", "RankRLS"),
)
SHARED_PAIRS = (("Item mean", "RankRLS"), ("Collaborative", "RankRLS"), ("Collaborative", "Item mean"))
COMPARED = {
    1.0: (*SUPERVISED_PAIRS, *SHARED_PAIRS),
    0.5: (*VIEW_PAIRS, *SHARED_PAIRS),
    0.15: (*VIEW_PAIRS, *SHARED_PAIRS),
}
"""For each share of known ratings, methods and their baselines."""


def _tests(cells: Cells) -> tuple[ReportTable, tuple[str, ...]]:
    rows, findings = [], []
    for share, pairs in COMPARED.items():
        for method, base in pairs:
            lower, higher = 0, 0
            for name in ("Jester", "MovieLens"):
                row = [f"{share:.0%}", f"{method} against {base}", name]
                for group in GROUPS:
                    a, b = (_values(cells, name, share, group, which, "errors") for which in (method, base))
                    gaps = (a - b)[~np.isnan(a - b)]
                    p = wilcoxon(gaps)
                    lower += p < 0.05 and gaps.mean() < 0.0
                    higher += p < 0.05 and gaps.mean() > 0.0
                    row.append(f"{gaps.mean():+.4f} (p={p:.0e})")
                rows.append(tuple(row))
            findings.append(
                f"{share:.0%} of the ratings known, {method} against {base}: error significantly lower in {lower} and "
                f"higher in {higher} of {2 * len(GROUPS)} groups."
            )
    columns = ("known", "comparison", "data", *(f"{low}-{high}" for low, high in GROUPS))
    note = "Mean difference of the disagreement error, method minus what it is compared with; Wilcoxon's p over users."
    return ReportTable("Paired tests", columns, tuple(rows), note=note), tuple(findings)


def _values(cells: Cells, name: str, share: float, group: tuple[int, int], method: str, what: str) -> Floats:
    """One number for each user of each repeat, NaN where there is none."""
    return np.array([value for cell in cells[name, share, group] for value in cell[method][what]], dtype=np.float64)
