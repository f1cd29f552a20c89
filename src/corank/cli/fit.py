"""`corank fit`: learn a ranker from a file and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def fit(
    data: Annotated[
        list[Path],
        typer.Argument(help="LETOR text (also gz, xz, zst; several files are put together), a store, or Parquet."),
    ],
    model: Annotated[str, typer.Option("--model", "-m", help="What to learn: spd, crr, lcra, ...")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", metavar="MODEL")],
    loss: Annotated[str | None, typer.Option(help="Loss: hinge, squared, logistic, ...")] = None,
    penalty: Annotated[float | None, typer.Option("--lambda", help="Weight of the penalty (alpha).")] = None,
    iterations: Annotated[int | None, typer.Option(help="Number of stochastic steps.")] = None,
    loop: Annotated[
        str | None,
        typer.Option(
            help="How pairs are drawn: pairs (all pairs alike), query (queries alike), rows (rows alike); or a loop "
            "of sofia-ml: rank = rows, query-norm-rank = query, roc = pairs of all rows."
        ),
    ] = None,
    eta: Annotated[str | None, typer.Option(help="Learning rate: pegasos, constant, sqrt, adagrad.")] = None,
    mix: Annotated[float | None, typer.Option(help="Share of regression, 0 (ranking only) to 1.")] = None,
    coupling: Annotated[float | None, typer.Option(help="Weight of the agreement of views.")] = None,
    views: Annotated[
        str | None, typer.Option(help="Number of random views, or their features: 1-23/24-46.", metavar="VIEWS")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    unscored: Annotated[float | None, typer.Option(help="Label that marks an unscored row, such as -1.")] = None,
    qid: Annotated[
        str | None, typer.Option(help="'none' ignores query ids; otherwise the id column of a Parquet file.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="Any other parameter of the model.", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """Learn a ranker from scored and unscored rows, and save it."""
    import sys
    import time

    import numpy as np
    from sklearn.utils._param_validation import InvalidParameterError

    from corank.cli.models import IGNORE_QUERIES, build, find_ranker, parse_views, require_features, sampling_of
    from corank.cli.problem import read_problem
    from corank.errors import InputError
    from corank.persist import save

    kind = find_ranker(model)
    options = {
        "--loss": ("loss", loss),
        "--lambda": ("alpha", penalty),
        "--iterations": ("n_steps", iterations),
        "--loop": ("sampling", None if loop is None else sampling_of(loop)),
        "--eta": ("rate", eta),
        "--mix": ("mix", mix),
        "--coupling": ("coupling", coupling),
        "--views": ("views", None if views is None else parse_views(views)),
    }
    ranker = build(kind, options, assignments or [])
    params = ranker.get_params(deep=False)
    if params.get("random_state", seed) is None:
        ranker.set_params(random_state=seed)
    problem = read_problem(data, unscored=unscored, qid="none" if loop in IGNORE_QUERIES else qid).data
    if views is not None:
        require_features(params["views"], problem.n_features)
    began = time.perf_counter()
    shows_progress = "verbose" in params and sys.stderr.isatty()
    try:
        (ranker.set_params(verbose=True) if shows_progress else ranker).fit(problem)
    except InvalidParameterError as refusal:
        raise InputError(str(refusal)) from refusal
    seconds = time.perf_counter() - began
    # the file does not depend on where it was made
    save(ranker.set_params(verbose=params["verbose"]) if shows_progress else ranker, output)
    outcome = "no training scores to compare"
    if problem.n_pairs:
        error = 1.0 - ranker.score(problem.X, np.asarray(problem.y), problem.queries.codes)
        outcome = f"disagreement with the training scores {error:.4f}"
    typer.echo(
        f"wrote {output}: {kind.__name__} from {problem.n_rows} rows ({problem.n_scored} scored) in "
        f"{len(problem.queries)} queries, {problem.n_features} features, {seconds:.2f} s; {outcome}"
    )
