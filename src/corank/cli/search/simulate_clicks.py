"""`corank simulate-clicks`: how fast a ranker would learn from the clicks of simulated users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli.learn.fit import Scale
from corank.cli.output import Json, print_json, table_fields

if TYPE_CHECKING:
    from corank.clicks import ClickCurve


def simulate_clicks(
    data: Annotated[
        list[Path],
        typer.Argument(help="Graded rows: LETOR text (several are joined), a store, Parquet or CSV; - is stdin."),
    ],
    model: Annotated[
        str, typer.Option("--model", "-m", help="Ranker: pdgd, pairwise-epsilon-greedy, dbgd, mgd.")
    ] = "pdgd",
    user: Annotated[
        str, typer.Option(help="Click model: perfect, navigational, informational, almost_random.")
    ] = "navigational",
    stop_after: Annotated[
        str, typer.Option(help="Rows that may end a session: clicked rows only, or any row.", metavar="click|any")
    ] = "click",
    test: Annotated[Path | None, typer.Option(help="Graded rows to measure on; those of DATA by default.")] = None,
    impressions: Annotated[int, typer.Option(min=0, help="Lists to show.")] = 10_000,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs with different random numbers.")] = 5,
    k: Annotated[int, typer.Option(min=1, help="Rows of a list.")] = 10,
    discount: Annotated[
        float, typer.Option(help="Factor of a list's nDCG relative to the list before, online.")
    ] = 0.9995,
    scale: Annotated[
        Scale | None, typer.Option(help="Scale features inside each query, to [0, 1] or to deviation 1.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="Features whose mean is the prior score, such as 21-25.", metavar="FEATURES"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="Any parameter of the model.", metavar="NAME=VALUE")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="PNG file for a picture.", dir_okay=False, metavar="FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Let a ranker learn from simulated clicks, and print its learning curve."""
    import sys

    from corank.cli.learn.models import build, find_ranker, parse_features, require_features
    from corank.cli.tables import screen, show
    from corank.clicks import CascadeClicks, OnlineRanker, simulate
    from corank.clicks.click_models import as_click_model
    from corank.data.durable.atomic import require_place
    from corank.data.formats.read import read
    from corank.data.problem.ranking import RankingData
    from corank.errors import InputError
    from corank.estimator.query_scaler import QueryScaler
    from corank.tables import ReportTable

    kind = find_ranker(model)
    if not issubclass(kind, OnlineRanker):
        raise InputError(
            f"--model {model} cannot learn from clicks; choose pdgd, pairwise-epsilon-greedy, dbgd or mgd."
        )
    ranker = build(kind, {}, assignments or [])
    known = None if prior is None else parse_features(prior, "--prior")
    if plot is not None:
        require_place(plot, overwrite=force)

    def read_rows(paths: list[Path]) -> RankingData:
        rows = read(paths, layout="auto" if scale is None else "dense").data
        require_features(known or (), "--prior", rows.n_features)
        codes = rows.queries.codes
        X = rows.X if scale is None else QueryScaler(scale.value).fit_transform(rows.X, qid=codes)
        made = RankingData.of(X, rows.y, codes)  # type: ignore[arg-type]
        return made if known is None else made.on_top_of(X[:, known].mean(axis=1))

    served = read_rows(data)
    measured = None if test is None else read_rows([test])
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
        ("lists", "offline", "its error", "online", "error of online"),
        tuple(rows),
        note=f"offline: {curve.metric} of the ranker {where}; online: sum of {discount:g}^(t-1) times {curve.metric} "
        "of list t.",
    )
    if plot is not None:
        _draw(curve, plot)
    if as_json:
        print_json("simulate-clicks", {"table": table_fields(table), "plot": plot})
        return
    show(table, screen())
    if plot is not None:
        typer.echo(f"wrote {plot}")


def _draw(curve: ClickCurve, path: Path) -> None:
    from corank.data.durable.atomic import atomic_file
    from corank.errors import import_extra

    import_extra("matplotlib", "report")
    # no window system is asked for, and no global state is touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    curve.plot(left)
    curve.plot(right, "online")
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
