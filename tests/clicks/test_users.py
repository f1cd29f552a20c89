from __future__ import annotations

import numpy as np
import pytest

from corank.clicks import CascadeClicks, PositionClicks
from corank.clicks.click_models import TABLES, as_user
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


def test_who_stops_after_any_row_reads_less():
    """Two rows of grade 0: the second is reached unless the first ended the reading."""
    after_click = rates(CascadeClicks("navigational", stop_after="click"), [0, 0])
    after_any = rates(CascadeClicks("navigational", stop_after="any"), [0, 0])
    np.testing.assert_allclose(after_click, [0.05, 0.05 * (1 - 0.05 * 0.2)], atol=0.006)
    np.testing.assert_allclose(after_any, [0.05, 0.05 * (1 - 0.2)], atol=0.006)


def test_attention_fades_with_the_rank():
    np.testing.assert_allclose(rates(PositionClicks(2.0), [2, 2, 2]), [1.0, 1 / 4, 1 / 9], atol=0.015)
    assert PositionClicks(0.0).clicks([2, 2, 0], np.random.default_rng(0)).tolist() == [True, True, False]


def test_tables_of_ones_own():
    user = CascadeClicks(click=[0.0, 1.0], stop=[0.0, 1.0])
    assert user.grades == 2
    assert user.clicks([0, 1, 1], np.random.default_rng(0)).tolist() == [False, True, False]
    assert PositionClicks(0.0, click=[1.0, 0.0]).clicks([0, 1], np.random.default_rng(0)).tolist() == [True, False]
    assert CascadeClicks() == CascadeClicks("perfect", 3, "click")


def test_a_name_stands_for_a_user_of_as_many_grades_as_there_are():
    assert as_user("navigational", 2) == CascadeClicks("navigational", 3)
    assert as_user("navigational", 4) == CascadeClicks("navigational", 5)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: CascadeClicks("navigation"), "no user 'navigation'; did you mean 'navigational'"),
        (lambda: CascadeClicks(grades=4), "grades is 4, but there are tables for 3 and 5; pass click and stop"),
        (lambda: CascadeClicks(stop_after="never"), "stop_after is 'never'; pass 'click' or 'any'"),
        (lambda: CascadeClicks(click=[0.1]), "pass both, or neither"),
        (lambda: CascadeClicks(click=[0.1, 2.0], stop=[0, 0]), "a chance between 0 and 1 for each grade"),
        (lambda: CascadeClicks(click=[0.1], stop=[0, 0]), "a chance between 0 and 1 for each grade"),
        (lambda: PositionClicks(-1.0), "eta is -1.0; pass a finite number of at least 0"),
        (lambda: as_user("nobody", 2), "no user 'nobody'"),
        (lambda: as_user(3, 2), "user is 3; pass CascadeClicks"),
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
