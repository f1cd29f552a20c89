"""`corank certify` and `corank verify`: state what is known of the recall, so that others can compute it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli import STOPPING_RULES, Force, Json, Seed, emit
from corank.errors import InputError

Files = Annotated[list[Path], typer.Argument(help="Files of records, as they were screened.", metavar="RECORDS...")]
Answers = Annotated[
    Path | None,
    typer.Option(help="Folder of corank.db or logs.  [default: that of RECORDS]", metavar="FOLDER", show_default=False),
]


def certify(
    records: Files,
    output: Annotated[Path, typer.Option("--output", "-o", help="Certificate to write, a .json file.")] = Path(
        "certificate.json"
    ),
    page: Annotated[
        Path | None, typer.Option(help="Also write the certificate as a page, a .html file.", show_default=False)
    ] = None,
    answers: Answers = None,
    rule: Annotated[str, typer.Option(help=f"Stopping rule: {STOPPING_RULES}.")] = "agree",
    target: Annotated[float, typer.Option(help="Recall to reach: share of the relevant records.")] = 0.95,
    confidence: Annotated[float, typer.Option(help="Required probability that it is reached.")] = 0.95,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Duplicates were judged as single records.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="Column of titles.", metavar="COLUMN", show_default=False)] = None,
    text: Annotated[
        str | None, typer.Option(help="Column of abstracts or texts.", metavar="COLUMN", show_default=False)
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Certify this judge alone.  [default: all judges together]", show_default=False),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write a certificate of a screening: rule, assumptions, sample, exact bound, hashes of records and answers."""
    from corank.data import atomic_file, require_place
    from corank.errors import InputError
    from corank_lab.screening.reporting.certificate import certificate_bytes, make_certificate
    from corank_lab.screening.reporting.certificate_page import certificate_page

    for name, path, suffix in (("--output", output, ".json"), ("--page", page, ".html")):
        if path is not None and path.suffix != suffix:
            raise InputError(f"{name} is {str(path)!r}; pass a name that ends in {suffix}.")
        if path is not None:
            require_place(path, overwrite=force)
    certificate = make_certificate(
        records, answers, rule=rule, target=target, confidence=confidence, seed=seed, keep_duplicates=keep_duplicates,
        judge=judge, title=title, text=text,
    )  # fmt: skip
    with atomic_file(output, overwrite=force) as scratch:
        scratch.write_bytes(certificate_bytes(certificate))
    if page is not None:
        with atomic_file(page, overwrite=force) as scratch:
            scratch.write_text(certificate_page(certificate, output.name), encoding="utf-8", errors="replace")
    result = certificate["result"]
    written = f"{output}, {page}" if page is not None else f"{output}"
    fields = {"output": output, "page": page, **result}
    emit(as_json, "certify", fields, f"{result['statement']}\nwrote {written}")


def verify(
    certificate: Annotated[Path, typer.Argument(help="Certificate: the .json file that corank certify wrote.")],
    records: Files,
    answers: Answers = None,
    as_json: Json = False,
) -> None:
    """Compute a certificate anew from records and answers; name what differs, with exit code 1."""
    from corank.data import read_regular
    from corank_lab.screening.reporting.certificate import verify as verify_certificate

    try:
        lines = verify_certificate(read_regular(certificate), records, answers)
    except InputError as error:
        raise InputError(f"{certificate}: {error}") from None
    emit(as_json, "verify", {"certificate": certificate, "confirmed": list(lines)}, "\n".join(lines))
