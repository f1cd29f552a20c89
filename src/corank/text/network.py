"""
Networks with one hidden layer, from one number to one number.

    g(x) = v₀ + Σ_h v_h tanh(w_h z + u_h),    z = (x − mean)/scale

The output of `Network` is exp(g(x)): the exponential keeps weights of words positive, so that their product has a fixed
sign and a scale that can be learnt. The output of `LinearNetwork` is g(x).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.fitted import Part

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """Intermediate results for the gradient."""

    z: Floats  # standardised inputs
    hidden: Floats  # the hidden layer
    values: Floats  # the output


@dataclass(frozen=True, eq=False)
class Network(Part):
    """
    A positive function of one number, exp(g(x)).

    mean, scale: standardise the inputs.
    theta (3 n_hidden + 1,): w, u, v and v₀.
    """

    mean: float
    scale: float
    theta: Floats

    def __post_init__(self) -> None:
        theta = np.asarray(self.theta)
        is_integer = theta.ndim == 1 and theta.dtype == np.float64 and len(theta) >= 4 and len(theta) % 3 == 1
        if not is_integer or not np.isfinite(theta).all() or not np.isfinite([self.mean, self.scale]).all():
            raise InputError("theta must have three finite parameters per hidden unit and one more")
        if not self.scale > 0.0:
            raise InputError(f"scale is {self.scale}; it must be above 0")

    @classmethod
    def near(cls, x: Floats, weight: Floats, target: Floats, n_hidden: int, rng: np.random.Generator) -> Self:
        """Draw a hidden layer, and fit the output layer to a function."""
        theta = np.concatenate([rng.normal(0.0, 1.0, 2 * n_hidden), np.zeros(n_hidden + 1)])
        network = cls(*_moments(x, weight), theta)
        hidden = np.column_stack([network.trace(x).hidden, np.ones(len(x))])
        ridge = 1e-2 * np.diag(np.append(np.ones(n_hidden), 0.0)) * weight.sum()
        out = np.linalg.solve(hidden.T @ (hidden * weight[:, None]) + ridge, hidden.T @ (weight * target))
        return replace(network, theta=np.concatenate([theta[: 2 * n_hidden], out]))

    def __call__(self, x: Floats) -> Floats:
        """Return f(x)."""
        return self.trace(x).values

    def trace(self, x: Floats) -> Trace:
        """Return f(x) and intermediate results for `gradient`."""
        w, u, v, v0 = self._parts()
        z = (x - self.mean) / self.scale
        hidden = np.tanh(z[:, None] * w + u)
        return Trace(z, hidden, self._output(hidden @ v + v0))

    def gradient(self, trace: Trace, outer: Floats) -> Floats:
        """Return the gradient by theta of a loss whose derivatives by f(x) are `outer`."""
        v = self._parts()[2]
        by_g = outer * self._output_slope(trace.values)
        by_inner = by_g[:, None] * v * (1.0 - trace.hidden**2)
        return np.concatenate([trace.z @ by_inner, by_inner.sum(axis=0), by_g @ trace.hidden, [by_g.sum()]])

    @staticmethod
    def _output(g: Floats) -> Floats:
        return np.asarray(np.exp(g))

    @staticmethod
    def _output_slope(values: Floats) -> Floats:
        """Return the derivatives of the output by g, from the outputs."""
        return values

    def _parts(self) -> tuple[Floats, Floats, Floats, float]:
        n = len(self.theta) // 3
        return self.theta[:n], self.theta[n : 2 * n], self.theta[2 * n : 3 * n], float(self.theta[-1])


class LinearNetwork(Network):
    """A function of one number, g(x), of any sign: the single-output perceptron of Grangier and Bengio (2005)."""

    @classmethod
    def random(cls, x: Floats, weight: Floats, n_hidden: int, rng: np.random.Generator) -> Self:
        """Draw all parameters uniformly from ±1/√n, where n is the number of inputs of a layer."""
        width = 1.0 / np.sqrt(n_hidden)
        theta = np.concatenate([rng.uniform(-1.0, 1.0, 2 * n_hidden), rng.uniform(-width, width, n_hidden + 1)])
        return cls(*_moments(x, weight), theta)

    @classmethod
    def constant(cls, value: float, n_hidden: int) -> Self:
        """Return a network whose output does not depend on the input."""
        return cls(0.0, 1.0, np.append(np.zeros(3 * n_hidden), value))

    @staticmethod
    def _output(g: Floats) -> Floats:
        return g

    @staticmethod
    def _output_slope(values: Floats) -> Floats:
        return np.ones_like(values)


def _moments(x: Floats, weight: Floats) -> tuple[float, float]:
    """Return the mean and the standard deviation of x, or 1 if that is zero."""
    mean = float(np.average(x, weights=weight))
    return mean, float(np.sqrt(np.average((x - mean) ** 2, weights=weight))) or 1.0
