"""`corank learn-clicks` and `corank replay`: learn a ranker from logged clicks, and estimate how one would perform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from corank.cli.options import Assignments, Force, Json, ModelOutput, Qid, Seed
from corank.cli.output import print_json

if TYPE_CHECKING:
    from corank.cli.rows import FittedModel
    from corank.clicks import ClickEstimate, PositionBias
    from corank.data.io.click_log import ClickLog
    from corank.data.collection import Collection


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
    qid: Qid = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn a ranker from logged clicks, weighted by inverse propensity."""
    import numpy as np

    from corank.cli.learn.models import build_ranker, find_ranker, preferred_layout
    from corank.clicks import click_pairs
    from corank.data.durable.atomic import require_place
    from corank.data.io.click_files import read_clicks
    from corank.data.io.read import read
    from corank.data.rows import with_names
    from corank.errors import InputError
    from corank.deploy.persist import save

    require_place(output, overwrite=force)
    ranker = build_ranker(find_ranker(model), {}, assignments or [], seed)
    data = read(rows, y=False, qid=qid, layout=preferred_layout(ranker))
    ids, documents = data.qid, data.docids
    if ids is None or documents is None:
        missing = "query ids" if ids is None else "document ids"
        raise InputError(f"{rows} has no {missing}, which join its rows with the clicks; add them.")
    clicks = read_clicks(log, queries=queries)
    examination = _bias(bias, clicks, data)

    def learn(kept: Any) -> Any:
        made = click_pairs(clicks, ids[kept], documents[kept], bias=examination, clip=clip, against=against)
        return made, ranker.fit(with_names(data.X[kept], data.names), pairs=made.pairs, pair_weight=made.pair_weight)

    estimate: OfflineEstimate | None = None
    if held_out > 0.0:
        from corank.data.query_splits import QueryShuffleSplit

        split = QueryShuffleSplit(1, test_size=held_out, random_state=seed)
        train, test = next(split.split(data.X, qid=ids))
        learn(train)
        scores = ranker.predict(with_names(data.X[test], data.names))
        estimate = _estimate(clicks, scores, ids[test], documents[test], examination, clip)
    made, fitted = learn(np.arange(len(data.y)))
    save(fitted, output, overwrite=force)
    if as_json:
        examined = None if examination is None else examination.examined
        fields = {
            "output": output, "model": type(ranker).__name__, "n_clicks": made.n_clicks, "n_missing": made.n_missing,
            "n_clipped": made.n_clipped, "n_lists": clicks.n_impressions, "n_pairs": len(made.pairs),
            "examination": examined, "offline": estimate,
        }  # fmt: skip
        print_json("learn-clicks", fields)
        return
    missing = f" ({made.n_missing} on documents missing from {rows})" if made.n_missing else ""
    typer.echo(
        f"wrote {output}: {type(ranker).__name__} from {made.n_clicks} clicks{missing} on {clicks.n_impressions} "
        f"lists, {len(made.pairs)} pairs, {made.n_clipped} clicks clipped at {clip:g}"
    )
    if examination is not None:
        shown = [f"{one:.2f}" for one in examination.examined[:10]] + ["..."] * (len(examination.examined) > 10)
        typer.echo(f"examination by position ({examination.method}): {' '.join(shown)}")
    if estimate is not None:
        new = estimate.new
        typer.echo(
            f"offline DCG@10 on held-out queries: {estimate.old:.4f} for the logged order, {new.value:.4f} for the new "
            f"order ({new.low:.4f} to {new.high:.4f}); {new.n_impressions} lists, {new.unseen:.0%} of rows never shown"
        )
    elif held_out > 0.0:
        typer.echo("the log contains no held-out query, so there is no offline estimate")


