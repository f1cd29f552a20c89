"""The data of the label ranking experiment: features and labels of rankings, multilabel sets and sushi."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.text import open_text
from corank.errors import InputError
from experiments.datasets.catalog import dataset

Floats = NDArray[np.float64]

RELEVANT_SUSHI = 5
"""A kind of sushi is relevant to who ranks it among the first so many of ten."""

KNOWN_SUSHI = 4
"""Kinds of which the order is known; the others are the labels."""


@dataclass(frozen=True, eq=False)
class LabelData:
    """
    Rows and what is known of their labels.

    X (n, n_features), y (n, n_labels): positions, 0 and 1, or positions of relevant labels.
    """

    X: Floats
    y: Floats


MAX_ROWS = 5000
"""Of a larger set of rankings, a random sample of this many rows is used."""


def read_rankings(name: str) -> LabelData:
    """
    Read a set of the label ranking benchmark of Cheng, Hühn and Hüllermeier.

    name: such as "iris".
    Returns: features, and positions of labels.
    """
    path = dataset("label-ranking").path(f"{name}.csv")
    header, _, body = open_text(path).read().tobytes().partition(b"\n")
    n, d, k = map(int, header.split(b","))
    table = np.loadtxt(io.BytesIO(body), delimiter=",", ndmin=2)
    if table.shape != (n, d + k):
        raise InputError(f"{path} has shape {table.shape}, not the {n} rows of {d} + {k} that it says; get it again.")
    if n > MAX_ROWS:
        table = table[np.sort(np.random.default_rng(0).permutation(n)[:MAX_ROWS])]
    return LabelData(table[:, :d], table[:, d:])


def read_multilabel(name: str) -> LabelData:
    """
    Read a multilabel set of Mulan, as MEKA stores it: the first columns are labels.

    name: "Music", "Scene" or "Yeast".
    Returns: features, and an indicator matrix.
    """
    path = dataset("multilabel").path(f"{name}.arff")
    head, _, body = open_text(path).read().tobytes().partition(b"@data")
    words = next(line for line in head.splitlines() if line.startswith(b"@relation")).replace(b"'", b" ").split()
    n_labels = int(words[words.index(b"-C") + 1])
    table = np.loadtxt(io.BytesIO(body.strip()), delimiter=",", ndmin=2)
    return LabelData(table[:, n_labels:], table[:, :n_labels])


def read_sushi() -> LabelData:
    """
    Read what 5,000 people think of ten kinds of sushi.

    Returns: which of each two of the first four kinds is preferred (six features, −1 or 1), and top lists of the other
        six: those among the first five of all ten, in order.
    """
    path = dataset("sushi").path("sushi_rankings.csv")
    ranks = np.loadtxt(io.BytesIO(open_text(path).read().data), delimiter=",", skiprows=1, ndmin=2)
    known, others = ranks[:, :KNOWN_SUSHI], ranks[:, KNOWN_SUSHI:]
    first, second = np.triu_indices(KNOWN_SUSHI, 1)
    order = np.argsort(np.argsort(others, axis=1), axis=1) + 1
    return LabelData(
        np.sign(known[:, second] - known[:, first]), np.where(others <= RELEVANT_SUSHI, order, 0).astype(np.float64)
    )


def make_top_lists(n: int, rng: np.random.Generator, n_features: int = 10, n_labels: int = 8) -> LabelData:
    """
    Return n synthetic top lists with a known zero point: utilities Wx + b + noise, relevant above 0.
    """
    X = rng.normal(size=(n, n_features))
    W, b = rng.normal(size=(n_labels, n_features)), rng.normal(size=n_labels)
    u = X @ W.T / np.sqrt(n_features) + 0.5 * b + 0.3 * rng.normal(size=(n, n_labels))
    order = np.argsort(np.argsort(-u, axis=1), axis=1) + 1
    return LabelData(X, np.where(u > 0.0, order, 0).astype(np.float64))
