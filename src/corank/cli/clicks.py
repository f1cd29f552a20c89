"""`corank learn-clicks`: learn a ranker from logged clicks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from corank.cli.options import Assignments, ColumnOptions, Force, Json, ModelOutput, Seed
from corank.cli.output import emit

if TYPE_CHECKING:
    from corank.clicks import ClickEstimate, PositionBias
    from corank.data.collection import Dataset
    from corank.data.io.clicks import ClickLog


def learn_clicks(
    rows: Annotated[Path, typer.Argument(help="Features of documents: LETOR text with docids, store, Parquet or CSV.")],
    log: Annotated[
        Path,
        typer.Argument(help="Clicks: a table of qid, docid, position, clicked; or UBI's JSON, also as saved answers."),
    ],
    output: ModelOutput,
    queries: Annotated[Path | None, typer.Option(help="Queries of UBI, if they are in another file.")] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="Model: spd, ranksvm, rankrls, ...")] = "spd",
    bias: Annotated[
        str,
        typer.Option(
            help="Position bias: log (its propensities), moved (documents shown at several positions), regression (by "
            "features), or a number p: examination proportional to position^-p."
        ),
    ] = "moved",
    clip: Annotated[float, typer.Option(help="Smallest propensity.")] = 0.05,
    against: Annotated[
        str,
        typer.Option(
            help="Documents that a clicked one is preferred to: shown (the others of its list), or query (all others "
            "of its query)."
        ),
    ] = "shown",
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of queries held out for the offline estimate.")
    ] = 0.2,
    assignments: Assignments = None,
    seed: Seed = 0,
    *,
    columns: ColumnOptions,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn a ranker from logged clicks, weighted by inverse propensity."""
    import numpy as np

    from corank.cli.learn.models import build_ranker, find_ranker, preferred_layout
    from corank.cli.rows import read_rows
    from corank.clicks import click_pairs
    from corank.data.durable.atomic import require_place
    from corank.data.io.clicks import read_clicks
    from corank.data.rows import with_names
    from corank.deploy.persist import save
    from corank.errors import InputError

    require_place(output, overwrite=force)
    ranker = build_ranker(find_ranker(model), {}, assignments or [], seed)
    data = read_rows([rows], columns, needs_labels=False, layout=preferred_layout(ranker))
    ids, documents = data.qid, data.docids
    if ids is None or documents is None:
        missing = "query ids" if ids is None else "document ids"
        raise InputError(f"{rows} has no {missing}, which join its rows with the clicks; add them.")
    clicks = read_clicks(log, queries=queries)
    examination = read_bias(bias, clicks, data)

    def learn(kept: Any) -> Any:
        made = click_pairs(clicks, ids[kept], documents[kept], bias=examination, clip=clip, against=against)
        return made, ranker.fit(with_names(data.X[kept], data.names), pairs=made.pairs, pair_weight=made.pair_weight)

    estimate: OfflineEstimate | None = None
    if held_out > 0.0:
        from corank.data.splits import QueryShuffleSplit

        split = QueryShuffleSplit(1, test_size=held_out, random_state=seed)
        train, test = next(split.split(data.X, qid=ids))
        learn(train)
        scores = ranker.predict(with_names(data.X[test], data.names))
        estimate = _estimate(clicks, scores, ids[test], documents[test], examination, clip)
    made, fitted = learn(np.arange(len(data.y)))
    save(fitted, output, overwrite=force)
    fields = {
        "output": output, "model": type(ranker).__name__, "n_clicks": made.n_clicks, "n_missing": made.n_missing,
        "n_clipped": made.n_clipped, "n_lists": clicks.n_impressions, "n_pairs": len(made.pairs),
        "examination": None if examination is None else examination.examined, "offline": estimate,
    }  # fmt: skip
    missing = f" ({made.n_missing} on documents missing from {rows})" if made.n_missing else ""
    parts = [
        f"wrote {output}: {type(ranker).__name__} from {made.n_clicks} clicks{missing} on {clicks.n_impressions} "
        f"lists, {len(made.pairs)} pairs, {made.n_clipped} clicks clipped at {clip:g}"
    ]
    if examination is not None:
        shown = [f"{item:.2f}" for item in examination.examined[:10]] + ["..."] * (len(examination.examined) > 10)
        parts.append(f"examination by position ({examination.method}): {' '.join(shown)}")
    if estimate is not None:
        new = estimate.new
        parts.append(
            f"offline DCG@10 on held-out queries: {estimate.old:.4f} for the logged order, {new.value:.4f} for the new "
            f"order ({new.low:.4f} to {new.high:.4f}); {new.n_impressions} lists, {new.unseen:.0%} of rows never shown"
        )
    elif held_out > 0.0:
        parts.append("the log contains no held-out query, so there is no offline estimate")
    emit(as_json, "learn-clicks", fields, *parts)


def read_bias(name: str, clicks: ClickLog, data: Dataset) -> PositionBias | None:
    """Return the position bias that `--bias` names; None for the propensities of the log."""
    from corank.clicks import PositionBias, position_bias
    from corank.errors import InputError, suggest_names

    if name == "log":
        if clicks.propensity is None:
            raise InputError("the log has no column propensity; pass --bias moved, regression, or a power such as 1.")
        return None
    if name in ("moved", "regression") and clicks.complete is not None and not clicks.complete.any():
        raise InputError(
            "no list of the log is complete, and documents that were shown but not clicked are needed to estimate the "
            "position bias; pass UBI's queries with --queries, or assume a bias, such as --bias 1."
        )
    if name == "moved":
        return position_bias(clicks)
    if name == "regression":
        return position_bias(clicks, X=data.X, qid=data.qid, docids=data.docids)
    try:
        return PositionBias.power(float(name), int(clicks.position.max()))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        words = suggest_names(name, ("log", "moved", "regression"))
        raise InputError(f"--bias is {name!r}; pass a number of at least 0, or a word: {words}.") from None


class OfflineEstimate(NamedTuple):
    """DCG@10 on held-out queries, estimated from clicks: of the logged order, and of the new order."""

    old: float
    new: ClickEstimate


def _estimate(
    clicks: ClickLog, scores: Any, qid: Any, docids: Any, bias: PositionBias | None, clip: float
) -> OfflineEstimate | None:
    """Estimate the new order on held-out queries; None if the log does not contain them."""
    import numpy as np

    from corank.clicks import estimate_from_clicks, propensities

    is_held_out = clicks.find(qid, docids) >= 0
    if not is_held_out.any():
        return None
    part = clicks.part(is_held_out)
    weights = part.clicked / np.maximum(propensities(part, bias), clip)
    old = float((weights * (part.position <= 10) / np.log2(1.0 + part.position)).sum() / part.n_impressions)
    # the doubly robust estimate needs the documents that were shown and not clicked
    method = "doubly_robust" if clicks.complete is None else "ips"
    return OfflineEstimate(old, estimate_from_clicks(part, scores, qid, docids, method=method, bias=bias, clip=clip))
