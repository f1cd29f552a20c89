"""
Calibration: rankers with scores on the scale of y (isotonic or logistic), and reliability curves.

A ranker orders rows, but its scores need not be on the scale of y. `Calibrated` scores every query by a model fitted
without it, fits an increasing function from these scores to y, and applies it to the scores of a model fitted on all
queries. This takes ``cv + 1`` fits of the ranker.

Losses of pairs leave the origin of scores open, and the penalty leaves their size open, so models of different folds
have scores on different scales. The scores s of the model of a fold are therefore moved to those t of the final model,

    s ↦ mean(t) + (s − mean(s)) std(t)/std(s),

with mean and standard deviation over all rows. Isotonic regression alone overfits few rows or few relevant ones, gives
probabilities 0 and 1, and ties rows of different scores. The function of the method "isotonic" is therefore

    low + (high − low) [(1 − ε) (λ σ(a s + b) + (1 − λ) c(s)) + ε h(s)].

σ(a s + b) is the logistic fit. c is centred isotonic regression (Oron and Flournoy, 2017): every block of equal level
is one point at its mean score, with straight lines between the points. The share λ of the logistic fit is the largest
one of `_SHARES` whose cross-validated log loss is at most one standard error above the least: λ = 1 unless the rows
show that scores are not logistic. h(s) = 1/2 + sign(u) ℓ / (2 + 2ℓ), with u the standardised score and
ℓ = log(1 + |u|), rises everywhere. Its tiny weight ε = `_STRICT` keeps values of different scores different where σ and
c are flat. The sum is stored as one piecewise linear function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from corank.base.base import Ranker
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.data.inputs import as_numbers, as_scores
from corank.data.ranking import RankingData
from corank.data.rows import with_names
from corank.data.splits import QueryKFold
from corank.errors import InputError, import_extra
from corank.fitted import Predictions, Relations, Shapes
from corank.parameters import Rules, boolean, check_values, having, integer, is_integer, items, one_of
from corank.progress import progress

Floats = NDArray[np.float64]

# weak penalty that keeps the slope finite if scores separate the grades
_WEAK_PENALTY = 1e8
# candidates for the share of the logistic fit; at least 0.1, so that no probability is 0 or 1
_SHARES = tuple(tenths / 10.0 for tenths in range(10, 0, -1))
# weight of the part that rises everywhere
_STRICT = 1e-5
# number of folds of rows that choose the share, and of groups of rows for isotonic regression
_SHARE_FOLDS, _GROUPS = 5, 200


def _is_binary(model: Calibrated) -> bool:
    check_is_fitted(model)
    if model.low_ == 0.0 and model.high_ == 1.0 and model.is_binary_:
        return True
    raise AttributeError("predict_proba needs a model fitted on scores 0 and 1; use predict.")


@dataclass(frozen=True, eq=False)
class FittedCalibration:
    """The fitted attributes of `Calibrated`."""

    ranker: Ranker
    low: float
    high: float
    is_binary: bool
    scores: Floats | None = None
    levels: Floats | None = None
    slope: float | None = None
    offset: float | None = None


@shared_parameters
class Calibrated(Ranker):
    """
    Calibrated ranker: its scores are expected grades, or probabilities if y is 0 and 1.

    Parameters
    ----------
    ranker : Ranker
        The ranker to calibrate.
    method : {"isotonic", "logistic"}
        The increasing function from scores to y. "logistic" is low + (high − low) σ(a s + b), low and high the extremes
        of y; it is constant if the scores are uninformative. "isotonic" mixes it with isotonic regression, as far as
        judged rows show that the logistic function is wrong. It is piecewise linear and strictly increasing: order and
        ties are those of the ranker, except that scores may tie if they differ by less than 1e-9 of their spread.
    cv : int, splitter, or list of (train, test)
        Number of folds of queries (at most one query each; folds of rows if there is one query), or a splitter such as
        `QueryShuffleSplit`, or row numbers.
    {verbose}

    Attributes
    ----------
    ranker_ : Ranker
        The ranker fitted on all rows.
    scores_, levels_ : arrays of float64
        Points of the function; isotonic only.
    slope_, offset_ : float
        a and b; logistic only.
    low_, high_ : float
        Extremes of y.
    is_binary_ : bool
        Whether y was only 0 and 1.

    Examples
    --------
    >>> from corank import SPD, make_ranking
    >>> problem = make_ranking(50, 10, random_state=0)
    >>> model = Calibrated(SPD(loss="squared")).fit(problem.X, problem.y > 1, qid=problem.qid)
    >>> model.predict_proba(problem.X).shape
    (500, 2)
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}
    _learns_from_differences: bool = False
    _rules: ClassVar[Rules] = {
        "ranker": having("a corank ranker such as SPD()", "fit", "predict"),
        "cv": integer(2) | having("a splitter", "split") | items,
        "verbose": boolean,
    }

    _shapes: ClassVar[Shapes] = {"scores_": ("knots",), "levels_": ("knots",)}
    _relations: ClassVar[Relations] = {
        "scores_ ascends": lambda m: not hasattr(m, "scores_") or (np.diff(m.scores_) >= 0.0).all(),
    }
    _predictions: ClassVar[Predictions] = {
        "predict_proba": lambda model, X: model.predict_proba(X),
        "ranker_scores": lambda model, X: model.ranker_scores(X),
    }

    ranker_: Ranker
    scores_: Floats
    levels_: Floats
    slope_: float
    offset_: float
    low_: float
    high_: float
    is_binary_: bool

    def __init__(
        self, ranker: Any, method: Literal["isotonic", "logistic"] = "isotonic", cv: Any = 5, *, verbose: bool = False
    ) -> None:
        self.ranker = ranker
        self.method = method
        self.cv = cv
        self.verbose = verbose

    def _check_combinations(self) -> None:
        if not isinstance(self.ranker, Ranker):
            raise InputError(f"ranker is a {type(self.ranker).__name__}; pass a corank ranker such as SPD().")

    @property
    def _accepts_sparse(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.ranker, "_accepts_sparse", True))

    @property
    def _missing(self) -> str:
        """Missing values are filled before the folds, and as the ranker would."""
        return "error" if getattr(self.ranker, "_missing", "error") == "error" else "mean"

    @property
    def _kernels(self) -> list[Any]:
        """The kernels of the ranker, as given."""
        return getattr(self.ranker, "_kernels", [])

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCalibration:
        if data.y is None:
            raise InputError("pairs were given, but calibration needs scores; pass y.")
        with progress(self._n_folds(data) + 1, "fits", self.verbose) as advance:
            ranker = clone(self.ranker).fit(data)
            advance(1)
            scores, targets, w = self._held_out(data, ranker, advance)
        if self.method == "isotonic":
            knots, levels = _strict_curve(scores, targets, w)
            curve_parts: dict[str, Any] = {"scores": knots, "levels": levels}
        else:
            slope, offset = _fit_sigmoid(scores, targets, w)
            curve_parts = {"slope": slope, "offset": offset}
        return FittedCalibration(
            ranker, float(targets.min()), float(targets.max()), bool(np.isin(targets, (0.0, 1.0)).all()), **curve_parts
        )

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows on the scale of y: expected grades, or probabilities of 1 if y was 0 and 1. See `Ranker.predict`.
        """
        scores = self.ranker_scores(X, qid, prior=prior)
        if hasattr(self, "levels_"):
            return np.interp(scores, self.scores_, self.levels_)
        with np.errstate(over="ignore"):  # an overflow gives 0 or 1
            return np.asarray(self.low_ + (self.high_ - self.low_) * expit(self.slope_ * scores + self.offset_))

    def ranker_scores(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Return the ranker's scores in input order, before calibration."""
        return np.asarray(self.ranker_._predict_queries(self._named_rows(X), qid, prior))

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> Floats:
        return self.predict(X, qid, prior=prior)

    @available_if(_is_binary)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Predict the probabilities of scores 0 and 1, shape (n_rows, 2)."""
        p = self.predict(X, qid, prior=prior)
        return np.column_stack([1.0 - p, p])

    def rank(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> NDArray[np.int64]:
        """Rank rows inside their queries by the ranker's scores, 1 for the best."""
        return np.asarray(self.ranker_.rank(self._named_rows(X), qid, prior=prior))

    def _held_out(
        self, data: RankingData, ranker: Ranker, advance: Callable[[int], object]
    ) -> tuple[Floats, Floats, Floats]:
        """Return scores of rows by models fitted without them, on the scale of `ranker`, with their y and weight."""
        assert data.y is not None
        codes = data.queries.codes
        scores, rows = [], []
        names = None if self._is_pairwise else data.names  # columns of a Gram matrix are rows
        weights = np.ones(data.n_rows) if data.weights is None else data.weights
        centre, spread = _moments(ranker._predict_queries(with_names(data.X, names), codes, data.prior), weights)
        for train, test in self._folds(data):
            model = clone(self.ranker)
            w = None if data.weights is None else data.weights[train]
            X = data.X[:, train] if self._is_pairwise else data.X
            prior = None if data.prior is None else data.prior[train]
            model.fit(with_names(X[train], names), data.y[train], qid=codes[train], sample_weight=w, prior=prior)
            advance(1)
            held = np.asarray(test)[data.is_scored[test]]
            if len(held):
                # whole queries, as a score may depend on the other rows of the query
                s = model._predict_queries(with_names(X, names), codes, data.prior)
                own_centre, own_spread = _moments(s, weights)
                factor = spread / own_spread if own_spread > 0.0 else 0.0
                scores.append(centre + factor * (s[held] - own_centre))
                rows.append(held)
        if not rows:
            raise InputError("cv holds out no scored row; use another splitter.")
        numbers = np.concatenate(rows)
        w = data.weight_of(numbers)
        kept = w > 0
        return np.concatenate(scores)[kept], data.y[numbers][kept], w[kept]

    def _n_folds(self, data: RankingData) -> int:
        """Return the number of folds for the progress bar; 1 if the splitter has no `n_splits`."""
        if not is_integer(self.cv):
            return len(self.cv) if isinstance(self.cv, list | tuple) else int(getattr(self.cv, "n_splits", 1))
        return min(int(self.cv), len(data.queries) if len(data.queries) > 1 else data.n_scored)

    def _folds(self, data: RankingData) -> Iterable[Any]:
        codes, n_queries = data.queries.codes, len(data.queries)
        if hasattr(self.cv, "split"):
            return self.cv.split(data.X, data.y, codes)  # type: ignore[no-any-return]
        if not is_integer(self.cv):
            return self.cv  # type: ignore[no-any-return]
        if n_queries > 1:
            return QueryKFold(min(int(self.cv), n_queries)).split(data.X, qid=codes)
        # assigned by score, so that every fold has low and high ones in any order of the rows
        part = np.empty(data.n_rows, dtype=np.int64)
        part[data.order] = np.arange(data.n_rows) % min(int(self.cv), data.n_scored)
        return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in np.unique(part)]


