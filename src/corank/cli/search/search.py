"""`corank search`: the best documents of an index, by BM25 or by what was learnt from links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli.output import Json, emit, print_json


def search(
    index: Annotated[Path, typer.Argument(help="Index that `corank index` wrote.")],
    words: Annotated[str | None, typer.Argument(help="What to search for.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Many queries instead: .tsv of id and text, or .jsonl.", metavar="FILE")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Model that `corank learn-links` wrote.  [default: BM25]")] = None,
    k1: Annotated[float, typer.Option(min=0.0, help="BM25: how slowly repeated words stop counting.")] = 1.2,
    b: Annotated[float, typer.Option(min=0.0, max=1.0, help="BM25: how much long documents count less.")] = 0.75,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Documents to find for a query.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="TREC run file to write.  [default: screen]")
    ] = None,
    tag: Annotated[str, typer.Option(help="Name of the run in a TREC file.")] = "corank",
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Search an index; a line is a document's rank, score and id, or a row of a TREC run."""
    import numpy as np

    from corank.data.formats.compressed import is_stream, require_text_place
    from corank.data.formats.trec import write_run
    from corank.errors import InputError
    from corank.persist import load
    from corank.text import BM25, LinkLearn, open_corpus, read_texts

    if (words is None) == (queries is None):
        raise InputError("nothing to search for, or two things; pass words, or a file of queries with --queries.")
    if output is not None:
        require_text_place(output, overwrite=force)
    scorer = BM25(k1, b) if model is None else load(model)
    if not isinstance(scorer, BM25 | LinkLearn):
        raise InputError(f"{model} holds a {type(scorer).__name__}; pass a model that `corank learn-links` wrote.")
    texts = read_texts(queries) if queries is not None else {"1": words or ""}
    corpus = open_corpus(index)
    found = scorer.to_index(corpus).search(list(texts.values()), number)
    is_there = found.documents >= 0
    names = corpus.ids[found.documents[is_there]]
    if output is not None:
        qid = np.repeat(np.array(list(texts), dtype=object), is_there.sum(axis=1))
        write_run(output, qid, names, found.scores[is_there], tag, overwrite=force)
        if not is_stream(output):
            fields = {"output": output, "n_documents": len(names), "n_queries": len(texts)}
            sentence = f"wrote {output}: {len(names)} documents for {len(texts)} queries"
            emit(as_json, "search", fields, sentence)
        return
    if as_json:
        documents = iter(names.tolist())
        hits = [
            {"query": query, "documents": [{"id": next(documents), "score": score} for score in scores[row].tolist()]}
            for query, row, scores in zip(texts, is_there, found.scores, strict=True)
        ]
        print_json("search", {"queries": hits})
        return
    at = 0
    for query, row, scores in zip(texts, is_there, found.scores, strict=True):
        if queries is not None:
            typer.echo(query)
        for rank, score in enumerate(scores[row].tolist(), 1):
            typer.echo(f"{rank}\t{score:.4f}\t{names[at]}")
            at += 1
    if not len(names):
        typer.echo("no document holds any of these words", err=True)
