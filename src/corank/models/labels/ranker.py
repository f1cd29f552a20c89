"""
LabelRanker: the base class of label rankers, from reading targets to rankings, top lists and sets of labels.

Measures of predicted labels, one number per example: of orders with ties, top lists, sets, and utilities.

Orders are tables of positions, 1 for the best; equal positions are ties (Fagin, Kumar, Mahdian, Sivakumar and Vee,
Comparing and aggregating rankings with ties, 2004). A top list is an order whose other labels share the last position
(`top_positions`). Take means, or compare two models example by example, with the numbers returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from corank.base.contract import Estimator, check_parameters, checked_rows, install, note_columns
from corank.core.labels.constraints import FOOTRULE, KENDALL, RHO, compare_orders
from corank.core.pairs.inversions import pair_losses
from corank.data.rows import as_rows, encode_categories
from corank.errors import InputError
from corank.fitted import Predictions, Shapes
from corank.metrics.measures import tau_b
from corank.models.labels.preferences import LabelPreferences, as_indicator, as_positions

Floats = NDArray[np.float64]


def kendall_distance(true: Any, predicted: Any) -> Floats:
    """Share of pairs of labels that two orders rank differently: Fagin's K^(½) over d(d − 1)/2."""
    return _compared(KENDALL, true, predicted)


def footrule_distance(true: Any, predicted: Any) -> Floats:
    """
    Spearman's footrule: sum of the differences of positions over its largest value, ⌊d²/2⌋; ties share a mean position.
    """
    return _compared(FOOTRULE, true, predicted)


def kendall_tau(true: Any, predicted: Any) -> Floats:
    """Kendall's τ-b; equal to 1 − 2 · `kendall_distance` without ties."""
    a, b = as_positions(true, "true"), as_positions(predicted, "predicted")
    _require_same(a, b)
    known = ~(np.isnan(a) | np.isnan(b))
    order = np.argsort(np.where(known, b, np.nan), axis=1, kind="stable")
    counted = np.arange(a.shape[1]) < known.sum(axis=1)[:, None]
    grades, scores = (np.take_along_axis(-side, order, axis=1)[counted] for side in (a, b))
    starts, out = np.append(0, np.cumsum(counted.sum(axis=1))), np.empty((len(a), 3))
    pair_losses(grades, scores, starts, 0, len(a), 0.0, out)
    return tau_b(*out.T)


def spearman_rho(true: Any, predicted: Any) -> Floats:
    """Spearman's ρ, the correlation of average positions."""
    return _compared(RHO, true, predicted)


def top_positions(positions: Any) -> Floats:
    """Convert top lists to orders of all labels, so that they can be compared."""
    values = as_positions(positions, "positions")
    return np.where((values == 0.0) | np.isnan(values), values.shape[1] + 1.0, values)


def hamming_loss(true: Any, predicted: Any) -> Floats:
    """Hamming loss: share of labels predicted wrongly."""
    a, b = _indicators(true, predicted)
    return np.asarray((a != b).mean(axis=1))


def subset_loss(true: Any, predicted: Any) -> Floats:
    """Subset 0/1 loss: whether any label is predicted wrongly."""
    a, b = _indicators(true, predicted)
    return np.asarray((a != b).any(axis=1), dtype=np.float64)


def f1(true: Any, predicted: Any) -> Floats:
    """F1 of sets: twice the number of labels in both over the sum of their sizes; 1 if both are empty."""
    a, b = _indicators(true, predicted)
    either = a.sum(axis=1) + b.sum(axis=1)
    return np.asarray(np.divide(2 * (a & b).sum(axis=1), either, out=np.ones(len(a)), where=either > 0))


def ranking_loss(true: Any, utilities: Any) -> Floats:
    """Ranking loss: share of pairs of a relevant and an irrelevant label in the wrong order; a tie is wrong."""
    a, u = _scored(true, utilities)
    wrong = np.zeros(len(a))
    for r in range(a.shape[1]):
        wrong += a[:, r] * (~a & (u >= u[:, [r]])).sum(axis=1)
    pairs = a.sum(axis=1) * (~a).sum(axis=1)
    return np.asarray(wrong / np.maximum(pairs, 1))


