"""Learn one pair at a time: SPD, CRR and LCRA on one compiled descent."""

from corank.descent.crr import CRR
from corank.descent.lcra import LCRA
from corank.descent.spd import SPD

__all__ = ["CRR", "LCRA", "SPD"]
