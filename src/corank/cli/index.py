"""`corank index`: documents become an index, which `corank search` and `corank learn-links` read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def index(
    documents: Annotated[
        list[Path],
        typer.Argument(help="JSON lines (.jsonl), tables of id and text (.tsv), or folders of .txt files."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Index file to write.")],
    language: Annotated[
        str, typer.Option(help="Language of the stemmer, such as english or german; none leaves words whole.")
    ] = "english",
    stop_words: Annotated[
        str, typer.Option(help="Words that do not count: english, none, or a file of one word a line.")
    ] = "english",
    add_to: Annotated[
        Path | None, typer.Option(help="Index whose documents come first; its language and stop words are kept.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Count the words of documents, and write an index to be searched or learnt from."""
    import time

    from corank.data.atomic import require_place
    from corank.data.text import open_text
    from corank.linklearn import add_documents, open_corpus, read_corpus, save_corpus

    require_place(output, overwrite=force)
    began = time.perf_counter()
    if add_to is not None:
        corpus = add_documents(open_corpus(add_to), documents)
    else:
        chosen: str | list[str] | None = None if stop_words == "none" else stop_words
        if stop_words not in ("none", "english"):
            chosen = open_text(stop_words).read().tobytes().decode("utf-8", "replace").split()
        corpus = read_corpus(documents, language=None if language == "none" else language, stop_words=chosen)
    save_corpus(corpus, output, overwrite=force)
    seconds = time.perf_counter() - began
    mean = corpus.lengths.sum() / max(corpus.n_documents, 1)
    typer.echo(
        f"wrote {output}: {corpus.n_documents} documents of {mean:.0f} words on average, "
        f"{corpus.n_terms} different ones, {seconds:.1f} s"
    )
