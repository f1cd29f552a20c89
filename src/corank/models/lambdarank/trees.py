"""
Regression trees boosted along λ by LightGBM (extra `trees`).

Each tree is a Newton step: its leaves are Σλ_i/(Σh_i + l2) over their rows, h the curvatures. Both are scaled to a mean
curvature of 1 before each step, so that LightGBM's smallest leaf (``min_sum_hessian_in_leaf``) and ``lambda_l2`` count
rows, for any λ and any number of documents per query. Constant curvatures, the usual way to use one's own λ with
LightGBM, lose that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.solvers.choice import EarlyStopping
from corank.core.models.trees import ZERO
from corank.core.threads import n_threads
from corank.errors import InputError, import_extra, reason, suggest_names, warn
from corank.models.lambdarank.training import LambdaProblem, StepSettings, ValidationRows
from corank.models.lambdarank.tree_ensemble import TreeEnsemble, category_codes, category_groups
from corank.progress import progress

Floats = NDArray[np.float64]

DEFAULTS: dict[str, Any] = {
    "num_leaves": 16,
    "min_sum_hessian_in_leaf": 5.0,
    "min_data_in_leaf": 0,
    "min_data_in_bin": 1,
    "lambda_l2": 5.0,
    "extra_trees": True,
    "min_data_per_group": 5,
    "cat_smooth": 1.0,
    "cat_l2": 1.0,
}
"""
Defaults of LightGBM's parameters: small trees for few judgements.

