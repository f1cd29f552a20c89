"""LeastSquares, the common base of RankRLS and CoRankRLS."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank import parameters
from corank._moved import old_method
from corank.base.base import Ranker
from corank.base.contract import check_parameters, install, named_columns
from corank.base.kernels.basis import Basis, FeatureMap, choose_basis, require_choice
from corank.base.kernels.kernel import RANK_TOLERANCE
from corank.base.kernels.views import View
from corank.core.rows.access import ScaledRows
from corank.data.columns import column_factors
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import parse_metric
from corank.models.rls.frame import ComparedRows
from corank.models.rls.spectrum import Equations, Ridge
from corank.models.rls.summary import PairSums
from corank.models.rls.systems import candidates
from corank.parameters import Missing, QueryWeight, Rules, boolean, integer, listing, none, number, rng_of, text

Floats = NDArray[np.float64]
EvaluateRidges = Callable[[list[Ridge], Floats], Floats]
"""Takes a system for each coupling and the alphas, and returns means of a metric (n_couplings, n_alphas)."""


@dataclass(eq=False, repr=False)
class LeastSquares(Ranker):
    """
    A ranker whose fit is the solution of one linear system.

    `choose_maps`, `split_views`, `solve_summary`, `solve_candidates` and `uses_basis` are the steps of a fit. They do
    not change the model; `corank.deploy.fit_parts` uses them for rows in parts.
    """

    _: KW_ONLY
    alphas: Any = None
    metric: str | None = None
    n_basis: Any = None
    basis: Any = "random"
    query_weight: QueryWeight = "pairs"
    ties: bool = False
    scale: bool = True
    missing: Missing = "mean"
    random_state: Any = None
    verbose: bool = False

    # criteria for candidates in addition to the metrics
    _criteria: ClassVar[tuple[str, ...]] = ()
    _rules: ClassVar[Rules] = {
        "alpha": number(0) | none,
        "kernel": parameters.kernel,
        "alphas": listing | none,
        "metric": text | none,
        "n_basis": integer(1) | none,
        "basis": text | listing,
        "ties": boolean,
        "scale": boolean,
        "random_state": parameters.seed,
        "verbose": boolean,
    }

    def _check_combinations(self) -> None:
        if self.alphas is not None:
            candidates(self.alphas, "alphas")
            if self.alpha is not None:
                raise InputError("alpha and alphas were both given; pass one of them.")
        if self.metric is not None and self.metric not in self._criteria:
            parse_metric(self.metric)
        require_choice(self.basis)

    def pair_sums(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: Any = None,
        pairs: ArrayLike | None = None,
        pair_weight: Any = None,
        like: PairSums | None = None,
    ) -> PairSums:
        """
        Sum over a part of a problem; sums of parts without common queries add up, see `fit_pair_sums`.

        like: sums of another part with the views, basis rows and scale of columns to use; None chooses them here.
        """
        check_parameters(self)
        data, _ = self._problem(X, y, qid, pairs)
        data = data.weighted(sample_weight, pair_weight)
        if data.prior is not None:
            raise InputError("a summary does not support a prior; use fit instead.")
        if data.has_missing:
            raise InputError("a summary does not support missing values in X; fill them, or use fit instead.")
        if like is not None:
            if data.X.ndim == 2 and data.n_features != like.n_features:
                raise InputError(
                    f"X has {data.n_features} columns, but the summary has {like.n_features}; pass the same columns."
                )
            data = data if like.factors is None else replace(data, X=ScaledRows(data.X, like.factors))
            return PairSums.of(like.maps, data, self.query_weight, self.ties)
        if self._scales_columns(data):
            data = replace(data, X=ScaledRows(data.X, column_factors(data)))
        frame = ComparedRows.of(data, self.query_weight, self.ties)
        maps = self.choose_maps(data, frame, rng_of(self.random_state).spawn(2)[1])
        return PairSums.of(maps, data, self.query_weight, self.ties)

    def fit_pair_sums(self, summary: PairSums) -> Self:
        """Solve from sums: ``fit_pair_sums(pair_sums(A) + pair_sums(B))`` equals ``fit`` on A and B together."""
        check_parameters(self)
        lists = [name for name in ("alphas", "couplings") if getattr(self, name, None) is not None]
        if lists:
            raise InputError(
                f"{' and '.join(lists)} need rows to leave out, which a summary does not hold; pass "
                f"{' and '.join(name.removesuffix('s') for name in lists)}."
            )
        for name in ("query_weight", "ties"):
            if getattr(self, name) != getattr(summary, name):
                raise InputError(
                    f"the summary has {name}={getattr(summary, name)!r}, but the model has {getattr(self, name)!r}; "
                    "use one value for both."
                )
        summary.require_pairs()
        fitted = self.solve_summary(summary)
        notes = {} if summary.n_features is None else named_columns(summary.n_features, summary.names)
        if summary.factors is not None:
            notes["column_scale_"] = summary.factors
        return install(self, fitted, notes)

    summary = old_method("summary", "pair_sums")
    fit_summary = old_method("fit_summary", "fit_pair_sums")

    @abstractmethod
    def choose_maps(self, data: RankingData, frame: ComparedRows, rng: np.random.Generator) -> tuple[FeatureMap, ...]:
        """Choose the feature map of each view for a problem and its comparisons."""

    @abstractmethod
    def split_views(
        self, n_features: int | None, rng: np.random.Generator, names: Sequence[str] | None = None
    ) -> tuple[list[View], list[np.random.Generator]]:
        """Return the views before their kernels are fitted, and a generator for each; objects have no `n_features`."""

    @abstractmethod
    def solve_summary(self, summary: PairSums) -> Any:
        """Return the fitted record for one alpha, from sums over all rows, without changing the model."""

    @abstractmethod
    def solve_candidates(self, summary: PairSums, metric: str, evaluate: EvaluateRidges) -> Any:
        """Return the fitted record of the candidate with the best `metric`, as computed by `evaluate`."""

    def _map(
        self, view: View, data: RankingData, rows: NDArray[np.int64], rng: np.random.Generator, n_basis: int | None
    ) -> FeatureMap:
        """Return the features of a fitted view: its columns if it is linear and they are few, else basis rows."""
        if view.kernel.is_linear and not self.uses_basis and view.basis is None:
            n_columns = view.select(data.X[:1]).shape[1]
            if n_columns <= len(rows):
                return FeatureMap.of_columns(view, n_columns)
        basis = Basis.of(view, data.X, choose_basis(view, data.X, rows, n_basis, self.basis, rng))
        if view.kernel.is_linear and _spans(basis.rows):
            return FeatureMap.of_columns(view, basis.rows.shape[1])
        return FeatureMap.on_basis(basis, data.X)

    @property
    def uses_basis(self) -> bool:
        """Whether the user chose basis rows."""
        return self.n_basis not in (None, "auto") or not isinstance(self.basis, str)

    @staticmethod
    def _require_rows(frame: ComparedRows) -> None:
        """Raise if a part has no comparisons from which to choose a basis."""
        if not frame.n_queries:
            raise InputError(
                "no query of this part has two scored rows, from which a basis is chosen; sum another part first, and "
                "pass its summary as like."
            )

    def _alpha(self, equations: Equations) -> tuple[float, str]:
        """Return alpha and how it was chosen."""
        return (equations.closed_alpha, "pair differences") if self.alpha is None else (float(self.alpha), "given")


def _spans(rows: Any) -> bool:
    """Return whether rows span all weights of columns, independent of the scale of columns."""
    if rows.shape[1] > rows.shape[0]:
        return False
    G = np.asarray((rows.T @ rows).toarray() if sparse.issparse(rows) else rows.T @ rows)
    size = np.sqrt(np.diag(G))
    return bool((size > 0.0).all() and np.linalg.eigvalsh(G / np.outer(size, size))[0] > RANK_TOLERANCE * len(size))


def raw_weights(w: Floats, view: View, factors: Floats | None, n_features: int) -> Floats:
    """Return weights of the scaled columns of a view as weights of all columns as given, 0 outside the view."""
    out = np.zeros((n_features, *w.shape[1:]))
    out[slice(None) if view.columns is None else view.columns] = w
    return out if factors is None else (out.T * factors).T
