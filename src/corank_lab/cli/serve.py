"""`corank serve`: rank over HTTP and learn from clicks; keys, models and the log of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli import Force, Json, Qid, emit, import_scikit_learn, print_json
from corank.errors import InputError
from corank_lab.cli.lab import listen, make_server, open_place, run_until_stopped

Place = Annotated[
    str, typer.Argument(help="Folder of the database corank.db, created if needed; or postgresql://user@host/name.")
]
Name = Annotated[str, typer.Argument(help="Name of the model.")]


def start(
    place: Place,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8643,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is the whole network.")] = "127.0.0.1",
    window: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for feedback on a list.")] = 300.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests per second of one key.")] = 1000.0,
    exclude: Annotated[
        list[str] | None, typer.Option(help="User whose feedback is not learnt; repeatable.", metavar="USER")
    ] = None,
) -> None:
    """Rank over HTTP and learn from clicks. Ctrl-C stops the service; nothing that was acknowledged is lost."""
    import gc
    import sys

    from corank.cli import make_console
    from corank.errors import import_extra

    for module in ("starlette", "uvicorn"):
        import_extra(module, "lab")
    import_scikit_learn()
    from corank_lab.api.app import ServiceApp
    from corank_lab.api.log import Keys
    from corank_lab.api.service import Rules, Service

    rules = Rules(window_seconds=window, excluded_users=frozenset(exclude or ()))
    with open_place(place) as store, listen(host, port, "answers", "keys") as listening:
        console, keys, running = make_console(), Keys(store, rate), Service(store, rules)
        if not keys.all():
            key = keys.add("first key", ["admin"])
            console.print(f"Key (shown once): {key}", soft_wrap=True, highlight=False)
        app = ServiceApp(running, keys)
        number = listening.getsockname()[1]
        sys.setswitchinterval(0.0005)  # learning and writing must not delay answers
        gc.collect()
        gc.freeze()  # what is loaded now stays, so collections need not look at it
        gc.set_threshold(50_000, 20, 50)
        running.start()
        console.print(f"Serving on http://{host}:{number}. Press Ctrl-C to stop.", soft_wrap=True, highlight=False)
        try:
            run_until_stopped(make_server(app.asgi, keep_alive=75), listening, console)
        finally:
            running.close()


def add(
    place: Place,
    name: Name,
    model: Annotated[Path | None, typer.Option(help="Model file that `corank fit` wrote.", metavar="MODEL")] = None,
    online: Annotated[str | None, typer.Option(help="Online ranker to start: PDGD or PairwiseEpsilonGreedy.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Number of features of the online ranker, or their names with commas.")
    ] = None,
    prior: Annotated[bool, typer.Option("--prior", help="Add the learnt score to a prior score of items.")] = False,
    interleave: Annotated[
        str | None, typer.Option(help="Two names to compare: the active versions of both.", metavar="A,B")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a version of a model: a saved file, a new online ranker, or an interleaved test of two models."""
    from corank_lab.api.history import make_version
    from corank_lab.api.models import Registry

    with open_place(place) as store:
        registry = Registry(store)
        kind, content, recipe = make_version(registry, model, online, columns, interleave, has_prior=prior)
        version = registry.add(name, kind, content, recipe)
        is_active = registry.active[name] == version
    sentence = f"added {name} version {version}" + ("" if is_active else "; activate it with corank serve activate")
    emit(as_json, "serve add", {"name": name, "version": version, "is_active": is_active}, sentence)


def models(place: Place, as_json: Json = False) -> None:
    """List the models and what they have learnt."""
    from corank_lab.api.models import Registry

    with open_place(place) as store:
        registry = Registry(store)
        rows = registry.versions()
    fields = {
        "models": [{**row._asdict(), "is_active": registry.active[row.name] == row.version} for row in rows],
    }  # fmt: skip
    lines = [
        f"{row.name} {row.version}{' (active)' if registry.active[row.name] == row.version else ''}: {row.kind}, "
        f"{row.counts.get('lists', 0)} lists, {row.counts.get('clicked', 0)} with a click"
        for row in rows
    ]
    emit(as_json, "serve models", fields, "\n".join(lines) or "no models")


def activate(place: Place, name: Name, version: Annotated[int, typer.Argument(help="Number of the version.")]) -> None:
    """Use a version of a model from now on; a running service notices it."""
    from corank_lab.api.models import Registry

    with open_place(place) as store:
        Registry(store).activate(name, version)
    typer.echo(f"{name} version {version} is active")


def remove(place: Place, name: Name, version: Annotated[int, typer.Argument(help="Number of the version.")]) -> None:
    """Remove a version that is not active."""
    from corank_lab.api.models import Registry

    with open_place(place) as store:
        Registry(store).remove(name, version)
    typer.echo(f"removed {name} version {version}")


def save(
    place: Place,
    name: Name,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.", metavar="MODEL")],
    version: Annotated[int | None, typer.Option(help="Number of the version; the active one by default.")] = None,
    force: Force = False,
) -> None:
    """Write what a model has learnt to a file, for the other commands."""
    from corank.data import atomic_file
    from corank_lab.api.models import Registry

    with open_place(place) as store:
        registry = Registry(store)
        number = version or registry.serving(name)[1]
        model = registry.model(name, number)
    if model.kind == "interleaved":
        raise InputError(f"{name} is a test of two models, which is not a model file; save one of the two.")
    with atomic_file(output, overwrite=force) as scratch:
        scratch.write_bytes(model.content())
    typer.echo(f"wrote {output}: {name} version {number}")


