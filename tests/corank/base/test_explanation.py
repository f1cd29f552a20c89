"""Contributions add up to the difference of two scores, for every ranker that is a sum."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank import (
    SPD,
    ColumnMean,
    CoRankRLS,
    LambdaRank,
    QueryScaler,
    QuerySearchCV,
    RankingPursuit,
    RankRLS,
    RankSVM,
    ViewRankRLS,
    explain,
    make_ranking,
)
from corank.base import Landmarks, ResidualRanker
from corank.base.kernels import GaussianKernel
from corank.data.splits import mask_scores
from corank.errors import InputError, UsageWarning
from helpers.estimators import LAWFUL, REPEATED

PROBLEM = make_ranking(10, (3, 9), random_state=5)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.2, random_state=1)
PRIOR = PROBLEM.utility + np.random.default_rng(0).normal(size=len(Y))
PAIR = (3, 1)

NO_SUM = {"Calibrated", "Calibrated logistic", "LambdaRank mlp", "LambdaRank trees", "LambdaRank trees ranknet"}
SUMS = {
    **{name: make for name, make in LAWFUL.items() if name not in NO_SUM},
    "ColumnMean": lambda: ColumnMean([2, 0], signs=[1, -1]),
    "ColumnMean raw": lambda: ColumnMean([1], method=None),
    "ResidualRanker scaled": lambda: ResidualRanker(ColumnMean([0, 3]), RankRLS(kernel="gaussian")),
    "ResidualRanker pursuit": lambda: ResidualRanker(ColumnMean([0], method=None), RankingPursuit(5)),
    "RankRLS basis": lambda: RankRLS(kernel="laplacian", n_basis=7, random_state=0),
    "RankRLS function": lambda: RankRLS(kernel=lambda a, b: (1.0 + a @ b.T) ** 2),
    "CoRankRLS mixed": lambda: CoRankRLS([[0, 1, 2], GaussianKernel(0.1)], coupling=0.1),
    "CoRankRLS columns": lambda: CoRankRLS([[0, 1, 2], [2, 3, 4]], coupling=0.1),
    "ViewRankRLS linear": lambda: ViewRankRLS([[0, 1, 2], [3, 4, 5]]),
    "RankSVM basis": lambda: RankSVM(kernel="gaussian", n_basis=6, random_state=0),
}


def check(found, f, pair=PAIR):
    assert found.difference == pytest.approx(f[pair[0]] - f[pair[1]], rel=1e-12)
    assert found.contributions.sum() == pytest.approx(found.difference, rel=1e-8, abs=1e-9)
    np.testing.assert_allclose(found.contributions, found.weights * (found.values[:, 0] - found.values[:, 1]))
    assert (np.diff(np.abs(found.contributions)) <= 0).all()
    assert len(found.names) == len(found.contributions)


@pytest.mark.parametrize("with_prior", [False, True], ids=["", "prior"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in REPEATED else []) for name in SUMS]
)
def test_contributions_add_up(name, with_prior):
    model = SUMS[name]()
    given = {"prior": PRIOR} if with_prior else {}
    model.fit(X, Y, qid=QID, **given)
    found = explain(model, X, PAIR, qid=QID, **given)
    check(found, model._predict_queries(X, QID, given.get("prior")))
    n_priors = with_prior + isinstance(model, ResidualRanker)
    assert found.names.count("prior") == n_priors
    if with_prior:
        part = {label: at for at, label in enumerate(found.names)}["prior"] if n_priors == 1 else None
        if part is not None:
            assert found.contributions[part] == pytest.approx(PRIOR[3] - PRIOR[1])


@pytest.mark.parametrize("name", sorted(NO_SUM))
def test_what_is_no_sum_is_refused(name):
    model = LAWFUL[name]().fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="is not additive, so its scores cannot be split"):
        explain(model, X, PAIR, qid=QID)


def test_columns_and_training_rows_are_told_apart():
    linear = explain(SPD("squared").fit(X, Y, qid=QID), X, PAIR, qid=QID)
    assert set(linear.names) == {f"column {j}" for j in range(X.shape[1])}
    at = linear.names.index("column 4")
    np.testing.assert_array_equal(linear.values[at], X[list(PAIR), 4])
    model = RankRLS(kernel=GaussianKernel(0.1)).fit(X, Y, qid=QID)
    found = explain(model, X, PAIR, qid=QID)
    number = model.basis_.numbers[5]
    at = found.names.index(f"training row {number}")
    seen = X[[*PAIR, number]] * model.column_scale_
    expected = np.exp(-0.1 * ((seen[:2] - seen[2]) ** 2).sum(axis=1))
    np.testing.assert_allclose(found.values[at], expected)
    assert found.weights[at] == model.dual_coef_[5]


@pytest.mark.parametrize(
    "name",
    ["RankRLS gaussian", "CoRankRLS gaussian", "RankSVM gaussian", "PreferenceGP graph", "OrdinalGP", "RankingPursuit"],
)
def test_training_rows_have_the_numbers_they_came_with(name):
    """A row is as similar to itself as a Gaussian kernel lets it be."""
    model = LAWFUL[name]().fit(X, Y, qid=QID)
    number = int(explain(model, X, PAIR).names[0].split(",")[0].removeprefix("training row "))
    found = explain(model, X, (number, number))
    ones = {
        label.split(",")[0] for label, values in zip(found.names, found.values, strict=True) if values[0] > 1 - 1e-9
    }
    assert ones == {f"training row {number}"}


def test_a_shared_column_of_linear_views_is_one_term():
    model = CoRankRLS([[0, 1, 2], [2, 3, 4]], coupling=0.1).fit(X, Y, qid=QID)
    found = explain(model, X, PAIR, qid=QID)
    assert len(set(found.names)) == len(found.names)
    views = explain(CoRankRLS([GaussianKernel(0.1), GaussianKernel(0.2)]).fit(X, Y, qid=QID), X, PAIR, qid=QID)
    assert {name.split(", ")[1] for name in views.names} == {"view 0", "view 1"}


@pytest.mark.parametrize(
    "steps",
    [
        (QueryScaler(), SPD("squared")),
        (QueryScaler("zscore"), RankRLS(kernel="gaussian")),
        (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RankSVM()),
        (StandardScaler(), Ridge()),
        (Landmarks(6, random_state=0), RankRLS()),
        (PCA(3, random_state=0), SPD("squared")),
    ],
    ids=lambda steps: " ".join(type(step).__name__ for step in steps),
)
def test_pipelines(steps):
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(*steps)
        ids = {} if isinstance(steps[-1], Ridge) else {"qid": QID}
        model.fit(X, PROBLEM.y, **ids)
        f = model.predict(X, **({"qid": QID} if isinstance(steps[0], QueryScaler) else {}))
    found = explain(model, X, PAIR, qid=QID, names=[f"c{j}" for j in range(X.shape[1])])
    check(found, f)
    if isinstance(steps[0], QueryScaler | StandardScaler) and "RankRLS" not in type(steps[-1]).__name__:
        assert set(found.names) == {f"c{j}" for j in range(X.shape[1])}


def test_a_search_is_explained_by_what_it_found():
    search = QuerySearchCV(make_pipeline(QueryScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, metric="kendall", cv=2)
    search.fit(X, PROBLEM.y, qid=QID)
    check(explain(search, X, PAIR, qid=QID), search.predict(X, QID))


@pytest.mark.parametrize("as_given", [sparse.csr_matrix, np.float32, lambda X: X.tolist()], ids=["csr", "f32", "list"])
@pytest.mark.parametrize("name", ["SPD", "RankRLS gaussian", "LambdaRank", "RankingPursuit columns"])
def test_rows_of_any_kind(name, as_given):
    rows = as_given(X)
    model = LAWFUL[name]().fit(rows, Y, qid=QID)
    check(explain(model, rows, PAIR, qid=QID), model.predict(rows))


def test_names_of_a_data_frame():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = SPD("squared").fit(frame, Y, qid=QID)
    found = explain(model, frame, PAIR)
    assert set(found.names) == set(frame.columns)
    table = found.to_frame()
    assert list(table.columns) == ["name", "row 3", "row 1", "weight", "contribution"]
    assert table["contribution"].sum() == pytest.approx(found.difference)
    assert list(explain(model, frame, (2, 2)).to_frame().columns)[1:3] == ["first", "second"]


def test_rows_that_are_objects():
    texts = ["tin", "tan", "iron", "irony", "ton"]

    def alike(a, b):
        return np.array([[float(len(set(one) & set(other))) for other in b] for one in a])

    model = RankRLS(kernel=alike).fit(texts, [0, 1, 2, 3, 1])
    check(explain(model, texts, (3, 0)), model.predict(texts), (3, 0))


def test_a_small_table():
    model = SPD("squared").fit(X, Y, qid=QID)
    text = repr(explain(model, X, PAIR, qid=QID))
    lines = text.splitlines()
    assert lines[0].startswith("row 3 ")
    assert len(lines) == 2 + 10 + 2
    assert lines[-2].startswith("10 others")
    assert lines[-1].split()[0] == "sum"
    assert max(map(len, lines)) <= 80
    assert "<td>10 others</td>" in explain(model, X, PAIR)._repr_html_()
    with pytest.raises(AttributeError):
        explain(model, X, PAIR).names = ()


def test_bars():
    mpl.use("Agg")
    found = explain(SPD("squared").fit(X, Y, qid=QID), X, PAIR, names=[f"${j}" for j in range(X.shape[1])])
    axes = found.plot(top=4)
    assert [bar.get_width() for bar in axes.patches[:4]] == pytest.approx(found.contributions[:4].tolist())
    assert len(axes.patches) == 5
    axes.figure.canvas.draw()
    mpl.pyplot.close(axes.figure)


def test_rows_of_two_queries_are_warned_of():
    model = SPD("squared").fit(X, Y, qid=QID)
    other = int(np.flatnonzero(QID[0] != QID)[0])
    with pytest.warns(UsageWarning, match=f"row 0 and row {other} belong to different queries"):
        explain(model, X, (0, other), qid=QID)


@pytest.mark.parametrize("pair", [(0,), (0, 1, 2), (0, -1), (0, 10**6), "01", (0, 1.0), 3])
def test_a_bad_pair_gets_one_sentence(pair):
    model = SPD("squared").fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="pass two row numbers from 0 to"):
        explain(model, X, pair)


def test_bad_models_and_names_get_one_sentence():
    model = SPD("squared").fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="names has 1 names"):
        explain(model, X, PAIR, names=["a"])
    with pytest.raises(InputError, match="prior is missing"):
        explain(SPD("squared").fit(X, Y, qid=QID, prior=PRIOR), X, PAIR)
    with pytest.raises(InputError, match="prior was given"):
        explain(model, X, PAIR, prior=PRIOR)
    with pytest.raises(InputError, match="PoissonRegressor is not additive"):
        explain(PoissonRegressor().fit(X, PROBLEM.y), X, PAIR)
    trees = make_pipeline(StandardScaler(), LambdaRank(scorer="trees", n_steps=2).fit(X, Y, qid=QID))
    trees[0].fit(X)
    with pytest.raises(InputError, match=r"is not (known to be )?additive"):
        explain(trees, X, PAIR)
    with pytest.raises(InputError, match="model is a QueryScaler, which has no predict"):
        explain(QueryScaler(), X, PAIR)
    by_id = corank.Collaborative().fit([1, 2, 1, 2], [1, 2, 3, 1], qid=[1, 1, 2, 2])
    with pytest.raises(InputError, match="Collaborative is not additive"):
        explain(by_id, [1, 2], (0, 1), qid=[1, 1])
    with pytest.raises(InputError, match="KNeighborsRegressor is not known"):
        explain(KNeighborsRegressor().fit(X, PROBLEM.y), X, PAIR)


def test_a_saved_model_says_the_same(tmp_path):
    model = corank.base.ResidualRanker(ColumnMean([0, 1]), RankRLS(kernel="gaussian")).fit(X, Y, qid=QID)
    corank.save(model, tmp_path / "m")
    again = explain(corank.load(tmp_path / "m"), X, PAIR, qid=QID)
    found = explain(model, X, PAIR, qid=QID)
    assert again.names == found.names
    np.testing.assert_array_equal(again.contributions, found.contributions)
