"""Export models: a table of targets, and functions that write the files of one target."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from corank.data.durable.atomic import atomic_file, require_no_input, require_place
from corank.data.routing import predict_with_qid
from corank.deploy.export.describe import Description, describe
from corank.deploy.export.elasticsearch import write_elasticsearch
from corank.deploy.export.json_form import write_json
from corank.deploy.export.onnx_graph import write_onnx
from corank.deploy.export.scorers import LinearScorer, TreeScorer
from corank.deploy.export.solr import write_solr
from corank.deploy.export.sql import write_sql
from corank.deploy.export.target import Export, ExportOptions
from corank.deploy.export.verify import Verification, verify
from corank.deploy.export.vespa import write_vespa
from corank.errors import InputError, suggest_names

TARGETS: dict[str, Callable[[Description, ExportOptions], Export]] = {
    "elasticsearch": write_elasticsearch,
    "opensearch": partial(write_elasticsearch, target="opensearch"),
    "solr": write_solr,
    "vespa": write_vespa,
    "onnx": write_onnx,
    "json": write_json,
    "sql": write_sql,
}
"""All targets by name."""

REPORT = ".verify.json"
"""Suffix of the report of a verification, after the name of the main file."""


class ExportedFiles(NamedTuple):
    """
    What an export wrote.

    paths: The files, the main one first.
    remarks: What was assumed or left out, one sentence each.
    verification: Comparison with the model, if rows were given.
    """

    paths: tuple[Path, ...]
    remarks: tuple[str, ...]
    verification: Verification | None


def export_model(
    model: Any,
    path: str | Path,
    to: str,
    *,
    names: Mapping[str, str] | None = None,
    name: str | None = None,
    shift: float | Literal["auto"] | None = None,
    dialect: str = "sqlite",
    double: bool = False,
    calibrated: bool = True,
    rows: Any = None,
    qid: Any = None,
    overwrite: bool = False,
    inputs: Sequence[Path] = (),
) -> ExportedFiles:
    """
    Write a fitted model in the format of an engine.

    >>> import tempfile
    >>> from corank import SPD, make_ranking
    >>> problem = make_ranking(20, 10, random_state=0)
    >>> model = SPD("squared").fit(problem.X, problem.y, qid=problem.qid)
    >>> target = Path(tempfile.mkdtemp(), "model.json")
    >>> done = export_model(model, target, "opensearch", rows=problem.X, qid=problem.qid)
    >>> [path.name for path in done.paths], done.verification.unexplained_orders
    (['model.json', 'model.features.json', 'model.json.verify.json'], 0)
    """
    described, export = make_export(
        model, to, names=names, name=name or _safe_name(Path(path).stem), shift=shift, dialect=dialect, double=double,
        calibrated=calibrated, rows=rows,
    )  # fmt: skip
    paths = {suffix: _place(Path(path), suffix) for suffix in [*export.files, *([REPORT] if rows is not None else [])]}
    _require_distinct(paths)
    for place in paths.values():
        require_no_input(place, inputs)
        require_place(place, overwrite=overwrite)
    verification = None
    contents = dict(export.files)
    if rows is not None:
        verification = verify(export, described, _model_scores(model, rows, qid, calibrated), rows, qid)
        contents[REPORT] = (json.dumps(verification.fields(), indent=2) + "\n").encode()
    with ExitStack() as stack:  # all files are written before the first appears, the main one last
        for suffix, content in contents.items():
            stack.enter_context(atomic_file(paths[suffix], overwrite=overwrite)).write_bytes(content)
    remarks = list(export.remarks)
    if not described.is_named:
        remarks.insert(0, "the model has no feature names, so that features are f1, f2, ... by position; pass names.")
    return ExportedFiles(tuple(paths.values()), tuple(remarks), verification)


def make_export(
    model: Any,
    to: str,
    *,
    names: Mapping[str, str] | None = None,
    name: str = "corank",
    shift: float | str | None = None,
    dialect: str = "sqlite",
    double: bool = False,
    calibrated: bool = True,
    rows: Any = None,
) -> tuple[Description, Export]:
    """Describe a model and make its files in memory, see `export_model`."""
    if to not in TARGETS:
        if to == "pmml":
            raise InputError("PMML is not supported, as no maintained Python library writes it; export to onnx.")
        if to == "numpy":
            raise InputError("the target numpy was removed in 0.3; export to json or onnx.")
        raise InputError(f"there is no target {to!r}; {suggest_names(to, list(TARGETS))}.")
    described = describe(model, calibrated=calibrated)
    if names:
        described = described.renamed(names)
    added = _shift(shift, described, rows) if isinstance(shift, str) else shift
    options = ExportOptions(name=name, shift=added, dialect=dialect, double=double)
    return described, TARGETS[to](described, options)


def _shift(shift: str, described: Description, rows: Any) -> float:
    """Return a shift that makes all scores positive."""
    if shift != "auto":
        raise InputError(f"shift is {shift!r}; pass a number, or 'auto'.")
    scorer = described.scorer
    if isinstance(scorer, TreeScorer):
        trees = scorer.trees
        starts = trees.starts[:-1] + np.arange(trees.n_trees)
        lowest = float(np.minimum.reduceat(trees.values, starts).sum()) if trees.n_trees else 0.0
        lowest += scorer.intercept
    elif rows is None:
        raise InputError(
            "shift='auto' needs rows for this model, whose lowest score is unknown; pass rows or a number."
        )
    else:
        X = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        lowest = float(scorer.score(X).min())
        if isinstance(scorer, LinearScorer):  # its intercept is left out where engines have none
            level = scorer.intercept if scorer.normaliser is None else scorer.normaliser.intercept
            lowest -= max(level, 0.0)
    # above rounding errors of float32
    return float(max(0.0, -lowest) * (1.0 + 1e-5) + 1e-5)


def _model_scores(model: Any, rows: Any, qid: Any, calibrated: bool) -> Any:
    if isinstance(model, list | tuple):
        return np.mean([_model_scores(item, rows, qid, calibrated) for item in model], axis=0)
    best = model.best_estimator_ if hasattr(model, "best_estimator_") else model
    if not calibrated and hasattr(best, "ranker_scores"):
        return best.ranker_scores(rows)
    return predict_with_qid(best, rows, None)


def _place(path: Path, suffix: str) -> Path:
    """Return the file with another suffix; the main file has its own name, and each main file its own report."""
    if suffix == REPORT:
        return path.with_name(path.name + suffix)
    return path.with_name(path.stem + suffix) if suffix else path


def _require_distinct(paths: Mapping[str, Path]) -> None:
    """Raise `InputError` if two files of an export have the same name, also by a link or in another case."""
    written: dict[str, str] = {}
    for suffix, place in paths.items():
        first = written.setdefault(os.path.realpath(place).casefold(), suffix)
        if first != suffix:
            raise InputError(
                f"{paths[first]} is also the name of the file {place.name} that this export writes next to it; choose "
                f"a name with another ending than {suffix}, and remove links between the files."
            )


def _safe_name(stem: str) -> str:
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in stem)
    return kept if kept[:1].isalpha() or kept[:1] == "_" else f"m_{kept}"
