"""Learn from parts: sums of the squared losses, leave-query-out, and Newton steps, over rows in many places."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from corank.distributed.linear import fit_linear, warn_of_no_agreement
from corank.distributed.parts import Parts
from corank.distributed.steps import fit_steps, require_steps
from corank.distributed.summary import Summarised, leave_queries_out, summarise_maps, summarise_parts
from corank.errors import InputError
from corank.estimator.base import Ranker
from corank.estimator.contract import check_parameters, install, named_columns
from corank.kernels import FeatureMap
from corank.linear.base import LinearDescent
from corank.metrics import parse_metric
from corank.rls import CoRankRLS, RankRLS, Summary
from corank.rls.judge import EVIDENCE
from corank.rls.least_squares import LeastSquares

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
    fitted, parts = fit_steps(steps, parts)
    record, scale = fit(ranker, parts)
    notes = named_columns(parts.n_features, parts.feature_names)
    # nothing can fail any more
    for step, new in zip(steps, fitted, strict=True):
        step.__dict__ = vars(new)
    install(ranker, record, notes if scale is None else {**notes, "column_scale_": scale})
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