def replay(
    log: Annotated[
        Path,
        typer.Argument(
            help="Clicks: a table of qid, docid, position, clicked, log_propensity; UBI's JSON; or a service's folder."
        ),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="Model file of the new ranker.")],
    rows: Annotated[
        Path | None,
        typer.Option(help="Features of documents, LETOR text with docids, store, Parquet or CSV; a service has them."),
    ] = None,
    lists: Annotated[str | None, typer.Option(help="Only lists of this model of the service.", metavar="NAME")] = None,
    queries: Annotated[Path | None, typer.Option(help="Queries of UBI, if they are in another file.")] = None,
    bias: Annotated[
        str,
        typer.Option(
            help="Position bias: log (its propensities, or none if its lists are random), moved (documents shown at "
            "several positions), regression (by features), or a number p: examination proportional to position^-p."
        ),
    ] = "log",
    metric: Annotated[
        str | None,
        typer.Option(help="DCG@k, P@k or clicks@k.  [default: DCG@10; without a position bias clicks@3]"),
    ] = None,
    method: Annotated[str, typer.Option(help="Estimator: ips, self_normalised or doubly_robust.")] = "doubly_robust",
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    qid: Qid = None,
    as_json: Json = False,
) -> None:
    """Estimate from a log how a new ranker would perform; refuse if the log cannot tell."""
    from corank.cli.learn.models import load_ranker, preferred_layout
    from corank.cli.rows import require_model_features
    from corank.clicks import replay as estimate
    from corank.data.io.click_files import read_clicks
    from corank.data.io.read import read
    from corank.data.routing import predict_with_qid
    from corank.data.rows import with_names
    from corank.errors import InputError

    fitted = load_ranker(model, [] if rows is None else [rows])
    if log.is_dir() or "://" in str(log):
        clicks, data = _service_lists(log, lists, fitted)
    elif rows is None:
        raise InputError(f"{log} is not a service's folder, so features are missing; pass them with --rows.")
    else:
        data = read(rows, y=False, qid=qid, layout=preferred_layout(fitted.ranker), features=fitted.names)
        require_model_features(data, rows, fitted)
        clicks = read_clicks(log, queries=queries)
    if data.qid is None or data.docids is None:
        missing = "query ids" if data.qid is None else "document ids"
        raise InputError(f"{rows} has no {missing}, which join its rows with the clicks; add them.")
    examination = None if bias == "log" else _bias(bias, clicks, data)
    scores = predict_with_qid(fitted.ranker, with_names(data.X, data.names), data.qid)
    found = estimate(clicks, scores, data.qid, data.docids, metric=metric, method=method, bias=examination, level=level)
    new, old, gain = found.new, found.old, found.difference
    if as_json:
        print_json("replay", {"model": model, "new": new, "old": old, "difference": gain, "assumes": found.assumes})
        return
    verdict = "better" if gain.low > 0.0 else "worse" if gain.high < 0.0 else "not distinguishable from it"
    typer.echo(
        f"{new.metric}, {new.method}, {level:.0%} intervals: {new.value:.4f} ({new.low:.4f} to {new.high:.4f}) for the "
        f"new ranker, {old.value:.4f} ({old.low:.4f} to {old.high:.4f}) for the lists shown\n"
        f"difference {gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f}): the new ranker is {verdict}\n"
        f"from {new.n_impressions} lists and {new.n_clicks} clicks, effective sample size {new.n_effective:.0f}; "
        f"assumes that {found.assumes}"
    )


def _service_lists(place: Path, lists: str | None, fitted: FittedModel) -> tuple[ClickLog, Collection]:
    """Return the lists of a service, and the rows that were ranked."""
    import numpy as np

    from corank.cli.rows import require_model_features
    from corank_lab.cli.serve import open_place
    from corank.data.collection import Collection
    from corank.errors import InputError
    from corank_lab.api.export import logged_rows
    from corank_lab.api.log import EventLog

    with open_place(str(place), must_exist=True) as store:
        found = logged_rows(EventLog(store), lists)
    if getattr(fitted.ranker, "has_prior_", False):
        raise InputError(
            f"{fitted.path} adds what it learnt to a prior, which replay does not read; compare by interleaving."
        )
    data = Collection(
        found.X, np.full(len(found.X), np.nan), found.names, _qid=lambda: found.qid, _docids=lambda: found.docids
    )
    require_model_features(data, place, fitted)
    return found.log, data


def _bias(name: str, clicks: ClickLog, data: Collection) -> PositionBias | None:
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
