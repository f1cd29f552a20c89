"""`corank index`, `corank search` and `corank learn-links`: text search, and a similarity learnt from links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from corank.cli.options import Force, Json, RunTag, Seed
from corank.cli.output import emit, note, print_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from corank.text import Corpus, SearchResult

IndexFile = Annotated[Path, typer.Argument(help="Index that `corank index` wrote.")]


def index(
    documents: Annotated[
        list[Path],
        typer.Argument(help="JSON lines (.jsonl), tables of id and text (.tsv), or folders of .txt files; - is stdin."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Index file to write.")],
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the stemmer, such as english or german; none for no stemming.  [default: english]"
        ),
    ] = None,
    stop_words: Annotated[
        str | None,
        typer.Option(help="Stop words: english, none, or a file with one word per line.  [default: english]"),
    ] = None,
    add_to: Annotated[Path | None, typer.Option(help="Index to extend; its language and stop words are used.")] = None,
    vectors_output: Annotated[
        Path | None,
        typer.Option("--vectors", help="File of static vectors of the documents to write, too (.npz).", metavar="FILE"),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Index documents for `corank search` and `corank learn-links`."""
    import time

    from corank.data.durable.atomic import require_place
    from corank.data.durable.text import open_text
    from corank.errors import InputError
    from corank.text import add_documents, open_corpus, read_corpus, save_corpus

    for option, value in (("--language", language), ("--stop-words", stop_words)):
        if add_to is not None and value is not None:
            raise InputError(f"{option} is fixed by the index of --add-to; leave it out.")
    require_place(output, overwrite=force)
    if vectors_output is not None:
        if add_to is not None or Path("-") in documents:
            raise InputError("--vectors needs the texts of all documents in files; leave out --add-to, and pass files.")
        require_place(vectors_output, overwrite=force)
    began = time.perf_counter()
    if add_to is not None:
        corpus = add_documents(open_corpus(add_to), documents)
    else:
        language, stop_words = language or "english", stop_words or "english"
        chosen: str | list[str] | None = None if stop_words == "none" else stop_words
        if stop_words not in ("none", "english"):
            chosen = open_text(stop_words).read().tobytes().decode("utf-8", "replace").split()
        corpus = read_corpus(documents, language=None if language == "none" else language, stop_words=chosen)
    if vectors_output is not None:
        _write_static_vectors(documents, vectors_output, force)
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
        f"{corpus.n_terms} distinct terms, {seconds:.1f} s",
    )


def _write_static_vectors(documents: list[Path], output: Path, force: bool) -> None:
    from corank.text import Vectors, embed_texts, read_documents, write_vectors
    from corank.text.vectors import STATIC_MODEL

    texts = {name: text for path in documents for name, text in read_documents(path)}
    write_vectors(output, Vectors.of(embed_texts(list(texts.values())), texts, STATIC_MODEL), overwrite=force)


Similarity = Literal["cosine", "dot"]


