from __future__ import annotations

import numpy as np
import pytest

from corank.data.synthetic import make_ranking
from experiments.lcra import run
from experiments.lcra.problems import ProblemSource, SplitRepeat
from experiments.options import ExperimentOptions


def small(rng):
    made = make_ranking(40, 10, random_state=int(rng.integers(1000)))
    test = made.qid >= 28
    return SplitRepeat(made.X, made.y, made.qid, np.flatnonzero(~test), np.flatnonzero(test), list(made.views))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    few = ProblemSource("few users", "one draw of several", "disagreement", small, least=0.1, n_draws=2)
    listed = {"MQ2008": ProblemSource("MQ2008", "stands in", "AP", small), "few users": few}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "problems", lambda: listed)
        patch.setattr(run, "N_STEPS", 2000)
        return run.run(ExperimentOptions(tmp_path_factory.mktemp("lcra"), quick=True, repeats=2))


@pytest.mark.long
def test_the_report_has_a_row_per_method_and_per_problem_and_fraction(report):
    listed, paper, gains = report.tables
    assert [row[0] for row in listed.rows] == ["MQ2008", "few users"]
    assert [row[0] for row in paper.rows] == list(run.METHODS)
    assert [(row[0], row[2]) for row in gains.rows] == [
        ("MQ2008", "2%"), ("MQ2008", "10%"), ("MQ2008", "20%"), ("few users", "10%"), ("few users", "20%"),
    ]  # fmt: skip
    assert report.plots[0].read_bytes().startswith(b"\x89PNG")


def test_a_bound_is_no_worse_than_one_choice_for_all_repeats(report):
    for row in report.tables[2].rows:
        lower_is_better = row[1] == "disagreement"
        bounds, means = np.array(row[8:11]), np.array(row[3:6])
        # a choice per repeat may beat one choice for all, but not by much on a smooth grid
        assert (bounds <= means + 0.05 if lower_is_better else bounds >= means - 0.05).all()


def test_a_lower_error_is_a_gain():
    cells = [
        {"SPD": {"chosen": 0, "values": [0.3]}, "SPD-MV": {"chosen": 0, "values": [0.4]},
         "LCRA": {"chosen": 1, "values": [0.9, 0.25]}}
    ]  # fmt: skip
    error = ProblemSource("e", "", "disagreement", small)
    precision = ProblemSource("p", "", "AP", small)
    np.testing.assert_allclose(run._gain(error, cells), [0.05])
    np.testing.assert_allclose(run._gain(precision, cells), [-0.15])
