"""Walks over whole lists against the definitions, averaged over every order of the ties."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corank.core.lists.ranked import (
    BLOCK,
    EXPECTED,
    GIVEN,
    SMALL_TIE,
    cascade,
    first_relevant,
    irrelevant_above,
    mean_of_ndcgs,
    precision_at_r,
    precision_sums,
    ranked_gains,
)

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6)
cuts = st.integers(1, 7)
ANY = 10**9


def ranked(rows):
    """Grades and scores in order of falling score, and every order of the ties (as row numbers)."""
    grades, scores = np.array(sorted(rows, key=lambda row: -row[1]), dtype=float).T
    blocks = [list(block) for _, block in itertools.groupby(range(len(scores)), key=lambda i: scores[i])]
    orders = [
        list(itertools.chain(*parts))
        for parts in itertools.product(*(list(itertools.permutations(block)) for block in blocks))
    ]
    return np.ascontiguousarray(grades), np.ascontiguousarray(scores), orders


def call(kernel, values, scores, *options, columns=None):
    starts = np.array([0, len(values)], dtype=np.int64)
    out = np.full(1 if columns is None else (1, columns), -1.0)
    kernel(values, scores, starts, 0, 1, *options, out)
    return out[0]


def dcg(gains, discounts):
    return sum(g * d for g, d in zip(gains, discounts, strict=False))


@given(rows, cuts)
def test_discounted_gain(rows, cut):
    gains, scores, orders = ranked(rows)
    discounts = 1.0 / np.log2(np.arange(2, cut + 2))
    means = np.mean([dcg(gains[order], discounts) for order in orders])
    best = dcg(sorted(gains, reverse=True), discounts)
    assert call(ranked_gains, gains, scores, discounts, EXPECTED, columns=2) == pytest.approx([means, best])
    given_order = call(ranked_gains, gains, scores, discounts, GIVEN, columns=2)
    assert given_order == pytest.approx([dcg(gains, discounts), best])


@given(rows)
def test_mean_of_ndcgs(rows):
    gains, scores, orders = ranked(rows)
    discounts = 1.0 / np.log2(np.arange(2, len(gains) + 2))
    best = sorted(gains, reverse=True)
    value = call(mean_of_ndcgs, gains, scores, discounts, EXPECTED)
    if not gains.any():
        assert np.isnan(value)
        return

    def mean_over_depths(order):
        depths = range(1, len(gains) + 1)
        return np.mean([dcg(gains[order][:k], discounts) / dcg(best[:k], discounts) for k in depths])

    assert value == pytest.approx(np.mean([mean_over_depths(order) for order in orders]))
    assert call(mean_of_ndcgs, gains, scores, discounts, GIVEN) == pytest.approx(mean_over_depths(slice(None)))


@given(rows, cuts)
def test_sum_of_precisions(rows, cut):
    grades, scores, orders = ranked(rows)
    relevant = (grades > 0).astype(np.uint8)

    def total(order):
        hits = relevant[order].astype(float)
        return sum(hits[: i + 1].mean() for i in range(min(cut, len(hits))) if hits[i])

    expected = [np.mean([total(order) for order in orders]), relevant.sum()]
    assert call(precision_sums, relevant, scores, cut, EXPECTED, columns=2) == pytest.approx(expected)
    assert call(precision_sums, relevant, scores, cut, GIVEN, columns=2)[0] == pytest.approx(total(slice(None)))


def test_tied_block_counts_the_precision_at_its_end():
    relevant, scores = np.array([1, 1, 0, 1], np.uint8), np.array([3.0, 2.0, 2.0, 1.0])
    # ranks 2 and 3 arrive together: precision 2/3 for the one relevant row of that block
    total = call(precision_sums, relevant, scores, ANY, BLOCK, columns=2)[0]
    assert total == pytest.approx(1 + 2 / 3 + 3 / 4)


@given(rows, cuts, st.booleans())
def test_first_relevant_row(rows, cut, inverse_rank):
    grades, scores, orders = ranked(rows)
    relevant = (grades > 0).astype(np.uint8)
    weights = 1 / np.arange(1.0, cut + 1) if inverse_rank else np.ones(cut)
    value = call(first_relevant, relevant, scores, weights, EXPECTED)
    if not relevant.any():
        assert np.isnan(value)
        return

    def weight(order):
        rank = 1 + int(np.argmax(relevant[order]))
        return (1 / rank if inverse_rank else 1.0) if rank <= cut else 0.0

    assert value == pytest.approx(np.mean([weight(order) for order in orders]))
    assert call(first_relevant, relevant, scores, weights, GIVEN) == pytest.approx(weight(slice(None)))


@given(rows)
def test_irrelevant_rows_above(rows):
    grades, scores, orders = ranked(rows)
    relevant = (grades > 0).astype(np.uint8)
    value = call(irrelevant_above, relevant, scores, EXPECTED)
    if not relevant.any():
        assert np.isnan(value)
        return
    big_r, n = int(relevant.sum()), int((1 - relevant).sum())

    def preference(order):
        hits = relevant[order]
        above = [int((1 - hits[:i]).sum()) for i in np.flatnonzero(hits)]
        return sum(1 - (min(a, big_r) / min(n, big_r) if a else 0) for a in above) / big_r

    assert value == pytest.approx(np.mean([preference(order) for order in orders]))
    assert call(irrelevant_above, relevant, scores, GIVEN) == pytest.approx(preference(slice(None)))


@given(rows)
def test_precision_at_the_number_of_relevant_rows(rows):
    grades, scores, orders = ranked(rows)
    relevant = (grades > 0).astype(np.uint8)
    value = call(precision_at_r, relevant, scores, EXPECTED)
    if not relevant.any():
        assert np.isnan(value)
        return
    big_r = int(relevant.sum())
    assert value == pytest.approx(np.mean([relevant[order][:big_r].mean() for order in orders]))
    assert call(precision_at_r, relevant, scores, GIVEN) == pytest.approx(relevant[:big_r].mean())


@given(rows, cuts)
def test_cascade(rows, cut):
    grades, scores, orders = ranked(rows)
    stops = (2**grades - 1) / 4

    def value(order):
        chances = stops[order][:cut]
        through = np.concatenate([[1.0], np.cumprod(1 - chances)[:-1]])
        return float((chances * through / np.arange(1, len(chances) + 1)).sum())

    expected = np.mean([value(order) for order in orders]) if stops.any() else np.nan
    assert call(cascade, stops, scores, cut, EXPECTED) == pytest.approx(expected, nan_ok=True)
    if stops.any():
        assert call(cascade, stops, scores, cut, GIVEN) == pytest.approx(value(slice(None)))


def test_a_large_tie_keeps_its_precision():
    # all m rows alike: the order does not matter, so the expectation is the value of any order
    m, chance = 3000, 1e-3
    value = call(cascade, np.full(m, chance), np.zeros(m), ANY, EXPECTED)
    ranks = np.arange(1, m + 1)
    assert value == pytest.approx(float((chance * (1 - chance) ** (ranks - 1) / ranks).sum()), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_tie_of_a_million_rows_is_not_walked_for_every_rank(share):
    m, chance = 1_000_000, 0.25
    ranks = np.arange(1.0, m + 1)
    # one row that stops the reader stands at any rank alike; rows that are all alike have no order
    one, alike = chance * (1 / ranks).mean(), (chance * (1 - chance) ** (ranks - 1) / ranks).sum()
    stops = np.where(np.arange(m) < max(share * m, 1), chance, 0.0)
    assert call(cascade, stops, np.zeros(m), ANY, EXPECTED) == pytest.approx(alike if share else one, rel=1e-12)


def quadratic(stops, scores):
    """The expectation in exact fractions, from the chance to pass j of a tie's rows in random order."""
    value, reach, s = Fraction(0), Fraction(1), 0
    for _, tie in itertools.groupby(zip(scores, stops, strict=True), key=lambda row: row[0]):
        p = [Fraction(1)]
        for t, (_, chance) in enumerate(tie, 1):
            longer = [*p, Fraction(0)]
            u = 1 - Fraction(chance)
            p = [Fraction(t - j, t) * longer[j] + Fraction(j, t) * u * p[j - 1] for j in range(t + 1)]
        value += reach * sum((p[j - 1] - p[j]) / (s + j) for j in range(1, len(p)))
        reach, s = reach * p[-1], s + len(p) - 1
    return value


