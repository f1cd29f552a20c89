"""Made-up ratings of users with tastes, and one repeat drawn from them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.ranking_pursuit.users import draw_users


@pytest.fixture(scope="package")
def ratings():
    rng = np.random.default_rng(0)
    taste, items = rng.normal(size=(900, 4)), rng.normal(size=(4, 120))
    table = (taste @ items + rng.normal(size=(900, 120))).astype(np.float32)
    keep = rng.uniform(20, 95, 900)[:, None] > rng.uniform(0, 120, (900, 120))
    return np.where(keep, table, np.nan).astype(np.float32)


@pytest.fixture(scope="package")
def drawn(ratings):
    return draw_users(ratings, (40, 60), 12, 15, 1.0, np.random.default_rng(1))
