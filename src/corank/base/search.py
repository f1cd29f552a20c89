"""QuerySearchCV: grid search over whole queries, with query ids routed to every step and to `predict`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import MetaEstimatorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import COLUMN_NOTES, Estimator, install
from corank.base.solvers.choice import choose
from corank.data.durable.files import require_unchanged
from corank.data.queries import Queries, qid_of_index
from corank.data.ranking import RankingData
from corank.data.routing import predict_with_qid
from corank.data.rows import require_structure
from corank.data.splits import QueryKFold
from corank.errors import InputError
from corank.metrics import Convention, scorer


class QuerySearchCV(MetaEstimatorMixin, Estimator):
    """
    Grid search by cross-validation over whole queries, with a ranking metric.

    It is scikit-learn's `GridSearchCV` with metadata routing enabled during each call, so that `qid` reaches the folds,
    the ranker, the steps of a pipeline that request it, and the metric. `predict`, `rank` and `score` take `qid`.

    Parameters
    ----------
    estimator : Ranker, regressor or Pipeline
        The estimator to fit; it is cloned.
    param_grid : dict or list of dict
        Values to try, as in `GridSearchCV`.
    metric : str or callable
        Selection metric; see `corank.metrics.names.parse_metric`. Or a scorer of scikit-learn that takes `qid`, such as
        `corank.metrics.bounds.DistanceScorer`.
    convention : str or Convention
        Convention by which the metric is computed.
    cv : int or splitter
        A number of folds of whole queries (None means 5), or a splitter such as `QueryShuffleSplit`.
    n_jobs : int, optional
        Number of processes, as in `GridSearchCV`; 1 by default.
    verbose : int
        As in `GridSearchCV`.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted on all rows with the best parameters.
    best_params_ : dict
        The best parameters.
    best_score_ : float
        Their mean score over the folds, negated if smaller is better.
    cv_results_ : dict
        All scores, as in `GridSearchCV`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from corank import QueryScaler, make_ranking
    >>> data = make_ranking(n_queries=20, random_state=0)
    >>> model = make_pipeline(QueryScaler(), Ridge())
    >>> search = QuerySearchCV(model, {"ridge__alpha": [0.1, 1.0, 10.0]}, metric="kendall")
    >>> ranks = search.fit(data.X, data.utility, qid=data.qid).rank(data.X[:3], qid=data.qid[:3])
    >>> sorted(ranks.tolist())
    [1, 2, 3]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        metric: Any = "nDCG@10",
        convention: str | Convention = "corank",
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.metric = metric
        self.convention = convention
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, qid: ArrayLike | None = None, prior: ArrayLike | None = None
    ) -> Self:
        """Search, and fit the best parameters on all rows; arguments are those of `corank.Ranker.fit`."""
        if isinstance(X, RankingData):
            raise InputError("X is a RankingData, which cannot be split into folds; pass its X, y and qid.")
        if y is None:
            raise InputError("y is missing; pass one score per row, NaN for an unjudged row.")
        require_unchanged(X)
        if sparse.issparse(X):  # scipy does not check it when it selects rows
            require_structure(X)
        cv = 5 if self.cv is None else self.cv
        search = GridSearchCV(
            self.estimator,
            self.param_grid,
            scoring=self._scorer,
            cv=QueryKFold(int(cv)) if isinstance(cv, Integral) else cv,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            error_score="raise",
            refit=_best_index,
        )
        with config_context(enable_metadata_routing=True):
            search.fit(X, y, qid=qid_of_index(X, qid), prior=prior)
        best = search.best_estimator_
        columns = {name: getattr(best, name) for name in COLUMN_NOTES if hasattr(best, name)}
        results = {name: getattr(search, name) for name in ("best_params_", "cv_results_")}
        results["best_score_"] = float(search.cv_results_["mean_test_score"][search.best_index_])
        return install(self, None, {"best_estimator_": best, **results, **columns})

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score rows by the best estimator, see `corank.Ranker.predict`."""
        check_is_fitted(self)
        return predict_with_qid(self.best_estimator_, X, qid, prior)

    def rank(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> NDArray[np.int64]:
        """Rank rows inside their queries, see `corank.Ranker.rank`."""
        scores = self.predict(X, qid, prior=prior)
        return Queries.of(qid, len(scores)).ranks(scores)

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> float:
        """Return the mean metric of the best estimator over queries, negated if smaller is better."""
        check_is_fitted(self)
        given = {"qid": qid} if callable(self.metric) else {"qid": qid, "prior": prior}
        return float(self._scorer(self.best_estimator_, X, y, **given))

    @property
    def _scorer(self) -> Any:
        return self.metric if callable(self.metric) else scorer(self.metric, convention=self.convention)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # sparse or not, and whether X is a Gram matrix, so that a fold must select rows and columns
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _best_index(results: dict[str, Any]) -> int:
    """Return the number of the best candidate; in a tie, the largest alpha, then the first."""
    alphas = [[v for k, v in result.items() if k.split("__")[-1] == "alpha"] for result in results["params"]]
    largest = [float(of[0]) if len(of) == 1 and isinstance(of[0], Real) else -np.inf for of in alphas]
    return choose(results["mean_test_score"], largest)[0]
