"""Learners with memory quadratic in the rows compute it before they start."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corank import CoRankingPursuit, CoRankRLS, RankingPursuit, RankRLS, RankSVM, ViewRankRLS, memory
from corank.base import Landmarks
from corank.errors import InputError

N = 50_000
# number of queries of the problem, and the learner
LEARNERS: dict[str, tuple[int, Callable[[], Any]]] = {
    "RankRLS": (100, lambda: RankRLS(kernel="gaussian", n_basis=None)),
    "RankRLS basis": (100, lambda: RankRLS(kernel="gaussian", n_basis=N)),
    "RankRLS alphas": (100, lambda: RankRLS(kernel="laplacian", n_basis=None, alphas=[0.1, 1.0])),
    "RankRLS pairs out": (1, lambda: RankRLS(alphas=[0.1, 1.0])),
    "RankRLS evidence": (
        1,
        lambda: RankRLS(kernel="gaussian", n_basis=None, alphas=[0.1, 1.0], metric="evidence"),
    ),
    "CoRankRLS": (100, lambda: CoRankRLS(2, kernel="gaussian")),
    "CoRankRLS alphas": (100, lambda: CoRankRLS(2, kernel="gaussian", alphas=[0.1, 1.0])),
    "ViewRankRLS": (100, lambda: ViewRankRLS(2, kernel="gaussian")),
    "RankSVM": (100, lambda: RankSVM(kernel="gaussian")),
    "RankingPursuit": (100, lambda: RankingPursuit(5, dictionary="scored")),
    "RankingPursuit early": (100, lambda: RankingPursuit(5, dictionary="scored", early_stopping=True)),
    "CoRankingPursuit": (100, lambda: CoRankingPursuit(n_basis=5, views=2, dictionary="all")),
    "CoRankingPursuit early": (
        100,
        lambda: CoRankingPursuit(n_basis=5, views=2, dictionary="all", early_stopping=True),
    ),
    "Landmarks": (1, lambda: Landmarks(N)),
}


def problem(n: int, n_queries: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)), rng.normal(size=n), np.arange(n) % n_queries


def learn(make: Callable[[], Any], n: int, n_queries: int) -> None:
    X, y, qid = problem(n, n_queries)
    model = make()
    if isinstance(model, CoRankRLS | CoRankingPursuit):
        y[::4] = np.nan
    if isinstance(model, Landmarks):
        model.fit(X)
    else:
        model.fit(X, y, qid=qid)


@pytest.mark.parametrize("name", LEARNERS)
def test_fifty_thousand_rows_are_refused_before_work(monkeypatch, name):
    monkeypatch.setattr(memory, "free_memory", lambda: 4e9)
    n_queries, make = LEARNERS[name]
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"rows need [\d.,]+ GB of memory, but 4.0 GB are free; (set|pass) "):
            learn(make, N, n_queries)
        # nothing quadratic was allocated: 50,000² bytes are 2.5 GB
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def test_this_machine_refuses_too_many_rows():
    free = memory.free_memory()
    if free is None:
        pytest.skip("this system does not report its free memory")
    # twice the rows whose two Gram matrices fill the free memory
    n = int(2 * np.sqrt(free / 16))
    with pytest.raises(InputError, match="set n_basis"):
        learn(lambda: RankRLS(kernel="gaussian", n_basis=None, scale=False), n, 100)


# the peak that was measured, relative to the estimate, is inside these limits
ESTIMATES: dict[str, tuple[int, Callable[[int], Any]]] = {
    "one alpha": (20, lambda n: RankRLS(kernel="gaussian")),
    "many alphas": (20, lambda n: RankRLS(kernel="gaussian", alphas=[0.1, 1.0])),
    "two queries": (2, lambda n: RankRLS(kernel="gaussian", alphas=[0.1, 1.0])),
    "pairs out": (1, lambda n: RankRLS(kernel="gaussian", alphas=[0.1, 1.0])),
    "columns, pairs out": (1, lambda n: RankRLS(alphas=[0.1, 1.0])),
    "evidence": (1, lambda n: RankRLS(kernel="gaussian", alphas=[0.1, 1.0], metric="evidence")),
    "basis": (20, lambda n: RankRLS(kernel="laplacian", n_basis=n)),
    "basis, alphas": (20, lambda n: RankRLS(kernel="laplacian", n_basis=n, alphas=[0.1, 1.0])),
    "views": (20, lambda n: ViewRankRLS(2, 1.0, kernel="gaussian")),
    "coupled": (20, lambda n: CoRankRLS(2, kernel="laplacian")),
    "hinge": (20, lambda n: RankSVM(kernel="laplacian")),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_are_near_the_peak(monkeypatch, name):
    n, (n_queries, make) = 800, ESTIMATES[name]
    learn(lambda: make(60), 60, n_queries)
    estimates = []
    monkeypatch.setattr(memory, "_MIN_CHECKED", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: np.inf)
    check = memory.require_memory

    def record(n_rows: int, n_bytes: float, *words: str) -> None:
        estimates.append(n_bytes)
        check(n_rows, n_bytes, *words)

    for module in ("base.kernels.grams", "models.rls.summary", "models.rls.systems", "models.pursuit.dictionary"):
        monkeypatch.setattr(f"corank.{module}.require_memory", record)
    tracemalloc.start()
    try:
        learn(lambda: make(n), n, n_queries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.75 < peak / max(estimates) < 1.25
