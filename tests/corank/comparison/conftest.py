"""Fixtures of the comparison tests."""

from __future__ import annotations

import pytest

from corank.comparison import study
from corank.data.synthetic import make_ranking
from helpers.local_pool import LocalPool


@pytest.fixture
def local(monkeypatch):
    """Run comparisons in this process; return the list of finished tasks."""
    LocalPool.done = []
    monkeypatch.setattr(study, "WorkerPool", LocalPool)
    return LocalPool.done


@pytest.fixture(scope="session")
def made():
    """24 queries of 8 rows, 6 features."""
    return make_ranking(24, 8, n_latent=3, features_per_view=3, random_state=1)
