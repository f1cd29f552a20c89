"""
Trials: fit candidates without each fold of the judged queries, and then those with a weight to all judgements.

A candidate is skipped if its estimated time would exceed the time limit. The estimate is its relative cost times the
time per unit of cost of the candidate that was fitted last.
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
from sklearn.exceptions import ConvergenceWarning

from corank.base.base import Ranker
from corank.base.priors import prior_slope
from corank.base.solvers.penalty import default_alpha
from corank.base.solvers.targets import ordered
from corank.core.rows.scaled import ScaledRows
from corank.data.column_scales import column_factors
from corank.data.ranking import RankingData
from corank.data.rows import with_names
from corank.errors import InputError, UsageWarning, reason
from corank.models.auto.candidates import Candidate
from corank.models.auto.least_squares import SharedLeastSquares
from corank.models.auto.left_out import LeftOut

Floats = NDArray[np.float64]
Advance = Callable[[int], Any]


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate that was tried."""

    candidate: Candidate | None  # none for the prior
    scores: Floats  # (n,): of the left-out rows, with the prior; empty if none are left out
    seconds: float  # wall-clock time of its fits

    @property
    def name(self) -> str:
        """Name of the candidate."""
        return "prior" if self.candidate is None else self.candidate.name


@dataclass(eq=False)
class Trials:
    """The fits of one `AutoRanker`."""

    data: RankingData
    left_out: LeftOut | None  # folds; None if there are too few judgements to leave any out
    seed: int  # random seed of all candidates
    time_limit: float | None  # in seconds; None means no limit
    skipped: list[str] = field(default_factory=list)  # candidates that were not tried, with the reason
    began: float = field(default_factory=time.monotonic)
    _kernels: dict[str, SharedLeastSquares | None] = field(default_factory=dict)

    def run(self, candidates: list[Candidate], advance: Advance) -> list[Trial]:
        """Try candidates in their order."""
        found, per_cost = self._prior_trial(), 0.0
        n_folds = 0 if self.left_out is None else self.left_out.n_folds
        for candidate in candidates:
            n_fits = 1 + min(n_folds, candidate.n_folds or n_folds)
            expected = n_fits * per_cost * candidate.cost
            if self.time_limit is not None and time.monotonic() - self.began + expected > self.time_limit and found:
                self.skipped.append(f"{candidate.name} (about {expected:.0f} s, above the time limit)")
                continue
            started = time.monotonic()
            try:
                with quiet():
                    scores = self._left_out_scores(candidate, advance)
            except InputError as fault:
                self.skipped.append(f"{candidate.name} ({reason(fault)})")
                continue
            seconds = time.monotonic() - started
            per_cost = seconds / max(n_fits - 1, 1) / candidate.cost
            found.append(Trial(candidate, scores, seconds))
        if not found:
            raise InputError(f"no candidate could be fitted: {'; '.join(self.skipped)}; choose other candidates.")
        return found

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
