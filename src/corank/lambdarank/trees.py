"""
Boosted regression trees along the forces, grown by LightGBM (extra `trees`).

Each tree is a Newton step: its leaves are Σλ_i/(Σh_i + l2) over their rows, h the curvatures. Both are brought to a
mean curvature of 1 before each, so that LightGBM's smallest leaf (``min_sum_hessian_in_leaf``) and ``lambda_l2`` count
rows, whatever λ and however many documents a query has. Constant curvatures, the usual way to bring one's own forces to
LightGBM, lose that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.threads import n_threads
from corank.errors import InputError, import_extra, reason, suggest_names, warn
from corank.lambdarank.training import N_CHECKS, Plan, Task
from corank.progress import progress

Floats = NDArray[np.float64]

DEFAULTS: dict[str, Any] = {
    "num_leaves": 16,
    "min_sum_hessian_in_leaf": 20.0,
    "min_data_in_leaf": 0,
    "min_data_in_bin": 1,
    "lambda_l2": 1.0,
    "feature_fraction": 0.5,
}
"""What corank tells LightGBM where the user says nothing: small trees for few judgements."""

# the smallest leaf is never more than this share of all rows
_LEAST = 0.05

# what corank decides, and a user's parameters may not
_OURS = ("objective", "num_iterations", "learning_rate", "num_threads", "seed", "verbosity", "linear_tree", "boosting")
# curvatures below this share of their mean are raised to it
_FLAT = 1e-6


@dataclass(frozen=True, eq=False)
class Grown:
    """
    What boosting leaves.

    text: the trees, in LightGBM's own format.
    n_trees: how many.
    errors (n_checks,): on the watched rows; empty without them.
    interrupted: whether Ctrl-C broke it off.
    """

    text: str
    n_trees: int
    errors: Floats
    interrupted: bool


@dataclass(frozen=True, eq=False)
class Watched:
    """
    Rows that trees are watched on.

    X: the rows.
    error: takes their scores.
    """

    X: Any
    error: Callable[[Floats], float]


def grow(
    X: Any,
    task: Task,
    plan: Plan,
    given: dict[str, Any],
    n_jobs: int | None,
    rng: np.random.Generator,
    watched: Watched | None,
) -> Grown:
    """
    Grow trees.

    X: the rows of the problem, of which those of the task are used.
    given: LightGBM's parameters, over `DEFAULTS`.
    n_jobs: threads; None is one.
    rng: draws LightGBM's seed.
    """
    lightgbm = import_extra("lightgbm", "trees")
    threads = 1 if n_jobs is None else n_threads(n_jobs)
    smallest = min(DEFAULTS["min_sum_hessian_in_leaf"], _LEAST * float(task.lists.weights.sum()))
    parameters = {
        **DEFAULTS,
        "min_sum_hessian_in_leaf": smallest,
        **checked(given),
        "objective": "none",
        "learning_rate": plan.rate,
        "num_threads": threads,
        "seed": int(rng.integers(1 << 31)),
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    ascending = np.argsort(task.lists.rows)
    rows = task.lists.rows[ascending]
    used = X if len(rows) == X.shape[0] else X[rows]
    scores, weights = np.zeros(len(rows)), task.lists.weights
    is_flat = False

    def begin() -> Any:
        data = lightgbm.Dataset(taken(used), np.zeros(len(rows)), params=parameters, free_raw_data=True)
        return lightgbm.Booster(parameters, data)

    def pulls(predicted: Floats, _: Any) -> tuple[Floats, Floats]:
        scores[ascending] = predicted
        forces, curvatures = (task.pulls if n else task.first_pulls)(scores, n_jobs)
        curvatures = weights * np.abs(forces).mean() if is_flat else np.maximum(curvatures, 0.0)
        unit = curvatures.sum() / weights.sum() or 1.0
        bent = np.maximum(curvatures, _FLAT * unit * weights)
        return -forces[ascending] / unit, bent[ascending] / unit

    errors: list[float] = []
    try:
        booster = begin()
    except lightgbm.basic.LightGBMError as error:
        raise InputError(f"LightGBM refuses tree_params {given} ({reason(error)}); change them.") from error
    seen = Seen(booster, watched)
    best, n, interrupted = 0, 0, False
    checks = set(np.linspace(0, plan.n_steps, min(plan.n_steps, N_CHECKS) + 1)[1:].astype(int).tolist())
    try:
        with progress(plan.n_steps, "trees", plan.verbose) as advance:
            while n < plan.n_steps:
                # True where no leaf can be split any more
                if booster.update(fobj=pulls):
                    if n or is_flat:
                        break
                    # forces that are as large as their curvatures everywhere pull all rows alike: try them plain
                    is_flat, booster = True, begin()
                    seen = Seen(booster, watched)
                    continue
                n += 1
                advance(1)
                if watched is not None and n in checks:
                    errors.append(seen.error(n))
                    if errors[-1] <= min(errors):
                        best = n
                    if plan.patience is not None and len(errors) - 1 - int(np.argmin(errors)) >= plan.patience:
                        break
    except KeyboardInterrupt:
        interrupted = True
    if n == 0 and plan.n_steps and not interrupted:
        warn(
            "no tree could be grown: no split of the rows is pulled apart by these forces; check them, or tree_params."
        )
    n = best if plan.patience is not None and errors else n
    text = booster.model_to_string(num_iteration=n) if n else ""
    return Grown(text, n, np.array(errors), interrupted)


class Seen:
    """Scores of watched rows, to which the newest trees are added."""

    def __init__(self, booster: Any, watched: Watched | None) -> None:
        self.booster, self.watched, self.n_trees = booster, watched, 0
        self.scores = np.zeros(0 if watched is None else watched.X.shape[0])

    def error(self, n: int) -> float:
        """Return the error with `n` trees."""
        assert self.watched is not None
        since = {"start_iteration": self.n_trees, "num_iteration": n - self.n_trees}
        self.scores += self.booster.predict(taken(self.watched.X), raw_score=True, **since)
        self.n_trees = n
        return self.watched.error(self.scores)


def taken(X: Any) -> Any:
    """Return rows as LightGBM takes them: its sparse rows are matrices of scipy's, not arrays."""
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=False) if sparse.issparse(X) else X


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """
    Return LightGBM's parameters under their own names, where corank leaves them to the user.

    given: by any of the names that LightGBM knows.
    """
    aliases = import_extra("lightgbm.basic", "trees")._ConfigAliases._get_all_param_aliases()
    names = {alias: name for name, others in aliases.items() for alias in (name, *others)}
    for name in given:
        if name not in names:
            raise InputError(
                f"tree_params has {name!r}, which LightGBM does not know; {suggest_names(name, sorted(aliases))}."
            )
        if names[name] in _OURS:
            raise InputError(
                f"tree_params has {name!r}, which corank sets; use n_steps, eta0, n_jobs, random_state or forces."
            )
    return {names[name]: value for name, value in given.items()}


