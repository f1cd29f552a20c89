"""Tiny saved models of every class that `corank.save` takes, by the name of the class."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank.base.kernels import GaussianKernel
from corank.models.labels import LabelPreferences
from corank.text import Corpus, Links

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(14, 5)), np.r_[RNG.integers(0, 3, 10).astype(float), [np.nan] * 4]
QID = np.array(list("aaabbbcccaabbc"))
COUNTS = np.round(2.0 * np.abs(X))
ITEMS, USERS = np.tile(np.arange(6), 5)[:26], np.repeat(["u", "v", "w", "x", "y"], 6)[:26]
RATINGS = RNG.integers(1, 6, 26).astype(float)
ITEM_FEATURES = RNG.normal(size=(6, 2))
RANKS = LabelPreferences.from_ranks(np.argsort(np.argsort(-X[:, :3], axis=1), axis=1) + 1)
CLASSES = np.array(["p", "q", "r"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
RELEVANT = (X[:, :3] > 0).astype(int)
TEXTS = ["tin is soft", "iron and tin rust", "gold and tin coins", "gold mines of Peru", "iron mines", "soft coins"]

PIPELINES = "Pipeline"


def classes() -> list[str]:
    """Return the names of all classes, pipelines and summaries of which files are made."""
    return sorted({kind for kind, _, _ in _recipes()})


@cache
def saved(kind: str) -> dict[str, bytes]:
    """Return the saved models of one class, by a description."""
    found = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        config_context(enable_metadata_routing=True),
    ):
        warnings.simplefilter("ignore")
        path = Path(folder, "model")
        for own, name, make in _recipes():
            if own == kind:
                corank.save(make(), path, overwrite=True)
                found[name] = path.read_bytes()
    return found


def _recipes() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield class, description, and how a fitted model is made."""
    for name, make in _rankers().items():
        model = make()
        for rows in (X, sparse.csr_matrix(X)):
            if rows is X or model._accepts_sparse:
                yield type(model).__name__, f"{name} {type(rows).__name__}", _fitting(make, rows, Y, qid=QID)
    yield "SPD", "SPD prior", _fitting(corank.SPD, X, Y, qid=QID, prior=X[:, 0])
    yield from ((name.split()[0], name, _fitting(make, *given, **more)) for name, make, given, more in _others())
    yield "Summary", "Summary", lambda: corank.RankRLS(1.0).pair_sums(X, Y, qid=QID)
    yield "Summary", "Summary basis", lambda: corank.RankRLS(1.0, "gaussian", n_basis=4).pair_sums(X, Y, qid=QID)


def _rankers() -> dict[str, Callable[[], Any]]:
    tests = Path(__file__).resolve().parent.parent / "tests"
    if str(tests) not in sys.path:
        sys.path.insert(0, str(tests))
    from helpers.estimators import LAWFUL

    made: dict[str, Callable[[], Any]] = {name: make for name, make in LAWFUL.items() if name != "PlainRanker"}
    return made | {
        "SPD sgd": lambda: corank.SPD("hinge", 0.1, solver="sgd", n_steps=30, random_state=0),
        "LCRA sgd": lambda: corank.LCRA(n_steps=30, random_state=0, solver="sgd"),
        "PreferenceGP few": lambda: corank.PreferenceGP(GaussianKernel(0.1), 0.3, learn=False, n_basis=4),
    }


