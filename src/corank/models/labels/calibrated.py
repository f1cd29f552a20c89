"""
CalibratedLabelRanker: batch learning of a linear utility per label, with a zero point (Brinker and Hüllermeier, 2005).

Minimises  mean over constraints of ℓ(u_r(x) − u_s(x)) + alpha/2 ‖W‖²,  u_r(x) = w_r · x + b_r for the labels
r = 1..d and u_0 = 0 for the zero point. The constraints of an example with preferences R, relevant labels P and
irrelevant ones N are u_r > u_s for (r, s) ∈ R ∪ P×N, u_r > 0 for r ∈ P, and u_r < 0 for r ∈ N.

The choice of constraints decides what a mistake costs (section 3 of the paper). All pairs count what Kendall's τ
counts. With neighbours only (d − 1 of them), distant inversions cost little: if the first and last of d labels are
exchanged, the share of violated constraints is 2/(d − 1) instead of (2d − 3)/(d(d − 1)/2). If only the lowest relevant
label must be above the zero point, missing a higher one costs less.

Cost: a product in Newton's method takes O(nnz(X) d + constraints) time and O(n_rows d + n_features d) memory.

PairwiseLabelRanker: one logistic regression for each pair of labels. For labels r < s, the probability that r is
preferred, p_rs(x) = σ(w_rs · x + b_rs), minimises  mean log loss + alpha/2 ‖w_rs‖²  over the rows that prefer one of
them, and p_sr = 1 − p_rs. A label has the votes  v_r(x) = Σ_{s ≠ r} p_rs(x).  The zero point is one more label, 0, and
utilities are u_r = v_r − v_0; without it, v_r − (d − 1)/2. A pair that no row compares has p = ½; one of n comparisons
with one outcome only has p = (n + 1)/(n + 2) for it.

References: Brinker and Hüllermeier, Calibrated label-ranking, NIPS workshop on learning to rank, 2005; Hüllermeier,
Fürnkranz, Cheng and Brinker, Label ranking by learning pairwise preferences, 2008; Fürnkranz, Hüllermeier, Loza Mencía
and Brinker, Multilabel classification via calibrated label ranking, 2008.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from corank.base.docs import shared_parameters
from corank.base.pairs.losses import Loss
from corank.data.inputs import as_weights
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Relations, Shapes
from corank.models.labels.batch import (
    LabelObjective,
    StandardizedRows,
    newton,
)
from corank.models.labels.preferences import LabelPreferences, as_conversion
from corank.models.labels.ranker import LabelRanker, require_finite
from corank.parameters import AboveZero, Conversion, Rules, Targets, boolean, integer, none, number

Floats = NDArray[np.float64]

# default alpha: this times the mean squared norm of rows over their number, see docs/experiments/label-ranking.md
_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class FittedCalibratedLabels:
    """The fitted attributes of `CalibratedLabelRanker`."""

    coef: Floats
    intercept: Floats
    alpha: float
    n_iter: int
    objective: float


@shared_parameters
@dataclass(eq=False, repr=False)
class CalibratedLabelRanker(LabelRanker):
    """
    Calibrated label ranking, learnt in batch: a linear utility per label, 0 between relevant and irrelevant ones.

    Parameters
    ----------
    {loss}
        The margin is the difference of two utilities.
    alpha : float or None
        Weight of ½‖W‖² against the mean loss over constraints. None means the mean squared norm of the rows, with
        columns scaled, divided by ten times their number.
    {targets}
    {conversion}
    {above_zero}
    {scale}
    fit_intercept : bool
        Whether labels have intercepts b, which have no penalty.
    tol : float
        Newton's method stops when the objective is above its minimum by at most this share of its value at W = 0.
    max_iter : int
        Largest number of Newton steps.

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        W, for the columns as given.
    intercept_ : array of shape (n_labels,)
        The intercepts b.
    {fitted_labels}
    alpha_ : float
        Weight of the penalty that was used.
    objective_ : float
        Final value of the objective.
    n_iter_ : int
        Number of Newton steps.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = CalibratedLabelRanker(targets="top").fit(X, [[1, 0, 0], [1, 2, 0], [2, 1, 0], [0, 1, 2]])
    >>> model.predict_ranking([[0.0], [3.0]]).tolist()
    [[1, 2, 3], [3, 1, 2]]
    >>> [top.tolist() for top in model.predict_top([[0.0], [2.5]])]
    [[0], [1, 0]]
    """

    _gone: ClassVar[tuple[str, ...]] = ("l1", "solver", "n_steps", "classifier", "random_state", "verbose")
    _rules: ClassVar[Rules] = {
        "alpha": number(0, inside="()") | none,
        "scale": boolean,
        "fit_intercept": boolean,
        "tol": number(0, 1, inside="()"),
        "max_iter": integer(1),
    }

    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)

    loss: Literal["logistic", "squared", "squared_hinge"] = "logistic"
    alpha: float | None = None
    targets: Targets = "auto"
    _: KW_ONLY
    conversion: Conversion = "all"
    above_zero: AboveZero = "all"
    scale: bool = True
    fit_intercept: bool = True
    tol: float = 1e-12
    max_iter: int = 200

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows and their labels, see `LabelRanker.fit`; a weight of 2 is equivalent to repeating the row."""
        return self._learnt(X, y, sample_weight)

    def _fit(
        self, rows: Any, preferences: LabelPreferences, sample_weight: ArrayLike | None = None
    ) -> FittedCalibratedLabels:
        n, counts = rows.shape[0], preferences.counts(self.conversion, self.above_zero)
        weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n, name="sample_weight")
        total = float(weights @ counts)
        if not total > 0.0:
            raise InputError(f"y orders no two labels in any of the {n} rows with positive weight; pass preferences.")
        # without intercepts, centring would move the zero point
        standardized = StandardizedRows.of(rows, weights, scale=self.scale, centre=bool(self.fit_intercept))
        alpha = _SHARE * standardized.mean_square(weights) / weights.sum() if self.alpha is None else float(self.alpha)
        problem = LabelObjective(
            standardized, preferences.targets, as_conversion(self.conversion, self.above_zero), Loss.of(self.loss),
            weights / total, counts, alpha if alpha > 0.0 else 1.0, bool(self.fit_intercept),
        )  # fmt: skip
        W, b, n_iter = newton(problem, self.tol, self.max_iter)
        coef, intercept = standardized.for_given_columns(W, b)
        require_finite(coef, intercept)
        return FittedCalibratedLabels(coef, intercept, problem.alpha, n_iter, problem.objective(W, b))

    def _utilities(self, rows: Any) -> Floats:
        return score_columns(rows, self.coef_.T) + self.intercept_


