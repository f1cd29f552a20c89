"""Read files for a command: rows by the columns that options name, with a line on them; grades, runs, preferences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from corank.cli.options import ColumnOptions
from corank.cli.output import note
from corank.data.collection import Dataset, as_texts
from corank.data.column_roles import ColumnChoice, list_names
from corank.data.durable.text import Source, TextFile, open_text
from corank.data.io.judgements import read_judgements
from corank.data.io.read import common_format, detect_format, open_source, read
from corank.data.io.search_responses import as_run, read_responses
from corank.data.io.tables import JSON, csv_table, read_table, suffix_of
from corank.data.io.trec import RUN_COLUMNS, Qrels, Run, is_qrels, merge_qrels, read_qrels, read_run
from corank.data.judges import JudgementList
from corank.errors import InputError, suggest_names
from corank.parameters import number


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
    note(f"{source}: {rows.roles}{order}{hint}")


def say_order(names: Sequence[str] | None, source: object, model: FittedModel) -> None:
    """Say on standard error that columns are matched by position, if only one of file and model has names."""
    if model.n_features is None or (names is None) == (model.names is None):
        return
    without, named = (source, model.path) if names is None else (model.path, source)
    note(f"{without} has no column names, but {named} has; the columns are matched by position.")


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


def read_truth(path: Path, unjudged: float | None, columns: ColumnOptions | None = None) -> Qrels | Dataset:
    """Read grades from qrels, LETOR text, a store, Parquet or CSV; the format is detected."""
    columns = columns or ColumnOptions()
    if suffix_of(path) in JSON:
        return _qrels_of(read_judgements(path), columns.judges)
    source = open_source(path)
    kind = detect_format(source)
    if isinstance(source, TextFile) and kind == "csv" and _has_no_features(source, columns):
        listed = read_judgements(path, **columns.of_judgements())
        return _qrels_of(replace(listed, y=np.where(listed.y == unjudged, np.nan, listed.y)), columns.judges)
    if isinstance(source, TextFile) and kind in ("text", "csv"):
        words = first_words(source)
        if is_qrels(words):
            qrels = read_qrels(source)
            qrels = qrels if unjudged is None else replace(qrels, y=np.where(qrels.y == unjudged, np.nan, qrels.y))
            return qrels if columns.judges == "keep" else merge_qrels(qrels, columns.judges, source)
    return read_rows([source], columns, needs_labels=True, unjudged=unjudged)


def _qrels_of(judgements: JudgementList, rule: str) -> Qrels:
    judged = judgements if rule == "keep" else judgements.final(rule)
    queries = as_texts(["all"] * len(judged)) if judged.qid is None else judged.qid
    return Qrels(queries, judged.docids, judged.y)


def _has_no_features(text: TextFile, columns: ColumnOptions) -> bool:
    """Return whether a table lists grades of documents, without features, so that it can only be compared with runs."""
    names = csv_table(text.first_line().decode(errors="replace"), str(text)).names
    if columns.drop or columns.keep or len(names) > 4:
        return False
    choice = ColumnChoice(y=columns.label or False, docid=columns.id_column, judge=columns.judge_column)
    roles = choice.roles(names, text)
    return bool(roles.y and roles.docid and roles.qid and not roles.features)


def read_run_file(path: Path) -> Run:
    """Read a TREC run or saved answers of a search engine."""
    if suffix_of(path) in JSON:
        return as_run(read_responses(path), str(path))
    text = open_text(path)
    if len(words := first_words(text)) != len(RUN_COLUMNS):
        raise InputError(
            f"{text} has {len(words)} columns; with --gold, all files are TREC runs: {' '.join(RUN_COLUMNS)}."
        )
    return read_run(text)


def read_texts(paths: Sequence[Path], wanted: Collection[str]) -> tuple[list[str], list[list[str]]]:
    """Read the fields of some documents, to show them to judges; return their names, and the cells of each document."""
    from corank.text import read_document_fields

    documents = set(wanted)
    fields = {name: item for path in paths for name, item in read_document_fields(path) if name in documents}
    names = list(dict.fromkeys(key for item in fields.values() for key in item))
    return names, [[fields.get(document, {}).get(name, "") for name in names] for document in wanted]


def first_words(text: TextFile) -> list[bytes]:
    """Return the words of the first row; raise `InputError` if there is none."""
    words = text.first_line().split()
    if not words:
        raise InputError(f"{text} has no rows; expected at least one line.")
    return words


def read_preferences(path: Path, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Read a table with the columns ``winner`` and ``loser``, and optionally ``weight``."""
    table = read_table(path)
    for wanted in ("winner", "loser"):
        if wanted not in table.columns:
            raise InputError(f"{path} has no column {wanted!r}; expected a header winner,loser or winner,loser,weight.")
    if not len(table):
        raise InputError(f"{path} has a header but no preferences; write a winner and a loser on each line.")
    numbers: dict[str, int] = {}
    for i, name in enumerate(names):
        numbers.setdefault(name, i)
    pairs = np.empty((len(table), 2), dtype=np.int64)
    for i, pair in enumerate(zip(table.texts("winner"), table.texts("loser"), strict=True)):
        unknown = next((name for name in pair if name not in numbers), None)
        if unknown is not None:
            raise InputError(f"{table.place(i)}: there is no row named {unknown!r}; {_near(unknown, numbers)}")
        if pair[0] == pair[1]:
            raise InputError(f"{table.place(i)}: {pair[0]!r} is preferred to itself; expected two different rows.")
        pairs[i] = [numbers[name] for name in pair]
    weights = table.numbers("weight", number(0.0)) if "weight" in table.columns else None
    return pairs, weights


def _near(name: str, numbers: dict[str, int]) -> str:
    if len(numbers) > 20:
        return f"rows are named by document ids or by numbers from 1, such as {next(iter(numbers))!r}."
    return f"{suggest_names(name, list(numbers))}."
