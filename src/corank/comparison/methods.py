"""The methods of a comparison, from the simplest to the most complex, and how each is tuned."""

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

from corank.base import ColumnMean
from corank.base.base import Ranker
from corank.comparison.fold import INNER_FOLDS, TrainingPart
from corank.comparison.problem import comparable
from corank.data.queries import Queries
from corank.data.rows import as_rows
from corank.errors import InputError, import_extra, reason, suggest_names
from corank.models.auto import AutoRanker
from corank.models.gp import OrdinalGP, PreferenceGP
from corank.models.lambdarank import LambdaRank
from corank.models.lambdarank.tree_ensemble import TreeEnsemble
from corank.models.lambdarank.trees import lightgbm_rows, require_magnitudes
from corank.models.linear import CRR, LCRA, SPD, RankSVM
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from corank.models.rls import CoRankRLS, RankRLS, ViewRankRLS

Floats = NDArray[np.float64]

# number of grades in LightGBM's default gains
_GRADES = 31


class RandomOrder(BaseEstimator):
    """
    A random order: equal scores if the convention averages over ties, else random scores.

    is_drawn: whether scores are random.
    """

    def __init__(self, is_drawn: bool, *, random_state: Any = None) -> None:
        self.is_drawn = is_drawn
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing."""
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> Floats:
        """Return equal or random scores."""
        n = X.shape[0]
        return np.random.default_rng(self.random_state).random(n) if self.is_drawn else np.zeros(n)


class LightGBM(BaseEstimator):
    """LightGBM's lambdarank with its defaults, on one thread; the fitted model is a `LambdaRank` with its trees."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, qid: ArrayLike) -> Self:
        """Fit trees to the scored rows."""
        rows, grades = as_rows(X, missing=True), np.asarray(y, dtype=np.float64)
        scored = ~np.isnan(grades)
        if not np.isin(grades[scored], np.arange(_GRADES)).all():
            raise InputError(
                f"LightGBM's lambdarank accepts whole grades from 0 to {_GRADES - 1} only; leave lightgbm out."
            )
        queries = Queries.of(np.asarray(qid)[scored], int(scored.sum()))
        order = np.flatnonzero(scored)[queries.order]
        require_magnitudes(rows[order])
        ranker = import_extra("lightgbm", "trees").LGBMRanker(verbosity=-1, n_jobs=1, random_state=self.random_state)
        ranker.fit(lightgbm_rows(rows[order]), grades[order], group=queries.sizes)
        model = LambdaRank(scorer="trees", scale=False)
        model.trees_ = TreeEnsemble.from_lightgbm(ranker.booster_.model_to_string())
        model.n_iter_ = model.trees_.n_trees
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
"""Candidates for alpha of kernels with unit diagonal, where rows are at most √2 apart in feature space."""

_PATH = "alpha by exact leave-query-out"
_SEARCH = f"by {INNER_FOLDS}-fold cross-validation over queries"


@dataclass(frozen=True)
class Method:
    """
    A method of a comparison.

    make: returns an unfitted estimator for a training part; tuning is part of its ``fit``.
    """

    name: str  # name, title: identifier, and name in reports
    title: str
    make: Callable[[TrainingPart], Any]
    cost: float = 1.0  # rough time relative to RankRLS; cheap methods run first
    tuning: str = ""  # description of how parameters are chosen
    signature: str = ""  # anything else that stored results depend on
    is_label_free: bool = False  # whether it needs no judgements
    uses_unscored: bool = False  # whether unjudged rows change the model
    takes_unscored: bool = True  # whether ``fit`` accepts unjudged rows; otherwise they are removed
    warms_up: bool = True  # whether it compiles kernels when first used
    complexity: int = 0  # rank from the simplest method
    module: str = ""  # optional dependency

    @property
    def is_installed(self) -> bool:
        """Whether its optional dependency is installed."""
        return not self.module or find_spec(self.module) is not None


def _random(part: TrainingPart) -> Any:
    return RandomOrder(part.settings.convention.ties != "expectation", random_state=list(part.seeds))


def _columns(part: TrainingPart) -> Any:
    prior = part.settings.prior
    return ColumnMean(list(range(part.n_features)) if prior is None else list(prior))


