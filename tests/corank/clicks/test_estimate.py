import numpy as np
import pytest

from corank.clicks import PositionBias, estimate_from_clicks
from corank.data.io.clicks import ClickLog
from corank.errors import InputError
from helpers.clicks import rows_of, show, swapped

THETA = np.array([1.0, 0.6, 0.4, 0.3])
BIAS = PositionBias(THETA, "power")


def worth(metric, rank):
    k = int(metric.split("@")[1])
    return (rank <= k) * (1 / np.log2(1 + rank) if metric.startswith("DCG") else 1 / k)


def of_order(r, scores, worth_of):
    """V by definition: queries are drawn alike."""
    rank = 1 + np.argsort(np.argsort(-scores, axis=1), axis=1)
    return (worth_of(rank) * r).sum(axis=1).mean()


@pytest.mark.long
@pytest.mark.parametrize("method", ["ips", "doubly_robust"])
@pytest.mark.parametrize("metric", ["DCG@3", "P@2", "clicks"])
def test_intervals_cover_the_true_value_at_their_level(method, metric):
    rng = np.random.default_rng(0)
    r, scores = rng.beta(0.5, 1.0, size=(20, 4)), rng.normal(size=(20, 4))
    qid, docids = rows_of(r)
    truth = of_order(
        r, scores, (lambda rank: THETA[rank - 1]) if metric == "clicks" else lambda rank: worth(metric, rank)
    )
    held, widths = 0, []
    for _ in range(120):
        log = show(rng, r, THETA, 400, swapped(rng, 4))
        found = estimate_from_clicks(
            log, scores.ravel(), qid, docids, metric=metric, method=method, bias=BIAS, clip=0.01
        )
        held += found.low <= truth <= found.high
        widths.append(found.high - found.low)
    assert held >= 107  # of 120 at 95 %: fewer happen once in a thousand
    assert np.mean(widths) < truth  # and they say something
    assert found.unseen == 0.0


def test_self_normalised_is_the_mean_worth_of_wanted_documents():
    rng = np.random.default_rng(1)
    r, scores = rng.random((20, 4)), rng.normal(size=(20, 4))
    qid, docids = rows_of(r)
    truth = of_order(r, scores, lambda rank: worth("DCG@4", rank)) / r.sum(axis=1).mean()
    held = 0
    for _ in range(100):
        log = show(rng, r, THETA, 300, swapped(rng, 4))
        found = estimate_from_clicks(
            log, scores.ravel(), qid, docids, metric="DCG@4", method="self_normalised", bias=BIAS, clip=0.01
        )
        held += found.low <= truth <= found.high
    assert held >= 88


def test_doubly_robust_is_steadier_and_speaks_for_what_was_never_shown():
    rng = np.random.default_rng(2)
    r, scores = rng.beta(0.3, 0.6, size=(5, 6)), rng.normal(size=(5, 6))
    qid, docids = rows_of(r)
    log = show(rng, r, THETA, 4000, swapped(rng, 6))  # four of six are shown, the last two seldom
    never = show(rng, r, THETA, 4000, lambda query, number: np.arange(6))
    both = {
        method: estimate_from_clicks(log, scores.ravel(), qid, docids, method=method, bias=BIAS, clip=0.01)
        for method in ("ips", "doubly_robust")
    }
    width = {method: found.high - found.low for method, found in both.items()}
    assert width["doubly_robust"] < width["ips"]
    truth = of_order(r, scores, lambda rank: 1 / np.log2(1 + rank))
    given = estimate_from_clicks(
        never, scores.ravel(), qid, docids, method="doubly_robust", bias=BIAS, relevance=r.ravel(), clip=0.01
    )
    blind = estimate_from_clicks(never, scores.ravel(), qid, docids, bias=BIAS, clip=0.01)
    assert given.unseen == pytest.approx(1 / 3)
    assert given.low <= truth <= given.high
    assert blind.high < truth


def test_impossible_estimates_are_refused():
    log = ClickLog.of(["a", "a"], ["x", "y"], [1, 2], [0, 0])
    rows = ([1.0, 0.0], ["a", "a"], ["x", "y"])
    assert estimate_from_clicks(log, *rows, bias=BIAS).value == 0.0
    with pytest.raises(InputError, match="no row was clicked"):
        estimate_from_clicks(log, *rows, bias=BIAS, method="self_normalised")
    with pytest.raises(InputError, match="metric is 'nDCG'"):
        estimate_from_clicks(log, *rows, bias=BIAS, metric="nDCG")
    with pytest.raises(InputError, match="method is 'dr'"):
        estimate_from_clicks(log, *rows, bias=BIAS, method="dr")
    with pytest.raises(InputError, match="no document of the log is among the rows"):
        estimate_from_clicks(log, [1.0], ["b"], ["x"], bias=BIAS)
    with pytest.raises(InputError, match="not finite at row 1"):
        estimate_from_clicks(log, [1.0, np.nan], *rows[1:], bias=BIAS)
    with pytest.raises(InputError, match="relevance is 2 at row 0"):
        estimate_from_clicks(log, *rows, bias=BIAS, method="doubly_robust", relevance=[2.0, 0.0])


@pytest.mark.parametrize("method", ["ips", "self_normalised", "doubly_robust"])
def test_lists_of_other_queries_do_not_count(method):
    rng = np.random.default_rng(3)
    r, scores = rng.random((6, 4)), rng.normal(size=(6, 4))
    qid, docids = rows_of(r)
    log = show(rng, r, THETA, 300, swapped(rng, 4))
    mine = np.isin(log.qid, ["1", "4"])
    rows = np.isin(qid, [1, 4])
    part = ClickLog.of(log.qid[mine], log.docids[mine], log.position[mine], log.clicked[mine])
    given = {"bias": BIAS, "method": method, "relevance": r.ravel()[rows]}
    found = [estimate_from_clicks(one, scores.ravel()[rows], qid[rows], docids[rows], **given) for one in (log, part)]
    assert found[0] == found[1]


def test_a_list_of_unknown_documents_is_worth_what_is_expected_of_its_query():
    log = ClickLog.of(["a", "a"], ["x", "z"], [1, 1], [1, 0], impression=[0, 1])
    given = {"bias": BIAS, "metric": "P@1", "method": "doubly_robust", "relevance": [0.5, 0.5]}
    # the first list: .5 + (1 - .5) / 1; the second shows nothing that is known
    assert estimate_from_clicks(log, [2.0, 1.0], ["a", "a"], ["x", "y"], **given).value == pytest.approx(0.75)
