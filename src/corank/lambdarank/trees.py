"""
Regression trees boosted along λ by LightGBM (extra `trees`).

Each tree is a Newton step: its leaves are Σλ_i/(Σh_i + l2) over their rows, h the curvatures. Both are scaled to a mean
curvature of 1 before each step, so that LightGBM's smallest leaf (``min_sum_hessian_in_leaf``) and ``lambda_l2`` count
rows, for any λ and any number of documents per query. Constant curvatures, the usual way to use one's own λ with
LightGBM, lose that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.threads import n_threads
from corank.errors import InputError, import_extra, reason, suggest_names, warn
from corank.lambdarank.training import LambdaProblem, StepSettings, ValidationRows
from corank.progress import progress
from corank.solvers.early_stopping import EarlyStopping

Floats = NDArray[np.float64]

DEFAULTS: dict[str, Any] = {
    "num_leaves": 16,
    "min_sum_hessian_in_leaf": 20.0,
    "min_data_in_leaf": 0,
    "min_data_in_bin": 1,
    "lambda_l2": 1.0,
    "feature_fraction": 0.5,
}
"""Defaults of LightGBM's parameters: small trees for few judgements."""

# upper bound of the smallest leaf, as a share of all rows
_LEAST = 0.05

# parameters that corank sets
_OURS = ("objective", "num_iterations", "learning_rate", "num_threads", "seed", "verbosity", "linear_tree", "boosting")
# lower bound of curvatures, as a share of their mean
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class BoostingResult:
    """
    Result of boosting.

    text: the trees, in LightGBM's own format.
    n_trees: their number.
    errors (n_checks,): on the validation rows; empty without them.
    interrupted: whether Ctrl-C ended boosting.
    """

    text: str
    n_trees: int
    errors: Floats
    interrupted: bool


def boost(
    X: Any,
    problem: LambdaProblem,
    settings: StepSettings,
    own: dict[str, Any],
    n_jobs: int | None,
    rng: np.random.Generator,
    validation: ValidationRows | None,
) -> BoostingResult:
    """
    Boost trees.

    X: all rows; those of the problem are used.
    own: the user's LightGBM parameters, which override `DEFAULTS`.
    n_jobs: number of threads; None means 1.
    rng: draws LightGBM's seed.
    """
    lightgbm = import_extra("lightgbm", "trees")
    threads = 1 if n_jobs is None else n_threads(n_jobs)
    smallest = min(DEFAULTS["min_sum_hessian_in_leaf"], _LEAST * float(problem.lists.weights.sum()))
    parameters = {
        **DEFAULTS,
        "min_sum_hessian_in_leaf": smallest,
        **checked_parameters(own),
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
    scores, weights = np.zeros(len(rows)), problem.lists.weights
    is_flat = False

    def begin() -> Any:
        data = lightgbm.Dataset(lightgbm_rows(used), np.zeros(len(rows)), params=parameters, free_raw_data=True)
        return lightgbm.Booster(parameters, data)

    def gradient_and_hessian(predicted: Floats, _: Any) -> tuple[Floats, Floats]:
        scores[ascending] = predicted
        lambdas, curvatures = (problem.evaluate if n else problem.evaluate_first)(scores, n_jobs)
        curvatures = weights * np.abs(lambdas).mean() if is_flat else np.maximum(curvatures, 0.0)
        unit = curvatures.sum() / weights.sum() or 1.0
        bounded = np.maximum(curvatures, _FLAT * unit * weights)
        return -lambdas[ascending] / unit, bounded[ascending] / unit

    stopping = EarlyStopping(settings.patience)
    try:
        booster = begin()
    except lightgbm.basic.LightGBMError as error:
        raise InputError(f"LightGBM refuses tree_params {own} ({reason(error)}); change them.") from error
    running = RunningScores(booster, validation)
    best, n, interrupted = 0, 0, False
    checks = set(settings.checks)
    try:
        with progress(settings.n_steps, "trees", settings.verbose) as advance:
            while n < settings.n_steps:
                # True if no leaf can be split any more
                if booster.update(fobj=gradient_and_hessian):
                    if n or is_flat:
                        break
                    # if |λ| equals the curvature everywhere, all rows have the same target: use constant curvatures
                    is_flat, booster = True, begin()
                    running = RunningScores(booster, validation)
                    continue
                n += 1
                advance(1)
                if validation is not None and n in checks:
                    stopping.record(running.error(n))
                    # of equal errors the last one is kept
                    if stopping.errors[-1] <= stopping.best_error:
                        best = n
                    if stopping.is_over:
                        break
    except KeyboardInterrupt:
        interrupted = True
    if n == 0 and settings.n_steps and not interrupted:
        warn("no tree could be grown: no split of the rows has different means of λ; check lambdas, or tree_params.")
    n = best if settings.patience is not None and stopping.errors else n
    text = booster.model_to_string(num_iteration=n) if n else ""
    return BoostingResult(text, n, np.array(stopping.errors), interrupted)


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


def lightgbm_rows(X: Any) -> Any:
    """Return rows in LightGBM's format: it accepts sparse matrices, not sparse arrays."""
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=False) if sparse.issparse(X) else X


