"""
Export models and fusions: write the files of one target, or of the nearest fusion that it can express.

For models, the scores of rows by the engine's rules can be compared with those of the model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import corank.deploy.export.targets  # noqa: F401
from corank.data.durable.atomic import atomic_file, require_no_input, require_place
from corank.data.queries import Queries
from corank.data.routing import predict_with_qid
from corank.deploy.export.describe import Description, describe
from corank.deploy.export.fusion_targets import FUSION_TARGETS, FusionOptions, FusionTarget, form_of, is_even, used
from corank.deploy.export.scorers import LinearScorer, Scorer, TreeScorer
from corank.deploy.export.target import TARGETS, Export, ExportOptions, rescored_models, to_single
from corank.errors import InputError, suggest_names
from corank.models.fusion import EngineForm, FusionDefinition, Term

Floats = NDArray[np.float64]

# rows that are compared with all others at once
_BLOCK = 1024
REPORT = ".verify.json"
"""Suffix of the report of a verification, after the name of the main file."""


@dataclass(frozen=True)
class Verification:
    """
    Comparison of an engine's scores with those of the model.

    target, engine: The target, and what computed its scores.
    n_rows, n_queries: Number of rows and queries.
    offset: Constant by which the engine's scores differ: a shift, or an intercept that was left out.
    largest_difference: Largest difference of engine and model, after the offset.
    largest_score: Largest absolute score of the model.
    n_pairs: Number of pairs of rows of a query that the model orders.
    changed_orders: Pairs that the engine orders the other way round.
    tied_orders: Pairs to which the engine gives equal scores.
    rounded_inputs: Changed or tied pairs for which rounding of the features to float32 is the reason.
    unexplained_orders: Changed or tied pairs that the precision of the engine does not explain; 0 for a correct export.
    unexplained_rows: Rows whose scores differ by more than the precision of the engine explains; 0 for a correct
        export.
    """

    target: str
    engine: str
    n_rows: int
    n_queries: int
    offset: float
    largest_difference: float
    largest_score: float
    n_pairs: int
    changed_orders: int
    tied_orders: int
    rounded_inputs: int
    unexplained_orders: int
    unexplained_rows: int

    @property
    def is_exact(self) -> bool:
        """Whether the precision of the engine explains all differences."""
        return self.unexplained_orders == 0 and self.unexplained_rows == 0

    def fields(self) -> dict[str, Any]:
        """Return the comparison as a dictionary."""
        return asdict(self)


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
    suffixes = [*export.files, *([REPORT] if rows is not None else [])]
    places = places_of(Path(path), suffixes, overwrite=overwrite, inputs=inputs)
    verification = None
    contents = dict(export.files)
    if rows is not None:
        verification = verify(export, described, _model_scores(model, rows, qid, calibrated), rows, qid)
        contents[REPORT] = (json.dumps(verification.fields(), indent=2) + "\n").encode()
    write_files(places, contents, overwrite=overwrite)
    remarks = list(export.remarks)
    if not described.is_named:
        remarks.insert(0, "the model has no feature names, so that features are f1, f2, ... by position; pass names.")
    return ExportedFiles(tuple(places.values()), tuple(remarks), verification)


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
        raise InputError(f"there is no target {to!r}; {suggest_names(to, list(TARGETS))}.")
    described = describe(model, calibrated=calibrated)
    if names:
        described = described.renamed(names)
    added = None if isinstance(shift, str) else shift
    if isinstance(shift, str):
        # engines that add up two models shift each of them
        is_rescored = to in ("elasticsearch", "opensearch")
        models: list[Any] = (rescored_models(described.scorer) if is_rescored else None) or [described.scorer]
        added = max(_shift(shift, model, rows) for model in models)
    options = ExportOptions(name=name, shift=added, dialect=dialect, double=double)
    return described, TARGETS[to](described, options)


def _shift(shift: str, scorer: Scorer, rows: Any) -> float:
    """Return a shift that makes all scores positive."""
    if shift != "auto":
        raise InputError(f"shift is {shift!r}; pass a number, or 'auto'.")
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
            lowest -= max(scorer.intercept, 0.0)
    # above rounding errors of float32
    return float(max(0.0, -lowest) * (1.0 + 1e-5) + 1e-5)


def _model_scores(model: Any, rows: Any, qid: Any, calibrated: bool) -> Any:
    if isinstance(model, list | tuple):
        return np.mean([_model_scores(item, rows, qid, calibrated) for item in model], axis=0)
    best = model.best_estimator_ if hasattr(model, "best_estimator_") else model
    if not calibrated and hasattr(best, "ranker_scores"):
        return best.ranker_scores(rows)
    return predict_with_qid(best, rows, None)


def places_of(path: Path, suffixes: Iterable[str], *, overwrite: bool, inputs: Sequence[Path]) -> dict[str, Path]:
    """
    Return the file of each suffix; raise `InputError` if one exists, is an input, or is the file of two suffixes.

    The main file has the suffix "" and its own name, and each main file its own report.
    """
    places, first_of = {"": path}, dict[str, str]()
    for suffix in suffixes:
        stem = path.name if suffix == REPORT else path.stem
        place = places[suffix] = path.with_name(stem + suffix) if suffix else path
        # names may be the same by a link, or in another case
        first = first_of.setdefault(os.path.realpath(place).casefold(), suffix)
        if first != suffix:
            raise InputError(
                f"{places[first]} is also the name of the file {place.name} that this export writes next to it; choose "
                f"a name with another ending than {suffix}, and remove links between the files."
            )
    for place in places.values():
        require_no_input(place, inputs)
        require_place(place, overwrite=overwrite)
    return places


def write_files(places: Mapping[str, Path], contents: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write all files before the first appears, the main one last."""
    with ExitStack() as stack:
        for suffix, content in contents.items():
            stack.enter_context(atomic_file(places[suffix], overwrite=overwrite)).write_bytes(content)


