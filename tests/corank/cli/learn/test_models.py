from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from corank.base.transformers import QueryScaler
from corank.cli.learn.models import (
    LOOPS,
    build_ranker,
    find_ranker,
    kebab_case,
    parse_loop,
    parse_views,
    preferred_layout,
    rankers,
)
from corank.data.routing import predict_with_qid
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import CRR, LCRA, SPD
from corank.models.rls import RankRLS


def test_every_listed_model_is_found_under_its_name_and_can_be_made():
    names = rankers()
    assert {"spd", "crr", "lcra", "rankrls", "co-rankrls", "ranking-pursuit"} <= set(names)
    assert {"lambdarank", "preference-gp", "ordinal-gp", "online-label-ranker", "ranksvm"} <= set(names)
    assert "ranker" not in names
    for name in names:
        kind = find_ranker(name)
        assert kebab_case(kind.__name__) == name
        kind()


@pytest.mark.parametrize("name", ["CoRankRLS", "co-rank-rls", "co_rankrls", "CO-RANKRLS"])
def test_case_and_hyphens_do_not_matter(name):
    assert find_ranker(name).__name__ == "CoRankRLS"


def test_an_unknown_model_lists_the_known_ones_and_guesses():
    with pytest.raises(InputError, match=r"no model 'spdd'; did you mean 'spd'\?.*lcra"):
        find_ranker("spdd")
    with pytest.raises(InputError, match="no model 'evaluate'"):
        find_ranker("evaluate")


def test_options_and_assignments_reach_the_model():
    options = {"alpha": ("--lambda", 0.5), "loss": ("--loss", None)}
    model = build_ranker(SPD, options, ["loss=squared", "average=true", "tol=null", "eta0=1e-3"])
    assert (model.alpha, model.loss, model.average, model.tol, model.eta0) == (0.5, "squared", True, None, 1e-3)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(model)


def test_an_option_the_model_does_not_have_is_refused():
    with pytest.raises(InputError, match="--mix sets the parameter 'mix'"):
        build_ranker(SPD, {"mix": ("--mix", 0.5)}, [])


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("alhpa=1", r"CRR has no parameter 'alhpa'; did you mean 'alpha'\? Choose one of .*mix"),
        ("alpha", "has no '='; write name=value"),
    ],
)
def test_a_wrong_assignment_is_refused(assignment, message):
    with pytest.raises(InputError, match=message):
        build_ranker(CRR, {}, [assignment])


def test_views_are_a_number_or_columns():
    assert parse_views("3") == 3
    assert parse_views("1-2, 5/3,4") == [[0, 1, 4], [2, 3]]
    assert build_ranker(LCRA, {"views": ("--views", parse_views("1/2"))}, []).views == [[0], [1]]


@pytest.mark.parametrize("text", ["0-3/4", "3-1", "1//2", "a/ ", "1,,2"])
def test_wrong_views_are_refused(text):
    with pytest.raises(InputError, match="write a number of views, or names of"):
        parse_views(text)


def test_loops_name_weights_of_queries_and_draws():
    assert {weight for weight, _ in LOOPS.values()} == {"pairs", "equal"}
    assert {draw for _, draw in LOOPS.values()} == {"pairs", "rows"}
    assert parse_loop(None) == (None, None)


def test_an_unknown_loop_gets_the_nearest():
    with pytest.raises(InputError, match="--loop 'roww' is unknown"):
        parse_loop("roww")


def test_query_ids_reach_the_steps_that_ask_for_them():
    made = make_ranking(8, 6, random_state=0)
    scaled = QueryScaler().fit_transform(made.X, qid=made.qid)
    ranker = RankRLS(kernel="linear", alpha=1.0).fit(scaled, made.y, qid=made.qid)
    steps = Pipeline([("scale", QueryScaler().fit(made.X)), ("rank", ranker)])
    np.testing.assert_array_equal(predict_with_qid(steps, made.X, made.qid), ranker.predict(scaled))
    # nobody asks for them here
    np.testing.assert_array_equal(predict_with_qid(ranker, made.X, made.qid), ranker.predict(made.X))
    plain = Pipeline([("scale", StandardScaler().fit(made.X)), ("rank", ranker)])
    np.testing.assert_array_equal(predict_with_qid(plain, made.X, made.qid), plain.predict(made.X))
    assert (preferred_layout(steps), preferred_layout(ranker)) == ("dense", "auto")
