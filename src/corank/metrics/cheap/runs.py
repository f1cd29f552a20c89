"""evaluate_runs: estimates of several runs from few gold grades and cheap judges, and the worth of each judge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names, warn
from corank.metrics.cheap.estimate import Estimate, Floats, corrected, human_only, stack
from corank.metrics.cheap.values import GradedRuns, as_judges, map_to_gold
from corank.metrics.conventions import Convention, find_convention
from corank.metrics.evaluation import as_qrels, as_run
from corank.metrics.names import parse_metric
from corank.metrics.significance import sign_flip

SAMPLE_LEVEL, SIGN_LEVEL = 0.01, 0.05
"""Levels of the tests that the gold queries are a random sample, and that a judge is better than random."""

MIN_COVERAGE = 0.8
"""Share of the first documents of the runs below which a note asks for more grades of a cheap judge."""


@dataclass(frozen=True)
class JudgeWorth:
    """
    What a cheap judge is worth for a metric.

    name: Name of the judge.
    weight: Its weight among the cheap judges.
    slope: λ, the share of its deviations that is used.
    saved: Share of the human grades that it saves at equal intervals: 1 − s²(corrected)/s²(human only), at least 0.
    bias: Root mean square over systems of the bias of its deviations, by empirical Bayes; NaN with fewer than 4
    systems.
    agreement: Mean over gold queries of the covariance of human and cheap values over systems, divided by both
    deviations.
    verdict: "useful", "not shown to be useful" or "reversed", by flipping the signs of that covariance over queries.
    """

    name: str
    weight: float
    slope: float
    saved: float
    bias: float
    agreement: float
    verdict: str


@dataclass(frozen=True, eq=False)
class SystemEstimates:
    """
    Estimates of one metric; the values of `RunsEvaluation`.

    metric: Canonical name.
    systems: Names of the runs.
    human: Estimate by gold queries alone.
    cheap: Means by the (combined) cheap judge over all queries; NaN without one.
    corrected: Estimate by both.
    judges: Worth of each cheap judge.
    level: Level of the intervals.
    holes: What documents without a human grade leave open on the gold queries: judged@k, condensed value, and both
    bounds of each system, shape (S, 4).
    """

    metric: str
    systems: tuple[str, ...]
    human: Estimate
    cheap: Floats
    corrected: Estimate
    judges: tuple[JudgeWorth, ...]
    level: float
    holes: Floats

    def mean(self, system: str) -> Any:
        """Return the corrected mean of a system with its interval."""
        return self.corrected.interval(self._at(system), level=self.level)

    def difference(self, system: str, base: str) -> Any:
        """Return the corrected difference of two systems with its interval."""
        return self.corrected.interval(self._at(system), self._at(base), self.level)

    def _at(self, system: str) -> int:
        if system not in self.systems:
            raise InputError(f"{system!r} is not among the runs; {suggest_names(system, self.systems)}.")
        return self.systems.index(system)

    @property
    def saved(self) -> float:
        """Share of the human grades that the judges save at equal intervals, at least 0."""
        return _saved(self.corrected, self.human)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The systems by falling estimate."""
        return tuple(self.systems[i] for i in np.argsort(-self.corrected.values, kind="stable"))

    @cached_property
    def n_decided(self) -> int:
        """Number of pairs of systems whose interval of the difference excludes 0."""
        _, low, high, _, _ = self.corrected.intervals(*np.triu_indices(len(self.systems), 1), self.level)
        return int(((low > 0) | (high < 0)).sum())

    @property
    def effective_queries(self) -> float:
        """
        Number of human queries whose means alone would have the error of the shrunk estimates.

        The mean square error of a shrunk difference is f s²(1/n − 1/N) by empirical Bayes, s² the variance of the
        corrected difference; that of n′ human queries is s_h²(1/n′ − 1/N).
        """
        ratio = self.corrected.kept * (1.0 - _raw_saved(self.corrected, self.human))
        n, N = self.human.n_gold, self.human.n_queries
        return 1.0 / (1.0 / N + ratio * (1.0 / n - 1.0 / N)) if n < N else float(n)

    def more_queries(self, factor: float = 0.5) -> int | None:
        """
        Return how many more gold queries shorten the intervals of differences to a share; None if all queries do
        not.

        Solves s²(1/n′ − 1/N) + s_h²/N = factor² · present variance for n′; s_h²/N is 0 for the listed queries
        themselves.
        """
        estimate = self.corrected
        n, N = estimate.n_gold, estimate.n_queries
        floor = 0.0 if estimate.these else self.human.mean_variance() * (1.0 if n == N else n / N)
        present = estimate.mean_variance()
        if n >= N or present <= floor:
            return None
        s2 = (present - floor) / (1.0 / n - 1.0 / N)
        needed = factor**2 * present - floor + s2 / N
        return math.ceil(s2 / needed - 1e-9) - n if needed > s2 / N else None