def _rankrls(part: TrainingPart) -> Any:
    by = part.left_out_by
    return part.on_prior(RankRLS() if by is None else RankRLS(alphas=part.ratios(-5.0, 1.0, 2), metric=by))


def _rankrls_gaussian(part: TrainingPart) -> Any:
    by, n = part.left_out_by, min(N_BASIS, len(part.scored))
    alphas = None if by is None else KERNEL_ALPHAS
    return part.on_prior(
        RankRLS(kernel="gaussian", alphas=alphas, metric=by, n_basis=n, random_state=part.settings.seed)
    )


def _co_rankrls(part: TrainingPart) -> Any:
    by = part.left_out_by if part.n_comparable > 1 else None
    couplings = COUPLINGS if part.has_unscored_pairs else [0.0]
    path: dict[str, Any] = {"alphas": part.ratios(-5.0, 1.0, 2), "couplings": couplings, "metric": by} if by else {}
    return part.on_prior(CoRankRLS(random_state=part.settings.seed, **path))


def _view_rankrls(part: TrainingPart) -> Any:
    by = part.left_out_by if part.n_comparable > 1 else None
    path: dict[str, Any] = {"alphas": part.ratios(-5.0, 1.0, 2), "metric": by} if by else {}
    return part.on_prior(ViewRankRLS(random_state=part.settings.seed, **path))


def _ranksvm(part: TrainingPart) -> Any:
    return part.searched(RankSVM(), {"alpha": part.ratios(-4.0, 0.0)})


def _ranksvm_gaussian(part: TrainingPart) -> Any:
    n = min(N_BASIS, len(part.scored))
    ranker = RankSVM(kernel="gaussian", n_basis=n, random_state=part.settings.seed)
    return part.searched(ranker, {"alpha": [1e-4, 1e-3, 1e-2, 0.1]})


def _spd(part: TrainingPart) -> Any:
    # RankSVM covers the squared hinge loss
    return part.searched(SPD("logistic"), {"alpha": part.ratios(-4.0, 0.0)})


def _crr(part: TrainingPart) -> Any:
    return part.searched(CRR(), {"mix": [0.1, 0.5, 0.9], "alpha": part.ratios(-4.0, -1.0)})


def _lcra(part: TrainingPart) -> Any:
    ranker = LCRA(random_state=part.settings.seed, solver="exact")
    couplings = COUPLINGS if part.has_unscored_pairs else [0.0]
    return part.searched(ranker, {"coupling": couplings, "alpha": part.ratios(-4.0, -1.0)})


def _pursuit(part: TrainingPart) -> Any:
    n = min(N_DICTIONARY, len(part.scored))
    ranker = RankingPursuit(dictionary=n, early_stopping=part.n_comparable > 1, random_state=part.settings.seed)
    return part.on_prior(ranker)


def _co_pursuit(part: TrainingPart) -> Any:
    n = min(N_BASIS, len(part.scored))
    ranker = CoRankingPursuit(dictionary=n, early_stopping=part.n_comparable > 1, random_state=part.settings.seed)
    couplings = COUPLINGS if part.has_unscored_pairs else [0.0]
    return part.searched(ranker, {"coupling": couplings})


def _lambdarank(part: TrainingPart) -> Any:
    ranker = LambdaRank(part.lambdas, random_state=part.settings.seed)
    return part.searched(ranker, {"weight_decay": [0.1, 1.0, 10.0]})


def _lambdarank_mlp(part: TrainingPart) -> Any:
    ranker = LambdaRank(part.lambdas, "mlp", random_state=part.settings.seed)
    return part.searched(ranker, {"weight_decay": [0.1, 1.0, 10.0]})


def _lambdarank_trees(part: TrainingPart) -> Any:
    ranker = LambdaRank(None if part.lambdas == "ndcg" else part.lambdas, "trees", random_state=part.settings.seed)
    return part.searched(ranker, {"n_steps": [50, 100, 200]})


def _ordinal_gp(part: TrainingPart) -> Any:
    n = min(N_BASIS, len(part.scored))
    return part.on_prior(OrdinalGP(n_basis=n, random_state=part.settings.seed))


def _preference_gp(part: TrainingPart) -> Any:
    n = min(N_BASIS, len(part.scored))
    return part.on_prior(PreferenceGP(n_basis=n, max_pairs=2000, random_state=part.settings.seed))


