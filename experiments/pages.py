"""
Fill pages with stored results: ``python -m experiments.pages``.

A page holds hand-written text and two kinds of marks, which are comments and do not show:

* ``<!-- results NAME -->`` ... ``<!-- end of results -->``: the lines between are replaced by the report of an
  experiment. ``<!-- results NAME: TITLE -->`` is the table whose title begins so; ``about``, ``findings``,
  ``findings BEGINNING`` and ``provenance`` name the other parts. The mark without a title then shows what remains, with
  command, commit, date, versions and machine. An experiment without stored results is marked as not measured yet.
* ``.473<!--= NAME > TITLE > ROW > COLUMN -->``: a figure inside a sentence. TITLE and ROW are beginnings, of a title
  and of the cells of a row, separated by commas; a row whose whole cells they are comes first. The new figure has the
  sign, the decimals and the unit of the old one. A last part ``> WORDS`` takes the number after these words;
  ``NAME > findings > BEGINNING > WORDS`` does so in a finding; and ``SOURCE; minus SOURCE`` is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import TypeVar

from corank.comparison.report import Report, bullets, paragraph, picture
from corank.data.durable.atomic import atomic_file
from corank.errors import InputError
from corank.tables import Cell, ReportTable
from experiments.stored import ROOT, StoredResults, is_stored

T = TypeVar("T")
TEXTS = ("about", "findings")
END = "<!-- end of results -->"
BLOCK = re.compile(rf"<!-- results (?P<name>[\w-]+)(?:: (?P<part>[^\n]+?))? -->\n.*?{END}", re.DOTALL)
FIGURE = re.compile(
    r"(?P<figure>[+−-]?(?:\d[\d,]*)?(?:\.\d+|(?<=\d))(?:e[+-]?\d+)?(?: ?%)?)<!--=\s+(?P<source>.*?)\s+-->", re.DOTALL
)
NUMBER = re.compile(r"[+−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?\s?%?|[+−-]?\.\d+(?:e[+-]?\d+)?\s?%?")


class Filler:
    """
    Fill texts from the results in a folder.

    folder: folder of the stored results; None for that of the repository.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.read = cache(lambda name: StoredResults.read(name, folder))

    def fill(self, text: str) -> str:
        """Return a page with the figures and tables of the stored results."""
        placed = {(outcomes["name"], outcomes["part"]) for outcomes in BLOCK.finditer(text) if outcomes["part"]}
        text = BLOCK.sub(lambda outcomes: self._block(outcomes, placed), text)
        return FIGURE.sub(
            lambda outcomes: outcomes[0].replace(
                outcomes["figure"], like(outcomes["figure"], self.value(" ".join(outcomes["source"].split()))), 1
            ),
            text,
        )

    def value(self, source: str) -> float:
        """Return the number that a mark names."""
        if "; minus " in source:
            first, _, second = source.partition("; minus ")
            return self.value(first) - self.value(second)
        name, *parts = source.split(" > ")
        if len(parts) not in (3, 4):
            raise InputError(f"the mark '{source}' must be NAME > TITLE > ROW > COLUMN.")
        report = self.read(name).report
        if parts[0] == "findings":
            (sentence,) = _one(source, [item for item in report.findings if item.startswith(parts[1])])
            return _number(source, sentence, parts[2])
        table = find_table(report, parts[0], source)
        (row,) = _one(source, _rows(table, parts[1]))
        (column,) = _one(source, [index for index, column in enumerate(table.columns) if column == parts[2]])
        cell = row[column]
        return float(cell) if isinstance(cell, (int, float)) else _number(source, f"{cell}", *parts[3:])

    def _block(self, outcomes: re.Match[str], placed: set[tuple[str, str]]) -> str:
        head = outcomes[0].splitlines()[0]
        if not is_stored(outcomes["name"], self.folder):
            return f"{head}\n\n*Not measured yet: `make experiment NAME={outcomes['name']}`.*\n\n{END}"
        results = self.read(outcomes["name"])
        report, part = results.report, outcomes["part"]
        elsewhere = [of for name, of in placed if name == results.name]
        if part is not None:
            shown = [results.provenance if part == "provenance" else _part(report, part)]
        else:
            placed_tables = [
                find_table(report, of, of) for of in elsewhere if not of.startswith((*TEXTS, "provenance"))
            ]
            content = tuple(item for item in report.findings if not any(_is_finding(item, of) for of in elsewhere))
            outside = BLOCK.sub("", outcomes.string)
            shown = [
                results.provenance,
                *([paragraph(report.about).markdown] if report.about and "about" not in elsewhere else []),
                *(table.markdown() for table in report.tables if not any(table is item for item in placed_tables)),
                *([bullets(content).markdown] if content else []),
                *(
                    picture(plot.name, plot.stem, plot).markdown
                    for plot in report.plots
                    if f"]({plot.name})" not in outside
                ),
            ]
        body = "\n\n".join(shown)
        return f"{head}\n\n{body}\n\n{END}"


