"""Gaussian processes refuse many rows before they allocate square matrices over them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from corank import memory
from corank.errors import InputError
from corank.models.gp import CollaborativeGP, OrdinalGP, PreferenceGP, suggest_pairs

N = 50_000
RNG = np.random.default_rng(0)
X, Y, ONE = RNG.normal(size=(N, 3)), RNG.integers(0, 4, N).astype(float), np.zeros(N)


def far_pair():
    return suggest_pairs(PreferenceGP(sigma=0.3, learn=False).fit(X, pairs=[[0, 1]]))


@pytest.mark.parametrize(
    ("work", "remedy"),
    [
        (lambda: PreferenceGP(n_basis=None, random_state=0).fit(X, Y, qid=ONE), "set n_basis to 1,000"),
        (lambda: PreferenceGP(n_basis=None, graph_neighbors=1).fit(X, pairs=[[0, 1]]), "set n_basis to 1,000"),
        (lambda: OrdinalGP(n_basis=None).fit(X, Y, qid=ONE), "set n_basis to 1,000"),
        (lambda: OrdinalGP(n_basis=None, likelihood="gaussian").fit(X, Y, qid=ONE), "set n_basis to 1,000"),
        (lambda: CollaborativeGP().fit(np.arange(N), Y, qid=ONE), "or use Collaborative"),
        (far_pair, "pass fewer rows"),
    ],
    ids=["preferences", "graph", "grades", "scores", "ratings", "questions"],
)
def test_many_rows_are_refused_before_memory_is_used(work, remedy, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 8e9)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=f"rows need .* GB of memory, but 8.0 GB are free; .*{remedy}"):
            work()
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()
