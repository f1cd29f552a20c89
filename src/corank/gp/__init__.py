"""Learn a posterior: Gaussian processes with preferences, grades and questions, by expectation propagation."""

from corank.gp.ep import Approximation, propagate, root_of
from corank.gp.posterior import Posterior
from corank.gp.sites import Sites

__all__ = ["Approximation", "Posterior", "Sites", "propagate", "root_of"]