@lru_cache(maxsize=16)
def booster_of(text: str) -> Any:
    """Return the booster of a text, kept for the next call."""
    return import_extra("lightgbm", "trees").Booster(model_str=text)


def score_trees(text: str, X: Any, n_jobs: int | None) -> Floats:
    """Score rows by trees in LightGBM's format; no trees score 0."""
    if not text:
        return np.zeros(X.shape[0])
    found = booster_of(text).predict(taken(X), raw_score=True, num_threads=n_threads(n_jobs or 1))
    return np.asarray(found, dtype=np.float64)


_LIST = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)


def require_trees(text: Any, n_features: int) -> None:
    """Raise where a text is not that of trees over so many features, before LightGBM follows its numbers."""
    if not isinstance(text, str):
        raise InputError("trees_ is no text")
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
            raise InputError("trees_ holds a tree whose parts differ in length")
        features, children = values["split_feature"], np.r_[values["left_child"], values["right_child"]]
        # a node stands behind its parent; leaf k is written −k − 1
        parents = np.r_[np.arange(n - 1), np.arange(n - 1)]
        nodes = children >= 0
        if (features < 0).any() or (features >= n_features).any() or (children < -n).any() or (children >= n - 1).any():
            raise InputError("trees_ holds a tree that leads nowhere")
        if (children[nodes] <= parents[nodes]).any() or not np.isfinite(values["leaf_value"]).all():
            raise InputError("trees_ holds a tree that leads in a circle")
