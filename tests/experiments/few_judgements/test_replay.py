from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from corank import RankRLS, evaluate, make_ranking, suggest
from corank.errors import InputError
from experiments.few_judgements.replay import JudgingCurve, _halves, judging_curve

DATA = make_ranking(6, 20, random_state=0)
MODEL = RankRLS(0.1)


def test_every_step_is_fit_measure_suggest_judge():
    """The replay is repeated by hand from the rows that a strategy received first."""
    starts = []

    def first(pool):
        starts.append(~np.isnan(pool.y))
        return -np.arange(len(pool.y), dtype=float)

    one = DATA.qid == DATA.qid[0]
    X, y = DATA.X[one], DATA.y[one]
    curve = judging_curve(
        MODEL,
        X,
        y,
        strategy=[first, "top"],
        start=3,
        steps=3,
        batch=2,
        metric="nDCG",
        test="all",
        n_repeats=2,
        similar=2,
        random_state=0,
    )
    assert curve.strategies == ("first", "top")
    assert curve.n_judged.tolist() == [3, 5, 7, 9]
    assert [judged.sum() for judged in starts] == [3, 5, 7] * 2
    for repeat in range(2):
        begun = starts[3 * repeat]
        assert len(set(y[begun])) > 1
        for at, strategy in enumerate(curve.strategies):
            now = np.where(begun, y, np.nan)
            for step in range(4):
                model = clone(MODEL).fit(X, now)
                value = evaluate(y, model.predict(X), metrics="nDCG")["nDCG"].mean
                assert curve.values[at, repeat, step] == pytest.approx(value, abs=1e-12)
                rows = (
                    np.flatnonzero(np.isnan(now))[:2]
                    if strategy == "first"
                    else suggest(model, X, now, n=2, strategy=strategy, similar=2)
                )
                now[rows] = y[rows]
    np.testing.assert_array_equal(curve.values[0, :, 0], curve.values[1, :, 0])


def test_all_judged_in_the_end_is_the_supervised_model():
    y = DATA.y.copy()
    y[::7] = np.nan
    names = np.array([f"q{q}" for q in DATA.qid])
    kept = ~np.isnan(y)
    curve = judging_curve(
        MODEL, DATA.X, y, names, strategy=("uncertain", "random"), start=2, steps=3, batch=60, n_repeats=2,
        metric="nDCG@5", test="all", random_state=1,
    )  # fmt: skip
    assert curve.n_judged.tolist() == [12, 72, kept.sum(), kept.sum()]
    full = MODEL.fit(DATA.X, y, qid=names)
    want = evaluate(y, full.predict(DATA.X), names, "nDCG@5")["nDCG@5"].mean
    np.testing.assert_allclose(curve.values[:, :, -1], want)
    assert curve.measured_on == "all rows"


def test_the_default_measures_on_rows_that_no_strategy_may_judge():
    """The strategy judges all rows that it may; the rest of the graded rows are the measured ones."""
    fitted = []

    class Spy(RankRLS):
        def fit(self, X, y, **named):
            fitted.append(np.array(y))
            return super().fit(X, y, **named)

    one = DATA.qid == DATA.qid[0]
    X, y = DATA.X[one], DATA.y[one].copy()
    y[3] = np.nan
    curve = judging_curve(
        Spy(0.1), X, y, strategy="top", start=3, steps=5, batch=3, metric="nDCG", n_repeats=3, random_state=0
    )
    assert curve.measured_on == "unjudged rows"
    for repeat in range(3):
        known = fitted[6 * repeat : 6 * repeat + 6]
        held_out = np.isnan(known[-1]) & ~np.isnan(y)
        assert held_out.sum() in (9, 10)
        assert len(set(y[held_out])) > 1
        for step in range(6):
            assert np.count_nonzero(~np.isnan(known[step])) == min(3 + 3 * step, 19 - held_out.sum())
            scores = clone(MODEL).fit(X, known[step]).predict(X)
            value = evaluate(y[held_out], scores[held_out], metrics="nDCG")["nDCG"].mean
            assert curve.values[0, repeat, step] == pytest.approx(value, abs=1e-12)


