"""
Fusion of retrievers: few judged queries against rules that need none, and pools of one retriever.

TREC Deep Learning 2021 and 2019 (sets of runs) and four collections (BM25 and vectors). The form of `Fusion` and its
prior were chosen on other random sets of the same runs and on the named sets, so the random sets here are new sets,
but not new runs. One table shows what a prior is worth that is chosen on the other collections alone. ranx is used if
it is installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank import Fusion, RankRLS
from corank.comparison.report import Report
from corank.data.io.runs import Runs
from corank.models.fusion import FusionDefinition
from corank.models.fusion.candidates import shared_documents
from corank.models.fusion.fusion import PRIOR, p_better
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.posterior import Evidence
from corank.models.fusion.report import report_fusion, shares
from corank.tables import Cell, ReportTable
from experiments.fusion.problems import COLLECTIONS, NAMED, Floats, Problem, collection, runs_of, sets_of_runs
from experiments.options import ExperimentOptions

SIZES, LARGE = (5, 10, 20, 40), 40
REPEATS, POOL_REPEATS, COVERAGE_REPEATS = 20, 4, 6
MAX_RANX = 3
"""Retrievers up to which ranx tries weights; for more it takes minutes, and only the k of RRF is optimised."""
METHODS = ("RRF", "min-max mean", "best retriever, chosen", "grid", "ranx", "fusion")
RANKRLS = ("RankRLS, judged rows", "RankRLS, unjudged as 0")
PRIORS = {
    f"evidence {evidence}, agreement {agreement:g}": replace(PRIOR, evidence=evidence, agreement=agreement)
    for evidence in (0.025, 0.05, 0.1)
    for agreement in (0.0, 45.0)
}
"""Priors among which the other collections choose."""
STATED = (0.0, 0.5, 0.7, 0.9, 1.0)
Trial = dict[str, float]
Trials = dict[tuple[str, str, int], list[Trial]]
Sets = dict[str, Callable[[], Problem]]
Integers = NDArray[np.int64]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 draws by default; quick runs make 2, on the named sets only.
    Returns: nDCG@10 on queries that were not used for learning, by set and number of judged queries; pools of one list.
    """
    repeats = options.repeats or (2 if options.quick else REPEATS)
    groups = sets_by_group(options.quick)
    trials: Trials = {}
    tables = [_table(options, title, sets, repeats, trials) for title, sets in groups.items()]
    tables += [_independent(trials), _left_out(trials), _calibration(trials), _coverage(options, groups, repeats)]
    tables += [_pools(options, title, sets, repeats) for title, sets in groups.items() if title.startswith("TREC")]
    return Report(
        "Fusion of retrievers",
        f"nDCG@10 (linear gains, unjudged documents count 0) on the queries that were not used for learning, mean over "
        f"{repeats} draws of the judged queries. The best retriever and the grid of OpenSearch (66 variants for two "
        "retrievers, 6 (m + 1) for more) are chosen by their mean on the judged queries. ranx optimises the weights of "
        "min-max scores for two or three retrievers, and the k of RRF for more. Sizes that leave fewer than 10 queries "
        "for the test (20 with 40 judged queries) are left out.",
        tuple(tables),
    )


def sets_by_group(quick: bool) -> dict[str, Sets]:
    """Return the sets of retrievers, by table."""
    groups: dict[str, Sets] = {}
    for year in NAMED:
        sets = NAMED[year] if quick else sets_of_runs(year)
        groups[f"TREC DL {year[-4:]}"] = {
            _name(i, names): partial(runs_of, year, names) for i, names in enumerate(sets)
        }
    groups["Collections, BM25 and vectors"] = {name: partial(collection, name) for name in COLLECTIONS}
    return groups


def _name(i: int, names: tuple[str, ...]) -> str:
    return " + ".join(names) if len(names) < 4 else f"set {i + 1}, {len(names)} runs"


def _named(title: str) -> int:
    """Return the number of sets of a group that have a name."""
    return len(NAMED[f"trec_dl{title[-4:]}"]) if title.startswith("TREC") else len(COLLECTIONS)


def _draw(problem: Problem, n: int, draw: int) -> tuple[Integers, Integers]:
    """Return judged queries and test queries; the generator is shared by all draws of a size."""
    rng = np.random.default_rng(n)
    orders = [rng.permutation(problem.n_queries) for _ in range(draw + 1)]
    return orders[-1][:n], orders[-1][n:]


def _fit(problem: Problem, y: Floats, train: Integers, **parameters: Any) -> _Recorded:
    rows, others = np.isin(problem.qid, train), np.isin(problem.missed[0], train)
    missed = problem.missed[0][others], problem.missed[1][others]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Recorded(**parameters).fit(problem.X[rows], y[rows], qid=problem.qid[rows], missed=missed)


