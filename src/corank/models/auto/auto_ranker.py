"""
AutoRanker: try a short list of rankers on left-out queries, and average those that do well.

Each candidate m is fitted without each fold of the judged queries and scores the queries of that fold. These scores
f_m, divided by their standard deviation s_m inside queries, choose the weights w_m (`corank.models.auto.averaging`).
The candidates with a weight are then fitted to all judgements, and the score of a row is

    f(x) = Σ_m w_m f_m(x) / s_m.

w_m and s_m are fixed by ``fit``. The score of a row does not depend on the other rows of a call of ``predict``, unless
a member sees columns as ranks inside the query. Such members join only if the average with them is better on left-out
queries by half a standard error. Without query ids they are left out of the sum.

With a prior s₀, candidate m learns f_m = c_m s₀ + g_m, with c_m the least-squares slope of the judgements on the prior
(see `corank.base.priors`), and s₀ is a candidate by itself. The sum is divided by the total factor of s₀, so that
again f = s₀ + g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.base import Ranker
from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels.basis import Terms
from corank.data.queries import Queries, qid_of_index
from corank.data.ranking import RankingData
from corank.data.routing import how_to_pass_qid
from corank.data.rows import with_names
from corank.data.scoring import score_columns
from corank.data.splits import shared_rows
from corank.errors import InputError, suggest_names, warn
from corank.metrics import parse_metric
from corank.metrics.significance import few_note
from corank.models.auto.averaging import Average
from corank.models.auto.candidates import chosen_candidates, deployable, export_targets, ranks_inside
from corank.models.auto.leaderboard import CandidateTable, interval
from corank.models.auto.left_out import (
    ONE_QUERY,
    SHARED_ROWS,
    ValidationFolds,
    is_constant_inside,
    spread_inside,
)
from corank.models.auto.members import Member, add_up_alike, column_importances
from corank.models.auto.trials import Trial, Trials
from corank.models.auto.unjudged import TREATMENTS, treat_unjudged
from corank.parameters import Missing, Rules, boolean, items, none, number, one_of, seed, text
from corank.progress import progress

Floats = NDArray[np.float64]

MIN_QUERIES = 10
"""Below this number of judged queries, little can be learnt, and `AutoRanker.summary` says so."""

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
    reads_ranks: NDArray[np.bool_] | None = None
    deploy_cost: Floats | None = None
    column_importances: Floats | None = None
    unjudged: str | None = None


@shared_parameters
@dataclass(eq=False, repr=False)
class AutoRanker(Ranker):
    """
    Average of the rankers that rank left-out queries best; the default of ``corank fit``.

    It tries the mean of all columns, the best single column, linear, Gaussian and Laplacian least squares with several
    penalties, and boosted trees, in order of cost and on the same judged queries. It then averages them with weights
    chosen on the left-out queries. The fewer judged queries, the closer the weights are to equal.

    Least squares on the rank of each column inside its query join the average only if left-out queries speak for them.
    ``predict`` then takes `qid` and all rows of each query, and `summary` says so; without `qid`, they are left out.

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
    unjudged : {"auto", "missing", "irrelevant", "pooled"}
        What unjudged rows of judged queries count as, see `corank.data.PoolPolicy`: nothing, irrelevant (at most 100 of
        each query), or irrelevant where the pool reached, estimated from the ranks of judged rows in each column.
        "auto" takes what ranks the judged rows of left-out queries best, and nothing in doubt.
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
    reads_ranks_ : array of bool, shape (n_members,)
        Which members see each column as its rank inside the query; only if some do.
    coef_ : array of shape (n_features,)
        Weights of the columns, if all members are linear.
    unjudged_ : str
        What unjudged rows count as, and why; only if there are any in judged queries.
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

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True, "prior": True}

    # nDCG and the gains of LambdaRank depend on the level of grades
    _learns_from_differences = False

    _rules: ClassVar[Rules] = {
        "time_limit": number(0, inside="()") | none,
        "candidates": items | none,
        "deploy": text | none,
        "metric": text | none,
        "unjudged": one_of(*TREATMENTS),
        "random_state": seed,
        "verbose": boolean,
    }

    time_limit: float | None = 120.0
    _: KW_ONLY
    candidates: Any = None
    deploy: str | None = None
    metric: str | None = None
    unjudged: str = "auto"
    missing: Missing = "mean"
    random_state: Any = None
    verbose: bool = False

    coef_: Floats = field(init=False)
    members_: list[Ranker] = field(init=False)
    weights_: Floats = field(init=False)
    scales_: Floats = field(init=False)
    reads_ranks_: NDArray[np.bool_] = field(init=False)
    deploy_cost_: Floats = field(init=False)
    column_importances_: Floats = field(init=False)
    unjudged_: str = field(init=False)

    def _check_combinations(self) -> None:
        if self.metric is not None:
            parse_metric(self.metric)
        if self.deploy is not None and self.deploy not in export_targets():
            raise InputError(f"deploy is {self.deploy!r}; {suggest_names(self.deploy, export_targets())}.")

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedAutoRanker:
        for_folds, _, for_seed = rng.spawn(3)
        if data.prior is not None and is_constant_inside(data, data.prior):
            data = replace(data, prior=None)
        if self.deploy is not None and (data.prior is not None or data.filling is not None):
            result, do = (
                ("a prior", "make it a column of X") if data.filling is None else ("missing values", "fill them in")
            )
            raise InputError(f"deploy is {self.deploy!r}, but there is {result}, which no engine has; {do}.")
        left_out = ValidationFolds.of(data, self.metric, for_folds)
        seed_ = int(for_seed.integers(1 << 31))
        data, left_out, sentence = treat_unjudged(data, left_out, self.unjudged, seed_)
        work = Trials(data, left_out, seed_, self.time_limit)
        candidates = chosen_candidates(self.candidates, data)
        n_fits = 1 + (0 if left_out is None else left_out.n_folds)
        with progress(len(candidates) * n_fits, "fits", self.verbose) as advance:
            trials = work.run(candidates, advance)
            groups = self._groups(trials)
            spreads, estimate, cost = None, np.full(3, np.nan), None
            values, weights = np.full((len(trials), 1), np.nan), np.zeros(len(trials))
            weights[groups[0]] = 1.0 / len(groups[0])
            if left_out is not None:
                F = np.column_stack([trial.scores for trial in trials])
                spreads = np.array([left_out.spread(f) for f in F.T])
                values = left_out.values(F).T
                average = Average(F / spreads, left_out, 0 if trials[0].candidate is None else None)
                if self.deploy is None:
                    weights, nested = average.choose(*groups)
                else:
                    weights, nested = max((average.of(group) for group in groups), key=lambda pair: np.nanmean(pair[1]))
                    cost = np.array(interval(average.of(np.arange(len(trials)))[1] - nested))
                estimate = np.array(interval(nested, left_out.metric))
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
            return replace(fitted, deploy_cost=cost, unjudged=sentence)

    def _groups(self, trials: list[Trial]) -> list[NDArray[np.int64]]:
        """Return the groups of candidates whose averages are compared; one group without those that see ranks first."""
        if self.deploy is not None:
            return deployable([trial.candidate for trial in trials], self.deploy)
        by_ranks = np.array([trial.candidate is not None and trial.candidate.by_ranks for trial in trials])
        if by_ranks.all() or not by_ranks.any():
            return [np.arange(len(trials))]
        return [np.flatnonzero(~by_ranks), np.arange(len(trials))]

    def predict(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Score rows.

        Parameters
        ----------
        X, prior
            As in `Ranker.predict`.
        qid : array-like of shape (n_rows,), optional
            One query id per row, with all rows of each query. Used only if members see ranks (`reads_ranks_`); None
            then leaves them out, with a warning. If all do, it treats the rows as one query.

        Returns
        -------
        array of shape (n_rows,)
            Scores in input order, higher is better.
        """
        return self._add_prior(self._score_queries(X, qid_of_index(X, qid)), prior)

    def _predict_queries(self, X: Any, qid: ArrayLike | None, prior: ArrayLike | None) -> Floats:
        return self.predict(X, qid, prior=prior)

    def _score_rows(self, X: Any) -> Floats:
        return self._score_queries(X, None)

    def _score_queries(self, X: Any, qid: ArrayLike | None) -> Floats:
        if hasattr(self, "coef_"):
            return score_columns(self._checked_rows(X), self.coef_)
        # one by one: the sum has the same bits for every number of rows
        total: Floats | float = 0.0
        for member, factor, rows in self._parts(X, qid):
            total = total + factor * member._score_rows(rows)
        return np.asarray(total)

    @property
    def scores_rows_alone(self) -> bool:
        """Whether the score of a row does not depend on the other rows of its query."""
        return not hasattr(self, "reads_ranks_")

    def _parts(self, X: Any, qid: ArrayLike | None) -> list[tuple[Ranker, float, Any]]:
        """Return each member, its factor and the rows as it sees them."""
        named, factors = self._named_rows(X), (self.weights_ / self.scales_).tolist()
        if not hasattr(self, "reads_ranks_"):
            return [(member, factor, named) for member, factor in zip(self.members_, factors, strict=True)]
        rows, ranks = self._checked_rows(X), None
        n, are_all = rows.shape[0], bool(self.reads_ranks_.all())
        if qid is None and n > 1:
            left_out = "members that see ranks inside the query are left out"
            words = f"all {n} rows are treated as one query" if are_all else left_out
            warn(f"qid was not given, so {words}; {how_to_pass_qid()}.")
        if qid is not None or are_all:
            ranks = ranks_inside(rows, Queries.of(qid, n))
        parts = zip(self.members_, factors, self.reads_ranks_.tolist(), strict=True)
        return [(member, c, ranks if reads else named) for member, c, reads in parts if ranks is not None or not reads]

    def _terms(self, X: Any, qid: ArrayLike | None, rows: NDArray[np.int64]) -> list[Terms]:
        if hasattr(self, "coef_"):
            return super()._terms(X, qid, rows)
        parts = []
        for number_, (member, factor, seen) in enumerate(self._parts(X, qid)):
            if hasattr(member, "trees_"):
                raise InputError(
                    "this AutoRanker averages boosted trees, whose scores cannot be split into contributions; fit with "
                    "candidates=['linear', 'gaussian', 'logistic'] to explain it."
                )
            parts += [
                replace(term, weights=factor * term.weights, view=number_) for term in member._terms(seen, qid, rows)
            ]
        return parts

    def _check_state(self) -> None:
        """Raise if a loaded model has members of other columns, or weights that do not belong to them."""
        lengths = {len(part) for part in (self.members_, self.weights_, self.scales_)}
        if len(lengths | {len(getattr(self, "reads_ranks_", self.members_))}) > 1:
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
        if hasattr(self, "unjudged_"):
            words += f" {self.unjudged_}"
        if not self.scores_rows_alone:
            words += " Members see ranks of columns inside the query: pass qid and all rows of each query to predict."
        if self.skipped_:
            words += f" Not tried: {'; '.join(self.skipped_)}."
        return words


def _list_kind(left_out: ValidationFolds | None, data: RankingData) -> str:
    """Return what lists are left out, in words, or which lists could not be."""
    if left_out is not None:
        return left_out.list_kind
    rows = data.scored_rows if data.pairs is None else np.unique(data.pairs)
    return "queries" if shared_rows(data.X, data.queries.codes, rows) is None else SHARED_ROWS


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
    data, seconds = work.data, board.seconds.copy()
    members: list[Member] = []
    # total factor of the prior
    slope = 0.0
    for i in np.flatnonzero(weights):
        candidate = trials[i].candidate
        if candidate is None:
            scale = spread_inside(data, data.prior_of(np.arange(data.n_rows))) if spreads is None else spreads[i]
            slope += weights[i] / scale
            continue
        seen = work.seen_by(candidate)
        model, own_slope, time_of_fit = seen.fit_all(trials[i], advance)
        if spreads is None:
            scale = spread_inside(data, model._score_rows(with_names(seen.data.X, seen.data.names)))
        else:
            scale = spreads[i]
        members.append(Member(model, weights[i], scale, candidate.by_ranks))
        slope += weights[i] * own_slope / scale
        seconds[i] += time_of_fit
    if data.prior is not None:
        # f = s₀ + g; a prior that the judgements contradict nearly vanishes
        members = [member._replace(scale=member.scale * max(slope, _CONTRADICTED)) for member in members]
    members = add_up_alike(members)
    reads_ranks, coef = np.array([member.by_ranks for member in members], dtype=bool), None
    if not reads_ranks.any() and all(hasattr(member.ranker, "coef_") for member in members):
        coef = sum((member.factor * member.ranker.coef_ for member in members), np.zeros(data.n_features))
    return FittedAutoRanker(
        [member.ranker for member in members], np.array([member.weight for member in members]),
        np.array([member.scale for member in members]), replace(board, seconds=seconds).sorted(), estimate,
        tuple(work.skipped), coef, reads_ranks if reads_ranks.any() else None,
        column_importances=column_importances(members, data),
    )  # fmt: skip
