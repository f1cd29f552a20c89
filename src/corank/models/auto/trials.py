"""
Trials: fit candidates without each fold of the judged queries, and then those with a weight to all judgements.

A candidate is skipped if its estimated time would exceed the time limit. The estimate is its relative cost times the
time per unit of cost of the candidate that was fitted last.

SharedLeastSquares: least squares of one kernel without each fold; several penalties share features and sums.

With Φ the features of the judged rows, Z = HΦ and t = H y (see `corank.models.rls.frame`), A = ZᵀZ and b = Zᵀt are
means over the compared pairs of all queries. Without the rows f of a fold, the weights for a penalty λ are

    w = (A − Z_fᵀZ_f + λI)⁻¹ (b − Z_fᵀt_f).

With A = V diag(e) Vᵀ, E = diag(e + λ), B = Z_f V and c = Vᵀ(b − Z_fᵀt_f), a small fold costs O(n_f² k) for each λ:

    Vᵀw = E⁻¹c + E⁻¹Bᵀ (I − B E⁻¹Bᵀ)⁻¹ B E⁻¹c.

Larger ones are solved by a factorisation, in O(k³). λ is (1 − s) alpha if the fold has a share s of the weight of all
pairs, since the mean over the other pairs is 1/(1 − s) times their sum. With a prior, t = H y − c H s₀, with a slope c
for each fold.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from corank.base.base import Ranker
from corank.base.kernels.basis import FeatureMap
from corank.base.kernels.views import View
from corank.base.pairs import Moments
from corank.base.priors import prior_slope
from corank.base.solvers.penalty import default_alpha, freedom
from corank.base.solvers.solution import ordered
from corank.core.rows.access import ScaledRows, factors_of
from corank.data.columns import column_factors
from corank.data.ranking import RankingData
from corank.data.rows import with_names
from corank.errors import InputError, UsageWarning, reason
from corank.models.auto.candidates import Candidate, ranks_inside
from corank.models.auto.left_out import ValidationFolds
from corank.models.rls import RankRLS
from corank.models.rls.frame import ComparedRows, PreferredRows
from corank.models.rls.spectrum import FLOOR, Equations, solve_one
from corank.models.rls.summary import PairSums
from corank.parameters import rng_of

Floats = NDArray[np.float64]

# with more features, or more numbers in Φ, each candidate is fitted by itself
_MAX_FEATURES, _MAX_NUMBERS = 1000, 1 << 24
# rows of a small fold, relative to the number of features
_SMALL = 0.5


@dataclass(frozen=True, eq=False)
class Fold:
    """The part of a fold."""

    out: NDArray[np.bool_]  # (n,): mask of the left-out rows
    b: Floats  # (k, 2): Z_fᵀT_f
    share: float  # s
    B: Floats | None  # (n_f, k): z_f V of a small fold
    gram: Floats | None  # (k, k): Z_fᵀZ_f of a larger one


@dataclass(frozen=True, eq=False)
class SharedLeastSquares:
    """Least squares of one kernel."""

    data: RankingData  # the problem, with scaled columns and without its prior
    phi: FeatureMap  # the features
    Phi: Floats  # (n, k): of the left-out rows
    T: Floats  # (m, 2): H y and H s₀ of the compared rows or preferences
    A: Floats  # A (k, k), b (k, 2): ZᵀZ and ZᵀT
    b: Floats
    values: Floats  # values, vectors: e and V; empty if folds are large
    vectors: Floats
    folds: list[Fold]

    @classmethod
    def of(cls, model: RankRLS, left_out: ValidationFolds, names: tuple[str, ...] | None) -> SharedLeastSquares | None:
        """Compute the features and sums."""
        data, prior = replace(left_out.data, prior=None, names=names), left_out.data.prior
        data = replace(data, X=ScaledRows(data.X, column_factors(data)))
        frame = ComparedRows.of(data, "pairs", ties=False)
        n_basis = None if model.n_basis == "auto" else model.n_basis  # "auto" is all rows or columns here
        k = min(len(frame.rows), n_basis or np.inf, data.n_features if model.kernel == "linear" else np.inf)
        if (
            not left_out.is_by_query
            or left_out.shared is not None
            or k > _MAX_FEATURES
            or k * len(frame.targets) > _MAX_NUMBERS
        ):
            return None
        rng = rng_of(model.random_state).spawn(2)[1]
        phi = model._map(View(None, model.kernel).fit(data.X, rng, data.weights), data, frame.rows, rng, n_basis)
        rows = np.union1d(frame.rows, left_out.rows)
        places = np.zeros(data.n_rows, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        Phi = phi(data.X[rows]).astype(np.float64, copy=False)
        Z = np.concatenate([Z for _, _, Z, _ in frame.designs(places, lambda i: Phi[i])])
        T = np.column_stack([frame.targets, np.zeros(len(Z))])
        if prior is not None:
            T[:, 1] = frame.targets - ComparedRows.of(replace(data, prior=prior), "pairs", ties=False).targets
        fold_of_query = np.full(len(data.queries), -1)
        fold_of_query[data.queries.codes[left_out.rows]] = left_out.folds
        compared = frame.winners if isinstance(frame, PreferredRows) else frame.rows
        fold_of_row = fold_of_query[data.queries.codes[compared]]
        fold_of_share = fold_of_row[frame.starts[:-1]]
        parts = [fold_of_row == fold for fold in range(left_out.n_folds)]
        is_small = max(np.count_nonzero(part) for part in parts) < _SMALL * Z.shape[1]
        grams: list[Floats] = [] if is_small else [Z[part].T @ Z[part] for part in parts]
        unused = Z[fold_of_row < 0]
        A = Z.T @ Z if is_small else unused.T @ unused + np.sum(grams, axis=0)
        values, vectors = linalg.eigh(A, check_finite=False) if is_small else (np.zeros(0), np.zeros((0, 0)))
        folds = [
            Fold(
                left_out.folds == fold, Z[part].T @ T[part], float(frame.shares[fold_of_share == fold].sum()),
                Z[part] @ vectors if is_small else None, None if is_small else grams[fold],
            )
            for fold, part in enumerate(parts)
        ]  # fmt: skip
        return cls(data, phi, Phi[places[left_out.rows]], T, A, Z.T @ T, np.maximum(values, 0.0), vectors, folds)

    def left_out_scores(self, alpha: float, slopes: Floats) -> Floats:
        """Score the left-out rows."""
        scores, floor = np.empty(len(self.Phi)), FLOOR * float(np.trace(self.A)) or 1.0
        for fold, slope in zip(self.folds, slopes, strict=True):
            c, shift = (self.b - fold.b) @ [1.0, -slope], max((1.0 - fold.share) * alpha, floor)
            if fold.B is None:
                assert fold.gram is not None
                rest = self.A - fold.gram
                w = solve_one(Equations(rest, c, np.full(len(rest), np.trace(rest) / len(rest)), 0.0), shift)[0]
            else:
                c, e = self.vectors.T @ c, self.values + shift
                scaled = fold.B / e
                inner = np.linalg.solve(np.eye(len(scaled)) - scaled @ fold.B.T, scaled @ c)
                w = self.vectors @ (c / e + scaled.T @ inner)
            scores[fold.out] = self.Phi[fold.out] @ w
        return scores

    def fit(self, model: RankRLS, slope: float) -> Ranker:
        """Fit to all judgements."""
        b, t = self.b @ [1.0, -slope], self.T @ [1.0, -slope]
        sums = np.block([[self.A, b[:, None]], [b, t @ t]])
        summary = PairSums(
            (self.phi,), Moments(sums, None, 1.0), None, (1.0, 1.0), freedom(self.data), "pairs", False,
            factors_of(self.data.X), self.data.n_features, self.data.names,
        )  # fmt: skip
        return model.fit_pair_sums(summary)


Advance = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate that was tried."""

    candidate: Candidate | None  # none for the prior
    scores: Floats  # (n,): of the left-out rows, with the prior; empty if none are left out
    seconds: float  # wall-clock time of its fits
    name: str = "prior"  # name of the candidate, and what it chose


