"""
Learning from logged clicks on MQ2008 (after Joachims, Swaminathan and Schnabel, 2017).

Users click on lists of a ranker fitted to a few judgements. The experiment compares rankers learnt from weighted and
from plain clicks, and checks offline estimates.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from corank.base import ColumnMean
from corank.base.base import Ranker
from corank.clicks import PositionBias, click_pairs, estimate_from_clicks, position_bias
from corank.comparison.report import Report
from corank.data.io.clicks import ClickLog
from corank.data.routing import predict_with_qid
from corank.metrics import evaluate
from corank.models.linear import SPD
from corank.tables import Cell, ReportTable
from experiments.logged_clicks.problems import BM25, JUDGED, SWAPPED, K, Part, clicks, looks, part, production
from experiments.options import ExperimentOptions
from experiments.significance import p_text

REPEATS = 2
ETAS = (1.0, 2.0)
LISTS = (1000, 10_000, 100_000)
CLIP = 0.02
WAYS = ("plain clicks", "weighted, bias known", "weighted, bias from swaps", "weighted, bias by regression")
RIVALS = ("no judgement: mean of BM25 columns", "the production ranker", "all judgements of the queries")
METHODS = ("ips", "self_normalised", "doubly_robust")
LOGS = 200
BIAS_LISTS = 100_000
"""Number of lists from which the position bias is estimated."""
Cells = dict[tuple[float, int, str], list[float]]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 2 repeats of 5 folds by default; quick runs make 1 of 2 folds, without the longest logs.
    Returns: nDCG@10 by number of lists, and the coverage of offline estimates.
    """
    repeats = options.repeats or (1 if options.quick else REPEATS)
    n_folds, lists = (2, LISTS[:2]) if options.quick else (5, LISTS)
    n_logs = 20 if options.quick else LOGS
    options.expect(len(ETAS) * len(lists) * repeats * n_folds + 2 * len(METHODS))
    cells: Cells = {(eta, n, way): [] for eta in ETAS for n in lists for way in (*WAYS, *RIVALS)}
    for eta in ETAS:
        for n in lists:
            for repeat in range(repeats):
                for fold in range(n_folds):
                    key = {"experiment": "logged-clicks", "eta": eta, "lists": n, "repeat": repeat, "fold": fold}
                    results = options.result(key, partial(_learnt, options.seed, eta, n, repeat, fold))
                    for way, value in results.items():
                        cells[eta, n, way].append(value)
    tables = [_table(eta, lists, cells) for eta in ETAS]
    longest = (None, K)
    held = {
        (m, most): options.result(
            {"experiment": "estimated", "method": m, "logs": n_logs, "longest": most},
            partial(_held, options.seed, m, n_logs, most),
        )
        for most in longest
        for m in METHODS
    }
    estimates = ReportTable(
        "DCG@10 of a ranker fitted to all judgements, estimated from clicks on the production ranker's lists",
        ("queries", "estimator", "true", "mean", "deviation", "coverage", "width of interval", "never shown"),
        tuple(
            ("all" if most is None else f"up to {K} documents", m.replace("_", "-"), *item)
            for (m, most), item in held.items()
        ),
        digits=3,
        note=f"{n_logs} logs of 2,000 lists, examination falls as 1/position; the bias is estimated from another log "
        f"of {BIAS_LISTS:,}. Self-normalised estimates are the mean weight of a relevant document, on another scale. "
        "If lists show all documents of their query, the intervals can be right; if most are never shown, only their "
        "expected relevance helps.",
    )
    return Report(
        "Logged clicks on MQ2008",
        f"Folds 1 to {n_folds}, {repeats} draws each. A linear ranker (SPD, defaults) is fitted to {JUDGED} judged "
        f"queries and shows lists of {K}, in {SWAPPED:.0%} of which the first document and another are swapped at "
        "random; users examine position k with probability k^-eta, and click on examined documents of grade 0, 1, 2 "
        "with probability .05, .5, .95. SPD learns from the clicks on the training queries, propensities clipped at "
        f"{CLIP:g}; nDCG@10 on the test queries, corank's convention. p: Wilcoxon's test over draws and folds, against "
        "plain clicks.",
        (*tables, estimates),
        _findings(lists, cells),
    )


