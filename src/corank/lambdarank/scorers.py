"""
Scorers that learn by slopes: f(x) = w·x, and a small multilayer perceptron.

Both hold their parameters as a list of arrays. For rows that are pulled by forces λ, the pull on the parameters is
Σ_i λ_i ∂f(x_i)/∂θ, which is what `pull` returns: one pass forward and one back for a batch of queries, as the paper has
it, not one for each pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.access import as_core_rows
from corank.core.rows.products import gather_rows, score_rows
from corank.data.problem.ranking import RankingData

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

# rows that pass through a network at a time when it predicts
_BLOCK = 1 << 16


class Scorer(Protocol):
    """What training asks of a scorer over the rows of a problem."""

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Return first parameters."""

    def score(self, parameters: list[Floats], rows: Numbers) -> tuple[Floats, Any]:
        """Return scores of rows by number, and what `pull` needs of the way there."""

    def pull(self, parameters: list[Floats], passed: Any, forces: Floats) -> list[Floats]:
        """Return Σ_i λ_i ∂f(x_i)/∂θ for each array of parameters."""


@dataclass(frozen=True, eq=False)
class Linear:
    """
    f(x) = w·x + b, over dense or sparse rows, which are never copied; parameters w and b.

    X: the rows.
    """

    X: Any

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Return zeros."""
        return [np.zeros(self.X.shape[1]), np.zeros(1)]

    def score(self, parameters: list[Floats], rows: Numbers) -> tuple[Floats, Any]:
        """Return scores; every row is summed by itself, so that equal rows have equal scores."""
        scores = np.empty(len(rows))
        score_rows(as_core_rows(self.X), rows, parameters[0], scores, 0, len(rows))
        return scores + parameters[1], rows

    def pull(self, parameters: list[Floats], passed: Any, forces: Floats) -> list[Floats]:
        """Return Σ λ_i x_i and Σ λ_i."""
        total = np.zeros(self.X.shape[1])
        gather_rows(as_core_rows(self.X), passed, forces, total, 0, len(forces))
        return [total, np.array([forces.sum()])]


@dataclass(frozen=True, eq=False)
class Perceptron:
    """
    f(x) = w·tanh(... tanh(W₁ᵀz + b₁) ...) + b over z = symlog(x − mean); parameters W₁, b₁, ..., w, b.

    symlog(x) = sign(x) log(1 + |x|) leaves what is near the mean as it is and brings long tails near.

    Z: the rows as the first layer sees them, see `seen`.
    hidden: width of each hidden layer.
    """

    Z: Floats
    hidden: tuple[int, ...]

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Draw weights of variance 1/(inputs of a layer); a column of zeros for the last layer's biases."""
        sizes = [self.Z.shape[1], *self.hidden, 1]
        parameters: list[Floats] = []
        for n_in, n_out in pairwise(sizes):
            parameters += [rng.normal(scale=n_in**-0.5, size=(n_in, n_out)), np.zeros(n_out)]
        return parameters

    def score(self, parameters: list[Floats], rows: Numbers) -> tuple[Floats, Any]:
        """Return scores, and the outputs of every layer."""
        outputs = [self.Z[rows]]
        for W, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            outputs.append(np.tanh(outputs[-1] @ W + b))
        return (outputs[-1] @ parameters[-2])[:, 0] + parameters[-1], outputs

    def pull(self, parameters: list[Floats], passed: Any, forces: Floats) -> list[Floats]:
        """Pass forces back through the layers."""
        found: list[Floats] = []
        back = forces[:, None]
        for layer in range(len(passed) - 1, -1, -1):
            found = [passed[layer].T @ back, back.sum(axis=0), *found]
            if layer:
                back = (back @ parameters[2 * layer].T) * (1.0 - passed[layer] ** 2)
        return found


def seen(X: Any, mean: Floats) -> Floats:
    """Return dense rows as the first layer of a perceptron sees them."""
    x = np.asarray(X[:], dtype=np.float64) - mean
    found: Floats = np.sign(x) * np.log1p(np.abs(x))
    return found


def perceive(X: Any, mean: Floats, parameters: list[Floats]) -> Floats:
    """Score dense rows by the parameters of a perceptron."""
    scores = np.empty(X.shape[0])
    for begin in range(0, len(scores), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        Z = seen(X[block], mean)
        scores[block] = Perceptron(Z, ()).score(parameters, np.arange(len(Z)))[0]
    return scores


def column_mean(data: RankingData) -> Floats:
    """Return the weighted means of the columns of dense rows, scored or not."""
    weights = data.weight_of(np.arange(data.n_rows))
    total = np.zeros(data.n_features)
    for begin in range(0, data.n_rows, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        total += weights[block] @ data.X[block]
    return np.asarray(total / weights.sum())
