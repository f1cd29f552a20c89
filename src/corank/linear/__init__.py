"""Linear rankers: SPD, CRR and LCRA by stochastic descent or exact solvers, and RankSVM."""

from corank.linear.crr import CRR
from corank.linear.lcra import LCRA
from corank.linear.ranksvm import RankSVM
from corank.linear.spd import SPD

__all__ = ["CRR", "LCRA", "SPD", "RankSVM"]
