"""LETOR 4.0 MQ2008: its five parts, the official folds, and the published results of other methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from corank.data.collection import Dataset
from corank.data.io.letor_reader import read_letor
from corank.errors import InputError
from experiments.datasets.catalog import dataset

N_FEATURES = 46
N_FOLDS = 5
BASELINES = ("RankSVM-Struct", "RankBoost", "AdaRank-MAP", "AdaRank-NDCG")


@dataclass(frozen=True)
class Fold:
    """
    One official fold: numbers 1 to 5 of the parts it trains on, is tuned on, and is tested on.

    Attributes
    ----------
    train : tuple of three ints
        Training parts.
    validation, test : int
        The other two.
    """

    train: tuple[int, int, int]
    validation: int
    test: int


def folds() -> tuple[Fold, ...]:
    """
    Return the official folds: fold f trains on parts f, f+1, f+2, is tuned on f+3 and tested on f+4, modulo 5.

    Returns
    -------
    tuple of five Folds
        Fold 1 to fold 5.

    Examples
    --------
    >>> folds()[1]
    Fold(train=(2, 3, 4), validation=5, test=1)
    """

    def part(f: int, step: int) -> int:
        return (f + step) % N_FOLDS + 1

    return tuple(Fold((part(f, 0), part(f, 1), part(f, 2)), part(f, 3), part(f, 4)) for f in range(N_FOLDS))


@cache
def read_parts(numbers: Sequence[int] = (1, 2, 3, 4, 5)) -> Dataset:
    """
    Read parts of the collection, one after the other.

    numbers: which of the parts 1 to 5.
    """
    entry = dataset("mq2008")
    paths = [entry.path(f"S{number}.txt") for number in numbers]
    return read_letor(paths, n_features=N_FEATURES, dtype=np.float64, layout="dense")


def published(method: str) -> dict[str, float]:
    """
    Read a method's published test results, averaged over the folds.

    Parameters
    ----------
    method : str
        One of `BASELINES`.

    Returns
    -------
    dict
        "MAP", "MeanNDCG", "NDCG@1", ... to the published average.
    """
    path = dataset("mq2008").path(f"published_baselines/{method}.MQ2008.txt")
    results: dict[str, float] = {}
    names: list[str] = []
    # the table of the test set comes first; the validation set's follows and repeats the names
    for line in path.read_text(encoding="utf-8").split("Performance on validation set")[0].splitlines():
        head, *cells = line.split() or [""]
        if head in ("Folds", "Para"):
            names = cells
        elif head in ("average", "Avg"):
            results.update(zip(names, map(float, cells), strict=True))
    if not {"MAP", "MeanNDCG"} <= results.keys():
        raise InputError(f"{path} has no averages of MAP and MeanNDCG; get the file again.")
    return results