def _raw_saved(estimate: Estimate, human: Estimate) -> float:
    variances = [np.var(item - item.mean(axis=0), axis=1, ddof=1).sum() if len(item) > 1 else np.var(item, ddof=1)
                 for item in (estimate.noise, human.noise)]  # fmt: skip
    return 1.0 - float(variances[0]) / float(variances[1]) if variances[1] > 0 else 0.0


def _saved(estimate: Estimate, human: Estimate) -> float:
    return max(0.0, _raw_saved(estimate, human))


@dataclass(frozen=True, eq=False)
class RunsEvaluation(Mapping[str, SystemEstimates]):
    """
    Result of `evaluate_runs`: a mapping from metric names to `SystemEstimates`.

    convention: Convention of the metrics.
    systems: Names of the runs.
    query_ids: The N queries.
    gold: Those with gold grades.
    results: By canonical name; indexing accepts any spelling.
    these_queries: Whether the listed queries themselves are meant, or queries like these.
    notes: What was assumed, mapped or left out, one sentence each.
    """

    convention: Convention
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    gold: tuple[str, ...]
    results: Mapping[str, SystemEstimates]
    these_queries: bool
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> SystemEstimates:
        return self.results[name if name in self.results else str(parse_metric(name))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        from corank.metrics.cheap.report import text

        return text(self)


def evaluate_runs(
    gold: Any,
    runs: Mapping[str, Any],
    metrics: str | Sequence[str] = ("nDCG@10",),
    *,
    cheap: Any = None,
    convention: str | Convention = "corank",
    these_queries: bool = False,
    level: float = 0.95,
) -> RunsEvaluation:
    """
    Estimate metrics of several runs from few gold grades and many cheap ones.

    The cheap judges' values of all queries are corrected by the gold queries, which should be a random sample. The
    intervals hold whatever the judges' bias is; `corank.metrics.cheap.estimate` has the derivation.

    Parameters
    ----------
    gold : path, Qrels, Dataset or object of another library
        Human grades of some queries, as in `corank.metrics.evaluate_run`.
    runs : mapping of str to path, Run or object of another library
        Runs by name; the first is the base of printed differences.
    metrics : str or sequence of str
        Names such as ``nDCG@10``.
    cheap : judgements, sequence or mapping of judgements, optional
        One or more cheap judges of the same and of other queries. Grades of another scale are mapped to that of
        `gold`.
    convention : str or Convention
        One of `corank.metrics.conventions.CONVENTIONS`, or your own.
    these_queries : bool
        Whether to estimate the value for the listed queries, instead of for queries like these.
    level : float
        Level of the intervals.

    Returns
    -------
    RunsEvaluation
        Estimates of each metric: human only, cheap only and corrected; prints as tables.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = {f"q{q}": {f"d{d}": int(g) for d, g in enumerate(rng.integers(0, 4, 20))} for q in range(40)}
    >>> def noisy(noise):
    ...     return {q: {d: g + noise * rng.normal() for d, g in row.items()} for q, row in truth.items()}
    >>> judge = {q: {d: float(np.clip(round(g), 0, 3)) for d, g in row.items()} for q, row in noisy(0.7).items()}
    >>> gold = {q: truth[q] for q in list(truth)[:12]}
    >>> result = evaluate_runs(gold, {"old": noisy(4.0), "new": noisy(1.0)}, cheap=judge)
    >>> difference = result["nDCG@10"].difference("new", "old")
    >>> bool(difference.low > 0), result["nDCG@10"].judges[0].verdict
    (True, 'useful')
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}; pass a number between 0 and 1, such as 0.95.")
    if not runs:
        raise InputError("runs is empty; pass at least one run.")
    rules = find_convention(convention)
    names = [str(parse_metric(name)) for name in ([metrics] if isinstance(metrics, str) else metrics)]
    if not names:
        raise InputError("metrics is empty; pass at least one, such as nDCG@10.")
    judges = as_judges(cheap)
    lists = {name: as_run(run) for name, run in runs.items()}
    matched = GradedRuns.of(lists, [as_qrels(item) for item in (gold, *judges.values())])
    notes: list[str] = []
    n_answered = len({query for run in lists.values() for query in run.qid.tolist()})
    if judges and n_answered > len(matched.queries):
        notes.append(
            f"{n_answered - len(matched.queries)} of {n_answered} queries of the runs have neither gold nor cheap "
            "grades; they are left out."
        )
    mapped = map_to_gold(matched.grades, list(judges), notes)
    depth = parse_metric(names[0]).cut
    for judge, grades in zip(judges, mapped[1:], strict=True):
        if (share := matched.coverage(grades, depth)) < MIN_COVERAGE:
            top = f"first {depth} documents" if depth else "documents"
            notes.append(f"{judge} graded {share:.0%} of the {top} of the runs; let it grade the others, too.")
    tables = [matched.values(grades, names, rules) for grades in mapped]
    holes = matched.holes(mapped[0], names, rules)
    results, used = {}, np.zeros(len(matched.queries), dtype=bool)
    for name in names:
        H, C = tables[0][name], np.array([table[name] for table in tables[1:]])
        is_gold = np.asarray(~np.isnan(H).any(axis=0))
        used |= is_gold
        results[name] = _estimates(
            name, matched.systems, H, C, is_gold, list(judges), these_queries, level, holes[name], notes
        )
        notes += _hole_notes(results[name])
    notes += _sample_notes(tables, names[0], used, len(judges))
    queries = np.array(matched.queries, dtype=object)
    for note in notes:
        warn(note)
    return RunsEvaluation(
        rules, matched.systems, tuple(queries), tuple(queries[used]), results, these_queries, tuple(notes)
    )


def _estimates(
    name: str, systems: tuple[str, ...], H: Floats, C: Floats, is_gold: NDArray[np.bool_], judges: list[str],
    these: bool, level: float, holes: Floats, notes: list[str],
) -> SystemEstimates:  # fmt: skip
    gold = H[:, is_gold]
    if not len(C):
        human = human_only(gold, gold.shape[1], these=these)
        return SystemEstimates(name, systems, human, np.full(len(H), np.nan), human, (), level, holes)
    known = np.asarray(~np.isnan(C).any(axis=1))  # (J, N)
    population = is_gold | known.all(axis=0)
    H, C, is_gold, known = H[:, population], C[:, :, population], is_gold[population], known[:, population]
    for i, judge in enumerate(judges):
        n_absent = int((~known[i]).sum())
        if not known[i].any():
            raise InputError(f"{judge} gives no query a value of {name}; check its grades.")
        if n_absent:
            # a gold query without cheap value has the judge's mean: it enters by its human values only
            C[i][:, ~known[i]] = C[i][:, known[i]].mean(axis=1, keepdims=True)
            notes.append(
                f"{judge} gives no value of {name} for {n_absent} gold queries; they count by human grades only."
            )
    N, queries = H.shape[1], np.flatnonzero(is_gold)
    human = human_only(gold, N, these=these)
    combined, weights = stack(gold, C, queries)
    estimate = corrected(gold, combined, queries, these=these)
    alone = [corrected(gold, entry, queries, these=these) if len(C) > 1 else estimate for entry in C]
    worth = tuple(
        _worth(judge, float(weight), entry, human, gold, values[:, queries])
        for judge, weight, entry, values in zip(judges, weights, alone, C, strict=True)
    )
    for item in worth:
        if item.verdict == "reversed":
            notes.append(
                f"{item.name} orders systems against the gold grades in {name} (agreement {item.agreement:+.2f}): its "
                "scale may be reversed; it is not used to correct, but check it."
            )
        elif item.verdict != "useful":
            notes.append(
                f"the gold queries do not show that {item.name} orders systems better than chance in {name} "
                f"(agreement {item.agreement:+.2f})."
            )
    return SystemEstimates(name, systems, human, combined.mean(axis=1), estimate, worth, level, holes)


def _worth(name: str, weight: float, estimate: Estimate, human: Estimate, gold: Floats, cheap: Floats) -> JudgeWorth:
    h, c = (gold - gold.mean(axis=0), cheap - cheap.mean(axis=0)) if len(gold) > 1 else (
        gold - gold.mean(), cheap - cheap.mean()
    )  # fmt: skip
    products = (h * c).sum(axis=0)
    size = math.sqrt(float((h * h).sum()) * float((c * c).sum()))
    agreement = float(products.sum()) / size if size > 0 else 0.0
    # a random judge's products are symmetric around 0, so that the test of signs is exact
    is_clear = sign_flip(products).p_value < SIGN_LEVEL
    verdict = "not shown to be useful" if not is_clear else "useful" if products.mean() > 0 else "reversed"
    return JudgeWorth(name, weight, estimate.slopes[1], _saved(estimate, human), estimate.bias, agreement, verdict)


def _hole_notes(result: SystemEstimates) -> list[str]:
    """Say if documents without a human grade could change a difference from the first run by more than its size."""
    sizes = result.holes[:, 3] - result.holes[:, 2]
    values = result.corrected.values
    unclear = [s for s in range(1, len(values)) if 0.0 < abs(values[s] - values[0]) < max(sizes[s], sizes[0])]
    if not unclear:
        return []
    worst = max(unclear, key=lambda s: sizes[s])
    return [
        f"{len(unclear)} of {len(values) - 1} differences of {result.metric} are smaller than what documents without a "
        f"human grade could change on the gold queries, such as that of {result.systems[worst]} (up to "
        f"{max(sizes[worst], sizes[0]):.4f}); grade the top of every run."
    ]


def _sample_notes(tables: list[dict[str, Floats]], metric: str, is_gold: NDArray[np.bool_], n_judges: int) -> list[str]:
    """Warn if the cheap values of the gold queries differ from those of the others, by a permutation test."""
    if not n_judges or not is_gold.any():
        return []
    level = np.mean([table[metric].mean(axis=0) for table in tables[1:]], axis=0)
    known = ~np.isnan(level)
    gold, level = is_gold[known], level[known]
    n, N = int(gold.sum()), len(level)
    if n < 2 or N - n < 2:
        return []
    rng = np.random.default_rng(0)
    observed = abs(level[gold].mean() - level.mean())
    drawn = np.array([abs(level[rng.permutation(N)[:n]].mean() - level.mean()) for _ in range(1999)])
    p = (1 + np.count_nonzero(drawn >= observed - 1e-12)) / 2000
    if p >= SAMPLE_LEVEL:
        return []
    return [
        f"the {n} gold queries do not look like a random sample: their mean {metric} by the cheap grades is "
        f"{level[gold].mean():.3f}, that of the others {level[~gold].mean():.3f} (p = {p:.2g}); the estimates assume "
        "one."
    ]