def _moments(scores: Floats, weights: Floats) -> tuple[float, float]:
    """Weighted mean and standard deviation."""
    mean = float(np.average(scores, weights=weights))
    return mean, float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))


def _fit_sigmoid(scores: Floats, y: Floats, w: Floats) -> tuple[float, float]:
    """Fit (y − low)/(high − low) by σ(a s + b), a ≥ 0; a row of target t counts as 1 with weight t and 0 with 1 − t."""
    low, high, w = y.min(), y.max(), w / w.sum()
    t = (y - low) / (high - low) if high > low else np.full(len(y), 0.5)
    centre, spread = _moments(scores, w)
    spread = spread or 1.0
    standard = (scores - centre) / spread
    model = LogisticRegression(C=_WEAK_PENALTY, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    model.fit(
        np.concatenate([standard, standard])[:, None],
        np.repeat([1, 0], len(t)),
        sample_weight=np.concatenate([w * t, w * (1.0 - t)]),
    )
    a, b = float(model.coef_[0, 0]), float(model.intercept_[0])
    if a < 0.0:
        # scores in the reverse order are uninformative for an increasing function
        mean = float(np.average(t, weights=w))
        return 0.0, float(np.log(mean / (1.0 - mean)))
    return a / spread, b - a * centre / spread


def _isotonic_points(scores: Floats, t: Floats, w: Floats, fitted: Floats) -> tuple[Floats, Floats]:
    """Return points of centred isotonic regression, on groups of rows with about equal Σ p (1 − p) of the fit p."""
    order = np.lexsort((t, scores))
    information = np.maximum(w * fitted * (1.0 - fitted), np.finfo(float).tiny)[order]
    before = np.cumsum(information) - information / 2.0
    group = np.empty(len(scores), dtype=np.int64)
    group[order] = np.minimum(_GROUPS * before / before[-1], _GROUPS - 1).astype(np.int64)
    _, group = np.unique(group, return_inverse=True)
    s, level, weight = _group_means(group, w, scores, t)
    level = IsotonicRegression().fit(s, level, weight).predict(s)
    _, block = np.unique(level, return_inverse=True)
    return _group_means(block, weight, s, level)[:2]


def _group_means(group: NDArray[np.int64], w: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the weighted means of a and b in each group, and its weight."""
    total = np.bincount(group, w).astype(np.float64)
    return np.bincount(group, w * a) / total, np.bincount(group, w * b) / total, total


def _logistic_share(scores: Floats, t: Floats, w: Floats) -> float:
    """Return λ: the largest share of the logistic fit within one standard error of the least cross-validated loss."""
    fold = np.empty(len(scores), dtype=np.int64)
    fold[np.lexsort((t, scores))] = np.arange(len(scores)) % _SHARE_FOLDS
    logistic, isotonic = np.empty(len(scores)), np.empty(len(scores))
    for k in range(_SHARE_FOLDS):
        train, test = fold != k, fold == k
        if not test.any() or np.ptp(t[train]) == 0.0:
            return 1.0
        a, b = _fit_sigmoid(scores[train], t[train], w[train])
        points = _isotonic_points(scores[train], t[train], w[train], expit(a * scores[train] + b))
        logistic[test], isotonic[test] = expit(a * scores[test] + b), np.interp(scores[test], *points)
    p = np.clip([share * logistic + (1.0 - share) * isotonic for share in _SHARES], 1e-12, 1.0 - 1e-12)
    losses = -t * np.log(p) - (1.0 - t) * np.log1p(-p)
    w = w / w.sum()
    excess = losses - losses[int(np.argmin(losses @ w))]
    means = excess @ w
    errors = np.sqrt((excess - means[:, None]) ** 2 @ w**2)
    return _SHARES[int(np.argmax(means <= errors))]


def _strict_curve(scores: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return the points of the strictly increasing function of the module's docstring."""
    low, high = y.min(), y.max()
    t = (y - low) / (high - low) if high > low else np.full(len(y), 0.5)
    slope, offset = _fit_sigmoid(scores, y, w)
    centre, spread = _moments(scores, w)
    spread = spread or 1.0
    points = _isotonic_points(scores, t, w, expit(slope * scores + offset))
    share = _logistic_share(scores, t, w)
    far = spread * 4.0 ** np.arange(64)
    logits = np.arange(-18.0, 18.25, 0.25) if slope * spread > 1e-6 else np.empty(0)
    s = np.unique(np.concatenate([centre - far, [centre], centre + far, points[0], (logits - offset) / (slope or 1.0)]))
    s = s[np.abs(s) < np.finfo(np.float32).max]  # exported models use float32
    u = (s - centre) / spread
    size = np.log1p(np.abs(u))
    rising = 0.5 + 0.5 * np.sign(u) * size / (1.0 + size)
    with np.errstate(over="ignore"):
        mixed = share * expit(slope * s + offset) + (1.0 - share) * np.interp(s, *points)
    p = np.maximum.accumulate((1.0 - _STRICT) * mixed + _STRICT * rising)
    return s, low + (high - low) * p


STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True, eq=False)
class Reliability:
    """Mean predictions and mean scores per bin; empty bins are left out."""

    predicted: Floats  # mean prediction of each bin, ascending
    observed: Floats  # mean score of each bin
    counts: NDArray[np.int64]  # number of rows of each bin

    @property
    def expected_error(self) -> float:
        """Expected calibration error Σ_b (n_b / n) |observed_b − predicted_b|."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.counts))

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve and the diagonal of perfect calibration."""
        pyplot = import_extra("matplotlib.pyplot", "report")
        ax = pyplot.subplots()[1] if ax is None else ax
        ends = [min(self.predicted.min(), self.observed.min()), max(self.predicted.max(), self.observed.max())]
        ax.plot(ends, ends, color="0.7", linestyle="--", label="perfect")
        ax.plot(self.predicted, self.observed, marker="o", label=f"expected error {self.expected_error:.3f}")
        ax.set_xlabel("mean prediction")
        ax.set_ylabel("mean score")
        ax.legend()
        return ax


def reliability_curve(
    y: ArrayLike, p: ArrayLike, n_bins: int = 10, strategy: Literal["uniform", "quantile"] = "uniform"
) -> Reliability:
    """Compare predictions with scores in bins (reliability diagram)."""
    predictions = as_numbers(p, "p", "prediction")
    if not np.isfinite(predictions).all():
        raise InputError("p holds NaN or infinity; pass a vector of finite predictions.")
    truth = as_scores(y, len(predictions))
    kept = ~np.isnan(truth)
    truth, predictions = truth[kept], predictions[kept]
    if len(truth) == 0:
        raise InputError("y contains no score; pass at least one.")
    check_values({"n_bins": n_bins, "strategy": strategy}, {"n_bins": integer(1), "strategy": one_of(*STRATEGIES)})
    bins = np.searchsorted(_edges(truth, predictions, n_bins, strategy), predictions)
    counts = np.bincount(bins)
    filled = counts > 0
    sums = [np.bincount(bins, weights=values)[filled] / counts[filled] for values in (predictions, truth)]
    return Reliability(sums[0], sums[1], counts[filled])


def _edges(y: Floats, p: Floats, n_bins: int, strategy: str) -> Floats:
    """Return the upper ends of all bins but the last."""
    if strategy == "quantile":
        return np.asarray(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1]))
    probable = min(y.min(), p.min()) >= 0.0 and max(y.max(), p.max()) <= 1.0
    low, high = (0.0, 1.0) if probable else (p.min(), p.max())
    return np.linspace(low, high, n_bins + 1)[1:-1]
