"""
Network: one hidden layer between one number and one positive number.

    f(x) = exp(v₀ + Σ_h v_h tanh(w_h z + u_h)),    z = (x − mean)/scale

The exponential keeps weights of words positive, so that their product has a sign and a scale that learning can move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """
    What the slopes of a network need of its values.

    z, hidden: inputs brought to one size, and the hidden layer.
    values: what came out.
    """

    z: Floats
    hidden: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class Network:
    """
    A function of one number.

    Attributes
    ----------
    mean, scale : float
        What inputs are brought to one size by.
    theta : array of shape (3 n_hidden + 1,)
        w, u, v and v₀.
    """

    mean: float
    scale: float
    theta: Floats

    def __post_init__(self) -> None:
        theta = np.asarray(self.theta)
        is_whole = theta.ndim == 1 and theta.dtype == np.float64 and len(theta) >= 4 and len(theta) % 3 == 1
        if not is_whole or not np.isfinite(theta).all() or not np.isfinite([self.mean, self.scale]).all():
            raise InputError("a network has finite parameters, three for each hidden unit and one more")
        if not self.scale > 0.0:
            raise InputError(f"scale is {self.scale}; inputs are divided by a number above 0")

    @classmethod
    def near(cls, x: Floats, weight: Floats, target: Floats, n_hidden: int, rng: np.random.Generator) -> Network:
        """
        Draw a hidden layer, and fit what lies behind it to a function.

        x, weight: inputs, and how often each occurs.
        target: logarithm of the function at x.
        """
        mean = float(np.average(x, weights=weight))
        scale = float(np.sqrt(np.average((x - mean) ** 2, weights=weight))) or 1.0
        theta = np.concatenate([rng.normal(0.0, 1.0, 2 * n_hidden), np.zeros(n_hidden + 1)])
        network = cls(mean, scale, theta)
        hidden = np.column_stack([network.trace(x).hidden, np.ones(len(x))])
        ridge = 1e-2 * np.diag(np.append(np.ones(n_hidden), 0.0)) * weight.sum()
        out = np.linalg.solve(hidden.T @ (hidden * weight[:, None]) + ridge, hidden.T @ (weight * target))
        return replace(network, theta=np.concatenate([theta[: 2 * n_hidden], out]))

    def __call__(self, x: Floats) -> Floats:
        """Return f(x)."""
        return self.trace(x).values

    def trace(self, x: Floats) -> Trace:
        """Return f(x) and what `slopes` needs."""
        w, u, v, v0 = self._parts()
        z = (x - self.mean) / self.scale
        hidden = np.tanh(z[:, None] * w + u)
        return Trace(z, hidden, np.exp(hidden @ v + v0))

    def slopes(self, trace: Trace, slope: Floats) -> Floats:
        """Return the derivatives by theta of a loss whose derivatives by f(x) are `slope`."""
        v = self._parts()[2]
        by_log = slope * trace.values
        by_inner = by_log[:, None] * v * (1.0 - trace.hidden**2)
        return np.concatenate([trace.z @ by_inner, by_inner.sum(axis=0), by_log @ trace.hidden, [by_log.sum()]])

    def times(self, factor: float) -> Network:
        """Return the function times a positive number."""
        return replace(self, theta=np.append(self.theta[:-1], self.theta[-1] + np.log(factor)))

    def _parts(self) -> tuple[Floats, Floats, Floats, float]:
        n = len(self.theta) // 3
        return self.theta[:n], self.theta[n : 2 * n], self.theta[2 * n : 3 * n], float(self.theta[-1])
