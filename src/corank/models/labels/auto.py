"""AutoLabelRanker: choose among linear, online, pairwise, nearest-neighbour and forest label rankers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import KFold

from corank.base.docs import shared_parameters
from corank.base.kernels.basis import as_doubles
from corank.choices import Targets
from corank.errors import InputError
from corank.fitted import Shapes
from corank.models.labels.batch import StandardizedRows
from corank.models.labels.calibrated import CalibratedLabelRanker
from corank.models.labels.forest import ForestLabelRanker
from corank.models.labels.neighbors import NeighborLabelRanker, scaled_rows
from corank.models.labels.online import OnlineLabelRanker
from corank.models.labels.pairwise import PairwiseLabelRanker
from corank.models.labels.preferences import LabelPreferences
from corank.models.labels.ranker import TARGETS, LabelRanker, quality
from corank.parameters import Rules, integer, one_of, rng_of, seed

Floats = NDArray[np.float64]

# labels up to which one model for each pair of them is tried
_MAX_PAIRWISE = 16


@dataclass(frozen=True, eq=False)
class FittedAutoLabels:
    """The fitted attributes of `AutoLabelRanker`."""

    classes: NDArray[Any]
    kind: str
    is_calibrated: bool
    ranker: LabelRanker
    cv_scores: dict[str, float]
    column_mean: Floats
    column_scale: Floats


@shared_parameters
class AutoLabelRanker(LabelRanker):
    """
    Label ranking by the best of five methods: linear in batch or online, pairwise, nearest neighbours, or a forest.

    Columns are standardised, every method is cross-validated with its defaults, and the one with the best mean score
    (as in `score`) is fitted to all rows.

    Parameters
    ----------
    {targets}
    cv : int
        Number of folds.
    {random_state}

    Attributes
    ----------
    ranker_ : LabelRanker
        The chosen ranker, fitted to all rows with standardised columns.
    cv_scores_ : dict
        Mean cross-validated score of each method.
    column_mean_, column_scale_ : arrays of shape (n_features,)
        Columns are centred by the former (0 for sparse rows) and multiplied by the latter.
    classes_ : array of shape (n_labels,)
        The labels: classes, column names of y if it is a frame, or numbers from 0.
    kind_ : str
        Kind of the targets, and form of predictions.
    is_calibrated_ : bool
        Whether the targets determine the zero point.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
    >>> ranks = np.where(np.abs(X) < 0.5, [[1, 2, 3]], [[3, 2, 1]])  # no linear utilities order labels like this
    >>> model = AutoLabelRanker("ranks", random_state=0).fit(X, ranks)
    >>> type(model.ranker_).__name__, model.predict([[0.1], [0.9]]).tolist()
    ('ForestLabelRanker', [[1, 2, 3], [3, 2, 1]])
    """

    _rules: ClassVar[Rules] = {"targets": one_of(*TARGETS), "cv": integer(2), "random_state": seed}

    _shapes: ClassVar[Shapes] = {"column_mean_": ("n_features_in_",), "column_scale_": ("n_features_in_",)}

    ranker_: LabelRanker
    cv_scores_: dict[str, float]
    column_mean_: Floats
    column_scale_: Floats

    def __init__(self, targets: Targets = "auto", *, cv: int = 5, random_state: Any = None) -> None:
        self.targets = targets
        self.cv = cv
        self.random_state = random_state

    def _fitted(self, rows: Any, preferences: LabelPreferences, labels: NDArray[Any]) -> FittedAutoLabels:
        n = rows.shape[0]
        if not preferences.counts().any():
            raise InputError(f"y orders no two labels in any of the {n} rows; pass preferences.")
        if n < 2:
            raise InputError("X has one row, so no methods can be compared; use CalibratedLabelRanker.")
        scaling = StandardizedRows.of(rows, np.ones(n), scale=True, centre=not sparse.issparse(rows))
        standard = _standardized(rows, scaling.mean, scaling.factors)
        for_folds, for_steps = (int(each.integers(2**31)) for each in rng_of(self.random_state).spawn(2))
        makers: dict[str, Callable[[], LabelRanker]] = {
            "CalibratedLabelRanker": lambda: CalibratedLabelRanker(scale=False),
            "OnlineLabelRanker": lambda: OnlineLabelRanker(random_state=for_steps),
            "NeighborLabelRanker": lambda: NeighborLabelRanker(scale=False),
            "ForestLabelRanker": lambda: ForestLabelRanker(random_state=for_steps),
        }
        if len(labels) <= _MAX_PAIRWISE:
            makers["PairwiseLabelRanker"] = lambda: PairwiseLabelRanker(scale=False)
        folds = list(KFold(min(self.cv, n), shuffle=True, random_state=for_folds).split(np.empty(n)))
        scores = {name: _cross_validated(make, standard, preferences, folds) for name, make in makers.items()}
        ranker: Any = makers[max(scores, key=lambda name: scores[name])]()
        ranker.fit(standard, preferences)
        return FittedAutoLabels(
            labels, preferences.kind, preferences.is_calibrated, ranker, scores, scaling.mean, scaling.factors
        )

    def _utilities(self, rows: Any) -> Floats:
        return self.ranker_.utilities(_standardized(rows, self.column_mean_, self.column_scale_))

    def _check_state(self) -> None:
        self.ranker_._check_state()
        if len(self.ranker_.classes_) != len(self.classes_) or self.ranker_.n_features_in_ != self.n_features_in_:
            raise InputError("ranker_ has other labels or columns")
        if (self.ranker_.kind_, self.ranker_.is_calibrated_) != (self.kind_, self.is_calibrated_):
            raise InputError("ranker_ has another kind of targets")


def _cross_validated(make: Any, X: Any, preferences: LabelPreferences, folds: list[Any]) -> float:
    """Return the mean quality of rows by models that did not see them; −1 if none of them can be learnt or judged."""
    values = []
    for train, test in folds:
        if preferences[train].counts().any():
            values.append(quality(preferences[test], make().fit(X[train], preferences[train]).utilities(X[test])))
    known = np.concatenate([np.empty(0), *values])
    return float(np.nanmean(known)) if (~np.isnan(known)).any() else -1.0


def _standardized(rows: Any, mean: Floats, factors: Floats) -> Any:
    return scaled_rows(rows if sparse.issparse(rows) else as_doubles(rows) - mean, factors)
