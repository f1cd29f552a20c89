"""`corank demo`: learn from a synthetic collection of which one query in twenty is judged, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option(file_okay=False, help="Folder for the files it writes.")] = Path("out/demo"),
    queries: Annotated[int, typer.Option(min=60, help="Number of queries of the synthetic collection.")] = 900,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the synthetic collection.")] = 0,
) -> None:
    """Learn from a collection with 5 % of its queries judged; compare rankers on held-out queries; save one."""
    import time

    import numpy as np

    from corank.cli.tables import screen, show
    from corank.data.letor import read_letor
    from corank.data.letor_writer import write_letor
    from corank.data.make import make_ranking
    from corank.data.split import QueryShuffleSplit, hide_scores
    from corank.data.store import open_store, write_store
    from corank.descent import CRR, LCRA, SPD
    from corank.errors import InputError
    from corank.experiments.report import ReportTable
    from corank.metrics import compare, evaluate
    from corank.persist import load, save

    began = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    problem = make_ranking(queries, (10, 40), features_per_view=20, random_state=seed)
    write_letor(output / "collection.txt.gz", problem.X, problem.y, problem.qid, overwrite=True)
    file = read_letor(output / "collection.txt.gz", dtype=np.float64)
    train, test = next(QueryShuffleSplit(1, test_size=1 / 3, random_state=seed).split(file.X, qid=file.qid))
    assert file.qid is not None
    judged = hide_scores(file.y[train], file.qid[train], fraction=0.95, by="query", random_state=seed)
    write_store(output / "training.store", file.X[train], judged, file.qid[train], overwrite=True)
    data = open_store(output / "training.store").data

    views = [view.tolist() for view in problem.views]
    learners = {"SPD": SPD(), "CRR": CRR(), "LCRA": LCRA(views)}
    scores = {name: learner.fit(data).predict(file.X[test]) for name, learner in learners.items()}
    scores["ideal"] = file.X[test] @ problem.best
    metrics = ("nDCG@10", "AP", "disagreement")
    found = {name: evaluate(file.y[test], values, file.qid[test], metrics) for name, values in scores.items()}

    title = (
        f"{data.n_rows} rows in {len(data.queries)} queries, {data.n_scored} judged; tested on "
        f"{len(np.unique(file.qid[test]))} other queries"
    )
    first, *_ = found
    rows: list[tuple[str | float, ...]] = []
    for name, evaluation in found.items():
        test_of = compare(found[first], evaluation, "nDCG@10", random_state=seed)
        gain = f"{test_of.difference:+.3f} ({test_of.low:+.3f} to {test_of.high:+.3f})"
        notes = ("", "") if name == first else (gain, f"{test_of.p_value:.1g}")
        rows.append((name, *(evaluation[metric].mean for metric in metrics), *notes))
    show(ReportTable(title, ("ranker", *metrics, "gain in nDCG@10 over SPD", "p"), tuple(rows)), screen())
    typer.echo(
        "Gains carry a 95 % bootstrap interval and the p-value of Wilcoxon's signed-rank test over the queries.\n"
        "SPD learns from pairs of judged rows, CRR from their grades too, LCRA also from unjudged rows, on which its "
        "two views must agree; the ideal ranker knows how the rows were made."
    )
    model = output / "lcra.safetensors"
    save(learners["LCRA"], model, overwrite=True)
    if not np.array_equal(load(model).predict(file.X[test]), scores["LCRA"]):
        raise InputError(f"{model} does not predict what it did before it was saved.")
    typer.echo(
        f"wrote {model} (loaded again, it ranks the same), "
        f"{output / 'collection.txt.gz'} and {output / 'training.store'}; {time.perf_counter() - began:.1f} s"
    )