``extra_trees`` tries one random threshold per column (Geurts, Ernst and Wehenkel, 2006) instead of all: each tree fits
less of the noise, and the sum over trees averages it.
"""

# upper bound of the smallest leaf, as a share of all rows
_LEAST = 0.05
# leaves of a tree from this many rows on
_MANY_ROWS, _MANY_LEAVES = 5_000, 31

# parameters that corank sets, or that lead to other models than one sum of trees
_OURS = (
    "objective", "num_iterations", "learning_rate", "num_threads", "seed", "verbosity", "linear_tree", "boosting",
    "num_class",
)  # fmt: skip
# parameters of LightGBM's objectives, which would change nothing
_OF_OBJECTIVES = (
    "label_gain", "lambdarank_truncation_level", "lambdarank_norm", "lambdarank_position_bias_regularization",
    "sigmoid", "is_unbalance", "scale_pos_weight",
)  # fmt: skip
# values up to ZERO are noise in a column with values of this size: they are below its rounding error
_NOISE = ZERO * 2.0**53
# LightGBM adds two neighbouring values
_LARGEST = float(np.finfo(np.float64).max) / 2.0
# fewer rows per thread cost more in waiting than they save: MQ2008 took twice as long with two threads as with one
_ROWS_PER_THREAD = 50_000
# rows per block of the check of values
_BLOCK = 1 << 14
# lower bound of curvatures, as a share of their mean
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class BoostingResult:
    """Result of boosting."""

    trees: TreeEnsemble
    errors: Floats  # (n_checks,): on the validation rows; empty without them
    interrupted: bool  # whether Ctrl-C ended boosting


def boost(
    X: Any,
    names: Sequence[Any] | None,
    problem: LambdaProblem,
    settings: StepSettings,
    own: dict[str, Any],
    n_jobs: int | None,
    rng: np.random.Generator,
    validation: ValidationRows | None,
    callbacks: Sequence[Callable[[Any], None]] = (),
) -> BoostingResult:
    """Boost trees; LightGBM's callbacks get the metric of the validation rows after every tree."""
    lightgbm = import_extra("lightgbm", "trees")
    threads = 1 if n_jobs is None else min(n_threads(n_jobs), max(1, len(problem.lists.rows) // _ROWS_PER_THREAD))
    own = checked_parameters(own)
    plain_categories = own.pop("categorical_feature", None) is not None
    smallest = min(DEFAULTS["min_sum_hessian_in_leaf"], _LEAST * float(problem.lists.weights.sum()))
    parameters = {
        **DEFAULTS,
        "min_sum_hessian_in_leaf": smallest,
        **({"num_leaves": _MANY_LEAVES} if len(problem.lists.rows) >= _MANY_ROWS else {}),
        **own,
        "objective": "none",
        "learning_rate": settings.rate,
        "num_threads": threads,
        "seed": int(rng.integers(1 << 31)),
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    ascending = np.argsort(problem.lists.rows)
    rows = problem.lists.rows[ascending]
    used = X if len(rows) == X.shape[0] else X[rows]
    require_magnitudes(used)
    groups = None if plain_categories else category_groups(X, names)
    used = used if groups is None else category_codes(used, groups)
    categories = [] if groups is None else groups[:, 0].tolist()
    scores, weights = np.zeros(len(rows)), problem.lists.weights
    is_flat = False

    data = lightgbm.Dataset(lightgbm_rows(used), np.zeros(len(rows)), params=parameters, categorical_feature=categories)

    def begin() -> Any:
        return lightgbm.Booster(parameters, data)

    def gradient_and_hessian(predicted: Floats, _: Any) -> tuple[Floats, Floats]:
        scores[ascending] = predicted
        lambdas, curvatures = (problem.evaluate if n else problem.evaluate_first)(scores, threads)
        curvatures = weights * np.abs(lambdas).mean() if is_flat else np.maximum(curvatures, 0.0)
        unit = curvatures.sum() / weights.sum() or 1.0
        bounded = np.maximum(curvatures, _FLAT * unit * weights)
        return -lambdas[ascending] / unit, bounded[ascending] / unit

    stopping = EarlyStopping(settings.patience)
    try:
        booster = begin()
        # LightGBM fails if no column can be split
        n_steps = settings.n_steps if any(map(data.feature_num_bin, range(X.shape[1]))) else 0
    except lightgbm.basic.LightGBMError as error:
        raise InputError(f"LightGBM refuses tree_params {own} ({reason(error)}); change them.") from error
    if validation is not None and groups is not None:
        validation = replace(validation, X=category_codes(validation.X, groups))
    running = RunningScores(booster, validation)
    best, n, interrupted = 0, 0, False
    checks = set(range(n_steps + 1) if callbacks else settings.checks)
    as_result = getattr(lightgbm, "EvalResult", lambda *values: values)  # a tuple before LightGBM 4.7
    callbacks = sorted(callbacks, key=lambda callback: getattr(callback, "order", 0))
    first, later = ([c for c in callbacks if getattr(c, "before_iteration", False) == x] for x in (True, False))

    def call(some: list[Callable[[Any], None]], results: Any) -> None:
        for callback in some:
            callback(lightgbm.callback.CallbackEnv(booster, parameters, n, 0, n_steps, results))

    try:
        with progress(settings.n_steps, "trees", settings.verbose) as advance:
            while n < n_steps:
                call(first, None)
                # True if no leaf can be split any more
                if booster.update(fobj=gradient_and_hessian):
                    if n or is_flat:
                        break
                    # if |λ| equals the curvature everywhere, all rows have the same target: use constant curvatures
                    is_flat, booster = True, begin()
                    running = RunningScores(booster, validation)
                    continue
                if validation is not None and n + 1 in checks:
                    stopping.record(running.error(n + 1))
                    # of equal errors the last one is kept
                    if stopping.errors[-1] <= stopping.best_error:
                        best = n + 1
                if later:
                    call(later, [] if validation is None else [as_result(*validation.result(stopping.errors))])
                n += 1
                advance(1)
                if stopping.is_over:
                    break
    except lightgbm.callback.EarlyStopException as stop:
        n = stop.best_iteration + 1
    except KeyboardInterrupt:
        interrupted = True
    if n == 0 and settings.n_steps and not interrupted:
        warn("no tree could be grown: no split of the rows has different means of λ; check lambdas, or tree_params.")
    n = best if settings.patience is not None and stopping.errors else n
    text = booster.model_to_string(num_iteration=n) if n else None
    trees = TreeEnsemble.empty(X.shape[1]) if text is None else TreeEnsemble.from_lightgbm(text, groups)
    return BoostingResult(trees, np.array(stopping.errors), interrupted)


class RunningScores:
    """Scores of the validation rows, to which the newest trees are added."""

    def __init__(self, booster: Any, validation: ValidationRows | None) -> None:
        self.booster, self.validation, self.n_trees = booster, validation, 0
        self.scores = np.zeros(0 if validation is None else validation.X.shape[0])

    def error(self, n: int) -> float:
        """Return the error with `n` trees."""
        assert self.validation is not None
        since = {"start_iteration": self.n_trees, "num_iteration": n - self.n_trees}
        self.scores += self.booster.predict(lightgbm_rows(self.validation.X), raw_score=True, **since)
        self.n_trees = n
        return self.validation.error(self.scores)


def require_magnitudes(X: Any) -> None:
    """Raise if LightGBM would treat values of a column as zeros, or overflow."""
    stored, is_sparse = (X.data[:, None], True) if sparse.issparse(X) else (X, False)
    odd: set[int] = set()
    for begin in range(0, len(stored), _BLOCK):
        sizes = np.abs(stored[begin : begin + _BLOCK], dtype=np.float64)
        is_odd = ((sizes > 0.0) & (sizes <= ZERO)) | (sizes > _LARGEST)
        if is_odd.any():
            row, column = is_odd.nonzero()
            odd.update((X.indices[begin + row] if is_sparse else column).tolist())
    for j in sorted(odd):
        values = X[:, [j]]
        largest = float(np.nanmax(np.abs(values.data if is_sparse else values)))
        result = f"column {j} of X has values of size up to {largest:.3g}"
        if largest > _LARGEST:
            raise InputError(f"{result}; LightGBM needs values up to {_LARGEST:.3g}, so divide it by a constant.")
        if largest < _NOISE:
            raise InputError(f"{result}; LightGBM treats values up to 1e-35 as zero, so multiply it by a constant.")


def lightgbm_rows(X: Any) -> Any:
    """Return rows in LightGBM's format: it accepts sparse matrices, not sparse arrays."""
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=False) if sparse.issparse(X) else X


def checked_parameters(own: dict[str, Any]) -> dict[str, Any]:
    """Return LightGBM parameters under their canonical names; raise for unknown ones and for those that corank sets."""
    aliases = import_extra("lightgbm.basic", "trees")._ConfigAliases._get_all_param_aliases()
    names = {alias: name for name, others in aliases.items() for alias in (name, *others)}
    for name in own:
        if name not in names:
            raise InputError(
                f"tree_params has {name!r}, which is not a LightGBM parameter; {suggest_names(name, sorted(aliases))}."
            )
        if names[name] in _OURS or (names[name] == "categorical_feature" and own[name] != ""):
            raise InputError(
                f"tree_params has {name!r}, which corank sets or does not support; use n_steps, eta0, n_jobs, "
                "random_state or lambdas."
            )
        if names[name] in _OF_OBJECTIVES:
            raise InputError(
                f"tree_params has {name!r}, which belongs to LightGBM's objectives and changes nothing here; choose "
                "lambdas, such as 'ndcg@10', instead."
            )
    return {names[name]: value for name, value in own.items()}
