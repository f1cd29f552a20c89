"""LabelRanker: what estimators of labels share, from reading rows and preferences to rankings, top lists and sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from corank.data.problem.rows import as_rows
from corank.errors import InputError
from corank.estimator.contract import Learner, Notes, check_parameters, checked_rows, install
from corank.label_ranking.encodings import answer, ranking, read_targets
from corank.label_ranking.measures import kendall_distance, kendall_tau, top_positions
from corank.label_ranking.preferences import LabelPreferences

Floats = NDArray[np.float64]


class LabelRanker(ClassifierMixin, Learner, ABC):
    """
    Base class of estimators that give every label a utility; one above 0, the zero point, is relevant.

    A subclass learns in `_learn`, which returns a frozen record whose fields become the fitted attributes, and computes
    utilities in `_utilities`. ``predict`` answers in the form of y.
    """

    targets: str
    classes_: NDArray[Any]
    kind_: str
    is_calibrated_: bool

    @abstractmethod
    def _utilities(self, rows: Any) -> Floats:
        """Utilities of the labels for checked rows, shape (n_rows, d)."""

    @abstractmethod
    def _check_state(self) -> None:
        """Raise where fitted attributes, which a file may have set, do not fit together."""

    def decision_function(self, X: Any) -> Floats:
        """
        Compute the utilities of the labels; above 0 is relevant, where the zero point was learnt.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of shape (n_rows, n_labels)
            Utilities, higher is better; of two classes, as scikit-learn has it, the difference of the second and the
            first, shape (n_rows,).
        """
        utilities = self.utilities(X)
        return utilities[:, 1] - utilities[:, 0] if self.kind_ == "classes" and utilities.shape[1] == 2 else utilities

    def utilities(self, X: Any) -> Floats:
        """
        Compute the utilities of the labels, always one per label.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of shape (n_rows, n_labels)
            Higher is better.
        """
        return self._utilities(checked_rows(self, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """
        Predict labels in the form of y.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_labels)
            Classes; an indicator matrix; positions, 1 for the best (also where pairs were learnt from); or positions of
            relevant labels and 0 for others.
        """
        utilities = self.utilities(X)
        return answer(self.kind_, utilities, self.classes_)

    def predict_ranking(self, X: Any) -> NDArray[np.int64]:
        """
        Predict the position of each label.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of int64, shape (n_rows, n_labels)
            1 for the best; of equal ones, the first label comes first.
        """
        return ranking(self.utilities(X))

    def predict_relevant(self, X: Any) -> NDArray[np.int64]:
        """
        Predict which labels are relevant: those of utility above 0.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        array of int64, shape (n_rows, n_labels)
            1 for relevant labels, 0 for others; a row may have none.
        """
        utilities = self.utilities(X)
        self._require_zero()
        return (utilities > 0.0).astype(np.int64)

    def predict_top(self, X: Any) -> list[NDArray[Any]]:
        """
        Predict the relevant labels, best first.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.

        Returns
        -------
        list of arrays
            Labels (of `classes_`) of each row; may be empty.
        """
        utilities = self.utilities(X)
        self._require_zero()
        order = np.argsort(-utilities, axis=1, kind="stable")
        return [self.classes_[row[u[row] > 0.0]] for row, u in zip(order, utilities, strict=True)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """
        Measure predictions in the way of y.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        y : array-like or LabelPreferences
            What is true, of the form that was learnt from.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float
            Share of right classes, or of rows whose every label is right; mean Kendall τ of rankings; 1 − mean
            `kendall_distance` of top lists; share of constraints that hold, of pairs.
        """
        utilities = self.utilities(X)
        truth, _ = read_targets(y, self.kind_ if self.kind_ != "pairs" else "auto", self.classes_)
        if len(truth) != len(utilities):
            raise InputError(f"y has {len(truth)} examples for {len(utilities)} rows of X; pass one per row.")
        values, found = _quality(truth, utilities), None if sample_weight is None else np.asarray(sample_weight)
        known = ~np.isnan(values)
        if not known.any():
            raise InputError("y orders no two labels of any row, so that there is nothing to measure; pass other rows.")
        return float(np.average(values[known], weights=None if found is None else found[known]))

    def _read(self, X: Any, y: Any, labels: Any = None) -> tuple[Any, LabelPreferences, NDArray[Any]]:
        """Check parameters, rows and targets."""
        check_parameters(self)
        rows = as_rows(X)
        preferences, labels = read_targets(y, self.targets, labels)
        if len(preferences) != rows.shape[0]:
            raise InputError(f"y has {len(preferences)} examples for {rows.shape[0]} rows of X; pass one per row.")
        return rows, preferences, labels

    def _installed(self, fitted: Any, notes: Notes) -> Self:
        """Install a record whose weights are finite."""
        weights = fitted.coef if fitted.coef is not None else fitted.dual_coef
        if not (np.isfinite(weights).all() and np.isfinite(fitted.intercept).all()):
            raise InputError("the numbers of X are too large to be learnt from; scale its columns.")
        return install(self, fitted, notes)

    def _require_zero(self) -> None:
        if not self.is_calibrated_:
            raise InputError(
                f"this model learnt from {self.kind_} that say nothing of the zero point, so that no label is known to "
                "be relevant; call predict_ranking, or learn from relevant and irrelevant labels."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _quality(truth: LabelPreferences, utilities: Floats) -> Floats:
    if truth.kind == "classes":
        return np.asarray(truth.levels.argmax(axis=1) == utilities.argmax(axis=1), dtype=np.float64)
    if truth.kind == "relevant":
        right = (utilities > 0.0) == (truth.sides == 1)
        return np.asarray((right | (truth.sides == 0)).all(axis=1), dtype=np.float64)
    if truth.kind == "ranks":
        return kendall_tau(truth.ranks(), ranking(utilities))
    if truth.kind == "top":
        found = np.where(utilities > 0.0, ranking(utilities), 0)
        return 1.0 - kendall_distance(truth.ranks(), top_positions(found))
    examples, winners, losers = truth.constraints()
    with_zero = np.hstack([utilities, np.zeros((len(utilities), 1))])
    holds = with_zero[examples, winners] > with_zero[examples, losers]
    counts = np.bincount(examples, minlength=len(truth))
    right = np.bincount(examples, weights=holds, minlength=len(truth))
    return np.asarray(np.divide(right, counts, out=np.full(len(truth), np.nan), where=counts > 0))