def _auto(part: TrainingPart) -> Any:
    return part.on_prior(AutoRanker(metric=part.settings.metric, random_state=part.settings.seed))


def _lightgbm(part: TrainingPart) -> Any:
    return LightGBM(random_state=part.settings.seed)


BASELINES = ("random", "columns")
"""Label-free methods, always included."""

PRESENT_ORDER = "present order (no learning)"
"""Title of the order by one prior column."""

DEFAULT = (
    "rankrls", "ranksvm", "crr", "lcra", "lambdarank", "ranking-pursuit", "rankrls-gaussian", "lambdarank-trees",
    "lightgbm", "auto",
)  # fmt: skip
"""Methods compared by default."""

QUICK = ("rankrls", "crr", "lcra", "lightgbm")
"""Methods compared by ``--quick``."""

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
    Method("auto", "AutoRanker", _auto, 60.0, "candidates and their weights by query folds"),
)  # fmt: skip

METHODS: dict[str, Method] = {item.name: replace(item, complexity=i) for i, item in enumerate(_ORDERED)}
"""All named methods."""


def find_methods(
    models: Iterable[str] | Mapping[str, Any], prior: tuple[int, ...] | None, is_sparse: bool = False
) -> dict[str, Method]:
    """Look up methods by name, or wrap estimators, and add the label-free methods."""
    if isinstance(models, str):
        models = [models]
    free = [name for name in BASELINES if name != "columns" or prior is not None or not is_sparse]
    chosen = [_labelled(METHODS[name], prior) for name in free]
    if isinstance(models, Mapping):
        for place, (name, estimator) in enumerate(models.items()):
            if name in BASELINES:
                raise InputError(f"a model is called {name!r}, which is the name of a baseline; choose another name.")
            chosen.append(_of_estimator(str(name), estimator, len(BASELINES) + place))
    else:
        chosen += [_find(name) for name in models]
    if len(chosen) == len(free):
        raise InputError(f"models is empty; name at least one, such as {DEFAULT[0]!r}.")
    return {entry.name: entry for entry in sorted(chosen, key=lambda item: item.complexity)}


def _find(name: str) -> Method:
    plain = {other.replace("-", ""): other for other in METHODS}
    wanted = str(name).replace("-", "").replace("_", "").lower()
    if wanted not in plain:
        raise InputError(f"there is no model {name!r}; {suggest_names(str(name), list(METHODS))}.")
    return METHODS[plain[wanted]]


def _labelled(method: Method, prior: tuple[int, ...] | None) -> Method:
    if method.name != "columns":
        return method
    if prior is None:
        return replace(method, title="mean of all columns")
    return replace(method, title=f"mean of {len(prior)} columns" if len(prior) > 1 else PRESENT_ORDER)


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
        tuning="none: as passed",
        signature=hashlib.sha256(pickled(estimator)).hexdigest()[:16],
        is_label_free=is_ranker and not last._needs_judgements,
        uses_unscored=is_ranker and bool(getattr(last, "coupling", 0.0)),
        takes_unscored=is_ranker,
        warms_up=type(estimator).__module__.startswith("corank."),
        complexity=place,
    )


def _cloned(estimator: Any, part: TrainingPart) -> Any:
    copy = clone(estimator)
    if copy.get_params(deep=False).get("random_state", part) is None:
        copy.set_params(random_state=part.settings.seed)
    return copy


def pickled(thing: Any) -> bytes:
    """
    Pickle an object for a worker process.

    If cloudpickle is installed (dask brings it), classes defined in a script or a notebook can be pickled too.
    """
    try:
        by_value = importlib.import_module("cloudpickle")
    except ImportError:
        by_value = pickle
    try:
        return bytes(by_value.dumps(thing))
    except Exception as error:
        raise InputError(
            f"a {type(thing).__name__} cannot be pickled for a worker process ({reason(error)}); define it in a module."
        ) from error


def trade_off(mix: float) -> Method:
    """Return CRR at one mix, for the trade-off of ranking and regression."""
    return Method(f"crr-mix-{mix:g}", f"CRR, mix {mix:g}", partial(_crr_at, mix), 0.5, signature="default alpha")


def _crr_at(mix: float, part: TrainingPart) -> Any:
    return part.on_prior(CRR(mix=mix))
