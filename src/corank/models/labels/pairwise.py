"""
PairwiseLabelRanker: one logistic regression for each pair of labels, whose probabilities are summed as votes.

For labels r < s the rows that prefer one of them give a binary problem; its model p_rs(x) = σ(w_rs · x + b_rs), the
probability that r is preferred, minimises  mean log loss + alpha/2 ‖w_rs‖²,  and p_sr = 1 − p_rs. A label has the votes

    v_r(x) = Σ_{s ≠ r} p_rs(x).

The zero point of calibrated label ranking is one more label, 0: relevant labels are preferred to it, and it is
preferred to irrelevant ones. Utilities are u_r = v_r − v_0; without a zero point, v_r − (d − 1)/2. So d labels need
d(d − 1)/2 models, or d(d + 1)/2 with a zero point. A pair that no row compares has p = ½; a pair of n comparisons with
one outcome only has p = (n + 1)/(n + 2) for it.

References: Hüllermeier, Fürnkranz, Cheng and Brinker, Label ranking by learning pairwise preferences, 2008; Fürnkranz,
Hüllermeier, Loza Mencía and Brinker, Multilabel classification via calibrated label ranking, 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from corank.base.docs import shared_parameters
from corank.choices import Targets
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Shapes
from corank.models.labels.calibrated import CalibratedLabelRanker
from corank.models.labels.preferences import LabelPreferences
from corank.models.labels.ranker import TARGETS, LabelRanker
from corank.parameters import Rules, boolean, none, number, one_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedPairwiseLabels:
    """The fitted attributes of `PairwiseLabelRanker`."""

    pair_coef: Floats
    pair_intercept: Floats
    classes: NDArray[Any]
    kind: str
    is_calibrated: bool


@shared_parameters
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
    classes_ : array of shape (n_labels,)
        The labels: classes, column names of y if it is a frame, or numbers from 0.
    kind_ : str
        Kind of the targets, and form of predictions.
    is_calibrated_ : bool
        Whether the targets determine the zero point.

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> model = PairwiseLabelRanker(targets="ranks").fit(X, [[1, 2, 3], [1, 3, 2], [3, 2, 1], [3, 2, 1]])
    >>> model.predict([[0.0], [1.0]]).tolist()
    [[1, 2, 3], [3, 2, 1]]
    """

    _rules: ClassVar[Rules] = {
        "alpha": number(0, inside="()") | none,
        "targets": one_of(*TARGETS),
        "scale": boolean,
    }

    _shapes: ClassVar[Shapes] = {"pair_coef_": ("pairs", "n_features_in_"), "pair_intercept_": ("pairs",)}

    pair_coef_: Floats
    pair_intercept_: Floats

    def __init__(self, alpha: float | None = None, targets: Targets = "auto", *, scale: bool = True) -> None:
        self.alpha = alpha
        self.targets = targets
        self.scale = scale

    def _fitted(self, rows: Any, preferences: LabelPreferences, labels: NDArray[Any]) -> FittedPairwiseLabels:
        examples, winners, losers = preferences.constraints()
        if not len(examples):
            raise InputError(f"y orders no two labels in any of the {rows.shape[0]} rows; pass preferences.")
        pairs = _pairs(len(labels), preferences.is_calibrated)
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
        return FittedPairwiseLabels(coef, intercept, labels, preferences.kind, preferences.is_calibrated)

    def _utilities(self, rows: Any) -> Floats:
        d = len(self.classes_)
        p = expit(score_columns(rows, self.pair_coef_.T) + self.pair_intercept_)
        votes = np.zeros((rows.shape[0], d + 1))
        for i, (r, s) in enumerate(_pairs(d, self.is_calibrated_)):
            votes[:, r] += p[:, i]
            votes[:, s] += 1.0 - p[:, i]
        return np.asarray(votes[:, :d] - (votes[:, d:] if self.is_calibrated_ else 0.5 * (d - 1)))

    def _check_state(self) -> None:
        n_pairs = len(_pairs(len(self.classes_), self.is_calibrated_))
        if self.pair_coef_.shape != (n_pairs, self.n_features_in_) or self.pair_intercept_.shape != (n_pairs,):
            raise InputError(f"pair_coef_ or pair_intercept_ does not have {n_pairs} pairs of labels")


def _pairs(d: int, has_zero: bool) -> list[tuple[int, int]]:
    """Pairs of labels; label d is the zero point."""
    return list(combinations(range(d + has_zero), 2))
