from __future__ import annotations

import numpy as np
import pytest

from corank import QuerySearchCV, RankingPursuit, RankRLS, RankSVM, make_ranking
from corank.base import PathDisplay
from corank.errors import InputError

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def made():
    pyplot.switch_backend("agg")
    yield make_ranking(16, 8, random_state=0)
    pyplot.close("all")


def test_the_path_of_alpha_is_that_of_leave_query_out(made):
    model = RankRLS(alphas=[100.0, 0.1, 1.0], metric="AP").fit(made.X, made.y > 1, qid=made.qid)
    figure, ax = pyplot.subplots()
    display = PathDisplay.from_estimator(model, ax=ax)
    assert (display.ax_, display.figure_) == (ax, figure)
    np.testing.assert_array_equal(display.line_.get_xdata(), [0.1, 1.0, 100.0])
    np.testing.assert_array_equal(display.line_.get_ydata(), model.loo_scores_[[1, 2, 0]])
    assert ax.lines[1].get_xdata() == [model.alpha_]
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "alpha", "held-out AP")


def test_the_path_of_a_pursuit_is_its_held_out_error(made):
    model = RankingPursuit(early_stopping=True, random_state=0).fit(made.X, made.y, qid=made.qid)
    display = PathDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.means, model.validation_errors_)
    assert display.chosen == len(model.terms_)
    assert display.ax_.get_xscale() == "linear"


def test_the_path_of_a_search_names_its_parameter(made):
    search = QuerySearchCV(RankSVM(), {"alpha": [0.1, 10.0]}, metric="kendall", cv=2)
    display = PathDisplay.from_estimator(search.fit(made.X, made.y, qid=made.qid))
    np.testing.assert_allclose(display.means, search.cv_results_["mean_test_score"])
    assert display.chosen == search.best_params_["alpha"]
    assert display.plot(linestyle=":").line_.get_linestyle() == ":"


def test_a_model_without_a_path_is_refused(made):
    with pytest.raises(InputError, match="RankRLS has no tuning path; fit a ranker with alphas"):
        PathDisplay.from_estimator(RankRLS(alpha=1.0).fit(made.X, made.y, qid=made.qid))
