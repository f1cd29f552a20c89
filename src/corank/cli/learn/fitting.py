"""
The work of `corank fit`: build a model, read the data, learn, report.

Also a validation file, which chooses the penalty, and data in parts, on this machine or on a Dask cluster.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

import corank
from corank.base.contract import check_parameters
from corank.cli.imports import import_lightgbm
from corank.cli.learn.fit import FitOptions
from corank.cli.learn.models import (
    Features,
    build_ranker,
    find_ranker,
    parse_features,
    parse_lambda,
    parse_loop,
    parse_views,
    preferred_layout,
    resolve_features,
)
from corank.cli.options import INTERRUPTED, ColumnOptions
from corank.cli.output import emit
from corank.cli.rows import read_preferences, read_rows, row_names
from corank.data.column_roles import column_name, list_names
from corank.data.columns import MissingValues
from corank.data.durable.atomic import require_place
from corank.data.io.read import detect_format
from corank.data.io.stores import HEADER
from corank.data.ranking import RankingData
from corank.data.routing import predict_with_qid
from corank.data.rows import count_missing
from corank.deploy.persist import save
from corank.errors import InputError, import_extra, reason
from corank.metrics import disagreement_error, scorer
from corank.metrics.names import MetricScorer
from corank.models.labels.ranker import LabelRanker

ALPHAS = tuple(10.0**power for power in range(-5, 2))
"""Penalty weights that --valid tries in addition to the model's own choice."""

_ADDRESS = re.compile(r"^([a-z][a-z0-9+]+):/(?=[^/])")
_CONNECT_TIMEOUT = 30
"""Timeout in seconds for connecting to a cluster."""


def run_fit(options: FitOptions) -> None:
    """Run `corank fit`."""
    model = build_model(options)
    if isinstance(model.ranker, LabelRanker):
        _fit_label_ranker(model.ranker, options)
        return
    _check_pair_options(options)
    require_place(options.output, overwrite=options.force)
    if is_partitioned(options.data, options.cluster):
        emit(options.as_json, "fit", *fit_partitioned(model.pipeline(), options))
        return
    data = read_data(options, model)
    model = model.resolved(data.rows)
    report(options, model, data, learn(options, model, data))


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """A ranker that is not fitted yet, and how it is wrapped."""

    ranker: Any
    prior: Features | None  # features whose mean is the prior
    scale: Literal["minmax", "zscore"] | None

    @property
    def name(self) -> str:
        """Class name of the ranker."""
        return type(self.ranker).__name__

    def pipeline(self, ranker: Any = None) -> Any:
        """Return a ranker, by default the own one, with prior and scaling."""
        ranker = self.ranker if ranker is None else ranker
        if self.prior is not None:
            ranker = corank.base.ResidualRanker(corank.ColumnMean(self.prior), ranker)
        if self.scale is None:
            return ranker
        from sklearn.pipeline import Pipeline  # takes long to import

        return Pipeline([("scale", corank.QueryScaler(self.scale)), ("rank", ranker)])

    def fit(self, pipeline: Any, rows: RankingData, **more: Any) -> None:
        """Fit a pipeline to rows."""
        if self.scale is None:
            pipeline.fit(rows, **more)
            return
        with config_context(enable_metadata_routing=True):
            pipeline.fit(rows, rows.y, qid=rows.queries.codes)

    def resolved(self, rows: RankingData) -> ModelSpec:
        """Return the model with the numbers of the features that --prior and --views name."""
        prior, views = self.prior, self.ranker.get_params(deep=False).get("views")
        if isinstance(views, list):
            numbers = [resolve_features(view, "--views", rows.names, rows.n_features) for view in views]
            self.ranker.set_params(views=numbers)
        if prior is not None:
            prior = list(resolve_features(prior, "--prior", rows.names, rows.n_features))
        return replace(self, prior=prior)


def build_model(options: FitOptions) -> ModelSpec:
    """Build the ranker from the options."""
    kind, (query_weight, draw) = find_ranker(options.model), parse_loop(options.loop)
    parameters = {
        "ranking_loss" if kind.__name__ == "OnlineLabelRanker" else "loss": ("--loss", options.loss),
        **parse_lambda(kind, options.penalty),
        "scorer": ("--scorer", options.scorer),
        "n_steps": ("--iterations", options.iterations),
        "time_limit": ("--time-limit", options.time_limit),
        "deploy": ("--for", options.deploy),
        "query_weight": ("--loop", query_weight),
        "draw": ("--loop", draw),
        "rate": ("--eta", options.eta),
        "mix": ("--mix", options.mix),
        "coupling": ("--coupling", options.coupling),
        "views": ("--views", None if options.views is None else parse_views(options.views)),
    }
    prior = None if options.prior is None else parse_features(options.prior, "--prior")
    ranker = build_ranker(kind, parameters, options.assignments or [], options.seed)
    # a wrong value is reported before a large file is read
    check_parameters(ranker)
    if options.valid is not None:
        scorer(options.metric, convention=options.convention)
    return ModelSpec(ranker, prior, options.scale)


