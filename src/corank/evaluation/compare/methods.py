"""The methods that are compared, from the simplest to the most involved, and how each is tuned."""

from __future__ import annotations

import hashlib
import importlib
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from corank.data.problem.queries import Queries
from corank.data.problem.rows import as_rows
from corank.errors import InputError, import_extra, reason, suggest_names
from corank.estimator import ColumnMean
from corank.estimator.base import Ranker
from corank.evaluation.compare.fold import INNER_FOLDS, Trial
from corank.evaluation.compare.problem import comparable
from corank.gp import OrdinalGP, PreferenceGP
from corank.lambdarank import LambdaRank
from corank.lambdarank.trees import taken
from corank.linear import CRR, LCRA, SPD, RankSVM
from corank.pursuit import CoRankingPursuit, RankingPursuit
from corank.rls import CoRankRLS, RankRLS, ViewRankRLS

Floats = NDArray[np.float64]

# the gains that LightGBM's defaults have
_GRADES = 31


class RandomOrder(BaseEstimator):
    """
    No order: equal scores where a convention takes the expectation over ties, else random ones.

    is_drawn: whether scores are drawn.
    """

    def __init__(self, is_drawn: bool, *, random_state: Any = None) -> None:
        self.is_drawn = is_drawn
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing."""
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> Floats:
        """Score rows without a look."""
        n = X.shape[0]
        return np.random.default_rng(self.random_state).random(n) if self.is_drawn else np.zeros(n)


class LightGBM(BaseEstimator):
    """LightGBM's lambdarank with its defaults, on one thread; the model is one of corank's that holds its trees."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, qid: ArrayLike) -> Self:
        """Grow trees on the scored rows."""
        rows, grades = as_rows(X), np.asarray(y, dtype=np.float64)
        scored = ~np.isnan(grades)
        if not np.isin(grades[scored], np.arange(_GRADES)).all():
            raise InputError(
                f"LightGBM's lambdarank takes whole grades from 0 to {_GRADES - 1} only; leave lightgbm out."
            )
        queries = Queries.of(np.asarray(qid)[scored], int(scored.sum()))
        order = np.flatnonzero(scored)[queries.order]
        ranker = import_extra("lightgbm", "trees").LGBMRanker(verbosity=-1, n_jobs=1, random_state=self.random_state)
        ranker.fit(taken(rows[order]), grades[order], group=queries.sizes)
        model = LambdaRank(scorer="trees", scale=False)
        model.trees_ = ranker.booster_.model_to_string()
        model.n_iter_ = int(ranker.booster_.num_trees())
        model.n_features_in_ = int(rows.shape[1])
        model.n_skipped_queries_ = len(queries) - len(comparable(grades[scored], queries.codes))
        self.ranker_ = model
        return self

    def predict(self, X: Any) -> Floats:
        """Score rows by the trees."""
        return self.ranker_.predict(X)


N_BASIS, N_DICTIONARY = 200, 500
COUPLINGS = [0.01, 0.1, 1.0, 10.0]
KERNEL_ALPHAS = [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1.0]
"""Candidates for alpha where rows are at most √2 apart in the space of the kernel."""

_PATH = "alpha by exact leave-query-out"
_SEARCH = f"by {INNER_FOLDS}-fold cross-validation over queries"