@dataclass(frozen=True, eq=False)
class FittedPairwiseLabels:
    """The fitted attributes of `PairwiseLabelRanker`."""

    pair_coef: Floats
    pair_intercept: Floats


@shared_parameters
@dataclass(eq=False, repr=False)
class PairwiseLabelRanker(LabelRanker):
    """
    Label ranking by pairwise preferences: a logistic regression for each pair of labels, and their votes.

    More flexible than one linear utility per label, and as fast to predict for some tens of labels; the number of
    models is quadratic in that of the labels.

    Parameters
    ----------
    alpha : float or None
        Weight of ½‖w‖² against the mean log loss of a pair. None means the mean squared norm of its rows, with columns
        scaled, divided by ten times their number.
    {targets}
    {scale}

    Attributes
    ----------
    pair_coef_ : array of shape (n_pairs, n_features)
        Weights of each pair of labels (0, 1), (0, 2), ..., for the columns as given; the zero point is the last label.
    pair_intercept_ : array of shape (n_pairs,)
        Their intercepts.
    {fitted_labels}

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> model = PairwiseLabelRanker(targets="ranks").fit(X, [[1, 2, 3], [1, 3, 2], [3, 2, 1], [3, 2, 1]])
    >>> model.predict([[0.0], [1.0]]).tolist()
    [[1, 2, 3], [3, 2, 1]]
    """

    _rules: ClassVar[Rules] = {
        "alpha": number(0, inside="()") | none,
        "scale": boolean,
    }

    _shapes: ClassVar[Shapes] = {"pair_coef_": ("pairs", "n_features_in_"), "pair_intercept_": ("pairs",)}
    _relations: ClassVar[Relations] = {
        "pair_intercept_ has every pair": lambda m: (
            len(m.pair_intercept_) == len(_pairs(len(m.classes_), m.is_calibrated_))
        )
    }

    pair_coef_: Floats = field(init=False)
    pair_intercept_: Floats = field(init=False)

    alpha: float | None = None
    targets: Targets = "auto"
    _: KW_ONLY
    scale: bool = True

    def _fit(self, rows: Any, preferences: LabelPreferences) -> FittedPairwiseLabels:
        examples, winners, losers = preferences.constraints()
        pairs = _pairs(preferences.shape[1], preferences.is_calibrated)
        coef, intercept = np.zeros((len(pairs), rows.shape[1])), np.zeros(len(pairs))
        for i, (r, s) in enumerate(pairs):
            first, second = (winners == r) & (losers == s), (winners == s) & (losers == r)
            if first.any() and second.any():
                compared = first | second
                model = CalibratedLabelRanker(alpha=self.alpha, targets="relevant", scale=self.scale)
                model.fit(rows[examples[compared]], first[compared, None].astype(np.int64))
                coef[i], intercept[i] = model.coef_[0], model.intercept_[0]
            else:
                intercept[i] = np.log1p(first.sum()) - np.log1p(second.sum())
        return FittedPairwiseLabels(coef, intercept)

    def _utilities(self, rows: Any) -> Floats:
        d = len(self.classes_)
        p = expit(score_columns(rows, self.pair_coef_.T) + self.pair_intercept_)
        votes = np.zeros((rows.shape[0], d + 1))
        for i, (r, s) in enumerate(_pairs(d, self.is_calibrated_)):
            votes[:, r] += p[:, i]
            votes[:, s] += 1.0 - p[:, i]
        return np.asarray(votes[:, :d] - (votes[:, d:] if self.is_calibrated_ else 0.5 * (d - 1)))


def _pairs(d: int, has_zero: bool) -> list[tuple[int, int]]:
    """Pairs of labels; label d is the zero point."""
    return list(combinations(range(d + has_zero), 2))
