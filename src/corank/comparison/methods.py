"""The methods of a comparison, from the simplest to the most complex, and how each is tuned inside a training part."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from joblib.externals.loky.backend.reduction import dumps
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from corank.base import ColumnMean, ResidualRanker
from corank.base.base import Ranker
from corank.base.search import QuerySearchCV
from corank.comparison.problem import assign_folds, assign_groups, comparable
from corank.data.queries import Queries
from corank.data.rows import as_rows
from corank.errors import InputError, import_extra, reason, suggest_names
from corank.metrics import Convention, parse_metric
from corank.models.auto import AutoRanker
from corank.models.gp import OrdinalGP, PreferenceGP
from corank.models.lambdarank import LambdaRank
from corank.models.lambdarank.tree_ensemble import TreeEnsemble
from corank.models.lambdarank.trees import lightgbm_rows, require_magnitudes
from corank.models.linear import CRR, LCRA, SPD, RankSVM
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from corank.models.rls import CoRankRLS, RankRLS, ViewRankRLS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# number of grades in LightGBM's default gains
_GRADES = 31

INNER_FOLDS = 3
"""Inner folds of a grid search."""

# scored rows of a single query from which some can be held out
_MIN_ROWS = 8


@dataclass(frozen=True)
class Settings:
    """Settings shared by all fits of a comparison."""

    metric: str  # metric that tuning optimises
    convention: Convention
    seed: int  # random seed
    prior: tuple[int, ...] | None  # columns that hold prior scores, or None


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """The training part of a fold."""

    X: Any  # X, y, qid: rows; NaN in y marks unjudged ones
    y: Floats
    qid: Ints
    settings: Settings
    seeds: tuple[int, ...]  # random seeds of this part

    @property
    def seed(self) -> int:
        """Random seed of estimators."""
        return self.settings.seed

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @cached_property
    def scored(self) -> Ints:
        """Scored rows."""
        return np.flatnonzero(~np.isnan(self.y))

    @cached_property
    def couplings(self) -> list[float]:
        """Candidates for the weight of agreement; 0 unless some query has two unjudged rows to agree on."""
        queries = self.qid[np.isnan(self.y)]
        return COUPLINGS if len(np.unique(queries)) < len(queries) else [0.0]

    def at_most(self, n: int) -> int:
        """Return n, or the number of scored rows if it is smaller."""
        return min(n, len(self.scored))

    @cached_property
    def n_comparable(self) -> int:
        """Number of queries with two different scores."""
        return len(comparable(self.y[self.scored], self.qid[self.scored]))

    @cached_property
    def splits(self) -> list[tuple[Ints, Ints]]:
        """
        Inner folds: training rows, and test rows of other queries.

        If one query has all pairs, its rows are split; empty if there are too few rows.
        """
        rng, scored = np.random.default_rng(self.seeds), self.scored
        queries = comparable(self.y[scored], self.qid[scored])
        fold = np.full(len(self.y), -1)
        if len(queries) > 1:
            among = scored[np.isin(self.qid[scored], queries)]
            fold_of_query = assign_folds(self.y[among], self.qid[among], min(INNER_FOLDS, len(queries)), rng)
            judged = np.isin(self.qid, queries)
            fold[judged] = fold_of_query[np.searchsorted(queries, self.qid[judged])]
        elif len(scored) >= _MIN_ROWS:
            fold[scored] = assign_groups(self.y[scored], INNER_FOLDS, rng)
        return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(fold.max() + 1)]

    @property
    def by_query(self) -> str | None:
        """Metric of leave-query-out tuning; None if no query can be left out."""
        return self.settings.metric if self.n_comparable > 1 else None

    @property
    def left_out_by(self) -> str | None:
        """The same; the disagreement on rows of a single query."""
        return self.by_query or ("disagreement" if len(self.scored) >= _MIN_ROWS else None)

    def path(self, metric: str | None, **changes: Any) -> dict[str, Any]:
        """Return the parameters of exact leave-query-out along a path of alpha; none without a metric."""
        return {} if metric is None else {"alphas": self.ratios(-5.0, 1.0, 2), "metric": metric, **changes}

    @property
    def stopping(self) -> dict[str, Any]:
        """Parameters of a pursuit, which sets queries aside."""
        return {"early_stopping": self.n_comparable > 1, "random_state": self.seed}

    @property
    def gaussian(self) -> dict[str, Any]:
        """Parameters of a Gaussian kernel."""
        return {"kernel": "gaussian", "n_basis": self.at_most(N_BASIS), "random_state": self.seed}

    def ratios(self, low: float, high: float, per_decade: int = 1) -> list[float]:
        """Return powers of ten times the number of columns, since distances of scaled rows grow with it."""
        n = round((high - low) * per_decade) + 1
        return [float(f"{self.n_features * 10.0**power:.6g}") for power in np.linspace(low, high, n)]

    def on_prior(self, ranker: Any) -> Any:
        """Combine a ranker with the prior columns, if there are any."""
        prior = self.settings.prior
        return ranker if prior is None else ResidualRanker(ColumnMean(list(prior)), ranker)

    def searched(self, ranker: Any, grid: Mapping[str, list[Any]], *, is_on_prior: bool = True) -> Any:
        """Return a grid search for a ranker, or the ranker itself if nothing can be held out."""
        ranked = self.on_prior(ranker) if is_on_prior else ranker
        if not self.splits:
            return ranked
        under = "" if ranked is ranker else "ranker__"
        return QuerySearchCV(
            ranked,
            {under + name: values for name, values in grid.items()},
            metric=self.settings.metric,
            convention=self.settings.convention,
            cv=self.splits,
        )

    @property
    def lambdas(self) -> str:
        """Name of the LambdaRank gradient for the metric."""
        served = {"nDCG": "ndcg", "AP": "map", "RR": "mrr", "ERR": "err", "WTA": "wta"}
        return served.get(parse_metric(self.settings.metric).measure.name, "ranknet")


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
    """LightGBM's lambdarank on one thread, with its own defaults; the fitted model is a `LambdaRank` with its trees."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(
        self, *, n_estimators: int = 100, num_leaves: int = 31, min_child_samples: int = 20, random_state: Any = None
    ) -> None:
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
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
        ranker = import_extra("lightgbm", "trees").LGBMRanker(verbosity=-1, n_jobs=1, **self.get_params())
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
    signature: str = ""  # anything else that stored results depend on; not empty for a user's estimator
    is_label_free: bool = False  # whether it needs no judgements
    uses_unscored: bool = False  # whether unjudged rows change the model
    takes_unscored: bool = True  # whether ``fit`` accepts unjudged rows; otherwise they are removed
    complexity: int = 0  # rank from the simplest method
    module: str = ""  # optional dependency

    @property
    def is_installed(self) -> bool:
        """Whether its optional dependency is installed."""
        return not self.module or find_spec(self.module) is not None


