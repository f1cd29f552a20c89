"""
Relations between the parts of a model that its predictions rely on, by class.

Each is a sentence and a test. A test may assume that types and shapes are as declared
(`corank.deploy.persist.declared`); one that raises counts as broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from corank.data.inputs import MAX_VALUE

Test = Callable[[Any], Any]


def _is_ascending(values: NDArray[Any]) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _are_ids(ids: NDArray[Any]) -> bool:
    return ids.dtype.kind in "biufO" and _is_ascending(ids)


def _are_below(numbers: NDArray[np.int64], n: int, least: int = 0) -> bool:
    return not len(numbers) or bool(least <= numbers.min() and numbers.max() < n)


def _is_covariance(matrix: NDArray[np.float64]) -> bool:
    """Return whether a matrix is symmetric and positive semidefinite, up to rounding."""
    size = np.abs(np.diagonal(matrix)).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * size:
        return False
    try:
        linalg.cholesky(matrix + 1e-8 * size * np.eye(len(matrix)), lower=True, check_finite=False)
    except linalg.LinAlgError:
        return bool(size == 0.0)
    return True


def _has_columns(rows: Any, view: Any) -> bool:
    """Return whether basis rows have the columns of their view."""
    if view.kernel.is_precomputed:
        return bool(rows.ndim == 1 and rows.dtype.kind == "i" and rows.min(initial=0) >= 0)
    if rows.dtype == object:
        return bool(rows.ndim == 1)
    is_wide_enough = view.columns is None or rows.shape[-1] == len(view.columns)
    return bool(rows.ndim == 2 and rows.dtype == np.float64 and is_wide_enough)


def _is_basis_of(basis: Any, n_columns: int) -> bool:
    """Return whether rows of X can be compared with the rows of a basis."""
    if basis.view.columns is not None:
        basis.view.require_columns(n_columns)
        return True
    if basis.view.kernel.is_precomputed:
        return _are_below(basis.rows, n_columns)
    return bool(basis.rows.ndim == 1 or basis.rows.shape[1] == n_columns)


def _weights(model: Any) -> int:
    """Return the number of weights of a linear or kernel model, which has one of two sets."""
    if hasattr(model, "coef_") == (hasattr(model, "basis_") and hasattr(model, "dual_coef_")):
        return -1
    return len(model.coef_) if hasattr(model, "coef_") else len(model.dual_coef_)


def _are_solutions(model: Any) -> bool:
    d, chosen = model._n_columns, model.basis_.numbers if hasattr(model, "basis_") else None
    for solution in model.solutions_:
        terms, path, gains = (solution[name] for name in ("terms", "path", "gains"))
        if terms.dtype != np.int64 or path.dtype != np.float64 or (terms.ndim, path.ndim) != (1, 1):
            return False
        P = len(terms)
        if len(path) not in (P, P * (P + 1) // 2) or gains.shape != (P,) or not np.isfinite(path).all():
            return False
        if not (np.isin(terms, chosen).all() if chosen is not None else _are_below(terms, d)):
            return False
    return len(model.solutions_) > 0


def _are_processes(mixture: Any) -> bool:
    """Return whether each process of a mixture has the shapes of its map, and each map a process."""
    maps, numbers = mixture.maps, mixture.map_numbers
    if not np.array_equal(np.unique(numbers), np.arange(len(maps))) or len(maps) == 0:
        return False
    for number, mu, factor in zip(numbers, mixture.mu, mixture.factor, strict=True):
        k = maps[number].n_features
        if maps[number].basis is None or mu.shape != (k,) or factor.shape != (k, k):
            return False
        if not (np.isfinite(mu).all() and np.isfinite(factor).all() and (np.diagonal(factor) > 0.0).all()):
            return False
    return True


def _are_precisions(model: Any) -> bool:
    """Return whether there is one prior precision for each map of a mixture."""
    each = zip(model.process_.maps, model.prior_precision_, strict=True)
    return all(P.shape == (phi.n_features,) * 2 and np.isfinite(P).all() for phi, P in each)


_WEIGHTS = ("coef_", "dual_coef_", "view_coefs_", "term_coefs_", "pair_coef_", "intercept_", "pair_intercept_")


def _are_moderate(model: Any) -> bool:
    """Return whether sums of weights times values up to `MAX_VALUE` are finite."""
    arrays = [part for name in _WEIGHTS for part in _arrays(getattr(model, name, ()))]
    return all(np.isfinite(np.abs(part * MAX_VALUE).sum()) for part in arrays)


def _arrays(value: Any) -> list[NDArray[Any]]:
    """Return an array, or the arrays of a list, as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


