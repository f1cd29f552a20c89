"""`corank learn-clicks`: learn a ranker from logged clicks, and foretell how it would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from corank.cli.output import Json, print_json

if TYPE_CHECKING:
    from corank.clicks import ClickEstimate, PositionBias
    from corank.data.formats.click_log import ClickLog
    from corank.data.problem.collection import Collection


def learn_clicks(
    rows: Annotated[Path, typer.Argument(help="Features of documents: LETOR text with docids, store, Parquet or CSV.")],
    log: Annotated[Path, typer.Argument(help="Clicks: a table of qid, docid, position, clicked; or UBI's JSON.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", metavar="MODEL")],
    queries: Annotated[Path | None, typer.Option(help="UBI's queries, where they have a file of their own.")] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="What to learn: spd, ranksvm, rankrls, ...")] = "spd",
    bias: Annotated[
        str,
        typer.Option(
            help="Who looks where: log (its propensities), moved (documents seen at several places), regression (by "
            "features), or a number: the power by which looks fall with the place."
        ),
    ] = "moved",
    clip: Annotated[float, typer.Option(help="Smallest propensity.")] = 0.05,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of the queries that foretell success.")
    ] = 0.2,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="Any parameter of the model.", metavar="NAME=VALUE")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    qid: Annotated[str | None, typer.Option(help="Column of query ids in a table.  [default: qid]")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Learn a ranker from logged clicks, each weighed by how unlikely it was to be seen."""
    import numpy as np

    from corank.cli.learn.models import build, find_ranker, layout_of
    from corank.clicks import click_pairs
    from corank.data.durable.atomic import require_place
    from corank.data.formats.click_files import read_clicks
    from corank.data.formats.read import read
    from corank.errors import InputError
    from corank.persist import save

    require_place(output, overwrite=force)
    ranker = build(find_ranker(model), {}, assignments or [])
    if ranker.get_params(deep=False).get("random_state", seed) is None:
        ranker.set_params(random_state=seed)
    data = read(rows, y=None, qid=qid, layout=layout_of(ranker))
    ids, documents = data.qid, data.docids
    if ids is None or documents is None:
        raise InputError(f"{rows} names no {'queries' if ids is None else 'documents'}; clicks are found by both.")
    clicks = read_clicks(log, queries=queries)
    looks = _bias(bias, clicks, data)

    def learn(kept: Any) -> Any:
        made = click_pairs(clicks, ids[kept], documents[kept], bias=looks, clip=clip)
        return made, ranker.fit(data.X[kept], pairs=made.pairs, pair_weight=made.pair_weight)

    foretold: Foretold | None = None
    if held_out > 0.0:
        from corank.data.problem.splits import QueryShuffleSplit

        split = QueryShuffleSplit(1, test_size=held_out, random_state=seed)
        train, test = next(split.split(data.X, qid=ids))
        learn(train)
        foretold = _foretell(clicks, ranker.predict(data.X[test]), ids[test], documents[test], looks, clip)
    made, fitted = learn(np.arange(len(data.y)))
    save(fitted, output, overwrite=force)
    if as_json:
        examined = None if looks is None else looks.examined
        fields = {
            "output": output, "model": type(ranker).__name__, "n_clicks": made.n_clicks, "n_missing": made.n_missing,
            "n_clipped": made.n_clipped, "n_lists": clicks.n_impressions, "n_pairs": len(made.pairs),
            "looks": examined, "foretold": foretold,
        }  # fmt: skip
        print_json("learn-clicks", fields)
        return
    missing = f" ({made.n_missing} on documents that {rows} lacks)" if made.n_missing else ""
    typer.echo(
        f"wrote {output}: {type(ranker).__name__} from {made.n_clicks} clicks{missing} on {clicks.n_impressions} "
        f"lists, {len(made.pairs)} pairs, {made.n_clipped} clicks clipped at {clip:g}"
    )
    if looks is not None:
        shown = " ".join(f"{one:.2f}" for one in looks.examined[:10])
        typer.echo(f"looks by place ({looks.method}): {shown}{' ...' if len(looks.examined) > 10 else ''}")
    if foretold is not None:
        typer.echo(
            f"DCG@10 of held-out queries by their clicks: {foretold.old:.4f} as shown, {foretold.new.value:.4f} by the "
            f"new order ({foretold.new.low:.4f} to {foretold.new.high:.4f}); {foretold.new.n_impressions} lists, "
            f"{foretold.new.unseen:.0%} of the rows never shown"
        )
    elif held_out > 0.0:
        typer.echo("the log shows nothing of the held-out queries; nothing is foretold")


def _bias(given: str, clicks: ClickLog, data: Collection) -> PositionBias | None:
    from corank.clicks import PositionBias, position_bias
    from corank.errors import InputError, suggest_names

    if given == "log":
        if clicks.propensity is None:
            raise InputError("the log has no column propensity; pass --bias moved, regression, or a power such as 1.")
        return None
    if given == "moved":
        return position_bias(clicks)
    if given == "regression":
        return position_bias(clicks, X=data.X, qid=data.qid, docids=data.docids)
    try:
        return PositionBias.power(float(given), int(clicks.position.max()))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        words = suggest_names(given, ("log", "moved", "regression"))
        raise InputError(f"--bias is {given!r}; pass a number of at least 0, or a word: {words}.") from None


class Foretold(NamedTuple):
    """What clicks on held-out queries say: DCG@10 of the lists as they were shown, and of the new order."""

    old: float
    new: ClickEstimate


def _foretell(
    clicks: ClickLog, scores: Any, qid: Any, docids: Any, bias: PositionBias | None, clip: float
) -> Foretold | None:
    """Say what the new order is worth on queries it did not learn from; None where the log shows nothing of them."""
    import numpy as np

    from corank.clicks import estimate_from_clicks, propensities
    from corank.data.formats.click_log import ClickLog

    mine = clicks.find(qid, docids) >= 0
    if not mine.any():
        return None
    part = ClickLog.of(
        clicks.qid[mine],
        clicks.docids[mine],
        clicks.position[mine],
        clicks.clicked[mine],
        impression=clicks.impression[mine],
        propensity=None if clicks.propensity is None else clicks.propensity[mine],
    )
    wanted = part.clicked / np.maximum(propensities(part, bias), clip)
    old = float((wanted * (part.position <= 10) / np.log2(1.0 + part.position)).sum() / part.n_impressions)
    return Foretold(old, estimate_from_clicks(part, scores, qid, docids, method="doubly_robust", bias=bias, clip=clip))
