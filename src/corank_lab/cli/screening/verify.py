"""`corank screen certify` and `corank screen verify`: certificates of the recall that others can compute again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli import Force, Json, Seed, emit
from corank.errors import InputError
from corank_lab.cli.screening.screen import Answers, Confidence, Files, KeepDuplicates, Rule, Target, Text, Title


def certify(
    records: Files,
    output: Annotated[Path, typer.Option("--output", "-o", help="Certificate to write, a .json file.")] = Path(
        "certificate.json"
    ),
    page: Annotated[
        Path | None, typer.Option(help="Also write the certificate as a page, a .html file.", show_default=False)
    ] = None,
    answers: Answers = None,
    rule: Rule = "agree",
    target: Target = 0.95,
    confidence: Confidence = 0.95,
    keep_duplicates: KeepDuplicates = False,
    title: Title = None,
    text: Text = None,
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
    emit(as_json, "screen certify", fields, f"{result['statement']}\nwrote {written}")


def verify(
    certificate: Annotated[Path, typer.Argument(help="Certificate: the .json file that corank screen certify wrote.")],
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
    emit(as_json, "screen verify", {"certificate": certificate, "confirmed": list(lines)}, "\n".join(lines))
