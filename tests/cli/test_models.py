from __future__ import annotations

import pytest
from sklearn.utils.validation import check_is_fitted

from corank.cli.models import LOOPS, build, find_ranker, kebab, parse_views, rankers, sampling_of
from corank.descent import CRR, LCRA, SPD
from corank.errors import InputError


def test_every_listed_model_is_found_under_its_name_and_can_be_made():
    names = rankers()
    assert {"spd", "crr", "lcra", "rankrls", "co-rankrls", "ranking-pursuit"} <= set(names)
    assert "ranker" not in names
    for name in names:
        kind = find_ranker(name)
        assert kebab(kind.__name__) == name
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
    options = {"--lambda": ("alpha", 0.5), "--loss": ("loss", None)}
    model = build(SPD, options, ["loss=squared", "average=true", "tol=null", "eta0=1e-3"])
    assert (model.alpha, model.loss, model.average, model.tol, model.eta0) == (0.5, "squared", True, None, 1e-3)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(model)


def test_an_option_the_model_does_not_have_is_refused():
    with pytest.raises(InputError, match="--mix sets 'mix', which SPD does not have; it has alpha"):
        build(SPD, {"--mix": ("mix", 0.5)}, [])


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("alhpa=1", r"CRR has no parameter 'alhpa'; did you mean 'alpha'\? known are .*mix"),
        ("alpha", "has no '='; write name=value"),
    ],
)
def test_a_wrong_assignment_is_refused(assignment, message):
    with pytest.raises(InputError, match=message):
        build(CRR, {}, [assignment])


def test_views_are_a_number_or_columns():
    assert parse_views("3") == 3
    assert parse_views("1-2, 5/3,4") == [[0, 1, 4], [2, 3]]
    assert build(LCRA, {"--views": ("views", parse_views("1/2"))}, []).views == [[0], [1]]


@pytest.mark.parametrize("text", ["0-3/4", "3-1", "a/b", "1//2", "-2", "1.5"])
def test_wrong_views_are_refused(text):
    with pytest.raises(InputError, match="write a number of views, or feature ids from 1"):
        parse_views(text)


def test_every_loop_is_a_law_that_the_estimators_know():
    laws = {option for constraint in SPD._parameter_constraints["sampling"] for option in constraint.options}
    assert set(LOOPS.values()) == laws
    assert sampling_of("query-norm-rank") == "query"
    with pytest.raises(InputError, match="'stochastic' is unknown"):
        sampling_of("stochastic")
