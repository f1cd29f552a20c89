"""
LambdaRank: learn from gradients λ instead of a cost (Burges, Ranking as learning structured outputs, 2005).

The user chooses λ_i(s, y) for the rows of a query, not a cost. A scorer f follows them,

    θ ← θ + rate · Σ_i λ_i ∂f(x_i)/∂θ,

once per batch of queries or, for boosted trees, by a tree fitted to λ_i with curvatures h_i. A step costs O(n²) for a
query of n rows, and one pass of the scorer.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from corank.base.base import Interrupted, Ranker
from corank.base.contract import named_after_y
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.core.rows.access import factors_of
from corank.data.queries import qid_of_group, qid_of_index
from corank.data.ranking import RankingData
from corank.data.scoring import repeat_first, score_columns
from corank.errors import InputError, import_extra
from corank.fitted import Relations
from corank.metrics import parse_metric
from corank.models.lambdarank.lambdas import Lambda
from corank.models.lambdarank.terms import Lists
from corank.models.lambdarank.training import (
    GradientScorer,
    LambdaProblem,
    Linear,
    Perceptron,
    StepSettings,
    TrainingResult,
    TrainingState,
    ValidationRows,
    check_stored,
    column_mean,
    network_inputs,
    score_network,
    train,
)
from corank.models.lambdarank.tree_ensemble import TreeEnsemble
from corank.models.lambdarank.trees import BoostingResult, boost
from corank.parameters import Missing, Rule, Rules, boolean, integer, items, n_jobs, none, number, seed, text

Scorer = Literal["linear", "mlp", "trees"]
Floats = NDArray[np.float64]


# default steps and learning rate of each scorer
_STEPS = {"linear": 500, "mlp": 500, "trees": 130}
_RATES = {"linear": 0.02, "mlp": 0.01, "trees": 0.12}

_LAMBDAS = Rule("a Lambda", lambda value: isinstance(value, Lambda)) | text | Rule("a function", callable)
_WIDTHS = Rule("widths of layers", lambda value: items.allows(value) and all(map(integer(1).allows, value)))
_DICT = Rule("a dict of LightGBM's parameters", lambda value: isinstance(value, dict))


@dataclass(frozen=True, eq=False)
class FittedLambdaRank:
    """The fitted attributes of `LambdaRank`."""

    n_iter: int
    n_skipped_queries: int
    coef: Floats | None = None
    intercept: float | None = None
    layer_coefs: list[Floats] | None = None
    layer_intercepts: list[Floats] | None = None
    column_mean: Floats | None = None
    trees: TreeEnsemble | None = None
    validation_errors: Floats | None = None
    run: dict[str, Any] | None = None


def _is_trained_by_steps(model: LambdaRank) -> bool:
    if model.scorer == "trees":
        raise AttributeError("partial_fit is not available with scorer='trees'; call fit on all rows.")
    return True


@shared_parameters
@dataclass(eq=False, repr=False)
class LambdaRank(Ranker):
    """
    LambdaRank with a linear scorer, a small neural network or boosted trees.

    Parameters
    ----------
    lambdas : str, Lambda or callable, optional
        λ: ``"ranknet"``, ``"margin(delta=1)"``, ``"ndcg@10"``, ``"map"``, ``"mrr"``, ``"err"``, ``"wta"``, a weighted
        sum such as ``"ndcg + 0.1*regression"``, ``"mymodule:function"``, or a function of the scores and grades of one
        query that returns λ; see `Lambda.of`. None means ``"ndcg"``, with trees ``"ndcg(near=0.01)"``, as LightGBM's
        own.
    scorer : {"linear", "mlp", "trees"}
        Scoring function: linear, a multilayer perceptron (dense rows only), or regression trees boosted by LightGBM
        (``pip install 'corank[trees]'``).
    hidden : tuple of int
        Widths of the perceptron's hidden layers.
    n_steps : int, optional
        Number of Adam steps, each over `batch` queries, or of trees; by default 500, or 130 trees.
    batch : int
        Queries per step; trees use all queries.
    eta0 : float, optional
        Learning rate; by default 0.02, 0.01 and 0.12 for the three scorers.
    weight_decay : float
        Decoupled weight decay, per unit of the learning rate.
    tree_params : dict, optional
        LightGBM's own parameters, such as ``{"num_leaves": 31}``, which override the defaults of
        `corank.models.lambdarank.trees`: small trees, for few judgements. Columns of categories of a DataFrame are
        split into sets; ``{"categorical_feature": ""}`` splits one category at a time, as engines need it.
    n_estimators, learning_rate, num_leaves : int, float, int, optional
        LightGBM's names of `n_steps`, `eta0` and ``tree_params={"num_leaves": ...}``; with trees only.
    metric : str, optional
        Metric on `eval_set` or held-out judgements; by default the metric that λ optimises.
    early_stopping : bool
        Whether to keep the model with the lowest error on `eval_set` or, without one, on held-out queries, and to stop
        when the error no longer falls.
    {validation_fraction}
    n_iter_no_change : int
        Number of checks without improvement, out of 40, after which early stopping ends the fit.
    scale : bool
        Whether to divide columns by their standard deviation inside queries before learning; trees do not need it.
    {missing}
        Trees need no filling: each split sends missing values to the side where they gain more.
    {n_jobs}
    {random_state}
    {verbose}

    Attributes
    ----------
    coef_, intercept_ : array of shape (n_features,), float
        Weights of the columns as given, and the intercept; ``scorer="linear"`` only.
    layer_coefs_, layer_intercepts_ : lists of arrays
        Weights and intercepts of the perceptron's layers.
    column_mean_ : array of shape (n_features,)
        Mean of the (scaled) columns, which is subtracted from the inputs of the perceptron.
    trees_ : TreeEnsemble
        The trees, as arrays; splits of categories are on the first of their columns. ``trees_.to_lightgbm()`` returns
        LightGBM's text format. LightGBM is needed to fit trees, not to load or apply them.
    feature_importances_ : array of shape (n_features,)
        Importances of the columns, with sum 1: gains of trees, or |weight| · deviation of the column inside queries of
        a linear scorer. ``trees_.importances("split")`` counts splits.
    n_iter_ : int
        Number of steps, or of trees, of the model.
    n_skipped_queries_ : int
        Number of queries with a single grade, which have no pair.
    validation_errors_ : array
        Error on `eval_set` or held-out judgements at each check.
    run_ : dict
        State from which `partial_fit` continues bit for bit.

    Notes
    -----
    With more queries than `batch`, their order depends on the seed. A row of weight 2 counts as two rows for
    ``ranknet``, ``margin``, ``ndcg``, ``wta`` and ``regression`` (with trees, except for random thresholds; set
    ``tree_params={"extra_trees": False}``); the other λ are functions of whole lists, and accept weights of queries
    only. ``ranknet`` and ``margin`` also learn from preferences.

    Examples
    --------
    >>> from corank import LambdaRank, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> model = LambdaRank("ndcg@5", random_state=0).fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.75
    True
    """

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _gone: ClassVar[tuple[str, ...]] = ("warm_start",)

    _rules: ClassVar[Rules] = {
        "lambdas": _LAMBDAS | none,
        "hidden": _WIDTHS,
        "n_steps": integer(0) | none,
        "batch": integer(1),
        "eta0": number(0, inside="()") | none,
        "weight_decay": number(0),
        "tree_params": _DICT | none,
        "n_estimators": integer(0) | none,
        "learning_rate": number(0, inside="()") | none,
        "num_leaves": integer(2) | none,
        "metric": text | none,
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, inside="()"),
        "n_iter_no_change": integer(1),
        "scale": boolean,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": boolean,
    }

    _relations: ClassVar[Relations] = {
        "the scorer has its parameters": lambda m: hasattr(
            m, {"linear": "coef_", "mlp": "column_mean_", "trees": "trees_"}[m.scorer]
        ),
    }

    lambdas: Any = None
    scorer: Scorer = "linear"
    _: KW_ONLY
    hidden: tuple[int, ...] = (32,)
    n_steps: int | None = None
    batch: int = 64
    eta0: float | None = None
    weight_decay: float = 1.0
    tree_params: dict[str, Any] | None = None
    n_estimators: int | None = None
    learning_rate: float | None = None
    num_leaves: int | None = None
    metric: str | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    scale: bool = True
    missing: Missing = "mean"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: bool = False

    coef_: Floats = field(init=False)
    intercept_: float = field(init=False)
    layer_coefs_: list[Floats] = field(init=False)
    layer_intercepts_: list[Floats] = field(init=False)
    column_mean_: Floats = field(init=False)
    trees_: TreeEnsemble = field(init=False)
    run_: dict[str, Any] = field(init=False)

    @named_after_y
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        pair_weight: Any = None,
        prior: ArrayLike | None = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_at: Any = None,
        callbacks: Any = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """
        Learn from judged rows, or from preferences.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs, pair_weight, prior
            As in `Ranker.fit`.
        eval_set : tuple (X, y, qid), (X, y, qid, prior) or RankingData, optional
            Validation rows: their errors become `validation_errors_`, and control early stopping. Pass a prior if X
            has one. LightGBM's list [(X, y)] is read with `eval_group`.
        eval_group : list of one array, optional
            LightGBM's sizes of the queries of `eval_set`.
        eval_at : int or list of int, optional
            LightGBM's depth of nDCG on `eval_set`; of several, the first. `metric` has precedence.
        callbacks : list of callables, optional
            LightGBM's callbacks, such as ``lightgbm.early_stopping(5)``; with trees only.
        group : array-like of int, optional
            LightGBM's sizes of queries whose rows are adjacent, instead of qid.

        Returns
        -------
        self
            The fitted ranker.
        """
        if group is not None:
            if qid is not None:
                raise InputError("qid and group were both given; pass one of them.")
            qid = qid_of_group(group, X.shape[0] if hasattr(X, "shape") else len(X))
        if eval_group is not None or isinstance(eval_set, list):
            eval_set = _with_group(eval_set, eval_group)
        inputs, weights = (X, y, qid_of_index(X, qid), pairs), (sample_weight, pair_weight)
        if callbacks and self.scorer != "trees":
            raise InputError(f"callbacks were given, but scorer is {self.scorer!r}; set scorer='trees'.")
        if not all(map(callable, callbacks or ())):
            raise InputError("callbacks holds something that cannot be called; pass a list of functions.")
        depth = None if eval_at is None else _first_depth(eval_at)
        given = (("eval_set", eval_set), ("callbacks", callbacks), ("depth", depth))
        more: dict[str, Any] = {name: value for name, value in given if value is not None}
        fit = partial(self._fit, **more) if more else None
        return self._learn(inputs, weights, prior, continues=False, fit=fit, holds_out=eval_set is None)

    @available_if(_is_trained_by_steps)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        pair_weight: Any = None,
        prior: ArrayLike | None = None,
    ) -> Self:
        """
        Take `n_steps` further steps, on the same or on other rows; not available with trees.

        Without early stopping, k steps and then m steps on the same data give the same bits as k + m steps, also if the
        model was saved and loaded in between. Columns keep the scale of the first call.
        """
        continues = hasattr(self, "run_")
        fit = partial(self._fit, continues=continues)
        return self._learn((X, y, qid, pairs), (sample_weight, pair_weight), prior, continues=continues, fit=fit)

    def predict(self, X: Any, *, prior: ArrayLike | None = None, pred_contrib: bool = False) -> Floats:
        """
        Score rows, or split the scores of trees into contributions of the columns.

        Parameters
        ----------
        X, prior
            As in `Ranker.predict`.
        pred_contrib : bool
            Return LightGBM's SHAP values of trees, (n_rows, n_features + 1): the last column is the expected score.

        Returns
        -------
        array
            Scores in input order, higher is better, or contributions, whose sums are the scores.
        """
        if not pred_contrib:
            return super().predict(X, prior=prior)
        check_is_fitted(self)
        if not hasattr(self, "trees_") or self._check_prior(prior):
            raise InputError("pred_contrib is for trees without a prior; call corank.explain for other rankers.")
        booster = import_extra("lightgbm", "trees").Booster(model_str=self.trees_.to_lightgbm())
        return np.asarray(booster.predict(self.trees_.coded(self._checked_rows(X)), pred_contrib=True))

    @property
    def best_iteration_(self) -> int:
        """Number of trees or steps of the model, as LightGBM calls it."""
        check_is_fitted(self)
        return int(self.n_iter_)

    def _score_rows(self, X: Any) -> Floats:
        """Return f(x)."""
        rows = self._checked_rows(X)
        # parameters may have been changed since fit
        if hasattr(self, "trees_"):
            return self.trees_.score_rows(rows, self.n_jobs if n_jobs.allows(self.n_jobs) else None)
        if hasattr(self, "layer_coefs_"):
            parameters = [
                part for layer in zip(self.layer_coefs_, self.layer_intercepts_, strict=True) for part in layer
            ]
            return repeat_first(rows, score_network(self._scale_rows(rows), self.column_mean_, parameters))
        return score_columns(rows, self.coef_) + self.intercept_

    @property
    def _lambda(self) -> Lambda:
        if self.lambdas is None:
            return Lambda.of("ndcg(near=0.01)" if self.scorer == "trees" else "ndcg")
        return Lambda.of(self.lambdas)

    @property
    def _needs_pairs(self) -> bool:  # type: ignore[override]
        return self._lambda.needs_pairs

    @property
    def _learns_from_differences(self) -> bool:  # type: ignore[override]
        return self._lambda.takes_preferences

    @property
    def _learns_sizes(self) -> bool:  # type: ignore[override]
        return self._lambda.uses_grade_values

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.scorer != "mlp"

    @property
    def _missing(self) -> str:
        return "keep" if self.scorer == "trees" and self.missing == "mean" else self.missing

    def _scales_columns(self, data: RankingData) -> bool:
        return self.scorer != "trees" and super()._scales_columns(data)

    def _check_combinations(self) -> None:
        self._lambda  # noqa: B018 - one that cannot be read raises
        if self.metric is not None:
            parse_metric(self.metric)
        lightgbm_names = {"n_estimators": "n_steps", "learning_rate": "eta0", "num_leaves": "tree_params"}
        for theirs, ours in lightgbm_names.items():
            if getattr(self, theirs) is None:
                continue
            if self.scorer != "trees":
                raise InputError(f"{theirs} was given, but scorer is {self.scorer!r}; set scorer='trees'.")
            if theirs in (self.tree_params or {}) if ours == "tree_params" else getattr(self, ours) is not None:
                raise InputError(f"{theirs} and {ours} were both given; pass one of them.")
        # their names are checked in fit only: loaded models need no LightGBM
        if self.scorer != "trees" and self.tree_params is not None:
            raise InputError(
                f"tree_params was given, but scorer is {self.scorer!r}; leave it out, or set scorer='trees'."
            )

    def _check_state(self) -> None:
        """Raise if a loaded model has inconsistent trees, layers or training state."""
        if hasattr(self, "trees_") and self.trees_.n_features != self._n_columns:
            raise InputError(f"trees_ is not of {self.n_features_in_} features")
        shapes = [(self._n_columns,), (1,)]
        if hasattr(self, "layer_coefs_"):
            shapes = [
                np.shape(part)
                for layer in zip(self.layer_coefs_, self.layer_intercepts_, strict=True)
                for part in layer
            ]
        if hasattr(self, "run_"):
            check_stored(self.run_, shapes)

    def _require_judgements(self, data: RankingData) -> None:
        lambdas = self._lambda
        if data.y is None and not lambdas.takes_preferences:
            raise InputError(
                f"lambdas is '{lambdas}', which needs grades, but preferences were given; choose 'ranknet' or 'margin'."
            )
        super()._require_judgements(data)

    def _fit(
        self,
        data: RankingData,
        held: HeldOut | None,
        rng: np.random.Generator,
        eval_set: Any = None,
        continues: bool = False,
        callbacks: Any = (),
        depth: int | None = None,
    ) -> FittedLambdaRank:
        metric = self.metric or (self._lambda.metric if depth is None else f"nDCG@{depth}")
        validation = None
        if eval_set is not None:
            validation = ValidationRows.of_eval_set(eval_set, data, metric, keeps_missing=self._missing == "keep")
        elif held is not None:
            data, validation = held.train, ValidationRows.of_held_out(held, metric)
        problem = self._lambda_problem(data)
        n_skipped = self._n_skipped(data)
        if self.scorer == "trees":
            own = {**(self.tree_params or {}), **({} if self.num_leaves is None else {"num_leaves": self.num_leaves})}
            boosted = boost(data.X, data.names, problem, self._settings, own, self.n_jobs, rng, validation, callbacks)
            errors = boosted.errors if len(boosted.errors) else None
            fitted = FittedLambdaRank(boosted.trees.n_trees, n_skipped, trees=boosted.trees, validation_errors=errors)
            return self._finished(fitted, boosted)
        mean = (self.column_mean_ if continues else column_mean(data)) if self.scorer == "mlp" else np.zeros(0)
        scorer = self._make_scorer(data.X, mean)
        state = self._resumed(scorer) if continues else TrainingState.start(scorer, problem, rng)
        error = None if validation is None else self._validation_error(validation, mean)
        result = train(state, scorer, problem, self._settings, error)
        return self._finished(self._fitted(result, data, mean, n_skipped), result)

    def _lambda_problem(self, data: RankingData) -> LambdaProblem:
        lambdas = self._lambda
        lists = Lists.of(data, with_pairs_only=lambdas.needs_pairs)
        lambdas = lambdas.for_grades(lists.labels)
        lambdas.check_lists(lists)
        return LambdaProblem(lambdas, lists, data.prior_of(lists.rows))

    def _n_skipped(self, data: RankingData) -> int:
        return len(data.single_grade_queries) if self._needs_pairs else 0

    @property
    def _settings(self) -> StepSettings:
        n_steps = self.n_steps if self.n_estimators is None else self.n_estimators
        rate = self.eta0 if self.learning_rate is None else self.learning_rate
        return StepSettings(
            n_steps=_STEPS[self.scorer] if n_steps is None else n_steps,
            batch=self.batch,
            rate=float(_RATES[self.scorer] if rate is None else rate),
            weight_decay=float(self.weight_decay),
            patience=self.n_iter_no_change if self.early_stopping else None,
            verbose=bool(self.verbose),
        )

    def _make_scorer(self, X: Any, mean: Floats) -> GradientScorer:
        return Perceptron(network_inputs(X, mean), tuple(self.hidden)) if self.scorer == "mlp" else Linear(X)

    def _validation_error(self, validation: ValidationRows, mean: Floats) -> Any:
        scorer, rows = self._make_scorer(validation.X, mean), np.arange(validation.X.shape[0])
        return lambda parameters: validation.error(scorer.score(parameters, rows)[0])

    def _resumed(self, scorer: GradientScorer) -> TrainingState:
        state = TrainingState(**self.run_)
        expected = [part.shape for part in scorer.start(np.random.default_rng(0))]
        if [part.shape for part in state.parameters] != expected:
            raise InputError("this model was fitted with another scorer or other widths in hidden; fit it again.")
        return state

    def _fitted(self, result: TrainingResult, data: RankingData, mean: Floats, n_skipped: int) -> FittedLambdaRank:
        state, errors = result.state, result.errors if len(result.errors) else None
        fitted = FittedLambdaRank(state.steps, n_skipped, validation_errors=errors, run=dict(vars(state)))
        if self.scorer == "mlp":
            return replace(fitted, layer_coefs=state.mean[::2], layer_intercepts=state.mean[1::2], column_mean=mean)
        factors = factors_of(data.X)
        coef = state.mean[0] if factors is None else state.mean[0] * factors
        return replace(fitted, coef=coef, intercept=float(state.mean[1][0]))

    @staticmethod
    def _finished(fitted: FittedLambdaRank, result: TrainingResult | BoostingResult) -> FittedLambdaRank:
        """Return the model, or raise with it if Ctrl-C ended training."""
        if result.interrupted and fitted.n_iter == 0:
            raise KeyboardInterrupt
        if result.interrupted:
            raise Interrupted(fitted)
        return fitted


def _first_depth(eval_at: Any) -> int:
    depths = np.ravel(eval_at)
    if not len(depths) or depths.dtype.kind not in "iu" or depths[0] < 1:
        raise InputError(f"eval_at is {eval_at!r}; pass a whole number of at least 1, or a list of them.")
    return int(depths[0])


def _with_group(eval_set: Any, eval_group: Any) -> tuple[Any, Any, Any]:
    """Return LightGBM's lists ``eval_set=[(X, y)]`` and ``eval_group=[sizes]`` as (X, y, qid)."""
    sets = eval_set if isinstance(eval_set, list) else [eval_set]
    groups = eval_group if isinstance(eval_group, list | tuple) and np.ndim(eval_group[0]) else [eval_group]
    if len(sets) != 1 or len(groups) != 1 or not isinstance(sets[0], tuple) or len(sets[0]) != 2 or eval_group is None:
        raise InputError("eval_set must be one pair [(X, y)] with eval_group=[sizes], or a tuple (X, y, qid).")
    X, y = sets[0]
    return X, y, qid_of_group(groups[0], X.shape[0] if hasattr(X, "shape") else len(X))