def _fit_label_ranker(ranker: LabelRanker, options: FitOptions) -> None:
    for_queries = {
        "--prior": options.prior, "--scale": options.scale, "--unjudged": options.unjudged,
        "--qid": options.columns.qid, "--valid": options.valid, "--pairs": options.pairs,
        "--json": options.as_json or None,
    }  # fmt: skip
    unusable = next((name for name, value in for_queries.items() if value is not None), None)
    if unusable is not None:
        raise InputError(
            f"{unusable} applies to rows of queries, but {type(ranker).__name__} ranks labels; leave it out."
        )
    from corank.cli.learn.labels import fit_labels

    typer.echo(fit_labels(ranker, options.data, _columns(options), options.output, overwrite=options.force))


def _check_pair_options(options: FitOptions) -> None:
    scored = {"--scale": options.scale, "--prior": options.prior, "--valid": options.valid}
    if options.pairs is not None and any(value is not None for value in scored.values()):
        raise InputError("--scale, --prior and --valid need scored rows, but --pairs was given; leave them out.")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows to learn from."""

    rows: RankingData
    preferred: NDArray[np.int64] | None = None  # (n_preferences, 2): row numbers of --pairs, winners first
    validation: Validation | None = None  # rows of --valid


def read_data(options: FitOptions, model: ModelSpec) -> TrainingData:
    """Read training and validation rows, and check that they have the features which the options name."""
    columns = _columns(options)
    collection = read_rows(
        options.data, columns, needs_labels=options.pairs is None, unjudged=options.unjudged,
        layout=preferred_layout(model.pipeline()),
    )  # fmt: skip
    rows, preferred = collection.data, None
    if options.pairs is not None:
        preferred, pair_weight = read_preferences(options.pairs, row_names(collection))
        pairs = RankingData.of_checked_pairs(rows.X, preferred, rows.queries)
        rows = replace(pairs, names=rows.names).weighted(None, pair_weight)
    if options.valid is None:
        return TrainingData(rows, preferred)
    # LETOR text may contain fewer features than the training data, and a table may have its columns in another order
    judged = read_rows(
        [options.valid], columns, needs_labels=True, unjudged=options.unjudged, n_features=rows.n_features,
        features=rows.names, layout=preferred_layout(model.pipeline()),
    ).data  # fmt: skip
    validation = Validation(options.valid, judged, options.metric, options.convention)
    validation.require_features(rows.n_features)
    return TrainingData(rows, preferred, validation)


def _columns(options: FitOptions) -> ColumnOptions:
    judges = "keep" if options.pairs is not None else options.columns.judges
    return replace(options.columns, judges=judges)


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted pipeline, and the fitted ranker inside it."""

    pipeline: Any
    ranker: Any
    seconds: float
    chosen: str  # the penalty chosen by validation, in words


