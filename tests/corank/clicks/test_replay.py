"""Replays of logs: expectations by enumeration, formulas list by list, and refusals."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from corank.clicks import PDGD, PositionBias, estimate_from_clicks, replay
from corank.clicks.estimate import FOLDS
from corank.data.io.clicks import ClickLog
from corank.errors import InputError

F = np.array([0.9, 0.0, -0.4, 0.5])  # scores of the logging ranker
NEW = np.array([0.1, 0.9, 0.2, 0.5])  # its best are 1, 3, 2, 0
WANTED = np.array([0.2, 0.7, 0.4, 0.5])
THETA = np.array([1.0, 0.6, 0.3])
BIAS = PositionBias(THETA, "power")
ROWS = (NEW, ["q"] * 4, list("abcd"))


def all_lists(k):
    """Yield each list of k of four documents, with its log-propensities by the definition of Plackett–Luce."""
    for rows in permutations(range(4), k):
        left, logs = set(range(4)), []
        for row in rows:
            logs.append(F[row] - np.log(sum(np.exp(F[other]) for other in left)))
            left.remove(row)
        yield rows, np.array(logs)


def log_of(lists, clicks, logs, **more):
    n, k = len(lists), len(lists[0])
    return ClickLog.of(
        ["q"] * (n * k), np.array(list("abcd"))[np.concatenate(lists)], np.tile(np.arange(1, k + 1), n),
        np.concatenate(clicks), impression=np.repeat(np.arange(n), k), log_propensity=np.concatenate(logs), **more,
    )  # fmt: skip


def test_sums_over_random_lists_are_unbiased_for_all_documents():
    """The expectation of the estimate over all lists is V, though each list shows three of four documents."""
    rank = 1 + np.argsort(np.argsort(-NEW))
    weight = np.where(rank <= 2, 1 / np.log2(1 + rank), 0.0)
    for method in ("ips", "doubly_robust"):
        total = chance = 0.0
        for rows, logs in all_lists(3):
            # clicks enter linearly: the mean over clicks is the sum of estimates with single clicks
            given = {"bias": BIAS, "metric": "DCG@2", "method": method, "clip": 0.01, "relevance": [0.3, 0.1, 0.8, 0.5]}
            none = estimate_from_clicks(log_of([rows], [[0, 0, 0]], [logs]), *ROWS, **given).value
            value = none
            for place in range(3):
                one = estimate_from_clicks(log_of([rows], [np.eye(3)[place]], [logs]), *ROWS, **given).value
                value += THETA[place] * WANTED[rows[place]] * (one - none)
            total += np.exp(logs.sum()) * value
            chance += np.exp(logs.sum())
        assert chance == pytest.approx(1.0)
        assert total == pytest.approx(weight @ WANTED)


def many_lists(n, k=3, seed=0, click=None):
    rng = np.random.default_rng(seed)
    lists = list(all_lists(k))
    chosen = rng.choice(len(lists), size=n, p=np.exp([logs.sum() for _, logs in lists]))
    rows = np.array([lists[one][0] for one in chosen])
    examined = rng.random(rows.shape) < THETA[:k]
    clicks = examined & (rng.random(rows.shape) < WANTED[rows]) if click is None else click(rows, rng)
    return rows, clicks, np.array([lists[one][1] for one in chosen])


def test_prefix_estimates_by_their_formulas():
    rows, clicks, logs = many_lists(2000)
    log = log_of(list(rows), list(clicks), list(logs))
    best = (1, 3)
    W = np.ones((2000, 2))
    for number, (row, p) in enumerate(zip(rows, logs, strict=True)):
        W[number] = (row[0] == 1) / np.exp(p[0]), (tuple(row[:2]) == best) / np.exp(p[:2].sum())
    c = clicks[:, :2].astype(float)
    found = {
        method: replay(log, *ROWS, metric="clicks@2", method=method)
        for method in ("ips", "self_normalised", "doubly_robust")
    }
    assert found["ips"].new.value == pytest.approx((W * c).sum() / 2000)
    assert found["self_normalised"].new.value == pytest.approx(sum(W[:, j] @ c[:, j] / W[:, j].sum() for j in range(2)))
    robust = np.zeros(2000)
    for fold in range(FOLDS):
        mine = np.arange(2000) % FOLDS == fold
        rate = clicks[~mine].mean(axis=0)
        for j, row in enumerate(best):
            shown = rows[~mine] == row
            q = rate[j] * (1 + (clicks[~mine] & shown).sum()) / (1 + (shown * rate).sum())
            robust[mine] += q + W[mine, j] * (c[mine, j] - q)
    assert found["doubly_robust"].new.value == pytest.approx(robust.mean())
    for one in found.values():
        assert one.old.value == pytest.approx(c.sum(axis=1).mean())
        assert one.difference.value == pytest.approx(one.new.value - one.old.value)
        assert one.new.low < 1.0 * WANTED[1] + 0.6 * WANTED[3] < one.new.high
    gain = (W * c).sum(axis=1) - c.sum(axis=1)
    half = 1.959964 * gain.std(ddof=1) / np.sqrt(2000)
    assert found["ips"].difference.high - found["ips"].difference.value == pytest.approx(half, rel=1e-3)


def test_the_expectation_of_the_doubly_robust_value_does_not_depend_on_the_guess():
    """Σ_j q_j + E Σ_j W_j (c_j − q_j) is V for any q, since E[W_j] is 1: enumerated."""
    best = (1, 3)
    for j in (1, 2):
        mean = sum(np.exp(logs.sum() - logs[:j].sum()) * (rows[:j] == best[:j]) for rows, logs in all_lists(3))
        assert mean == pytest.approx(1.0)


def test_pdgd_logs_what_replay_needs():
    """Lists of PDGD with their log-propensities; users follow the cascade model, and no bias is given."""
    rng, X = np.random.default_rng(1), np.eye(4)
    ranker = PDGD(eta0=0.0, random_state=0).fit(X, F)
    ranker.coef_ = F.copy()
    lists, clicks, logs = [], [], []
    for _ in range(2500):
        impression = ranker.show(X, 3)
        attracted = rng.random(3) < WANTED[impression.rows]
        lists.append(impression.rows)
        clicks.append(attracted & (np.cumsum(attracted) <= 1))  # one click ends the session
        logs.append(impression.log_propensities)
    found = replay(log_of(lists, clicks, logs), *ROWS, metric="clicks@2")
    truth = WANTED[1] + (1 - WANTED[1]) * WANTED[3]
    assert found.new.low <= truth <= found.new.high
    assert found.difference.low > 0.0


def refusal(log, rows=ROWS, **options):
    with pytest.raises(InputError) as caught:
        replay(log, *rows, **options)
    return str(caught.value)


def test_refusals_in_plain_words():
    rows, clicks, logs = many_lists(600)
    log = log_of(list(rows), list(clicks), list(logs))
    replay(log, *ROWS, metric="clicks@1")
    fixed = log_of([[0, 1, 2]] * 600, list(clicks), list(0 * logs))
    assert "lists were not drawn at random" in refusal(fixed)
    assert "of the weight of the new ranking is on documents shown by no list" in refusal(fixed, bias=BIAS)
    assert "not by every list" in refusal(fixed, bias=BIAS, method="ips")
    few = log_of(list(rows[:30]), list(clicks[:30]), list(logs[:30]))
    assert "clicks in 30 lists, and an interval needs at least 50" in refusal(few, metric="clicks@1")
    assert "effective sample size" in refusal(log, metric="clicks@3")
    never = rows[:, 0] != 1
    assert "none of" in refusal(log_of(list(rows[never]), list(clicks[never]), list(logs[never])), metric="clicks@1")
    wrong = log_of(list(rows), list(clicks), [np.log([0.5, 0.5, 0.5])] * 600)
    assert "logged probabilities imply 1" in refusal(wrong, metric="clicks@1")
    assert "logged probabilities imply 1" in refusal(wrong, bias=BIAS)
    unknown = ([1.0, 2.0], ["q"] * 2, ["a", "c"])
    assert "clicks are on documents that the new ranker did not score" in refusal(log, unknown, metric="clicks@1")
    assert "only clicks on the first positions" in refusal(log, metric="DCG@3")
    assert "shows 3 of 4 documents" in refusal(log, metric="clicks@4")
    partial = log_of(list(rows), list(clicks), list(logs), complete=[0] * 1800)
    assert "incomplete lists" in refusal(partial)


def test_hardly_random_lists_are_refused():
    rng, scores = np.random.default_rng(0), np.array([0.0, 4.0, 8.0, 12.0])
    noisy = scores + rng.gumbel(size=(500, 4))
    lists = np.argsort(-noisy, axis=1)[:, :2]
    logs = []
    for one in lists:
        left = scores.copy()
        chances = []
        for row in one:
            chances.append(left[row] - np.logaddexp.reduce(left))
            left[row] = -np.inf
        logs.append(chances)
    clicks = rng.random((500, 2)) < 0.5
    log = log_of(list(lists), list(clicks), list(np.array(logs)))
    said = refusal(log, bias=BIAS)
    assert "hardly random" in said or "logged probabilities imply 1" in said


def test_self_normalised_position_estimates_pair_new_and_old():
    rows, clicks, logs = many_lists(1500, seed=3)
    log = log_of(list(rows), list(clicks), list(logs))
    found = replay(log, *ROWS, metric="DCG@2", method="self_normalised", bias=BIAS)
    alone = estimate_from_clicks(log, *ROWS, metric="DCG@2", method="self_normalised", bias=BIAS, clip=0.01)
    assert found.new == alone
    weights = clicks / THETA
    discount = np.array([1.0, 1 / np.log2(3), 0.0])
    assert found.old.value == pytest.approx((weights * discount).sum() / weights.sum())
    assert found.difference.value == pytest.approx(found.new.value - found.old.value)
    assert found.difference.low < found.difference.value < found.difference.high