def search(
    index: IndexFile,
    words: Annotated[str | None, typer.Argument(help="Query text.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="File of queries instead: .tsv of id and text, or .jsonl.", metavar="FILE")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Model that `corank learn-links` wrote.  [default: BM25]")] = None,
    k1: Annotated[float, typer.Option(min=0.0, help="BM25: saturation of the term frequency.")] = 1.2,
    b: Annotated[float, typer.Option(min=0.0, max=1.0, help="BM25: normalisation by document length.")] = 0.75,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Search these vectors of the documents instead: .npz, .npy or Parquet.", metavar="FILE"),
    ] = None,
    query_vectors: Annotated[
        Path | None,
        typer.Option(help="Vectors of the queries; needed unless `corank index` made those of the documents."),
    ] = None,
    similarity: Annotated[Similarity, typer.Option(help="Vectors: cosine, or dot product.")] = "cosine",
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="Documents per query.")] = 10,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="TREC run file to write.  [default: screen]")
    ] = None,
    tag: RunTag = "corank",
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Search an index by BM25, a learnt similarity or vectors; print rank, score and id, or write a TREC run."""
    import numpy as np

    from corank.data.durable.compressed import is_stream, require_text_place
    from corank.data.io.trec import write_run
    from corank.deploy.persist import load
    from corank.errors import InputError
    from corank.text import BM25, LinkLearn, open_corpus, read_texts

    if query_vectors is not None:
        _require_vector_options(vectors, words or queries)
    elif (words is None) == (queries is None):
        result = "no query" if words is None else "both words and --queries"
        raise InputError(f"found {result}; pass either the words of one query, or a file of queries with --queries.")
    if output is not None:
        require_text_place(output, overwrite=force)
    scorer = BM25(k1, b) if model is None else load(model)
    if not isinstance(scorer, BM25 | LinkLearn):
        raise InputError(f"{model} contains a {type(scorer).__name__}; pass a model that `corank learn-links` wrote.")
    texts = read_texts(queries) if queries is not None else {"1": words or ""}
    corpus = open_corpus(index)
    if vectors is None:
        ids, hits = corpus.ids, scorer.to_index(corpus).search(list(texts.values()), number)
    else:
        ids, texts, hits = _search_vectors(corpus, vectors, query_vectors, texts, number, similarity)
    is_hit = hits.documents >= 0
    names = ids[hits.documents[is_hit]]
    if output is not None:
        qid = np.repeat(np.array(list(texts), dtype=object), is_hit.sum(axis=1))
        write_run(output, qid, names, hits.scores[is_hit], tag, overwrite=force)
        if not is_stream(output):
            fields = {"output": output, "n_documents": len(names), "n_queries": len(texts)}
            sentence = f"wrote {output}: {len(names)} documents for {len(texts)} queries"
            emit(as_json, "search", fields, sentence)
        return
    if as_json:
        documents = iter(names.tolist())
        results = [
            {"query": query, "documents": [{"id": next(documents), "score": score} for score in scores[row].tolist()]}
            for query, row, scores in zip(texts, is_hit, hits.scores, strict=True)
        ]
        print_json("search", {"queries": results})
        return
    printed = 0
    for query, row, scores in zip(texts, is_hit, hits.scores, strict=True):
        if queries is not None or query_vectors is not None:
            typer.echo(query)
        for rank, score in enumerate(scores[row].tolist(), 1):
            typer.echo(f"{rank}\t{score:.4f}\t{names[printed]}")
            printed += 1
    if not len(names):
        typer.echo("no document contains any of these words", err=True)


def _require_vector_options(vectors: Path | None, words: object) -> None:
    from corank.errors import InputError

    if vectors is None:
        raise InputError("--query-vectors are compared with vectors of the documents; name their file with --vectors.")
    if words is not None:
        raise InputError("found both words and --query-vectors; a search uses one of them, so leave the other out.")


def _search_vectors(
    corpus: Corpus, path: Path, query_path: Path | None, texts: dict[str, str], number: int, similarity: Similarity
) -> tuple[NDArray[Any], dict[str, str], SearchResult]:
    """Search vectors; return the ids of the documents, the queries and the result."""
    from corank.errors import InputError
    from corank.text import embed_texts, read_vectors

    documents = read_vectors(path, ids=corpus.ids.tolist())
    unknown = [name for name in documents.ids.tolist() if name not in corpus.number]
    if unknown:
        raise InputError(
            f"{path} has {len(unknown)} vectors whose ids are not in the index, such as {unknown[0]!r}; use the ids of "
            "the indexed documents."
        )
    if len(documents.ids) < corpus.n_documents:
        absent = corpus.n_documents - len(documents.ids)
        note(f"{absent} documents of the index have no vector and are not found.")
    if query_path is not None:
        queries = read_vectors(query_path, "queries")
        return documents.ids, dict.fromkeys(queries.ids.tolist(), ""), documents.search(
            queries.rows, number, similarity=similarity, n_jobs=-1
        )  # fmt: skip
    if not documents.model:
        raise InputError(
            f"{path} does not name the model that made it; pass vectors of the queries with --query-vectors."
        )
    rows = embed_texts(list(texts.values()), documents.model)
    return documents.ids, texts, documents.search(rows, number, similarity=similarity, n_jobs=-1)


def learn_links(
    index: IndexFile,
    links: Annotated[Path, typer.Argument(help="Links: two tab-separated ids per line.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    queries: Annotated[
        Path | None,
        typer.Option(help="Texts of the first column of LINKS, such as clicked queries: .tsv or .jsonl."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of documents for early stopping; 0 for none.")
    ] = 0.5,
    steps: Annotated[int, typer.Option(min=0, help="Maximum number of steps.")] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Learn a text similarity from links between documents, or from clicks."""
    import time

    from corank.data.durable.atomic import require_place
    from corank.deploy.persist import save
    from corank.text import LinkLearn, Links, open_corpus, read_pairs, read_texts, split_links

    require_place(output, overwrite=force)
    corpus, pairs = open_corpus(index), read_pairs(links)
    texts = None if queries is None else read_texts(queries)
    if held_out > 0.0:
        training, validation = split_links(corpus, pairs, held_out, queries=texts, random_state=seed)
    else:
        validation = None
        training = Links.of(corpus, pairs) if texts is None else Links.of_queries(corpus, texts, pairs)
    began = time.perf_counter()
    model = LinkLearn(n_steps=steps, random_state=seed, n_jobs=-1, verbose=True).fit(training, validation)
    seconds = time.perf_counter() - began
    save(model, output, overwrite=force)
    fields: dict[str, object] = {
        "output": output, "n_steps": model.n_iter_, "n_texts": len(training), "n_links": len(training.linked),
        "n_missing": training.n_missing, "n_constraints": training.n_constraints, "seconds": seconds,
    }  # fmt: skip
    sentence = (
        f"wrote {output}: {model.n_iter_} steps, {len(training)} texts with {len(training.linked)} links "
        f"({training.n_missing} with unknown ids), {training.n_constraints} constraints, {seconds:.1f} s"
    )
    if validation is not None:
        before, after = 1.0 - model.validation_errors_[0], 1.0 - model.validation_errors_.min()
        sentence += f"\naverage precision on {len(validation)} held-out texts: {before:.4f} before, {after:.4f} after"
        fields |= {"n_held_out": len(validation), "precision_at_first": before, "precision": after}
    emit(as_json, "learn-links", fields, sentence)