def learn(options: FitOptions, model: ModelSpec, data: TrainingData) -> FitResult:
    """Choose the penalty, fit the model and save it; after Ctrl-C, save the steps taken and exit."""
    ranker, began = model.ranker, time.perf_counter()
    if model.name == "AutoRanker" or getattr(ranker, "scorer", None) == "trees":
        import_lightgbm()
    chosen, watched = "", {}
    if data.validation is not None:
        if can_stop_early(ranker) and model.scale is None and model.prior is None:
            watched = {"eval_set": data.validation.rows}
            if not ranker.early_stopping:
                ranker.set_params(early_stopping=True)
        chosen = data.validation.choose(ranker, model.pipeline, lambda pipeline: model.fit(pipeline, data.rows))
    pipeline = model.pipeline()
    verbose = ranker.get_params(deep=False).get("verbose")
    shows_progress = verbose is not None and sys.stderr.isatty()
    if shows_progress:
        ranker.set_params(verbose=True)
    interrupted = False
    try:
        model.fit(pipeline, data.rows, **watched)
    except KeyboardInterrupt:
        if not hasattr(ranker, "n_iter_"):
            typer.echo(f"corank: interrupted before the first step; {options.output} was not written.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        interrupted = True
    seconds = time.perf_counter() - began
    outer = pipeline if model.scale is None else pipeline[-1]
    fitted = ranker if model.prior is None else outer.ranker_
    if shows_progress:  # the file must not depend on the terminal
        for item in {ranker, fitted}:
            item.set_params(verbose=verbose)
    save(pipeline, options.output, overwrite=options.force)
    if interrupted:
        typer.echo(f"corank: interrupted; {options.output} contains the {ranker.n_iter_} steps taken so far.", err=True)
        raise typer.Exit(INTERRUPTED)
    return FitResult(pipeline, fitted, seconds, chosen)


def report(options: FitOptions, model: ModelSpec, data: TrainingData, result: FitResult) -> None:
    """Print what was learnt, and how well it fits the training data and the validation data."""
    rows = data.rows
    fields: dict[str, Any] = {
        "output": options.output, "model": model.name, "n_rows": rows.n_rows, "n_scored": rows.n_scored,
        "n_queries": len(rows.queries), "n_features": rows.n_features, "n_pairs": rows.n_pairs,
        "seconds": result.seconds, "disagreement": None, "alpha": getattr(result.ranker, "alpha_", None), "valid": None,
        "n_missing": count_missing(rows.X) if rows.has_missing else 0,
    }  # fmt: skip
    outcome, judgements = "no training scores to compare", f"{rows.n_scored} scored"
    if rows.n_pairs:
        codes = rows.queries.codes
        scores = predict_with_qid(result.pipeline, rows.X, codes)
        if data.preferred is not None:
            lead = scores[data.preferred[:, 0]] - scores[data.preferred[:, 1]]
            error = float(np.mean((lead < 0) + 0.5 * (lead == 0)))
            judgements = f"{len(data.preferred)} preferences"
            outcome = f"disagreement with the preferences {error:.4f}"
        else:
            error = disagreement_error(np.asarray(rows.y), scores, codes)
            outcome = f"disagreement with the training scores {error:.4f}"
        fields["disagreement"] = error
    if hasattr(result.ranker, "alpha_from_"):
        outcome += f"; alpha {result.ranker.alpha_:.4g} ({result.ranker.alpha_from_})"
    if data.validation is not None:
        value, metric, chosen = data.validation.mean(result.pipeline), options.metric, result.chosen
        fields["valid"] = {
            "file": options.valid, "metric": metric, "convention": options.convention, "mean": value, "chosen": chosen,
        }  # fmt: skip
        outcome += f"; {metric} {value:.4f} on {options.valid}" + (f" with {chosen}" if chosen else "")
    if rows.has_missing:
        filling = MissingValues.of(rows.X)
        names = list_names([column_name(j, rows.names) for j in filling.columns])
        done = "for which trees choose a side" if hasattr(result.ranker, "trees_") else "filled with means and marked"
        outcome += f"; {fields['n_missing']} missing values in {names}, {done}"
        flags = [column_name(j, rows.names) for j in filling.one_valued(rows.X)]
        if flags:
            outcome += f"; {list_names(flags)} has one value or none, so only whether it is missing is used"
    prior = "" if model.prior is None else f" on top of {len(model.prior)} features"
    sentence = (
        f"wrote {options.output}: {model.name}{prior} from {rows.n_rows} rows ({judgements}) in {len(rows.queries)} "
        f"queries, {rows.n_features} features, {result.seconds:.2f} s; {outcome}"
    )
    if hasattr(result.ranker, "leaderboard_"):
        fields["summary"] = result.ranker.summary()
        sentence += f"\n{fields['summary']}"
    emit(options.as_json, "fit", fields, sentence)


@dataclass(frozen=True)
class Validation:
    """Judged rows of a validation file, and the metric that compares models on them."""

    path: Path
    rows: RankingData
    metric: str
    convention: str

    def require_features(self, n_features: int) -> None:
        """Raise `InputError` if the rows have another number of features than the training data."""
        if self.rows.n_features != n_features:
            raise InputError(
                f"{self.path} has {self.rows.n_features} features, but the training data has {n_features}; pass rows "
                "with the same features."
            )

    def value(self, fitted: Any) -> float:
        """Return the value of a model, larger is better."""
        y: Any = self.rows.y
        return float(self._scorer(fitted, self.rows.X, y, qid=self.rows.queries.codes))

    def mean(self, fitted: Any) -> float:
        """Return the mean of the metric."""
        value = self.value(fitted)
        return value if self._scorer.metric.measure.larger_is_better else -value

    @property
    def _scorer(self) -> MetricScorer:
        return scorer(self.metric, convention=self.convention)

    def choose(self, ranker: Any, wrap: Callable[[Any], Any], fit: Callable[[Any], None]) -> str:
        """Choose alpha on the validation rows and set it, unless the user set it or the ranker has none."""
        default = inspect.signature(type(ranker)).parameters.get("alpha")
        if default is None or ranker.alpha != default.default:
            return ""
        best: tuple[float, float | None] = (-float("inf"), None)
        for alpha in (None, *ALPHAS):
            candidate = clone(ranker) if alpha is None else clone(ranker).set_params(alpha=alpha)
            model = wrap(candidate)
            fit(model)
            value = self.value(model)
            if value > best[0]:
                best = (value, alpha)
        if best[1] is None:
            return f"its own alpha, the best of {len(ALPHAS) + 1}"
        ranker.set_params(alpha=best[1])
        return f"alpha {best[1]:g}, the best of {len(ALPHAS) + 1}"


def can_stop_early(ranker: Any) -> bool:
    """Return whether `fit` takes an `eval_set`."""
    return "eval_set" in inspect.signature(ranker.fit).parameters


def is_partitioned(data: Sequence[Path], cluster: str | None) -> bool:
    """Return whether data comes in parts: --cluster, a folder of files, or several files that are not LETOR text."""
    if cluster is not None or any(path.is_dir() and not (path / HEADER).exists() for path in data):
        return True
    return len(data) > 1 and any(str(path) != "-" and path.exists() and detect_format(path) != "text" for path in data)


def fit_partitioned(model: Any, options: FitOptions) -> tuple[dict[str, Any], str]:
    """Fit a ranker or pipeline to parts and save it; return the fields and the sentence to print."""
    from corank.deploy.distributed import Parts, fit_parts

    need_all_rows: Mapping[str, object] = {
        "--prior": options.prior, "--qid none": options.columns.qid == "none",
        "--pairs": options.pairs, "--valid": options.valid,
    }  # fmt: skip
    if option := next((name for name, value in need_all_rows.items() if value not in (None, False)), None):
        raise InputError(f"{option} needs all rows at once, but the data is in parts; leave it out, or join the parts.")
    columns, began = options.columns, time.perf_counter()
    with _client(options.cluster) as client:
        # Path removed one slash of an address
        sources = [_ADDRESS.sub(r"\1://", str(path)) for path in options.data]
        parts = Parts(
            sources, client, verbose=sys.stderr.isatty(), unjudged=options.unjudged, y=columns.label, qid=columns.qid,
            docid=columns.id_column, drop=columns.drop or (), keep=columns.keep or (),
        )  # fmt: skip
        fit_parts(model, parts)
        n_workers = 0 if client is None else len(client.nthreads())
    save(model, options.output, overwrite=options.force)
    ranker = model[-1] if hasattr(model, "steps") else model
    moved = sum(pass_.bytes_moved for pass_ in parts.passes)
    seconds = time.perf_counter() - began
    fields = {
        "output": options.output, "model": type(ranker).__name__, "n_rows": parts.n_rows, "n_queries": parts.n_queries,
        "n_parts": len(parts.sources), "n_features": parts.n_features, "seconds": seconds,
        "n_workers": n_workers, "n_straddling_queries": parts.n_straddling, "bytes_moved": moved,
    }  # fmt: skip
    workers = f"{n_workers} workers; " if n_workers else ""
    alpha = f"; alpha {ranker.alpha_:.4g} ({ranker.alpha_from_})" if hasattr(ranker, "alpha_from_") else ""
    return fields, (
        f"wrote {options.output}: {type(ranker).__name__} from {parts.n_rows} rows in {parts.n_queries} queries and "
        f"{len(parts.sources)} parts, {parts.n_features} features, {seconds:.2f} s; "
        f"{workers}{parts.n_straddling} straddling queries, {moved} bytes moved{alpha}"
    )


@contextmanager
def _client(cluster: str | None) -> Iterator[Any]:
    if cluster is None:
        yield None
        return
    distributed = import_extra("distributed", "dask")
    local = re.fullmatch(r"local:([1-9][0-9]*)", cluster)
    if local:
        settings: dict[str, Any] = {
            "n_workers": int(local[1]), "threads_per_worker": 1, "processes": True, "dashboard_address": ":0",
            "silence_logs": logging.CRITICAL,  # errors are reported in one sentence
        }  # fmt: skip
        with distributed.LocalCluster(**settings) as started, distributed.Client(started) as client:
            yield client
        return
    try:
        client = distributed.Client(cluster, timeout=_CONNECT_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--cluster {cluster} does not answer ({reason(error)}); pass the address of a Dask scheduler, such as "
            "tcp://host:8786, or local:2 for two processes on this machine."
        ) from error
    with client:
        yield client
