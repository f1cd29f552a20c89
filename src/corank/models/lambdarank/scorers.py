"""
Scorers that learn by gradients: f(x) = w·x, and a small multilayer perceptron.

Their parameters are a list of arrays. `gradient` returns Σ_i λ_i ∂f(x_i)/∂θ: one forward and one backward pass for a
batch of queries, as in the paper, not one for each pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.access import as_core_rows
from corank.core.rows.products import gather_rows, score_rows
from corank.core.rows.scaled import factors_of, plain
from corank.data.ranking import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# rows per block of prediction
_BLOCK = 1 << 16


class GradientScorer(Protocol):
    """Interface of a scorer of the rows of a problem that is trained by gradients."""

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Return initial parameters."""

    def score(self, parameters: list[Floats], rows: Integers) -> tuple[Floats, Any]:
        """Return scores of rows by number, and intermediate results for `gradient`."""

    def gradient(self, parameters: list[Floats], passed: Any, lambdas: Floats) -> list[Floats]:
        """Return Σ_i λ_i ∂f(x_i)/∂θ for each array of parameters."""


class Linear:
    """
    f(x) = w·x + b, over dense or sparse rows, which are not copied; parameters w and b.

    X: the rows; they are prepared for kernels once.
    """

    def __init__(self, X: Any) -> None:
        self.n_features = X.shape[1]
        self._rows, self._factors = as_core_rows(plain(X)), factors_of(X)

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Return zeros."""
        return [np.zeros(self.n_features), np.zeros(1)]

    def score(self, parameters: list[Floats], rows: Integers) -> tuple[Floats, Any]:
        """Return scores; every row is summed separately, so that equal rows have equal scores."""
        scores, w = np.empty(len(rows)), parameters[0]
        score_rows(self._rows, rows, w if self._factors is None else self._factors * w, scores, 0, len(rows))
        return scores + parameters[1], rows

    def gradient(self, parameters: list[Floats], passed: Any, lambdas: Floats) -> list[Floats]:
        """Return Σ λ_i x_i and Σ λ_i."""
        total = np.zeros(self.n_features)
        gather_rows(self._rows, passed, lambdas, total, 0, len(lambdas))
        if self._factors is not None:
            total *= self._factors
        return [total, np.array([lambdas.sum()])]


@dataclass(frozen=True, eq=False)
class Perceptron:
    """
    f(x) = w·tanh(... tanh(W₁ᵀz + b₁) ...) + b over z = symlog(x − mean); parameters W₁, b₁, ..., w, b.

    symlog(x) = sign(x) log(1 + |x|) is the identity near the mean and shortens long tails.
    """

    Z: Floats  # the inputs of the first layer, see `network_inputs`
    hidden: tuple[int, ...]  # width of each hidden layer

    def start(self, rng: np.random.Generator) -> list[Floats]:
        """Draw weights of variance 1/(inputs of a layer); biases are zero."""
        sizes = [self.Z.shape[1], *self.hidden, 1]
        parameters: list[Floats] = []
        for n_in, n_out in pairwise(sizes):
            parameters += [rng.normal(scale=n_in**-0.5, size=(n_in, n_out)), np.zeros(n_out)]
        return parameters

    def score(self, parameters: list[Floats], rows: Integers) -> tuple[Floats, Any]:
        """Return scores, and the outputs of every layer."""
        outputs = [self.Z[rows]]
        for W, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            outputs.append(np.tanh(outputs[-1] @ W + b))
        return (outputs[-1] @ parameters[-2])[:, 0] + parameters[-1], outputs

    def gradient(self, parameters: list[Floats], passed: Any, lambdas: Floats) -> list[Floats]:
        """Propagate λ back through the layers."""
        gradients: list[Floats] = []
        back = lambdas[:, None]
        for layer in range(len(passed) - 1, -1, -1):
            gradients = [passed[layer].T @ back, back.sum(axis=0), *gradients]
            if layer:
                back = (back @ parameters[2 * layer].T) * (1.0 - passed[layer] ** 2)
        return gradients


def network_inputs(X: Any, mean: Floats) -> Floats:
    """Return symlog(x − mean) of dense rows, the inputs of the first layer."""
    x = np.asarray(X[:], dtype=np.float64) - mean
    inputs: Floats = np.sign(x) * np.log1p(np.abs(x))
    return inputs


def score_network(X: Any, mean: Floats, parameters: list[Floats]) -> Floats:
    """Score dense rows by the parameters of a perceptron, block by block."""
    scores = np.empty(X.shape[0])
    for begin in range(0, len(scores), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        Z = network_inputs(X[block], mean)
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
