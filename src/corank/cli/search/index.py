"""`corank index`: documents become an index, which `corank search` and `corank learn-links` read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli.output import Json, emit


def index(
    documents: Annotated[
        list[Path],
        typer.Argument(help="JSON lines (.jsonl), tables of id and text (.tsv), or folders of .txt files; - is stdin."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Index file to write.")],
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the stemmer, such as english or german; none leaves words whole.  [default: english]"
        ),
    ] = None,
    stop_words: Annotated[
        str | None,
        typer.Option(help="Words that do not count: english, none, or a file of one word a line.  [default: english]"),
    ] = None,
    add_to: Annotated[
        Path | None, typer.Option(help="Index whose documents come first; its language and stop words are kept.")
    ] = None,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Count the words of documents, and write an index to be searched or learnt from."""
    import time

    from corank.data.durable.atomic import require_place
    from corank.data.formats.text import open_text
    from corank.errors import InputError
    from corank.text import add_documents, open_corpus, read_corpus, save_corpus

    for option, given in (("--language", language), ("--stop-words", stop_words)):
        if add_to is not None and given is not None:
            raise InputError(f"{option} came beside --add-to, whose index has one already; leave it out.")
    require_place(output, overwrite=force)
    began = time.perf_counter()
    if add_to is not None:
        corpus = add_documents(open_corpus(add_to), documents)
    else:
        language, stop_words = language or "english", stop_words or "english"
        chosen: str | list[str] | None = None if stop_words == "none" else stop_words
        if stop_words not in ("none", "english"):
            chosen = open_text(stop_words).read().tobytes().decode("utf-8", "replace").split()
        corpus = read_corpus(documents, language=None if language == "none" else language, stop_words=chosen)
    save_corpus(corpus, output, overwrite=force)
    seconds = time.perf_counter() - began
    mean = corpus.lengths.sum() / max(corpus.n_documents, 1)
    fields = {
        "output": output, "n_documents": corpus.n_documents, "n_terms": corpus.n_terms, "mean_length": float(mean),
        "seconds": seconds,
    }  # fmt: skip
    emit(
        as_json,
        "index",
        fields,
        f"wrote {output}: {corpus.n_documents} documents of {mean:.0f} words on average, "
        f"{corpus.n_terms} different ones, {seconds:.1f} s",
    )
