"""Forces against explicit costs, swaps that are carried out, and every order of a tie."""

from __future__ import annotations

from itertools import permutations

import numba
import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.metrics import average_precision, expected_reciprocal_rank, ndcg, reciprocal_rank
from corank.models.lambdarank import LAMBDAS, Lambda
from corank.models.lambdarank.terms import Lists

RNG = np.random.default_rng(0)
METRICS = {
    "ndcg": lambda y, s: ndcg(y, s),
    "ndcg@3": lambda y, s: ndcg(y, s, k=3),
    "map": lambda y, s: average_precision(y, s),
    "map(rel=2)": lambda y, s: average_precision(y, s, rel=2),
    "mrr": lambda y, s: reciprocal_rank(y, s),
    "err": lambda y, s: expected_reciprocal_rank(y, s),
    "err(max_grade=4)": lambda y, s: expected_reciprocal_rank(y, s, max_grade=4),
}


def logistic(x):
    return 0.5 - 0.5 * np.tanh(0.5 * x)


def by_swapping(measure, s, y, counted=lambda y: y):
    """Forces and curvatures with every swap carried out."""
    n, lambdas, curvatures = len(s), np.zeros(len(s)), np.zeros(len(s))
    for i in range(n):
        for j in range(n):
            if counted(y)[i] > counted(y)[j]:
                swapped = s.copy()
                swapped[[i, j]] = s[[j, i]]
                change, rho = abs(measure(y, swapped) - measure(y, s)), logistic(s[i] - s[j])
                lambdas[i] += change * rho
                lambdas[j] -= change * rho
                curvatures[[i, j]] += change * rho * (1 - rho)
    return lambdas, curvatures


def counted(name):
    if name in ("map", "mrr"):
        return lambda y: y >= 1
    return (lambda y: y >= 2) if name == "map(rel=2)" else lambda y: y


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_lambdas_of_a_pair_are_the_change_of_its_swap(name, seed):
    rng = np.random.default_rng(seed)
    s, y = 2.0 * rng.normal(size=7), rng.permutation([0.0, 0, 0, 1, 2, 2, 3])
    lambdas, curvatures = by_swapping(METRICS[name], s, y, counted(name))
    found = Lambda.of(name).with_curvatures(s, y)
    np.testing.assert_allclose(found[0], lambdas, atol=1e-12)
    np.testing.assert_allclose(found[1], curvatures, atol=1e-12)


def cost_of_ranknet(s, y):
    return sum(np.log1p(np.exp(s[j] - s[i])) for i in range(len(s)) for j in range(len(s)) if y[i] > y[j])


def cost_of_margin(s, y, delta):
    """Equations (7) to (9), made continuous: the slope jumps at 0, the cost does not."""
    total = 0.0
    for i in range(len(s)):
        for j in range(len(s)):
            x = s[i] - s[j]
            if y[i] > y[j]:
                total += -x if x < 0 else 0.5 * x * x - delta * x if x <= delta else -0.5 * delta**2
    return total


def cost_of_winner(s, y):
    return np.log(np.exp(s).sum()) - np.log(np.exp(s[y == y.max()]).sum())


COSTS = {
    "ranknet": cost_of_ranknet,
    "margin": lambda s, y: cost_of_margin(s, y, 1.0),
    "margin(0.4)": lambda s, y: cost_of_margin(s, y, 0.4),
    "margin(delta=1.7)": lambda s, y: cost_of_margin(s, y, 1.7),
    "wta": cost_of_winner,
    "regression": lambda s, y: 0.5 * ((y - s) ** 2).sum(),
    "spring": lambda s, y: 0.5 * (s**2).sum(),
    "ranknet + 0.25*regression": lambda s, y: cost_of_ranknet(s, y) + 0.125 * ((y - s) ** 2).sum(),
}


@pytest.mark.parametrize("name", COSTS)
def test_lambdas_are_gradients_of_the_cost_if_there_is_one(name):
    for _ in range(5):
        s, y = 1.5 * RNG.normal(size=6), RNG.permutation([0.0, 0, 1, 1, 2, 2])
        h = 1e-6 * np.eye(6)
        slopes = [(COSTS[name](s - e, y) - COSTS[name](s + e, y)) / 2e-6 for e in h]
        np.testing.assert_allclose(Lambda.of(name)(s, y), slopes, rtol=1e-6, atol=1e-7)


