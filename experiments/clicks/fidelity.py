# mypy: disable-error-code="no-untyped-call"
"""
Fidelity of interleaving: does it find the better ranker, and no difference if there is none?

Five rankers are five columns out of 25: TF-IDF, BM25 and language models, ties in random order. 10,000 lists of train
queries are interleaved and clicked. A pair of rankers is an error if the sign of the summed preferences differs from
that of the difference in nDCG@10, over the same queries or over those of the test part (Oosterhuis and de Rijke, 2017).
Users whose clicks do not depend on the grade must prefer no ranker.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.clicks import CLICK_MODELS, CascadeClicks
from corank.clicks.click_models import as_grades
from corank.core.clicks.sessions import draw_clicks, interleave_team_draft
from corank.core.jit import jit
from corank.core.random import random_below, seed_state
from corank.data.ranking import RankingData
from corank.metrics import evaluate
from corank.tables import ReportTable
from experiments.clicks import interleaving_kernels as kernels
from experiments.clicks.problem import USERS, K, part, seed_of, user_of
from experiments.datasets.mq2008 import N_FOLDS
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

TEAM_DRAFT, PROBABILISTIC, PAIRWISE = 0, 1, 2
METHODS = {
    "TeamDraft": TEAM_DRAFT,
    "Probabilistic": PROBABILISTIC,
    "PairwisePreference": PAIRWISE,
}
PUBLISHED = {
    "TeamDraft": (0.15, 0.17, 0.18),
    "Probabilistic": (0.16, 0.17, 0.18),
    "PairwisePreference": (0.14, 0.15, 0.17),
}
"""Errors after 10,000 lists with the three users, five rankers."""

N_RANKERS, LISTS, LISTS_TIE = 5, 10_000, 100_000
COLUMNS = (*range(10, 15), *range(20, 40))
TAU = 3.0
# clicks do not depend on the grade, and may stop anywhere
BLIND = CascadeClicks(click=(0.5, 0.5, 0.5), stop=(0.1, 0.1, 0.1), stop_after="any")


def sums(method: int, rankings: NDArray[np.int64], data: RankingData, user: CascadeClicks, n: int, seed: int) -> Floats:
    """
    Compare rankings over n lists.

    method: code.
    rankings (m, n_rows): of each query, in the order of `data.queries`, numbers inside the query, best first.
    Returns: sums of preferences and of their squares, shape (2, m, m).
    """
    rng = np.random.default_rng(seed)
    grades = as_grades(data.y, len(user.probabilities.click))[data.queries.order]  # type: ignore[arg-type]
    rngs = np.stack([seed_state(rng) for _ in range(3)])
    out = np.zeros((2, len(rankings), len(rankings)))
    longest = int(np.diff(data.starts).max())
    softmax = np.arange(1, longest + 1, dtype=np.float64) ** -TAU
    _compare(method, rankings, data.starts, grades, user.probabilities, softmax, rngs, n, out)
    return out


@jit
def _compare(method, rankings, starts, grades, user, softmax, rngs, n, out):  # type: ignore[no-untyped-def]
    m = len(rankings)
    shown, teams = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    clicks, seen = np.empty(K, dtype=np.bool_), np.empty(K, dtype=np.int64)
    chances, credit = np.empty(K), np.empty(m)
    shares, law, new = np.empty((K, m)), np.empty(2 * K + 1), np.empty(2 * K + 1)
    for _ in range(n):
        q = np.int64(random_below(rngs[0], len(starts) - 1))
        first, last = starts[q], starts[q + 1]
        k = min(K, last - first)
        these = rankings[:, first:last].copy()
        ranks, left = np.empty_like(these), np.empty(last - first, dtype=np.bool_)
        kernels.invert(these, ranks)
        if method == TEAM_DRAFT:
            interleave_team_draft(these, rngs[1], shown[:k], teams[:k])
        elif method == PROBABILISTIC:
            kernels.interleave_probabilistic(ranks, softmax, rngs[1], shown[:k], chances[:k], left)
        else:
            kernels.interleave_pairwise(these, rngs[1], shown[:k])
        for rank in range(k):
            seen[rank] = grades[first + shown[rank]]
        draw_clicks(user, seen[:k], rngs[2], clicks[:k])
        if method == PROBABILISTIC:
            n_clicks = kernels.assign_clicks(ranks, softmax, shown[:k], clicks[:k], left, shares)
        elif method == TEAM_DRAFT:
            credit[:] = 0.0
            for rank in range(k):
                if clicks[rank] and teams[rank] >= 0:
                    credit[teams[rank]] += 1.0
        else:
            kernels.credit_pairwise(these, ranks, shown[:k], clicks[:k], credit)
        for i in range(m):
            for j in range(i):
                if method == PROBABILISTIC:
                    p = kernels.expected_sign(shares, n_clicks, i, j, law, new) if n_clicks > 0 else 0.0
                elif method == PAIRWISE:
                    p = credit[i] - credit[j]
                else:
                    p = np.sign(credit[i] - credit[j])
                out[0, i, j] += p
                out[0, j, i] -= p
                out[1, i, j] += p * p
                out[1, j, i] += p * p


def rankers(fold: int, repeat: int, seed: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the rankings of five columns, and their nDCG on the same queries and on those of the test part."""
    rng = np.random.default_rng(seed_of(seed, fold, repeat, 7))
    data, test = part(fold, "train"), part(fold, "test")
    lines, values, name = [], [], f"nDCG@{K}"
    for column in rng.choice(COLUMNS, N_RANKERS, replace=False):
        order = np.lexsort((rng.random(data.n_rows), -data.X[:, column], data.queries.codes))
        ranks = np.empty(data.n_rows, dtype=np.int64)
        ranks[order] = np.arange(data.n_rows)
        by_query = ranks[data.queries.order]
        lines.append(np.argsort(by_query) - np.repeat(data.starts[:-1], data.queries.sizes))
        same = evaluate(data.y, -ranks, data.queries.codes, name)[name].mean  # type: ignore[arg-type]
        values.append((same, evaluate(test.y, test.X[:, column], test.queries.codes, name)[name].mean))  # type: ignore[arg-type]
    return np.array(lines), np.array(values).T


