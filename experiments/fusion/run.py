"""
Fusion of retrievers: few judged queries against rules that need none, and pools of one retriever.

TREC Deep Learning 2021 and 2019 (sets of runs) and four collections (BM25 and vectors). The prior of `Fusion` was
chosen on other random sets of the same runs and on the named sets, so the random sets here are new
sets, but not new runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank import Fusion
from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from experiments.fusion.problems import COLLECTIONS, NAMED, Problem, collection, runs_of, sets_of_runs
from experiments.options import ExperimentOptions

SIZES, LARGE = (5, 10, 20, 40), 40
REPEATS = 20
METHODS = ("RRF", "min-max mean", "best retriever, chosen", "grid", "fusion")
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
    tables = [_table(options, title, sets, repeats) for title, sets in groups.items()]
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


def _fit(problem: Problem, y: NDArray[np.float64], train: NDArray[np.int64], **parameters: Any) -> Fusion:
    rows, others = np.isin(problem.qid, train), np.isin(problem.missed[0], train)
    missed = problem.missed[0][others], problem.missed[1][others]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Fusion(**parameters).fit(problem.X[rows], y[rows], qid=problem.qid[rows], missed=missed)


def _tested(problem: Problem, fusion: Fusion, test: NDArray[np.int64]) -> float:
    judged = problem.judged()
    values = judged.ndcg(fusion.definition_.score(problem.X, problem.qid)[:, None])[:, 0]
    return float(values[np.isin(judged.codes, test)].mean())


def _trial(make: Callable[[], Problem], n: int, draw: int) -> dict[str, float]:
    problem = make()
    train, test = _draw(problem, n, draw)
    base, grid = problem.baselines(), problem.grid()
    alone = [name for name in base if name.startswith("retriever")]
    best = max(alone, key=lambda name: float(np.nanmean(base[name][train])))
    out = {name: float(np.nanmean(base[name][test])) for name in base}
    out["best retriever, chosen"] = out[best]
    out["grid"] = float(np.nanmean(grid[test, int(np.nanmean(grid[train], axis=0).argmax())]))
    return out | {"fusion": _tested(problem, _fit(problem, problem.y, train), test)}


def _table(options: ExperimentOptions, title: str, sets: dict[str, Callable[[], Problem]], repeats: int) -> ReportTable:
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


def _pool_trial(make: Callable[[], Problem], n: int, draw: int) -> dict[str, float]:
    """Judge only the first 10 documents of the first retriever."""
    from corank.models.fusion.lists import RetrievedLists

    problem = make()
    train, test = _draw(problem, n, draw)
    ranks = RetrievedLists.of(problem.X, problem.qid).ranks
    y = np.where((ranks[:, 0] > 0) & (ranks[:, 0] <= 10), problem.y, np.nan)
    problem_y = Problem(problem.X, problem.qid, y, (problem.missed[0][:0], problem.missed[1][:0]))
    pool = {f"r{j + 1}": 10 * (j == 0) for j in range(problem.X.shape[1])}
    settings: dict[str, dict[str, Any]] = {
        "unjudged as irrelevant": {"unjudged": "irrelevant"}, "unjudged as missing": {"unjudged": "missing"},
        "fusion": {}, "fusion, pool known": {"pool": pool},
    }  # fmt: skip
    out = {"RRF": float(np.nanmean(problem.baselines()["RRF"][test]))}
    return out | {name: _tested(problem, _fit(problem_y, y, train, **given), test) for name, given in settings.items()}


def _pools(options: ExperimentOptions, title: str, sets: dict[str, Callable[[], Problem]], repeats: int) -> ReportTable:
    methods = ("RRF", "unjudged as irrelevant", "unjudged as missing", "fusion", "fusion, pool known")
    rows: list[tuple[Any, ...]] = []
    few = max(1, repeats // 4)
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
    note = f"20 judged queries, {few} draws; only the first 10 documents of the first retriever are judged."
    return ReportTable(f"{title}, one retriever judged", ("set", *methods, "fusion − RRF"), tuple(rows), note=note)
