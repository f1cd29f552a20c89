"""What is known before anything is judged, and learning on top of it."""

from corank.priors.column_mean import ColumnMean
from corank.priors.on_top import OnTop

__all__ = ["ColumnMean", "OnTop"]