@dataclass(eq=False)
class Trials:
    """The fits of one `AutoRanker`."""

    data: RankingData
    left_out: ValidationFolds | None  # folds; None if there are too few judgements to leave any out
    seed: int  # random seed of all candidates
    time_limit: float | None  # in seconds; None means no limit
    skipped: list[str] = field(default_factory=list)  # candidates that were not tried, with the reason
    began: float = field(default_factory=time.monotonic)
    _kernels: dict[str, SharedLeastSquares | None] = field(default_factory=dict)

    def seen_by(self, candidate: Candidate) -> Trials:
        """Return the fits with the columns as a candidate sees them."""
        return self._on_ranks if candidate.by_ranks else self

    @cached_property
    def _on_ranks(self) -> Trials:
        X = ranks_inside(self.data.X, self.data.queries)
        data, *rest = (
            replace(part, X=X, names=None, filling=None)
            for part in (self.data, *([] if self.left_out is None else [self.left_out.data]))
        )
        return Trials(data, None if self.left_out is None else replace(self.left_out, data=rest[0]), self.seed, None)

    def run(self, candidates: list[Candidate], advance: Advance) -> list[Trial]:
        """Try candidates in their order."""
        trials, per_cost = self._prior_trial(), 0.0
        n_folds = 0 if self.left_out is None else self.left_out.n_folds
        for candidate in candidates:
            advance(0, candidate.name)
            n_fits = 1 + min(n_folds, candidate.n_folds or n_folds)
            expected = n_fits * per_cost * candidate.cost
            if self.time_limit is not None and time.monotonic() - self.began + expected > self.time_limit and trials:
                self.skipped.append(f"{candidate.name} (about {expected:.0f} s, above the time limit)")
                continue
            started = time.monotonic()
            try:
                with quiet():
                    scores = self.seen_by(candidate)._left_out_scores(candidate, advance)
            except InputError as fault:
                self.skipped.append(f"{candidate.name} ({reason(fault)})")
                continue
            seconds = time.monotonic() - started
            per_cost = seconds / max(n_fits - 1, 1) / candidate.cost
            trials.append(Trial(candidate, scores, seconds, candidate.describe(self.data)))
        if not trials:
            raise InputError(f"no candidate could be fitted: {'; '.join(self.skipped)}; choose other candidates.")
        return trials

    def fit_all(self, trial: Trial, advance: Advance) -> tuple[Ranker, float, float]:
        """Fit a candidate to all judgements."""
        assert trial.candidate is not None
        started = time.monotonic()
        with quiet():
            shared = self._shared(trial.candidate)
            if shared is None:
                model, slope = self._fit(trial.candidate, self.data)
            else:
                slope = self._slope(self.data, learns_sizes=True)
                model = shared.fit(trial.candidate.make(self.data, self._alpha, self.seed), slope)
        advance(1)
        return model, slope, time.monotonic() - started

    def _prior_trial(self) -> list[Trial]:
        if self.data.prior is None:
            return []
        rows = np.zeros(0, dtype=np.int64) if self.left_out is None else self.left_out.rows
        return [Trial(None, self.data.prior_of(rows), 0.0)]

    def _left_out_scores(self, candidate: Candidate, advance: Advance) -> Floats:
        if self.left_out is None:
            return np.zeros(0)
        shared, left_out = self._shared(candidate), self.left_out
        if shared is not None:
            slopes = np.array([self._slope(part, learns_sizes=True) for part, _ in left_out.parts()])
            alpha = candidate.make(self.data, self._alpha, self.seed).alpha
            advance(left_out.n_folds)
            scores = shared.left_out_scores(alpha, slopes)
            return scores + slopes[left_out.folds] * self.data.prior_of(left_out.rows)
        scores = np.empty(len(self.left_out.rows))
        for part, out in self.left_out.parts(candidate.n_folds):
            model, slope = self._fit(candidate, part)
            rows = self.left_out.rows[out]
            named = with_names(self.data.X[rows], self.data.names)
            scores[out] = model._score_rows(named) + slope * self.data.prior_of(rows)
            advance(1)
        advance(left_out.n_folds - min(left_out.n_folds, candidate.n_folds or left_out.n_folds))
        return scores

    def _fit(self, candidate: Candidate, data: RankingData) -> tuple[Ranker, float]:
        model = candidate.make(data, self._alpha, self.seed)
        slope = self._slope(data, model._learns_sizes)
        prior = None if data.prior is None else slope * data.prior
        return model.fit(replace(data, names=self.data.names, prior=prior)), slope

    @staticmethod
    def _slope(data: RankingData, learns_sizes: bool) -> float:
        """Return the factor c of the prior; 0 if there is none."""
        return 0.0 if data.prior is None else prior_slope(data if learns_sizes else ordered(data), data.prior)

    def _shared(self, candidate: Candidate) -> SharedLeastSquares | None:
        """Return the features and sums of a candidate's kernel, if it has them."""
        name = candidate.kernel
        if name is None or self.left_out is None:
            return None
        if name not in self._kernels:
            model = candidate.make(self.data, self._alpha, self.seed)
            self._kernels[name] = SharedLeastSquares.of(model, self.left_out, self.data.names)
        return self._kernels[name]

    @cached_property
    def _alpha(self) -> float:
        """The rule's weight of the penalty for linear models of scaled columns."""
        return default_alpha(replace(self.data, X=ScaledRows(self.data.X, column_factors(self.data))))


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings of candidates, which are about choices that the user did not make."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UsageWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
