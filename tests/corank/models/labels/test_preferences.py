from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import rankdata
from sklearn.model_selection import KFold

from corank.errors import InputError
from corank.models.labels import LabelPreferences, kendall_distance
from helpers.explicit_labels import constraints


def listed(preferences, i, **how):
    examples, winners, losers = preferences.constraints(**how)
    pairs = list(zip(winners[examples == i].tolist(), losers[examples == i].tolist(), strict=True))
    assert len(set(pairs)) == len(pairs), "a constraint stands twice"
    return set(pairs)


@st.composite
def orders(draw):
    """A calibrated order with ties and labels that were not ranked, as positions and sides."""
    d = draw(st.integers(1, 6))
    positions = np.array(draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, np.nan]), min_size=d, max_size=d)))
    cut = draw(st.sampled_from([0.5, 1.5, 2.5, 3.5, 4.5]))
    sides = np.where(np.isnan(positions), draw(st.sampled_from([0.0, 1.0, np.nan])), positions < cut)
    hidden = draw(st.lists(st.booleans(), min_size=d, max_size=d))
    return positions, np.where(hidden, np.nan, sides)


@given(
    st.lists(orders(), min_size=1, max_size=1), st.sampled_from(["all", "adjacent"]), st.sampled_from(["all", "lowest"])
)
def test_constraints_are_those_of_the_definition(drawn, conversion, above_zero):
    ((positions, relevant),) = drawn
    made = LabelPreferences.from_ranks([positions], relevant=[relevant])
    how = {"conversion": conversion, "above_zero": above_zero}
    known = np.where(np.isnan(positions), -1, 10 - np.nan_to_num(positions, nan=0.0))
    expected = constraints(known, made.sides[0], (), **how)
    assert listed(made, 0, **how) == expected
    assert made.counts(**how).tolist() == [len(expected)]


def test_the_first_last_swap_of_the_paper_costs_0_4_or_0_6():
    truth = LabelPreferences.from_ranks([[1, 2, 3, 4, 5, 6]])
    predicted = np.array([[6, 2, 3, 4, 5, 1]])
    shares = {}
    for conversion in ("adjacent", "all"):
        _, winners, losers = truth.constraints(conversion)
        shares[conversion] = float(np.mean(predicted[0, winners] >= predicted[0, losers]))
    assert shares == {"adjacent": 0.4, "all": 0.6}
    # all pairs count what Kendall's tau counts
    assert kendall_distance(truth.ranks(), predicted).tolist() == [0.6]


@pytest.mark.parametrize("d", [3, 4, 7, 12])
def test_the_ratio_of_the_two_shares_is_that_of_the_paper(d):
    truth = LabelPreferences.from_ranks([np.arange(1, d + 1)])
    u = -np.arange(d, dtype=float)
    u[[0, -1]] = u[[-1, 0]]
    shares = [np.mean(u[w] <= u[s]) for _, w, s in (truth.constraints("all"), truth.constraints("adjacent"))]
    assert shares[0] / shares[1] == pytest.approx(2 - 3 / d)


def test_the_lowest_relevant_label_alone_is_asked_to_be_above_the_zero_point():
    top = LabelPreferences.from_lists([[4, 1, 2]], n_labels=5)
    both = {how: listed(top, 0, conversion="adjacent", above_zero=how) for how in ("all", "lowest")}
    assert both["all"] - both["lowest"] == {(4, 5), (1, 5)}
    assert (2, 5) in both["lowest"]
    # a relevant label that is missed costs less with it, except for the lowest
    for missed, shares in ((4, (False, True)), (2, (True, True))):
        u = np.array([-1.0, 2.0, 1.0, -1.0, 3.0, 0.0])
        u[missed] = -0.5
        costs = [np.sum([u[r] <= u[s] for r, s in both[how]]) for how in ("lowest", "all")]
        assert (costs[0] == costs[1]) == shares[0]
        assert costs[0] <= costs[1]


def test_forms_of_the_same_lists_agree():
    lists = [[2, 0], [], [0, 1, 2], [1]]
    top = LabelPreferences.from_lists(lists, 3)
    assert [row.tolist() for row in top.lists()] == lists
    positions = [[2, 0, 1], [0, 0, 0], [1, 2, 3], [np.nan, 1, np.nan]]
    again = LabelPreferences.from_top(positions)
    np.testing.assert_array_equal(top.levels, again.levels)
    np.testing.assert_array_equal(top.sides, again.sides)
    expected = [rankdata(np.where(np.nan_to_num(row) == 0, 9, row)) for row in positions]
    np.testing.assert_array_equal(top.ranks(), expected)
    sets = LabelPreferences.from_sets(lists, n_labels=3)
    np.testing.assert_array_equal(sets.indicator(), top.indicator())
    np.testing.assert_array_equal(
        LabelPreferences.from_indicator(sparse.csr_array(sets.indicator())).levels, sets.levels
    )


