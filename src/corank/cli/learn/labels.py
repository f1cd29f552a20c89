"""
Label ranking in `corank fit` and `corank rank`.

A file has one label per row, which is a class; or it is a table (CSV, Parquet) with a column ``label:NAME`` for each
label, which contains 0 and 1, positions, or 0 for irrelevant labels and positions of the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corank.cli.learn.models import last_step, require_model_features
from corank.data.durable.atomic import require_place
from corank.data.formats.read import open_source, read
from corank.data.formats.table_text import csv_text
from corank.data.problem.collection import Collection
from corank.errors import InputError, import_extra
from corank.label_ranking import LabelRanker, OnlineLabelRanker

PREFIX = "label:"
"""Prefix of label columns; the rest is the name of the label."""


def fit_labels(ranker: LabelRanker, data: Sequence[Path], label: str, output: Path, *, overwrite: bool) -> str:
    """
    Fit a label ranker and save it.

    data: one file; or several for an `OnlineLabelRanker`, which learns from one at a time.
    label: class column of a table without label columns.
    Returns: the sentence to print.
    """
    from corank.persist import save

    require_place(output, overwrite=overwrite)
    if len(data) > 1 and not isinstance(ranker, OnlineLabelRanker):
        raise InputError(f"found {len(data)} files, but {type(ranker).__name__} learns from one; join them.")
    seconds, n_rows = 0.0, 0
    for path in data:
        X, y = _examples(path, label)
        began = time.perf_counter()
        if isinstance(ranker, OnlineLabelRanker) and len(data) > 1:
            ranker.partial_fit(X, y)
        else:
            ranker.fit(X, y)
        seconds, n_rows = seconds + time.perf_counter() - began, n_rows + X.shape[0]
    save(ranker, output, overwrite=overwrite)
    outcome = f"score on {'the last part' if len(data) > 1 else 'the training rows'} {ranker.score(X, y):.4f}"
    if isinstance(ranker, OnlineLabelRanker):
        outcome = f"loss before each step {ranker.cumulative_loss_ / max(ranker.n_iter_, 1):.4f} on average; {outcome}"
    return (
        f"wrote {output}: {type(ranker).__name__} from {n_rows} rows of {len(ranker.classes_)} labels "
        f"({ranker.kind_}), {ranker.n_features_in_} features, {seconds:.2f} s; {outcome}"
    )


def label_lines(ranker: Any, data: Sequence[Path], label: str | None, keep_formulas: bool) -> list[str]:
    """
    Return lines of CSV: the labels, then the utilities of each row; labels with positive utility are relevant.

    ranker: a fitted label ranker, or a pipeline that ends in one.
    data: one file; its label columns are ignored.
    label: label column, excluded from the features.
    keep_formulas: whether labels stay as they are if a spreadsheet would run them.
    """
    if len(data) > 1:
        raise InputError(f"found {len(data)} files, but label rankers score one at a time; pass one file.")
    last = last_step(ranker)
    rows = read(open_source(data[0]), y=label, n_features=ranker.n_features_in_)
    X, _ = _split_labels(rows)
    require_model_features(X.shape[1], data[0], ranker.n_features_in_, "the model")
    utilities = last.utilities(ranker[:-1].transform(X) if last is not ranker else X)
    head = csv_text([[str(label) for label in last.classes_.tolist()]], keep_formulas=keep_formulas)
    return [head, *(",".join(map(repr, row)) + "\n" for row in utilities.tolist())]


def _examples(path: Path, label: str) -> tuple[Any, Any]:
    """Return the features of a file, and its labels: a DataFrame, or classes."""
    source = open_source(path)
    rows = read(source, y=None if label == "label" else label)
    X, names = _split_labels(rows)
    if not names:
        if np.isnan(rows.y).any():
            raise InputError(
                f"{source} has no columns {PREFIX}NAME, and no class in some rows; add a column per label, or name the "
                "class column with --label."
            )
        # whole numbers are shown without decimals
        return X, rows.y.astype(np.int64) if (rows.y == np.round(rows.y)).all() else rows.y
    frame = import_extra("pandas", "frames").DataFrame
    at = [rows.names.index(PREFIX + name) for name in names]  # type: ignore[union-attr]
    return X, frame(np.asarray(rows.X[:, at], dtype=np.float64), columns=names)


def _split_labels(rows: Collection) -> tuple[Any, list[str]]:
    """Return the features of a file, and the names of its labels."""
    columns = list(rows.names or [])
    names = [name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX)]
    if not names:
        return rows.X, []
    kept = [k for k, name in enumerate(columns) if not name.startswith(PREFIX)]
    if not kept:
        raise InputError(f"all {len(columns)} columns are label columns; add feature columns.")
    return np.ascontiguousarray(rows.X[:, kept]), names
