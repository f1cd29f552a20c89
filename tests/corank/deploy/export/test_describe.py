"""Every model that can be exported has the scores of its ``predict``; what cannot is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank.base.kernels import GaussianKernel, View
from corank.data.routing import fit_with_qid
from corank.deploy.export import describe
from corank.deploy.export.scorers import KernelScorer, LinearScorer, SumScorer, TreeScorer
from corank.errors import InputError

TREES = {"scorer": "trees", "n_steps": 15, "random_state": 0}
MODELS = {
    "SPD": lambda: corank.SPD(),
    "CRR": lambda: corank.CRR(mix=0.3),
    "LCRA": lambda: corank.LCRA(random_state=0),
    "RankSVM": lambda: corank.RankSVM(),
    "RankSVM gaussian": lambda: corank.RankSVM(kernel="gaussian"),
    "RankRLS": lambda: corank.RankRLS(),
    "RankRLS gaussian": lambda: corank.RankRLS(kernel="gaussian"),
    "RankRLS n_basis": lambda: corank.RankRLS(kernel="gaussian", n_basis=12, random_state=0),
    "RankRLS polynomial": lambda: corank.RankRLS(kernel="polynomial"),
    "RankRLS laplacian": lambda: corank.RankRLS(kernel="laplacian"),
    "RankRLS chi-square": lambda: corank.RankRLS(kernel="chi-square"),
    "RankRLS cosine": lambda: corank.RankRLS(kernel="cosine"),
    "RankRLS ard": lambda: corank.RankRLS(kernel="ard"),
    "CoRankRLS": lambda: corank.CoRankRLS(random_state=0),
    "CoRankRLS gaussian": lambda: corank.CoRankRLS(kernel="gaussian", n_basis=12, random_state=0),
    "ViewRankRLS": lambda: corank.ViewRankRLS(random_state=0),
    "ViewRankRLS mixed": lambda: corank.ViewRankRLS([View([0, 1], "gaussian"), View([2, 3])], random_state=0),
    "RankingPursuit": lambda: corank.RankingPursuit(10),
    "RankingPursuit linear": lambda: corank.RankingPursuit(10, "linear", mix=0.5),
    "RankingPursuit columns": lambda: corank.RankingPursuit(5, mix=0.5, dictionary="columns"),
    "CoRankingPursuit": lambda: corank.CoRankingPursuit(8, random_state=0),
    "LambdaRank": lambda: corank.LambdaRank(random_state=0),
    "LambdaRank mlp": lambda: corank.LambdaRank(scorer="mlp", n_steps=20, hidden=(5, 4), random_state=0),
    "LambdaRank trees": lambda: corank.LambdaRank(**TREES),
    "Calibrated": lambda: corank.Calibrated(corank.SPD()),
    "Calibrated logistic": lambda: corank.Calibrated(corank.SPD(), "logistic"),
    "ColumnMean": lambda: corank.ColumnMean([0, 1], [1, -1], method=None),
    "ResidualRanker": lambda: corank.base.ResidualRanker(corank.ColumnMean([0, 1], method=None), corank.RankRLS()),
    "PreferenceGP": lambda: corank.PreferenceGP(GaussianKernel(0.02), 0.3, learn=False),
    "OrdinalGP": lambda: corank.OrdinalGP(GaussianKernel(0.02), 0.3, learn=False),
    "PDGD": lambda: corank.PDGD(),
    "standard, SPD": lambda: make_pipeline(StandardScaler(), corank.SPD()),
    "min-max, SPD": lambda: make_pipeline(MinMaxScaler(), corank.SPD()),
    "min-max, min-max, SPD": lambda: make_pipeline(MinMaxScaler((-1, 2)), MinMaxScaler(), corank.SPD()),
    "max-abs, perceptron": lambda: make_pipeline(
        MaxAbsScaler(), corank.LambdaRank(scorer="mlp", n_steps=20, random_state=0)
    ),
    "standard, trees": lambda: make_pipeline(StandardScaler(), corank.LambdaRank(**TREES)),
    "min-max, trees": lambda: make_pipeline(MinMaxScaler((-1, 3)), corank.LambdaRank(**TREES)),
    "standard, gaussian": lambda: make_pipeline(StandardScaler(), corank.RankRLS(kernel="gaussian")),
    "standard, landmarks, SPD": lambda: make_pipeline(
        StandardScaler(), corank.base.Landmarks(9, random_state=0), corank.SPD()
    ),
}


@pytest.fixture(scope="module")
def problem():
    made = corank.make_ranking(16, 8, random_state=3)
    # columns above zero, for histograms, with other scales and offsets
    return np.abs(made.X) * np.arange(1, 1 + made.X.shape[1]) + 0.1, made.y, made.qid


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_predict(name, problem):
    if "trees" in name:
        pytest.importorskip("lightgbm")
    X, y, qid = problem
    y = corank.data.mask_scores(y, qid, fraction=0.3, random_state=0)
    model = fit_with_qid(MODELS[name](), X, y, qid)
    other = np.random.default_rng(0).uniform(0.1, 12.0, size=X.shape)
    described = describe(model)
    for rows in (X, other):
        scores = model.predict(rows)
        error = np.abs(described.scorer.score(rows) - scores)
        assert (error <= 1e-11 * (1.0 + described.scorer.size(rows))).all(), error.max()


def test_thresholds_of_trees_after_a_scaler_are_exact():
    """A row at the largest value that the scaler puts at or below a threshold goes left, the next one right."""
    pytest.importorskip("lightgbm")
    made = corank.make_ranking(30, 10, random_state=0)
    for scaler in (StandardScaler(), MinMaxScaler((-1, 3)), MaxAbsScaler(), StandardScaler(with_mean=False)):
        model = make_pipeline(scaler, corank.LambdaRank(**TREES))
        model = fit_with_qid(model, made.X, made.y, made.qid)
        scorer = describe(model).scorer
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(400, made.X.shape[1]))
        near = np.concatenate([scorer.trees.thresholds, np.nextafter(scorer.trees.thresholds, np.inf)])
        of = np.concatenate([scorer.trees.features] * 2)
        for j in np.unique(of):
            rows[:, j] = rng.choice(near[of == j], size=400)
        np.testing.assert_array_equal(scorer.score(rows), model.predict(rows))


def test_sums_are_as_simple_as_possible(problem):
    X, y, qid = problem
    models = [corank.SPD().fit(X, y, qid=qid), corank.RankRLS().fit(X, y, qid=qid)]
    mean = describe(models)
    assert isinstance(mean.scorer, LinearScorer)
    np.testing.assert_allclose(mean.scorer.score(X), np.mean([one.predict(X) for one in models], axis=0), atol=1e-12)
    mixed = corank.ViewRankRLS([View([0, 1], "gaussian"), View([2, 3])], random_state=0).fit(X, y, qid=qid)
    scorer = describe(mixed).scorer
    assert isinstance(scorer, SumScorer)
    assert {type(part) for _, part in scorer.parts} == {LinearScorer, KernelScorer}


def test_averages_of_trees_are_trees(problem):
    pytest.importorskip("lightgbm")
    X, y, qid = problem
    models = [corank.LambdaRank(**{**TREES, "n_steps": n}).fit(X, y, qid=qid) for n in (3, 5)]
    scorer = describe(models).scorer
    assert isinstance(scorer, TreeScorer)
    assert scorer.trees.n_trees == 8
    np.testing.assert_allclose(scorer.score(X), (models[0].predict(X) + models[1].predict(X)) / 2, atol=1e-12)


def test_names_are_those_of_the_model(problem):
    pandas = pytest.importorskip("pandas")
    X, y, qid = problem
    names = [f"column {j}" for j in range(X.shape[1])]
    described = describe(corank.SPD().fit(pandas.DataFrame(X, columns=names), y, qid=qid))
    assert described.names == tuple(names)
    assert described.is_named
    renamed = described.renamed({"column 1": "bm25"})
    assert renamed.names[:3] == ("column 0", "bm25", "column 2")
    with pytest.raises(InputError, match="no feature 'colum 1'"):
        described.renamed({"colum 1": "bm25"})
    with pytest.raises(InputError, match="two features would be called 'column 0'"):
        described.renamed({"column 1": "column 0"})
    assert describe(corank.SPD().fit(X, y, qid=qid)).names[:2] == ("f1", "f2")


def test_a_search_is_its_best_model(problem):
    X, y, qid = problem
    search = corank.QuerySearchCV(corank.RankRLS(), {"alpha": [0.1, 1.0]}, cv=2).fit(X, y, qid=qid)
    np.testing.assert_allclose(describe(search).scorer.score(X), search.predict(X), atol=1e-12)


def test_without_calibration_the_order_is_the_rankers(problem):
    X, y, qid = problem
    model = corank.Calibrated(corank.SPD()).fit(X, y, qid=qid)
    np.testing.assert_allclose(describe(model, calibrated=False).scorer.score(X), model.ranker_scores(X), atol=1e-12)


def overlap(A, B):
    return np.asarray(A) @ np.asarray(B).T


REFUSED = {
    "scales features by the other rows": lambda X, y, qid: fit_with_qid(
        make_pipeline(corank.QueryScaler(), corank.SPD()), X, y, qid
    ),
    "ColumnMean\\(method='zscore'\\) scales": lambda X, y, qid: corank.ColumnMean([0]).fit(X, y, qid=qid),
    "fitted with a prior, whose scores": lambda X, y, qid: corank.SPD().fit(X, y, qid=qid, prior=X[:, 0]),
    "CallableKernel have no formula": lambda X, y, qid: corank.RankRLS(kernel=overlap).fit(X, y, qid=qid),
    "PrecomputedKernel have no formula": lambda X, y, qid: corank.RankRLS(kernel="precomputed").fit(
        X @ X.T, y, qid=qid
    ),
    "MinMaxScaler\\(clip=True\\)": lambda X, y, qid: fit_with_qid(
        make_pipeline(MinMaxScaler(clip=True), corank.SPD()), X, y, qid
    ),
    "list of models is empty": lambda X, y, qid: [],
    "a StandardScaler cannot be exported": lambda X, y, qid: StandardScaler().fit(X),
    "only a linear ranker can be exported after Landmarks": lambda X, y, qid: fit_with_qid(
        make_pipeline(corank.base.Landmarks(5, random_state=0), corank.RankRLS(kernel="gaussian")), X, y, qid
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_exported_is_refused_with_something_that_works(sentence, problem):
    X, y, qid = problem
    model = REFUSED[sentence](X, y, qid)
    with pytest.raises(InputError, match=sentence) as refusal:
        describe(model)
    assert "; " in str(refusal.value)
    assert str(refusal.value).endswith(".")