def tables(options: ExperimentOptions, repeats: int) -> tuple[ReportTable, ReportTable]:
    """
    Measure errors, and ties of rankings that users cannot distinguish.

    repeats: sets of five rankers for each fold.
    """
    return _errors(options, repeats), _ties(options)


def _errors(options: ExperimentOptions, repeats: int) -> ReportTable:
    lists = LISTS // 10 if options.quick else LISTS
    rows: list[tuple[str | float, ...]] = []
    for name, code in METHODS.items():
        cells: list[float] = []
        for index, kind in enumerate(USERS):
            results = []
            for fold, repeat in product(range(N_FOLDS), range(repeats)):
                key: dict[str, Any] = {
                    "experiment": "clicks", "what": "errors", "method": name, "user": kind, "lists": lists,
                    "fold": fold, "repeat": repeat,
                }  # fmt: skip
                what = (code, fold, repeat, kind, lists, options.seed)
                results.append(options.result(key, partial(_error, *what)))
            same, test = np.mean(results, axis=0)
            cells += [float(same), float(test), PUBLISHED[name][index]]
        rows.append((name, *cells))
    words = [word for kind in USERS for word in (kind, f"{kind}, test", "published")]
    return ReportTable(
        f"Share of pairs of five rankers that {lists} lists order otherwise than nDCG@{K} does",
        ("method", *words),
        tuple(rows),
        digits=3,
        note=f"{N_FOLDS * repeats} sets of five columns (TF-IDF, BM25, language models), standard errors about .02. "
        "nDCG is that of the queries served or, in columns named test, of the test part. The published protocol does "
        "not specify that and other details: figures are close but not equal.",
    )


def _error(code: int, fold: int, repeat: int, kind: str, lists: int, seed: int) -> list[float]:
    rankings, values = rankers(fold, repeat, seed)
    results = sums(code, rankings, part(fold, "train"), user_of(kind, "click"), lists, seed_of(seed, fold, repeat, 8))[
        0
    ]
    item, other = np.triu_indices(N_RANKERS, 1)
    wrong = np.sign(results[item, other]) != np.sign(values[:, item] - values[:, other])
    return [float(share) for share in wrong.mean(axis=1)]


def _ties(options: ExperimentOptions) -> ReportTable:
    lists = LISTS_TIE // 10 if options.quick else LISTS_TIE
    rows = []
    for name, code in METHODS.items():
        key = {"experiment": "clicks", "what": "ties", "method": name, "lists": lists}
        same, blind = options.result(key, lambda c=code: _z_values(c, lists, options.seed))  # type: ignore[misc]
        rows.append((name, *same, blind))
    return ReportTable(
        f"Two rankings that users cannot distinguish: mean preference over {lists} lists, in standard errors",
        ("method", *(f"identical, {kind}" for kind in CLICK_MODELS), "different, blind user"),
        tuple(rows),
        digits=2,
        note="Between −3 and 3 is a tie; identical rankings tie in every single list. The blind user clicks on every "
        "row with the same probability, so that two different rankings must tie too.",
    )


def _z_values(code: int, lists: int, seed: int) -> tuple[list[float], float]:
    rankings, _ = rankers(0, 0, seed)
    data = part(0, "train")

    def z(two: NDArray[np.int64], user: CascadeClicks) -> float:
        first, second = sums(code, two, data, user, lists, seed_of(seed, 9))[:, 0, 1] / lists
        return float(first / np.sqrt((second - first**2) / lists)) if second > 0.0 else 0.0

    same = [z(rankings[[0, 0]], user_of(kind, "click")) for kind in CLICK_MODELS]
    return same, z(rankings[:2], BLIND)