@dataclass(frozen=True)
class Method:
    """
    One method: how it is made for a training part.

    name, title: as it is typed, and in words.
    make: gives an estimator that is not fitted; tuning is part of its ``fit``.
    cost: about how many times the time of RankRLS it takes; cheap ones are run first.
    tuning: how parameters are chosen, in words.
    signature: what else its results depend on, for results that are kept.
    is_label_free: whether it needs no judgement.
    uses_unscored: whether unscored rows change it.
    takes_unscored: whether ``fit`` may be handed rows without a score; others never see them.
    warms_up: whether it is corank's, and compiles when it is first used.
    complexity: place in the order of simplicity.
    module: an optional dependency.
    """

    name: str
    title: str
    make: Callable[[Trial], Any]
    cost: float = 1.0
    tuning: str = ""
    signature: str = ""
    is_label_free: bool = False
    uses_unscored: bool = False
    takes_unscored: bool = True
    warms_up: bool = True
    complexity: int = 0
    module: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether what it needs besides corank is there."""
        return not self.module or find_spec(self.module) is not None


def _random(trial: Trial) -> Any:
    return RandomOrder(trial.settings.convention.ties != "expectation", random_state=list(trial.dice))


def _columns(trial: Trial) -> Any:
    prior = trial.settings.prior
    return ColumnMean(list(range(trial.n_features)) if prior is None else list(prior))


def _rankrls(trial: Trial) -> Any:
    by = trial.left_out_by
    return trial.on_prior(RankRLS() if by is None else RankRLS(alphas=trial.ratios(-5.0, 1.0, 2), metric=by))


def _rankrls_gaussian(trial: Trial) -> Any:
    by, n = trial.left_out_by, min(N_BASIS, len(trial.scored))
    alphas = None if by is None else KERNEL_ALPHAS
    return trial.on_prior(
        RankRLS(kernel="gaussian", alphas=alphas, metric=by, n_basis=n, random_state=trial.settings.seed)
    )


def _co_rankrls(trial: Trial) -> Any:
    by = trial.left_out_by if trial.n_comparable > 1 else None
    couplings = COUPLINGS if trial.has_unscored_pairs else [0.0]
    path: dict[str, Any] = {"alphas": trial.ratios(-5.0, 1.0, 2), "couplings": couplings, "metric": by} if by else {}
    return trial.on_prior(CoRankRLS(random_state=trial.settings.seed, **path))


def _view_rankrls(trial: Trial) -> Any:
    by = trial.left_out_by if trial.n_comparable > 1 else None
    path: dict[str, Any] = {"alphas": trial.ratios(-5.0, 1.0, 2), "metric": by} if by else {}
    return trial.on_prior(ViewRankRLS(random_state=trial.settings.seed, **path))


def _ranksvm(trial: Trial) -> Any:
    return trial.searched(RankSVM(), {"alpha": trial.ratios(-4.0, 0.0)})


def _ranksvm_gaussian(trial: Trial) -> Any:
    n = min(N_BASIS, len(trial.scored))
    ranker = RankSVM(kernel="gaussian", n_basis=n, random_state=trial.settings.seed)
    return trial.searched(ranker, {"alpha": [1e-4, 1e-3, 1e-2, 0.1]})


def _spd(trial: Trial) -> Any:
    # RankSVM has the squared hinge; the logistic loss is what is left of the exact ones
    return trial.searched(SPD("logistic"), {"alpha": trial.ratios(-4.0, 0.0)})


def _crr(trial: Trial) -> Any:
    return trial.searched(CRR(), {"mix": [0.1, 0.5, 0.9], "alpha": trial.ratios(-4.0, -1.0)})


def _lcra(trial: Trial) -> Any:
    ranker = LCRA(random_state=trial.settings.seed, solver="exact")
    couplings = COUPLINGS if trial.has_unscored_pairs else [0.0]
    return trial.searched(ranker, {"coupling": couplings, "alpha": trial.ratios(-4.0, -1.0)})


def _pursuit(trial: Trial) -> Any:
    n = min(N_DICTIONARY, len(trial.scored))
    ranker = RankingPursuit(dictionary=n, early_stopping=trial.n_comparable > 1, random_state=trial.settings.seed)
    return trial.on_prior(ranker)


def _co_pursuit(trial: Trial) -> Any:
    n = min(N_BASIS, len(trial.scored))
    ranker = CoRankingPursuit(dictionary=n, early_stopping=trial.n_comparable > 1, random_state=trial.settings.seed)
    couplings = COUPLINGS if trial.has_unscored_pairs else [0.0]
    return trial.searched(ranker, {"coupling": couplings})


def _lambdarank(trial: Trial) -> Any:
    ranker = LambdaRank(trial.forces, random_state=trial.settings.seed)
    return trial.searched(ranker, {"weight_decay": [0.1, 1.0, 10.0]})


def _lambdarank_mlp(trial: Trial) -> Any:
    ranker = LambdaRank(trial.forces, "mlp", random_state=trial.settings.seed)
    return trial.searched(ranker, {"weight_decay": [0.1, 1.0, 10.0]})


def _lambdarank_trees(trial: Trial) -> Any:
    ranker = LambdaRank(None if trial.forces == "ndcg" else trial.forces, "trees", random_state=trial.settings.seed)
    return trial.searched(ranker, {"n_steps": [50, 100, 200]})


def _ordinal_gp(trial: Trial) -> Any:
    n = min(N_BASIS, len(trial.scored))
    return trial.on_prior(OrdinalGP(n_basis=n, random_state=trial.settings.seed))


def _preference_gp(trial: Trial) -> Any:
    n = min(N_BASIS, len(trial.scored))
    return trial.on_prior(PreferenceGP(n_basis=n, max_pairs=2000, random_state=trial.settings.seed))


def _lightgbm(trial: Trial) -> Any:
    return LightGBM(random_state=trial.settings.seed)


BASELINES = ("random", "columns")
"""What needs no judgement, and is always there."""

DEFAULT = ("rankrls", "ranksvm", "crr", "lcra", "rankrls-gaussian", "lambdarank", "lightgbm")
"""What is compared where nothing is named."""

QUICK = ("rankrls", "crr", "lcra", "lightgbm")
"""What is compared in a hurry."""

_ORDERED = (
    Method("random", "random order", _random, 0.01, is_label_free=True),
    Method("columns", "mean of columns", _columns, 0.1, is_label_free=True),
    Method("rankrls", "RankRLS", _rankrls, 1.0, _PATH),
    Method("ranksvm", "RankSVM", _ranksvm, 2.0, f"alpha {_SEARCH}"),
    Method("spd", "SPD, logistic", _spd, 4.0, f"alpha {_SEARCH}"),
    Method("crr", "CRR", _crr, 2.0, f"mix and alpha {_SEARCH}"),
    Method("view-rankrls", "ViewRankRLS", _view_rankrls, 3.0, _PATH),
    Method("co-rankrls", "CoRankRLS", _co_rankrls, 5.0, "alpha and coupling by exact leave-query-out",
           uses_unscored=True),
    Method("lcra", "LCRA", _lcra, 3.0, f"coupling and alpha {_SEARCH}", uses_unscored=True),
    Method("lambdarank", "LambdaRank, linear", _lambdarank, 10.0, f"weight_decay {_SEARCH}"),
    Method("ranking-pursuit", "RankingPursuit", _pursuit, 4.0, "number of terms by queries set aside"),
    Method("co-ranking-pursuit", "CoRankingPursuit", _co_pursuit, 20.0,
           f"number of terms by queries set aside, coupling {_SEARCH}", uses_unscored=True),
    Method("rankrls-gaussian", "RankRLS, Gaussian", _rankrls_gaussian, 3.0, _PATH),
    Method("ranksvm-gaussian", "RankSVM, Gaussian", _ranksvm_gaussian, 30.0, f"alpha {_SEARCH}"),
    Method("ordinal-gp", "OrdinalGP", _ordinal_gp, 60.0, "kernel and noise by the evidence"),
    Method("preference-gp", "PreferenceGP", _preference_gp, 60.0, "kernel and noise by the evidence"),
    Method("lambdarank-mlp", "LambdaRank, perceptron", _lambdarank_mlp, 30.0, f"weight_decay {_SEARCH}"),
    Method("lambdarank-trees", "LambdaRank, trees", _lambdarank_trees, 20.0, f"n_steps {_SEARCH}", module="lightgbm"),
    Method("lightgbm", "LightGBM, defaults", _lightgbm, 1.5, "none: its defaults", module="lightgbm"),
)  # fmt: skip

METHODS: dict[str, Method] = {one.name: replace(one, complexity=at) for at, one in enumerate(_ORDERED)}
"""Every method that has a name."""


def find_methods(
    models: Iterable[str] | Mapping[str, Any], prior: tuple[int, ...] | None, is_sparse: bool = False
) -> dict[str, Method]:
    """
    Look up methods by name, or make them of estimators; what needs no judgement is added.

    models: names, in which case and hyphens do not matter, or name to estimator, the simplest first.
    prior: columns that are scores already.
    is_sparse: whether rows are; the mean of all columns says nothing then, and is left out.
    Returns: name to method, from the simplest to the most involved.
    """
    if isinstance(models, str):
        models = [models]
    free = [name for name in BASELINES if name != "columns" or prior is not None or not is_sparse]
    chosen = [_labelled(METHODS[name], prior) for name in free]
    if isinstance(models, Mapping):
        for place, (name, estimator) in enumerate(models.items()):
            if name in BASELINES:
                raise InputError(f"a model is called {name!r}, as a baseline is; give it another name.")
            chosen.append(_of_estimator(str(name), estimator, len(BASELINES) + place))
    else:
        chosen += [_find(name) for name in models]
    if len(chosen) == len(free):
        raise InputError(f"models is empty; name at least one, such as {DEFAULT[0]!r}.")
    return {one.name: one for one in sorted(chosen, key=lambda one: one.complexity)}


def _find(name: str) -> Method:
    plain = {other.replace("-", ""): other for other in METHODS}
    wanted = str(name).replace("-", "").replace("_", "").lower()
    if wanted not in plain:
        raise InputError(f"there is no model {name!r}; {suggest_names(str(name), list(METHODS))}.")
    return METHODS[plain[wanted]]


def _labelled(method: Method, prior: tuple[int, ...] | None) -> Method:
    if method.name != "columns":
        return method
    return replace(method, title="mean of all columns" if prior is None else f"mean of {len(prior)} columns")


def _of_estimator(name: str, estimator: Any, place: int) -> Method:
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")) or isinstance(estimator, type):
        raise InputError(
            f"the model {name!r} is {estimator!r}; pass an estimator with fit and predict, not yet fitted."
        )
    last = estimator
    while isinstance(last, Pipeline) or hasattr(last, "param_grid"):
        last = last[-1] if isinstance(last, Pipeline) else last.estimator
    is_ranker = isinstance(last, Ranker)
    return Method(
        name,
        name,
        partial(_cloned, estimator),
        cost=10.0 + place,
        tuning="none: as it was given",
        signature=hashlib.sha256(pickled(estimator)).hexdigest()[:16],
        is_label_free=is_ranker and not last._needs_judgements,
        uses_unscored=is_ranker and bool(getattr(last, "coupling", 0.0)),
        takes_unscored=is_ranker,
        warms_up=type(estimator).__module__.startswith("corank."),
        complexity=place,
    )


def _cloned(estimator: Any, trial: Trial) -> Any:
    copy = clone(estimator)
    if copy.get_params(deep=False).get("random_state", trial) is None:
        copy.set_params(random_state=trial.settings.seed)
    return copy


def pickled(thing: Any) -> bytes:
    """
    Return an object as bytes for another process of this comparison.

    Where cloudpickle is installed (dask and others bring it), classes that a script or a notebook defines travel too.
    """
    try:
        by_value = importlib.import_module("cloudpickle")
    except ImportError:
        by_value = pickle
    try:
        return bytes(by_value.dumps(thing))
    except Exception as error:
        raise InputError(
            f"a {type(thing).__name__} cannot be handed to another process ({reason(error)}); define it in a module."
        ) from error


def trade_off(mix: float) -> Method:
    """Return CRR at one mix, for the trade-off of ranking and regression."""
    return Method(f"crr-mix-{mix:g}", f"CRR, mix {mix:g}", partial(_crr_at, mix), 0.5, signature="default alpha")


def _crr_at(mix: float, trial: Trial) -> Any:
    return trial.on_prior(CRR(mix=mix))
