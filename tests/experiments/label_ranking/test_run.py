from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from corank.models.labels import CalibratedLabelRanker, kendall_tau
from experiments.label_ranking import methods, run
from experiments.label_ranking.crossing import RANKS, SETS, TOPS, crossed
from experiments.label_ranking.methods import RANKING, VARIANTS, cut_methods, top_order
from experiments.label_ranking.sets import LabelData, make_top_lists, read_multilabel, read_rankings, read_sushi
from experiments.options import ExperimentOptions

MADE = make_top_lists(150, np.random.default_rng(3), n_features=3, n_labels=4)
SETS_MADE = LabelData(MADE.X, (MADE.y > 0).astype(float))
SLOPES = np.random.default_rng(1).normal(size=(3, 4))
ORDERS = LabelData(MADE.X, np.argsort(np.argsort(-MADE.X @ SLOPES, axis=1), axis=1) + 1.0)


def test_folds_are_measured_as_a_plain_loop_does(tmp_path):
    options = ExperimentOptions(tmp_path, quick=True)
    found = crossed(options, "made", lambda: ORDERS, {"batch": RANKING["batch"]}, RANKS)
    expected = []
    for train, test in KFold(3, shuffle=True, random_state=0).split(ORDERS.X):
        model = CalibratedLabelRanker(targets="ranks").fit(ORDERS.X[train], ORDERS.y[train])
        expected.append(kendall_tau(ORDERS.y[test], model.predict_ranking(ORDERS.X[test])).mean())
    assert found["batch"]["τ"] == pytest.approx(expected)

    def never():
        raise AssertionError("results are known already")

    again = crossed(options, "made", never, {"batch": RANKING["batch"]}, RANKS)
    assert again == found


@pytest.mark.parametrize("method", {**RANKING, **VARIANTS})
def test_every_method_of_rankings_gives_utilities(method):
    found = {**RANKING, **VARIANTS}[method](ORDERS.X[:120], ORDERS.y[:120], ORDERS.X[120:], 0)
    assert found.shape == (30, 4)
    if method != "constant":
        assert kendall_tau(ORDERS.y[120:], -found).mean() > 0.2


def test_the_kernel_perceptron_is_left_out_for_many_rows(monkeypatch):
    monkeypatch.setattr(methods, "MAX_KERNEL_ROWS", 10)
    left_out = {name for name, learn in VARIANTS.items() if learn(ORDERS.X, ORDERS.y, ORDERS.X, 0) is None}
    assert left_out == {"online, kernel"}


@pytest.mark.long
@pytest.mark.parametrize(("targets", "data", "measures"), [("relevant", SETS_MADE, SETS), ("top", MADE, TOPS)])
def test_every_cut_beats_none(tmp_path, targets, data, measures):
    folds = crossed(ExperimentOptions(tmp_path, quick=True), "made", lambda: data, cut_methods(targets), measures)
    first = next(iter(measures))
    means = {method: np.mean(values[first]) for method, values in folds.items()}
    assert all(
        means[method] < means["constant"] for method in means if method not in ("constant", "calibrated, lowest")
    )
    assert means["calibrated"] < means["uncalibrated, one number"]


def test_the_first_labels_are_those_above_zero():
    u = np.array([[3.0, -1.0, 2.0], [0.5, 0.25, 1.0]])
    for k in range(4):
        found = methods._first(u, k)
        assert ((found > 0).sum(axis=1) == k).all()
        np.testing.assert_array_equal(np.argsort(found, axis=1), np.argsort(u, axis=1))
    np.testing.assert_array_equal(top_order(np.array([[3.0, -1.0, 2.0, 0.0]])), [[1, 5, 2, 5]])


@pytest.mark.usefixtures("real_data")
def test_sets_are_read_as_their_readme_says():
    iris = read_rankings("iris")
    assert iris.X.shape == (150, 4)
    assert (np.sort(iris.y, axis=1) == [1, 2, 3]).all()
    music = read_multilabel("Music")
    assert (music.X.shape, music.y.shape) == ((592, 71), (592, 6))
    assert music.y.sum() / 592 == pytest.approx(1.870, abs=1e-3)
    sushi = read_sushi()
    assert (sushi.X.shape, sushi.y.shape) == ((5000, 6), (5000, 6))
    # 2,8,10,3,4,1,5,9,7,6: of the last six, ranks 4, 1 and 5 are among the first five
    assert sushi.y[0].tolist() == [2, 1, 3, 0, 0, 0]
    assert sushi.X[0].tolist() == [1, 1, 1, 1, -1, -1]


@pytest.mark.long
def test_the_report_holds_rankings_sets_and_lists(tmp_path, monkeypatch):
    for name, data in (("read_rankings", ORDERS), ("read_multilabel", SETS_MADE)):
        monkeypatch.setattr(run, name, lambda name, data=data: data)
    monkeypatch.setattr(run, "read_sushi", lambda: MADE)
    monkeypatch.setattr(run, "N_MADE", 60)
    linear = dict.fromkeys({**RANKING, **VARIANTS}, RANKING["ridge"])
    monkeypatch.setattr(run, "RANKING", {name: linear[name] for name in RANKING} | {"constant": RANKING["constant"]})
    monkeypatch.setattr(run, "VARIANTS", {name: linear[name] for name in VARIANTS})
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    assert [table.title.split(":")[0] for table in report.tables] == [
        "Kendall's τ of rankings, higher is better", "Kendall's τ of variants, higher is better", "Music", "Sushi",
        "Made, with a known cut",
    ]  # fmt: skip
    constant = [
        kendall_tau(ORDERS.y[test], np.tile(ORDERS.y[train].mean(axis=0), (len(test), 1))).mean()
        for train, test in KFold(3, shuffle=True, random_state=0).split(ORDERS.X)
    ]
    row = report.tables[0].rows[0]
    assert (row[0], row[1], row[-1]) == ("glass", pytest.approx(np.mean(constant)), 0.0)
    assert len(report.findings) == 26