def test_each_query_is_halved_and_all_strategies_are_measured_on_the_same_rows():
    grades, qid = np.array([0, 1, 1, 0, 0, 2, 2, 0, 1, 1.0, np.nan]), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    for seed in range(20):
        to_judge, held_out = _halves(grades, qid, np.random.default_rng(seed))
        assert sorted([*to_judge, *held_out]) == list(range(10))
        for query, size in ((0, 3), (1, 4), (2, 3)):
            assert np.count_nonzero(qid[held_out] == query) in (size // 2, size - size // 2)
        assert {2.0, 0.0} == set(grades[held_out][qid[held_out] == 1])
    draws = {tuple(_halves(grades, qid, np.random.default_rng(seed))[1]) for seed in range(200)}
    assert {row for draw in draws for row in draw} == set(range(10))


def test_it_is_measured_on_other_rows_and_repeats_with_its_seed():
    train = np.isin(DATA.qid, np.unique(DATA.qid)[:4])
    test = (DATA.X[~train], DATA.y[~train], DATA.qid[~train])
    curves = [
        judging_curve(
            MODEL, DATA.X[train], DATA.y[train], DATA.qid[train], strategy="random", steps=1, metric="nDCG", test=test,
            n_repeats=2, random_state=seed,
        )
        for seed in (0, 0, 1)
    ]  # fmt: skip
    np.testing.assert_array_equal(curves[0].values, curves[1].values)
    assert (curves[0].values != curves[2].values).any()
    assert curves[0].measured_on == "test rows"


def test_differences_are_paired_and_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    values = np.random.default_rng(0).random((2, 4, 3))
    curve = JudgingCurve(("top", "random"), np.array([5, 15, 25]), values, "AP", "all rows")
    mean, error = curve.gain("top", "random")
    gaps = values[0] - values[1]
    np.testing.assert_allclose(mean, [np.mean(gaps[:, j]) for j in range(3)])
    np.testing.assert_allclose(error, [np.sqrt(np.var(gaps[:, j]) / 3) for j in range(3)])
    np.testing.assert_allclose(curve.error[0], np.sqrt(values[0].var(axis=0) / 3))
    ax = curve.plot()
    assert ax is curve.plot(ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curve.mean[0])
    assert ax.get_ylabel() == "AP on all rows"
    assert f"top     {curve.mean[0, 0]:.4f}" in repr(curve)
    alone = JudgingCurve(("top",), np.array([5]), values[:1, :1, :1], "AP", "all rows")
    assert np.isnan(alone.error).all()
    alone.plot(ax)
    with pytest.raises(InputError, match="'tpo' is not a strategy of this curve"):
        curve.gain("tpo", "random")


def test_bad_input():
    with pytest.raises(InputError, match="start is 1; pass a whole number of at least 2"):
        judging_curve(MODEL, DATA.X, DATA.y, DATA.qid, start=1)
    with pytest.raises(InputError, match="strategy lists top, top"):
        judging_curve(MODEL, DATA.X, DATA.y, DATA.qid, strategy=("top", "top"))
    with pytest.raises(InputError, match="strategy is 'best'"):
        judging_curve(MODEL, DATA.X, DATA.y, DATA.qid, strategy="best")
    with pytest.raises(InputError, match="test is 'pool'"):
        judging_curve(MODEL, DATA.X, DATA.y, DATA.qid, test="pool")
    with pytest.raises(InputError, match="never judged has no query with two"):
        judging_curve(MODEL, DATA.X[:4], [0, 0, 0, 0], start=2)


def test_a_start_that_judges_everything_is_refused():
    data = make_ranking(4, 10, random_state=0)
    with pytest.raises(InputError, match="start=5 rows of each query are all 20 rows"):
        judging_curve(RankRLS(), data.X, data.y, data.qid, steps=1, random_state=0)
