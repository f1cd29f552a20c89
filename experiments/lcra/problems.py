"""The problems that co-regularised ranking is tried on, each drawn anew for every repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.query_scaler import QueryScaler
from corank.data.io.letor.reader import read_letor
from corank.data.query_splits import QueryShuffleSplit
from corank.data.synthetic import make_ranking
from corank.metrics import evaluate
from experiments.datasets.catalog import dataset
from experiments.datasets.jester import read_ratings
from experiments.datasets.mq2008 import read_parts

TEST_SHARE = 0.3
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SplitRepeat:
    """
    One repeat of a problem.

    X, y, qid: all rows with their scores.
    train, test: rows to learn from and rows to test on.
    views: columns of the views.
    """

    X: Floats
    y: Floats
    qid: NDArray[Any]
    train: Ints
    test: Ints
    views: list[Ints]


@dataclass(frozen=True)
class ProblemSource:
    """
    A problem that can be drawn repeatedly.

    name, about: its name, and what one repeat is.
    metric: "AP" or "disagreement".
    draw: takes a generator, returns a `SplitRepeat`.
    least: the smallest scored fraction that leaves rows to compare.
    n_draws: draws that count as one repeat, where a single one is small.
    """

    name: str
    about: str
    metric: str
    draw: Callable[[np.random.Generator], SplitRepeat]
    least: float = 0.0
    n_draws: int = 1

    def measure(self, draw: SplitRepeat, scores: Floats) -> float:
        """
        Measure scores of the test rows of a draw.

        scores: one score per test row.
        Returns: the value of the metric.
        """
        y, qid = draw.y[draw.test], draw.qid[draw.test]
        return evaluate(y, scores, qid, self.metric, convention="letor4", n_jobs=1)[self.metric].mean


def problems() -> dict[str, ProblemSource]:
    """
    Return all problems by name.

    Returns: name to problem.
    """
    listed = (
        ProblemSource("MQ2008", "70 % of 784 queries, 46 features in two random halves", "AP", _mq2008),
        ProblemSource(
            "MQ2008 by field", "the same, body and page against title, anchor, address and links", "AP", _by_field
        ),
        ProblemSource("MSLR sample", "70 % of 86 queries, 136 features in two random halves", "AP", _mslr),
        ProblemSource(
            "Jester",
            "a user's ratings of 70 jokes, 100 other users in two random halves",
            "disagreement",
            _jester,
            least=0.05,
            n_draws=10,
        ),
        ProblemSource("redundant views", "280 synthetic queries, two views with independent noise", "AP", _redundant),
        ProblemSource("wide redundant views", "the same with 60 features a view", "AP", _wide),
        ProblemSource("split signal", "the same rows as redundant views, columns in two random halves", "AP", _mixed),
    )
    return {problem.name: problem for problem in listed}


def _mq2008(rng: np.random.Generator) -> SplitRepeat:
    rows = read_parts()
    return _split(QueryScaler().fit_transform(rows.X, qid=rows.qid), rows.y, rows.qid, None, rng)


def _by_field(rng: np.random.Generator) -> SplitRepeat:
    draw = _mq2008(rng)
    # features 1 to 40 of LETOR 4.0 go round body, anchor, title, address and whole page; 41 to 46 are links and address
    columns = np.arange(draw.X.shape[1])
    text = (columns < 40) & np.isin(columns % 5, (0, 4))
    return replace(draw, views=[columns[text], columns[~text]])


def _mslr(rng: np.random.Generator) -> SplitRepeat:
    entry = dataset("mslr-sample")
    parts = [entry.path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")]
    rows = read_letor(parts, dtype=np.float64, layout="dense")
    return _split(QueryScaler().fit_transform(rows.X, qid=rows.qid), rows.y, rows.qid, None, rng)


def _jester(rng: np.random.Generator) -> SplitRepeat:
    ratings = read_ratings()
    complete = np.flatnonzero(~np.isnan(ratings).any(axis=1))
    user, *others = rng.choice(complete, size=101, replace=False)
    X = ratings[others].T.astype(np.float64) / 10.0
    jokes = rng.permutation(len(X))
    n_test = round(TEST_SHARE * len(X))
    y = ratings[user].astype(np.float64) / 10.0
    one_query = np.zeros(len(X), dtype=np.int64)
    return SplitRepeat(
        X, y, one_query, np.sort(jokes[n_test:]), np.sort(jokes[:n_test]), random_halves(X.shape[1], rng)
    )


def _redundant(rng: np.random.Generator) -> SplitRepeat:
    made = make_ranking(400, (10, 40), random_state=int(rng.integers(2**31)))
    return _split(made.X, made.y, made.qid, list(made.views), rng)


def _wide(rng: np.random.Generator) -> SplitRepeat:
    made = make_ranking(400, (10, 40), features_per_view=60, random_state=int(rng.integers(2**31)))
    return _split(made.X, made.y, made.qid, list(made.views), rng)


def _mixed(rng: np.random.Generator) -> SplitRepeat:
    made = make_ranking(400, (10, 40), random_state=int(rng.integers(2**31)))
    return _split(made.X, made.y, made.qid, None, rng)


def _split(X: Floats, y: Floats, qid: Any, views: list[Ints] | None, rng: np.random.Generator) -> SplitRepeat:
    seed = int(rng.integers(2**31))
    train, test = next(QueryShuffleSplit(1, test_size=TEST_SHARE, random_state=seed).split(X, qid=qid))
    return SplitRepeat(X, y, np.asarray(qid), train, test, random_halves(X.shape[1], rng) if views is None else views)


def random_halves(n_columns: int, rng: np.random.Generator) -> list[Ints]:
    """Return the columns in two random halves."""
    return [np.sort(half) for half in np.array_split(rng.permutation(n_columns), 2)]
