"""AutoRanker: its score is the weighted sum of its members, chosen on queries they had not seen."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import rankdata

import corank
from corank.base import explain
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.deploy import model_bytes, model_from_bytes
from corank.deploy.export import export_model
from corank.errors import InputError
from corank.metrics import evaluate
from corank.models.auto import AutoRanker
from corank.models.auto.candidates import CANDIDATES, column_correlations, ranks_inside
from corank.models.auto.members import Member, add_up_alike

PROBLEM = make_ranking(40, 10, random_state=3)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
CHEAP = ["linear", "linear-strong", "gaussian", "gaussian-weak"]
ADDITIVE = AutoRanker(candidates=CHEAP, random_state=0).fit(X, Y, qid=QID)
BENT = np.abs(X[:, 0]) + np.abs(X[:, 1])
BENT_Y = np.digitize(BENT, np.quantile(BENT, [0.5, 0.8])).astype(float)


def used(model):
    return [name for name, w in zip(model.leaderboard_.names, model.leaderboard_.weights, strict=True) if w]


def by_hand(model, X):
    factors = model.weights_ / model.scales_
    return sum(c * member.predict(X) for c, member in zip(factors, model.members_, strict=True))


def test_the_score_is_the_weighted_sum_of_its_members():
    np.testing.assert_allclose(ADDITIVE.predict(X), by_hand(ADDITIVE, X), rtol=1e-9, atol=1e-12)
    assert ADDITIVE.weights_.sum() == pytest.approx(1.0)
    kinds = {"linear", "gaussian"} & {name.split("-")[0] for name in used(ADDITIVE)}
    assert len(ADDITIVE.members_) == len(kinds)


def test_scores_do_not_depend_on_the_other_rows_of_a_call():
    np.testing.assert_allclose([ADDITIVE.predict(X[[i]])[0] for i in range(5)], ADDITIVE.predict(X)[:5], rtol=1e-9)


def test_linear_members_become_one_linear_model():
    model = AutoRanker(candidates=["linear", "linear-strong"], random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_allclose(X @ model.coef_, by_hand(model, X), rtol=1e-9, atol=1e-12)


def test_bends_are_left_to_those_who_can_learn_them():
    model = AutoRanker(candidates=["linear", "gaussian-weak"], random_state=0).fit(X, BENT_Y, qid=QID)
    board = dict(zip(model.leaderboard_.names, model.leaderboard_.means, strict=True))
    assert board["gaussian-weak"] > board["linear"] + 0.05
    assert model.leaderboard_.names[0] == "gaussian-weak"
    assert model.leaderboard_.weights[0] > 0.8


def test_values_on_the_leaderboard_are_those_of_folds_fitted_by_hand():
    model = AutoRanker(candidates=["linear"], random_state=0).fit(X[QID < 8], Y[QID < 8], qid=QID[QID < 8])
    alpha = model.members_[0].alpha
    found = []
    for q in range(8):  # few queries are left out one by one
        rest = (QID < 8) & (q != QID)
        # as in a fold, all rows scale the columns
        y = np.where(rest[QID < 8], Y[QID < 8], np.nan)
        one = corank.RankRLS(alpha).fit(X[QID < 8], y, qid=QID[QID < 8])
        found.append(evaluate(Y[q == QID], one.predict(X[q == QID]), None, "nDCG@10")["nDCG@10"].mean)
    assert model.leaderboard_.means[0] == pytest.approx(np.nanmean(found))
    assert model.estimate_[0] == pytest.approx(np.nanmean(found))


def test_same_seed_same_bits():
    again = AutoRanker(candidates=CHEAP, random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(again.predict(X), ADDITIVE.predict(X))


def test_summary_says_what_was_chosen_and_what_more_would_cost():
    words = ADDITIVE.summary()
    assert f"nDCG@10 {ADDITIVE.estimate_[0]:.3f} on 40 left-out queries" in words
    assert "about 120 more judged queries" in words
    few = AutoRanker(candidates=["linear"]).fit(X[QID < 4], Y[QID < 4], qid=QID[QID < 4])
    assert "With fewer than 10 judged queries" in few.summary()
    assert "judge 6 more queries" in few.summary()
    tiny = AutoRanker(candidates=["linear", "linear-strong"]).fit(X[:5], [0, 1, 2, 3, 4], qid=np.zeros(5))
    assert "too few judgements" in tiny.summary()
    np.testing.assert_allclose(tiny.leaderboard_.weights, [0.5, 0.5])
    # values that are unknown can be saved
    again = model_from_bytes(model_bytes(tiny), AutoRanker)
    assert again.summary() == tiny.summary()
    np.testing.assert_array_equal(again.predict(X), tiny.predict(X))


def test_ranks_of_sparse_rows_are_those_of_dense_rows():
    dense = AutoRanker(candidates=["ranks"], random_state=0).fit(X, Y, qid=QID)
    sparse_rows = AutoRanker(candidates=["ranks"], random_state=0).fit(sparse.csr_matrix(X), Y, qid=QID)
    np.testing.assert_allclose(sparse_rows.predict(sparse.csr_matrix(X), QID), dense.predict(X, QID), rtol=1e-9)
    with pytest.warns(UserWarning, match=f"all {len(X)} rows are treated as one query"):
        dense.predict(X)
    with pytest.raises(InputError, match="candidates is empty"):
        AutoRanker(candidates=[]).fit(X, Y, qid=QID)
    wide = sparse.csr_matrix((1 << 13, 1 << 12))
    with pytest.raises(InputError, match="4,096 columns, too many to rank"):
        ranks_inside(wide, Queries.of(None, wide.shape[0]))


def test_a_time_limit_skips_candidates_and_says_so():
    model = AutoRanker(1e-9, candidates=CHEAP, random_state=0).fit(X, Y, qid=QID)
    assert [name for name in model.leaderboard_.names if name in CHEAP] == ["linear"]
    assert len(model.skipped_) == 3
    assert "above the time limit" in model.summary()


def test_the_order_of_rows_does_not_change_the_choice():
    shuffled = np.random.default_rng(1).permutation(len(Y))
    other = AutoRanker(candidates=["linear", "linear-strong", "logistic"], random_state=0)
    one = AutoRanker(candidates=["linear", "linear-strong", "logistic"], random_state=0).fit(X, Y, qid=QID)
    other.fit(X[shuffled], Y[shuffled], qid=QID[shuffled])
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-6, atol=1e-8)


def test_a_prior_can_be_all_there_is():
    good, noise = PROBLEM.utility, np.random.default_rng(0).normal(size=(len(Y), 3))
    model = AutoRanker(candidates=["linear"], random_state=0).fit(noise, Y, qid=QID, prior=good)
    assert "prior" in model.leaderboard_.names
    assert model.score(noise, Y, qid=QID, prior=good) > 0.8


def test_sparse_rows_and_preferences_are_learnt_from():
    wide = sparse.random_array((len(Y), 3000), density=0.01, format="csr", rng=np.random.default_rng(0))
    rows = sparse.hstack([sparse.csr_array(X), wide], format="csr")
    model = AutoRanker(random_state=0).fit(rows, Y, qid=QID)
    linear = {"linear", "linear-weak", "linear-strong", "linear-strongest", "logistic"}
    assert set(model.leaderboard_.names) <= linear
    pairs = np.array([(i, j) for i in range(200) for j in range(200) if QID[i] == QID[j] and Y[i] > Y[j]])
    model = AutoRanker(candidates=CHEAP, random_state=0).fit(X, pairs=pairs, qid=QID)
    assert model.leaderboard_.metric == "1 − disagreement"
    assert model.score(X, Y, qid=QID) > 0.6


def test_a_column_that_is_an_order_is_a_member():
    """The column is chosen without the queries that it orders, by its correlation with their grades."""
    rows = np.column_stack([np.random.default_rng(0).normal(size=len(Y)), -PROBLEM.utility])
    frame = pd.DataFrame(rows, columns=["noise", "rank"])
    few = QID < 6
    model = AutoRanker(candidates=["linear", "column", "mean"], random_state=0).fit(frame[few], Y[few], qid=QID[few])
    board = dict(zip(model.leaderboard_.names, model.leaderboard_.means, strict=True))
    expected = evaluate(Y[few], -rows[few, 1], QID[few], "nDCG@10")["nDCG@10"].mean
    assert board["column rank, lowest first"] == pytest.approx(expected)
    assert board["mean"] < expected
    with_prior = AutoRanker(random_state=0).fit(rows[few], Y[few], qid=QID[few], prior=-rows[few, 1])
    assert not {"column", "mean"} & {name.split()[0] for name in with_prior.leaderboard_.names}


def test_correlations_of_columns_are_those_of_numpy():
    rows = np.column_stack([X[:, :3], np.full(len(Y), 0.1), QID])
    expected = [
        np.mean([np.corrcoef(rows[q == QID, j], Y[q == QID])[0, 1] if np.ptp(Y[q == QID]) else 0.0 for q in range(40)])
        for j in range(3)
    ]
    np.testing.assert_allclose(column_correlations(RankingData.of(rows, Y, QID)), [*expected, 0.0, 0.0], atol=1e-12)
    pairs = np.array([(i, j) for i in range(60) for j in range(60) if QID[i] == QID[j] and Y[i] > Y[j]])
    gaps = X[pairs[:, 0], 0] - X[pairs[:, 1], 0]
    preferred = column_correlations(RankingData.of_pairs(X, pairs, QID))
    assert preferred[0] == pytest.approx(gaps.sum() / np.linalg.norm(gaps))


@pytest.mark.long
def test_all_candidates_can_be_fitted_saved_and_exported(tmp_path):
    model = AutoRanker(random_state=0).fit(X, BENT_Y, qid=QID)
    assert model.skipped_ == ()
    assert {name.split()[0] for name in model.leaderboard_.names} == set(CANDIDATES) - {"logistic"}
    corank.save(model, tmp_path / "model")
    again = corank.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.summary() == model.summary()
    assert again.leaderboard_.to_frame().shape == (len(CANDIDATES) - 1, 6)


def test_ranks_inside_the_query_are_read_if_scales_differ_between_queries(tmp_path):
    """Each query has its own scale and offset, so that only the order of values inside a query means anything."""
    rng = np.random.default_rng(2)
    rows = X * np.exp(5 * rng.normal(size=(40, 1)))[QID] + 1e3 * rng.normal(size=(40, 1))[QID]
    few, plain = QID < 20, ["linear", "linear-strong", "gaussian"]
    model = AutoRanker(candidates=[*plain, "ranks"], random_state=0).fit(rows[few], Y[few], qid=QID[few])
    assert model.reads_ranks_.any()
    assert "pass qid and all rows of each query" in model.summary()
    ranks = np.concatenate([(rankdata(rows[q == QID], axis=0) - 0.5) / (q == QID).sum() for q in range(40)])
    seen = {True: ranks, False: rows}
    factors = model.weights_ / model.scales_
    parts = zip(factors, model.members_, model.reads_ranks_.tolist(), strict=True)
    np.testing.assert_allclose(
        model.predict(rows, QID), sum(c * member.predict(seen[reads]) for c, member, reads in parts), rtol=1e-9
    )
    without = AutoRanker(candidates=plain, random_state=0).fit(rows[few], Y[few], qid=QID[few])
    assert model.score(rows[~few], Y[~few], QID[~few]) > without.score(rows[~few], Y[~few], QID[~few]) + 0.1
    alone = [
        c * member.predict(rows)
        for c, member, reads in zip(factors, model.members_, model.reads_ranks_.tolist(), strict=True)
        if not reads
    ]
    with pytest.warns(UserWarning, match="members that see ranks inside the query are"):
        np.testing.assert_allclose(model.predict(rows), sum(alone), rtol=1e-9)
    corank.save(model, tmp_path / "model")
    np.testing.assert_array_equal(corank.load(tmp_path / "model").predict(rows, QID), model.predict(rows, QID))
    with pytest.warns(UserWarning, match="left out"):
        done = export_model(model, tmp_path / "model.json", "json", rows=rows, qid=QID)
    assert done.verification.unexplained_orders == 0
    explained = explain(model, rows, (0, 1), qid=QID)
    scores = model.predict(rows, QID)
    assert explained.contributions.sum() == pytest.approx(scores[0] - scores[1])


def test_exports_and_explanations_are_those_of_the_parts(tmp_path):
    done = export_model(ADDITIVE, tmp_path / "model.json", "json", rows=X, qid=QID)
    assert done.verification.unexplained_orders == 0
    explained = explain(ADDITIVE, X, (0, 1), qid=QID)
    scores = ADDITIVE.predict(X)
    assert explained.contributions.sum() == pytest.approx(scores[0] - scores[1])


def test_unknown_candidates_get_one_sentence():
    with pytest.raises(InputError, match="there is no candidate 'linaer'"):
        AutoRanker(candidates=["linaer"]).fit(X, Y, qid=QID)


@pytest.mark.parametrize("candidates", [["linear", "logistic"], ["linear", "gaussian"]])
def test_missing_values_are_filled_for_all_members(tmp_path, candidates):
    """Filling by hand with the means of the columns and an indicator column gives the same scores."""
    problem = make_ranking(20, 8, n_latent=2, features_per_view=2, random_state=0)
    X = problem.X.copy()
    X[::5, 1] = np.nan
    model = AutoRanker(candidates=candidates, random_state=0).fit(X, problem.y, qid=problem.qid)
    is_missing = np.isnan(X[:, 1])
    filled = np.column_stack([np.where(np.isnan(X), np.nanmean(X, axis=0), X), is_missing])
    plain = AutoRanker(candidates=candidates, random_state=0).fit(filled, problem.y, qid=problem.qid)
    np.testing.assert_allclose(model.predict(X), plain.predict(filled), rtol=1e-6, atol=1e-8)
    corank.save(model, tmp_path / "model")
    assert (corank.load(tmp_path / "model").predict(X) == model.predict(X)).all()
    with pytest.raises(InputError, match="X contains NaN"):
        AutoRanker(missing="error").fit(X, problem.y, qid=problem.qid)


def test_random_labels_of_rows_in_several_queries_have_the_value_of_chance():
    """A model that remembers rows must not look better than a random order, which has an expected nDCG@10 of 0.62."""
    rng = np.random.default_rng(0)
    items, grades = rng.normal(size=(100, 4)), rng.integers(0, 3, 100)
    chosen = np.concatenate([rng.choice(100, 12, replace=False) for _ in range(30)])
    model = AutoRanker(candidates=["gaussian-weakest"], random_state=0)
    model.fit(items[chosen], grades[chosen], qid=np.repeat(np.arange(30), 12))
    assert model.estimate_[0] < 0.75
    assert "whose rows were not learnt from in other queries either" in model.summary()
    every = np.tile(np.arange(12), 6)
    model.fit(items[every], grades[every], qid=np.repeat(np.arange(6), 12))
    assert np.isnan(model.estimate_).all()
    assert "so many rows occur in several queries" in model.summary()


@pytest.mark.parametrize("target", ["opensearch", "sql"])
def test_a_deployed_average_is_what_the_target_can_run(target, tmp_path):
    mixed = ["linear", "gaussian-weak", "trees"]
    free = AutoRanker(candidates=mixed, random_state=0).fit(X, BENT_Y, qid=QID)
    with pytest.raises(InputError, match=f"AutoRanker\\(deploy='{target}'\\)"):
        export_model(free, tmp_path / "free", target)
    model = AutoRanker(candidates=mixed, deploy=target, random_state=0).fit(X, BENT_Y, qid=QID)
    done = export_model(model, tmp_path / "model", target, rows=X)
    assert done.verification.unexplained_orders == 0
    assert f"Only what {target} can run" in model.summary()
    # bends need trees or kernels, and only trees can leave
    assert [type(member).__name__ for member in model.members_] == ["LambdaRank"]
    assert model.deploy_cost_.shape == (3,)


def test_what_no_engine_has_is_refused_before_learning():
    with pytest.raises(InputError, match="deploy is 'lucene'"):
        AutoRanker(deploy="lucene").fit(X, Y, qid=QID)
    with pytest.raises(InputError, match="prior"):
        AutoRanker(deploy="onnx").fit(X, Y, qid=QID, prior=X[:, 0])
    with pytest.raises(InputError, match="missing values"):
        AutoRanker(deploy="onnx").fit(np.where(X > 2.0, np.nan, X), Y, qid=QID)
    with pytest.raises(InputError, match="none of the candidates"):
        AutoRanker(candidates=["gaussian"], deploy="sql").fit(X, Y, qid=QID)


def test_members_that_are_alike_are_added_up():
    members = [corank.RankRLS(a).fit(X, Y, qid=QID) for a in (0.1, 1.0)]
    members += [corank.SPD("squared", random_state=0).fit(X, Y, qid=QID)]
    members += [corank.RankRLS(a, "gaussian", random_state=0).fit(X, Y, qid=QID) for a in (0.01, 0.1)]
    members += [corank.RankRLS(0.1, "laplacian").fit(X, Y, qid=QID), corank.ColumnMean([2], method=None).fit(X)]
    weights, scales = [0.1, 0.2, 0.1, 0.1, 0.2, 0.1, 0.2], [1.0, 2.0, 3.0, 0.5, 0.2, 0.3, 1.5]
    expected = sum(w / s * member.predict(X) for w, s, member in zip(weights, scales, members, strict=True))
    parts = zip(members, weights, scales, strict=True)
    merged = add_up_alike([Member(member, w, s, False) for member, w, s in parts])
    assert len(merged) == 3
    assert sum(member.weight for member in merged) == pytest.approx(1.0)
    found = sum(member.factor * member.ranker.predict(X) for member in merged)
    np.testing.assert_allclose(np.ptp(found - expected), 0.0, atol=1e-9)  # up to an intercept


def test_importances_of_linear_averages_are_those_of_weights():
    model = AutoRanker(candidates=["linear", "linear-strong"], random_state=0).fit(X[:100], Y[:100], qid=QID[:100])
    inside = X[:100] - np.array([X[:100][QID[:100] == q].mean(axis=0) for q in range(10)])[QID[:100]]
    expected = np.abs(model.coef_) * inside.std(axis=0)
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-9)
    bent = AutoRanker(candidates=["gaussian-weak", "trees"], random_state=0).fit(X, BENT_Y, qid=QID)
    assert set(np.argsort(-bent.feature_importances_)[:2]) == {0, 1}


def test_the_treatment_of_unjudged_rows_is_what_ranks_judged_rows_of_left_out_queries_best():
    """Rows that nobody judged are the lowest of column 0, which among the judged ones seems to be worth nothing."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 20)
    rows = rng.normal(size=(600, 4))
    grades = ((rows[:, 0] > 0.5) & (rows[:, 1] > -0.5)).astype(float)
    judged = np.concatenate([np.argsort(np.argsort(-rows[q == qid, 0])) < 8 for q in range(30)])
    y = np.where(judged, grades, np.nan)
    model = AutoRanker(candidates=["linear"], random_state=0).fit(rows, y, qid=qid)
    names = ("missing", "irrelevant", "pooled")
    each = {u: AutoRanker(candidates=["linear"], unjudged=u, random_state=0).fit(rows, y, qid=qid) for u in names}
    values = {name: float(other.estimate_[0]) for name, other in each.items()}
    chosen = [name for name in names if (each[name].predict(rows) == model.predict(rows)).all()]
    assert f"{values[chosen[0]]:.3f}" in model.unjudged_
    assert model.unjudged_ in model.summary()
    assert values[chosen[0]] == max(values.values()) or chosen[0] == "missing"
    # by hand: unjudged rows are irrelevant
    filled = corank.RankRLS(each["irrelevant"].members_[0].alpha).fit(rows, np.nan_to_num(y), qid=qid)
    scores = each["irrelevant"].predict(rows)
    np.testing.assert_allclose(np.corrcoef(filled.predict(rows), scores)[0, 1], 1.0)
    whole = AutoRanker(candidates=["linear"], random_state=0).fit(rows[judged], grades[judged], qid=qid[judged])
    assert not hasattr(whole, "unjudged_")
    alone = AutoRanker(candidates=["linear"], random_state=0).fit(rows, np.where(qid < 5, grades, np.nan), qid=qid)
    assert not hasattr(alone, "unjudged_")


def test_a_ranker_without_a_left_out_query_is_saved_and_loaded():
    """Equal rows in all queries leave no query out, so the means of the leaderboard are not known."""
    X, y, qid = np.tile(np.eye(4, 3), (6, 1)), np.tile(np.arange(4.0), 6), np.repeat(np.arange(6), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = AutoRanker(random_state=0).fit(X, y, qid=qid)
    assert np.isnan(ranker.leaderboard_.means).all()
    again = model_from_bytes(model_bytes(ranker), AutoRanker)
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))


@pytest.mark.filterwarnings("ignore:columns of categories:corank.errors.UsageWarning")
def test_trees_of_an_average_split_one_category_at_a_time(tmp_path):
    rng = np.random.default_rng(0)
    codes, qid = rng.integers(0, 8, 120), np.repeat(np.arange(12), 10)
    X = pd.DataFrame({"kind": pd.Categorical.from_codes(codes, list("abcdefgh"))})
    model = AutoRanker(candidates=["trees"], random_state=0).fit(X, codes % 3, qid=qid)
    assert model.members_[0].trees_.groups is None
    export_model(model, tmp_path / "model.json", to="json")
