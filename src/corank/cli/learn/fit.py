"""`corank fit`: learn a ranker from a file and save it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from corank.cli.learn.config import Config
from corank.cli.output import Json, emit

INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


class Scale(StrEnum):
    """What is done to each feature inside a query."""

    minmax = "minmax"
    zscore = "zscore"


def fit(
    data: Annotated[
        list[Path],
        typer.Argument(help="LETOR text (or .gz, .xz, .zst; several are joined), a store, Parquet or CSV; - is stdin."),
    ],
    model: Annotated[str, typer.Option("--model", "-m", help="What to learn: spd, crr, lcra, ...")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", metavar="MODEL")],
    loss: Annotated[str | None, typer.Option(help="Loss: hinge, squared, logistic, ...")] = None,
    penalty: Annotated[
        str | None,
        typer.Option("--lambda", help="Weight of the penalty (alpha); of lambdarank, its forces: ndcg@10, map, ..."),
    ] = None,
    scorer: Annotated[str | None, typer.Option(help="What lambdarank scores by: linear, mlp, trees.")] = None,
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
    prior: Annotated[
        str | None,
        typer.Option(
            help="Features whose mean orders rows before anything is learnt, such as BM25's 21-25; the model learns "
            "what they lack.",
            metavar="FEATURES",
        ),
    ] = None,
    scale: Annotated[
        Scale | None,
        typer.Option(help="Scale features inside each query, to [0, 1] or to deviation 1, here and in `corank rank`."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    unscored: Annotated[float | None, typer.Option(help="Label that marks an unscored row, such as -1.")] = None,
    label: Annotated[str, typer.Option(help="Column of scores in a table.")] = "label",
    qid: Annotated[
        str | None, typer.Option(help="'none' ignores query ids; otherwise the id column of a table.")
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(help="Judged rows that choose alpha or when to stop, and say how good it is.", metavar="FILE"),
    ] = None,
    metric: Annotated[str, typer.Option(help="What --valid is judged by.")] = "nDCG@10",
    convention: Annotated[str, typer.Option(help="How --metric is read: corank, letor4, trec_eval, ...")] = "corank",
    pairs: Annotated[
        Path | None,
        typer.Option(help="Preferences instead of scores: a table of winner,loser(,weight).", metavar="FILE"),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="Column that --pairs calls rows by; docid, id or name, or row numbers from 1."),
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="Any other parameter of the model.", metavar="NAME=VALUE")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Learn from parts on a Dask cluster: its address, or local:2 for two processes; a folder, or files "
            "that are not text, are parts too.",
            metavar="ADDRESS",
        ),
    ] = None,
    config: Config = None,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Learn a ranker from scored and unscored rows, and save it; Ctrl-C saves the steps taken so far."""
    import sys
    import time

    import numpy as np
    from sklearn import config_context
    from sklearn.pipeline import Pipeline

    from corank.cli.judge.preferences import names_of, read_named, read_preferences
    from corank.cli.learn.cluster import are_parts, fit_cluster
    from corank.cli.learn.models import (
        IGNORE_QUERIES,
        build,
        find_ranker,
        law_of,
        layout_of,
        parse_features,
        parse_lambda,
        parse_views,
        require_features,
    )
    from corank.cli.learn.validation import Validation, watches
    from corank.data.durable.atomic import require_place
    from corank.data.formats.read import common_format, open_source, read
    from corank.data.problem.ranking import RankingData
    from corank.data.problem.routing import predict_with_qid
    from corank.errors import InputError
    from corank.estimator import ColumnMean, OnTop
    from corank.estimator.query_scaler import QueryScaler
    from corank.label_ranking import LabelRanker, OnlineLabelRanker
    from corank.metrics import disagreement_error
    from corank.persist import save

    kind, (query_weight, draw) = find_ranker(model), law_of(loop)
    options = {
        "ranking_loss" if issubclass(kind, OnlineLabelRanker) else "loss": ("--loss", loss),
        **parse_lambda(kind, penalty),
        "scorer": ("--scorer", scorer),
        "n_steps": ("--iterations", iterations),
        "query_weight": ("--loop", query_weight),
        "draw": ("--loop", draw),
        "rate": ("--eta", eta),
        "mix": ("--mix", mix),
        "coupling": ("--coupling", coupling),
        "views": ("--views", None if views is None else parse_views(views)),
    }
    for option, given in (("--scale", scale), ("--prior", prior)):
        if given is not None and loop in IGNORE_QUERIES:
            raise InputError(f"{option} works inside queries, which --loop {loop} ignores; choose one of them.")
    known = None if prior is None else parse_features(prior, "--prior")
    ranker = build(kind, options, assignments or [])
    params = ranker.get_params(deep=False)
    if params.get("random_state", seed) is None:
        ranker.set_params(random_state=seed)
    if isinstance(ranker, LabelRanker):
        from corank.cli.learn.labels import fit_labels

        of_queries = {
            "--prior": prior, "--scale": scale, "--unscored": unscored, "--qid": qid, "--valid": valid,
            "--pairs": pairs, "--json": as_json or None,
        }  # fmt: skip
        if unfit := next((name for name, value in of_queries.items() if value is not None), None):
            raise InputError(f"{unfit} is for rows of queries, but {kind.__name__} ranks labels; leave it out.")
        typer.echo(fit_labels(ranker, data, label, output, overwrite=force))
        return
    if pairs is None and id_column is not None:
        raise InputError("--id says what --pairs calls rows; pass --pairs too, or leave it out.")
    if pairs is not None and (scale is not None or prior is not None or valid is not None):
        raise InputError("--scale, --prior and --valid are for scored rows, and --pairs came; leave them out.")

    def whole(ranker: Any) -> Any:
        on_top = ranker if known is None else OnTop(ColumnMean(known), ranker)
        return on_top if scale is None else Pipeline([("scale", QueryScaler(scale.value)), ("rank", on_top)])

    require_place(output, overwrite=force)
    if are_parts(data, cluster):
        at_once = {
            "--prior": prior, "--loop": loop in IGNORE_QUERIES, "--qid none": qid == "none", "--pairs": pairs,
            "--valid": valid,
        }  # fmt: skip
        reading = {"unscored": unscored, "y": label, "qid": qid}
        emit(as_json, "fit", *fit_cluster(whole(ranker), data, cluster, output, reading, at_once, overwrite=force))
        return
    column = "none" if loop in IGNORE_QUERIES else qid
    form: dict[str, Any] = {
        "unscored": unscored, "y": label, "qid": False if column == "none" else column,
        "layout": layout_of(whole(ranker)),
    }  # fmt: skip
    if pairs is None:
        rows = read(data, **form).data
    else:
        collection = read_named(data, column, id_column)
        preferred, pair_weight = read_preferences(pairs, names_of(collection))
        rows = RankingData.of_checked_pairs(collection.X, preferred, collection.data.queries)
        rows = rows.weighted(None, pair_weight)
    if views is not None and not isinstance(params["views"], int):
        require_features([column for view in params["views"] for column in view], "--views", rows.n_features)
    require_features(known or (), "--prior", rows.n_features)

    def learn(model: Any, **more: Any) -> None:
        if scale is None:
            model.fit(rows, **more)
            return
        with config_context(enable_metadata_routing=True):
            model.fit(rows.X, rows.y, qid=rows.queries.codes)

    began = time.perf_counter()
    validation, chosen, watched = None, "", {}
    if valid is not None:
        # text may name fewer features than there are
        judged = read(
            valid, **form, n_features=rows.n_features if common_format([open_source(valid)]) == "text" else None
        ).data
        validation = Validation(valid, judged, metric, convention)
        validation.require_features(rows.n_features)
        if watches(ranker) and scale is None and prior is None:
            watched = {"eval_set": judged}
            if not params["early_stopping"]:
                ranker.set_params(early_stopping=True)
        chosen = validation.choose(ranker, whole, learn)
    fitted = whole(ranker)
    on_top = fitted if scale is None else fitted[-1]
    shows_progress = "verbose" in params and sys.stderr.isatty()
    if shows_progress:
        ranker.set_params(verbose=True)
    interrupted = False
    try:
        learn(fitted, **watched)
    except KeyboardInterrupt:
        if not hasattr(ranker, "n_iter_"):
            typer.echo(f"corank: interrupted before there was a model; {output} was not written.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        interrupted = True
    seconds = time.perf_counter() - began
    learnt = ranker if known is None else on_top.ranker_
    if shows_progress:  # the file does not depend on where it was made
        for one in {ranker, learnt}:
            one.set_params(verbose=params["verbose"])
    save(fitted, output, overwrite=force)
    if interrupted:
        typer.echo(f"corank: interrupted; {output} keeps the {ranker.n_iter_} steps taken so far.", err=True)
        raise typer.Exit(INTERRUPTED)
    fields: dict[str, Any] = {
        "output": output, "model": kind.__name__, "n_rows": rows.n_rows, "n_scored": rows.n_scored,
        "n_queries": len(rows.queries), "n_features": rows.n_features, "n_pairs": rows.n_pairs, "seconds": seconds,
        "disagreement": None, "alpha": getattr(learnt, "alpha_", None), "valid": None,
    }  # fmt: skip
    outcome, told = "no training scores to compare", f"{rows.n_scored} scored"
    if rows.n_pairs:
        codes = rows.queries.codes
        scores = predict_with_qid(fitted, rows.X, codes)
        if pairs is not None:
            lead = scores[preferred[:, 0]] - scores[preferred[:, 1]]
            error, told = float(np.mean((lead < 0) + 0.5 * (lead == 0))), f"{len(preferred)} preferences"
            outcome = f"disagreement with the preferences {error:.4f}"
        else:
            error = disagreement_error(np.asarray(rows.y), scores, codes)
            outcome = f"disagreement with the training scores {error:.4f}"
        fields["disagreement"] = error
    if hasattr(learnt, "alpha_from_"):
        outcome += f"; alpha {learnt.alpha_:.4g} ({learnt.alpha_from_})"
    if validation is not None:
        value = validation.mean(fitted)
        fields["valid"] = {"file": valid, "metric": metric, "convention": convention, "mean": value, "chosen": chosen}
        outcome += f"; {metric} {value:.4f} on {valid}" + (f" with {chosen}" if chosen else "")
    what = kind.__name__ if known is None else f"{kind.__name__} on top of {len(known)} features"
    emit(
        as_json,
        "fit",
        fields,
        f"wrote {output}: {what} from {rows.n_rows} rows ({told}) in "
        f"{len(rows.queries)} queries, {rows.n_features} features, {seconds:.2f} s; {outcome}",
    )
