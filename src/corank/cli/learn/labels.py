"""
Rankers of labels on the command line: what `corank fit` and `corank rank` do where a row has several labels.

A file has one label a row, as for other models, which is then a class; or it is a table (CSV, Parquet) with a column
``label:NAME`` for each label, which holds 0 and 1, positions, or 0 and positions of relevant labels.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corank.data.durable.atomic import require_place
from corank.data.formats.read import open_source, read
from corank.data.problem.collection import Collection
from corank.errors import InputError, import_extra
from corank.label_ranking import LabelRanker, OnlineLabelRanker

PREFIX = "label:"
"""What the name of a column of labels begins with; the rest is the name of the label."""


def fit_labels(ranker: LabelRanker, data: Sequence[Path], label: str, output: Path, *, overwrite: bool) -> str:
    """
    Learn a ranker of labels and save it.

    ranker: not fitted yet.
    data: one file; or the parts of a stream, which an `OnlineLabelRanker` goes over once, one in memory at a time.
    label: column of classes in a table without columns of labels.
    output, overwrite: where the model goes, and whether a file there is replaced.
    Returns: what to say of it.
    """
    from corank.persist import save

    require_place(output, overwrite=overwrite)
    if len(data) > 1 and not isinstance(ranker, OnlineLabelRanker):
        raise InputError(f"{len(data)} files came, but {type(ranker).__name__} learns from one; join them.")
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


def label_lines(ranker: Any, data: Sequence[Path], label: str | None) -> list[str]:
    """
    Compute utilities for the rows of a file.

    ranker: fitted, or a pipeline that ends in a fitted one.
    data: one file; columns of labels are passed over.
    label: a column that is no feature.
    Returns: lines of CSV: the labels, then the utilities of each row; those above 0 are relevant.
    """
    if len(data) > 1:
        raise InputError(f"{len(data)} files came; pass one at a time.")
    last = getattr(ranker, "steps", [("", ranker)])[-1][1]
    rows = read(open_source(data[0]), y=label, n_features=ranker.n_features_in_)
    X, _ = _parted(rows)
    if X.shape[1] != ranker.n_features_in_:
        raise InputError(
            f"{data[0]} has {X.shape[1]} features, but the model was fitted on {ranker.n_features_in_}; rank rows of "
            "the features it knows."
        )
    utilities = last.utilities(ranker[:-1].transform(X) if last is not ranker else X)
    lines = [",".join(map(_quoted, last.classes_.tolist()))]
    return [f"{line}\n" for line in (*lines, *(",".join(map(repr, row)) for row in utilities.tolist()))]


def _examples(path: Path, label: str) -> tuple[Any, Any]:
    """Rows of a file, and their labels: a table with names, or classes."""
    source = open_source(path)
    rows = read(source, y=None if label == "label" else label)
    X, names = _parted(rows)
    if not names:
        if np.isnan(rows.y).any():
            raise InputError(
                f"{source} has neither columns {PREFIX}NAME nor a class in every row; add a column per label, or name "
                "that of classes with --label."
            )
        # numbers of classes are shown as they were written
        return X, rows.y.astype(np.int64) if (rows.y == np.round(rows.y)).all() else rows.y
    frame = import_extra("pandas", "frames").DataFrame
    at = [rows.names.index(PREFIX + name) for name in names]  # type: ignore[union-attr]
    return X, frame(np.asarray(rows.X[:, at], dtype=np.float64), columns=names)


def _parted(rows: Collection) -> tuple[Any, list[str]]:
    """Features of a file, and the names of its columns of labels."""
    columns = list(rows.names or [])
    names = [name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX)]
    if not names:
        return rows.X, []
    kept = [k for k, name in enumerate(columns) if not name.startswith(PREFIX)]
    if not kept:
        raise InputError(f"all {len(columns)} columns are labels; add columns of features.")
    return np.ascontiguousarray(rows.X[:, kept]), names


def _quoted(name: Any) -> str:
    text = str(name)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text
