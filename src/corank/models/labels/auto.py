"""
AutoLabelRanker: an average of label rankers, weighted by cross-validation.

Each method m scores the rows of every fold without them, with quality q_m of each row (`LabelRanker.score`). Let g_m be
its mean distance from the best method and e the median of the standard errors of these distances. Then

    u(x) = Σ_m w_m u_m(x) / s_m,   w_m = e^(−3 g_m / e),

s_m the root mean square of the left-out utilities, centred in each row if there is no zero point; methods with w_m
below .01 are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import KFold

from corank.base.docs import shared_parameters
from corank.base.kernels.basis import as_doubles
from corank.errors import InputError
from corank.fitted import Relations, Shapes
from corank.models.labels.batch import StandardizedRows
from corank.models.labels.calibrated import CalibratedLabelRanker, PairwiseLabelRanker
from corank.models.labels.online import OnlineLabelRanker
from corank.models.labels.preferences import LabelPreferences
from corank.models.labels.ranker import LabelRanker, quality
from corank.models.labels.votes import ForestLabelRanker, NeighborLabelRanker, scaled_rows
from corank.parameters import Rules, Targets, integer, rng_of, seed

Floats = NDArray[np.float64]

# labels up to which one model for each pair of them is tried
_MAX_PAIRWISE = 16
# 3 of the weights, and the smallest weight of a member
_STEEPNESS, _MIN_WEIGHT = 3.0, 0.01


@dataclass(frozen=True, eq=False)
class FittedAutoLabels:
    """The fitted attributes of `AutoLabelRanker`."""

    members: list[LabelRanker]
    scales: Floats
    cv_scores: dict[str, float]
    column_mean: Floats
    column_scale: Floats


@shared_parameters
@dataclass(eq=False, repr=False)
class AutoLabelRanker(LabelRanker):
    """
    Label ranking by an average of up to five methods: linear in batch or online, pairwise, neighbours, forest.

    Columns are standardised and every method is cross-validated with its defaults. Methods near the best mean score (as
    in `score`), in units of its standard error, are fitted to all rows and averaged with weights.

    Parameters
    ----------
    {targets}
    cv : int
        Number of folds.
    {random_state}

    Attributes
    ----------
    members_ : list of LabelRanker
        The averaged rankers, best first, fitted to all rows with standardised columns.
    scales_ : array of shape (n_members,)
        Numbers by which their utilities are divided before the mean is taken: scales over weights.
    cv_scores_ : dict
        Mean cross-validated score of each method.
    column_mean_, column_scale_ : arrays of shape (n_features,)
        Columns are centred by the former (0 for sparse rows) and multiplied by the latter.
    {fitted_labels}

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
    >>> ranks = np.where(np.abs(X) < 0.5, [[1, 2, 3]], [[3, 2, 1]])  # no linear utilities order labels like this
    >>> model = AutoLabelRanker("ranks", random_state=0).fit(X, ranks)
    >>> type(model.members_[0]).__name__, model.predict([[0.1], [0.9]]).tolist()
    ('ForestLabelRanker', [[1, 2, 3], [3, 2, 1]])
    """

    _rules: ClassVar[Rules] = {"cv": integer(2), "random_state": seed}

    _shapes: ClassVar[Shapes] = {"column_mean_": ("n_features_in_",), "column_scale_": ("n_features_in_",)}

    _relations: ClassVar[Relations] = {
        "scales_ has a positive number for each member": lambda m: len(m._members) > 0 and (m._scales > 0.0).all(),
        "every member has these columns and labels": lambda m: all(
            len(member.classes_) == len(m.classes_)
            and (member.n_features_in_, member.kind_, member.is_calibrated_)
            == (m.n_features_in_, m.kind_, m.is_calibrated_)
            for member, _ in zip(m._members, m._scales, strict=True)
        ),
    }

    members_: list[LabelRanker] = field(init=False)
    scales_: Floats = field(init=False)
    cv_scores_: dict[str, float] = field(init=False)
    column_mean_: Floats = field(init=False)
    column_scale_: Floats = field(init=False)
    ranker_: LabelRanker = field(init=False)  # the only member of models of versions up to 0.3

    targets: Targets = "auto"
    _: KW_ONLY
    cv: int = 5
    random_state: Any = None

    def _fit(self, rows: Any, preferences: LabelPreferences) -> Any:
        n = rows.shape[0]
        if n < 2:
            raise InputError("X has one row, so no methods can be compared; use CalibratedLabelRanker.")
        scaling = StandardizedRows.of(rows, np.ones(n), scale=True, centre=not sparse.issparse(rows))
        standard = _standardized(rows, scaling.mean, scaling.factors)
        for_folds, for_steps = (int(each.integers(2**31)) for each in rng_of(self.random_state).spawn(2))
        makers: list[Callable[[], LabelRanker]] = [
            lambda: CalibratedLabelRanker(scale=False),
            lambda: OnlineLabelRanker(random_state=for_steps),
            lambda: NeighborLabelRanker(scale=False),
            lambda: ForestLabelRanker(random_state=for_steps),
        ]
        if preferences.shape[1] <= _MAX_PAIRWISE:
            makers.append(lambda: PairwiseLabelRanker(scale=False))
        folds = list(KFold(min(self.cv, n), shuffle=True, random_state=for_folds).split(np.empty(n)))
        trials = [_cross_validated(make, standard, preferences, folds) for make in makers]
        weights = member_weights(np.array([values for values, _ in trials]))
        chosen = [int(i) for i in np.argsort(-weights, kind="stable") if weights[i] >= _MIN_WEIGHT]
        members = [makers[i]().fit(standard, preferences) for i in chosen]
        scores = {type(make()).__name__: _mean(values) for make, (values, _) in zip(makers, trials, strict=True)}
        scales = np.array([trials[i][1] / weights[i] for i in chosen])
        return FittedAutoLabels(members, scales, scores, scaling.mean, scaling.factors)

    @property
    def _members(self) -> list[LabelRanker]:
        return self.members_ if hasattr(self, "members_") else [self.ranker_]

    @property
    def _scales(self) -> Floats:
        return self.scales_ if hasattr(self, "members_") else np.ones(1)

    def _utilities(self, rows: Any) -> Floats:
        standard = _standardized(rows, self.column_mean_, self.column_scale_)
        parts = [model.utilities(standard) / s for model, s in zip(self._members, self._scales, strict=True)]
        return np.asarray(sum(parts[1:], parts[0]) / len(parts))


def _cross_validated(make: Any, X: Any, preferences: LabelPreferences, folds: list[Any]) -> tuple[Floats, float]:
    """Return the quality of each row by a model that did not see it, NaN if unknown, and the scale of utilities."""
    values, squares = np.full(len(preferences), np.nan), []
    for train, test in folds:
        if preferences[train].counts().any():
            u = make().fit(X[train], preferences[train]).utilities(X[test])
            values[test] = quality(preferences[test], u)
            squares.append((u if preferences.is_calibrated else u - u.mean(axis=1, keepdims=True)) ** 2)
    return values, (float(np.sqrt(np.mean(np.concatenate(squares)))) if squares else 0.0) or 1.0


def member_weights(values: Floats) -> Floats:
    """Return w of each method; values are (n_methods, n_rows)."""
    known = values[:, ~np.isnan(values).any(axis=0)]
    if not known.size:
        return np.asarray(np.eye(len(values))[0])
    gaps = known[np.argmax(known.mean(axis=1))] - known
    errors = gaps.std(axis=1) / np.sqrt(known.shape[1])
    unit = float(np.median(errors[errors > 0.0])) if errors.any() else 1.0
    return np.asarray(np.exp(-_STEEPNESS * gaps.mean(axis=1) / unit))


def _mean(values: Floats) -> float:
    """Return the mean of what is known; −1 if nothing is."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else -1.0


def _standardized(rows: Any, mean: Floats, factors: Floats) -> Any:
    return scaled_rows(rows if sparse.issparse(rows) else as_doubles(rows) - mean, factors)
