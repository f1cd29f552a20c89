"""
OnlineLabelRanker: the perceptron of Brinker and Hüllermeier (Algorithm 1), linear or with a kernel.

An example with loss > 0 moves the weights of label i by  loss · β_i / c · x.  β_i is the number of violated constraints
that require a higher utility of i, minus those that require a lower one; c is the number of all violated ones; ties
violate. The model is the mean of the iterates (`average`) or the last one. An example costs O(nnz(x) d + constraints of
x) time; memory is O(n_features d), independent of the length of the stream. With a kernel an example costs
O(support · d), and the support is stored.

If weights of norm 1 separate a stream with margin γ, and examples have norm at most ρ, then c constraints of one
example move the weights by at most √2 c ρ. As for the perceptron, the sum of all losses is at most Λ 2ρ²/γ², Λ the
largest loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.base.contract import check_columns, install, kept_columns, note_columns
from corank.base.docs import shared_parameters
from corank.base.kernels import Kernel, as_kernel
from corank.base.kernels.basis import Basis, as_doubles
from corank.base.kernels.kernel import is_precomputed
from corank.base.kernels.views import View
from corank.core.labels import online as label_steps
from corank.core.labels.online import N_TALLIES, StepPlan, StepState, learn_dual, learn_linear
from corank.core.rows.access import as_core_rows
from corank.data.inputs import require_range
from corank.data.rows import encode_categories, encode_like
from corank.data.scoring import score_columns
from corank.errors import InputError
from corank.fitted import Relations
from corank.models.labels.preferences import LabelPreferences, as_conversion
from corank.models.labels.ranker import LabelRanker, notes_on, require_finite
from corank.parameters import AboveZero, Conversion, Rule, Rules, Targets, boolean, integer, none, one_of, rng_of, seed
from corank.parameters import kernel as a_kernel

RankingLoss = Literal["share", "kendall", "footrule"]
Floats = NDArray[np.float64]

RANKING_LOSSES = {
    "share": label_steps.SHARE,
    "kendall": label_steps.KENDALL,
    "footrule": label_steps.FOOTRULE,
}
"""Losses of a whole prediction and their codes in the kernels."""

PROJECTIONS = {
    "ranks": label_steps.ORDER,
    "pairs": label_steps.ORDER,
    "top": label_steps.TOP,
    "relevant": label_steps.SET,
    "classes": label_steps.BEST,
}

# examples between two checks for an interrupt, and similarities in memory at a time
_BATCH_SIZE, _SIMILARITIES = 1 << 16, 1 << 22


@dataclass(frozen=True, eq=False)
class FittedOnlineLabels:
    """The fitted attributes of `OnlineLabelRanker`."""

    intercept: Floats
    cumulative_loss: float
    n_iter: int
    run: dict[str, Floats]
    coef: Floats | None = None
    dual_coef: Floats | None = None
    basis: Basis | None = None
    kernel: Kernel | None = None


@shared_parameters
@dataclass(eq=False, repr=False)
class OnlineLabelRanker(LabelRanker):
    """
    Calibrated label ranking, learnt online by a perceptron: one example at a time, from streams of any length.

    Parameters
    ----------
    ranking_loss : {"share", "kendall", "footrule"} or callable
        Loss of a prediction, which sets the size of a step: the share of violated constraints, or Kendall's distance
        or Spearman's footrule of orders with ties, as the paper proposes. It was measured to matter little: Kendall's
        distance of top lists 0.2879 with "kendall" against 0.2887 with "share" on sushi. A callable gets the
        `LabelPreferences` of one example and its utilities, and returns a finite number from 0; it is called for every
        example, in Python.
    {targets}
    kernel : str, Kernel, callable or None
        A similarity of rows; None learns weights of columns.
    {conversion}
    {above_zero}
    average : bool
        Whether the model is the mean of the weights after every example, or the last weights.
    n_epochs : int
        Number of passes of ``fit`` through the examples, each in a new random order. `partial_fit` takes one pass, in
        the given order.
    fit_intercept : bool
        Whether to add a column of ones to every row.
    {random_state}

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        Weights; not with a kernel.
    basis_, dual_coef_, kernel_ : Basis, array of shape (n_support, n_labels), Kernel
        Support examples, their coefficients, and the kernel; only with a kernel.
    intercept_ : array of shape (n_labels,)
        Weights of the column of ones.
    {fitted_labels}
    cumulative_loss_ : float
        Sum of the losses of all predictions, each before its step.
    n_iter_ : int
        Number of examples so far.
    run_ : dict
        State from which `partial_fit` continues bit for bit.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> Y = (X > 0).astype(int)
    >>> model = OnlineLabelRanker("kendall")
    >>> for start in range(0, 500, 100):
    ...     model = model.partial_fit(X[start : start + 100], Y[start : start + 100])
    >>> model.n_iter_, model.score(X, Y) > 0.8
    (500, True)
    """

    _rules: ClassVar[Rules] = {
        "ranking_loss": one_of(*RANKING_LOSSES) | Rule("a function", callable),
        "kernel": a_kernel | none,
        "average": boolean,
        "n_epochs": integer(0),
        "fit_intercept": boolean,
        "random_state": seed,
    }

    _relations: ClassVar[Relations] = {
        "weights and run_ have the labels": lambda m: _is_state(m),
        "run_ is finite, and kind_ known": lambda m: (
            m.kind_ in PROJECTIONS and all(np.isfinite(part).all() for part in m.run_.values())
        ),
    }

    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)
    dual_coef_: Floats = field(init=False)
    basis_: Basis = field(init=False)
    run_: dict[str, Floats] = field(init=False)

    ranking_loss: RankingLoss | Callable[[LabelPreferences, Floats], float] = "share"
    targets: Targets = "auto"
    kernel: Any = None
    _: KW_ONLY
    conversion: Conversion = "all"
    above_zero: AboveZero = "all"
    average: bool = True
    n_epochs: int = 10
    fit_intercept: bool = True
    random_state: Any = None

    def _fit(self, rows: Any, preferences: LabelPreferences) -> FittedOnlineLabels:
        self._check_preferences(preferences)
        for_kernel, for_order = rng_of(self.random_state).spawn(2)
        orders = (for_order.permutation(rows.shape[0]) for _ in range(self.n_epochs))
        return self._take_steps(rows, preferences, orders, *self._initial(rows, preferences.shape[1], for_kernel))

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """
        Learn from further examples in one pass, in order; `classes` are those of the stream if its first part may lack
        some.
        """
        continues = hasattr(self, "run_")
        was_calibrated = continues and self.is_calibrated_
        named = None if classes is None else np.unique(np.asarray(classes))
        if continues and named is not None and not np.array_equal(named, self.classes_):
            raise InputError(f"classes is {named.tolist()}, but it was {self.classes_.tolist()} before; leave it out.")
        X = encode_like(X, getattr(self, "feature_names_in_", None)) if continues else encode_categories(X)
        rows, preferences, labels = self._read(X, y, self.classes_ if continues else named)
        self._check_preferences(preferences)
        if continues:
            check_columns(self, X, rows)
            notes = kept_columns(self)
            start = self._resume(rows, preferences)
        else:
            notes = note_columns(X, rows)
            start = self._initial(rows, len(labels), rng_of(self.random_state).spawn(1)[0])
        orders = (np.arange(rows.shape[0]),)
        notes |= notes_on(preferences, labels)
        notes["is_calibrated_"] |= was_calibrated
        return install(self, self._take_steps(rows, preferences, orders, *start), notes)

    def _check_preferences(self, preferences: LabelPreferences) -> None:
        if self.kernel is not None and is_precomputed(self.kernel):
            raise InputError(
                "kernel='precomputed' provides similarities, but this ranker stores rows; choose another kernel."
            )
        if self.ranking_loss in ("kendall", "footrule") and preferences.kind == "pairs":
            raise InputError(f"ranking_loss={self.ranking_loss!r} compares orders, but y holds pairs; choose 'share'.")

    def _initial(self, rows: Any, d: int, rng: np.random.Generator) -> tuple[StepState, Basis | None]:
        """Return a model with zero weights."""
        n, basis = rows.shape[0], None
        shape = (d, rows.shape[1])
        if self.kernel is not None:
            view = View(None, as_kernel(self.kernel)).fit(rows, rng)
            basis, shape = Basis.of(view, rows, np.arange(n)), (n, d)
            basis.check(rows)
        sums = np.zeros(shape if self.average else (0, 0))
        return StepState(np.zeros(shape), sums, np.zeros(d), np.zeros(d), np.zeros(N_TALLIES)), basis

    def _resume(self, rows: Any, preferences: LabelPreferences) -> tuple[StepState, Basis | None]:
        """Return the model so far; with a kernel, extended by new rows."""
        if preferences.kind != self.kind_:
            raise InputError(
                f"y holds {preferences.kind}, but this model learnt from {self.kind_}; pass the same kind."
            )
        if hasattr(self, "basis_") != (self.kernel is not None):
            raise InputError("kernel has changed since the first call of this model; call fit.")
        if bool(self.average) != (self.run_["sums"].size > 0):
            raise InputError(
                f"average is {self.average}, but the first call of this model used {not self.average}; call fit."
            )
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

    def _take_steps(
        self,
        rows: Any,
        preferences: LabelPreferences,
        orders: Any,
        state: StepState,
        basis: Basis | None,
    ) -> FittedOnlineLabels:
        """Take the steps and return the fitted record."""
        if basis is None:
            require_range(rows)
        plan = StepPlan(
            as_conversion(self.conversion, self.above_zero),
            label_steps.GIVEN if callable(self.ranking_loss) else RANKING_LOSSES[self.ranking_loss],
            PROJECTIONS[preferences.kind],
            bool(self.average),
            bool(self.fit_intercept),
        )
        n, offset = rows.shape[0], 0 if basis is None else len(basis) - rows.shape[0]
        core, targets = as_core_rows(rows), preferences.targets
        step = _BATCH_SIZE if basis is None else max(1, _SIMILARITIES // max(len(basis), 1))
        if callable(self.ranking_loss):
            step = 1
        for order in orders:
            for start in range(0, n, step):
                part = order[start : start + step]
                if callable(self.ranking_loss):
                    plan = plan._replace(given=self._loss_of(rows[part], preferences[part], state, basis))
                if basis is None:
                    learn_linear(core, part.astype(np.uint64), targets, plan, state)
                else:
                    numbers = (offset + part).astype(np.uint64)
                    learn_dual(basis.similarities(rows[part]), numbers, preferences[part].targets, plan, state)
        return self._record(state, basis)

    def _loss_of(self, row: Any, preferences: LabelPreferences, state: StepState, basis: Basis | None) -> float:
        """Return the value of a loss that the user passed, for one example before its step."""
        assert callable(self.ranking_loss)
        weights = state.weights
        scores = score_columns(row, weights.T) if basis is None else basis.similarities(row) @ weights
        loss = float(self.ranking_loss(preferences, np.asarray(scores)[0] + state.biases))
        if not 0.0 <= loss < np.inf:
            raise InputError(f"ranking_loss returned {loss}; return a finite number from 0.")
        return loss

    def _record(self, state: StepState, basis: Basis | None) -> FittedOnlineLabels:
        if basis is not None:
            is_used = state.weights.any(axis=1) | (state.sums.any(axis=1) if self.average else False)
            support = np.flatnonzero(is_used)
            basis = Basis(basis.view, np.arange(len(support)), basis.rows[support])
            sums = state.sums[support] if self.average else state.sums
            state = state._replace(weights=state.weights[support], sums=sums)
        n_examples = max(float(state.tally[label_steps.SEEN]), 1.0)
        weights, biases = state.weights.copy(), state.biases.copy()
        if self.average:
            weights -= state.sums / n_examples
            biases -= state.bias_sums / n_examples
        require_finite(weights, biases)
        loss, n_iter = float(state.tally[label_steps.CUMULATED]), int(state.tally[label_steps.SEEN])
        run = dict(zip(StepState._fields, state, strict=True))
        if basis is None:
            return FittedOnlineLabels(biases, loss, n_iter, run, coef=weights)
        return FittedOnlineLabels(biases, loss, n_iter, run, dual_coef=weights, basis=basis, kernel=basis.view.kernel)

    def _utilities(self, rows: Any) -> Floats:
        if hasattr(self, "basis_"):
            return self.basis_.score(rows, self.dual_coef_) + self.intercept_
        return score_columns(rows, self.coef_.T) + self.intercept_


def _is_state(model: OnlineLabelRanker) -> bool:
    """Return whether the arrays of a model have its labels, and its columns or support."""
    d = len(model.classes_)
    shape = (len(model.basis_), d) if hasattr(model, "basis_") else (d, model.n_features_in_)
    expected = {
        "weights": shape,
        "sums": shape if model.average else (0, 0),
        "biases": (d,),
        "bias_sums": (d,),
        "tally": (N_TALLIES,),
    }
    weights = model.dual_coef_ if hasattr(model, "basis_") else model.coef_
    return {name: np.shape(part) for name, part in model.run_.items()} == expected and weights.shape == shape
