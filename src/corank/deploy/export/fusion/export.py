"""Export fusions: the table of targets, and the function that writes the files of one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from corank.data.durable.atomic import atomic_file, require_no_input, require_place
from corank.deploy.export.export import ExportedFiles
from corank.deploy.export.fusion import anywhere, engines
from corank.deploy.export.fusion.forms import FusionOptions, FusionTarget, expressible
from corank.errors import InputError, suggest_names
from corank.models.fusion import FusionDefinition

_RRF = "RRF with equal weights of several retrievers"
FUSION_TARGETS: dict[str, FusionTarget] = {
    target.name: target
    for target in (
        FusionTarget(
            "elasticsearch", "Elasticsearch 8.18 (weighted RRF: 9.2)", "RRF, and weighted sums of min-max or l2 scores",
            engines.is_rrf_or_normalised, engines.write_elasticsearch,
        ),
        FusionTarget(
            "opensearch", "OpenSearch 2.19 (weighted RRF: 3.0)", "RRF, and weighted sums of min-max or l2 scores",
            engines.is_rrf_or_normalised, engines.write_opensearch,
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
        FusionTarget("sql", "PostgreSQL and SQLite", "every fusion", anywhere.is_known, anywhere.write_sql),
        FusionTarget("python", "Python", "every fusion", anywhere.is_known, anywhere.write_python),
        FusionTarget("json", "JSON", "every fusion", lambda definition: True, anywhere.write_json),
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
    written, remark = expressible(definition, FUSION_TARGETS[to], nearest=nearest)
    files = FUSION_TARGETS[to].write(written, FusionOptions(name=name, size=size, dialect=dialect))
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
    return ExportedFiles(tuple(paths.values()), (remark,) if remark else (), None)
