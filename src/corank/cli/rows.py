"""Read rows for a command: columns as options name them, one line that says what they were taken as, and a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from corank.data.collection import Dataset
from corank.data.column_roles import list_names
from corank.data.io.read import common_format, open_source, read
from corank.data.io.text import Source, TextFile
from corank.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Options on the columns of a table, as the user gave them."""

    label: str | None = None
    qid: str | None = None  # "none" puts all rows in one query
    id_column: str | None = None
    drop: Sequence[str] | None = None
    keep: Sequence[str] | None = None
    judge_column: str | None = None
    judges: str = "median"  # rule for several rows of the same document; "keep" keeps them, in the order of the file

    def arguments(self, *, needs_labels: bool) -> dict[str, Any]:
        """Return arguments of `corank.read`."""
        return {
            "y": self.label if self.label or needs_labels else False, "qid": False if self.qid == "none" else self.qid,
            "docid": self.id_column, "drop": self.drop or (), "keep": self.keep or (),
            "judge": self.judge_column, "judges": self.judges,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model from a file."""

    path: Path  # the file
    ranker: Any  # a ranker or pipeline

    @property
    def names(self) -> list[str] | None:
        """Names of the features, or None if the model was fitted without names."""
        names = getattr(self.ranker, "feature_names_in_", None)
        return None if names is None else names.tolist()

    @property
    def n_features(self) -> int | None:
        """Number of features; None if rows are not tables."""
        return getattr(self.ranker, "n_features_in_", None)


def read_rows(
    data: Sequence[Source | TextFile | Path],
    options: ColumnOptions,
    *,
    needs_labels: bool,
    model: FittedModel | None = None,
    unjudged: float | None = None,
    n_features: int | None = None,
    features: Sequence[str] | None = None,
    layout: Literal["auto", "dense"] = "auto",
    dtype: Literal["float32", "float64"] | None = None,
) -> Dataset:
    """Read rows, and say which columns of a table were taken as what."""
    sources = [open_source(item) for item in data]
    if model is not None:
        n_features, features = model.n_features, model.names
    rows = read(
        sources, unjudged=unjudged, n_features=n_features if common_format(sources) == "text" else None, layout=layout,
        dtype=dtype, features=features, **options.arguments(needs_labels=needs_labels),
    )  # fmt: skip
    if model is not None:
        require_model_features(rows, sources[0], model)
        say_order(rows.names, sources[0], model)
    say_columns(rows, sources[0])
    return rows


def say_columns(rows: Dataset, source: object) -> None:
    """Say on standard error which columns of a table were taken as what."""
    if rows.roles is None:
        return
    order = "; columns reordered as in the model" if rows.roles.is_reordered else ""
    # the roles of a store are fixed
    hint = "" if isinstance(source, Path) else " (change with --label, --qid, --id, --drop, --keep)"
    typer.echo(f"corank: {source}: {rows.roles}{order}{hint}", err=True)


def say_order(names: Sequence[str] | None, source: object, model: FittedModel) -> None:
    """Say on standard error that columns are matched by position, if only one of file and model has names."""
    if model.n_features is None or (names is None) == (model.names is None):
        return
    without, named = (source, model.path) if names is None else (model.path, source)
    typer.echo(
        f"corank: {without} has no column names, but {named} has; the columns are matched by position.", err=True
    )


def require_model_features(rows: Dataset, source: object, model: FittedModel) -> None:
    """Raise `InputError` if a file does not have as many features as a model; names were compared before."""
    n_features = rows.X.shape[1]
    if model.n_features in (None, n_features):
        return
    named = f" ({list_names(rows.names)})" if rows.names else ""
    is_wide = rows.names is not None and n_features > (model.n_features or 0)
    hint = "; leave columns out with --drop, or pass" if is_wide else "; pass"
    raise InputError(
        f"{source} has {n_features} features{named}, but {model.path} was fitted on {model.n_features}{hint} rows with "
        "the features of the model."
    )


def row_names(rows: Dataset) -> list[str]:
    """Return the names of rows: document ids, or numbers from 1 if the file has none."""
    if rows.docids is None:
        return [str(number) for number in range(1, len(rows.y) + 1)]
    return [str(name) for name in rows.docids.tolist()]
