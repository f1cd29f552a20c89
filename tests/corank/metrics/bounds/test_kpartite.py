"""Bounds on the k-partite error: against brute force, against the bound of the AUC, and by repeated draws."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom

from corank.errors import InputError
from corank.metrics.bounds import Bound, finite_class, kpartite_interval, linear_class
from corank.metrics.bounds.kpartite import hoeffding_end, log_orders

RNG = np.random.default_rng(0)


def brute(scores, y, power):
    """Error, worst error and Σ c_i², pair by pair."""
    loss, worst, n_pairs, moves = 0.0, 0.0, 0, np.zeros(len(y))
    for i, j in combinations(range(len(y)), 2):
        if y[i] == y[j]:
            continue
        high, low = (i, j) if y[i] > y[j] else (j, i)
        weight = abs(y[i] - y[j]) ** power
        wrong = 1.0 if scores[high] < scores[low] else 0.5 if scores[high] == scores[low] else 0.0
        loss, worst, n_pairs = loss + weight * wrong, worst + weight, n_pairs + 1
        moves[[i, j]] += weight
    return loss / n_pairs, worst / n_pairs, np.sum((moves / n_pairs) ** 2)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("grades", ["few", "real"])
def test_rows_against_every_pair(power, grades):
    y = RNG.integers(0, 4, 60) if grades == "few" else RNG.normal(size=60)
    scores = np.round(RNG.normal(size=60) + y, 0 if grades == "few" else 1)  # with ties
    error, worst, squares = brute(scores, y, power)
    bound = kpartite_interval(scores, y, power=power, delta=0.1, n_models=7)
    width = math.sqrt(0.5 * math.log(2 * 7 / 0.1) * squares)
    assert bound.error == pytest.approx(error)
    assert bound.worst == pytest.approx(worst)
    assert bound.random == pytest.approx(0.5 * worst)
    assert dict(bound.parts)["width"] == pytest.approx(width)
    assert (bound.low, bound.high) == pytest.approx((max(0, error - width), min(worst, error + width)))
    # the paper's own form
    M, rho = len(y), {grade: np.mean(y == grade) for grade in np.unique(y)}
    gamma = sum(rho[a] * rho[b] for a, b in combinations(rho, 2))
    of_grade = {a: sum(abs(a - b) ** power * rho[b] for b in rho if b != a) / gamma for a in rho}
    paper = math.log(2 * 7 / 0.1) / (2 * M) * sum(rho[a] * of_grade[a] ** 2 for a in rho)
    assert width == pytest.approx(math.sqrt(paper))
    assert finite_class(scores, y, power=power, delta=0.1, n_models=7).high == bound.high


def test_two_grades_give_the_interval_of_the_auc():
    y, delta = np.repeat([0, 1], [30, 90]), 0.03
    bound = kpartite_interval(RNG.normal(size=120), y, delta=delta)
    rho = 0.25
    assert dict(bound.parts)["width"] == pytest.approx(math.sqrt(math.log(2 / delta) / (2 * rho * (1 - rho) * 120)))
    assert bound.random == 0.5


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_queries_against_every_pair(power):
    qid = np.repeat(np.arange(40), 5)
    y, scores = RNG.integers(0, 3, 200).astype(float), RNG.normal(size=200)
    y[:10], y[17] = 1.0, np.nan  # two queries of one grade, one unjudged row
    parts = [(qid == q) & ~np.isnan(y) for q in range(2, 40)]
    found = [brute(scores[part], y[part], power) for part in parts if len(np.unique(y[part])) > 1]
    n = len(found)
    bound = kpartite_interval(scores, y, qid, power=power, delta=0.2)
    assert bound.error == pytest.approx(np.mean([error for error, _, _ in found]))
    assert bound.random == pytest.approx(0.5 * np.mean([worst for _, worst, _ in found]))
    for end in (bound.low, bound.high):
        assert n * entropy(bound.error / 2**power, end / 2**power) == pytest.approx(math.log(2 / 0.2))
        assert abs(end - bound.error) < 2**power * math.sqrt(math.log(2 / 0.2) / (2 * n))
    assert dict(bound.parts)["queries"] == n
    assert any("1 unjudged rows" in text for text in bound.assumptions)


def entropy(a, p):
    return a * math.log(a / p) + (1 - a) * math.log((1 - a) / (1 - p))


@pytest.mark.parametrize(("p", "n"), [(0.02, 30), (0.3, 12), (0.97, 50)])
def test_hoeffding_against_all_outcomes(p, n):
    """Among numbers in [0, 1], zeros and ones have the heaviest tails: those of the binomial distribution."""
    logs = math.log(1 / 0.1)
    heads = np.arange(n + 1)
    low, high = ([hoeffding_end(k / n, n, logs, end) for k in heads] for end in (0.0, 1.0))
    chances = binom.pmf(heads, n, p)
    assert chances[np.array(low) > p].sum() <= 0.1
    assert chances[np.array(high) < p].sum() <= 0.1
    assert (low[0], high[n]) == (0.0, 1.0)
    assert high[0] == pytest.approx(1 - 0.1 ** (1 / n))


def coverage_of_rows(power, delta, n, repeats):
    """How often the interval holds the expected error for the drawn shares of grades, a known one."""
    rng = np.random.default_rng(1)
    shift = np.array([0.0, 0.7, 1.1])
    # P(a row of grade l outscores one of grade m) of unit Gaussians
    wrong = np.array([[0.5 * math.erfc((shift[m] - shift[j]) / 2) for m in range(3)] for j in range(3)])
    held, widths = 0, []
    for _ in range(repeats):
        y = rng.choice(3, p=[0.6, 0.3, 0.1], size=n)
        rho = np.bincount(y, minlength=3) / n
        if np.count_nonzero(rho) < 2:
            held += 1
            continue
        pairs = [(j, m) for j, m in combinations(range(3), 2)]
        gamma = sum(rho[j] * rho[m] for j, m in pairs)
        truth = sum(rho[j] * rho[m] * (m - j) ** power * wrong[j, m] for j, m in pairs) / gamma
        bound = kpartite_interval(rng.normal(size=n) + shift[y], y, power=power, delta=delta)
        held += bound.low <= truth <= bound.high
        widths.append(dict(bound.parts)["width"])
    return held / repeats, np.mean(widths)


@pytest.mark.parametrize(("power", "delta"), [(0.0, 0.3), (1.0, 0.3), (2.0, 0.1)])
def test_the_interval_of_rows_holds_as_often_as_it_says(power, delta):
    coverage, width = coverage_of_rows(power, delta, 80, 400)
    assert coverage >= 1 - delta
    assert width < 2**power * 0.35


@pytest.mark.long
@pytest.mark.parametrize("n_models", [1, 20])
def test_the_interval_of_queries_holds_for_the_best_of_many_models(n_models):
    """Models are noise; the best of them on these queries looks better than it is."""
    rng, delta, held = np.random.default_rng(2), 0.2, 0
    qid, y = np.repeat(np.arange(30), 4), np.tile([0, 0, 1, 2], 30)
    for _ in range(200):
        bounds = [
            kpartite_interval(rng.normal(size=120), y, qid, delta=delta, n_models=n_models) for _ in range(n_models)
        ]
        best = min(bounds, key=lambda bound: bound.error)
        held += best.low <= 0.5 <= best.high
    assert held / 200 >= 1 - delta


def test_dependent_rows_need_queries():
    """Rows of a query share what is wrong with them: taken for independent ones, the interval is too narrow."""
    rng, rows, queries = np.random.default_rng(3), 0, 0
    qid, y = np.repeat(np.arange(20), 40), np.tile([0, 1], 400)
    for _ in range(200):
        # of every query, a ranker gets all right or all wrong
        signs = np.where(rng.random(20) < 0.5, 1, -1)[qid]
        scores = signs * y
        queries += (lambda b: b.low <= 0.5 <= b.high)(kpartite_interval(scores, y, qid, delta=0.1))
        rows += (lambda b: b.low <= 0.5 <= b.high)(kpartite_interval(scores, y, delta=0.1))
    assert queries / 200 >= 0.9 > rows / 200


@pytest.mark.long
def test_linear_rankers_against_the_paper():
    y, d, delta = np.repeat([0, 1, 2], [40, 30, 30]), 3, 0.05
    bound = linear_class(RNG.normal(size=100), y, n_features=d, power=1.0, delta=delta)
    _, _, squares = brute(np.zeros(100), y, 1.0)
    n = [80, 60, 60]
    paper = sum(d * math.log(2 * math.e * n[a] * n[b] / d) for a, b in combinations(range(3), 2))
    log_r = dict(bound.parts)["ln r"]
    assert 0 < log_r < paper
    assert dict(bound.parts)["width"] == pytest.approx(math.sqrt(8 * (log_r + math.log(4 / delta)) * squares))
    assert bound.vacuous
    assert "vacuous" in repr(bound)
    many = np.arange(4_000_000) % 2
    assert not linear_class(many, many, n_features=2).vacuous


@pytest.mark.parametrize(("n_pairs", "d"), [(1, 1), (4, 2), (5, 3), (3, 7), (400, 5)])
def test_orders_are_counted(n_pairs, d):
    exact = sum(math.comb(n_pairs, j) * 2**j for j in range(min(d, n_pairs) + 1))
    assert log_orders(n_pairs, d) == pytest.approx(math.log(exact))
    if n_pairs >= d:
        assert log_orders(n_pairs, d) <= d * math.log(2 * math.e * n_pairs / d) + 1e-9
    else:
        assert log_orders(n_pairs, d) == pytest.approx(n_pairs * math.log(3))


def test_linear_rankers_make_no_more_orders_than_counted():
    X = RNG.normal(size=(5, 2))
    pairs = list(combinations(range(5), 2))
    angles = np.linspace(0, 2 * np.pi, 20001)
    W = np.stack([np.cos(angles), np.sin(angles)])
    seen = {tuple(column) for column in np.sign(np.array([X[i] - X[j] for i, j in pairs]) @ W).T}
    assert len(seen) <= math.exp(log_orders(len(pairs), 2))


def test_a_bound_prints_its_interval_and_assumptions():
    y = np.repeat([0, 1], 200)
    good, poor, none = (kpartite_interval(s, y) for s in (y, RNG.normal(size=400), -y))
    assert (good.verdict, good.low, good.vacuous) == ("", 0.0, False)
    assert poor.verdict == "a random order is not excluded"
    assert (none.error, none.high, none.verdict) == (1.0, 1.0, "")
    one = kpartite_interval([1, 2], [0, 1], [7, 7])
    assert one.verdict == "a random order is not excluded"
    one = kpartite_interval([1, 2], [0, 1])
    assert one.vacuous
    assert one.verdict in repr(one)
    assert all(len(line) <= 88 for line in repr(one).splitlines())
    assert "<strong>vacuous" in one._repr_html_()
    with pytest.raises(AttributeError):
        good.low = 0.3
    assert isinstance(good, Bound)


def test_single_precision_and_lists():
    y = RNG.integers(0, 3, 50)
    scores = RNG.normal(size=50).astype(np.float32)
    assert kpartite_interval(scores.tolist(), y.tolist()) == kpartite_interval(scores, y)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"delta": 0.0}, "delta is 0.0; pass a number above 0 and below 1"),
        ({"delta": 1}, "delta is 1; pass a number above 0 and below 1"),
        ({"power": -1}, "power is -1; pass a number of at least 0"),
        ({"n_models": 0}, "n_models is 0; pass a whole number of at least 1"),
        ({"y": [1, 1, 1]}, "no two of the 3 judged rows of a query have different grades"),
        ({"y": [1, np.nan, np.nan]}, "no two of the 1 judged rows"),
        ({"y": [np.nan] * 3}, "no two of the 0 judged rows"),
        ({"qid": [1, 2, 3]}, "no two of the 3 judged rows of a query have different grades"),
        ({"y": [0, 1]}, "y has 2 grades and scores has 3 numbers"),
        ({"scores": [0, 1, np.nan]}, "scores is NaN at row 2"),
        ({"y": [0, 1e200, 0], "power": 2}, "differences of grades of up to 1e.200 overflow"),
    ],
)
def test_what_cannot_be_bounded_gets_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        kpartite_interval(**{"scores": [0, 1, 2], "y": [0, 1, 2], **given})


def test_classes_check_their_parameters():
    for bad, given in product([0, 2.5, True], ["n_features"]):
        with pytest.raises(InputError, match=f"{given} is {bad}; pass a whole number of at least 1"):
            linear_class([0, 1], [0, 1], **{given: bad})
    with pytest.raises(InputError, match="n_models is 0"):
        finite_class([0, 1], [0, 1], n_models=0)
