"""`corank certify` and `corank verify`: state what is known of the recall, so that others can compute it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli.judge import STOPPING_RULES
from corank.cli.options import Force, Json, Seed
from corank.cli.output import emit

Files = Annotated[list[Path], typer.Argument(help="Files of records, as they were screened.", metavar="RECORDS...")]
Answers = Annotated[
    Path | None,
    typer.Option(help="Folder of the answers.  [default: RECORDS.answers]", metavar="FOLDER", show_default=False),
]


def certify(
    records: Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Certificate to write; a page .html is written next to it.")
    ] = Path("certificate.json"),
    answers: Answers = None,
    rule: Annotated[str, typer.Option(help=f"Stopping rule: {STOPPING_RULES}.")] = "agree",
    target: Annotated[float, typer.Option(help="Recall to reach: share of the relevant records.")] = 0.95,
    confidence: Annotated[float, typer.Option(help="Required probability that it is reached.")] = 0.95,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Duplicates were judged as single records.")
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write a certificate of a screening: rule, assumptions, sample, exact bound, hashes of records and answers."""
    from corank.data.durable.atomic import atomic_file, require_place
    from corank.errors import InputError
    from corank.evaluation.report.certificate import certificate_page
    from corank.judging.screening.certificate import certificate_bytes, make_certificate

    if output.suffix != ".json":
        raise InputError(f"--output is {str(output)!r}; pass a name that ends in .json.")
    page = output.with_suffix(".html")
    for path in (output, page):
        require_place(path, overwrite=force)
    certificate = make_certificate(
        records, answers, rule=rule, target=target, confidence=confidence, seed=seed, keep_duplicates=keep_duplicates
    )
    with atomic_file(output, overwrite=force) as scratch:
        scratch.write_bytes(certificate_bytes(certificate))
    with atomic_file(page, overwrite=force) as scratch:
        scratch.write_text(certificate_page(certificate, output.name), encoding="utf-8", errors="replace")
    result = certificate["result"]
    emit(
        as_json, "certify", {"output": output, "page": page, **result}, f"{result['statement']}\nwrote {output}, {page}"
    )


def verify(
    certificate: Annotated[Path, typer.Argument(help="Certificate: the .json file that corank certify wrote.")],
    records: Files,
    answers: Answers = None,
    as_json: Json = False,
) -> None:
    """Compute a certificate anew from records and answers; name what differs, with exit code 1."""
    from corank.data.durable.regular import read_regular
    from corank.judging.screening.certificate import verify as verify_certificate

    lines = verify_certificate(read_regular(certificate), records, answers)
    emit(as_json, "verify", {"certificate": certificate, "confirmed": list(lines)}, "\n".join(lines))
