"""
Try every public prediction of a loaded model on two small rows, to find parts that do not fit together.

This is the net below `corank.deploy.persist.declared`: it finds what no declaration covers. Its cost is that of a few
predictions of two rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from corank._lazy import is_of, is_pipeline
from corank.data.inputs import MAX_VALUE
from corank.errors import InputError
from corank.parameters import number

if TYPE_CHECKING:
    from corank.models.rls import PairSums
    from corank.text import Corpus

# largest number of columns for which dense rows are tried
_DENSE = 1 << 24

Prediction = Callable[[Any, Any], Any]

PREDICTIONS: dict[str, Prediction] = {
    "predict_proba": lambda model, X: model.predict_proba(X),
    "predict_views": lambda model, X: model.predict_views(X),
    "predict_path": lambda model, X: model.predict_path(X),
    "predict_level": lambda model, X: model.predict_level(X),
    "predict_pair": lambda model, X: model.predict_pair(X, [[0, 1]]),
    "posterior": lambda model, X: model.posterior(X).covariance,
    "answered": lambda model, X: model.answered(),
    "ranker_scores": lambda model, X: model.ranker_scores(X),
    "explain": lambda model, X: [part.contribution for part in model.explain(X[:1])],
    "show": lambda model, X: copy(model).show(X, rng=np.random.default_rng(0)).scores,
    "utilities": lambda model, X: model.utilities(X),
    "decision_function": lambda model, X: model.decision_function(X),
    "predict_ranking": lambda model, X: model.predict_ranking(X),
    "predict_top": lambda model, X: np.concatenate(model.predict_top(X)),
}
"""Predictions from rows, by the name of the method."""

OF_RATINGS: dict[str, Prediction] = {
    "predict": lambda model, X: model.predict(model.items_[:2], model.users_[:1].tolist() * len(model.items_[:2])),
    "predict_proba": lambda model, X: model.predict_proba(model.items_[:1], model.users_[:1]),
    "predict_user": lambda model, X: model.predict_user(model.items_[:1], [model.level_]),
    "predict_user_proba": lambda model, X: model.predict_user_proba(model.items_[:1], [model.levels_[0]]),
    "predict_users": lambda model, X: model.predict_users(sparse.csr_array((1, len(model.items_)))),
    "predict_new": lambda model, X: model.predict_new(_new_item(model), model.users_[:1], return_std=True),
}
"""Predictions of rankers of ratings."""


def try_model(model: Any) -> None:
    """Raise if a prediction of a model, pipeline or summary fails, or is not finite."""
    if is_of(model, "PairSums"):
        _try_summary(model)
    elif is_pipeline(model):
        if not all(hasattr(step, "transform") for _, step in model.steps[:-1] if step not in (None, "passthrough")):
            raise InputError("a step before the last is not a transformer")
        for _, step in model.steps:
            if step is not None and step != "passthrough":
                try_model(step)
    elif is_of(model, "LinkLearn"):
        model._check_state()
        _require_finite(model.to_index(_corpus()).weights)
    else:
        _try_estimator(model)


def _try_estimator(model: Any) -> None:
    d = model.n_features_in_
    if type(d) is not int or not 0 < d < 1 << 32:
        raise InputError(f"n_features_in_ is {d!r}")
    if hasattr(model, "column_scale_"):
        _require_factors("column_scale_", model.column_scale_, getattr(model, "_n_columns", d))
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (np.shape(names) != (d,) or np.asarray(names).dtype != object):
        raise InputError(f"feature_names_in_ does not have {d} names")
    rows = _rows(d)
    if not is_of(model, "Ranker", "LabelRanker"):
        if getattr(model, "scale_", None) is not None and np.abs(model.scale_).min() < np.finfo(np.float64).tiny:
            raise InputError("scale_ is too small to divide by")
        qid = {"qid": [0, 0]} if is_of(model, "QueryScaler") else {}
        for factor in (1.0, MAX_VALUE if hasattr(model, "scale_") else 1.0):
            _require_finite(model.transform(factor * rows, **qid))
        return
    model._check_state()
    first = _utilities if is_of(model, "LabelRanker") else _scores
    _require_finite(first(model, rows))
    for predict in _predictions(model):
        try:
            found = predict(model, rows)
        except InputError:  # it needs what this model lacks, such as a path or a prior
            continue
        _require_finite(found)


def _scores(model: Any, X: Any) -> Any:
    if is_of(model, "RatingsRanker"):
        X = np.repeat(model.items_[:1], 2)
    scores = model._predict_queries(X, [0, 0], [0.0, 0.0] if model.has_prior_ else None)
    if scores.shape != (2,) or scores.dtype != np.float64:
        raise InputError(f"two rows have scores of shape {scores.shape}")
    return scores


def _utilities(model: Any, X: Any) -> Any:
    utilities = model.utilities(X)
    if utilities.shape != (2, len(model.classes_)):
        raise InputError(f"two rows have utilities of shape {utilities.shape}")
    return utilities


def _predictions(model: Any) -> Iterator[Prediction]:
    """Yield the predictions of a model, except for the first."""
    table = OF_RATINGS if is_of(model, "RatingsRanker") else PREDICTIONS
    for name, call in table.items():
        if callable(getattr(model, name, None)):
            yield call
    if is_of(model, "ProcessRanker"):
        yield lambda model, X: model.predict(X, return_std=True)[1]
    if is_of(model, "BM25"):
        yield lambda model, X: model.to_index(_corpus()).weights
    if is_of(model, "Ranker") and not is_of(model, "RatingsRanker"):
        yield _contributions


def _contributions(model: Any, X: Any) -> Any:
    """Return the contributions that `corank.explain` would show."""
    terms = model._terms(X, [0, 0], np.arange(2))
    if any(one.values.shape != (2, len(one.weights)) or len(one.numbers) != len(one.weights) for one in terms):
        raise TypeError("contributions differ in number")  # not an InputError, which means that there are none
    return np.concatenate([one.weights * (one.values[0] - one.values[1]) for one in terms])


def _rows(d: int) -> Any:
    """Return a row of zeros and a row of small positive numbers."""
    if d > _DENSE:
        return sparse.csr_array(([0.5], ([1], [d - 1])), shape=(2, d))
    return np.stack([np.zeros(d), 1.0 / (2.0 + np.arange(d) % 7)])


def _new_item(model: Any) -> Any:
    """Return features of a new item, those of an old one; similarities to all items for a precomputed kernel."""
    basis = getattr(model, "basis_", None)
    return np.zeros((1, len(model.items_))) if basis is None or basis.view.kernel.is_precomputed else basis.rows[:1]


@cache
def _corpus() -> Corpus:
    from corank.text import Corpus

    return Corpus.of(["a b", "b c c", ""], language=None, stop_words=None)


def _require_finite(values: Any) -> None:
    numbers = np.asarray(values.data if sparse.issparse(values) else values)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise InputError("two rows give values that are not finite")


def _require_factors(name: str, factors: Any, d: int | None) -> None:
    if np.shape(factors) != (d,) or np.asarray(factors).dtype != np.float64:
        raise InputError(f"{name} does not have {d} columns")
    if not ((factors > 1e-154) & (factors < 1e154)).all():  # their squares must be finite
        raise InputError(f"{name} has values that are not positive, or whose squares overflow")


def _try_summary(summary: PairSums) -> None:
    width = sum(phi.n_features for phi in summary.maps)
    if summary.scored.n_features != width:
        raise InputError(f"the sums do not have {width} features")
    d, free = summary.n_features, summary.free
    if not all(map(number(0).allows, (summary.scored.pair_weight, *summary.weights, free.differences, free.n_queries))):
        raise InputError("the weights of pairs are not finite numbers of at least 0")
    if d is None and not all(phi.basis is not None for phi in summary.maps):
        raise InputError("the number of columns is missing")
    if not all(np.isfinite(part.pair).all() for part in (summary.scored, summary.unscored) if part is not None):
        raise InputError("the sums are not finite")
    if summary.factors is not None:
        _require_factors("factors", summary.factors, d)
    (summary + summary).equations(1.0)
