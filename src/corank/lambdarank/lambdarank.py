"""
LambdaRank: learn from forces (Burges, Ranking as learning structured outputs, 2005).

The user states forces λ_i(s, y) on the rows of a query, not a cost. A scorer f is moved along them,

    θ ← θ + rate · Σ_i λ_i ∂f(x_i)/∂θ,

once for a batch of queries, or, for boosted trees, by a tree fitted to λ_i with curvatures h_i. A step costs what λ
costs, O(n²) for a query of n rows, and one pass of the scorer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from corank.core.rows.scaled import factors_of
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.base import Interrupted, Ranker
from corank.estimator.held_out import HeldOut
from corank.lambdarank.lambdas import Lambda
from corank.lambdarank.lists import Lists
from corank.lambdarank.scorers import Linear, Perceptron, Scorer, column_mean, perceive, seen
from corank.lambdarank.training import Plan, State, Task, Trained, require_stored, train
from corank.lambdarank.trees import Grown, Watched, checked, grow, require_trees, score_trees
from corank.lambdarank.watching import of_eval_set, of_held_out
from corank.metrics import parse_metric
from corank.parameters import Rule, Rules, boolean, items, n_jobs, none, number, one_of, seed, text, whole

Floats = NDArray[np.float64]

SCORERS = ("linear", "mlp", "trees")
"""What may score rows."""

# steps and rate of each scorer where none are given
_STEPS = {"linear": 500, "mlp": 500, "trees": 200}
_RATES = {"linear": 0.02, "mlp": 0.01, "trees": 0.1}

_FORCES = Rule("a Lambda", lambda value: isinstance(value, Lambda)) | text | Rule("a function", callable)
_WIDTHS = Rule("widths of layers", lambda value: items.allows(value) and all(map(whole(1).allows, value)))
_DICT = Rule("a dict of LightGBM's parameters", lambda value: isinstance(value, dict))


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What a fit leaves behind; see the attributes of `LambdaRank`."""

    n_iter: int
    n_skipped_queries: int
    coef: Floats | None = None
    intercept: float | None = None
    layer_coefs: list[Floats] | None = None
    layer_intercepts: list[Floats] | None = None
    column_mean: Floats | None = None
    trees: str | None = None
    validation_errors: Floats | None = None
    run: dict[str, Any] | None = None


def _learns_by_steps(model: LambdaRank) -> bool:
    if model.scorer == "trees":
        raise AttributeError("partial_fit goes on from weights, but scorer is 'trees'; fit them anew on all rows.")
    return True


