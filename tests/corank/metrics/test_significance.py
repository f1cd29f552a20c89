from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corank.errors import InputError
from corank.metrics import compare_runs, evaluate, holm, sign_flip


def compare(base, other, metric, **options):
    (test,) = compare_runs({"base": base, "other": other}, metric, **options)
    return test


def evaluations(names="nDCG@5", n_queries=60, **options):
    rng = np.random.default_rng(7)
    qid = np.repeat(np.arange(n_queries), 8)
    y = rng.integers(0, 3, len(qid))
    y[qid % 10 == 0] = 0
    weak, strong = rng.normal(size=len(qid)), y + rng.normal(size=len(qid))
    return evaluate(y, weak, qid, names, **options), evaluate(y, strong, qid, names, **options)


def test_figures_are_those_of_scipy_on_the_differences():
    base, other = evaluations()
    result = compare(base, other, "ndcg@5", random_state=0)
    used = ~np.isnan(base["nDCG@5"].values)
    differences = (other["nDCG@5"].values - base["nDCG@5"].values)[used]
    assert result.metric == "nDCG@5"
    assert result.n_queries == used.sum() == 54
    assert result.difference == pytest.approx(differences.mean())
    assert result.other_mean - result.base_mean == pytest.approx(result.difference)
    assert (result.n_higher, result.n_lower) == ((differences > 0).sum(), (differences < 0).sum())
    interval = stats.ttest_1samp(differences, 0.0).confidence_interval()
    error = 0.15 * stats.sem(differences)
    assert result.low == pytest.approx(interval.low, abs=error)
    assert result.high == pytest.approx(interval.high, abs=error)
    shifted = differences - 0.9 * differences.mean()
    permuted = stats.permutation_test((shifted,), np.mean, permutation_type="samples", n_resamples=9999, rng=1)
    assert sign_flip(shifted).p_value == pytest.approx(permuted.pvalue, abs=0.03)


def brute_p(x, mu):
    """Two-sided p-value of the mean mu: the share of all choices of signs with a sum at least as far out."""
    sums = [sum(sign * (value - mu) for sign, value in zip(signs, x, strict=True)) for signs in signs_of(len(x))]
    slack = 1e-9 * max(1.0, max(map(abs, sums)))
    total = sum(x) - len(x) * mu
    above, below = (sum(side * (one - total) >= -slack for one in sums) for side in (1, -1))
    return min(1.0, 2 * min(above, below) / len(sums))


def signs_of(n):
    return product((1, -1), repeat=n)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.9375, 0.95])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 9])
def test_p_values_and_intervals_are_those_of_all_choices_of_signs(n, level):
    rng = np.random.default_rng(n)
    samples = [rng.normal(size=n), rng.exponential(size=n) - 0.3, rng.integers(-2, 4, n) / 10, np.full(n, 0.1)]
    for x in samples:
        low, high, p = sign_flip(x, level=level)
        assert p == pytest.approx(brute_p(x, 0.0))
        if 2 / 2**n >= round(1 - level, 9):
            assert (low, high) == (-np.inf, np.inf)
            continue
        step = 1e-6
        for end, outside in ((low, low - step), (high, high + step)):
            assert brute_p(x, end) >= 1 - level - 1e-9
            assert brute_p(x, outside) < 1 - level - 1e-9


@pytest.mark.parametrize("n", [2, 6, 12, 13, 40, 3000])
def test_the_interval_excludes_zero_exactly_if_p_is_below_one_minus_the_level(n):
    rng = np.random.default_rng(0)
    outside = 0
    for level in (0.8, 0.95):
        for n_resamples in (199, 200, 999):
            for _ in range(20):
                x = rng.normal(1.8 / np.sqrt(n), size=n) if rng.random() < 0.5 else rng.integers(-1, 3, n) / 7
                low, high, p = sign_flip(x, rng, level, n_resamples)
                assert (low <= 0.0 <= high) == (round(p, 12) >= round(1 - level, 12))
                assert low <= x.mean() <= high
                outside += not low <= 0.0 <= high
    assert outside > 0 or n == 2


