"""
Label ranking in `corank fit` and `corank rank`.

A file has one label per row, which is a class; or it is a table (CSV, Parquet) with a column ``label:NAME`` for each
label, which contains 0 and 1, positions, or 0 for irrelevant labels and positions of the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from corank.cli.learn.models import last_step
from corank.cli.options import ColumnOptions
from corank.cli.rows import FittedModel, require_model_features, say_columns, say_order
from corank.data.collection import Dataset
from corank.data.column_roles import require_same_features
from corank.data.durable.atomic import require_place
from corank.data.io.read import open_source, read
from corank.data.io.tables import csv_text
from corank.data.routing import columns_were_checked
from corank.errors import InputError, import_extra
from corank.models.labels import LabelRanker, OnlineLabelRanker

PREFIX = "label:"
"""Prefix of label columns; the rest is the name of the label."""


def fit_labels(
    ranker: LabelRanker, data: Sequence[Path], columns: ColumnOptions, output: Path, *, overwrite: bool
) -> str:
    """Fit a label ranker and save it."""
    from corank.deploy.persist import save

    require_place(output, overwrite=overwrite)
    if len(data) > 1 and not isinstance(ranker, OnlineLabelRanker):
        raise InputError(f"found {len(data)} files, but {type(ranker).__name__} learns from one; join them.")
    seconds, n_rows, known = 0.0, 0, None
    for path in data:
        X, y = _examples(path, columns, known)
        known = known or X.names
        began = time.perf_counter()
        if isinstance(ranker, OnlineLabelRanker) and len(data) > 1:
            ranker.partial_fit(X, y)
        else:
            ranker.fit(X, y)
        seconds, n_rows = seconds + time.perf_counter() - began, n_rows + X.X.shape[0]
    save(ranker, output, overwrite=overwrite)
    outcome = f"score on {'the last part' if len(data) > 1 else 'the training rows'} {ranker.score(X, y):.4f}"
    if isinstance(ranker, OnlineLabelRanker):
        outcome = f"loss before each step {ranker.cumulative_loss_ / max(ranker.n_iter_, 1):.4f} on average; {outcome}"
    return (
        f"wrote {output}: {type(ranker).__name__} from {n_rows} rows of {len(ranker.classes_)} labels "
        f"({ranker.kind_}), {ranker.n_features_in_} features, {seconds:.2f} s; {outcome}"
    )


def label_lines(model: FittedModel, data: Sequence[Path], columns: ColumnOptions, keep_formulas: bool) -> list[str]:
    """Return lines of CSV: the labels, then the utilities of each row; labels with positive utility are relevant."""
    if len(data) > 1:
        raise InputError(f"found {len(data)} files, but label rankers score one at a time; pass one file.")
    ranker, last = model.ranker, last_step(model.ranker)
    columns = replace(columns, judges="keep")
    rows = read(open_source(data[0]), n_features=model.n_features, **columns.arguments(needs_labels=False))
    features, _ = _split_labels(rows, model.names, data[0])
    require_model_features(features, data[0], model)
    say_columns(rows, data[0])
    say_order(features.names, data[0], model)
    with columns_were_checked():
        utilities = last.utilities(ranker[:-1].transform(features.X) if last is not ranker else features.X)
    head = csv_text([[str(label) for label in last.classes_.tolist()]], keep_formulas=keep_formulas)
    return [head, *(",".join(map(repr, row)) + "\n" for row in utilities.tolist())]


def _examples(path: Path, columns: ColumnOptions, known: list[str] | None) -> tuple[Dataset, Any]:
    """Return the features of a file, and its labels: a DataFrame, or classes."""
    source = open_source(path)
    rows = read(source, **replace(columns, judges="keep").arguments(needs_labels=False))
    X, names = _split_labels(rows, known, source)
    say_columns(rows, source)
    if not names:
        if np.isnan(rows.y).any():
            raise InputError(
                f"{source} has no columns {PREFIX}NAME, and no class in some rows; add a column per label, or name the "
                "class column with --label."
            )
        # whole numbers are shown without decimals
        return X, rows.y.astype(np.int64) if (rows.y == np.round(rows.y)).all() else rows.y
    frame = import_extra("pandas", "frames").DataFrame
    i = [rows.names.index(PREFIX + name) for name in names]  # type: ignore[union-attr]
    return X, frame(np.asarray(rows.X[:, i], dtype=np.float64), columns=names)


def _split_labels(rows: Dataset, known: list[str] | None, source: object) -> tuple[Dataset, list[str]]:
    """Return the features of a file, and the names of its labels."""
    if rows.names is None:
        return rows, []
    names = [name.removeprefix(PREFIX) for name in rows.names if name.startswith(PREFIX)]
    features = [name for name in rows.names if not name.startswith(PREFIX)]
    if not features:
        raise InputError(f"all {len(rows.names)} columns are label columns; add feature columns.")
    wanted = known or features
    require_same_features(features, wanted, source)
    if wanted == rows.names:
        return rows, []
    kept = [rows.names.index(name) for name in wanted]
    return Dataset(np.ascontiguousarray(rows.X[:, kept]), rows.y, wanted), names
