"""ReportTable: a table with a title, as Markdown, HTML, LaTeX or a DataFrame."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

from corank.console import printable
from corank.errors import import_extra

Cell = str | int | float | None

# characters with a meaning in Markdown; an underscore inside a word has none
_MARKDOWN = re.compile(r"[\\`*\[\]|~$<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
# the start of a heading, a list, a rule or a quotation
_BLOCK = re.compile(r"(\d{0,9})(?=(#+(\s|$)|-[\s-]|[-+](\s|$)|>|(?<=\d)[.)](\s|$)))")
_ENTITIES = {"<": "&lt;", "&": "&amp;"}
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)  # fmt: skip


@dataclass(frozen=True)
class ReportTable:
    """A table with a title and a note."""

    title: str  # title
    columns: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[Cell, ...], ...]  # cells: text, numbers, or None for an empty cell
    digits: int = 4  # number of decimals of floats
    note: str = ""  # note below the table
    formats: tuple[str, ...] = ()  # format of the floats of each column, such as ``".2g"``; "" for `digits` decimals

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row has {len(row)} cells, but the table has {len(self.columns)} columns: {row}")
        if self.formats and len(self.formats) != len(self.columns):
            raise ValueError(f"there are {len(self.formats)} formats for {len(self.columns)} columns: {self.formats}")

    def text(self, cell: Cell, column: int | None = None) -> str:
        """Format one cell."""
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return ""
        if not isinstance(cell, float):
            return str(cell)
        form = self.formats[column] if self.formats and column is not None else ""
        return format(cell, form or f".{self.digits}f")

    def texts(self, row: tuple[Cell, ...]) -> list[str]:
        """Format the cells of one row."""
        return [self.text(cell, column) for column, cell in enumerate(row)]

    def is_number(self, column: int) -> bool:
        """Return whether a column is numeric."""
        return all(not isinstance(row[column], str) for row in self.rows)

    def plain(self) -> str:
        """Return the table as aligned text."""
        cells = [self.columns, *(tuple(self.texts(row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numbers = [self.is_number(column) for column in range(len(self.columns))]
        lines = (
            "  ".join(
                f"{text:>{width}}" if is_number else f"{text:<{width}}"
                for text, width, is_number in zip(row, widths, numbers, strict=True)
            ).rstrip()
            for row in cells
        )
        return "\n".join([*([self.title] if self.title else []), *lines, *([self.note] if self.note else [])])

    def markdown(self) -> str:
        """Return the table as Markdown."""

        def line(cells: tuple[str, ...] | list[str]) -> str:
            return "| " + " | ".join(map(escape_markdown, cells)) + " |"

        rule = "".join("---:|" if self.is_number(column) else "---|" for column in range(len(self.columns)))
        lines = [*([f"**{escape_markdown(self.title)}**", ""] if self.title else []), line(self.columns), "|" + rule]
        lines += [line(self.texts(row)) for row in self.rows]
        return "\n".join([*lines, "", escape_markdown(self.note)] if self.note else lines)

    def html(self) -> str:
        """Return the table as HTML."""

        def cell(tag: str, scope: str, column: int, value: Cell) -> str:
            number = ' class="number"' if self.is_number(column) else ""
            return f"<{tag}{scope}{number}>{escape(self.text(value, column))}</{tag}>"

        def row(cells: tuple[Cell, ...]) -> str:
            first, *others = cells
            return cell("th", ' scope="row"', 0, first) + "".join(
                cell("td", "", column, value) for column, value in enumerate(others, 1)
            )

        named = f' role="region" tabindex="0" aria-label="{escape(self.title)}"' if self.title else ""
        head = "".join(cell("th", ' scope="col"', column, name) for column, name in enumerate(self.columns))
        lines = [f'<div class="wide"{named}>\n<table>']
        lines += [f"<caption>{escape(self.title)}</caption>"] if self.title else []
        lines += [f"<thead><tr>{head}</tr></thead>", "<tbody>", *(f"<tr>{row(cells)}</tr>" for cells in self.rows)]
        lines += ["</tbody>\n</table>\n</div>"]
        return "\n".join([*lines, f'<p class="note">{escape(self.note)}</p>'] if self.note else lines)

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``table`` with the rules of ``booktabs``; title and note are its caption."""

        def line(cells: tuple[str, ...] | list[str]) -> str:
            text = " & ".join(_one_line(cell).translate(_LATEX) for cell in cells) + r" \\"
            # a bracket or star after the line end before would be an argument of it
            return f"{{}}{text}" if text.startswith(("[", "*")) else text

        form = "".join("r" if self.is_number(column) else "l" for column in range(len(self.columns)))
        # an empty line inside a caption is an error of LaTeX
        caption = _one_line(". ".join(filter(None, (self.title, self.note)))).translate(_LATEX)
        lines = [r"\begin{table}", *([rf"\caption{{{caption}}}"] if caption else []), rf"\begin{{tabular}}{{{form}}}"]
        lines += [r"\toprule", line(self.columns), r"\midrule", *(line(self.texts(row)) for row in self.rows)]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame with unrounded numbers."""
        pandas = import_extra("pandas", "frames")
        # column by column, so that numeric columns get a numeric dtype
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        frame = pandas.DataFrame({i: pandas.Series(values).infer_objects() for i, values in enumerate(columns)})
        frame.columns = pandas.Index(self.columns)
        return frame

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return self.html()


def json_values(value: Any) -> Any:
    """Return a value as JSON knows it: records and mappings become objects, NaN and infinity null, paths text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_values(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): json_values(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def escape_markdown(text: str) -> str:
    """Return a text as one line of Markdown that shows exactly this text: no HTML, links, images or emphasis."""
    shown = _MARKDOWN.sub(lambda result: _ENTITIES.get(result[0], f"\\{result[0]}"), _one_line(text))
    return _BLOCK.sub(r"\1\\", shown, count=1) if _BLOCK.match(shown) else shown


def _one_line(text: str) -> str:
    return printable(" ".join(line for line in text.splitlines() if line.strip())).strip()