# differences per query of two rankers, neither of which is better
NO_DIFFERENCE = {
    "normal": lambda rng, n: rng.normal(size=n),
    "many zeros": lambda rng, n: rng.laplace(size=n) * (rng.random(n) < 0.4),
    "P@1": lambda rng, n: rng.integers(0, 2, n) - rng.integers(0, 2, n),
    "±1": lambda rng, n: rng.choice([-1.0, 1.0], n),
}


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", NO_DIFFERENCE)
@pytest.mark.parametrize("n", [3, 5, 8, 20])
def test_the_interval_of_few_queries_keeps_its_level(name, n):
    """Percentiles of bootstrap means miss 0 in 8 % to 28 % of normal samples of 20 to 3."""
    rng = np.random.default_rng(7)
    x = [NO_DIFFERENCE[name](rng, n) for _ in range(1000)]
    missed = sum(not low <= 0.0 <= high for low, high, _ in (sign_flip(values, rng, n_resamples=299) for values in x))
    # three standard errors of a share of 5 % in 1,000
    assert missed / 1000 <= 0.05 + 0.021
    assert missed == 0 or n > 5


@pytest.mark.parametrize(("n", "least"), [(6, 0.88), (10, 0.88), (30, 0.9)])
def test_the_interval_of_a_skewed_mean_holds_nearly_as_often_as_it_says(n, least):
    rng = np.random.default_rng(1)
    ends = [sign_flip(rng.exponential(size=n), rng, n_resamples=299)[:2] for _ in range(1000)]
    assert np.mean([low <= 1.0 <= high for low, high in ends]) >= least


def test_queries_are_matched_by_id_not_by_position():
    y, scores, qid = np.array([1, 0, 0, 1, 2, 0]), np.array([1, 2, 2, 1, 3, 1.0]), np.array([1, 1, 2, 2, 3, 3])
    base, turned = evaluate(y, scores, qid, "RR"), evaluate(y[::-1], scores[::-1], qid[::-1], "RR")
    result = compare(base, turned, "RR", random_state=0)
    assert result.difference == 0.0
    assert (result.low, result.high, result.p_value) == (-np.inf, np.inf, 1.0)
    assert sign_flip(np.zeros(6)) == (0.0, 0.0, 1.0)


def test_the_same_seed_gives_the_same_interval_and_a_generator_goes_on():
    base, other = evaluations()
    first, second = (compare(base, other, "nDCG@5", random_state=5) for _ in range(2))
    assert first == second == compare(base, other, "nDCG@5", random_state=np.random.default_rng(5))
    rng = np.random.default_rng(5)
    one, two = (compare(base, other, "nDCG@5", random_state=rng) for _ in range(2))
    assert one == first != two
    with pytest.raises(InputError, match="random_state is 'x'; pass a whole number"):
        compare(base, other, "nDCG@5", random_state="x")


def test_ids_are_matched_as_text_where_one_side_has_numbers():
    y, scores, qid = np.array([1, 0, 0, 1, 2, 0]), np.array([1, 2, 2, 1, 3, 1.0]), np.array([10, 10, 2, 2, 3, 3])
    numbers = evaluate(y, scores, qid, "RR")
    text = evaluate(y[::-1], -scores[::-1], qid[::-1].astype(str), "RR")
    alike = evaluate(y[::-1], -scores[::-1], qid[::-1], "RR")
    for first, second in ((numbers, alike), (alike, numbers)):
        named = (first, text) if first is numbers else (text, second)
        assert compare(*named, "RR", random_state=0) == compare(first, second, "RR", random_state=0)
    # 1 and "1" are two queries of one evaluation: text cannot tell them apart
    both = evaluate(y[:4], scores[:4], [1, 1, "1", "1"], "RR")
    assert compare(both, both, "RR").difference == 0.0
    with pytest.raises(InputError, match="have 2 and 2 queries"):
        compare(both, evaluate(y[:4], scores[:4], [1, 1, 3, 3], "RR"), "RR")