def _safe_name(stem: str) -> str:
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in stem)
    return name if name[:1].isalpha() or name[:1] == "_" else f"m_{name}"


def verify(export: Export, described: Description, scores: ArrayLike, rows: Any, qid: Any = None) -> Verification:
    """Score rows as the engine does, and compare."""
    X = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != described.n_features or not len(X):
        raise InputError(
            f"the rows to verify have shape {X.shape}; pass at least one row of {described.n_features} features."
        )
    return compare_scores(export, described, np.asarray(scores, dtype=np.float64), X, Queries.of(qid, len(X)))


def compare_scores(export: Export, described: Description, scores: Floats, X: Floats, queries: Queries) -> Verification:
    """Compare the engine's scores with the model's, see `verify`."""
    seen = to_single(X).astype(np.float64) if export.single else X
    # scores of the rows as the engine reads them, and how far its arithmetic may be from them
    exact, allowed = described.scorer.score(seen), export.bound(seen)
    result = np.asarray(export.evaluate(X), dtype=np.float64) - export.offset
    allowed = allowed + 2.0**-50 * (abs(export.offset) + np.abs(result))
    with np.errstate(invalid="ignore"):
        differences = np.abs(result - scores)
        wrong = ~(np.abs(result - exact) <= allowed)
    counts = np.zeros(5, dtype=np.int64)
    for q in range(len(queries)):
        own = queries.order[queries.starts[q] : queries.starts[q + 1]]
        counts += _pairs(scores[own], exact[own], result[own], allowed[own])
    n_pairs, changed, tied, rounded, unexplained = map(int, counts)
    return Verification(
        target=export.target, engine=export.engine, n_rows=len(X), n_queries=len(queries), offset=float(export.offset),
        largest_difference=float(np.where(np.isnan(differences), np.inf, differences).max(initial=0.0)),
        largest_score=float(np.abs(scores).max(initial=0.0)), n_pairs=n_pairs, changed_orders=changed, tied_orders=tied,
        rounded_inputs=rounded, unexplained_orders=unexplained, unexplained_rows=int(wrong.sum()),
    )  # fmt: skip


def _pairs(scores: Floats, exact: Floats, actual: Floats, allowed: Floats) -> NDArray[np.int64]:
    """Count ordered, changed, tied, input-rounded and unexplained pairs of one query."""
    counts = np.zeros(5, dtype=np.int64)
    for begin in range(0, len(scores), _BLOCK):
        own = slice(begin, begin + _BLOCK)

        def gap(values: Floats, own: slice = own) -> Floats:
            return np.asarray(values[own, None] - values[None, :])

        with np.errstate(invalid="ignore"):
            ordered = gap(scores) > 0.0
            changed, tied = ordered & (gap(actual) < 0.0), ordered & (gap(actual) == 0.0)
            affected = changed | tied
            rounded = affected & ~(gap(exact) > 0.0)
            summed = gap(exact) <= allowed[own, None] + allowed[None, :]
        counts += [ordered.sum(), changed.sum(), tied.sum(), rounded.sum(), (affected & ~rounded & ~summed).sum()]
    return counts