def test_pairs_of_an_order_are_the_order():
    rng = np.random.default_rng(0)
    ranks = np.array([rng.permutation(5) + 1 for _ in range(4)])
    orders = LabelPreferences.from_ranks(ranks)
    pairs = LabelPreferences.from_pairs([sorted(listed(orders, i)) for i in range(4)], 5)
    for i in range(4):
        assert listed(pairs, i) == listed(orders, i)


def test_relevant_before_irrelevant_is_counted_once_beside_pairs():
    made = LabelPreferences.from_pairs([[(0, 1), (1, 2)]], 3, relevant=[[0]], irrelevant=[[1]])
    assert listed(made, 0) == {(0, 1), (1, 2), (0, 3), (3, 1)}


@pytest.mark.parametrize(
    ("pairs", "relevant", "irrelevant"),
    [
        ([(0, 1), (1, 2), (2, 0)], None, None),
        ([(1, 1)], None, None),
        ([(1, 2), (2, 0)], [0], [1]),  # an irrelevant label before a relevant one, by way of a third
    ],
)
def test_a_cycle_is_refused_with_the_number_of_its_example(pairs, relevant, irrelevant):
    sides = {} if relevant is None else {"relevant": [[], [], relevant], "irrelevant": [[], [], irrelevant]}
    with pytest.raises(InputError, match="preferences of example 2 contradict"):
        LabelPreferences.from_pairs([[(0, 1)], [], pairs], 3, **sides)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelPreferences.from_ranks([[1, 2], [1, 2]], relevant=[[1, 0], [0, 1]]), "example 1 ranks an irrel"),
        (lambda: LabelPreferences.from_ranks([1, 2]), "ranks has shape"),
        (lambda: LabelPreferences.from_ranks([[1, np.inf]]), "infinite at example 0"),
        (lambda: LabelPreferences.from_ranks([["a", "b"]]), "table of numbers"),
        (lambda: LabelPreferences.from_ranks([[1, 2]], relevant=[[1]]), "one value per label"),
        (lambda: LabelPreferences.from_top([[-1, 2]]), "positions contains -1"),
        (lambda: LabelPreferences.from_lists([[0], [3]], 3), "example 1 lists"),
        (lambda: LabelPreferences.from_lists([[0, 0]], 3), "twice"),
        (lambda: LabelPreferences.from_indicator([[0, 2]]), "indicator is 2 at example 0"),
        (lambda: LabelPreferences.from_sets([[0]], [[0]], n_labels=2), "relevant and irrelevant"),
        (lambda: LabelPreferences.from_sets([[0]], [], n_labels=2), "1 sets of relevant and 0"),
        (lambda: LabelPreferences.from_pairs([[(0, 5)]], 3), "numbered 0 to 2"),
        (lambda: LabelPreferences.from_pairs([[0, 1]], 3), "two label numbers"),
        (lambda: LabelPreferences.from_pairs([[]], 3, relevant=[[0], [1]]), "2 .* 1|2 examples"),
        (lambda: LabelPreferences.from_classes([0, 3], 3), "whole numbers from 0 to 2"),
        (lambda: LabelPreferences.from_ranks([[1, 2]]).counts("some"), "conversion is 'some'"),
    ],
)  # fmt: skip
def test_bad_preferences_get_a_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_splitters_cut_preferences_like_arrays():
    pairs = [[(0, 1)], [], [(1, 2), (0, 2)], [(2, 1)]]
    made = LabelPreferences.from_pairs(pairs, 3)
    for _, test in KFold(2).split(np.zeros((4, 1)), made):
        part = made[test]
        assert [listed(part, k) for k in range(len(test))] == [listed(made, i) for i in test]
    assert len(made[[]]) == 0
    assert made[-1].shape == (1, 3)
    assert repr(made) == "LabelPreferences(4 examples, 3 labels, kind 'pairs')"


def test_room_for_constraints_is_not_that_of_all_pairs():
    sets = LabelPreferences.from_sets([[0], [1, 2]], n_labels=1000)
    assert sets.targets.max_constraints < 10 * 1000
    assert sets.counts().tolist() == [999 + 1000, 2 * 998 + 1000]