def test_bad_input_is_named():
    base, other = evaluations()
    with pytest.raises(InputError, match="AP was not evaluated, only nDCG@5"):
        compare(base, other, "AP")
    with pytest.raises(InputError, match="follow the conventions 'corank' and 'letor4'"):
        compare(base, evaluations(convention="letor4")[1], "nDCG@5")
    with pytest.raises(InputError, match="have 60 and 50 queries"):
        compare(base, evaluations(n_queries=50)[1], "nDCG@5")
    with pytest.raises(InputError, match="have 50 and 60 queries"):
        compare(evaluations(n_queries=50)[1], base, "nDCG@5")
    with pytest.raises(InputError, match=r"level is 95; pass a number between 0 and 1"):
        compare(base, other, "nDCG@5", level=95)
    with pytest.raises(InputError, match="n_resamples is 0"):
        compare(base, other, "nDCG@5", n_resamples=0)
    empty = evaluate([0, 0], [1, 2], metrics="AP")
    with pytest.raises(InputError, match="no query has a value of AP in both"):
        compare(empty, empty, "AP")


def brute_holm(p):
    """Step down, as Holm's paper has it: the level at which each hypothesis is first rejected."""
    adjusted = {}
    left = list(range(len(p)))
    lowest = 0.0
    while left:
        at = min(left, key=lambda i: p[i])
        lowest = max(lowest, min(1.0, len(left) * p[at]))
        adjusted[at] = lowest
        left.remove(at)
    return [adjusted[i] for i in range(len(p))]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_its_steps_and_bounds_bonferroni(p):
    found = holm(p)
    np.testing.assert_allclose(found, brute_holm(p))
    assert (found >= p).all()
    assert (found <= np.minimum(len(p) * np.array(p), 1.0) + 1e-15).all()


def test_holm_rejects_a_true_hypothesis_no_more_often_than_it_says():
    rng = np.random.default_rng(0)
    wrong = sum(bool((holm(rng.random(6)) <= 0.1).any()) for _ in range(2000))
    assert wrong / 2000 < 0.13


def test_holm_of_an_empty_list_is_empty():
    assert holm([]).shape == (0,)


def test_any_number_of_runs_is_compared_with_a_base_or_each_with_each():
    base, other = evaluations()
    runs = {"a": base, "b": other, "c": base}
    against = compare_runs(runs, "nDCG@5", base="b", random_state=0)
    assert [(test.base, test.other) for test in against] == [("b", "a"), ("b", "c")]
    assert [test.p_adjusted for test in against] == holm([test.p_value for test in against]).tolist()
    assert against[0].difference == -compare(base, other, "nDCG@5").difference
    every = compare_runs(runs, "nDCG@5", random_state=0)
    assert [(test.base, test.other) for test in every] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert every[1].p_value == every[1].p_adjusted == 1.0


def test_evaluations_that_cannot_be_compared_raise():
    base, other = evaluations()
    with pytest.raises(InputError, match="evaluations has 1 entries; pass at least two"):
        compare_runs({"a": base}, "nDCG@5")
    with pytest.raises(InputError, match="base is 'c', which is not among the"):
        compare_runs({"a": base, "b": other}, "nDCG@5", base="c")


def test_tests_print_as_a_table_and_become_a_frame():
    y, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    runs = {"old": [0, 1, 0, 1, 0, 1], "a longer name": [1, 0, 0, 1, 1, 0], "same": [0, 1, 0, 1, 0, 1]}
    found = compare_runs({name: evaluate(y, scores, qid, "RR") for name, scores in runs.items()}, "RR", random_state=0)
    head, *lines, note = repr(found).splitlines()
    assert len(lines) == len(found) == 3
    # numbers are right-aligned: a cell ends where its heading does
    end = head.index("difference") + len("difference")
    for line, test in zip(lines, found, strict=True):
        assert line[:end].endswith(f"{test.difference:+.4f}")
    assert "95% interval; p: sign-flip test" in note
    assert "Fewer than 6 queries" in note
    assert isinstance(found, list)
    frame = found.to_frame()
    assert frame["difference"].tolist() == [test.difference for test in found]
    assert list(frame["p (Holm)"]) == [test.p_adjusted for test in found]
    assert found._repr_html_().count("<tr>") == 4