def one_error(true: Any, utilities: Any) -> Floats:
    """One-error: whether the best label is irrelevant; among several best labels, the share of irrelevant ones."""
    a, u = _scored(true, utilities)
    best = u == u.max(axis=1, keepdims=True)
    return np.where(a.any(axis=1), (best & ~a).sum(axis=1) / best.sum(axis=1), np.nan)


def coverage(true: Any, utilities: Any) -> Floats:
    """Coverage: number of labels with a utility at least that of the lowest relevant label."""
    a, u = _scored(true, utilities)
    lowest = np.where(a, u, np.inf).min(axis=1, keepdims=True)
    return np.asarray((u >= lowest).sum(axis=1), dtype=np.float64)


def average_precision(true: Any, utilities: Any) -> Floats:
    """
    Average precision: mean over relevant labels of the share of relevant ones among those ranked at least as high.
    """
    a, u = _scored(true, utilities)
    total = np.zeros(len(a))
    for r in range(a.shape[1]):
        as_high = u >= u[:, [r]]
        total += a[:, r] * (as_high & a).sum(axis=1) / as_high.sum(axis=1)
    relevant = a.sum(axis=1)
    return np.asarray(np.divide(total, relevant, out=np.ones(len(a)), where=relevant > 0))


def _compared(kind: int, true: Any, predicted: Any) -> Floats:
    a, b = as_positions(true, "true"), as_positions(predicted, "predicted")
    _require_same(a, b)
    out = np.empty(len(a))
    compare_orders(kind, -a, -b, out)
    return out


