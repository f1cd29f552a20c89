"""The rankers that the laws are run on: every one that corank exports, in settings small enough for tests."""

from __future__ import annotations

from collections.abc import Callable

import corank
from corank.base import Ranker
from corank.calibration import Calibrated
from corank.descent import CRR, LCRA, SPD
from corank.kernels import GaussianKernel, LinearKernel
from corank.pursuit import CoRankingPursuit, RankingPursuit
from corank.rls import CoRankRLS, RankRLS
from corank.svm import RankSVM
from plain_ranker import PlainRanker

LAWFUL: dict[str, Callable[[], Ranker]] = {
    "PlainRanker": PlainRanker,
    "SPD": lambda: SPD(loss="squared", alpha=0.1),
    "SPD squared hinge": lambda: SPD(loss="squared_hinge", alpha=0.1),
    "CRR": lambda: CRR(alpha=0.1),
    "LCRA": lambda: LCRA(loss="squared", alpha=0.1, coupling=0.1, random_state=0),
    # every query held out by itself: parts of several queries would depend on their order
    "Calibrated": lambda: Calibrated(SPD(loss="squared", alpha=0.1), cv=100),
    "Calibrated logistic": lambda: Calibrated(SPD(loss="squared", alpha=0.1), "logistic", cv=100),
    "RankRLS": RankRLS,
    "RankRLS gaussian": lambda: RankRLS(kernel=GaussianKernel(0.05)),
    "RankRLS path": lambda: RankRLS(kernel=GaussianKernel(0.05), alphas=[1.0]),
    "CoRankRLS": lambda: CoRankRLS(coupling=0.1, random_state=0),
    "CoRankRLS gaussian": lambda: CoRankRLS(
        [GaussianKernel(0.05), GaussianKernel(0.02)], coupling=0.1, query_weight="rows"
    ),
    "RankingPursuit": lambda: RankingPursuit(12, GaussianKernel(0.05)),
    "RankingPursuit back": lambda: RankingPursuit(12, "linear", fitting="back"),
    "RankingPursuit pre": lambda: RankingPursuit(12, GaussianKernel(0.05), 0.5, "pre"),
    "RankingPursuit columns": lambda: RankingPursuit(8, dictionary="columns", fitting="back"),
    "CoRankingPursuit": lambda: CoRankingPursuit(12, kernel="linear", coupling=0.01, random_state=0),
    "CoRankingPursuit shared": lambda: CoRankingPursuit(
        12, [GaussianKernel(0.05), GaussianKernel(0.02)], coupling=0.1, search="shared"
    ),
    "CoRankingPursuit three": lambda: CoRankingPursuit(
        10, [GaussianKernel(0.05), GaussianKernel(0.02), LinearKernel()], coupling=0.01
    ),
    "RankSVM": lambda: RankSVM(alpha=0.1),
    "RankSVM gaussian": lambda: RankSVM(alpha=0.01, kernel=GaussianKernel(0.05)),
}


def exported() -> set[str]:
    """Names of the concrete rankers that corank exports."""
    names = set()
    for name in corank.__all__:
        thing = getattr(corank, name)
        if isinstance(thing, type) and issubclass(thing, Ranker) and thing is not Ranker:
            names.add(name)
    return names
