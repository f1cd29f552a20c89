"""LeastSquares: what RankRLS and CoRankRLS share, from checking rows and preferences to choosing λ."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from corank.base import OF_COLUMNS, Ranker
from corank.basis.choice import choose_basis, require_choice
from corank.basis.features import FeatureMap
from corank.data.given import as_scores
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.weights import require_weight
from corank.errors import InputError
from corank.graphs import QUERY_WEIGHTS
from corank.kernels import CallableKernel, Kernel, LinearKernel, as_kernel, require_square
from corank.metrics import parse_metric
from corank.rls.frame import Frame
from corank.rls.objects import ObjectKernel, as_objects, is_table
from corank.rls.pair_frame import PairFrame, frame_of
from corank.rls.summary import Summary
from corank.views import View

Floats = NDArray[np.float64]


class LeastSquares(Ranker):
    """A ranker whose fit is one linear system; the base of RankRLS and CoRankRLS."""

    alpha: float
    kernel: Any
    alphas: Any
    metric: str
    n_basis: int | None
    basis: Any
    query_weight: str
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "kernel": [str, Kernel, callable],
        "alphas": ["array-like", None],
        "metric": [str],
        "n_basis": [Interval(Integral, 1, None, closed="left"), None],
        "basis": [str, "array-like"],
        "query_weight": [StrOptions(set(QUERY_WEIGHTS))],
        "random_state": ["random_state"],
    }

    def _given(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, pairs: ArrayLike | None
    ) -> tuple[RankingData, Kernel]:
        """Check what ``fit`` was given; a kernel function may see rows that are any objects."""
        kernel = as_kernel(self.kernel)
        parse_metric(self.metric)
        require_choice(self.basis)
        if pairs is not None and y is not None:
            raise InputError("y came beside pairs; pass scores or preferences, not both.")
        if isinstance(kernel, CallableKernel) and not isinstance(X, RankingData) and not is_table(X):
            rows = as_objects(X)
            queries = Queries.of(qid, len(rows))
            if pairs is None:
                data = RankingData.of_checked(rows, as_scores(y, len(rows)), queries)  # type: ignore[arg-type]
            else:
                data = replace(RankingData.of_pairs(np.zeros((len(rows), 1)), pairs, qid), X=rows)
            kernel = ObjectKernel(kernel.function)
            for name in OF_COLUMNS:
                self.__dict__.pop(name, None)
        elif pairs is None:
            data = self._problem(X, y, qid)
        else:
            data = RankingData.of_pairs(X, pairs, qid)
            self._problem(data, None, None)
        require_square(data.X, kernel)
        return data, kernel

    def fit_summary(self, summary: Summary) -> Self:
        """
        Solve a system that was summed before: ``fit_summary(summary(A) + summary(B))`` is ``fit`` on A and B.

        Parameters
        ----------
        summary : Summary
            Sums over all parts.

        Returns
        -------
        self
            The fitted ranker.
        """
        self._validate_params()
        lists = [name for name in ("alphas", "couplings") if getattr(self, name, None) is not None]
        if lists:
            raise InputError(
                f"{' and '.join(lists)} are chosen by leaving out rows, which a summary does not hold; pass "
                f"{' and '.join(name.removesuffix('s') for name in lists)}."
            )
        summary.require_pairs()
        self._forget()
        return self._solve(summary)

    @abstractmethod
    def _solve(self, summary: Summary) -> Self:
        """Solve for the one alpha that was given, and keep the solution."""

    def _rows_to_score(self, X: Any, kernel: Kernel) -> Any:
        return as_objects(X) if isinstance(kernel, ObjectKernel) else self._new_rows(X)

    def _frame(self, data: RankingData, weights: Floats | None) -> Frame | PairFrame:
        frame = frame_of(data, self.query_weight, weights)
        if len(frame.starts) < 2 and weights is None:
            raise InputError(
                "this part holds no two scored rows of one query to choose a basis by; sum another part first, and "
                "pass its summary as like."
            )
        require_weight(len(frame.starts) - 1, "pair")
        return frame

    def _map(
        self, view: View, data: RankingData, candidates: NDArray[np.int64], rng: np.random.Generator
    ) -> FeatureMap:
        """Features of one view: its columns where it is linear and they are few, else from basis rows."""
        view = view.fit(data.X, rng)
        wants_basis = self._wants_basis() or view.basis is not None
        if isinstance(view.kernel, LinearKernel) and not wants_basis:
            n_columns = view.select(data.X[:1]).shape[1]
            if n_columns <= len(candidates):
                return FeatureMap.of_columns(view, n_columns)
        rows = choose_basis(view, data.X, candidates, self.n_basis, self.basis, rng)
        return FeatureMap.on_basis(view, data.X, rows)

    def _wants_basis(self) -> bool:
        return self.n_basis is not None or not isinstance(self.basis, str)

    def _alphas(self) -> Floats:
        return candidates(self.alphas, "alphas") if self.alphas is not None else np.array([float(self.alpha)])


def candidates(values: Any, name: str) -> Floats:
    """
    Check a list of candidates.

    Parameters
    ----------
    values : array-like
        Numbers.
    name : str
        What to call them in messages.

    Returns
    -------
    array of float64
        The numbers.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers) or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise InputError(f"{name} is {values!r}; pass a list of one or more finite numbers, none below zero.")
    return numbers


def best(scores: Floats, metric: str) -> tuple[int, ...]:
    """
    Find the best candidate.

    Parameters
    ----------
    scores : array
        Means of a metric, NaN where it is not defined.
    metric : str
        Its name.

    Returns
    -------
    tuple of int
        Where the best score is; the first of equals.
    """
    if np.isnan(scores).all():
        raise InputError(
            f"{metric} is defined for no query that was left out; choose another metric, or score more rows."
        )
    sign = 1.0 if parse_metric(metric).measure.larger_is_better else -1.0
    at = int(np.nanargmax(sign * scores))
    return tuple(int(i) for i in np.unravel_index(at, scores.shape))


def active_rows(frame: Frame | PairFrame) -> NDArray[np.int64]:
    """
    Collect the rows that are compared.

    Parameters
    ----------
    frame : Frame or PairFrame
        What is compared.

    Returns
    -------
    array of int64
        Row numbers, each once.
    """
    if isinstance(frame, Frame):
        return frame.rows
    return np.unique(np.concatenate([frame.winners, frame.losers]))