def test_curvatures_are_derivatives_of_lambdas():
    s, y = RNG.normal(size=6), RNG.permutation([0.0, 0, 1, 1, 2, 2])
    for name in ("ranknet", "ndcg", "map", "err", "regression", "spring"):
        lambdas, curvatures = Lambda.of(name), Lambda.of(name).with_curvatures(s, y)[1]
        h = 1e-6 * np.eye(6)
        slopes = [(lambdas(s - e, y)[i] - lambdas(s + e, y)[i]) / 2e-6 for i, e in enumerate(h)]
        np.testing.assert_allclose(curvatures, slopes, rtol=1e-6, atol=1e-8)
    # a bound where the cost is not convex
    h = 1e-6 * np.eye(6)
    slopes = [(Lambda.of("wta")(s - e, y)[i] - Lambda.of("wta")(s + e, y)[i]) / 2e-6 for i, e in enumerate(h)]
    assert (Lambda.of("wta").with_curvatures(s, y)[1] >= np.array(slopes) - 1e-8).all()


def test_scores_far_apart_lose_nothing():
    y = np.array([0.0, 1, 2, 0])
    near, far = np.array([0.0, -1, -2, -0.5]), np.array([0.0, -1, -2, -900.0])
    for name in ("ranknet", "ndcg"):
        lambdas, curvatures = Lambda.of(name).with_curvatures(far, y)
        if name == "ranknet":
            expected = Lambda.of(name)(near[:3], y[:3])
            np.testing.assert_allclose(lambdas[:3], expected, rtol=1e-12)
        else:
            np.testing.assert_allclose(lambdas, by_swapping(METRICS[name], far, y)[0], atol=1e-12)
        assert np.isfinite(curvatures).all()
    assert Lambda.of("ranknet")([-1000.0, 1000.0], [1, 0]).tolist() == [1.0, -1.0]
    assert np.isfinite(Lambda.of("wta")([-1000.0, 1000.0], [1, 0])).all()


def test_ties_of_ndcg_take_every_order():
    s, y = np.array([0.5, 0.2, 0.2, 0.2, -1.0, -1.0]), np.array([0.0, 2, 1, 0, 1, 0])
    for name in ("ndcg", "ndcg@3"):
        n_orders, lambdas = 0, np.zeros(6)
        for tie in permutations([1, 2, 3]):
            for end in permutations([4, 5]):
                apart = s.copy()
                apart[[0, *tie, *end]] -= 1e-9 * np.arange(6)
                lambdas += by_swapping(METRICS[name], apart, y)[0]
                n_orders += 1
        np.testing.assert_allclose(Lambda.of(name)(s, y), lambdas / n_orders, atol=1e-8)


@pytest.mark.parametrize("name", [*LAMBDAS, "ndcg@2"])
def test_equal_rows_have_equal_lambdas(name):
    y = np.array([0.0, 1, 0, 1, 2, 0, 1])
    lambdas, curvatures = Lambda.of(name).with_curvatures(np.zeros(7), y)
    for found in (lambdas, curvatures):
        for grade in (0, 1):
            np.testing.assert_allclose(found[y == grade], found[y == grade][0], rtol=1e-12)
    assert lambdas[y == 2] >= lambdas[y == 0][0]
    shuffled = RNG.permutation(7)
    np.testing.assert_allclose(Lambda.of(name)(np.zeros(7), y[shuffled]), lambdas[shuffled], rtol=1e-12)


@pytest.mark.parametrize("name", ["ranknet", "margin(0.5)", "ndcg", "ndcg@4", "wta", "regression", "spring"])
def test_weight_two_is_the_row_twice(name):
    s, y, w = RNG.normal(size=6), np.array([0.0, 1, 2, 0, 1, 0]), np.array([1, 2, 1, 3, 1, 2])
    s[3] = s[4]
    rows = np.repeat(np.arange(6), w)
    lists = Lists(np.arange(6), np.array([0, 6]), y, w.astype(float))
    twice = Lambda.of(name).of_lists(Lists.of_query(y[rows]), s[rows])
    for found, expected in zip(Lambda.of(name).of_lists(lists, s), twice, strict=True):
        np.testing.assert_allclose(found, np.bincount(rows, expected), atol=1e-12)


def test_light_rows_still_take_a_place():
    s, y = RNG.normal(size=5), np.array([0.0, 1, 2, 0, 1])
    light = Lists(np.arange(5), np.array([0, 5]), y, np.full(5, 0.1))
    np.testing.assert_allclose(Lambda.of("ndcg").of_lists(light, s)[0], 0.01 * Lambda.of("ndcg")(s, y), rtol=1e-12)


