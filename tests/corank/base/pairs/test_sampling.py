"""Every distribution of PairSampler against probabilities enumerated pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corank.base.pairs.sampling import PairSampler
from corank.core.pairs.sampling import draw_pairs
from corank.core.random import seed_state
from corank.data.ranking import RankingData
from corank.errors import InputError

NAN = float("nan")
# two grades, three grades with ties, one grade, one row, all unscored, scores that are real numbers
QID = np.array([3, 1, 1, 3, 1, 2, 2, 1, 4, 3, 5, 5, 5, 1, 6, 6, 6, 6, 3])
Y = np.array([0, 1, 0, 1, 2, 1, 1, 1, 3, NAN, NAN, NAN, NAN, NAN, -0.5, 0.25, 7.5, 0.3, NAN])


LAWS = [("pairs", "pairs"), ("equal", "pairs"), ("rows", "pairs"), ("pairs", "rows")]
laws = pytest.mark.parametrize(("query_weight", "draw"), LAWS)


def problem(y=Y, qid=QID, w=None):
    return RankingData.of(np.zeros((len(y), 1)), y, qid, w)


def enumerated(y, qid, query_weight, draw="pairs", unscored=False, differences=False, w=None):
    """Probability of each unordered pair, by the words of the definition."""
    n = len(y)
    w = np.ones(n) if w is None else np.asarray(w, dtype=float)
    weight = np.zeros((n, n))
    for a, b in combinations(range(n), 2):
        together = np.isnan(y[a]) and np.isnan(y[b]) if unscored else abs(y[a] - y[b]) > 0
        if qid[a] == qid[b] and together:
            weight[a, b] = weight[b, a] = w[a] * w[b] * (abs(y[a] - y[b]) if differences else 1.0)
    if draw == "rows":
        given_a = np.divide(weight, w[:, None], out=np.zeros_like(weight), where=w[:, None] > 0)
        totals = given_a.sum(axis=1)
        first = np.where(totals > 0, w, 0.0)
        p = first[:, None] * np.divide(given_a, totals[:, None], out=np.zeros_like(given_a), where=given_a > 0)
        return (p + p.T) / max(first.sum(), 1e-300)
    for q in set(qid.tolist()):
        inside = qid == q
        candidates = inside & (np.isnan(y) if unscored else ~np.isnan(y))
        total = {"pairs": 1.0, "equal": weight[inside].sum(), "rows": w[candidates].sum()}[query_weight]
        weight[inside] /= total if total else 1.0
    return weight / max(weight.sum() / 2, 1e-300)


def check(sampler, expected, y, ordered=True, draws=60_000):
    pairs = sampler.draw(draws, np.random.default_rng(5))
    assert pairs.dtype == np.int64
    if ordered:
        assert (y[pairs[:, 0]] > y[pairs[:, 1]]).all()
    n = len(expected)
    counts = np.bincount(pairs.min(axis=1) * n + pairs.max(axis=1), minlength=n * n).reshape(n, n)
    upper = np.triu(np.ones((n, n), dtype=bool), 1)
    possible = upper & (expected > 0)
    assert counts[~possible].sum() == 0
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], draws * expected[possible]).pvalue > 1e-4


@laws
@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scored_pairs_follow_their_law(query_weight, draw, differences, weighted):
    w = np.random.default_rng(0).integers(0, 4, len(Y)) / 3 if weighted else None
    sampler = PairSampler.of(problem(w=w), query_weight, draw, differences=differences)
    check(sampler, enumerated(Y, QID, query_weight, draw, differences=differences, w=w), Y)


@laws
@pytest.mark.parametrize("weighted", [False, True])
def test_unscored_pairs_follow_their_law(query_weight, draw, weighted):
    w = np.arange(1.0, len(Y) + 1) if weighted else None
    sampler = PairSampler.of(problem(w=w), query_weight, draw, unscored=True)
    check(sampler, enumerated(Y, QID, query_weight, draw, unscored=True, w=w), Y, ordered=False)
    first = sampler.draw(4000, np.random.default_rng(1))
    assert 1500 < (first[:, 0] < first[:, 1]).sum() < 2500


PAIRS = np.array([[0, 1], [0, 2], [2, 1], [4, 3], [0, 1]])
PAIR_QID = np.array([0, 0, 0, 1, 1, 1])


@laws
@pytest.mark.parametrize("w", [None, np.array([1.0, 2.0, 0.0, 3.0, 0.5, 1.0])])
@pytest.mark.parametrize("own", [None, np.array([1.0, 3.0, 0.5, 2.0, 4.0])])
def test_given_pairs_follow_their_law(query_weight, draw, w, own):
    data = RankingData.of_pairs(np.zeros((6, 1)), PAIRS, PAIR_QID, w, own)
    weight, pair_weight = np.ones(6) if w is None else w, np.ones(5) if own is None else own
    p = np.array([v * weight[a] * weight[b] for v, (a, b) in zip(pair_weight, PAIRS, strict=True)])
    if draw == "rows":
        q = np.zeros(len(PAIRS))
        for row in range(6):
            mine = [(k, b if a == row else a) for k, (a, b) in enumerate(PAIRS) if row in (a, b)]
            total = sum(pair_weight[k] * weight[other] for k, other in mine)
            for k, other in mine:
                q[k] += weight[row] * pair_weight[k] * weight[other] / total if total else 0.0
        p = q
    elif query_weight != "pairs":
        named = sorted({row for (a, b), v in zip(PAIRS, p, strict=True) if v > 0 for row in (a, b)})
        query = PAIR_QID[PAIRS[:, 0]]
        share = {
            "equal": [2 * p[query == k].sum() for k in range(2)],
            "rows": [sum(weight[row] for row in named if PAIR_QID[row] == k) for k in range(2)],
        }[query_weight]
        p = np.array([v / share[k] for v, k in zip(p, query, strict=True)])
    expected = np.zeros((6, 6))
    np.add.at(expected, (PAIRS.min(axis=1), PAIRS.max(axis=1)), p / p.sum())
    sampler = PairSampler.of(data, query_weight, draw)
    check(sampler, expected, np.zeros(6), ordered=False)
    drawn = set(map(tuple, sampler.draw(500, np.random.default_rng(0)).tolist()))
    assert drawn <= set(map(tuple, PAIRS.tolist()))


def test_beside_preferences_rows_that_none_names_are_unscored():
    data = RankingData.of_pairs(np.zeros((7, 1)), [[0, 1], [2, 1]], np.zeros(7, dtype=int), pair_weights=[1.0, 0.0])
    drawn = PairSampler.of(data, unscored=True).draw(2000, np.random.default_rng(0))
    assert set(drawn.ravel().tolist()) == {2, 3, 4, 5, 6}


def test_queries_without_a_pair_are_counted():
    assert PairSampler.of(problem()).n_skipped_queries == 2  # queries 2 and 4
    assert PairSampler.of(problem(), unscored=True).n_skipped_queries == 1  # query 1 has one unjudged row
    w = np.where(QID == 6, 0.0, 1.0)
    assert PairSampler.of(problem(w=w)).n_skipped_queries == 3


small = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([NAN, -1e300, 0.0, 1.0, 1.0 + 2**-52, 2.5, 1e300])),
    min_size=2, max_size=14,
)  # fmt: skip


@given(small, st.sampled_from(LAWS), st.booleans(), st.booleans())
def test_only_pairs_of_the_problem_are_drawn(table, law, differences, weighted):
    qid, y = np.array([q for q, _ in table]), np.array([v for _, v in table])
    w = np.linspace(0, 1, len(y)) if weighted else None
    data = problem(y, qid, w)
    expected = enumerated(y / 4, qid, *law, w=w) if data.n_pairs else np.zeros((1, 1))
    if not expected.any():
        with pytest.raises(InputError, match=r"pair|NaN"):
            PairSampler.of(data, *law, differences=differences)
        return
    pairs = PairSampler.of(data, *law, differences=differences).draw(50, np.random.default_rng(0))
    assert (y[pairs[:, 0]] > y[pairs[:, 1]]).all()
    assert (qid[pairs[:, 0]] == qid[pairs[:, 1]]).all()
    assert w is None or (w[pairs] > 0).all()


@pytest.mark.parametrize("options", [{}, {"differences": True}, {"unscored": True}])
def test_draws_do_not_depend_on_how_calls_are_cut_and_resume_from_the_state(options):
    sampler = PairSampler.of(problem(), **options)
    state = seed_state(np.random.default_rng(9))
    saved = state.copy()
    whole = sampler.draw(1000, state)
    parts = [sampler.draw(n, saved) for n in (1, 256, 300, 443)]
    assert (np.concatenate(parts) == whole).all()
    assert (state == saved).all()
    buffer = np.empty((5, 2), dtype=np.uint64)
    draw_pairs(seed_state(np.random.default_rng(9)), sampler.index, buffer)
    assert (buffer == whole[:5]).all()


def test_the_largest_scores_do_not_overflow():
    y = np.array([-1.7e308, 1.7e308, 0.0])
    sampler = PairSampler.of(problem(y, np.zeros(3, dtype=int)), differences=True)
    check(sampler, np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0]]) / 4, y)


def test_a_large_query_does_not_overflow():
    n = 531_049
    y = np.arange(n) % 5.0
    sampler = PairSampler.of(problem(y, np.zeros(n, dtype=int)))
    pairs = sampler.draw(20_000, np.random.default_rng(0))
    assert (y[pairs[:, 0]] > y[pairs[:, 1]]).all()
    # each of the ten pairs of grades is equally likely, to 1/n
    counts = np.bincount((5 * y[pairs[:, 0]] + y[pairs[:, 1]]).astype(int))
    assert stats.chisquare(counts[counts > 0], np.full(10, 2000.0)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query_weight": "query"}, "query_weight is 'query'; choose one of pairs, equal, rows"),
        ({"draw": "row"}, "draw is 'row'; choose one of pairs, rows"),
        (
            {"draw": "rows", "query_weight": "equal"},
            "draw='rows' does not support query weights, but query_weight is 'equal'",
        ),
        ({"unscored": True, "differences": True}, "differences=True needs scores"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        PairSampler.of(problem(), **options)


def test_a_problem_without_pairs_is_refused():
    with pytest.raises(InputError, match="no two of the 2 scored rows"):
        PairSampler.of(problem(np.array([1.0, 1.0]), np.array([0, 0])))
    with pytest.raises(InputError, match="no pair has a positive weight"):
        PairSampler.of(problem(w=(QID == 2) * 1.0))
    with pytest.raises(InputError, match="none of the 3 queries with candidate rows"):
        PairSampler.of(problem(w=(QID == 2) * 1.0), unscored=True)
    with pytest.raises(InputError, match="keep two unjudged rows"):
        PairSampler.of(problem(np.array([1.0, NAN]), np.array([0, 0])), unscored=True)
    with pytest.raises(InputError, match="preference pairs have none"):
        PairSampler.of(RankingData.of_pairs(np.zeros((2, 1)), [[0, 1]]), differences=True)


@pytest.mark.parametrize(("n", "rng", "message"), [(2, 0, "rng is 0; pass a numpy Generator"), (-1, None, "n is -1")])
def test_what_cannot_draw_is_named(n, rng, message):
    sampler = PairSampler.of(RankingData.of(np.zeros((2, 1)), [0, 1]))
    with pytest.raises(InputError, match=message):
        sampler.draw(n, np.random.default_rng(0) if rng is None else rng)
