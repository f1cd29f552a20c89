"""The five tables of the ranking pursuit paper, its figures beside ours, and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.experiments.pursuit_users import GROUPS
from corank.experiments.report import Table

PAPER: dict[tuple[str, bool], dict[str, tuple[float, float, float]]] = {
    ("Jester", False): {
        "RLS": (0.425, 0.419, 0.383),
        "Matching pursuit": (0.428, 0.417, 0.381),
        "RankSVM": (0.412, 0.404, 0.372),
        "RankRLS": (0.409, 0.407, 0.374),
        "Sparse RankRLS": (0.414, 0.410, 0.380),
        "Ranking pursuit": (0.410, 0.404, 0.373),
        "CRRP": (0.413, 0.408, 0.373),
    },
    ("Jester", True): {
        "RLS": (0.449, 0.434, 0.405),
        "Matching pursuit": (0.451, 0.433, 0.404),
        "RankSVM": (0.428, 0.417, 0.391),
        "RankRLS": (0.429, 0.418, 0.393),
        "Sparse RankRLS": (0.431, 0.424, 0.397),
        "Ranking pursuit": (0.428, 0.417, 0.393),
        "SS ranking pursuit": (0.419, 0.411, 0.381),
    },
    ("MovieLens", False): {
        "RLS": (0.495, 0.494, 0.482),
        "Matching pursuit": (0.494, 0.497, 0.484),
        "RankSVM": (0.481, 0.472, 0.453),
        "RankRLS": (0.479, 0.472, 0.455),
        "Sparse RankRLS": (0.484, 0.478, 0.460),
        "Ranking pursuit": (0.480, 0.472, 0.453),
    },
    ("MovieLens", True): {
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

Cells = dict[tuple[str, bool, tuple[int, int]], list[dict[str, dict[str, Any]]]]
Floats = NDArray[np.float64]


def tables_of(cells: Cells) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """
    Lay out all results.

    Parameters
    ----------
    cells : dict
        For each data set, setting and group, the repeats.

    Returns
    -------
    tables, findings : tuples
        For the report.
    """
    numbers = {("Jester", False): 1, ("Jester", True): 2, ("MovieLens", False): 3, ("MovieLens", True): 4}
    tables = [_errors(cells, name, hide, number) for (name, hide), number in numbers.items()]
    tables.append(_squares(cells))
    tables += [_shares(cells, hide) for hide in (False, True)]
    tests, findings = _tests(cells)
    return (*tables, tests), findings


def _errors(cells: Cells, name: str, hide: bool, number: int) -> Table:
    paper = PAPER[name, hide]
    rows = tuple(
        (method, *(value for group in range(3) for value in _beside(cells, name, hide, method, group, paper)))
        for method in cells[name, hide, GROUPS[0]][0]
    )
    what = "semi-supervised" if hide else "supervised"
    return Table(f"Table {number}: disagreement error, {name}, {what}", _columns(), rows, digits=3)


def _beside(
    cells: Cells, name: str, hide: bool, method: str, group: int, paper: dict[str, tuple[float, float, float]]
) -> tuple[float, float | None]:
    ours = float(np.nanmean(_values(cells, name, hide, GROUPS[group], method, "errors")))
    return ours, paper[method][group] if method in paper else None


def _columns() -> tuple[str, ...]:
    return ("method", *(heading for low, high in GROUPS for heading in (f"{low}-{high}", "paper")))


def _squares(cells: Cells) -> Table:
    rows: tuple[tuple[str | float | None, ...], ...] = tuple(
        (
            method,
            *(
                value
                for at, group in enumerate(GROUPS)
                for value in (
                    float(np.mean(_values(cells, "Jester", False, group, method, "squares"))),
                    PAPER_SQUARES[method][at] if method in PAPER_SQUARES else None,
                )
            ),
        )
        for method in cells["Jester", False, GROUPS[0]][0]
    )
    return Table(
        "Table 5: mean squared error, Jester, supervised", _columns(), rows, digits=1,
        note="The disagreement errors of Table 5 are those of Table 1.",
    )  # fmt: skip


def _shares(cells: Cells, hide: bool) -> Table:
    names = [name for name in ("Jester", "MovieLens") if (name, hide, GROUPS[0]) in cells]
    headings = tuple(f"{name} {low}-{high}" for name in names for low, high in GROUPS)
    rows: tuple[tuple[str | float | None, ...], ...] = tuple(
        (
            method,
            *(
                float(np.mean([cell[method]["share"] for cell in cells[name, hide, group]]))
                for name in names
                for group in GROUPS
            ),
        )
        for method in cells["Jester", hide, GROUPS[0]][0]
    )
    what = "semi-supervised" if hide else "supervised"
    return Table(f"Share of the training items that a model rests on, {what}", ("method", *headings), rows, digits=2)


PAIRS = (
    (False, "RankRLS", "RLS", "RankRLS against RLS"),
    (False, "Ranking pursuit", "Matching pursuit", "Ranking against matching pursuit"),
    (False, "Ranking pursuit", "RankRLS", "Ranking pursuit against RankRLS"),
    (True, "SS ranking pursuit", "Ranking pursuit", "Semi-supervised against supervised pursuit"),
    (True, "SS ranking pursuit", "Two views, not coupled", "Coupled against uncoupled views"),
    (True, "SS ranking pursuit", "RankRLS", "Semi-supervised pursuit against RankRLS"),
)
"""What is compared: whether ratings are hidden, the method, and against which."""


def _tests(cells: Cells) -> tuple[Table, tuple[str, ...]]:
    from scipy import stats

    rows, findings = [], []
    for name in ("Jester", "MovieLens"):
        for hide, method, base, title in PAIRS:
            row: list[str | float] = [name, title]
            signs = []
            for group in GROUPS:
                a = _values(cells, name, hide, group, method, "errors")
                b = _values(cells, name, hide, group, base, "errors")
                gaps = (a - b)[~np.isnan(a - b)]
                p = float(stats.wilcoxon(gaps).pvalue) if gaps.any() else 1.0
                signs.append(0 if p >= 0.05 else int(np.sign(gaps.mean())))
                row.append(f"{gaps.mean():+.4f} (p={p:.1e})")
            rows.append(tuple(row))
            words = {-1: "lower", 0: "not significantly different", 1: "higher"}
            findings.append(f"{name}, {title}: error {', '.join(words[sign] for sign in signs)} in the three groups.")
    columns = ("data", "comparison", *(f"{low}-{high}" for low, high in GROUPS))
    note = "Mean difference of the disagreement error, method minus what it is compared with; Wilcoxon's p over users."
    return Table("Paired tests", columns, tuple(rows), note=note), tuple(findings)


def _values(cells: Cells, name: str, hide: bool, group: tuple[int, int], method: str, what: str) -> Floats:
    """One number for each user of each repeat, NaN where there is none."""
    return np.array([value for cell in cells[name, hide, group] for value in cell[method][what]], dtype=np.float64)
