"""
OnlineLabelRanker: Algorithm 1 of Brinker and Hüllermeier, one example after the other, linear or with a kernel.

An example whose prediction costs loss > 0 moves the weights of label i by  loss · β_i / c · x,  β_i the violated
constraints that ask for a higher utility of i less those that ask for a lower one, c all violated ones; ties violate.
With the mean of the iterates (`average`) as the model. Cost: O(nnz(x) d + constraints of x) an example, O(n_features d)
memory, whatever the length of the stream; with a kernel O(support · d) an example, and the support is kept.

On a stream that some weights of norm 1 separate with margin γ, examples of length at most ρ: c constraints of one
example pull together by at most √2 c ρ, so that the sum of all losses is at most Λ 2ρ²/γ², Λ the largest loss: the
perceptron's bound, by the perceptron's proof. It stops growing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.core.labels import online as label_steps
from corank.core.labels.online import N_TALLIES, StepPlan, StepState, learn_dual, learn_linear
from corank.core.rows.access import as_core_rows
from corank.errors import InputError
from corank.estimator.contract import check_columns, kept_columns, note_columns
from corank.kernels import Basis, Kernel, as_kernel, is_precomputed
from corank.kernels.basis import as_doubles
from corank.kernels.views import View
from corank.label_ranking.encodings import TARGETS
from corank.label_ranking.preferences import ABOVE_ZERO, CONVERSIONS, LabelPreferences, as_conversion
from corank.label_ranking.ranker import LabelRanker
from corank.parameters import Rules, boolean, none, one_of, rng_of, seed, whole
from corank.parameters import kernel as a_kernel

Floats = NDArray[np.float64]

RANKING_LOSSES = {
    "share": label_steps.SHARE,
    "kendall": label_steps.KENDALL,
    "footrule": label_steps.FOOTRULE,
    "zero_one": label_steps.ZERO_ONE,
    "hamming": label_steps.HAMMING,
}
"""Losses of a whole prediction, and their codes in the kernels."""

PROJECTIONS = {
    "ranks": label_steps.ORDER,
    "pairs": label_steps.ORDER,
    "top": label_steps.TOP,
    "relevant": label_steps.SET,
    "classes": label_steps.BEST,
}

# examples between two looks at the keyboard, and similarities that are held at a time
_AT_ONCE, _SIMILARITIES = 1 << 16, 1 << 22


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learnt; see the attributes of `OnlineLabelRanker`."""

    classes: NDArray[Any]
    kind: str
    is_calibrated: bool
    intercept: Floats
    cumulative_loss: float
    n_iter: int
    run: dict[str, Floats]
    coef: Floats | None = None
    dual_coef: Floats | None = None
    basis: Basis | None = None
    kernel: Kernel | None = None


