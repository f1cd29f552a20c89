"""Export fusions: write the files of one target, or of the nearest fusion that it can express."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from corank.deploy.export.export import ExportedFiles, places_of, write_files
from corank.deploy.export.fusion_targets import FUSION_TARGETS, FusionOptions, FusionTarget, form_of, is_even, used
from corank.errors import InputError, suggest_names
from corank.models.fusion import EngineForm, FusionDefinition, Term


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