def test_queries_are_apart_and_threads_change_nothing():
    problem = make_ranking(30, (1, 9), random_state=0)
    lists = Lists.of(RankingData.of(problem.X, problem.y, problem.qid))
    s = RNG.normal(size=len(problem.y))[lists.rows]
    for name in LAMBDAS:
        lambdas = Lambda.of(name).for_grades(lists.labels)
        total = lambdas.of_lists(lists, s)
        np.testing.assert_array_equal(lambdas.of_lists(lists, s, n_jobs=2), total)
        for q in range(lists.n_queries):
            rows = slice(lists.starts[q], lists.starts[q + 1])
            np.testing.assert_allclose(total[:, rows], lambdas.with_curvatures(s[rows], lists.labels[rows]), atol=1e-13)


def test_preferences_are_pairs():
    problem = make_ranking(6, (2, 6), random_state=1)
    y, qid = problem.y, problem.qid
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
    graded = Lists.of(RankingData.of(problem.X, y, qid))
    given = Lists.of(RankingData.of_pairs(problem.X, pairs[::-1], qid))
    s = RNG.normal(size=len(y))
    for name in ("ranknet", "margin"):
        one, other = np.zeros((2, len(y))), np.zeros((2, len(y)))
        one[:, graded.rows] = Lambda.of(name).of_lists(graded, s[graded.rows])
        other[:, given.rows] = Lambda.of(name).of_lists(given, s[given.rows])
        np.testing.assert_allclose(one, other, atol=1e-12)
        part, positions = given.select(np.array([3, 0]))
        found = Lambda.of(name).of_lists(part, s[part.rows])
        np.testing.assert_allclose(found, other[:, given.rows][:, positions], atol=1e-12)


def test_functions_of_the_users_own():
    def plain(scores, labels):
        return (labels - labels.mean()) * 1.0

    compiled = numba.njit(lambda scores, labels: (labels - labels.mean(), np.ones(len(labels))))
    s, y = RNG.normal(size=4), np.array([0.0, 1, 3, 0])
    np.testing.assert_array_equal(Lambda.of(plain)(s, y), y - 1.0)
    np.testing.assert_array_equal(Lambda.of(plain).with_curvatures(s, y)[1], abs(y - 1.0))
    np.testing.assert_array_equal(Lambda.of(compiled).with_curvatures(s, y)[1], np.ones(4))
    np.testing.assert_array_equal(
        Lambda.of(numba.njit(plain)).with_curvatures(s, y), Lambda.of(plain).with_curvatures(s, y)
    )
    both = Lambda.of("ranknet") + 2.0 * Lambda.of(plain)
    np.testing.assert_allclose(both(s, y), Lambda.of("ranknet")(s, y) + 2 * (y - 1.0))
    named = Lambda.of("numpy:subtract")
    np.testing.assert_array_equal(named(s, y), s - y)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("ndgc", r"'ndgc' has the unknown λ 'ndgc'; did you mean 'ndcg'\? Choose one of ranknet"),
        ("ndcg + ", r"has the unknown λ ''"),
        ("map@3", "only 'ndcg@k' has one"),
        ("ndcg@0", "only 'ndcg@k' has one, with k of at least 1"),
        ("margin(delta=-1)", "has delta=-1.0; pass a number above 0"),
        ("margin(rel=1)", "parameter 'rel', which margin does not have; it takes delta"),
        ("ranknet(2)", "has a parameter, but ranknet takes none"),
        ("0*ranknet", "has the weight 0.0; pass a number above 0"),
        ("x*ranknet", "weight or parameter is not a number"),
        (3, "lambdas is 3; pass a name such as 'ndcg@10'"),
        ("numpy:nothing", "cannot be imported .* name it as module:function"),
        ("no_such_module:lambdas", "cannot be imported"),
        ("numpy:pi", "is a float; name a function"),
    ],
)
def test_unknown_lambdas_are_refused(bad, sentence):
    with pytest.raises(InputError, match=sentence):
        Lambda.of(bad)([0.0, 1.0], [0, 1])


def test_what_a_function_may_return():
    for bad in (lambda s, y: np.zeros(3), lambda s, y: None, lambda s, y: (s, s, s), lambda s, y: s * np.nan):
        with pytest.raises(InputError, match="returned"):
            Lambda.of(bad)([0.0, 1.0], [0, 1])


def test_names_are_told_as_they_are_read():
    for text in ("ndcg@10 + 0.1*regression", "margin(delta=0.5)", "map(rel=2)", "ranknet", "err", "err(max_grade=4)"):
        assert str(Lambda.of(text)) == text
        assert Lambda.of(str(Lambda.of(text))) == Lambda.of(text)
    assert Lambda.of("1e-3*ranknet").terms[0].factor == 1e-3
    assert Lambda.of("ndcg@10").metric == "nDCG@10"
