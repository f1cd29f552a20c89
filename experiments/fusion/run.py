"""
Fusion of retrievers: few judged queries against rules that need none, and pools of one retriever.

TREC Deep Learning 2021 and 2019 (sets of runs) and four collections (BM25 and vectors). The prior of `Fusion` was
chosen on other random sets of the same runs and on the named sets, so the random sets here are new
sets, but not new runs. The last columns show what a prior is worth that is chosen on the other collections alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank import Fusion
from corank.comparison.report import Report
from corank.models.fusion import FusionDefinition
from corank.models.fusion.candidates import shared_documents
from corank.models.fusion.fusion import PRIOR, p_better
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.posterior import Evidence
from corank.tables import Cell, ReportTable
from experiments.fusion.problems import COLLECTIONS, NAMED, Problem, collection, runs_of, sets_of_runs
from experiments.options import ExperimentOptions

SIZES, LARGE = (5, 10, 20, 40), 40
REPEATS = 20
METHODS = ("RRF", "min-max mean", "best retriever, chosen", "grid", "fusion")
PRIORS = {
    f"evidence {evidence}, agreement {agreement:g}": replace(PRIOR, evidence=evidence, agreement=agreement)
    for evidence in (0.025, 0.05, 0.1)
    for agreement in (0.0, 150.0)
}
"""Priors among which the other collections choose."""
STATED = (0.0, 0.5, 0.7, 0.9, 1.0)
Trials = dict[tuple[str, str, int], list[dict[str, float]]]
Draw = tuple[NDArray[np.int64], NDArray[np.int64]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 20 draws by default; quick runs make 2, on the named sets only.
    Returns: nDCG@10 on queries that were not used for learning, by set and number of judged queries; pools of one list.
    """
    repeats = options.repeats or (2 if options.quick else REPEATS)
    groups: dict[str, dict[str, Callable[[], Problem]]] = {}
    for year in NAMED:
        sets = NAMED[year] if options.quick else sets_of_runs(year)
        groups[f"TREC DL {year[-4:]}"] = {
            _name(i, names): partial(runs_of, year, names) for i, names in enumerate(sets)
        }
    groups["Collections, BM25 and vectors"] = {name: partial(collection, name) for name in COLLECTIONS}
    trials: Trials = {}
    tables = [_table(options, title, sets, repeats, trials) for title, sets in groups.items()]
    tables += [_left_out(trials), _calibration(trials)]
    tables += [_pools(options, title, sets, repeats) for title, sets in groups.items() if title.startswith("TREC")]
    return Report(
        "Fusion of retrievers",
        f"nDCG@10 (linear gains, unjudged documents count 0) on the queries that were not used for learning, mean over "
        f"{repeats} draws of the judged queries. The best retriever and the grid of OpenSearch (66 variants for two "
        "retrievers, 6 (m + 1) for more) are chosen by their mean on the judged queries. Sizes that leave fewer than "
        "10 queries for the test (20 with 40 judged queries) are left out.",
        tuple(tables),
    )


def _name(i: int, names: tuple[str, ...]) -> str:
    return " + ".join(names) if len(names) < 4 else f"set {i + 1}, {len(names)} runs"


def _draw(problem: Problem, n: int, draw: int) -> Draw:
    """Return judged queries and test queries; the generator is shared by all draws of a size."""
    rng = np.random.default_rng(n)
    orders = [rng.permutation(problem.n_queries) for _ in range(draw + 1)]
    return orders[-1][:n], orders[-1][n:]


def _fit(problem: Problem, y: NDArray[np.float64], train: NDArray[np.int64], **parameters: Any) -> _Recorded:
    rows, others = np.isin(problem.qid, train), np.isin(problem.missed[0], train)
    missed = problem.missed[0][others], problem.missed[1][others]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Recorded(**parameters).fit(problem.X[rows], y[rows], qid=problem.qid[rows], missed=missed)


def _tested(problem: Problem, definition: FusionDefinition, test: NDArray[np.int64]) -> float:
    rows, others = np.isin(problem.qid, test), np.isin(problem.missed[0], test)
    part = Problem(
        problem.X[rows], problem.qid[rows], problem.y[rows], (problem.missed[0][others], problem.missed[1][others])
    )
    return float(part.judged().ndcg(definition.score(part.X, part.qid)[:, None]).mean())


class _Recorded(Fusion):
    """A fusion that keeps its evidence."""

    recorded: Evidence

    def _evidence(self, *arguments: Any) -> Evidence:
        self.recorded = super()._evidence(*arguments)
        return self.recorded


def _with_priors(
    problem: Problem, fusion: _Recorded, train: NDArray[np.int64], test: NDArray[np.int64]
) -> dict[str, float]:
    """Return the metric on test queries of the fusions that other priors give."""
    evidence = fusion.recorded
    out: dict[str, float] = {}
    shared = shared_documents(RetrievedLists.of(problem.X, problem.qid).take(train))
    for name, prior in PRIORS.items():
        log_prior = prior.log(evidence.candidates.kinds, evidence.candidates.family, shared)
        other = replace(evidence, prior=prior, candidates=replace(evidence.candidates, log_prior=log_prior))
        names = fusion.definition_.retrievers
        other_definition = FusionDefinition(names, evidence.features.terms(other.weights(), names), name)
        out[name] = _tested(problem, other_definition, test)
    return out