_MODERATE: dict[str, Test] = {f"scores of rows with values up to {MAX_VALUE:g} do not overflow": _are_moderate}

RELATIONS: dict[str, dict[str, Test]] = {
    "View": {
        "columns are numbers": lambda v: v.columns is None or (v.columns.dtype.kind == "i" and v.columns.min() >= 0),
    },
    "Basis": {"rows has the columns of its view": lambda b: _has_columns(b.rows, b.view)},
    "FeatureMap": {
        "T has a row for each basis row": lambda m: (m.basis is None) == (m.T is None)
        and (m.basis is None or len(m.basis) == len(m.T)),
        "n_features is positive": lambda m: m.n_features >= 0,
    },
    "PosteriorProcess": {
        "mu has the features of phi": lambda p: p.phi.basis is not None and len(p.mu) == p.phi.n_features,
        "factor is triangular with a positive diagonal": lambda p: (np.diagonal(p.factor) > 0.0).all(),
    },
    "ProcessMixture": {
        "every process fits its map": _are_processes,
        "sigma is positive": lambda p: (p.sigma > 0.0).all(),
    },
    "Sites": {
        "lo is below hi": lambda s: (s.lo < s.hi).all(),
        "noise and weight are positive": lambda s: (s.noise > 0.0).all() and (s.weight > 0.0).all(),
    },
    "DistinctRows": {
        "of_row names items": lambda r: _are_below(r.of_row, len(r), -1),
        "numbers names rows": lambda r: _are_below(r.numbers, len(r.of_row)),
        "rows are numbers": lambda r: r.rows.dtype in (np.float64, object),
    },
    "ThresholdPrior": {"var is positive": lambda p: (p.var > 0.0).all()},
    "LabelRanker": _MODERATE,
    "Ranker": {
        **_MODERATE,
        "basis_ has the columns of X": lambda m: getattr(m, "_reads_ids", False)
        or not hasattr(m, "basis_")
        or _is_basis_of(m.basis_, m._n_columns),
        "missing_columns_ names columns": lambda m: hasattr(m, "missing_columns_") == hasattr(m, "missing_means_")
        and (not hasattr(m, "missing_columns_") or _are_below(m.missing_columns_, m.n_features_in_))
        and (np.diff(getattr(m, "missing_columns_", [])) > 0).all(),
        "views_ names columns": lambda m: all(
            view.columns is None or _are_below(view.columns, m._n_columns) for view in getattr(m, "views_", ())
        ),
    },
    "RankRLS": {
        "coef_ or dual_coef_ has the right length": lambda m: hasattr(m, "coef_") or len(m.dual_coef_) == len(m.basis_),
        "alpha_path_ has the weights of the model": lambda m: _weights(m) >= 0
        and (not hasattr(m, "alpha_path_") or m.alpha_path_.shape[1] == _weights(m)),
    },
    "RankSVM": {
        "coef_ or dual_coef_ has the right length": lambda m: hasattr(m, "coef_")
        or m.dual_coef_.shape == (len(m.basis_),),
    },
    "CoRankRLS": {
        "every view has a basis": lambda m: len(m.views_) == len(m.view_coefs_) == len(m.view_bases_) > 0,
    },
    "RankingPursuit": {"solutions_ holds terms and coefficients": _are_solutions},
    "CoRankingPursuit": {
        "every view has a basis": lambda m: len(m.views_) == len(m.view_bases_) == m.terms_.shape[1] > 0,
        "terms_ names basis rows": lambda m: all(
            np.isin(m.terms_[:, v], basis.numbers).all() and _is_ascending(basis.numbers)
            for v, basis in enumerate(m.view_bases_)
        ),
    },
    "LinearDescent": {
        "run_ comes with eta0_ and objective_trace_": lambda m: not hasattr(m, "run_")
        or (hasattr(m, "eta0_") and hasattr(m, "objective_trace_")),
    },
    "LCRA": {"every view has weights": lambda m: len(m.views_) == len(m.view_coefs_) > 0
        and all(view.columns is not None and len(np.unique(view.columns)) == len(view.columns) for view in m.views_)},
    "LambdaRank": {
        "the scorer has its parameters": lambda m: hasattr(
            m, {"linear": "coef_", "mlp": "column_mean_", "trees": "trees_"}[m.scorer]
        ),
    },
    "BM25": {"mean_length_ is positive": lambda m: m.mean_length_ > 0.0},
    "ColumnMean": {"columns_ names columns": lambda m: _are_below(m.columns_, m.n_features_in_, -m.n_features_in_)},
    "Calibrated": {"scores_ ascends": lambda m: not hasattr(m, "scores_") or (np.diff(m.scores_) >= 0.0).all()},
    "QueryScaler": {"n_queries_ is set": lambda m: hasattr(m, "n_queries_")},
    "Smooth": {
        "rows of both arrays have length 1": lambda m: max(
            np.linalg.norm(rows, axis=1).max(initial=0.0) for rows in (m.components_, m.embedding_)
        )
        <= 1.001,
        "both arrays are numbers": lambda m: {m.components_.dtype.kind, m.embedding_.dtype.kind} == {"f"},
    },
    "OrdinalGP": {
        "levels_ and thresholds_ ascend": lambda m: _is_ascending(m.levels_) and (np.diff(m.thresholds_) >= 0.0).all(),
        "sigma_ is positive": lambda m: m.sigma_ > 0.0,
    },
    "PreferenceGP": {
        "sigma_ is positive": lambda m: m.sigma_ > 0.0,
        "site_tau_ has the sites": lambda m: m.site_tau_.shape == (len(m.process_.mu), len(m.sites_))
        and (m.site_tau_ >= 0.0).all(),
        "prior_precision_ has the maps": lambda m: not hasattr(m, "prior_precision_") or _are_precisions(m),
        "sites_ names items": lambda m: _are_below(m.sites_.left, len(m.rows_))
        and _are_below(m.sites_.right, len(m.rows_)),
        "rows_ has the columns of X": lambda m: m.rows_.rows.ndim == 1 or m.rows_.rows.shape[1] == m._n_columns,
        "graph_ has the items": lambda m: not hasattr(m, "graph_") or m.graph_.shape[0] == len(m.rows_),
    },
    "RatingsRanker": {
        "items_ and users_ ascend": lambda m: _are_ids(m.items_) and _are_ids(m.users_),
        "ratings_ is a matrix of numbers": lambda m: sparse.issparse(m.ratings_) and m.ratings_.dtype == np.float64,
        "n_features_in_ is 1": lambda m: m.n_features_in_ == 1,
    },
    "CollaborativeGP": {
        "levels_ ascends": lambda m: _is_ascending(m.levels_),
        "site_tau_ has the ratings": lambda m: len(m.site_tau_) == m.ratings_.nnz and (m.site_tau_ >= 0.0).all(),
        "sigma_, user_scales_ and user_sigmas_ are positive": lambda m: m.sigma_ > 0.0
        and (m.user_scales_ > 0.0).all()
        and (getattr(m, "user_sigmas_", np.ones(1)) > 0.0).all()
        and hasattr(m, "user_sigmas_") == (m.likelihood == "ordinal" and m.free_thresholds),
        "threshold_prior_ has the levels": lambda m: hasattr(m, "threshold_prior_") == hasattr(m, "user_thresholds_")
        and (not hasattr(m, "threshold_prior_") or len(m.threshold_prior_.mean) == len(m.levels_) - 1),
        "basis_ has the items": lambda m: not hasattr(m, "basis_")
        or (len(m.basis_) == len(m.item_gram_) and hasattr(m, "kernel_") and m.first_mean_ + m.first_var_ < np.inf),
        "item_means_ is moderate": lambda m: np.abs(m.item_means_).max() < 1e100,
        "item_covariance_ and item_gram_ are covariances": lambda m: _is_covariance(m.item_covariance_)
        and _is_covariance(getattr(m, "item_gram_", np.zeros((0, 0)))),
    },
}  # fmt: skip
"""What must hold of an object, by the name of its class or of a base class."""


def broken_relation(value: Any) -> str | None:
    """Return the first sentence that does not hold of an object; None if all hold."""
    for base in type(value).__mro__:
        for sentence, test in RELATIONS.get(base.__name__, {}).items():
            try:
                holds = bool(test(value))
            except Exception:  # a missing or odd part
                holds = False
            if not holds:
                return sentence
    return None
