"""Learn by one linear system: RankRLS, ViewRankRLS, CoRankRLS, with whole paths and exact cross-validation."""

from functools import partial
from typing import TYPE_CHECKING

from corank._moved import find
from corank.models.rls.co_rankrls import CoRankRLS
from corank.models.rls.rankrls import RankRLS
from corank.models.rls.summary import PairSums
from corank.models.rls.view_rankrls import ViewRankRLS

__all__ = ["CoRankRLS", "PairSums", "RankRLS", "ViewRankRLS"]

if not TYPE_CHECKING:  # names of 0.2
    __getattr__ = partial(find, __name__)
