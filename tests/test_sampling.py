"""Every law of PairSampler against probabilities enumerated pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corank.core.dice import seed_state
from corank.core.pairs import draw_pairs
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.sampling import PairSampler

NAN = float("nan")
# two grades, three grades with ties, one grade, one row, all unscored, scores that are real numbers
QID = np.array([3, 1, 1, 3, 1, 2, 2, 1, 4, 3, 5, 5, 5, 1, 6, 6, 6, 6, 3])
Y = np.array([0, 1, 0, 1, 2, 1, 1, 1, 3, NAN, NAN, NAN, NAN, NAN, -0.5, 0.25, 7.5, 0.3, NAN])


def problem(y=Y, qid=QID):
    return RankingData.of(np.zeros((len(y), 1)), y, qid)


def enumerated(y, qid, scheme, unscored=False, differences=False, w=None):
    """Probability of each unordered pair, by the words of the definition."""
    n = len(y)
    w = np.ones(n) if w is None else np.asarray(w, dtype=float)
    weight = np.zeros((n, n))
    for a, b in combinations(range(n), 2):
        together = np.isnan(y[a]) and np.isnan(y[b]) if unscored else abs(y[a] - y[b]) > 0
        if qid[a] == qid[b] and together:
            weight[a, b] = weight[b, a] = w[a] * w[b] * (abs(y[a] - y[b]) if differences else 1.0)
    if scheme == "rows":
        given_a = np.divide(weight, w[:, None], out=np.zeros_like(weight), where=w[:, None] > 0)
        totals = given_a.sum(axis=1)
        first = np.where(totals > 0, w, 0.0)
        p = first[:, None] * np.divide(given_a, totals[:, None], out=np.zeros_like(given_a), where=given_a > 0)
        return (p + p.T) / max(first.sum(), 1e-300)
    if scheme == "query":
        for q in set(qid.tolist()):
            inside = qid == q
            total = weight[np.ix_(inside, inside)].sum()
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


@pytest.mark.parametrize("scheme", ["pairs", "query", "rows"])
@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scored_pairs_follow_their_law(scheme, differences, weighted):
    w = np.random.default_rng(0).integers(0, 4, len(Y)) / 3 if weighted else None
    sampler = PairSampler.of(problem(), scheme, differences=differences, weights=w)
    check(sampler, enumerated(Y, QID, scheme, differences=differences, w=w), Y)


@pytest.mark.parametrize("scheme", ["pairs", "query", "rows"])
@pytest.mark.parametrize("weighted", [False, True])
def test_unscored_pairs_follow_their_law(scheme, weighted):
    w = np.arange(1.0, len(Y) + 1) if weighted else None
    sampler = PairSampler.of(problem(), scheme, unscored=True, weights=w)
    check(sampler, enumerated(Y, QID, scheme, unscored=True, w=w), Y, ordered=False)
    first = sampler.draw(4000, np.random.default_rng(1))
    assert 1500 < (first[:, 0] < first[:, 1]).sum() < 2500


PAIRS = np.array([[0, 1], [0, 2], [2, 1], [4, 3], [0, 1]])
PAIR_QID = np.array([0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("scheme", ["pairs", "query", "rows"])
@pytest.mark.parametrize("w", [None, np.array([1.0, 2.0, 0.0, 3.0, 0.5, 1.0])])
def test_given_pairs_follow_their_law(scheme, w):
    data = RankingData.of_pairs(np.zeros((6, 1)), PAIRS, PAIR_QID)
    weight = np.ones(6) if w is None else w
    p = np.array([weight[a] * weight[b] for a, b in PAIRS])
    if scheme == "query":
        inside = PAIR_QID[PAIRS[:, 0]]
        p = np.array([v / p[inside == q].sum() for v, q in zip(p, inside, strict=True)])
    elif scheme == "rows":
        p = np.zeros(len(PAIRS))
        for row in range(6):
            mine = [(k, b if a == row else a) for k, (a, b) in enumerate(PAIRS) if row in (a, b)]
            total = sum(weight[other] for _, other in mine)
            for k, other in mine:
                p[k] += weight[row] * weight[other] / total if total else 0.0
    expected = np.zeros((6, 6))
    np.add.at(expected, (PAIRS.min(axis=1), PAIRS.max(axis=1)), p / p.sum())
    sampler = PairSampler.of(data, scheme, weights=w)
    check(sampler, expected, np.zeros(6), ordered=False)
    drawn = set(map(tuple, sampler.draw(500, np.random.default_rng(0)).tolist()))
    assert drawn <= set(map(tuple, PAIRS.tolist()))


def test_queries_without_a_pair_are_counted():
    assert PairSampler.of(problem()).n_skipped_queries == 2  # queries 2 and 4
    assert PairSampler.of(problem(), unscored=True).n_skipped_queries == 1  # query 1 has one unscored row
    w = np.where(QID == 6, 0.0, 1.0)
    assert PairSampler.of(problem(), weights=w).n_skipped_queries == 3


small = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([NAN, -1e300, 0.0, 1.0, 1.0 + 2**-52, 2.5, 1e300])),
    min_size=2, max_size=14,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(small, st.sampled_from(["pairs", "query", "rows"]), st.booleans(), st.booleans())
def test_only_pairs_of_the_problem_are_drawn(table, scheme, differences, weighted):
    qid, y = np.array([q for q, _ in table]), np.array([v for _, v in table])
    data = problem(y, qid)
    w = np.linspace(0, 1, len(y)) if weighted else None
    expected = enumerated(y / 4, qid, scheme, w=w) if data.n_pairs else np.zeros((1, 1))
    if not expected.any():
        with pytest.raises(InputError, match=r"pair|NaN"):
            PairSampler.of(data, scheme, differences=differences, weights=w)
        return
    pairs = PairSampler.of(data, scheme, differences=differences, weights=w).draw(50, np.random.default_rng(0))
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
        ({"scheme": "pair"}, "scheme is 'pair'; choose one of pairs, query, rows"),
        ({"unscored": True, "differences": True}, "differences=True needs scores"),
        ({"weights": [1.0]}, r"weights has shape \(1,\) for 19 rows"),
        ({"weights": -np.ones(19)}, "weights is -1.0 at row 0"),
        ({"weights": np.full(19, np.inf)}, "weights is inf at row 0"),
        ({"weights": np.zeros(19)}, "weights is zero for all 19 rows"),
        ({"weights": ["a"] * 19}, "weights must hold numbers"),
        ({"weights": (QID == 2) * 1.0}, "none of the 5 queries with candidate rows holds a pair"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        PairSampler.of(problem(), **options)


def test_a_problem_without_pairs_is_refused():
    with pytest.raises(InputError, match="no two of the 2 scored rows"):
        PairSampler.of(problem(np.array([1.0, 1.0]), np.array([0, 0])))
    with pytest.raises(InputError, match="keep two unscored rows"):
        PairSampler.of(problem(np.array([1.0, NAN]), np.array([0, 0])), unscored=True)
    with pytest.raises(InputError, match="preference pairs carry none"):
        PairSampler.of(RankingData.of_pairs(np.zeros((2, 1)), [[0, 1]]), differences=True)


@pytest.mark.parametrize(("n", "rng", "message"), [(2, 0, "rng is 0; pass a numpy Generator"), (-1, None, "n is -1")])
def test_what_cannot_draw_is_named(n, rng, message):
    sampler = PairSampler.of(RankingData.of(np.zeros((2, 1)), [0, 1]))
    with pytest.raises(InputError, match=message):
        sampler.draw(n, np.random.default_rng(0) if rng is None else rng)
