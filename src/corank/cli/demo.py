"""`corank demo`: a synthetic collection, written, converted, read back and evaluated in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the files it writes.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="Seed of the synthetic collection.")] = 0,
) -> None:
    """Make a synthetic collection with two views, store it, and compare rankings of it query by query."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from corank.data.letor import read_letor, write_letor
    from corank.data.make import make_ranking
    from corank.data.store import open_store, write_store
    from corank.metrics import compare, evaluate

    output.mkdir(parents=True, exist_ok=True)
    problem = make_ranking(400, (10, 40), random_state=seed)
    write_letor(output / "collection.txt.gz", problem.X, problem.y, problem.qid)
    text = read_letor(output / "collection.txt.gz", dtype=np.float64)
    write_store(output / "collection.store", text.X, text.y, text.qid, replace=True)
    data = open_store(output / "collection.store").data
    first, second = problem.views
    rankings = {
        "one feature": data.X[:, 0],
        "best of view 1": data.X[:, first] @ problem.best[first],
        "best of view 2": data.X[:, second] @ problem.best[second],
        "best of both views": data.X @ problem.best,
    }
    metrics = ("nDCG@10", "AP", "disagreement")
    found = {name: evaluate(data.y, scores, text.qid, metrics) for name, scores in rankings.items()}
    table = Table(title=f"{data.n_rows} rows, {len(data.queries)} queries, {data.n_pairs} pairs", title_justify="left")
    for column in ("ranking", *metrics, "nDCG@10 against one feature"):
        table.add_column(column)
    for name, evaluation in found.items():
        test = compare(found["one feature"], evaluation, "nDCG@10", rng=np.random.default_rng(seed))
        note = "" if name == "one feature" else f"{test.difference:+.3f} (p = {test.p_value:.1g}, Wilcoxon)"
        table.add_row(name, *(f"{evaluation[metric].mean:.4f}" for metric in metrics), note)
    Console().print(table)
    typer.echo(f"wrote {output / 'collection.txt.gz'} and {output / 'collection.store'}")