def _tested(problem: Problem, scores: Sequence[Floats], test: Integers) -> list[float]:
    """Return the metric on the test queries of scores of all rows."""
    return [float(value) for value in np.nanmean(problem.ndcg(np.column_stack(scores))[test], axis=0)]


class _Recorded(Fusion):
    """A fusion that keeps its evidence."""

    recorded: Evidence

    def _evidence(self, *arguments: Any) -> Evidence:
        self.recorded = super()._evidence(*arguments)
        return self.recorded


def _with_priors(problem: Problem, fusion: _Recorded, train: Integers) -> dict[str, Floats]:
    """Return the scores of the fusions that other priors give."""
    evidence, names = fusion.recorded, fusion.definition_.retrievers
    shared = shared_documents(RetrievedLists.of(problem.X, problem.qid).take(train))
    out: dict[str, Floats] = {}
    for name, prior in PRIORS.items():
        log_prior = prior.log(evidence.candidates, evidence.learnt.shape[2], shared)
        weights = replace(evidence, prior=prior, log_prior=log_prior).weights()
        out[name] = FusionDefinition(names, evidence.features.terms(weights, names), name).score(problem.X, problem.qid)
    return out


def _rankrls(problem: Problem, train: Integers) -> dict[str, Floats]:
    """Return scores of RankRLS on min-max scores and reciprocal ranks; without grades of two kinds there are none."""
    X, rows, out = np.hstack(problem.features), np.isin(problem.qid, train), {}
    for name, y in zip(RANKRLS, (problem.y, np.nan_to_num(problem.y)), strict=True):
        if len(np.unique(y[rows][~np.isnan(y[rows])])) > 1:
            out[name] = RankRLS().fit(X[rows], y[rows], qid=problem.qid[rows]).predict(X)
    return out


def _ranx(problem: Problem, train: Integers) -> Floats:
    """Return the scores of the fusion that ranx optimises on the judged queries."""
    from ranx import Qrels, Run, optimize_fusion  # type: ignore[import-not-found]

    F, K = problem.features
    rows = np.flatnonzero(np.isin(problem.qid, train))
    qrels: dict[str, dict[str, int]] = {}
    runs: list[dict[str, dict[str, float]]] = [{} for _ in F.T]
    for row in rows.tolist():
        if not np.isnan(problem.y[row]):
            qrels.setdefault(str(problem.qid[row]), {})[str(row)] = int(problem.y[row])
        for run_, score in zip(runs, problem.X[row].tolist(), strict=True):
            if score == score:
                run_.setdefault(str(problem.qid[row]), {})[str(row)] = score
    for i, (query, grade) in enumerate(zip(*problem.missed, strict=True)):
        if query in train:
            qrels.setdefault(str(query), {})[f"missed {i}"] = int(grade)
    method = "wsum" if len(runs) <= MAX_RANX else "rrf"
    best = optimize_fusion(
        qrels=Qrels(qrels), runs=[Run(item, name=str(j)) for j, item in enumerate(runs)], norm="min-max",
        method=method, metric="ndcg@10", show_progress=False,
    )  # fmt: skip
    return np.asarray(F @ best["weights"] if method == "wsum" else (1.0 / (best["k"] + 60.0 / K - 60.0)).sum(axis=1))


def _trial(make: Callable[[], Problem], n: int, draw: int, with_rankrls: bool) -> Trial:
    problem = make()
    train, test = _draw(problem, n, draw)
    base, grid = problem.baselines, problem.grid
    alone = [name for name in base if name.startswith("retriever")]
    best = max(alone, key=lambda name: float(np.nanmean(base[name][train])))
    out = {name: float(np.nanmean(base[name][test])) for name in base}
    out["best retriever, chosen"] = out[best]
    out["grid"] = float(np.nanmean(grid[test, int(np.nanmean(grid[train], axis=0).argmax())]))
    fusion = _fit(problem, problem.y, train)
    values = fusion.left_out_values_
    out["stated"] = p_better(values["fusion"] - values["RRF"])
    scores = {"fusion": fusion.definition_.score(problem.X, problem.qid), **_with_priors(problem, fusion, train)}
    if find_spec("ranx"):
        with np.errstate(divide="ignore"):
            scores["ranx"] = _ranx(problem, train)
    if with_rankrls:
        scores |= _rankrls(problem, train)
    return out | dict(zip(scores, _tested(problem, list(scores.values()), test), strict=True))


def _mean(trials: list[Trial], name: str) -> float:
    return float(np.mean([trial.get(name, np.nan) for trial in trials]))


