from __future__ import annotations

import numpy as np
import pytest

from corank.clicks import CLICK_MODELS, CascadeClicks, PositionClicks
from corank.clicks.click_models import TABLES, TabulatedClicks, as_click_model, is_compiled
from corank.errors import InputError


def test_tables_are_those_of_the_papers():
    assert TABLES[3] == {
        "perfect": ((0, 0.5, 1), (0, 0, 0)),
        "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        "almost_random": ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
    }
    assert TABLES[5]["perfect"] == ((0, 0.2, 0.4, 0.8, 1), (0,) * 5)
    assert TABLES[5]["navigational"] == ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9))
    assert TABLES[5]["informational"] == ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5))


def rates(user, grades, n=20_000):
    rng = np.random.default_rng(0)
    return np.mean([user.clicks(grades, rng) for _ in range(n)], axis=0)


def test_users_who_stop_after_any_row_examine_less():
    """Two rows of grade 0: the second is reached unless the first ended the reading."""
    after_click = rates(CascadeClicks("navigational", stop_after="click"), [0, 0])
    after_any = rates(CascadeClicks("navigational", stop_after="any"), [0, 0])
    np.testing.assert_allclose(after_click, [0.05, 0.05 * (1 - 0.05 * 0.2)], atol=0.006)
    np.testing.assert_allclose(after_any, [0.05, 0.05 * (1 - 0.2)], atol=0.006)


def test_attention_fades_with_the_rank():
    np.testing.assert_allclose(rates(PositionClicks(2.0), [2, 2, 2]), [1.0, 1 / 4, 1 / 9], atol=0.015)
    assert PositionClicks(0.0).clicks([2, 2, 0], np.random.default_rng(0)).tolist() == [True, True, False]


def test_own_tables():
    user = CascadeClicks(click=[0.0, 1.0], stop=[0.0, 1.0])
    assert user.grades == 2
    assert user.clicks([0, 1, 1], np.random.default_rng(0)).tolist() == [False, True, False]
    assert PositionClicks(0.0, click=[1.0, 0.0]).clicks([0, 1], np.random.default_rng(0)).tolist() == [True, False]
    assert CascadeClicks() == CascadeClicks("perfect", 3, "click")


def test_a_name_gives_the_model_for_the_grades_of_the_data():
    assert as_click_model("navigational", 2) == CascadeClicks("navigational", 3)
    assert as_click_model("navigational", 4) == CascadeClicks("navigational", 5)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: CascadeClicks("navigation"), "unknown kind of user 'navigation'; did you mean 'navigational'"),
        (lambda: CascadeClicks(grades=4), "grades is 4, but there are tables for 3 and 5; pass click and stop"),
        (lambda: CascadeClicks(stop_after="never"), "stop_after is 'never'; pass 'click' or 'any'"),
        (lambda: CascadeClicks(click=[0.1]), "pass both or neither"),
        (lambda: CascadeClicks(click=[0.1, 2.0], stop=[0, 0]), "a probability between 0 and 1 for each grade"),
        (lambda: CascadeClicks(click=[0.1], stop=[0, 0]), "a probability between 0 and 1 for each grade"),
        (lambda: PositionClicks(-1.0), "eta is -1.0; pass a finite number of at least 0"),
        (lambda: as_click_model("nobody", 2), "unknown click model 'nobody'"),
        (lambda: as_click_model(3, 2), r"user is 3; pass one of .*, or an object with a method clicks\(grades, rng\)"),
        (lambda: CascadeClicks().clicks([0, 3], np.random.default_rng(0)), "the grade of row 1 is 3, but .* 0 to 2"),
        (lambda: CascadeClicks().clicks([0, np.nan], np.random.default_rng(0)), "the grade of row 1 is nan"),
        (lambda: CascadeClicks().clicks([0.5], np.random.default_rng(0)), "the grade of row 0 is 0.5"),
    ],
)
def test_bad_users_get_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_an_empty_list_has_no_clicks():
    assert CascadeClicks().clicks([], np.random.default_rng(0)).tolist() == []


@pytest.mark.parametrize("name", CLICK_MODELS)
@pytest.mark.parametrize("grades", [3, 5])
def test_every_registered_model_clicks_on_lists_of_its_grades(name, grades):
    model = CLICK_MODELS[name](grades)
    clicks = model.clicks(np.arange(grades), np.random.default_rng(0))
    assert clicks.shape == (grades,)
    assert clicks.dtype == bool
    assert is_compiled(model) == isinstance(model, TabulatedClicks)