class OnlineLabelRanker(LabelRanker):
    """
    Learn to rank labels from a stream, one example at a time.

    Parameters
    ----------
    ranking_loss : {"share", "kendall", "footrule", "zero_one", "hamming"}
        What a prediction costs, and so how far a step goes: the share of violated constraints; Kendall's or Spearman's
        distance of orders with ties; whether anything is wrong; the share of labels on the wrong side of zero.
    targets : {"auto", "classes", "relevant", "ranks", "top"}
        How y is read, see `CalibratedLabelRanker`.
    kernel : str, Kernel, callable or None
        A similarity of rows; None learns weights of columns.
    conversion : {"all", "adjacent"}
        Which pairs of an order are constraints: all of them, or neighbours.
    above_zero : {"all", "lowest"}
        Which relevant labels must be above the zero point: all of them, or the lowest where they are ranked.
    average : bool
        Whether the mean of the weights after every example is the model, or the last.
    n_epochs : int
        How often ``fit`` goes over the examples, each time in a new order; `partial_fit` goes once, as they come.
    fit_intercept : bool
        Whether every row has one more column, of ones.
    random_state : int, RandomState or None
        Shuffles, and chooses the rows of a median bandwidth.

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        Weights; not with a kernel.
    basis_, dual_coef_, kernel_ : Basis, array of shape (n_support, n_labels), Kernel
        Examples that were stepped on, their coefficients, and the kernel; only with one.
    intercept_ : array of shape (n_labels,)
        Weights of the column of ones.
    classes_ : array of shape (n_labels,)
        The labels: classes, names of the columns of y where it is a frame, or numbers from 0.
    kind_ : str
        What was learnt from, and the form of predictions.
    is_calibrated_ : bool
        Whether anything was known of the zero point.
    cumulative_loss_ : float
        Sum of what every prediction cost before its step.
    n_iter_ : int
        Examples seen.
    run_ : dict
        What `partial_fit` needs to go on bit for bit.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> Y = (X > 0).astype(int)
    >>> model = OnlineLabelRanker("hamming")
    >>> for start in range(0, 500, 100):
    ...     model = model.partial_fit(X[start : start + 100], Y[start : start + 100])
    >>> model.n_iter_, model.score(X, Y) > 0.8
    (500, True)
    """

    _rules: ClassVar[Rules] = {
        "ranking_loss": one_of(*RANKING_LOSSES),
        "targets": one_of(*TARGETS),
        "kernel": a_kernel | none,
        "conversion": one_of(*CONVERSIONS),
        "above_zero": one_of(*ABOVE_ZERO),
        "average": boolean,
        "n_epochs": whole(0),
        "fit_intercept": boolean,
        "random_state": seed,
    }

    coef_: Floats
    intercept_: Floats
    dual_coef_: Floats
    basis_: Basis
    kernel_: Kernel
    run_: dict[str, Floats]

    def __init__(
        self,
        ranking_loss: str = "share",
        targets: str = "auto",
        kernel: Any = None,
        *,
        conversion: str = "all",
        above_zero: str = "all",
        average: bool = True,
        n_epochs: int = 10,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.ranking_loss = ranking_loss
        self.targets = targets
        self.kernel = kernel
        self.conversion = conversion
        self.above_zero = above_zero
        self.average = average
        self.n_epochs = n_epochs
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """
        Go over examples `n_epochs` times, each time in a new order.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or (n_rows, n_labels), or LabelPreferences
            What is known of their labels; see `targets`.

        Returns
        -------
        self
            The fitted ranker.
        """
        rows, preferences, labels = self._read(X, y)
        notes = note_columns(X, rows)
        self._check_preferences(preferences)
        if not preferences.counts(self.conversion, self.above_zero).any():
            raise InputError(f"y orders no two labels in any of the {rows.shape[0]} rows; pass preferences.")
        for_kernel, for_order = rng_of(self.random_state).spawn(2)
        n = rows.shape[0]
        orders = (for_order.permutation(n) for _ in range(self.n_epochs))
        start = self._begun(rows, len(labels), for_kernel)
        return self._installed(self._passed(rows, preferences, labels, orders, *start), notes)

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """
        Go over further examples once, in their order.

        Parameters
        ----------
        X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or (n_rows, n_labels), or LabelPreferences
            What is known of their labels; see `targets`.
        classes : array-like, optional
            All classes that will come, where the first part of a stream may lack one.

        Returns
        -------
        self
            The fitted ranker; parts of a stream give, bit for bit, what the stream gives as a whole. What a kernel
            takes from the data, such as a median bandwidth, is that of the first part.
        """
        continues = hasattr(self, "run_")
        named = None if classes is None else np.unique(np.asarray(classes))
        if continues and named is not None and not np.array_equal(named, self.classes_):
            raise InputError(f"classes is {named.tolist()}, but it was {self.classes_.tolist()} before; leave it out.")
        rows, preferences, labels = self._read(X, y, self.classes_ if continues else named)
        self._check_preferences(preferences)
        if continues:
            check_columns(self, X, rows)
            notes = kept_columns(self)
            start = self._resumed(rows, preferences)
        else:
            notes = note_columns(X, rows)
            start = self._begun(rows, len(labels), rng_of(self.random_state).spawn(1)[0])
        orders = (np.arange(rows.shape[0]),)
        return self._installed(self._passed(rows, preferences, labels, orders, *start), notes)

    def _check_preferences(self, preferences: LabelPreferences) -> None:
        if self.kernel is not None and is_precomputed(self.kernel):
            raise InputError("kernel='precomputed' holds similarities, but rows are kept; choose another kernel.")
        if self.ranking_loss == "hamming" and not preferences.is_calibrated:
            raise InputError(
                f"ranking_loss='hamming' counts labels on the wrong side of the zero point, of which "
                f"{preferences.kind} say nothing; choose 'share' or 'kendall'."
            )
        if self.ranking_loss in ("kendall", "footrule") and preferences.kind == "pairs":
            raise InputError(
                f"ranking_loss={self.ranking_loss!r} compares orders, but y holds pairs; choose 'share' or 'zero_one'."
            )

    def _begun(self, rows: Any, d: int, rng: np.random.Generator) -> tuple[StepState, Basis | None]:
        """Return a model of zeros."""
        n, basis = rows.shape[0], None
        shape = (d, rows.shape[1])
        if self.kernel is not None:
            view = View(None, as_kernel(self.kernel)).fit(rows, rng)
            basis, shape = Basis.of(view, rows, np.arange(n)), (n, d)
            basis.check(rows)
        sums = np.zeros(shape if self.average else (0, 0))
        return StepState(np.zeros(shape), sums, np.zeros(d), np.zeros(d), np.zeros(N_TALLIES)), basis

    def _resumed(self, rows: Any, preferences: LabelPreferences) -> tuple[StepState, Basis | None]:
        """Return the model so far, with room for new rows where there is a kernel."""
        if preferences.kind != self.kind_:
            raise InputError(
                f"y holds {preferences.kind}, but this model learnt from {self.kind_}; pass the same kind."
            )
        if hasattr(self, "basis_") != (self.kernel is not None):
            raise InputError("kernel was changed since this model was begun; fit it anew.")
        if bool(self.average) != (self.run_["sums"].size > 0):
            raise InputError(f"average is {self.average}, but this model was begun with the other; fit it anew.")
        state = StepState(**{name: part.copy() for name, part in self.run_.items()})
        if not hasattr(self, "basis_"):
            return state, None
        old, new = self.basis_.rows, as_doubles(rows)
        is_sparse = sparse.issparse(old) or sparse.issparse(new)
        both = sparse.vstack([old, new], format="csr") if is_sparse else np.vstack([old, new])
        more = np.zeros((rows.shape[0], preferences.shape[1]))
        basis = Basis(self.basis_.view, np.arange(both.shape[0]), both)
        grown = np.vstack([state.weights, more]), np.vstack([state.sums, more]) if self.average else state.sums
        return StepState(*grown, state.biases, state.bias_sums, state.tally), basis

    def _passed(
        self,
        rows: Any,
        preferences: LabelPreferences,
        labels: NDArray[Any],
        orders: Any,
        state: StepState,
        basis: Basis | None,
    ) -> Fitted:
        """Take the steps, and return the model."""
        plan = StepPlan(
            as_conversion(self.conversion, self.above_zero),
            RANKING_LOSSES[self.ranking_loss],
            PROJECTIONS[preferences.kind],
            bool(self.average),
            bool(self.fit_intercept),
        )
        n, first = rows.shape[0], 0 if basis is None else len(basis) - rows.shape[0]
        core, targets = as_core_rows(rows), preferences.targets
        step = _AT_ONCE if basis is None else max(1, _SIMILARITIES // max(len(basis), 1))
        for order in orders:
            for start in range(0, n, step):
                some = order[start : start + step]
                if basis is None:
                    learn_linear(core, some.astype(np.uint64), targets, plan, state)
                else:
                    own = (first + some).astype(np.uint64)
                    learn_dual(basis.similarities(rows[some]), own, preferences[some].targets, plan, state)
        is_calibrated = preferences.is_calibrated or getattr(self, "is_calibrated_", False)
        return self._fitted(state, basis, (labels, preferences.kind, is_calibrated))

    def _fitted(self, state: StepState, basis: Basis | None, what: tuple[NDArray[Any], str, bool]) -> Fitted:
        if basis is not None:
            is_used = state.weights.any(axis=1) | (state.sums.any(axis=1) if self.average else False)
            kept = np.flatnonzero(is_used)
            basis = Basis(basis.view, np.arange(len(kept)), basis.rows[kept])
            sums = state.sums[kept] if self.average else state.sums
            state = state._replace(weights=state.weights[kept], sums=sums)
        seen = max(float(state.tally[label_steps.SEEN]), 1.0)
        weights, biases = state.weights.copy(), state.biases.copy()
        if self.average:
            weights -= state.sums / seen
            biases -= state.bias_sums / seen
        loss, n_iter = float(state.tally[label_steps.CUMULATED]), int(state.tally[label_steps.SEEN])
        run = dict(zip(StepState._fields, state, strict=True))
        if basis is None:
            return Fitted(*what, biases, loss, n_iter, run, coef=weights)
        return Fitted(*what, biases, loss, n_iter, run, dual_coef=weights, basis=basis, kernel=basis.view.kernel)

    def _utilities(self, rows: Any) -> Floats:
        if hasattr(self, "basis_"):
            return self.basis_.score(rows, self.dual_coef_) + self.intercept_
        return np.asarray(rows @ self.coef_.T + self.intercept_, dtype=np.float64)

    def _check_state(self) -> None:
        d = len(self.classes_)
        shape = (len(self.basis_), d) if hasattr(self, "basis_") else (d, self.n_features_in_)
        wanted = {
            "weights": shape,
            "sums": shape if self.average else (0, 0),
            "biases": (d,),
            "bias_sums": (d,),
            "tally": (N_TALLIES,),
        }
        found = {name: np.shape(part) for name, part in self.run_.items()}
        weights = self.dual_coef_ if hasattr(self, "basis_") else self.coef_
        if found != wanted or weights.shape != shape or self.intercept_.shape != (d,):
            raise InputError(f"the weights are not of {d} labels")
        if self.kind_ not in PROJECTIONS or not all(np.isfinite(part).all() for part in self.run_.values()):
            raise InputError("the steps so far are no numbers, or of no known kind")