class LambdaRank(Ranker):
    """
    Ranker that is pulled by forces, with a linear scorer, a small neural network or boosted trees.

    Parameters
    ----------
    forces : str, Lambda or callable, optional
        λ: ``"ranknet"``, ``"margin(delta=1)"``, ``"ndcg@10"``, ``"map"``, ``"mrr"``, ``"err"``, ``"wta"``, a
        weighted sum such as ``"ndcg + 0.1*regression"``, ``"mymodule:forces"``, or a function of the scores and grades
        of one query that returns its forces; see `Lambda.of`. None is ``"ndcg"``, with trees
        ``"ndcg(near=0.01)"``, as LightGBM's own.
    scorer : {"linear", "mlp", "trees"}
        What scores rows: weights of columns, a multilayer perceptron (dense rows only), or regression trees boosted by
        LightGBM (``pip install 'corank[trees]'``).
    hidden : tuple of int
        Widths of the perceptron's hidden layers.
    n_steps : int, optional
        Steps of Adam, each over `batch` queries, or trees; by default 500, or 200 trees.
    batch : int
        Queries of one step; the trees see all.
    eta0 : float, optional
        Rate of the steps; 0.02, 0.01 and 0.1 by default for the three scorers.
    weight_decay : float
        Share of the weights that a step of rate 1 takes away.
    tree_params : dict, optional
        LightGBM's own parameters, such as ``{"num_leaves": 31}``, over corank's defaults, which are those of
        `corank.lambdarank.trees`: small trees, for few judgements.
    metric : str, optional
        What `eval_set` or judgements set aside are judged by; by default the metric that λ serves.
    early_stopping : bool
        Whether to keep the model of the lowest error on `eval_set` or, without one, on queries set aside, and to stop
        when it falls no more.
    validation_fraction : float
        Share of the queries to set aside.
    n_iter_no_change : int
        Patience, in checks, of which there are 40.
    scale : bool
        Whether columns are divided by their deviation inside queries before learning; trees ask for none.
    warm_start : bool
        Whether ``fit`` goes on where the last one ended; not of trees.
    n_jobs : int, optional
        Threads for the trees; None is one, −1 every processor.
    random_state : int, RandomState or None
        Seed of first weights, of the order of queries, and of LightGBM.
    verbose : bool
        Whether to show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    coef_, intercept_ : array of shape (n_features,), float
        Weights of the columns as given, and the level; ``scorer="linear"`` only.
    layer_coefs_, layer_intercepts_ : lists of arrays
        Weights and levels of the perceptron's layers.
    column_mean_ : array of shape (n_features,)
        What is subtracted from the (scaled) columns before the perceptron sees them.
    trees_ : str
        The trees, in LightGBM's own text format.
    n_iter_ : int
        Steps, or trees, of the model.
    n_skipped_queries_ : int
        Queries of one grade, which hold no pair.
    validation_errors_ : array
        Errors on `eval_set` or judgements set aside, check by check.
    run_ : dict
        What `partial_fit` needs to go on bit for bit.

    Notes
    -----
    With more queries than `batch`, the order in which queries come is a part of the seed. A row of weight 2 is the row
    twice for ``ranknet``, ``margin``, ``ndcg``, ``wta`` and ``regression``; the others look at whole lists, and take
    weights of queries only. Preferences teach ``ranknet`` and ``margin``.

    Examples
    --------
    >>> from corank import LambdaRank, make_ranking
    >>> problem = make_ranking(40, 10, random_state=0)
    >>> model = LambdaRank("ndcg@5", random_state=0).fit(problem.X, problem.y, qid=problem.qid)
    >>> model.score(problem.X, problem.y, qid=problem.qid) > 0.75
    True
    """

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    _rules: ClassVar[Rules] = {
        "forces": _FORCES | none,
        "scorer": one_of(*SCORERS),
        "hidden": _WIDTHS,
        "n_steps": whole(0) | none,
        "batch": whole(1),
        "eta0": number(0, inside="()") | none,
        "weight_decay": number(0),
        "tree_params": _DICT | none,
        "metric": text | none,
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, inside="()"),
        "n_iter_no_change": whole(1),
        "scale": boolean,
        "warm_start": boolean,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": boolean,
    }

    coef_: Floats
    intercept_: float
    layer_coefs_: list[Floats]
    layer_intercepts_: list[Floats]
    column_mean_: Floats
    trees_: str
    run_: dict[str, Any]

    def __init__(
        self,
        forces: Any = None,
        scorer: str = "linear",
        *,
        hidden: tuple[int, ...] = (32,),
        n_steps: int | None = None,
        batch: int = 64,
        eta0: float | None = None,
        weight_decay: float = 1.0,
        tree_params: dict[str, Any] | None = None,
        metric: str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        scale: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.forces = forces
        self.scorer = scorer
        self.hidden = hidden
        self.n_steps = n_steps
        self.batch = batch
        self.eta0 = eta0
        self.weight_decay = weight_decay
        self.tree_params = tree_params
        self.metric = metric
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scale = scale
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
    ) -> Self:
        """
        Learn from scored rows, or from preferences.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs, pair_weight, prior
            As in `Ranker.fit`.
        eval_set : tuple (X, y, qid), (X, y, qid, prior) or RankingData, optional
            Judged rows to watch: their errors become `validation_errors_`, and early stopping goes by them. They come
            with a prior where X does.

        Returns
        -------
        self
            The fitted ranker.
        """
        given, weights = (X, y, qid, pairs), (sample_weight, pair_weight)
        fit = None if eval_set is None else partial(self._fit, eval_set=eval_set)
        return self._learn(given, weights, prior, continues=self._continues, fit=fit, holds_out=eval_set is None)

    @available_if(_learns_by_steps)  # type: ignore[untyped-decorator]
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
        Take `n_steps` further steps, on the same or on other rows; not with trees.

        Without early stopping, k steps and then m steps on the same data give, bit for bit, what k + m steps give, also
        when the model was saved and loaded in between. What columns are divided by stays that of the first call.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs, pair_weight, prior
            As in `fit`.

        Returns
        -------
        self
            The fitted ranker.
        """
        continues = hasattr(self, "run_")
        fit = partial(self._fit, continues=continues)
        return self._learn((X, y, qid, pairs), (sample_weight, pair_weight), prior, continues=continues, fit=fit)

    def _score_rows(self, X: Any) -> Floats:
        """Return f(x)."""
        rows = self._checked_rows(X)
        # by what was fitted: parameters may have been set since
        if hasattr(self, "trees_"):
            return score_trees(self.trees_, rows, self.n_jobs if n_jobs.allows(self.n_jobs) else None)
        if hasattr(self, "layer_coefs_"):
            parameters = [
                part for layer in zip(self.layer_coefs_, self.layer_intercepts_, strict=True) for part in layer
            ]
            return perceive(self._scale_rows(rows), self.column_mean_, parameters)
        return np.asarray(rows @ self.coef_ + self.intercept_, dtype=np.float64)

    @property
    def _forces(self) -> Lambda:
        if self.forces is None:
            return Lambda.of("ndcg(near=0.01)" if self.scorer == "trees" else "ndcg")
        return Lambda.of(self.forces)

    @property
    def _needs_pairs(self) -> bool:  # type: ignore[override]
        return self._forces.needs_pairs

    @property
    def _learns_from_differences(self) -> bool:  # type: ignore[override]
        return self._forces.compares

    @property
    def _learns_sizes(self) -> bool:  # type: ignore[override]
        return self._forces.by_size

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.scorer != "mlp"

    @property
    def _continues(self) -> bool:
        return self.warm_start and hasattr(self, "run_")

    def _scales_columns(self, data: RankingData) -> bool:
        return self.scorer != "trees" and super()._scales_columns(data)

    def _check_combinations(self) -> None:
        self._forces  # noqa: B018 - one that cannot be read raises
        if self.metric is not None:
            parse_metric(self.metric)
        if self.scorer == "trees":
            checked(self.tree_params or {})
            if self.warm_start:
                raise InputError("warm_start goes on from weights, but scorer is 'trees'; set warm_start=False.")
        elif self.tree_params is not None:
            raise InputError(f"tree_params came, but scorer is {self.scorer!r}; leave them out, or set scorer='trees'.")

    def _check_state(self) -> None:
        """Raise where what trees, layers or a run lead to makes no sense."""
        if hasattr(self, "trees_"):
            require_trees(self.trees_, self.n_features_in_)
        shapes = [(self.n_features_in_,), (1,)]
        if hasattr(self, "layer_coefs_"):
            shapes = [
                np.shape(part)
                for layer in zip(self.layer_coefs_, self.layer_intercepts_, strict=True)
                for part in layer
            ]
        if hasattr(self, "run_"):
            require_stored(self.run_, shapes)

    def _require_judgements(self, data: RankingData) -> None:
        forces = self._forces
        if data.y is None and not forces.compares:
            raise InputError(
                f"forces is '{forces}', which reads grades, but preferences came; choose 'ranknet' or 'margin'."
            )
        super()._require_judgements(data)

    def _fit(
        self,
        data: RankingData,
        held: HeldOut | None,
        rng: np.random.Generator,
        eval_set: Any = None,
        continues: bool | None = None,
    ) -> _Fitted:
        metric = self.metric or self._forces.metric
        watched = None
        if eval_set is not None:
            watched = of_eval_set(eval_set, data, metric)
        elif held is not None:
            data, watched = held.train, of_held_out(held, metric)
        task = self._task(data)
        kept = self._n_skipped(data)
        if self.scorer == "trees":
            grown = grow(data.X, task, self._plan, self.tree_params or {}, self.n_jobs, rng, watched)
            return self._ended(self._of_trees(grown, kept), grown)
        continues = self._continues if continues is None else continues
        mean = (self.column_mean_ if continues else column_mean(data)) if self.scorer == "mlp" else np.zeros(0)
        scorer = self._scorer(data.X, mean)
        state = self._resumed(scorer) if continues else State.start(scorer, task, rng)
        judge = None if watched is None else self._judge(watched, mean)
        trained = train(state, scorer, task, self._plan, judge)
        return self._ended(self._of_state(trained, data, mean, kept), trained)

    def _task(self, data: RankingData) -> Task:
        forces = self._forces
        lists = Lists.of(data, with_pairs_only=forces.needs_pairs)
        forces = forces.for_grades(lists.labels)
        forces.require(lists)
        return Task(forces, lists, data.prior_of(lists.rows))

    def _n_skipped(self, data: RankingData) -> int:
        return len(data.single_grade_queries) if self._needs_pairs else 0

    @property
    def _plan(self) -> Plan:
        return Plan(
            n_steps=_STEPS[self.scorer] if self.n_steps is None else self.n_steps,
            batch=self.batch,
            rate=float(_RATES[self.scorer] if self.eta0 is None else self.eta0),
            weight_decay=float(self.weight_decay),
            patience=self.n_iter_no_change if self.early_stopping else None,
            verbose=bool(self.verbose),
        )

    def _scorer(self, X: Any, mean: Floats) -> Scorer:
        return Perceptron(seen(X, mean), tuple(self.hidden)) if self.scorer == "mlp" else Linear(X)

    def _judge(self, watched: Watched, mean: Floats) -> Any:
        scorer, rows = self._scorer(watched.X, mean), np.arange(watched.X.shape[0])
        return lambda parameters: watched.error(scorer.score(parameters, rows)[0])

    def _resumed(self, scorer: Scorer) -> State:
        state = State.resume(self.run_)
        wanted = [part.shape for part in scorer.start(np.random.default_rng(0))]
        if [part.shape for part in state.parameters] != wanted:
            raise InputError("this model was begun with another scorer or other widths in hidden; fit it anew.")
        return state

    def _of_trees(self, grown: Grown, n_skipped: int) -> _Fitted:
        errors = grown.errors if len(grown.errors) else None
        return _Fitted(grown.n_trees, n_skipped, trees=grown.text, validation_errors=errors)

    def _of_state(self, trained: Trained, data: RankingData, mean: Floats, n_skipped: int) -> _Fitted:
        state, errors = trained.state, trained.errors if len(trained.errors) else None
        fitted = _Fitted(state.steps, n_skipped, validation_errors=errors, run=state.stored())
        if self.scorer == "mlp":
            return replace(fitted, layer_coefs=state.mean[::2], layer_intercepts=state.mean[1::2], column_mean=mean)
        factors = factors_of(data.X)
        coef = state.mean[0] if factors is None else state.mean[0] * factors
        return replace(fitted, coef=coef, intercept=float(state.mean[1][0]))

    @staticmethod
    def _ended(fitted: _Fitted, went: Trained | Grown) -> _Fitted:
        if went.interrupted and fitted.n_iter == 0:
            raise KeyboardInterrupt
        if went.interrupted:
            raise Interrupted(fitted)
        return fitted
