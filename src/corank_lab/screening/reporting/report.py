"""The report of a screening: one folder with the flow diagram, the numbers, a methods paragraph and further tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from corank.data import atomic_folder, csv_text
from corank.errors import InputError
from corank.tables import ReportTable
from corank_lab.screening.reporting.flow_diagram import flow_diagram
from corank_lab.screening.reporting.methods import ScreeningFacts, methods_paragraph

ALWAYS = ("methods.txt", "prisma.csv", "prisma.md", "prisma.svg")
"""Files of every report."""

KNOWN = (*ALWAYS, "agreement.csv", "agreement.md", "certificate.html", "certificate.json")
"""Files that a report may hold; a folder with another file is not replaced."""


def write_report(
    folder: str | os.PathLike[str],
    facts: ScreeningFacts,
    *,
    agreement: ReportTable | None = None,
    files: Mapping[str, str | bytes] | None = None,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> tuple[str, ...]:
    """Write the report of a screening; the folder appears with all files or not at all."""
    require_report_place(folder, files or {})
    table = facts.counts.table()
    contents: dict[str, str | bytes] = {
        "prisma.svg": flow_diagram(facts.counts),
        "prisma.csv": table_csv(table, keep_formulas=keep_formulas),
        "prisma.md": table.markdown() + "\n",
        "methods.txt": methods_paragraph(facts) + "\n",
    }
    if agreement is not None:
        contents["agreement.csv"] = table_csv(agreement, keep_formulas=keep_formulas)
        contents["agreement.md"] = agreement.markdown() + "\n"
    contents |= files or {}
    with atomic_folder(folder, overwrite=overwrite) as scratch:
        for name, content in contents.items():
            (scratch / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    return tuple(sorted(contents))


def require_report_place(folder: str | os.PathLike[str], files: Mapping[str, object] | None = None) -> None:
    """Raise `InputError` if a folder holds a file that is not part of a report, such as answers."""
    place = Path(folder)
    allowed = {*KNOWN, *(files or {})}
    for entry in sorted(place.iterdir()) if place.is_dir() else ():
        if entry.name not in allowed:
            raise InputError(
                f"{place} holds {entry.name}, which is not part of a report, so it is kept; choose another folder."
            )


def table_csv(table: ReportTable, *, keep_formulas: bool = False) -> str:
    """Return a table as CSV, with the decimals that the table shows."""
    rows = [list(table.columns), *(table.texts(row) for row in table.rows)]
    return csv_text(rows, keep_formulas=keep_formulas)