def export_fusion(
    definition: FusionDefinition,
    path: str | Path,
    to: str,
    *,
    name: str = "corank",
    size: int = 100,
    dialect: str = "sqlite",
    nearest: bool = False,
    overwrite: bool = False,
    inputs: Sequence[Path] = (),
) -> ExportedFiles:
    """
    Write a fusion in the format of an engine.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "pipeline.json")
    >>> done = export_fusion(FusionDefinition.rrf(("bm25", "vectors")), target, "opensearch")
    >>> [path.name for path in done.paths]
    ['pipeline.json', 'pipeline.query.json']
    """
    if to not in FUSION_TARGETS:
        raise InputError(f"there is no target {to!r} for fusions; {suggest_names(to, list(FUSION_TARGETS))}.")
    target = FUSION_TARGETS[to]
    written, remark = expressible(definition, target, nearest=nearest)
    remarks: tuple[str, ...] = (remark,) if remark else ()
    form = form_of(written)
    if target.weighted_rrf and form is not None and form.k is not None and not is_even(form):
        remarks += (f"Weights of RRF need {target.weighted_rrf}; older versions refuse or ignore them.",)
    files = target.write(written, FusionOptions(name=name, size=size, dialect=dialect))
    places = places_of(Path(path), files, overwrite=overwrite, inputs=inputs)
    write_files(places, files, overwrite=overwrite)
    return ExportedFiles(tuple(places.values()), remarks, None)


def with_form(definition: FusionDefinition, form: EngineForm) -> FusionDefinition:
    """Return the fusion of an engine form."""
    transform = "reciprocal_rank" if form.form == "rrf" else form.form
    pairs = zip(definition.retrievers, form.weights, strict=True)
    return replace(
        definition,
        terms=tuple(Term(name, transform, weight, form.k) for name, weight in pairs if weight),
        rule=describe_form(form, definition.retrievers),
    )


def describe_form(form: EngineForm, names: tuple[str, ...]) -> str:
    """Return a form in words."""
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(names, form.weights, strict=True))
    kind = f"RRF with k = {form.k:g}" if form.form == "rrf" else "a weighted sum of min-max scores"
    return f"{kind} ({weights})"


def expressible(definition: FusionDefinition, target: FusionTarget, *, nearest: bool) -> tuple[FusionDefinition, str]:
    """
    Return the fusion that a target can express, and a remark; "" if it is the fusion itself.

    Raises `InputError` if it cannot express it, unless `nearest` is set and one of the measured engine forms fits.
    """
    if target.can_express(definition):
        return definition, ""
    if len(used(definition)) == 1:
        raise InputError(f"this fusion uses {used(definition)[0]} alone; send the query of that retriever as it is.")
    forms = [form for form in definition.engine_forms if target.can_express(with_form(definition, form))]
    problem = f"{target.label} takes {target.takes}, but this fusion is: {definition.rule}"
    if not forms:
        raise InputError(f"{problem}; export it to sql or python, or fit a fusion of that form.")
    form = min(forms, key=lambda form: 0.0 if form.loss is None else form.loss)
    text = f"{describe_form(form, definition.retrievers)}, {_loss(form, definition)}"
    if not nearest:
        raise InputError(f"{problem}. The nearest that it can is {text}; pass nearest to write it, or export to sql.")
    return with_form(definition, form), f"{target.label} cannot express this fusion; written is {text}."


def _loss(form: EngineForm, definition: FusionDefinition) -> str:
    if form.loss is None:
        return "whose loss was not measured"
    metric = "" if definition.estimate is None else f" {definition.estimate.metric}"
    span = "" if form.low is None or form.high is None else f", interval {form.low:.3f} to {form.high:.3f}"
    if form.loss <= 0:
        return f"which loses nothing on left-out queries ({abs(form.loss):+.3f}{metric})"
    return f"which loses {form.loss:.3f}{metric} on left-out queries{span}"
