"""The order of the rows does not change which candidates are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corank.base import QuerySearchCV
from corank.models.rls import CoRankRLS, RankRLS, ViewRankRLS

pytestmark = pytest.mark.filterwarnings("ignore::corank.errors.UsageWarning")

ALPHAS = np.logspace(-4, 2, 13)
MAKERS: dict[str, Callable[[], Any]] = {
    "columns": lambda: RankRLS(alphas=ALPHAS),
    "gaussian": lambda: RankRLS(kernel="gaussian", alphas=ALPHAS, random_state=0),
    "gaussian ties": lambda: RankRLS(kernel="gaussian", alphas=ALPHAS, ties=True, random_state=0),
    "average precision": lambda: RankRLS(alphas=ALPHAS, metric="AP"),
    "evidence": lambda: RankRLS(kernel="gaussian", alphas=ALPHAS, metric="evidence", random_state=0),
    "coupled": lambda: CoRankRLS(1, alphas=ALPHAS, couplings=[0.1, 1.0], random_state=0),
    "views": lambda: ViewRankRLS([[0], [1, 2]], alphas=ALPHAS[::4]),
    "search": lambda: QuerySearchCV(RankRLS(), {"alpha": ALPHAS[::3].tolist()}, metric="disagreement", cv=2),
}


def problem(seed: int, n_queries: int) -> tuple[Any, Any, Any]:
    """Return small problems, many of them with repeated numbers, so that many candidates rank equally well."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(14, 40))
    X = rng.normal(size=(n, 3))
    X = np.round(X) if seed % 3 == 0 else X
    y = rng.integers(0, 4, n) if seed % 2 else rng.normal(size=n)
    return (
        X,
        y.astype(float),
        np.sort(np.arange(n) % n_queries),
    )


def chosen(model: Any) -> Any:
    if isinstance(model, QuerySearchCV):
        return model.best_params_
    return model.alpha_, getattr(model, "coupling_", None), np.round(getattr(model, "view_weights_", 0.0), 9).tolist()


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", MAKERS)
def test_permuted_rows_choose_the_same_candidates(name):
    n_problems = 24 if name in ("columns", "gaussian") else 12
    several = name in ("average precision", "coupled", "search")
    for seed in range(n_problems):
        X, y, qid = problem(seed, (2, 4, 6)[seed % 3] if several else (1, 4, 6)[seed % 3])
        order = np.random.default_rng(seed).permutation(len(y))
        if name == "search":
            # folds are dealt in the order of the queries
            order = order[np.argsort(qid[order], kind="stable")]
        one = MAKERS[name]().fit(X, y, qid=qid)
        other = MAKERS[name]().fit(X[order], y[order], qid=qid[order])
        assert chosen(one) == chosen(other), seed


def test_equal_candidates_go_to_the_largest_alpha():
    # one column: every alpha gives the same order, and the same error in every query
    X = np.arange(12.0)[:, None] % 4
    model = RankRLS(alphas=[0.1, 10.0, 1.0]).fit(X, X[:, 0], qid=np.repeat([0, 1, 2], 4))
    assert model.alpha_ == 10.0
