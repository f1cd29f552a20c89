"""Frames of floats take a short path to an array; it gives the rows and the errors of the long one."""

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from corank import SPD, AutoRanker, LambdaRank, QueryScaler, RankRLS, load, read, save, suggest
from corank.base.explanation import explain
from corank.comparison.problem import InputRows, make_problem
from corank.data.rows import as_rows
from corank.errors import InputError, UsageWarning
from corank.models import AutoLabelRanker, LGBMRanker

VALUES = np.arange(12.0).reshape(6, 2)
NAMES = ["a", "b"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frame_of_floats_keeps_its_type(frame, dtype):
    rows = as_rows(frame({name: VALUES[:, j].astype(dtype) for j, name in enumerate(NAMES)}))
    assert rows.dtype == dtype
    assert rows.flags.c_contiguous
    assert rows.tolist() == VALUES.tolist()


def test_columns_of_two_types_become_float64():
    frame = pd.DataFrame({"a": VALUES[:, 0].astype(np.float32), "b": VALUES[:, 1]})
    assert as_rows(frame).dtype == np.float64


def test_sparse_columns_stay_sparse():
    frame = pd.DataFrame([[0.0, 2.0], [1.0, 0.0]], columns=NAMES).astype(pd.SparseDtype(float, 0.0))
    assert as_rows(frame).toarray().tolist() == [[0.0, 2.0], [1.0, 0.0]]


def test_missing_value_of_a_frame_is_named():
    frame = pd.DataFrame(VALUES, columns=NAMES)
    frame.loc[3, "b"] = np.nan
    with pytest.raises(InputError, match="NaN at row 3, column 1"):
        as_rows(frame)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_in_another_order_are_refused(frame):
    columns = {name: VALUES[:, j] for j, name in enumerate(NAMES)}
    model = SPD().fit(frame(columns), [1, 0, 1, 0, 1, 0], qid=[0] * 6)
    np.testing.assert_allclose(model.predict(frame(columns)), VALUES @ model.coef_)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame({name: columns[name] for name in reversed(NAMES)}))