def _table(options: ExperimentOptions, title: str, sets: Sets, repeats: int, kept: Trials) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    means: dict[int, list[list[float]]] = {}
    for i, (name, make) in enumerate(sets.items()):
        for n in SIZES:
            if make().n_queries - n < (20 if n == LARGE else 10):
                continue
            options.expect(repeats)
            with_rankrls = i < _named(title) and n in (5, 20)
            trials = [
                options.result(
                    {"group": title, "set": name, "queries": n, "draw": draw},
                    partial(_trial, make, n, draw, with_rankrls),
                )
                for draw in range(repeats)
            ]
            kept[title if title.startswith("TREC") else name, name, n] = trials
            best = max(_mean(trials, key) for key in trials[0] if key.startswith("retriever"))
            values = [best, *(_mean(trials, method) for method in METHODS), _lead(trials, "fusion")]
            means.setdefault(n, []).append(values)
            rows.append((name, n, *values))
    for n, listed in means.items():
        rows.append((f"mean of {len(listed)} sets", n, *np.mean(listed, axis=0).tolist()))
    columns = ("set", "judged queries", "best retriever, known", *METHODS, "fusion − better of RRF and min-max mean")
    note = "The best retriever, known: with the highest mean on the test queries, which nobody knows beforehand."
    return ReportTable(title, columns, tuple(rows), note=note)


def _lead(trials: list[Trial], method: str) -> float:
    """Return the lead of a method over the better of RRF and the min-max mean."""
    return _mean(trials, method) - max(_mean(trials, "RRF"), _mean(trials, "min-max mean"))


def _independent(kept: Trials) -> ReportTable:
    """Show the rows that an independent program computes on the same draws, beside the fusion."""
    columns = ("RRF", "min-max mean", "retriever 1", "retriever 2", "grid", *RANKRLS, "fusion")
    rows: list[tuple[Cell, ...]] = []
    for (_, name, n), trials in kept.items():
        if RANKRLS[1] in trials[0]:
            two = "retriever 3" not in trials[0]
            values = [_mean(trials, key) if two or not key.startswith("retriever") else np.nan for key in columns]
            rows.append((name, n, *values))
    note = "RankRLS learns from min-max scores and 60/(60 + rank). Collections without grades of 0 give it nothing."
    return ReportTable("Rows of an independent program", ("set", "judged queries", *columns), tuple(rows), note=note)


def _left_out(kept: Trials) -> ReportTable:
    """Choose a prior on all collections but one, by the mean lead and the part of it below -.005, and show it there."""
    collections = dict.fromkeys(key[0] for key in kept)
    rows: list[tuple[Cell, ...]] = []
    for left_out in collections:
        quality = {}
        for prior in PRIORS:
            leads = {name: [_lead(t, prior) for key, t in kept.items() if key[0] == name] for name in collections}
            per = [
                np.mean(v) + 10 * np.mean(np.minimum(np.array(v) + 0.005, 0)) for n, v in leads.items() if n != left_out
            ]
            quality[prior] = float(np.mean(per)) if per else 0.0
        chosen = max(quality, key=lambda prior: quality[prior])
        for method in (chosen, "fusion", "best retriever, chosen", "grid", "ranx"):
            leads_here = [_lead(t, method) for key, t in kept.items() if key[0] == left_out]
            label = f"prior chosen on the others: {chosen}" if method == chosen else method
            low = sum(lead < -0.005 for lead in leads_here)
            rows.append((left_out, label, float(np.mean(leads_here)), min(leads_here), f"{low} of {len(leads_here)}"))
    columns = ("left out", "method", "mean lead", "lowest lead", "below -.005")
    note = "Lead over the better of RRF and the min-max mean, by set and number of judged queries; fusion: as shipped."
    return ReportTable("Prior chosen on the other collections", columns, tuple(rows), note=note)


def _calibration(kept: Trials) -> ReportTable:
    """Compare the probability that the fusion beats RRF with how often it does on the test queries."""
    pairs = np.array([(t["stated"], t["fusion"] > t["RRF"]) for trials in kept.values() for t in trials], dtype=float)
    rows: list[tuple[Cell, ...]] = []
    for low, high in pairwise(STATED):
        own = pairs[(pairs[:, 0] >= low) & ((pairs[:, 0] < high) | (high == STATED[-1]))]
        if len(own):
            rows.append((f"{low:g} to {high:g}", len(own), float(own[:, 0].mean()), float(own[:, 1].mean())))
    columns = ("stated", "fusions", "mean stated probability", "share better than RRF")
    return ReportTable("Probability that the fusion beats RRF", columns, tuple(rows))


