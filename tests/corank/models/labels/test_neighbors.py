"""NeighborLabelRanker against sums over neighbours one by one, and AutoLabelRanker against the methods it compares."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import corank
from corank.errors import InputError
from corank.models.labels import AutoLabelRanker, LabelPreferences, NeighborLabelRanker, kendall_tau
from corank.models.labels.auto import member_weights
from corank.models.labels.votes import comparisons, nearest, zero_points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
RANKS = np.argsort(np.argsort(np.column_stack([X[:, 0] ** 2, X[:, 1], -X[:, 1], X[:, 2]]), axis=1), axis=1) + 1.0


def brute_utilities(rows, ranks, x, k):
    """The weighted Borda count of the k nearest rows, from all pairs of ranked labels."""
    order = np.argsort([np.sum((x - z) ** 2) for z in rows], kind="stable")[:k]
    d = ranks.shape[1]
    won, compared = np.zeros(d), np.zeros(d)
    total = np.zeros((2, d))
    for i in range(len(rows)):
        for r, s in combinations(range(d), 2):
            if np.isnan(ranks[i, [r, s]]).any():
                continue
            sign = np.sign(ranks[i, s] - ranks[i, r])
            total[:, r] += sign, 1.0
            total[:, s] += -sign, 1.0
            if i in order:
                w = (k - order.tolist().index(i)) / k
                won[r] += w * sign
                won[s] -= w * sign
                compared[[r, s]] += w
    g = total[0] / np.maximum(total[1], 1.0)
    return (won + 0.1 / k * g) / (compared + 0.1 / k)


@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_utilities_are_weighted_borda_counts(hidden):
    ranks = np.where(RNG.random(RANKS.shape) < hidden, np.nan, RANKS)
    model = NeighborLabelRanker(7, "ranks", scale=False).fit(X, ranks)
    for x in RNG.normal(size=(5, 3)):
        np.testing.assert_allclose(model.utilities(x[None])[0], brute_utilities(X, ranks, x, 7), atol=1e-12)


def test_one_neighbour_gives_its_ranking():
    model = NeighborLabelRanker(1, "ranks").fit(X, RANKS)
    np.testing.assert_array_equal(model.predict(X), RANKS)


def test_the_number_of_neighbours_is_best_when_each_row_is_left_out():
    model = NeighborLabelRanker(targets="ranks", scale=False).fit(X, RANKS)
    scores = {}
    for k in (1, 2, 3, 5, 8, 12, 18, 27, 40, 60):
        left_out = []
        for i in range(len(X)):
            others = np.arange(len(X)) != i
            won, compared = comparisons(LabelPreferences.from_ranks(RANKS))
            g = won.sum(axis=0) / compared.sum(axis=0)
            near = np.argsort(np.sum((X[others] - X[i]) ** 2, axis=1))[:k]
            w = (np.arange(k, 0, -1) / k)[:, None]
            sums = [(w * part[others][near]).sum(axis=0) for part in (won, compared)]
            u = (sums[0] + 0.1 / k * g) / (sums[1] + 0.1 / k)
            left_out.append(kendall_tau(RANKS[[i]], -u[None])[0])
        scores[k] = np.mean(left_out)
    assert scores[model.n_neighbors_] == pytest.approx(max(scores.values()), abs=1e-12)


@pytest.mark.parametrize("columns", [3, 20])
def test_neighbours_are_the_nearest_rows(columns):
    rows, queries = RNG.normal(size=(50, columns)), RNG.normal(size=(9, columns))
    expected = np.argsort(((queries[:, None] - rows) ** 2).sum(axis=-1), axis=1)
    for training in (rows, sparse.csr_array(rows)):
        for k in (1, 6, 50):
            found = np.concatenate([numbers for _, numbers in nearest(training, queries, k)])
            np.testing.assert_array_equal(found, expected[:, :k])


def test_the_zero_point_contradicts_the_fewest_votes():
    u, votes = RNG.normal(size=(30, 5)).round(1), RNG.integers(-3, 4, (30, 5)).astype(float)
    zero = zero_points(u, votes)
    agreed = np.where(u > zero[:, None], votes, 0.0).sum(axis=1)
    for row, vote, found in zip(u, votes, agreed, strict=True):
        every = [np.where(row > cut, vote, 0.0).sum() for cut in (*row, row.min() - 1)]
        assert found == pytest.approx(max(every))


def test_the_automatic_choice_averages_what_is_near_the_best(tmp_path):
    model = AutoLabelRanker("ranks", random_state=0).fit(X, RANKS)
    best = max(model.cv_scores_, key=model.cv_scores_.get)
    assert type(model.members_[0]).__name__ == best == "NeighborLabelRanker"
    standard = (X - model.column_mean_) * model.column_scale_
    parts = [member.utilities(standard) / s for member, s in zip(model.members_, model.scales_, strict=True)]
    np.testing.assert_allclose(model.utilities(X), np.mean(parts, axis=0), rtol=1e-12)
    linear = RNG.normal(size=(100, 3))
    ranks = np.argsort(np.argsort(linear, axis=1), axis=1) + 1
    other = AutoLabelRanker("ranks", random_state=0).fit(linear, ranks)
    assert type(other.members_[0]).__name__ in ("CalibratedLabelRanker", "OnlineLabelRanker", "PairwiseLabelRanker")
    for each in (model, other):
        corank.save(each, tmp_path / "model", overwrite=True)
        np.testing.assert_array_equal(corank.load(tmp_path / "model").utilities(X), each.utilities(X))


def test_weights_fall_with_the_distance_from_the_best_in_standard_errors():
    rng = np.random.default_rng(0)
    values = 0.5 + 0.1 * rng.normal(size=(4, 50)) - np.array([0.02, 0.0, 0.03, 0.3])[:, None]
    values[2, 7] = np.nan  # a row whose quality is unknown for one method is left out
    kept = np.delete(values, 7, axis=1)
    best = kept.mean(axis=1).argmax()
    gaps = kept[best] - kept
    unit = np.median([gap.std() / 7.0 for gap in np.delete(gaps, best, axis=0)])
    np.testing.assert_allclose(member_weights(values), np.exp(-3.0 * gaps.mean(axis=1) / unit))
    assert member_weights(np.full((3, 4), np.nan)).tolist() == [1.0, 0.0, 0.0]
    assert member_weights(np.ones((2, 5))).tolist() == [1.0, 1.0]


def test_targets_that_order_nothing_are_refused():
    equal = np.ones((5, 3))
    for model in (NeighborLabelRanker(targets="ranks"), AutoLabelRanker("ranks")):
        with pytest.raises(InputError, match="orders no two labels"):
            model.fit(X[:5], equal)
    with pytest.raises(InputError, match="has one row"):
        AutoLabelRanker("ranks").fit(X[:1], RANKS[:1])