BASELINES = ("random", "columns")
"""Label-free methods, always included."""

PRESENT_ORDER = "present order (no learning)"
"""Title of the order by one prior column."""

DEFAULT = (
    "rankrls", "ranksvm", "crr", "lcra", "lambdarank", "ranking-pursuit", "rankrls-gaussian", "lambdarank-trees",
    "lightgbm", "lightgbm-tuned", "auto",
)  # fmt: skip
"""Methods compared by default."""

QUICK = ("rankrls", "crr", "lcra", "lightgbm")
"""Methods compared by ``--quick``."""

# the simplest first
_ORDERED = (
    Method("random", "random order", lambda part: RandomOrder(
        part.settings.convention.ties != "expectation", random_state=list(part.seeds)), 0.01, is_label_free=True),
    Method("columns", "mean of columns", lambda part: ColumnMean(
        list(part.settings.prior or range(part.n_features))), 0.1, is_label_free=True),
    Method("rankrls", "RankRLS", lambda part: part.on_prior(RankRLS(**part.path(part.left_out_by))), 1.0, _PATH),
    Method("ranksvm", "RankSVM", lambda part: part.searched(RankSVM(), {"alpha": part.ratios(-4.0, 0.0)}),
           2.0, f"alpha {_SEARCH}"),
    Method("spd", "SPD, logistic", lambda part: part.searched(SPD("logistic"), {"alpha": part.ratios(-4.0, 0.0)}),
           4.0, f"alpha {_SEARCH}"),
    Method("crr", "CRR", lambda part: part.searched(CRR(), {"mix": [0.1, 0.5, 0.9], "alpha": part.ratios(-4.0, -1.0)}),
           2.0, f"mix and alpha {_SEARCH}"),
    Method("view-rankrls", "ViewRankRLS", lambda part: part.on_prior(
        ViewRankRLS(random_state=part.seed, **part.path(part.by_query))), 3.0, _PATH),
    Method("co-rankrls", "CoRankRLS", lambda part: part.on_prior(
        CoRankRLS(random_state=part.seed, **part.path(part.by_query, couplings=part.couplings))),
        5.0, "alpha and coupling by exact leave-query-out", uses_unscored=True),
    Method("lcra", "LCRA", lambda part: part.searched(
        LCRA(random_state=part.seed, solver="exact"), {"coupling": part.couplings, "alpha": part.ratios(-4.0, -1.0)}),
        3.0, f"coupling and alpha {_SEARCH}", uses_unscored=True),
    Method("lambdarank", "LambdaRank, linear", lambda part: part.searched(
        LambdaRank(part.lambdas, random_state=part.seed), {"weight_decay": [0.1, 1.0, 10.0]}),
        10.0, f"weight_decay {_SEARCH}"),
    Method("ranking-pursuit", "RankingPursuit", lambda part: part.on_prior(
        RankingPursuit(dictionary=part.at_most(N_DICTIONARY), **part.stopping)),
        4.0, "number of terms by queries set aside"),
    Method("co-ranking-pursuit", "CoRankingPursuit", lambda part: part.searched(
        CoRankingPursuit(dictionary=part.at_most(N_BASIS), **part.stopping), {"coupling": part.couplings}),
        20.0, f"number of terms by queries set aside, coupling {_SEARCH}", uses_unscored=True),
    Method("rankrls-gaussian", "RankRLS, Gaussian", lambda part: part.on_prior(
        RankRLS(**part.gaussian, **part.path(part.left_out_by, alphas=KERNEL_ALPHAS))), 3.0, _PATH),
    Method("ranksvm-gaussian", "RankSVM, Gaussian", lambda part: part.searched(
        RankSVM(**part.gaussian), {"alpha": [1e-4, 1e-3, 1e-2, 0.1]}), 30.0, f"alpha {_SEARCH}"),
    Method("ordinal-gp", "OrdinalGP", lambda part: part.on_prior(
        OrdinalGP(n_basis=part.at_most(N_BASIS), random_state=part.seed)), 60.0, "kernel and noise by the evidence"),
    Method("preference-gp", "PreferenceGP", lambda part: part.on_prior(
        PreferenceGP(n_basis=part.at_most(N_BASIS), max_pairs=2000, random_state=part.seed)),
        60.0, "kernel and noise by the evidence"),
    Method("lambdarank-mlp", "LambdaRank, perceptron", lambda part: part.searched(
        LambdaRank(part.lambdas, "mlp", random_state=part.seed), {"weight_decay": [0.1, 1.0, 10.0]}),
        30.0, f"weight_decay {_SEARCH}"),
    Method("lambdarank-trees", "LambdaRank, trees", lambda part: part.searched(
        LambdaRank(None if part.lambdas == "ndcg" else part.lambdas, "trees", random_state=part.seed),
        {"n_steps": [50, 100, 200]}), 20.0, f"n_steps {_SEARCH}", module="lightgbm"),
    Method("lightgbm", "LightGBM, defaults", lambda part: LightGBM(random_state=part.seed),
           1.5, "none: its defaults", module="lightgbm"),
    Method("lightgbm-tuned", "LightGBM, tuned", lambda part: part.searched(
        LightGBM(random_state=part.seed),
        {"num_leaves": [4, 16], "min_child_samples": [3, 20], "n_estimators": [30, 100]}, is_on_prior=False),
        15.0, f"num_leaves, min_child_samples and n_estimators {_SEARCH}", module="lightgbm"),
    Method("auto", "AutoRanker", lambda part: part.on_prior(
        AutoRanker(metric=part.settings.metric, random_state=part.seed)),
        60.0, "candidates and their weights by query folds"),
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
        signature=_hash(estimator),
        is_label_free=is_ranker and not last._needs_judgements,
        uses_unscored=is_ranker and bool(getattr(last, "coupling", 0.0)),
        takes_unscored=is_ranker,
        complexity=place,
    )


def _cloned(estimator: Any, part: TrainingPart) -> Any:
    copy = clone(estimator)
    if copy.get_params(deep=False).get("random_state", part) is None:
        copy.set_params(random_state=part.settings.seed)
    return copy


def _hash(estimator: Any) -> str:
    try:
        return hashlib.sha256(dumps(estimator)).hexdigest()[:16]
    except Exception as error:
        raise InputError(
            f"a {type(estimator).__name__} cannot be pickled for a worker process ({reason(error)}); define it in a "
            "module."
        ) from error