def find_table(report: Report, title: str, source: str) -> ReportTable:
    """Return the table with a title, or the only one whose title begins so."""
    exact = [table for table in report.tables if table.title == title]
    (table,) = exact or _one(source, [table for table in report.tables if table.title.startswith(title)])
    return table


def _rows(table: ReportTable, name: str) -> list[tuple[Cell, ...]]:
    """Return the rows whose first cells are a name, or else those that begin so."""
    texts = {row: table.texts(row) for row in table.rows}
    exact = [row for row, of in texts.items() if name in {", ".join(of[:n]) for n in range(1, len(of) + 1)}]
    return exact or [row for row, of in texts.items() if f"{', '.join(of)}, ".startswith(f"{name}, ")]


def like(figure: str, value: float) -> str:
    """
    Format a number in the style of a printed figure.

    >>> like(".473", 0.4729), like("+16 %", 0.158), like("−0.002", 0.0031), like("2e-09", 3.4e-8), like("1,261", 1300)
    ('.473', '+16 %', '+0.003', '3e-08', '1,300')
    """
    if "%" in figure:
        return like(re.sub(r"\s?%", "", figure), 100 * value) + ("" if " %" not in figure else " ") + "%"
    sign, digits = re.fullmatch(r"([+−-]?)(.*)", figure).groups()  # type: ignore[union-attr]
    decimals = len(digits.partition("e")[0].partition(".")[2])
    if "e" in digits:
        return f"{value:.{decimals}e}"
    # stored figures have few digits: .365 is .37
    rounded = Decimal(f"{value:.9g}").quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    text = f"{abs(rounded):{',' if ',' in digits else ''}f}"
    if digits.startswith("."):
        text = text.removeprefix("0")
    minus = "-" if sign == "-" else "−"
    return (minus if rounded < 0 else "+" if sign else "") + text


def _part(report: Report, part: str) -> str:
    if part == "about":
        return paragraph(report.about).markdown
    if part.startswith(TEXTS):
        return bullets([item for item in report.findings if _is_finding(item, part)]).markdown
    return find_table(report, part, part).markdown()


def _is_finding(sentence: str, part: str) -> bool:
    return part.startswith("findings") and sentence.startswith(part.removeprefix("findings").strip())


def _one(source: str, outcomes: list[T]) -> list[T]:
    if len(outcomes) != 1:
        raise InputError(
            f"'{source}' names {len(outcomes)} places in the stored results; it must name one. Correct the mark."
        )
    return outcomes


def _number(source: str, text: str, before: str = "") -> float:
    """Return the first number of a text, or the first one after some words."""
    index = text.find(before)
    match = NUMBER.search(text, index + len(before)) if index >= 0 else None
    if match is None:
        raise InputError(f"'{source}': there is no number after '{before}' in '{text}'. Correct the mark.")
    digits = re.sub(r"[,\s%]", "", match[0]).replace("−", "-")
    return float(digits) / (100 if "%" in match[0] else 1)


def pages(root: Path = ROOT) -> Iterable[Path]:
    """Return the files that contain marks."""
    for path in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        if "_build" not in path.parts and re.search("<!-- results |<!--= ", path.read_text(encoding="utf-8")):
            yield path


def fill_pages() -> None:
    """
    Fill all pages, and print those that changed and the figures in sentences that changed.

    Raises `InputError` at the end if a page has a mark without a result; the other pages are filled.
    """
    filler = Filler()
    faults = []
    for path in pages():
        old = path.read_text(encoding="utf-8")
        try:
            new = filler.fill(old)
        except InputError as error:
            faults.append(f"{path.relative_to(ROOT)}: {error}")
            continue
        if new == old:
            continue
        with atomic_file(path, overwrite=True) as scratch:
            scratch.write_text(new, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
        for before, after in zip(FIGURE.finditer(old), FIGURE.finditer(new), strict=True):
            if before["figure"] != after["figure"]:
                print(f"  {before['figure']} is now {after['figure']}: read the sentence again ({after['source']})")
    if faults:
        raise InputError("\n".join(faults))


if __name__ == "__main__":
    fill_pages()
