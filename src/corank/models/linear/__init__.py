"""Linear rankers: SPD, CRR and LCRA by stochastic descent or exact solvers, and RankSVM."""

from corank.models.linear.crr import CRR
from corank.models.linear.lcra import LCRA
from corank.models.linear.ranksvm import RankSVM
from corank.models.linear.spd import SPD

__all__ = ["CRR", "LCRA", "SPD", "RankSVM"]
