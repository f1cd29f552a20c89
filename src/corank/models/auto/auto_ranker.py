"""
AutoRanker: try a short list of rankers on left-out queries, and average those that do well.

Each candidate m is fitted without each fold of the judged queries and scores the queries of that fold. These scores
f_m, divided by their standard deviation s_m inside queries, choose the weights w_m (`corank.models.auto.averaging`).
The candidates with a weight are then fitted to all judgements, and the score of a row is

    f(x) = Σ_m w_m f_m(x) / s_m.

w_m and s_m are fixed by ``fit``: the score of a row does not depend on the other rows of a call of ``predict``.

With a prior s₀, candidate m learns f_m = c_m s₀ + g_m, with c_m the least-squares slope of the judgements on the prior
(see `corank.base.priors`), and s₀ is a candidate by itself. The sum is divided by the total factor of s₀, so that
again f = s₀ + g.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.base.base import Ranker
from corank.base.contract import MISSING
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels.basis import Terms
from corank.base.priors import ColumnMean
from corank.data.ranking import RankingData
from corank.data.rows import with_names
from corank.data.scoring import score_columns
from corank.data.splits import shared_rows
from corank.errors import InputError, suggest_names
from corank.metrics import parse_metric
from corank.metrics.significance import few_note
from corank.models.auto.averaging import choose_weights
from corank.models.auto.candidates import chosen_candidates, deployable, export_targets, n_columns
from corank.models.auto.leaderboard import CandidateTable, interval
from corank.models.auto.left_out import (
    ONE_QUERY,
    SHARED_ROWS,
    ValidationFolds,
    inside_deviation,
    is_constant_inside,
    spread_inside,
)
from corank.models.auto.trials import Trial, Trials
from corank.models.rls import RankRLS
from corank.parameters import Rules, boolean, items, none, number, one_of, seed, text
from corank.progress import progress

Floats = NDArray[np.float64]

MIN_QUERIES = 10
"""Below this number of judged queries, little can be learnt, and `AutoRanker.summary` says so."""

# parts of the queries, and random weightings of them, for the estimate, where each part has its own choice of weights
_NESTED_PARTS, _NESTED_REPEATS = 5, 1
# rows on which importances of columns are measured
_IMPORTANCE_ROWS = 100
# smallest factor of the prior, relative to the spread of the learnt part, if the judgements contradict it
_CONTRADICTED = 1e-6


@dataclass(frozen=True, eq=False)
class FittedAutoRanker:
    """The fitted attributes of `AutoRanker`."""

    members: list[Ranker]
    weights: Floats
    scales: Floats
    leaderboard: CandidateTable
    estimate: Floats
    skipped: tuple[str, ...]
    coef: Floats | None = None
    deploy_cost: Floats | None = None
    column_importances: Floats | None = None


@shared_parameters
class AutoRanker(Ranker):
    """
    Average of the rankers that rank left-out queries best; the default of ``corank fit``.

    It tries the mean of all columns, the best single column, linear, Gaussian and Laplacian least squares with several
    penalties, logistic pairs and boosted trees, in order of cost and on the same judged queries. It then averages them
    with weights chosen on the left-out queries. The fewer judged queries, the closer the weights are to equal.

    Parameters
    ----------
    time_limit : float, optional
        Seconds of wall-clock time after which no further candidate is tried; None means no limit. A candidate is
        skipped if its estimated time exceeds the rest. `skipped_` then names it, and another run may differ.
    candidates : list of str, optional
        Names of the candidates to try, see `corank.models.auto.candidates.CANDIDATES`; None tries all that suit the
        data.
    deploy : str, optional
        A target of ``corank export``, such as "opensearch" or "onnx": only candidates that it can run are averaged. The
        others are still tried, and `deploy_cost_` is what the restriction costs.
    metric : str, optional
        Metric of left-out queries; None means nDCG@10 for whole grades from 0 to 10, else the disagreement error.
    {missing}
    {random_state}
    {verbose}

    Attributes
    ----------
    members_ : list of Ranker
        The rankers of the average, fitted to all judgements. Linear ones are added up, as are those of one kernel and
        the same basis rows; the sum has the parameters of the first.
    weights_, scales_ : arrays of shape (n_members,)
        Weight of each member, and the number by which its scores are divided.
    leaderboard_ : CandidateTable
        All candidates with their value on left-out queries, its 95 % interval, weight and time.
    estimate_ : array of shape (3,)
        Metric of the average on left-out queries, and its 95 % interval. Weights were chosen without the queries on
        which they are evaluated.
    skipped_ : tuple of str
        Candidates that were not tried, with the reason.
    coef_ : array of shape (n_features,)
        Weights of the columns, if all members are linear.
    deploy_cost_ : array of shape (3,)
        Metric of the average of all candidates minus that of those which the target of `deploy` can run, and its 95 %
        interval; only with `deploy`.

    Examples
    --------
    >>> from corank import AutoRanker, make_ranking
    >>> problem = make_ranking(30, 10, random_state=0)
    >>> model = AutoRanker(candidates=["linear", "gaussian"], random_state=0)
    >>> model = model.fit(problem.X, problem.y, qid=problem.qid)
    >>> sorted(model.leaderboard_.names)
    ['gaussian', 'linear']
    >>> round(float(model.weights_.sum()), 6)
    1.0
    """

    # nDCG and the gains of LambdaRank depend on the level of grades
    _learns_from_differences: bool = False

    _rules: ClassVar[Rules] = {
        "time_limit": number(0, inside="()") | none,
        "candidates": items | none,
        "deploy": text | none,
        "metric": text | none,
        "missing": one_of(*MISSING),
        "random_state": seed,
        "verbose": boolean,
    }

    coef_: Floats
    members_: list[Ranker]
    weights_: Floats
    scales_: Floats
    deploy_cost_: Floats
    column_importances_: Floats

    def __init__(
        self,
        time_limit: float | None = 120.0,
        *,
        candidates: Any = None,
        deploy: str | None = None,
        metric: str | None = None,
        missing: str = "mean",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.time_limit = time_limit
        self.candidates = candidates
        self.deploy = deploy
        self.metric = metric
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _check_combinations(self) -> None:
        if self.metric is not None:
            parse_metric(self.metric)
        if self.deploy is not None and self.deploy not in export_targets():
            raise InputError(f"deploy is {self.deploy!r}; {suggest_names(self.deploy, export_targets())}.")

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedAutoRanker:
        for_folds, for_weights, for_seed = rng.spawn(3)
        if data.prior is not None and is_constant_inside(data, data.prior):
            data = replace(data, prior=None)
        if self.deploy is not None and (data.prior is not None or data.filling is not None):
            result, do = (
                ("a prior", "make it a column of X") if data.filling is None else ("missing values", "fill them in")
            )
            raise InputError(f"deploy is {self.deploy!r}, but there is {result}, which no engine has; {do}.")
        left_out = ValidationFolds.of(data, self.metric, for_folds)
        work = Trials(data, left_out, int(for_seed.integers(1 << 31)), self.time_limit)
        candidates = chosen_candidates(self.candidates, data)
        n_fits = 1 + (0 if left_out is None else left_out.n_folds)
        with progress(len(candidates) * n_fits, "fits", self.verbose) as advance:
            trials = work.run(candidates, advance)
            everyone = np.arange(len(trials))
            tried = [trial.candidate for trial in trials]
            groups = [everyone] if self.deploy is None else deployable(tried, self.deploy)
            spreads, estimate, cost = None, np.full(3, np.nan), None
            values, weights = np.full((len(trials), 1), np.nan), np.zeros(len(trials))
            weights[groups[0]] = 1.0 / len(groups[0])
            if left_out is not None:
                F = np.column_stack([trial.scores for trial in trials])
                spreads = np.array([left_out.spread(f) for f in F.T])
                values = left_out.values(F).T
                prior = 0 if trials[0].candidate is None else None
                averages = [average(F / spreads, group, left_out, for_weights, prior) for group in groups]
                weights, nested = max(averages, key=lambda pair: np.nanmean(pair[1]))
                estimate = np.array(interval(nested, left_out.metric))
                if self.deploy is not None:
                    is_whole = len(groups[0]) == len(trials)
                    unrestricted = (
                        nested if is_whole else average(F / spreads, everyone, left_out, for_weights, prior)[1]
                    )
                    cost = np.array(interval(unrestricted - nested))
            metric = "nDCG@10" if left_out is None else left_out.metric
            means, lows, highs = np.array([interval(each, metric) for each in values]).T
            board = CandidateTable(
                names=tuple(trial.name for trial in trials), means=means, lows=lows, highs=highs, weights=weights,
                seconds=np.array([trial.seconds for trial in trials]),
                metric="" if left_out is None else left_out.metric_name,
                n_lists=0 if left_out is None else left_out.n_lists,
                lists=_list_kind(left_out, data),
            )  # fmt: skip
            fitted = _combined(work, trials, weights, spreads, board, estimate, advance)
            return replace(fitted, deploy_cost=cost)

    def _score_rows(self, X: Any) -> Floats:
        if hasattr(self, "coef_"):
            return score_columns(self._checked_rows(X), self.coef_)
        named = self._named_rows(X)
        factors = self.weights_ / self.scales_
        # one by one: the sum has the same bits for every number of rows
        total: Floats = factors[0] * self.members_[0]._score_rows(named)
        for member, factor in zip(self.members_[1:], factors[1:], strict=True):
            total += factor * member._score_rows(named)
        return total

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        if hasattr(self, "coef_"):
            return super()._terms(X, qid, rows)
        named, parts = self._named_rows(X), []
        for number_, (member, factor) in enumerate(zip(self.members_, self.weights_ / self.scales_, strict=True)):
            if hasattr(member, "trees_"):
                raise InputError(
                    "this AutoRanker averages boosted trees, whose scores cannot be split into contributions; fit with "
                    "candidates=['linear', 'gaussian', 'logistic'] to explain it."
                )
            parts += [
                replace(term, weights=factor * term.weights, view=number_) for term in member._terms(named, qid, rows)
            ]
        return parts

    def _check_state(self) -> None:
        """Raise if a loaded model has members of other columns, or weights that do not belong to them."""
        if not len(self.members_) == len(self.weights_) == len(self.scales_):
            raise InputError("weights_ and scales_ must have one number for each of members_")
        if any(member.n_features_in_ != self._n_columns for member in self.members_):
            raise InputError(f"members_ are not all of {self._n_columns} features")
        if not (self.scales_ > 0.0).all():
            raise InputError("scales_ must be positive")
        for member in self.members_:
            member._check_state()

    @property
    def feature_importances_(self) -> Floats:
        """Importances of the columns, with sum 1: how much scores change inside queries without a column."""
        if not hasattr(self, "column_importances_"):
            raise AttributeError("this AutoRanker has no feature_importances_: its rows were sparse, or it is older")
        return self.column_importances_

    def summary(self) -> str:
        """Say in two or three sentences what was chosen, how sure that is, and what more certainty would cost."""
        board = self.leaderboard_
        used = [(name, w) for name, w in zip(board.names, board.weights, strict=True) if w > 0.0]
        parts = ", ".join(f"{name} {w:.2f}" for name, w in sorted(used, key=lambda item: -item[1]))
        chosen = f"average of {parts}" if len(used) > 1 else f"{used[0][0]} alone"
        mean, low, high = map(float, self.estimate_)
        n = board.n_lists
        if not n and board.lists == SHARED_ROWS:
            return (
                f"{chosen}; its quality is unknown: so many rows occur in several queries that nothing could be learnt "
                "without the rows of left-out queries. Add features of the query, or judge other rows."
            )
        if not n or np.isnan(mean):
            return (
                f"{chosen}; there are too few judgements to leave any out: its quality is unknown, judge more queries."
            )
        words = f"{chosen}; {board.metric} {mean:.3f} on {n} left-out {board.lists}"
        words += f" (95 % interval {low:.3f} to {high:.3f})." + few_note(n, unit=board.lists)
        if board.lists == ONE_QUERY:
            words += " Only one query is judged: judge others, or pass qid if there are several."
        elif n < MIN_QUERIES:
            words += (
                f" With fewer than {MIN_QUERIES} judged queries this choice is little better than equal weights; judge "
                f"{MIN_QUERIES - n} more queries to choose better."
            )
        else:
            words += f" An interval half as wide needs about {3 * n} more judged queries."
        if hasattr(self, "deploy_cost_"):
            cost, low, high = self.deploy_cost_
            words += (
                f" Only what {self.deploy} can run was averaged, which costs {cost:.3f} ({low:.3f} to {high:.3f}) of "
                f"{board.metric} against all candidates."
            )
        if self.skipped_:
            words += f" Not tried: {'; '.join(self.skipped_)}."
        return words


def _list_kind(left_out: ValidationFolds | None, data: RankingData) -> str:
    """Return what lists are left out, in words, or which lists could not be."""
    if left_out is not None:
        return left_out.list_kind
    rows = data.scored_rows if data.pairs is None else np.unique(data.pairs)
    return "queries" if shared_rows(data.X, data.queries.codes, rows) is None else SHARED_ROWS


def average(
    F: Floats, members: NDArray[np.int64], left_out: ValidationFolds, rng: np.random.Generator, prior: int | None
) -> tuple[Floats, Floats]:
    """Return weights of all candidates, zero but for some members, and `nested_values` of their average."""
    weights, part = np.zeros(F.shape[1]), F[:, members]
    weights[members] = choose_weights(part, left_out.values, left_out.correlations(part), rng, prior=prior)
    return weights, nested_values(part, left_out, rng, prior)


def nested_values(F: Floats, left_out: ValidationFolds, rng: np.random.Generator, prior: int | None) -> Floats:
    """Return the metric of the average in each list, with weights that were chosen on other folds."""
    estimated, correlations = np.full(left_out.n_lists, np.nan), left_out.correlations(F)
    part_of_list = np.zeros(left_out.n_lists, dtype=np.int64)
    part_of_list[left_out.lists] = left_out.folds % _NESTED_PARTS
    for part in range(min(left_out.n_folds, _NESTED_PARTS)):
        is_out = part_of_list == part

        hidden = is_out[:, None] & (left_out.n_folds > 1)

        def others(scores: Floats, hidden: NDArray[np.bool_] = hidden) -> Floats:
            return np.where(hidden, np.nan, left_out.values(scores))

        weights = choose_weights(F, others, np.where(hidden, np.nan, correlations), rng, _NESTED_REPEATS, prior=prior)
        estimated[is_out] = left_out.values(F @ weights)[is_out]
    return estimated


def _combined(
    work: Trials,
    trials: list[Trial],
    weights: Floats,
    spreads: Floats | None,
    board: CandidateTable,
    estimate: Floats,
    advance: Callable[[int], Any],
) -> FittedAutoRanker:
    """Fit the candidates with a weight to all judgements; fold linear ones into one if there are no others."""
    data, members, kept, scales, seconds = work.data, [], [], [], board.seconds.copy()
    # total factor of the prior
    slope = 0.0
    for i in np.flatnonzero(weights):
        if trials[i].candidate is None:
            scale = spread_inside(data, data.prior_of(np.arange(data.n_rows))) if spreads is None else spreads[i]
            slope += weights[i] / scale
            continue
        model, own_slope, time_of_fit = work.fit_all(trials[i], advance)
        if spreads is None:
            scale = spread_inside(data, model._score_rows(with_names(data.X, data.names)))
        else:
            scale = spreads[i]
        members.append(model)
        kept.append(weights[i])
        scales.append(scale)
        slope += weights[i] * own_slope / scale
        seconds[i] += time_of_fit
    if data.prior is not None:
        # f = s₀ + g; a prior that the judgements contradict nearly vanishes
        scales = [scale * max(slope, _CONTRADICTED) for scale in scales]
    members, kept, scales = add_up_alike(members, kept, scales)
    factors = np.array(kept) / np.array(scales)
    coef = None
    if all(hasattr(member, "coef_") for member in members):
        coef = sum((c * member.coef_ for c, member in zip(factors, members, strict=True)), np.zeros(data.n_features))
    return FittedAutoRanker(
        members, np.array(kept), np.array(scales), replace(board, seconds=seconds).sorted(), estimate,
        tuple(work.skipped), coef, column_importances=_importances(members, factors, data),
    )  # fmt: skip


def add_up_alike(
    members: list[Ranker], weights: list[float], scales: list[float]
) -> tuple[list[Ranker], list[float], list[float]]:
    """Add up members that are linear, or have the same kernel and basis rows: the same scores in less time."""
    groups: list[list[int]] = []
    for k, member in enumerate(members):
        home = next((group for group in groups if _is_like(members[group[0]], member)), None)
        if home is None:
            groups.append([k])
        else:
            home.append(k)
    sums: list[tuple[Ranker, float, float]] = []
    for group in groups:
        # coefficients of ColumnMean cannot be set
        first = next((k for k in group if not isinstance(members[k], ColumnMean)), None)
        if len(group) == 1 or first is None:
            sums += [(members[k], weights[k], scales[k]) for k in group]
            continue
        total, name = sum(weights[k] for k in group), "coef_" if hasattr(members[first], "coef_") else "dual_coef_"
        item = copy(members[first])
        setattr(item, name, sum((weights[k] / scales[k] / total) * getattr(members[k], name) for k in group))
        if hasattr(item, "intercept_"):
            item.intercept_ = 0.0
        sums.append((item, total, 1.0))
    return [part[0] for part in sums], [part[1] for part in sums], [part[2] for part in sums]


def _is_like(a: Ranker, b: Ranker) -> bool:
    if hasattr(a, "coef_") or hasattr(b, "coef_"):
        return hasattr(a, "coef_") and hasattr(b, "coef_")
    if not (isinstance(a, RankRLS) and isinstance(b, RankRLS)) or a.basis_ is None or b.basis_ is None:
        return False
    factors = (getattr(model, "column_scale_", None) for model in (a, b))
    return a.basis_.is_like(b.basis_) and np.array_equal(*factors)  # type: ignore[arg-type]


def _importances(members: list[Ranker], factors: Floats, data: RankingData) -> Floats | None:
    """
    Return the deviation inside queries of the change of scores if a column is replaced by its mean, with sum 1.

    It is |weight| · deviation of linear members. Measured on whole queries up to about `_IMPORTANCE_ROWS` rows.
    """
    if sparse.issparse(data.X) or not members:
        return None
    judged = data.queries.codes[data.scored_rows] if data.pairs is None else data.queries.codes[data.pairs[:, 0]]
    sizes = np.diff(data.queries.starts)
    queries = np.unique(judged)
    queries = queries[: max(1, int(np.searchsorted(np.cumsum(sizes[queries]), _IMPORTANCE_ROWS, "right")))]
    rows = np.flatnonzero(np.isin(data.queries.codes, queries))[: 10 * _IMPORTANCE_ROWS]
    X, lists = np.array(data.X[rows], dtype=np.float64), np.unique(data.queries.codes[rows], return_inverse=True)[1]

    def score() -> Floats:
        named = with_names(X, data.names)
        return np.asarray(sum(c * member._score_rows(named) for c, member in zip(factors, members, strict=True)))

    before, result = score(), np.zeros(n_columns(data))
    for j in range(len(result)):
        kept = X[:, j].copy()
        if np.ptp(kept) > 0.0:
            X[:, j] = kept.mean()
            result[j] = inside_deviation(before - score(), lists)
            X[:, j] = kept
    return np.asarray(result / (result.sum() or 1.0))
