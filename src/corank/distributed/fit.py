"""Learn from parts: sums of the squared losses, leave-query-out, and Newton steps, over rows in many places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline

from corank.core.sums.bins import ExactSum
from corank.distributed.engine import DaskEngine
from corank.distributed.linear import fit_linear, warn_of_no_agreement
from corank.distributed.parts import Parts
from corank.distributed.summary import Summarised, leave_queries_out, rows_of_parts, summarise_maps, summarise_parts
from corank.distributed.sums import Spread
from corank.distributed.tasks import WholeQueries
from corank.errors import InputError, import_extra
from corank.estimator.base import Ranker
from corank.estimator.contract import check_parameters, install, named_columns
from corank.estimator.landmarks import Landmarks
from corank.estimator.query_scaler import QueryScaler
from corank.kernels import FeatureMap, as_kernel
from corank.linear.base import LinearDescent
from corank.metrics import parse_metric
from corank.pairwise.moment_blocks import dense
from corank.rls import CoRankRLS, RankRLS, Summary
from corank.rls.judge import EVIDENCE
from corank.rls.least_squares import LeastSquares

# numbers that are summed at a time: 8 MiB
_ENTRIES = 1 << 20


def require_steps(steps: Sequence[Any]) -> list[Any]:
    """Raise one sentence for a step that parts cannot teach; return those that do something."""
    used = [step for step in steps if step is not None and step != "passthrough"]
    for step in used:
        if type(step) not in _FITS:
            raise InputError(
                f"the step {type(step).__name__} cannot be learnt from parts; use QueryScaler or Landmarks before the "
                "ranker, or fit it on one machine."
            )
        if isinstance(step, Landmarks) and isinstance(step.basis, str) and step.basis != "random":
            raise InputError(f"landmarks over parts are drawn at random, not by {step.basis!r}; set basis='random'.")
    return used


def fit_steps(steps: Sequence[Any], parts: Parts) -> tuple[list[Any], Parts]:
    """
    Fit copies of transformers to parts, one after the other.

    Returns: the copies, and the parts as the last of them shows the rows.
    """
    fitted = []
    for step in steps:
        fitted.append(_FITS[type(step)](copy(step), parts))
        parts = parts.through(fitted[-1])
    return fitted, parts


def _fit_scaler(step: QueryScaler, parts: Parts) -> QueryScaler:
    check_parameters(step)
    return install(step, None, {**named_columns(parts.n_features), "n_queries_": parts.n_queries})


def _fit_landmarks(step: Landmarks, parts: Parts) -> Landmarks:
    check_parameters(step)
    factors = _factors(parts) if step.scale and as_kernel(step.kernel).scales_columns else None
    record = step.choose(rows_of_parts(parts, factors), factors)
    return install(step, record, named_columns(parts.n_features))


_FITS: dict[type, Callable[[Any, Parts], Any]] = {QueryScaler: _fit_scaler, Landmarks: _fit_landmarks}


def _factors(parts: Parts) -> Floats:
    """Return the column factors of rows that are one query, see `corank.data.problem.column_scales`."""
    # measured from a row, so that a column that is constant has deviation 0
    origin = parts.origin
    sums: ExactSum = parts.summed(_differences_part, origin, "means of columns")
    spread: Spread = parts.summed(_squares_part, (origin, sums.value / parts.n_rows), "scale of columns")
    return spread.factors


def _differences_part(problems: Iterator[WholeQueries], origin: Floats) -> ExactSum | None:
    """Sum rows as differences from a point, over a part; None where it has none."""
    total = None
    for rows in _blocks(problems):
        own = ExactSum.of(rows - origin)
        total = own if total is None else total + own
    return total


def _squares_part(problems: Iterator[WholeQueries], centre: tuple[Floats, Floats]) -> Spread | None:
    """Sum squares of columns about their means, and what is not zero, over a part; None where it has none."""
    (origin, mean), total = centre, None
    for rows in _blocks(problems):
        own = Spread(len(rows), ExactSum.of(np.hstack([(rows - origin - mean) ** 2, rows != 0.0])))
        total = own if total is None else total + own
    return total


def _blocks(problems: Iterator[WholeQueries]) -> Iterator[Floats]:
    for problem in problems:
        X = problem.data.X
        step = max(_ENTRIES // max(X.shape[1], 1), 1)
        for begin in range(0, X.shape[0], step):
            yield dense(X[begin : begin + step])


Floats = NDArray[np.float64]
R = TypeVar("R", bound=Ranker | Pipeline)


def fit_parts(
    model: R,
    parts: Any,
    client: Any = None,
    *,
    split: Literal["move", "refuse"] = "move",
    unscored: float | None = None,
    y: str | None = "label",
    qid: str | None = None,
    verbose: bool = False,
) -> R:
    """
    Fit a ranker to rows in many places, on this machine part after part, or on a cluster.

    The model is that of one machine that holds all rows. Its bytes do not depend on how rows are cut into parts, on
    their number, on what is done first, or on workers that are lost on the way, up to 192 columns and on one kind of
    processor; they agree with ``fit`` to rounding.

    Parameters
    ----------
    model : RankRLS, CoRankRLS, SPD, CRR or LCRA; or a Pipeline that ends in one
        What to learn. The last three are solved exactly where the loss allows it; with ``solver="sgd"``, or a hinge,
        their weights are the mean of independent stochastic runs, one a part, which do depend on the parts. Steps
        before the ranker are `QueryScaler` and `Landmarks` with random ones.
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`.
    client : distributed.Client, Engine or None
        Where tasks run; None is this machine.
    split : {"move", "refuse"}
        What is done with a query that stands in several parts: its rows move to the part that holds most of them, or
        one sentence says which they are.
    unscored, y, qid
        How files and frames are read, see `corank.read`.
    verbose : bool
        Whether to show how far it has come, on a terminal or in a notebook.

    Returns
    -------
    Ranker or Pipeline
        The model, fitted.

    Examples
    --------
    >>> from corank import RankRLS, make_ranking
    >>> problem = make_ranking(60, 10, random_state=0)
    >>> cut = [(problem.X[rows], problem.y[rows], problem.qid[rows]) for rows in (slice(0, 305), slice(305, None))]
    >>> model = fit_parts(RankRLS(), cut)
    >>> whole = RankRLS().fit(problem.X, problem.y, qid=problem.qid)
    >>> bool(np.allclose(model.coef_, whole.coef_, rtol=1e-12))
    True
    """
    *steps, ranker = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if type(ranker) in (RankRLS, CoRankRLS):
        fit = _fit_least_squares
    elif isinstance(ranker, LinearDescent):
        fit = fit_linear
    else:
        raise InputError(
            f"{type(ranker).__name__} cannot be learnt from parts; use RankRLS, CoRankRLS, SPD, CRR or LCRA, or fit it "
            "on one machine."
        )
    steps = require_steps(steps)
    check_parameters(ranker)
    if not isinstance(parts, Parts):
        parts = Parts(parts, client, split=split, unscored=unscored, y=y, qid=qid, verbose=verbose)
    named = named_columns(parts.n_features, parts.feature_names)
    fitted, parts = fit_steps(steps, parts)
    record, factors = fit(ranker, parts)
    notes = named_columns(parts.n_features) if steps else named
    # only assignments from here on; as in a pipeline on one machine, the first step remembers the names
    for step, new in zip(steps, fitted, strict=True):
        step.__dict__ = {**vars(new), **named} if step is steps[0] else vars(new)
    install(ranker, record, notes if factors is None else {**notes, "column_scale_": factors})
    return model


def summarise(
    parts: Any,
    maps: RankRLS | CoRankRLS | tuple[FeatureMap, ...],
    client: Any = None,
    *,
    query_weight: str = "pairs",
    ties: bool = False,
    split: Literal["move", "refuse"] = "move",
    unscored: float | None = None,
    y: str | None = "label",
    qid: str | None = None,
) -> Summary:
    """
    Sum over rows in many places; `fit_summary` of the model then solves without seeing them again.

    Parameters
    ----------
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`.
    maps : RankRLS, CoRankRLS, or tuple of FeatureMap
        A model, which chooses views, basis rows and the scale of columns; or features for rows as they are.
    client : distributed.Client, Engine or None
        Where tasks run; None is this machine.
    query_weight, ties
        As in `RankRLS`, beside features; a model has its own.
    split, unscored, y, qid
        As in `fit_parts`.

    Returns
    -------
    Summary
        The sums, the same bytes however the rows are cut into parts.
    """
    if not isinstance(parts, Parts):
        parts = Parts(parts, client, split=split, unscored=unscored, y=y, qid=qid)
    if isinstance(maps, LeastSquares):
        check_parameters(maps)
        return summarise_parts(parts, maps).summary
    return summarise_maps(parts, tuple(maps), query_weight, ties, scale=False).summary


def _fit_least_squares(model: Any, parts: Parts) -> tuple[Any, Floats | None]:
    """Return the fitted record, and the column factors."""
    found = summarise_parts(parts, model)
    summary = found.summary
    summary.require_pairs()
    if isinstance(model, CoRankRLS) and len(summary.maps) > 1:
        highest = model.coupling if model.couplings is None else max(model.couplings)
        warn_of_no_agreement(summary.unscored, highest)
    if model.alphas is None and getattr(model, "couplings", None) is None:
        fitted = model._solve(summary)
    else:
        metric = _metric(model, found)
        fitted = model._solve_judged(
            summary, metric, lambda ridges, alphas: leave_queries_out(parts, found, metric, ridges, alphas)
        )
    return fitted, summary.factors


def _metric(model: LeastSquares, found: Summarised) -> str:
    """Name what judges candidates, as on one machine."""
    if found.summary.free.n_queries < 2:
        raise InputError(
            "alphas and couplings are chosen by leaving out one query at a time, and only one has scored rows to "
            "compare; pass alpha and coupling."
        )
    if model.metric == EVIDENCE:
        raise InputError("metric is 'evidence', which is not summed over parts; name a metric, or pass alpha.")
    if model.metric is not None:
        return str(parse_metric(model.metric))
    return "nDCG@10" if found.sums.are_grades else "disagreement"


Grouped = tuple[Any, NDArray[np.int64], NDArray[np.int64]]


def fit_trees(parts: Any, client: Any = None, **params: Any) -> Any:
    """
    Fit LightGBM's ranker to parts on a cluster, each query whole in one of them.

    LightGBM takes numbers of rows for queries, part by part, and cannot know when a query goes on in another part. Here
    straddling queries move first, as for `fit_parts`; parts without a judged row are left out.

    Parameters
    ----------
    parts : Parts, path, sequence, or Dask's collections
        The rows, see `Parts`; scores are whole numbers from 0, and unscored rows are left out.
    client : distributed.Client or DaskEngine
        The cluster; `parts` may have it already.
    **params
        Parameters of ``lightgbm.DaskLGBMRanker``.

    Returns
    -------
    lightgbm.LGBMRanker
        The model, on this machine.
    """
    lightgbm, dask, array = (
        import_extra("lightgbm", "trees"),
        import_extra("dask", "dask"),
        import_extra("dask.array", "dask"),
    )
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    if not isinstance(parts.engine, DaskEngine):
        raise InputError("LightGBM's trees over parts need a cluster of Dask's; pass its client.")
    handles = parts.over(_grouped_part, None, "whole queries")
    sizes = parts.engine.gather(parts.engine.map(_sizes, handles, name="sizes"))
    full = [(handle, size) for handle, size in zip(handles, sizes, strict=True) if size[0]]
    if not full:
        raise InputError(f"none of the {parts.n_rows} rows has a score; score some rows.")

    def column(at: int, shape: Any, dtype: Any) -> Any:
        return array.concatenate(
            [
                array.from_delayed(dask.delayed(_pick)(handle, at), shape=shape(size), dtype=dtype)
                for handle, size in full
            ]
        )

    X = column(0, lambda size: (size[0], parts.n_features), np.float64)
    y, group = column(1, lambda size: size[:1], np.int64), column(2, lambda size: size[1:], np.int64)
    model = lightgbm.DaskLGBMRanker(client=parts.engine.client, **params)
    return model.fit(X, y, group=group).to_local()


def _grouped_part(problems: Iterator[WholeQueries], settings: None) -> Grouped:
    """Judged rows of a part query by query, their grades, and how many rows each query has."""
    X, y, group = [], [], []
    for problem in problems:
        data = problem.data
        assert data.y is not None
        rows = data.queries.order[data.is_scored[data.queries.order]]
        grades = data.y[rows]
        if (grades != np.round(grades)).any() or (grades < 0).any():
            raise InputError("y holds scores that are no whole numbers from 0, which LightGBM asks for; grade them.")
        X.append(data.X[rows].toarray() if sparse.issparse(data.X) else data.X[rows])
        y.append(grades.astype(np.int64))
        sizes = np.bincount(data.queries.codes[rows], minlength=1)
        group.append(sizes[sizes > 0])
    if not X:
        return np.empty((0, 0)), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate(X), np.concatenate(y), np.concatenate(group)


def _sizes(grouped: Grouped) -> tuple[int, int]:
    return len(grouped[1]), len(grouped[2])


def _pick(grouped: Grouped, at: int) -> Any:
    return grouped[at]
