"""The rankers that the laws run on: every exported one, with default parameters and in other settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import isabstract, signature

import pytest

from corank import registry
from corank.base import Calibrated, ColumnMean, ResidualRanker
from corank.base.base import Ranker
from corank.base.kernels import GaussianKernel, LinearKernel
from corank.models.auto import AutoRanker
from corank.models.gp import OrdinalGP, PreferenceGP
from corank.models.lambdarank import LambdaRank
from corank.models.linear import CRR, SPD, RankSVM
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from corank.models.rls import CoRankRLS, RankRLS, ViewRankRLS
from helpers.plain_ranker import PlainRanker

# between smaller leaves splits tie, and sums in single precision decide; random thresholds depend on numbers of rows
LEAVES = {"min_sum_hessian_in_leaf": 10.0, "extra_trees": False}

# rankers that learn from other data than rows, grades and queries, or from nothing: `learners` has them
APART = frozenset(["BM25", "ColumnMean", "Collaborative", "CollaborativeGP", "Fusion", "ItemMean"])


def _by_default(kind: type[Ranker]) -> Callable[[], Ranker]:
    """Return a function that makes a ranker with default parameters, and a seed if it draws."""
    return partial(kind, random_state=0) if "random_state" in signature(kind).parameters else kind


def _exported() -> dict[str, Callable[[], Ranker]]:
    """Return every ranker that the library exports: a new one is under the laws by itself."""
    kinds = {name: registry.find(name) for name in registry.names() if name not in APART}
    rankers = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Ranker)}
    return {name: _by_default(kind) for name, kind in rankers.items() if not isabstract(kind)}


LAWFUL: dict[str, Callable[[], Ranker]] = {
    **_exported(),
    "PlainRanker": PlainRanker,
    # in place of default parameters: where rows are left out, each counts once, whatever it weighs
    "ViewRankRLS": lambda: ViewRankRLS(metric="evidence", random_state=0),
    # every query held out by itself: parts of several queries would depend on their order
    "Calibrated": lambda: Calibrated(SPD(loss="squared", alpha=0.1), cv=100),
    # what is scaled inside queries would be another prior after rows were repeated
    "ResidualRanker": lambda: ResidualRanker(ColumnMean([0], method=None), RankRLS()),
    # the metric of left-out queries chooses among several, and counts each row once, whatever it weighs
    "AutoRanker": lambda: AutoRanker(candidates=["linear"], random_state=0),
    # other settings
    "SPD squared": lambda: SPD(loss="squared", alpha=0.1, scale=False),
    "SPD rows": lambda: SPD(loss="squared", query_weight="rows"),
    "SPD squared hinge": lambda: SPD(loss="squared_hinge", alpha=0.1, query_weight="rows"),
    "SPD logistic": lambda: SPD("logistic", alpha=0.1, tol=1e-14),
    "CRR rows": lambda: CRR(alpha=0.1, mix=0.2, query_weight="rows"),
    "Calibrated logistic": lambda: Calibrated(SPD(loss="squared", alpha=0.1), "logistic", cv=100),
    "RankRLS gaussian": lambda: RankRLS(kernel="gaussian"),
    "RankRLS path": lambda: RankRLS(kernel=GaussianKernel(0.05), alphas=[0.01]),
    "RankRLS ties": lambda: RankRLS(alpha=0.1, ties=True, query_weight="rows"),
    "CoRankRLS gaussian": lambda: CoRankRLS(
        [GaussianKernel(0.05), GaussianKernel(0.02)], coupling=0.1, query_weight="rows"
    ),
    "ViewRankRLS gaussian": lambda: ViewRankRLS(
        [GaussianKernel(0.05), LinearKernel()], metric="evidence", query_weight="rows"
    ),
    "RankingPursuit linear": lambda: RankingPursuit(12, "linear"),
    "RankingPursuit back": lambda: RankingPursuit(12, "linear", fitting="back"),
    "RankingPursuit pre": lambda: RankingPursuit(12, GaussianKernel(0.05), 0.5, fitting="pre"),
    "RankingPursuit columns": lambda: RankingPursuit(8, dictionary="columns", fitting="back"),
    "CoRankingPursuit linear": lambda: CoRankingPursuit(12, kernel="linear", coupling=0.01, random_state=0),
    "CoRankingPursuit shared": lambda: CoRankingPursuit(
        12, [GaussianKernel(0.05), GaussianKernel(0.02)], coupling=0.1, search="shared"
    ),
    "CoRankingPursuit three": lambda: CoRankingPursuit(
        10, [GaussianKernel(0.05), GaussianKernel(0.02), LinearKernel()], coupling=0.01
    ),
    "OrdinalGP gaussian": lambda: OrdinalGP(likelihood="gaussian"),
    "OrdinalGP basis": lambda: OrdinalGP(GaussianKernel(0.02), 0.3, learn=False, n_basis=1000),
    "LambdaRank ranknet": lambda: LambdaRank("ranknet", n_steps=50),
    "LambdaRank mlp": lambda: LambdaRank("ndcg@5", "mlp", n_steps=50, random_state=0),
    "LambdaRank trees": lambda: LambdaRank(
        "ndcg", "trees", n_steps=20, tree_params=LEAVES, scale=False, random_state=0
    ),
    "LambdaRank trees ranknet": lambda: LambdaRank(
        "ranknet", "trees", n_steps=20, tree_params=LEAVES, scale=False, random_state=0
    ),
    "PreferenceGP graph": lambda: PreferenceGP(GaussianKernel(0.02), 0.3, learn=False, graph_neighbors=3),
    "PreferenceGP basis": lambda: PreferenceGP(GaussianKernel(0.02), 0.3, learn=False, n_basis=1000),
    "RankSVM gaussian": lambda: RankSVM(kernel="gaussian", query_weight="rows"),
}


# these go through the same code as another entry, or search for hyperparameters as one does, so that only
# `make test-all` runs the laws on them
REPEATED = frozenset(
    [
        "PairwiseEpsilonGreedy", "PreferenceGP", "PreferenceGP basis", "CoRankingPursuit", "CoRankingPursuit shared",
        "CoRankingPursuit three", "SPD squared", "SPD rows", "SPD squared hinge", "SPD logistic", "CRR rows",
        "Calibrated logistic", "RankRLS path", "RankRLS ties", "CoRankRLS gaussian", "ViewRankRLS gaussian",
        "RankingPursuit linear", "RankingPursuit back", "RankingPursuit pre", "RankingPursuit columns",
        "OrdinalGP gaussian", "OrdinalGP basis", "LambdaRank", "LambdaRank trees ranknet", "RankSVM gaussian",
    ]
)  # fmt: skip


def over(condition: Callable[[Ranker], bool] = lambda model: True) -> pytest.MarkDecorator:
    """Parametrise a law by `make`, over the rankers of which the condition holds."""
    cases = [
        pytest.param(make, id=name, marks=[pytest.mark.long] if name in REPEATED else [])
        for name, make in LAWFUL.items()
        if condition(make())
    ]
    return pytest.mark.parametrize("make", cases)
