"""For which problems ``solver="auto"`` is exact: the sizes in the docstring of `can_solve`, at their limits."""

from __future__ import annotations

import pytest
from scipy import sparse

from corank.base.pairs.losses import Loss
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.models.linear import base as solvers

MADE = make_ranking(5, 6, random_state=0)
DATA = RankingData.of(MADE.X, MADE.y, MADE.qid)
N, D = MADE.X.shape
SPARSE = RankingData.of(sparse.csr_array(MADE.X * (MADE.X > 0)), MADE.y, MADE.qid)


@pytest.mark.parametrize(
    ("data", "loss", "limit", "size"),
    [
        (DATA, "squared", "MAX_DENSE", D),
        (DATA, "squared", "MAX_SUMS", N * D * D),
        (DATA, "squared_hinge", "MAX_NUMBERS", N * D),
        (SPARSE, "squared_hinge", "MAX_NUMBERS", int((MADE.X > 0).sum())),
        (DATA, "logistic", "MAX_NUMBERS", N * D),
        (DATA, "logistic", "MAX_PAIRS", DATA.n_pairs),
    ],
)
def test_a_problem_is_solved_up_to_its_limit(monkeypatch, data, loss, limit, size):
    monkeypatch.setattr(solvers, limit, size)
    assert solvers.can_solve(data, Loss.of(loss))
    monkeypatch.setattr(solvers, limit, size - 1)
    assert not solvers.can_solve(data, Loss.of(loss))


def test_a_hinge_is_never_solved():
    assert not solvers.can_solve(DATA, Loss.of("hinge"))
