from corank.base.solvers.least_squares import squared as squared
from corank.base.solvers.least_squares import squared_views as squared_views
from corank.base.solvers.smooth_losses import MAX_PAIRS as MAX_PAIRS
from corank.base.solvers.smooth_losses import smooth_loss as smooth_loss
from corank.base.solvers.solution import Solution as Solution

__all__: list[str]
