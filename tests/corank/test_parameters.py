from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank.parameters import (
    boolean,
    check_values,
    having,
    integer,
    items,
    kernel,
    listing,
    n_jobs,
    none,
    number,
    one_of,
    seed,
    text,
)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (number(0), [0, 0.5, np.float32(2), 10**9], [-1e-9, np.nan, np.inf, "1", None, True, np.True_]),
        (number(0, 1, inside="()"), [0.5], [0, 1, 1.5]),
        (number(0, 1, inside="[)"), [0, 0.99], [1, -1]),
        (number(0, 1, inside="(]"), [1, 0.01], [0, 2]),
        (integer(1), [1, np.int32(4)], [0, 1.0, True, "1", None]),
        (one_of("a", "b"), ["a", "b"], ["c", None, 1]),
        (number(0) | none, [None, 3.0], [-1.0, "x"]),
        (boolean, [True, np.False_], [1, 0, None]),
        (text, ["linear"], [1]),
        (listing, [[1], (1, 2), np.arange(3)], ["abc", [[1]], 3]),
        (items, [[1], ()], [np.arange(3), 3]),
        (kernel, ["rbf", len], [3, None, int]),
        (seed, [None, 0, 7, np.random.RandomState(0)], [-1, 0.5, "x", np.random.default_rng(0), True]),
        (n_jobs, [None, -1, 2], [0, 1.5]),
        (having("a ranker", "fit", "predict"), [], [3, "fit"]),
    ],
)
def test_a_rule_allows_what_it_says(rule, good, bad):
    assert all(rule.allows(value) for value in good)
    assert not any(rule.allows(value) for value in bad)


def test_a_broken_rule_is_one_sentence():
    with pytest.raises(InputError, match=r"^alpha is -1; pass a number of at least 0"):
        check_values({"loss": "hinge", "alpha": -1}, {"loss": one_of("hinge"), "alpha": number(0) | none})
    with pytest.raises(InputError, match=r"^share is 2; pass a number above 0 and below 1\.$"):
        check_values({"share": 2}, {"share": number(0, 1, inside="()")})