def _others() -> list[tuple[str, Callable[[], Any], tuple[Any, ...], dict[str, Any]]]:
    """Return classes that are not fitted to rows, scores and queries: description, constructor, arguments of `fit`."""
    ratings = ((ITEMS, RATINGS), {"qid": USERS})
    with_features = ((ITEMS, RATINGS), {"qid": USERS, "items": np.arange(6), "item_features": ITEM_FEATURES})
    links = Links.of(Corpus.of(TEXTS, language=None), [("0", "1"), ("2", "3"), ("1", "4")])
    return [
        ("ColumnMean", lambda: corank.ColumnMean([0, 3]), (X,), {"qid": QID}),
        ("BM25", corank.BM25, (COUNTS,), {}),
        ("BM25 query", lambda: corank.BM25(query=[1, 0, 2, 0, 0]), (COUNTS,), {}),
        ("CalibratedLabelRanker", corank.CalibratedLabelRanker, (X, RANKS), {}),
        ("CalibratedLabelRanker classes", corank.CalibratedLabelRanker, (X, CLASSES), {}),
        ("CalibratedLabelRanker relevant", corank.CalibratedLabelRanker, (X, RELEVANT), {}),
        ("NeighborLabelRanker", lambda: corank.models.NeighborLabelRanker(2), (X, RANKS), {}),
        ("NeighborLabelRanker relevant", lambda: corank.models.NeighborLabelRanker(2), (X, RELEVANT), {}),
        ("ForestLabelRanker", lambda: corank.models.ForestLabelRanker(3, random_state=0), (X, RANKS), {}),
        ("PairwiseLabelRanker", corank.models.PairwiseLabelRanker, (X, RANKS), {}),
        ("AutoLabelRanker", lambda: corank.AutoLabelRanker(cv=2, random_state=0), (X, RANKS), {}),
        ("OnlineLabelRanker", lambda: corank.OnlineLabelRanker(random_state=0), (X, CLASSES), {}),
        (
            "OnlineLabelRanker average",
            lambda: corank.OnlineLabelRanker(average=True, random_state=0),
            (X, RELEVANT),
            {},
        ),
        (
            "OnlineLabelRanker kernel",
            lambda: corank.OnlineLabelRanker(kernel="gaussian", random_state=0),
            (X, RANKS),
            {},
        ),
        ("QueryScaler", corank.QueryScaler, (X,), {"qid": QID}),
        ("Landmarks", lambda: corank.base.Landmarks(5, random_state=0), (X,), {}),
        (
            "NeighborSmoother",
            lambda: corank.base.NeighborSmoother(n_neighbors=3, n_components=4, random_state=0),
            (X,),
            {},
        ),
        (
            "NeighborSmoother sparse",
            lambda: corank.base.NeighborSmoother(n_neighbors=3, n_components=3, random_state=0),
            (sparse.csr_matrix(COUNTS),),
            {},
        ),
        ("Collaborative", lambda: corank.Collaborative(random_state=0), *ratings),
        ("ItemMean", corank.models.ItemMean, *ratings),
        ("CollaborativeGP", lambda: corank.CollaborativeGP(max_iter=1, random_state=0), *ratings),
        ("CollaborativeGP features", lambda: corank.CollaborativeGP(max_iter=1, random_state=0), *with_features),
        (
            "CollaborativeGP gaussian",
            lambda: corank.CollaborativeGP("gaussian", GaussianKernel(0.3), max_iter=0, scale=False),
            *with_features,
        ),
        ("LinkLearn", lambda: corank.LinkLearn(n_hidden=2, n_steps=5, random_state=0), (links,), {}),
        (
            "LinkLearn plain",
            lambda: corank.LinkLearn(n_hidden=1, n_steps=2, symmetric=False, use_length=False, random_state=0),
            (links, links),
            {},
        ),
        (f"{PIPELINES} minmax", lambda: make_pipeline(corank.QueryScaler(), corank.RankRLS(1.0)), (X, Y), {"qid": QID}),
        (
            f"{PIPELINES} standard",
            lambda: make_pipeline(StandardScaler(with_mean=False), corank.SPD(alpha=0.1)),
            (X, Y),
            {"qid": QID},
        ),
        (
            f"{PIPELINES} range",
            lambda: make_pipeline(MinMaxScaler(), MaxAbsScaler(), corank.base.Landmarks(4, random_state=0),
            corank.CRR()), (X, Y),
            {"qid": QID},
        ),
        (
            f"{PIPELINES} smooth",
            lambda: make_pipeline(
                corank.base.NeighborSmoother(n_neighbors=3, n_components=3, random_state=0), corank.RankSVM()
            ),
            (X, Y),
            {"qid": QID},
        ),
    ]  # fmt: skip


def _fitting(make: Callable[[], Any], *given: Any, **more: Any) -> Callable[[], Any]:
    return lambda: make().fit(*given, **more)
