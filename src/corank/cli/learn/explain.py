"""`corank explain`: contributions to the difference of two scores of a saved model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.options import ColumnOptions, Data, Json, ModelFile
from corank.cli.output import emit

if TYPE_CHECKING:
    from corank.base.explanation import Explanation
    from corank.data.collection import Dataset


def explain(
    model: ModelFile,
    data: Data,
    pair: Annotated[
        tuple[str, str],
        typer.Option(help="Two rows: document ids, or 1-based row numbers.", metavar="A B", show_default=False),
    ],
    top: Annotated[int | None, typer.Option(min=1, help="Number of contributions to list.  [default: 10]")] = None,
    as_json: Json = False,
    *,
    columns: ColumnOptions,
) -> None:
    """
    Explain why a model scores one row above another.

    The contributions of columns, or of training rows, add up to the difference: corank explain m.safetensors rows.txt
    --pair 3 8
    """
    from corank.base.explanation import SHOWN, explained
    from corank.cli.learn.models import last_step, load_ranker, preferred_layout
    from corank.cli.rows import read_rows
    from corank.data.column_roles import column_name
    from corank.data.routing import columns_were_checked
    from corank.errors import InputError
    from corank.models.labels import LabelRanker
    from corank.tables import ReportTable

    fitted = load_ranker(model, data)
    ranker = fitted.ranker
    if isinstance(last_step(ranker), LabelRanker):
        raise InputError(f"{model} contains a {type(ranker).__name__}, which ranks labels; pass a ranker of rows.")
    rows = read_rows(
        data, replace(columns, judges="keep"), needs_labels=False, model=fitted, layout=preferred_layout(ranker)
    )
    chosen = _rows_of(pair, rows, str(data[0]))
    with columns_were_checked():
        explanation = explained(
            ranker, rows.X, chosen, qid=rows.qid, row_names=_called(pair, rows, chosen), first_row=1,
            names=rows.names or fitted.names or [column_name(j) for j in range(rows.X.shape[1])],
        )  # fmt: skip
    head = (
        f"{explanation.pair[0]} {explanation.scores[0]:.4g}, {explanation.pair[1]} {explanation.scores[1]:.4g}: a "
        f"difference of {explanation.difference:+.4g}"
    )
    names = ("contribution of", *explanation.pair, "weight", "contribution")
    formats = ("", ".6g", ".6g", ".4g", "+.4g")
    table = ReportTable("", names, tuple(explanation.table(top or SHOWN)), formats=formats)
    emit(as_json, "explain", _fields(explanation, top), head, table)


def _rows_of(pair: tuple[str, str], rows: Dataset, source: str) -> tuple[int, int]:
    """Return the two rows; a document of several queries is taken from the one query that has both."""
    first, second = (_candidates(name, rows, source) for name in pair)
    if len(first) == len(second) == 1:
        return first[0], second[0]
    both = [(a, b) for a in first for b in second if rows.qid is None or rows.qid[a] == rows.qid[b]]
    if len(both) == 1:
        return both[0]
    from corank.errors import InputError

    shown = ", ".join(str(row + 1) for row in (first if len(first) > 1 else second)[:5])
    name = pair[0] if len(first) > 1 else pair[1]
    raise InputError(f"{source} has document {name!r} in several rows, such as {shown}; pass row numbers instead.")


def _candidates(name: str, rows: Dataset, source: str) -> list[int]:
    import numpy as np

    from corank.errors import InputError

    if rows.docids is not None:
        named = np.flatnonzero(rows.docids == name)
        if len(named):
            return [int(row) for row in named]
    n_rows = len(rows.y)
    if not (name.isdecimal() and 1 <= int(name) <= n_rows):
        known = "a document id or a row number" if rows.docids is not None else "a row number"
        raise InputError(f"{source} has no row {name!r}; pass {known} from 1 to {n_rows} to --pair.")
    return [int(name) - 1]


def _called(pair: tuple[str, str], rows: Dataset, chosen: tuple[int, int]) -> tuple[str, str]:
    """Return the labels of the rows: document ids, or row numbers."""
    names = [
        name if rows.docids is not None and rows.docids[row] == name else f"row {row + 1}"
        for name, row in zip(pair, chosen, strict=True)
    ]
    return names[0], names[1]


def _fields(explanation: Explanation, top: int | None) -> dict[str, Any]:
    arrays = (explanation.values, explanation.weights, explanation.contributions)
    terms: list[dict[str, Any]] = [
        {"name": name, "values": values, "weight": weight, "contribution": part}
        for name, values, weight, part in zip(
            explanation.names[:top], *(array.tolist() for array in arrays), strict=False
        )
    ]
    return {
        "pair": explanation.pair, "scores": explanation.scores, "difference": explanation.difference,
        "n_terms": len(explanation.names), "contributions": terms,
    }  # fmt: skip