def checked_parameters(own: dict[str, Any]) -> dict[str, Any]:
    """
    Return LightGBM parameters under their canonical names; raise for unknown ones and for those that corank sets.

    own: by any of LightGBM's aliases.
    """
    aliases = import_extra("lightgbm.basic", "trees")._ConfigAliases._get_all_param_aliases()
    names = {alias: name for name, others in aliases.items() for alias in (name, *others)}
    for name in own:
        if name not in names:
            raise InputError(
                f"tree_params has {name!r}, which is not a LightGBM parameter; {suggest_names(name, sorted(aliases))}."
            )
        if names[name] in _OURS:
            raise InputError(
                f"tree_params has {name!r}, which corank sets; use n_steps, eta0, n_jobs, random_state or lambdas."
            )
    return {names[name]: value for name, value in own.items()}


@lru_cache(maxsize=16)
def booster_of(text: str) -> Any:
    """Return the booster of a text, cached."""
    return import_extra("lightgbm", "trees").Booster(model_str=text)


def score_trees(text: str, X: Any, n_jobs: int | None) -> Floats:
    """Score rows by trees in LightGBM's format; without trees the score is 0."""
    if not text:
        return np.zeros(X.shape[0])
    scores = booster_of(text).predict(lightgbm_rows(X), raw_score=True, num_threads=n_threads(n_jobs or 1))
    return np.asarray(scores, dtype=np.float64)


_LIST = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)


def check_trees(text: Any, n_features: int) -> None:
    """Raise if a text is not a valid model of `n_features` features, before LightGBM uses its indices."""
    if not isinstance(text, str):
        raise InputError("trees_ is not a string")
    if not text:
        return
    head, *blocks = text.split("\nTree=")
    fields = dict(_LIST.findall(head))
    if not head.startswith("tree\n") or int(fields["max_feature_idx"]) != n_features - 1 or not blocks:
        raise InputError(f"trees_ is not of {n_features} features")
    for block in blocks:
        fields = dict(_LIST.findall(block.split("\nend of trees")[0]))
        n = int(fields["num_leaves"])
        lengths = {"leaf_value": n, "split_feature": n - 1, "threshold": n - 1, "decision_type": n - 1}
        lengths |= {"left_child": n - 1, "right_child": n - 1}
        values = {name: np.array(fields.get(name, "").split(), dtype=np.float64) for name in lengths}
        if (
            int(fields["num_cat"])
            or int(fields.get("is_linear", 0))
            or any(len(values[name]) != m for name, m in lengths.items())
        ):
            raise InputError("trees_ has a tree whose parts differ in length")
        features, children = values["split_feature"], np.r_[values["left_child"], values["right_child"]]
        # a node follows its parent; leaf k is written −k − 1
        parents = np.r_[np.arange(n - 1), np.arange(n - 1)]
        nodes = children >= 0
        if (features < 0).any() or (features >= n_features).any() or (children < -n).any() or (children >= n - 1).any():
            raise InputError("trees_ has a tree with an invalid index")
        if (children[nodes] <= parents[nodes]).any() or not np.isfinite(values["leaf_value"]).all():
            raise InputError("trees_ has a tree with a cycle or a value that is not finite")