def _trial(make: Callable[[], Problem], n: int, draw: int) -> dict[str, float]:
    problem = make()
    train, test = _draw(problem, n, draw)
    base, grid = problem.baselines(), problem.grid()
    alone = [name for name in base if name.startswith("retriever")]
    best = max(alone, key=lambda name: float(np.nanmean(base[name][train])))
    out = {name: float(np.nanmean(base[name][test])) for name in base}
    out["best retriever, chosen"] = out[best]
    out["grid"] = float(np.nanmean(grid[test, int(np.nanmean(grid[train], axis=0).argmax())]))
    fusion = _fit(problem, problem.y, train)
    values = fusion.left_out_values_
    out["stated"] = p_better(values["fusion"] - values["RRF"])
    return out | {"fusion": _tested(problem, fusion.definition_, test)} | _with_priors(problem, fusion, train, test)


def _table(
    options: ExperimentOptions, title: str, sets: dict[str, Callable[[], Problem]], repeats: int, kept: Trials
) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    means: dict[int, list[list[float]]] = {}
    for name, make in sets.items():
        for n in SIZES:
            if make().n_queries - n < (20 if n == LARGE else 10):
                continue
            options.expect(repeats)
            trials = [
                options.result(
                    {"group": title, "set": name, "queries": n, "draw": draw}, partial(_trial, make, n, draw)
                )
                for draw in range(repeats)
            ]
            kept[title if title.startswith("TREC") else name, name, n] = trials
            mean = {key: float(np.mean([trial[key] for trial in trials])) for key in trials[0]}
            alone = [mean[key] for key in mean if key.startswith("retriever")]
            values = [mean[method] for method in METHODS]
            lead = mean["fusion"] - max(mean["RRF"], mean["min-max mean"])
            means.setdefault(n, []).append([max(alone), *values, lead])
            rows.append((name, n, max(alone), *values, lead))
    for n, listed in means.items():
        rows.append((f"mean of {len(listed)} sets", n, *np.mean(listed, axis=0).tolist()))
    columns = ("set", "judged queries", "best retriever, known", *METHODS, "fusion − better of RRF and min-max mean")
    note = "The best retriever, known: with the highest mean on the test queries, which nobody knows beforehand."
    return ReportTable(title, columns, tuple(rows), note=note)


def _lead(trials: list[dict[str, float]], method: str) -> float:
    """Return the lead of a method over the better of RRF and the min-max mean."""
    mean = {key: float(np.mean([trial[key] for trial in trials])) for key in (method, "RRF", "min-max mean")}
    return mean[method] - max(mean["RRF"], mean["min-max mean"])


def _left_out(kept: Trials) -> ReportTable:
    """Choose a prior on all collections but one, by the mean lead and the part of it below -.005, and show it there."""
    collections = dict.fromkeys(key[0] for key in kept)
    rows = []
    for left_out in collections:
        quality = {}
        for prior in PRIORS:
            leads = {name: [_lead(t, prior) for key, t in kept.items() if key[0] == name] for name in collections}
            per = [
                np.mean(v) + 10 * np.mean(np.minimum(np.array(v) + 0.005, 0)) for n, v in leads.items() if n != left_out
            ]
            quality[prior] = float(np.mean(per)) if per else 0.0
        chosen = max(quality, key=lambda prior: quality[prior])
        for method in (chosen, "fusion", "best retriever, chosen", "grid"):
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


def _pool_trial(make: Callable[[], Problem], n: int, draw: int) -> dict[str, float]:
    """Judge only the first 10 documents of one retriever, the first and the last one in turn."""
    problem = make()
    train, test = _draw(problem, n, draw)
    ranks = RetrievedLists.of(problem.X, problem.qid).ranks
    source = (0, problem.X.shape[1] - 1)[draw % 2]
    y = np.where((ranks[:, source] > 0) & (ranks[:, source] <= 10), problem.y, np.nan)
    problem_y = Problem(problem.X, problem.qid, y, (problem.missed[0][:0], problem.missed[1][:0]))
    pool = {f"r{j + 1}": 10 * (j == source) for j in range(problem.X.shape[1])}
    settings: dict[str, dict[str, Any]] = {
        "unjudged as irrelevant": {"unjudged": "irrelevant"}, "unjudged as missing": {"unjudged": "missing"},
        "fusion": {}, "fusion, pool known": {"pool": pool},
    }  # fmt: skip
    out = {"RRF": float(np.nanmean(problem.baselines()["RRF"][test]))}
    return out | {
        name: _tested(problem, _fit(problem_y, y, train, **given).definition_, test) for name, given in settings.items()
    }


def _pools(options: ExperimentOptions, title: str, sets: dict[str, Callable[[], Problem]], repeats: int) -> ReportTable:
    methods = ("RRF", "unjudged as irrelevant", "unjudged as missing", "fusion", "fusion, pool known")
    rows: list[tuple[Any, ...]] = []
    few = max(2, 2 * (repeats // 5))
    for name, make in sets.items():
        options.expect(few)
        trials = [
            options.result(
                {"pool": title, "set": name, "queries": 20, "draw": draw}, partial(_pool_trial, make, 20, draw)
            )
            for draw in range(few)
        ]
        values = [float(np.mean([trial[method] for trial in trials])) for method in methods]
        rows.append((name, *values, values[3] - values[0]))
    mean = np.mean([row[1:] for row in rows], axis=0)
    rows.append((f"mean of {len(rows)} sets", *mean.tolist()))
    note = (
        f"20 judged queries, {few} draws; only the first 10 documents of one retriever are judged, of the first and "
        "the last one in turn."
    )
    return ReportTable(f"{title}, one retriever judged", ("set", *methods, "fusion − RRF"), tuple(rows), note=note)