def _indicators(true: Any, predicted: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    a, b = as_indicator(true), as_indicator(predicted)
    _require_same(a, b)
    _require_known(a, b)
    return a == 1.0, b == 1.0


def _scored(true: Any, utilities: Any) -> tuple[NDArray[np.bool_], Floats]:
    a, u = as_indicator(true), as_positions(utilities, "utilities")
    _require_same(a, u)
    _require_known(a, u)
    return a == 1.0, u


def _require_same(a: Floats, b: Floats) -> None:
    if a.shape != b.shape:
        raise InputError(
            f"the truth has shape {a.shape} and the prediction {b.shape}; pass the same examples and labels."
        )


def _require_known(*tables: Floats) -> None:
    if any(np.isnan(table).any() for table in tables):
        raise InputError("the truth or the prediction contains NaN; compare labels that are known.")


class LabelRanker(ClassifierMixin, Estimator, ABC):
    """
    Base class of label rankers: every label has a utility, and labels above 0, the zero point, are relevant.

    A subclass learns in `_fit`, which returns a frozen record, and computes utilities in `_utilities`. ``predict``
    returns the form of y.
    """

    _shapes: ClassVar[Shapes] = {
        "coef_": ("labels", "n_features_in_"),
        "intercept_": ("labels",),
        "classes_": ("labels",),
    }
    _predictions: ClassVar[Predictions] = {
        "decision_function": lambda model, X: model.decision_function(X),
        "predict_ranking": lambda model, X: model.predict_ranking(X),
        "predict_top": lambda model, X: np.concatenate(model.predict_top(X)),
    }

    targets: str
    classes_: NDArray[Any]
    kind_: str
    is_calibrated_: bool

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows and their labels; see `targets`."""
        return self._learnt(X, y)

    def _learnt(self, X: Any, y: Any, *weights: Any) -> Self:
        """Check rows and targets, learn, and install the result."""
        X = encode_categories(X)
        rows, preferences, labels = self._read(X, y)
        if not preferences.counts().any():
            raise InputError(f"y orders no two labels in any of the {rows.shape[0]} rows; pass preferences.")
        record = self._fit(rows, preferences, *weights)
        return install(self, record, {**note_columns(X, rows), **notes_on(preferences, labels)})

    @abstractmethod
    def _fit(self, rows: Any, preferences: LabelPreferences) -> Any:
        """Learn from checked rows, and return the record of fitted attributes."""

    @abstractmethod
    def _utilities(self, rows: Any) -> Floats:
        """Return the utilities of the labels of checked rows, shape (n_rows, d)."""

    def decision_function(self, X: Any) -> Floats:
        """
        Return the utilities of the labels, shape (n_rows, n_labels); above 0 is relevant, if the zero point was learnt.

        For two classes, as in scikit-learn, the difference of the second and the first, shape (n_rows,).
        """
        utilities = self.utilities(X)
        return utilities[:, 1] - utilities[:, 0] if self.kind_ == "classes" and utilities.shape[1] == 2 else utilities

    def utilities(self, X: Any) -> Floats:
        """Return the utilities of the labels, always one per label; higher is better."""
        return self._utilities(checked_rows(self, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """
        Predict labels in the form of y.

        Classes; an indicator matrix; positions, 1 for the best (also after learning from pairs); or positions of
        relevant labels and 0 for others.
        """
        utilities = self.utilities(X)
        return to_prediction(self.kind_, utilities, self.classes_)

    def predict_ranking(self, X: Any) -> NDArray[np.int64]:
        """Predict the position of each label, 1 for the best; among equal utilities, the first label comes first."""
        return ranking(self.utilities(X))

    def predict_relevant(self, X: Any) -> NDArray[np.int64]:
        """Predict which labels are relevant, 1 or 0: those with a utility above 0; a row may have none."""
        utilities = self.utilities(X)
        self._require_zero()
        return (utilities > 0.0).astype(np.int64)

    def predict_top(self, X: Any) -> list[NDArray[Any]]:
        """Predict the relevant labels of each row, best first; a list may be empty."""
        utilities = self.utilities(X)
        self._require_zero()
        order = np.argsort(-utilities, axis=1, kind="stable")
        return [self.classes_[row[u[row] > 0.0]] for row, u in zip(order, utilities, strict=True)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """
        Return the quality of predictions, by a measure that suits the form of y.

        Classes: accuracy. Sets: share of rows without a wrong label. Rankings: mean Kendall τ. Top lists: 1 − mean
        `kendall_distance`. Pairs: share of satisfied constraints.
        """
        utilities = self.utilities(X)
        truth, _ = read_targets(y, self.kind_ if self.kind_ != "pairs" else "auto", self.classes_)
        if len(truth) != len(utilities):
            raise InputError(f"y has {len(truth)} examples for {len(utilities)} rows of X; pass one per row.")
        values, weights = quality(truth, utilities), None if sample_weight is None else np.asarray(sample_weight)
        known = ~np.isnan(values)
        if not known.any():
            raise InputError("y orders no two labels in any row, so no pair can be compared; pass other rows.")
        return float(np.average(values[known], weights=None if weights is None else weights[known]))

    def _read(self, X: Any, y: Any, labels: Any = None) -> tuple[Any, LabelPreferences, NDArray[Any]]:
        """Check parameters, rows and targets."""
        check_parameters(self)
        rows = as_rows(X)
        preferences, labels = read_targets(y, self.targets, labels)
        if len(preferences) != rows.shape[0]:
            raise InputError(f"y has {len(preferences)} examples for {rows.shape[0]} rows of X; pass one per row.")
        return rows, preferences, labels

    def _require_zero(self) -> None:
        if not self.is_calibrated_:
            raise InputError(
                f"this model learnt from {self.kind_} without a zero point, so it cannot predict which labels are "
                "relevant; call predict_ranking, or learn from relevant and irrelevant labels."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def notes_on(preferences: LabelPreferences, labels: NDArray[Any]) -> dict[str, Any]:
    """Return the fitted attributes that describe targets."""
    return {"classes_": labels, "kind_": preferences.kind, "is_calibrated_": preferences.is_calibrated}


def require_finite(*weights: Floats) -> None:
    """Raise `InputError` if weights are not finite."""
    if not all(np.isfinite(weight).all() for weight in weights):
        raise InputError("the weights overflow, as the values of X are too large; scale its columns.")


def quality(truth: LabelPreferences, utilities: Floats) -> Floats:
    """Return the quality of utilities (n, d) of each example, as in `LabelRanker.score`; NaN if nothing compares."""
    if truth.kind == "classes":
        return np.asarray(truth.levels.argmax(axis=1) == utilities.argmax(axis=1), dtype=np.float64)
    if truth.kind == "relevant":
        right = (utilities > 0.0) == (truth.sides == 1)
        return np.asarray((right | (truth.sides == 0)).all(axis=1), dtype=np.float64)
    if truth.kind == "ranks":
        return kendall_tau(truth.ranks(), ranking(utilities))
    if truth.kind == "top":
        positions = np.where(utilities > 0.0, ranking(utilities), 0)
        return 1.0 - kendall_distance(truth.ranks(), top_positions(positions))
    examples, winners, losers = truth.constraints()
    with_zero = np.hstack([utilities, np.zeros((len(utilities), 1))])
    holds = with_zero[examples, winners] > with_zero[examples, losers]
    counts = np.bincount(examples, minlength=len(truth))
    right = np.bincount(examples, weights=holds, minlength=len(truth))
    return np.asarray(np.divide(right, counts, out=np.full(len(truth), np.nan), where=counts > 0))


def read_targets(y: Any, targets: str, labels: Any = None) -> tuple[LabelPreferences, NDArray[Any]]:
    """Read y."""
    if y is None:
        raise InputError("this estimator requires y to be passed, but the target y is None; pass labels, one per row.")
    if hasattr(y, "to_numpy") and len(np.shape(y)) == 1:  # a column of a frame
        y = y.to_numpy()
    if isinstance(y, LabelPreferences):
        preferences = y
    else:
        preferences, classes = _read(y, _kind(y) if targets == "auto" else targets, labels)
        if classes is not None:
            return preferences, classes
    names = np.arange(preferences.shape[1])
    if hasattr(y, "columns") and all(isinstance(name, str) for name in y.columns):
        names = np.array(list(y.columns), dtype=object)
    if labels is not None and not np.array_equal(labels, names):
        raise InputError(f"y has the labels {names.tolist()}, but they were {list(labels)} before; pass the same ones.")
    return preferences, names


def to_prediction(kind: str, utilities: Floats, labels: NDArray[Any]) -> NDArray[Any]:
    """Convert utilities to a prediction in the form of y."""
    if kind == "classes":
        return np.asarray(labels[utilities.argmax(axis=1)])
    if kind == "relevant":
        return (utilities > 0.0).astype(np.int64)
    ranks = ranking(utilities)
    return np.where(utilities > 0.0, ranks, 0) if kind == "top" else ranks


def ranking(utilities: Floats) -> NDArray[np.int64]:
    """Return the position of each label, 1 for the best; among equal utilities, the lower number first."""
    return np.argsort(np.argsort(-utilities, axis=1, kind="stable"), axis=1).astype(np.int64) + 1


def _kind(y: Any) -> str:
    table = y.to_numpy() if hasattr(y, "to_numpy") else y
    if isinstance(table, np.ndarray) and table.dtype.kind == "f":
        if table.ndim == 2 and table.shape[1] > 1 and np.isin(table[~np.isnan(table)], (0.0, 1.0)).all():
            return "relevant"  # NaN is unknown
        assert_all_finite(table, input_name="y")
    kind = type_of_target(table, input_name="y")
    if kind == "multiclass-multioutput" or (kind.startswith("continuous") and np.ndim(y) == 2 and np.shape(y)[1] > 1):
        raise InputError(
            "y is a table with numbers other than 0 and 1; pass targets='ranks' (positions of labels, 1 for the best) "
            "or targets='top' (the same, 0 for irrelevant labels)."
        )
    return "relevant" if kind == "multilabel-indicator" else "classes"


def _read(y: Any, kind: str, labels: Any) -> tuple[LabelPreferences, NDArray[Any] | None]:
    if kind == "relevant":
        return LabelPreferences.from_indicator(y), None
    if kind == "ranks":
        return LabelPreferences.from_ranks(y), None
    if kind == "top":
        return LabelPreferences.from_top(y), None
    check_classification_targets(y)
    values = column_or_1d(y, warn=True)
    classes = np.unique(values) if labels is None else np.asarray(labels)
    codes = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
    if not (classes[codes] == values).all():
        unknown = values[classes[codes] != values].tolist()[0]
        raise InputError(f"y holds the class {unknown!r}, not one of {classes.tolist()}; pass all in `classes`.")
    if len(classes) < 2:
        raise InputError(f"y has only one class, {classes.tolist()[0]!r}; pass at least two classes.")
    return LabelPreferences.from_classes(codes, len(classes)), classes
