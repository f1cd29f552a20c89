"""`corank fit`: the command and its options; `corank.cli.learn.fitting` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from corank.cli.imports import import_scikit_learn
from corank.cli.options import (
    Assignments,
    Data,
    Force,
    Json,
    JudgedColumns,
    ModelOutput,
    Prior,
    Scaling,
    Seed,
    Unjudged,
)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of `corank fit`."""

    data: Data
    output: ModelOutput
    model: Annotated[str, typer.Option("--model", "-m", help="Model: auto-ranker, spd, lambdarank, ...")] = (
        "auto-ranker"
    )
    loss: Annotated[str | None, typer.Option(help="Loss: hinge, squared, logistic, ...")] = None
    penalty: Annotated[
        str | None,
        typer.Option(
            "--alpha", "--lambda", help="Weight of the penalty; for lambdarank, its lambdas: ndcg@10, map, ..."
        ),
    ] = None
    scorer: Annotated[str | None, typer.Option(help="Scoring function of lambdarank: linear, mlp, trees.")] = None
    iterations: Annotated[int | None, typer.Option(help="Number of stochastic steps.")] = None
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which auto-ranker tries no further candidate.", metavar="SECONDS"),
    ] = None
    deploy: Annotated[
        str | None,
        typer.Option("--for", help="Average only what an engine can run: opensearch, sql, ...", metavar="TARGET"),
    ] = None
    loop: Annotated[
        str | None,
        typer.Option(help="Distribution of sampled pairs: uniform over pairs, query (first) or rows (first)."),
    ] = None
    eta: Annotated[str | None, typer.Option(help="Learning rate: pegasos, constant, sqrt, adagrad.")] = None
    mix: Annotated[float | None, typer.Option(help="Weight of regression, 0 (ranking only) to 1.")] = None
    coupling: Annotated[float | None, typer.Option(help="Weight of the agreement between views.")] = None
    views: Annotated[
        str | None,
        typer.Option(help="Number of random views, or their features: 1-23/24-46, title,body/age.", metavar="VIEWS"),
    ] = None
    prior: Prior = None
    scale: Scaling = None
    seed: Seed = 0
    unjudged: Unjudged = None
    columns: JudgedColumns
    valid: Annotated[
        Path | None,
        typer.Option(help="Judged rows to choose alpha or the stopping time, and to evaluate.", metavar="FILE"),
    ] = None
    metric: Annotated[str, typer.Option(help="Metric of --valid.")] = "nDCG@10"
    convention: Annotated[str, typer.Option(help="Convention of --metric: corank, letor4, trec_eval, ...")] = "corank"
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Preferences instead of scores: a table of winner,loser(,weight) with document ids, or row numbers "
            "from 1 if there are none.",
            metavar="FILE",
        ),
    ] = None
    assignments: Assignments = None
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Fit on parts (a folder, or several files) with Dask: a scheduler address, or local:2 for two "
            "processes.",
            metavar="ADDRESS",
        ),
    ] = None
    as_json: Json = False
    force: Force = False


def fit(options: FitOptions) -> None:
    """Learn a ranker from judged and unjudged rows, and save it; Ctrl-C saves the current state."""
    import_scikit_learn()
    from corank.cli.learn.fitting import run_fit

    run_fit(options)
