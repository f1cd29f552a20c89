"""`corank check-lambda` and `corank simulate-clicks`: LambdaRank gradients and simulated users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli.options import (
    Assignments,
    Drop,
    Force,
    IdColumn,
    Json,
    JudgeColumn,
    JudgeRule,
    Judges,
    Keep,
    Label,
    Plot,
    Prior,
    Qid,
    Scaling,
    Seed,
    Unscored,
)
from corank.cli.output import emit, print_json, table_fields

if TYPE_CHECKING:
    from corank.clicks import ClickCurve


def check_lambda(
    lambdas: Annotated[
        str,
        typer.Argument(
            help="Gradients: ranknet, margin, ndcg, map, mrr, err, wta, regression, spring, a weighted sum of them, or "
            "your own function, module:function."
        ),
    ],
    labels: Annotated[
        str | None, typer.Option(help="Grades of the query to check, such as 2,1,0.", metavar="GRADES")
    ] = None,
    points: Annotated[int, typer.Option(min=1, help="Number of random score vectors to check.")] = 100,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Check whether LambdaRank gradients derive from a cost function, and whether it is convex."""
    from corank.cli.learn.models import add_working_directory
    from corank.data.durable.atomic import require_place
    from corank.errors import InputError
    from corank.models.lambdarank import check_lambda as check
    from corank.models.lambdarank import plot_lambda

    if plot is not None:
        require_place(plot, overwrite=force)
    try:
        grades = None if labels is None else [float(label) for label in labels.split(",")]
    except ValueError:
        raise InputError(f"--labels is {labels!r}; write grades separated by commas, such as 2,1,0.") from None
    add_working_directory()
    result = check(lambdas, grades, n_points=points, random_state=seed)
    if plot is not None:
        plot_lambda(lambdas, plot, overwrite=force)
    written = "" if plot is None else f"\nwrote {plot}"
    emit(as_json, "check-lambda", {"check": result, "plot": plot}, f"{result}{written}")


def simulate_clicks(
    data: Annotated[
        list[Path],
        typer.Argument(help="Judged rows: LETOR text (several are joined), a store, Parquet or CSV; - is stdin."),
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", help="Online ranker: pdgd, pairwise-epsilon-greedy, dbgd, mgd.")
    ] = "pdgd",
    user: Annotated[
        str, typer.Option(help="Click model: perfect, navigational, informational, almost_random.")
    ] = "navigational",
    stop_after: Annotated[
        str, typer.Option(help="Rows after which a user may stop: clicked ones, or any.", metavar="click|any")
    ] = "click",
    test: Annotated[Path | None, typer.Option(help="Judged rows for the offline metric.  [default: DATA]")] = None,
    impressions: Annotated[int, typer.Option(min=0, help="Number of lists to show.")] = 10_000,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs with different random seeds.")] = 5,
    k: Annotated[int, typer.Option(min=1, help="Length of a list.")] = 10,
    discount: Annotated[float, typer.Option(help="Discount of the online metric per list.")] = 0.9995,
    scale: Scaling = None,
    prior: Prior = None,
    unscored: Unscored = None,
    label: Label = None,
    qid: Qid = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    keep: Keep = None,
    judges: Judges = JudgeRule.median,
    judge_column: JudgeColumn = None,
    seed: Seed = 0,
    assignments: Assignments = None,
    plot: Plot = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate users who click, let an online ranker learn from them, and print its learning curve."""
    import sys
    from dataclasses import replace

    from corank.base.query_scaler import QueryScaler
    from corank.cli.learn.models import build_ranker, find_ranker, parse_features, resolve_features
    from corank.cli.output import make_console, show
    from corank.cli.rows import ColumnOptions, read_rows
    from corank.clicks import CascadeClicks, OnlineRanker, simulate
    from corank.clicks.click_models import as_click_model
    from corank.data.durable.atomic import require_place
    from corank.data.ranking import RankingData
    from corank.errors import InputError
    from corank.tables import ReportTable

    kind = find_ranker(model)
    if not issubclass(kind, OnlineRanker):
        raise InputError(
            f"--model {model} cannot learn from clicks; choose pdgd, pairwise-epsilon-greedy, dbgd or mgd."
        )
    ranker = build_ranker(kind, {}, assignments or [])
    prior_features = None if prior is None else parse_features(prior, "--prior")
    if plot is not None:
        require_place(plot, overwrite=force)

    columns = ColumnOptions(
        label=label, qid=qid, id_column=id_column, drop=drop, keep=keep, judge_column=judge_column, judges=judges.value
    )

    def problem(paths: list[Path], like: RankingData | None = None) -> RankingData:
        rows = read_rows(
            paths, columns, needs_labels=True, unscored=unscored, layout="auto" if scale is None else "dense",
            n_features=None if like is None else like.n_features, features=None if like is None else like.names,
        ).data  # fmt: skip
        codes = rows.queries.codes
        X = rows.X if scale is None else QueryScaler(scale.value).fit_transform(rows.X, qid=codes)
        made = replace(RankingData.of(X, rows.y, codes), names=rows.names)  # type: ignore[arg-type]
        if prior_features is None:
            return made
        chosen = resolve_features(prior_features, "--prior", rows.names, rows.n_features)
        return made.with_prior(X[:, chosen].mean(axis=1))

    served = problem(data)
    measured = None if test is None else problem([test], served)
    highest = 0 if served.y is None else served.y.max()
    clicks = as_click_model(user, highest)
    if isinstance(clicks, CascadeClicks):
        clicks = CascadeClicks(clicks.kind, clicks.grades, stop_after)
    elif stop_after != "click":
        raise InputError(f"--stop-after applies to cascade models, and {user!r} is not one; leave it out.")
    curve = simulate(
        ranker, served, clicks, impressions, test=measured, k=k,
        discount=discount, n_runs=runs, random_state=seed, verbose=sys.stderr.isatty(),
    )  # fmt: skip
    rows = zip(
        curve.impressions.tolist(), curve.mean().tolist(), curve.error().tolist(), curve.mean("online").tolist(),
        curve.error("online").tolist(), strict=True,
    )  # fmt: skip
    where = "on the rows served" if measured is None else "on the test rows"
    table = ReportTable(
        f"{curve.ranker}, {user} user, {runs} runs",
        ("lists", "offline", "offline error", "online", "online error"),
        tuple(rows),
        note=f"offline: {curve.metric} of the ranker {where}; online: sum of {discount:g}^(t-1) times {curve.metric} "
        "of list t; errors are standard errors over runs.",
    )
    if plot is not None:
        _draw(curve, plot)
    if as_json:
        print_json("simulate-clicks", {"table": table_fields(table), "plot": plot})
        return
    show(table, make_console())
    if plot is not None:
        typer.echo(f"wrote {plot}")


def _draw(curve: ClickCurve, path: Path) -> None:
    from corank.data.durable.atomic import atomic_file
    from corank.errors import import_extra

    import_extra("matplotlib", "report")
    from matplotlib.figure import Figure  # without pyplot, which has global state

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    curve.plot(left)
    curve.plot(right, "online")
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