def categories() -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]:
    """Return rows with two columns of categories, the same one-hot by pandas, grades and query ids."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=120),
            "colour": pd.Categorical(
                rng.choice(["red", "blue", "green"], 120), categories=["red", "blue", "green", "x"]
            ),
            "b": rng.normal(size=120),
            "size": pd.Categorical(rng.integers(0, 3, 120)),
        }
    )
    X.loc[5, "colour"] = None
    y = (X["a"] + 2 * (X["colour"] == "red") > 0.5).astype(int) + (X["size"] == 2)
    return X, pd.get_dummies(X, prefix_sep="=", dtype=float), y.to_numpy(), np.arange(120) // 10


@pytest.mark.filterwarnings("ignore:columns of categories:corank.errors.UsageWarning")
@pytest.mark.parametrize(
    "ranker",
    [
        RankRLS(), SPD(), RankRLS(kernel="rbf", random_state=0), LambdaRank(random_state=0),
        LGBMRanker(n_estimators=9, random_state=0),
        AutoRanker(random_state=0),
    ],
    ids=["RankRLS", "SPD", "rbf", "LambdaRank", "LGBMRanker", "AutoRanker"],
)  # fmt: skip
def test_categories_are_what_pandas_would_make_of_them(ranker, tmp_path):
    X, dummies, y, qid = categories()
    model, by_hand = clone(ranker).fit(X, y, qid=qid), clone(ranker).fit(dummies, y, qid=qid)
    assert model.feature_names_in_.tolist() == dummies.columns.tolist()
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(dummies))
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), by_hand.predict(dummies))
    # other types of columns, as from a file of text; a new category
    strange = X.head(7).assign(colour="violet", size=X["size"].head(7).astype(float))
    zeros = dummies.head(7).assign(**{name: 0.0 for name in dummies if name.startswith("colour=")})
    np.testing.assert_array_equal(model.predict(strange), by_hand.predict(zeros))
    with pytest.raises(InputError, match="'colour' holds lists"):
        model.predict(X.assign(colour=[["red"]] * len(X)))
    with pytest.raises(ValueError, match="colour=red"):
        model.predict(X.drop(columns="colour"))


@pytest.mark.filterwarnings("ignore:columns of categories:corank.errors.UsageWarning")
def test_lightgbm_scores_the_categories_of_our_trees():
    X, dummies, y, qid = categories()
    held = (X.head(30), y[:30], qid[:30])
    model = LambdaRank(scorer="trees", early_stopping=True, random_state=0).fit(X, y, qid=qid, eval_set=held)
    booster = lightgbm.Booster(model_str=model.trees_.to_lightgbm())
    np.testing.assert_array_equal(booster.predict(model.trees_.coded(dummies.to_numpy())), model.predict(X))


@pytest.mark.filterwarnings("ignore:columns of categories:corank.errors.UsageWarning")
def test_categories_in_warm_starts_pipelines_scalers_and_label_rankers():
    X, dummies, y, qid = categories()
    for model in (SPD(warm_start=True, n_steps=3, random_state=0), make_pipeline(RankRLS(alpha=0.1))):
        fit = {"qid": qid} if isinstance(model, SPD) else {"rankrls__qid": qid}
        by_hand = clone(model).fit(dummies, y, **fit).fit(dummies, y, **fit)
        np.testing.assert_array_equal(model.fit(X, y, **fit).fit(X, y, **fit).predict(X), by_hand.predict(dummies))
    scaler = QueryScaler().fit(X, qid=qid)
    np.testing.assert_array_equal(scaler.transform(X, qid=qid), QueryScaler().fit_transform(dummies, qid=qid))
    labels = AutoLabelRanker(random_state=0)
    by_hand = clone(labels).fit(dummies, y).predict(dummies)
    np.testing.assert_array_equal(labels.fit(X, y).predict(X), by_hand)


@pytest.mark.filterwarnings("ignore:columns of categories:corank.errors.UsageWarning")
def test_categories_are_compared_explained_and_suggested():
    X, dummies, y, qid = categories()
    model, by_hand = RankRLS().fit(X, y, qid=qid), RankRLS().fit(dummies, y, qid=qid)
    assert str(explain(model, X, (0, 3), qid=qid)) == str(explain(by_hand, dummies, (0, 3), qid=qid))
    open_rows = np.where(qid > 3, np.nan, y)
    for pair in ((model, by_hand), (None, None)):
        first, second = (
            suggest(item, rows, open_rows, qid, strategy="representative")
            for item, rows in zip(pair, (X, dummies), strict=True)
        )
        np.testing.assert_array_equal(first, second)
    problems = [make_problem(InputRows.of(rows, y, qid), None, 2, 0)[0] for rows in (X, dummies)]
    assert problems[0].names == problems[1].names == tuple(dummies)
    np.testing.assert_array_equal(problems[0].X, problems[1].X)


def test_sentence_says_what_became_of_categories():
    X, _, y, qid = categories()
    with pytest.warns(UsageWarning, match="0 and 1: 'colour' became 4"):
        SPD().fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"a": pd.Categorical(range(300))}, "column 'a' has 300 categories, but between 1 and 256 are allowed"),
        ({"a": pd.Categorical([None] * 300)}, "column 'a' has 0 categories"),
        ({"a": pd.Categorical([1, "1"] * 150)}, "two of its categories look the same; rename it"),
        ({"a": pd.Categorical(["b"] * 300), "a=c": np.zeros(300)}, "there is a column 'a=c'"),
        ({"a": ["x"] * 300}, r"for a ranker, by X.astype\(\{'a': 'category'\}\)"),
    ],
)
def test_unclear_categories_get_one_sentence(columns, sentence):
    with pytest.raises(InputError, match=sentence):
        SPD().fit(pd.DataFrame(columns), [0, 1] * 150, qid=[0] * 300)


@pytest.mark.filterwarnings("ignore:columns of categories:corank.errors.UsageWarning")
def test_tables_with_categories_are_read_with_the_columns_of_the_model(tmp_path):
    X, dummies, y, qid = categories()
    X["colour"], X["size"] = X["colour"].cat.remove_unused_categories(), X["size"].astype(float)
    dummies = pd.get_dummies(X, prefix_sep="=", dtype=float)
    X.assign(grade=y, qid=qid).to_parquet(tmp_path / "rows.parquet")
    rows = read(tmp_path / "rows.parquet")
    names = [*dummies.columns[:3], "colour=blue", "colour=green", "colour=red"]
    assert rows.names == names
    np.testing.assert_array_equal(rows.X, dummies[names])
    X.assign(grade=y, qid=qid).iloc[::-1].to_csv(tmp_path / "rows.csv", index=False)
    wanted = [*names[:3], "colour=red", "colour=green"]
    with pytest.raises(InputError, match="color"):
        read(tmp_path / "rows.csv", features=["color=red", *names[:3]])
    texts = X.assign(colour=X["colour"].astype(object), grade=y, qid=qid)  # neither of them with a dictionary
    texts.to_parquet(tmp_path / "texts.parquet")
    np.testing.assert_array_equal(read(tmp_path / "texts.parquet", features=names).X, dummies[names])
    X[["colour"]].assign(grade=y, qid=qid).to_parquet(tmp_path / "only.parquet")
    np.testing.assert_array_equal(read(tmp_path / "only.parquet").X, dummies[names[3:]])
    np.testing.assert_allclose(read(tmp_path / "rows.csv", features=wanted).X, dummies[wanted].iloc[::-1])