def _learnt(seed: int, eta: float, n: int, repeat: int, fold: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, fold, repeat])
    train, test = part(fold, False), part(fold, True)
    old = production(train, rng)
    log = clicks(train, old.predict(train.X), eta, n, rng)
    biases = {
        "plain clicks": PositionBias.power(0.0, K),
        "weighted, bias known": PositionBias(looks(eta), "power"),
        "weighted, bias from swaps": _monotone(log, None),
        "weighted, bias by regression": _monotone(log, train),
    }
    results = {
        RIVALS[0]: _ndcg(ColumnMean(BM25).fit(train.X, train.y, qid=train.qid), test),
        RIVALS[1]: _ndcg(old, test),
    }
    for way, bias in biases.items():
        made = click_pairs(log, train.qid, train.docids, bias=bias, clip=CLIP)
        results[way] = _ndcg(SPD().fit(train.X, pairs=made.pairs, pair_weight=made.pair_weight), test)
    results[RIVALS[2]] = _ndcg(SPD().fit(train.X, train.y, qid=train.qid), test)
    return results


def _monotone(log: ClickLog, train: Part | None) -> PositionBias:
    """Estimate the bias; if clicks do not identify it, assume that examination falls as 1/position."""
    from corank.errors import InputError

    try:
        if train is not None:
            return position_bias(log, X=train.X, qid=train.qid, docids=train.docids)
        return position_bias(log)
    except InputError:
        return PositionBias.power(1.0, K)


def _ndcg(model: Ranker, test: Part) -> float:
    scores = predict_with_qid(model, test.X, test.qid)
    return float(evaluate(test.y, scores, test.qid, "nDCG@10")["nDCG@10"].mean)


def _held(seed: int, method: str, n_logs: int, longest: int | None) -> list[float]:
    rng = np.random.default_rng([seed, 99])
    rows = part(0, False, longest)
    old = production(rows, rng).predict(rows.X)
    new = SPD().fit(rows.X, rows.y, qid=rows.qid).predict(rows.X)
    bias = position_bias(clicks(rows, old, 1.0, BIAS_LISTS, rng))
    rank = rows.queries.ranks(new)
    worth = np.where(rank <= 10, 1.0 / np.log2(1.0 + rank), 0.0)
    truth = float((worth * rows.wanted).sum() / len(rows.queries))
    if method == "self_normalised":
        truth = float((worth * rows.wanted).sum() / rows.wanted.sum())
    results = [
        estimate_from_clicks(
            clicks(rows, old, 1.0, 2000, rng), new, rows.qid, rows.docids,
            metric="DCG@10", method=method, bias=bias, clip=CLIP,
        )
        for _ in range(n_logs)
    ]  # fmt: skip
    values = np.array([item.value for item in results])
    held = np.mean([item.low <= truth <= item.high for item in results])
    width, unseen = np.mean([item.high - item.low for item in results]), np.mean([item.unseen for item in results])
    return [truth, float(values.mean()), float(values.std()), float(held), float(width), float(unseen)]


def _table(eta: float, lists: tuple[int, ...], cells: Cells) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for way in (*RIVALS[:2], *WAYS, RIVALS[2]):
        values = [float(np.mean(cells[eta, n, way])) for n in lists]
        gap = np.concatenate([np.subtract(cells[eta, n, way], cells[eta, n, WAYS[0]]) for n in lists])
        rows.append((way, *values, "" if way == WAYS[0] else p_text(gap, ".1g", "")))
    columns = ("learnt from", *(f"{n:,} lists" for n in lists), "p against plain clicks")
    return ReportTable(f"nDCG@10, examination falls as position^-{eta:g}", columns, tuple(rows), digits=4)


def _findings(lists: tuple[int, ...], cells: Cells) -> tuple[str, ...]:
    results = []
    for eta in ETAS:
        of = {way: np.concatenate([cells[eta, n, way] for n in lists]) for way in (*WAYS, *RIVALS)}
        for way in WAYS[1:]:
            gap = of[way] - of[WAYS[0]]
            results.append(f"position^-{eta:g}: {way} against plain clicks {gap.mean():+.4f} ({p_text(gap, '.1g')}).")
    return tuple(results)