@pytest.mark.long
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)).filter(any), min_size=1, max_size=3),
    st.sampled_from([(0.25, 0.75), (1 / 16, 1 / 16), (1 / 1024, 15 / 16), (2.0**-30, 0.5)]),
)
@example([(0, 90)], (1.0, 1.0))
@example([(200, 1)], (0.5, 0.5))
@example([(0, 5), (1, 199)], (1 / 16, 15 / 16))
@settings(max_examples=25)
def test_cascade_through_large_ties_is_the_quadratic_sum(ties, levels):
    """Each tie has some rows that stop nobody and some of two levels."""
    stops = [[0.0] * none + [levels[row % 3 == 0] for row in range(some)] for none, some in ties]
    scores = [float(-t) for t, tie in enumerate(stops) for _ in tie]
    flat = np.array(list(itertools.chain(*stops)))
    value = call(cascade, flat, np.array(scores), ANY, EXPECTED)
    if not flat.any():
        assert np.isnan(value)
    else:
        # a chance of 2^-30 is a difference of two numbers near 1
        assert value == pytest.approx(float(quadratic(flat, scores)), rel=1e-14 / min(levels))


@pytest.mark.parametrize("before", [0, 3])
def test_cascade_averages_over_every_place_of_two_rows_in_a_large_tie(before):
    m, chances = SMALL_TIE + 30, (0.25, 0.75)
    orders = [
        (1 / (before + min(i, j))) * chances[i > j] + (1 / (before + max(i, j))) * (1 - chances[i > j]) * chances[i < j]
        for i, j in itertools.permutations(range(1, m + 1), 2)
    ]
    stops, scores = np.zeros(before + m), np.zeros(before + m)
    stops[[before + 5, before + 17]], scores[:before] = chances, 1.0
    assert call(cascade, stops, scores, ANY, EXPECTED) == pytest.approx(np.mean(orders), rel=1e-12)


@pytest.mark.parametrize("ties", [EXPECTED, GIVEN])
def test_rows_not_retrieved_count_only_as_missed(ties):
    scores = np.array([1.0, -np.inf, -np.inf])
    relevant, grades = np.array([1, 1, 0], np.uint8), np.array([1.0, 2.0, 0.0])
    assert call(precision_sums, relevant, scores, ANY, ties, columns=2).tolist() == [1.0, 2.0]
    assert call(precision_at_r, relevant, scores, ties) == 0.5
    assert call(first_relevant, relevant[[2, 0, 1]], scores, np.ones(3), ties) == 0.0
    assert call(irrelevant_above, relevant, scores, ties) == 0.5
    assert call(ranked_gains, grades, scores, np.ones(3), ties, columns=2).tolist() == [1.0, 3.0]
    assert call(mean_of_ndcgs, grades, scores, np.ones(3), ties) == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3)
    assert call(cascade, grades / 4, scores, ANY, ties) == 0.25
