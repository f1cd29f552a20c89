"""Names of columns: given instead of numbers, remembered by `fit`, and checked by `predict`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import corank
from corank import LCRA, Calibrated, ColumnMean, CoRankingPursuit, CoRankRLS, RankRLS, ViewRankRLS
from corank.base import ResidualRanker
from corank.base.kernels.views import View
from corank.data.collection import Dataset
from corank.errors import InputError

MADE = corank.make_ranking(20, 8, n_latent=2, features_per_view=2, random_state=0)
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(MADE.X, columns=NAMES)
ROWS = Dataset(MADE.X, MADE.y, NAMES, _qid=lambda: MADE.qid)


@pytest.mark.thin(5)
@pytest.mark.parametrize(
    ("named", "numbered"),
    [
        (ColumnMean(["c", "a"]), ColumnMean([2, 0])),
        (ResidualRanker(ColumnMean(["c", 0]), RankRLS()), ResidualRanker(ColumnMean([2, 0]), RankRLS())),
        (
            Calibrated(ResidualRanker(ColumnMean(["b"]), RankRLS()), cv=2),
            Calibrated(ResidualRanker(ColumnMean([1]), RankRLS()), cv=2),
        ),
        (
            LCRA(views=[["d", "a"], ["b", 2]], n_steps=50, random_state=0),
            LCRA(views=[[3, 0], [1, 2]], n_steps=50, random_state=0),
        ),
        (CoRankRLS(views=["a", ["b", "c"]]), CoRankRLS(views=[0, [1, 2]])),
        (
            CoRankRLS(views=[View(["a", "d"], "gaussian"), View(["b"])], random_state=0),
            CoRankRLS(views=[View([0, 3], "gaussian"), View([1])], random_state=0),
        ),
        (
            ViewRankRLS(views=[["a", "b"], ["c", "d"]], random_state=0),
            ViewRankRLS(views=[[0, 1], [2, 3]], random_state=0),
        ),
        (
            CoRankingPursuit(5, views=[["a", "b"], ["c", "d"]], random_state=0),
            CoRankingPursuit(5, views=[[0, 1], [2, 3]], random_state=0),
        ),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "polars", "read"])
def test_columns_are_named_or_numbered(named, numbered, kind, tmp_path):
    expected = numbered.fit(MADE.X, MADE.y, qid=MADE.qid)._predict_queries(MADE.X, MADE.qid, None)
    X = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "read": ROWS}[kind]
    named.fit(X, None if kind == "read" else MADE.y, qid=None if kind == "read" else MADE.qid)
    assert named.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(named._predict_queries(X, MADE.qid, None), expected)
    corank.save(named, tmp_path / "m")
    np.testing.assert_array_equal(corank.load(tmp_path / "m")._predict_queries(X, MADE.qid, None), expected)


@pytest.mark.parametrize(
    "model", [ColumnMean(["x"]), LCRA(views=[["x"], ["a"]]), CoRankRLS(views=[View(["x"]), ["a"]])]
)
def test_names_that_are_not_there_are_refused(model):
    with pytest.raises(InputError, match="names the column 'x'"):
        model.fit(FRAME, MADE.y, qid=MADE.qid)
    with pytest.raises(InputError, match="names the column 'x'"):
        model.fit(MADE.X, MADE.y, qid=MADE.qid)


@pytest.mark.long
def test_prior_columns_of_a_comparison_are_named():
    for prior in (["b"], [1]):
        study = corank.compare(["rankrls"], FRAME, MADE.y, MADE.qid, prior=prior, folds=2, fractions=(), n_jobs=1)
        assert study.ranker.prior_ranker_.columns_.tolist() == [1]
    with pytest.raises(InputError, match="prior names the column 'x'"):
        corank.compare(["rankrls"], FRAME, MADE.y, MADE.qid, prior=["x"], folds=2, n_jobs=1)


def test_rows_of_a_file_are_checked_by_name():
    model = RankRLS().fit(ROWS)
    np.testing.assert_array_equal(model.predict(ROWS), model.predict(FRAME))
    with pytest.raises(InputError, match="another order; read the file with"):
        model.predict(replace(ROWS, X=MADE.X[:, ::-1], names=NAMES[::-1]))
    with pytest.raises(InputError, match="X lacks 'd', which were in fit and has 'e'"):
        model.predict(replace(ROWS, names=[*"abce"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(replace(ROWS, names=None))
    unnamed = RankRLS().fit(MADE.X, MADE.y, qid=MADE.qid)
    assert not hasattr(unnamed, "feature_names_in_")
    np.testing.assert_array_equal(unnamed.predict(ROWS), unnamed.predict(MADE.X))


def test_a_warm_start_checks_names():
    model = LCRA(n_steps=20, warm_start=True, random_state=0).fit(ROWS)
    model.fit(ROWS)
    with pytest.raises(InputError, match="another order"):
        model.fit(replace(ROWS, X=MADE.X[:, ::-1], names=NAMES[::-1]))
