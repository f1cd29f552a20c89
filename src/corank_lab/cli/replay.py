"""`corank replay`: estimate from logged clicks how a new ranker would perform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli import Json, Qid, print_json

if TYPE_CHECKING:
    from corank.cli import FittedModel
    from corank.data import ClickLog, Collection


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
    from corank.cli import load_ranker, preferred_layout, read_bias, require_model_features
    from corank.clicks import replay as estimate
    from corank.data import predict_with_qid, read, read_clicks, with_names
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
    examination = None if bias == "log" else read_bias(bias, clicks, data)
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

    from corank.cli import require_model_features
    from corank.data import Collection
    from corank.errors import InputError
    from corank_lab.api.export import logged_rows
    from corank_lab.api.log import EventLog
    from corank_lab.cli.serve import open_place

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