def key(
    place: Place,
    scope: Annotated[list[str] | None, typer.Option(help="rank, feedback or admin; repeatable.")] = None,
    name: Annotated[str, typer.Option(help="Who uses the key.")] = "",
    revoke: Annotated[str | None, typer.Option(help="Id of a key to make invalid.", metavar="ID")] = None,
    as_json: Json = False,
) -> None:
    """Add a key with scopes and print it once, revoke a key, or list all."""
    from corank_lab.api.log import Keys

    with open_place(place) as store:
        keys = Keys(store)
        if revoke is not None:
            keys.revoke(revoke)
            emit(as_json, "serve key", {"revoked": revoke}, f"revoked {revoke}")
        elif scope:
            made = keys.add(name, scope)
            emit(as_json, "serve key", {"key": made, "scopes": scope}, made)
        else:
            lines = [
                f"{item.id} {item.name!r}: {', '.join(item.scopes)}{' (revoked)' * item.is_revoked}"
                for item in keys.all()
            ]
            emit(as_json, "serve key", {"keys": [item._asdict() for item in keys.all()]}, "\n".join(lines) or "no keys")


def verify(place: Place, as_json: Json = False) -> None:
    """Replay the log from the initial models, and compare with what was learnt, byte by byte."""
    from corank_lab.api.history import compare_with_replay
    from corank_lab.api.log import EventLog

    with open_place(place) as store:
        different, n_models, last = compare_with_replay(EventLog(store))
    fields = {"models": n_models, "last_event": last, "different": different}
    if different:
        emit(
            as_json, "serve events verify", fields, f"different after a replay of {last} events: {', '.join(different)}"
        )
        raise typer.Exit(1)
    emit(
        as_json, "serve events verify", fields, f"a replay of {last} events gives the same bytes for {n_models} models"
    )


def export(
    place: Place,
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder for clicks.csv and rows.csv.")],
    model: Annotated[str | None, typer.Option(help="Only lists of this model.", metavar="NAME")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write lists, clicks and features as tables for learn-clicks and replay; a service may run meanwhile."""
    from corank_lab.api.history import export_log
    from corank_lab.api.log import EventLog

    with open_place(place, must_exist=True) as store:
        n = export_log(EventLog(store), output, model, overwrite=force)
    emit(as_json, "serve events export", {"output": output, "n_lists": n}, f"wrote {output}: {n} lists")


def forget(place: Place, user: Annotated[str, typer.Argument(help="Id of the user.")], as_json: Json = False) -> None:
    """Delete all events of a user, and learn everything again without them. Stop the service first."""
    from corank_lab.api.history import forget_person

    with open_place(place) as store:
        result = forget_person(store, user)
    emit(
        as_json, "serve events forget", result._asdict(),
        f"deleted {result.n_events} events, learnt {result.n_models} models again from {result.n_left} events",
    )  # fmt: skip


def replay(
    log: Annotated[
        Path,
        typer.Argument(help="Clicks: a table of qid, docid, position, clicked, log_propensity; or UBI's JSON."),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="Model file of the new ranker.")],
    rows: Annotated[Path, typer.Option(help="Features of documents: LETOR text with docids, store, Parquet or CSV.")],
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

    fitted = load_ranker(model, [rows])
    data = read(rows, y=False, qid=qid, layout=preferred_layout(fitted.ranker), features=fitted.names)
    require_model_features(data, rows, fitted)
    clicks = read_clicks(log, queries=queries)
    if data.qid is None or data.docids is None:
        missing = "query ids" if data.qid is None else "document ids"
        raise InputError(f"{rows} has no {missing}, which join its rows with the clicks; add them.")
    examination = None if bias == "log" else read_bias(bias, clicks, data)
    scores = predict_with_qid(fitted.ranker, with_names(data.X, data.names), data.qid)
    result = estimate(
        clicks, scores, data.qid, data.docids, metric=metric, method=method, bias=examination, level=level
    )
    new, old, gain = result.new, result.old, result.difference
    if as_json:
        print_json("replay", {"model": model, "new": new, "old": old, "difference": gain, "assumes": result.assumes})
        return
    verdict = "better" if gain.low > 0.0 else "worse" if gain.high < 0.0 else "not distinguishable from it"
    typer.echo(
        f"{new.metric}, {new.method}, {level:.0%} intervals: {new.value:.4f} ({new.low:.4f} to {new.high:.4f}) for the "
        f"new ranker, {old.value:.4f} ({old.low:.4f} to {old.high:.4f}) for the lists shown\n"
        f"difference {gain.value:+.4f} ({gain.low:+.4f} to {gain.high:+.4f}): the new ranker is {verdict}\n"
        f"from {new.n_impressions} lists and {new.n_clicks} clicks, effective sample size {new.n_effective:.0f}; "
        f"assumes that {result.assumes}"
    )
