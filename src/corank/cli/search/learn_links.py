"""`corank learn-links`: learn from links which words make texts similar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli.output import Json, emit


def learn_links(
    index: Annotated[Path, typer.Argument(help="Index that `corank index` wrote.")],
    links: Annotated[Path, typer.Argument(help="Links: two ids a line, parted by a tab.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    queries: Annotated[
        Path | None,
        typer.Option(help="Texts that the first column of LINKS names, such as queries of clicks: .tsv or .jsonl."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of the documents that say when to stop; 0 takes every step.")
    ] = 0.5,
    steps: Annotated[int, typer.Option(min=0, help="Most steps.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Learn a similarity of texts from links between documents, or from clicks, for any index."""
    import time

    from corank.data.durable.atomic import require_place
    from corank.persist import save
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
        f"({training.n_missing} name what is not there), {training.n_constraints} constraints, {seconds:.1f} s"
    )
    if validation is not None:
        before, after = 1.0 - model.validation_errors_[0], 1.0 - model.validation_errors_.min()
        sentence += f"\naverage precision on {len(validation)} texts held out: {before:.4f} at first, {after:.4f} now"
        fields |= {"n_held_out": len(validation), "precision_at_first": before, "precision": after}
    emit(as_json, "learn-links", fields, sentence)
