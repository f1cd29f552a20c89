"""Export fusions: the table of targets, and the function that writes the files of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from corank.data.durable.atomic import atomic_file, require_no_input, require_place
from corank.deploy.export.export import ExportedFiles
from corank.deploy.export.fusion import anywhere, engines
from corank.deploy.export.fusion.engines import FusionOptions, used
from corank.errors import InputError, suggest_names
from corank.models.fusion import EngineForm, FusionDefinition, Term


@dataclass(frozen=True)
class FusionTarget:
    """
    One engine.

    name: of the target.
    label: the engine and its oldest version, for messages and the guide.
    takes: what it can express, in words.
    can_express: whether it can express a fusion exactly.
    write: returns contents by suffix of the file, "" for the main one.
    """

    name: str
    label: str
    takes: str
    can_express: Callable[[FusionDefinition], bool]
    write: Callable[[FusionDefinition, FusionOptions], dict[str, bytes]]
    weighted_rrf: str = ""  # the oldest version with weights of RRF, if it is another


def any_fusion(definition: FusionDefinition) -> bool:
    """Whether SQL, Python and JSON can express it."""
    return True


_RRF = "RRF with equal weights of several retrievers"
FUSION_TARGETS: dict[str, FusionTarget] = {
    target.name: target
    for target in (
        FusionTarget(
            "elasticsearch", "Elasticsearch 8.18", "RRF, and weighted sums of min-max scores",
            engines.is_rrf_or_minmax, engines.write_elasticsearch, "Elasticsearch 9.2",
        ),
        FusionTarget(
            "opensearch", "OpenSearch 2.19", "RRF, and weighted sums of min-max scores",
            engines.is_rrf_or_minmax, engines.write_opensearch, "OpenSearch 3.0",
        ),
        FusionTarget("solr", "Solr 10", _RRF, engines.is_plain_rrf, engines.write_solr),
        FusionTarget(
            "vespa", "Vespa 8", "weighted sums of min-max scores and reciprocal ranks", engines.has_vespa_terms,
            engines.write_vespa,
        ),
        FusionTarget("qdrant", "Qdrant 1.16", _RRF, engines.is_plain_rrf, engines.write_qdrant),
        FusionTarget("milvus", "Milvus 2.4", _RRF, engines.is_plain_rrf, engines.write_milvus),
        FusionTarget(
            "lancedb", "LanceDB 0.40", "RRF with equal weights of full text and one vector search", engines.is_two_rrf,
            engines.write_lancedb,
        ),
        FusionTarget("sql", "PostgreSQL and SQLite", "every fusion", any_fusion, anywhere.write_sql),
        FusionTarget("python", "Python", "every fusion", any_fusion, anywhere.write_python),
        FusionTarget("json", "JSON", "every fusion", any_fusion, anywhere.write_json),
    )
}  # fmt: skip
"""All targets by name."""


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
    if target.weighted_rrf and engines.is_rrf(written) and not engines.is_plain_rrf(written):
        remarks += (f"Weights of RRF need {target.weighted_rrf}; older versions refuse or ignore them.",)
    files = target.write(written, FusionOptions(name=name, size=size, dialect=dialect))
    main = Path(path)
    paths = {suffix: main.with_name(main.stem + suffix) if suffix else main for suffix in files}
    for place in paths.values():
        require_no_input(place, inputs)
        require_place(place, overwrite=overwrite)
    if len(set(paths.values())) < len(paths):
        raise InputError(f"{main} is also the name of the second file that this export writes; choose another name.")
    with ExitStack() as stack:  # all files are written before the first appears
        for suffix, content in files.items():
            stack.enter_context(atomic_file(paths[suffix], overwrite=overwrite)).write_bytes(content)
    return ExportedFiles(tuple(paths.values()), remarks, None)


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