def _intervals(make: Callable[[], Problem], n: int, draw: int) -> dict[str, list[float]]:
    """Return the shares of the retrievers in a fusion, and their intervals."""
    problem = make()
    train, _ = _draw(problem, n, draw)
    fusion, rows = _fit(problem, problem.y, train), np.isin(problem.qid, train)
    names, ids = fusion.definition_.retrievers, problem.qid[rows].astype(object)
    runs = Runs(names, names, ids, np.arange(rows.sum()).astype(object), problem.X[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = report_fusion(Fusion().fit(runs.X, problem.y[rows], qid=ids), runs, problem.y[rows]).weights
    return {
        "share": [item.weight for item in weights], "low": [item.low for item in weights],
        "high": [item.high for item in weights],
    }  # fmt: skip


def _all_queries(make: Callable[[], Problem]) -> dict[str, list[float]]:
    problem = make()
    fusion = _fit(problem, problem.y, np.arange(problem.n_queries))
    return {"share": shares(fusion.definition_, RetrievedLists.of(problem.X, problem.qid)).tolist()}


def _coverage(options: ExperimentOptions, groups: dict[str, Sets], repeats: int) -> ReportTable:
    """Count how often intervals of weights contain their mean over draws, and the weights learnt from all queries."""
    n_draws = min(repeats, COVERAGE_REPEATS)
    named = {
        name: make for title, sets in groups.items() for name, make in list(sets.items())[: _named(title)]
    }  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for n in (10, 20):
        inside = []
        for name, make in named.items():
            if make().n_queries - n < 10:
                continue
            options.expect(n_draws + 1)
            draws = [
                options.result({"weights": name, "queries": n, "draw": draw}, partial(_intervals, make, n, draw))
                for draw in range(n_draws)
            ]
            whole = options.result({"weights": name, "queries": "all"}, partial(_all_queries, make))
            share, low, high = (np.array([draw[key] for draw in draws]) for key in ("share", "low", "high"))
            targets = share.mean(axis=0), np.array(whole["share"])
            inside.append([np.mean((low <= t) & (t <= high)) for t in targets] + [np.mean(high - low)])
        rows.append((n, len(inside), *np.mean(inside, axis=0).tolist()))
    columns = ("judged queries", "sets", "contain the mean over draws", "contain the weights of all queries", "width")
    return ReportTable("Intervals of weights (.95)", columns, tuple(rows), note=f"{n_draws} draws of each named set.")


def _pool_trial(make: Callable[[], Problem], n: int, draw: int) -> Trial:
    """Judge only the first 10 documents of one retriever, the first and the last one in turn."""
    problem = make()
    train, test = _draw(problem, n, draw)
    ranks = RetrievedLists.of(problem.X, problem.qid).ranks
    source = (0, problem.X.shape[1] - 1)[draw % 2]
    y = np.where((ranks[:, source] > 0) & (ranks[:, source] <= 10), problem.y, np.nan)
    seen = replace(problem, y=y, missed=(problem.missed[0][:0], problem.missed[1][:0]))
    pool = {f"r{j + 1}": 10 * (j == source) for j in range(problem.X.shape[1])}
    settings: dict[str, dict[str, Any]] = {
        "unjudged as irrelevant": {"unjudged": "irrelevant"}, "unjudged as missing": {"unjudged": "missing"},
        "fusion": {}, "fusion, pool known": {"pool": pool},
    }  # fmt: skip
    scores = [_fit(seen, y, train, **given).definition_.score(problem.X, problem.qid) for given in settings.values()]
    out = {"RRF": float(np.nanmean(problem.baselines["RRF"][test]))}
    return out | dict(zip(settings, _tested(problem, scores, test), strict=True))


def _pools(options: ExperimentOptions, title: str, sets: Sets, repeats: int) -> ReportTable:
    methods = ("RRF", "unjudged as irrelevant", "unjudged as missing", "fusion", "fusion, pool known")
    rows: list[tuple[Any, ...]] = []
    few = min(POOL_REPEATS, max(2, repeats))
    for name, make in sets.items():
        options.expect(few)
        trials = [
            options.result(
                {"pool": title, "set": name, "queries": 20, "draw": draw}, partial(_pool_trial, make, 20, draw)
            )
            for draw in range(few)
        ]
        values = [_mean(trials, method) for method in methods]
        rows.append((name, *values, values[3] - values[0]))
    mean = np.mean([row[1:] for row in rows], axis=0)
    rows.append((f"mean of {len(rows)} sets", *mean.tolist()))
    note = (
        f"20 judged queries, {few} draws; only the first 10 documents of one retriever are judged, of the first and "
        "the last one in turn. The test uses all judgements."
    )
    return ReportTable(f"{title}, one retriever judged", ("set", *methods, "fusion − RRF"), tuple(rows), note=note)
