"""ForestLabelRanker against scikit-learn's forest of positions, and against what files may not contain."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import corank
from corank.deploy.persist.check import require_declared
from corank.errors import InputError
from corank.models.labels import ForestLabelRanker, LabelPreferences

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
RANKS = np.argsort(np.argsort(-np.column_stack([X[:, 0] > 0, X[:, 1], X[:, 0] * X[:, 1], X[:, 2]]), axis=1), axis=1) + 1
MODEL = ForestLabelRanker(10, random_state=0).set_params(targets="ranks").fit(X, RANKS)


def test_complete_rankings_give_the_forest_of_positions():
    seed = int(np.random.default_rng(0).integers(1 << 31))
    won = 2.0 * (2.5 - RANKS)  # three comparisons of each label
    forest = RandomForestRegressor(10, min_samples_leaf=2, max_features=0.5, random_state=seed)
    forest.fit(X, np.hstack([won, np.full_like(won, 3.0)]))
    new = RNG.normal(size=(40, 5))
    votes = forest.predict(new)[:, :4]
    expected = (votes + 1e-3 * won.sum(axis=0) / 240) / 3.001
    np.testing.assert_allclose(MODEL.utilities(new), expected, atol=1e-6)
    np.testing.assert_array_equal(MODEL.utilities(new[7:8])[0], MODEL.utilities(new)[7])


def test_sets_have_a_zero_point_and_models_survive_files(tmp_path):
    relevant = (X[:, :3] > 0).astype(int)
    model = ForestLabelRanker(20, random_state=0).fit(X, relevant)
    assert (model.predict(X) == relevant).mean() > 0.9
    corank.save(model, tmp_path / "model")
    np.testing.assert_array_equal(corank.load(tmp_path / "model").utilities(X), model.utilities(X))
    partial = LabelPreferences.from_pairs([[(0, 1)] if x > 0 else [(1, 0)] for x in X[:, 0]], n_labels=3)
    other = ForestLabelRanker(5, random_state=0).fit(X, partial)
    order = other.predict_ranking(X)
    assert np.mean((order[:, 0] < order[:, 1]) == (X[:, 0] > 0)) > 0.9


def test_huge_values_and_forged_trees_are_refused():
    with pytest.raises(InputError, match="single precision"):
        MODEL.predict(np.full((1, 5), 1e39))
    for name, change in (("children_", -1), ("features_", 9), ("starts_", 1)):
        forged = ForestLabelRanker(10, random_state=0, targets="ranks").fit(X, RANKS)
        array = getattr(forged, name).copy()
        array[0] = change
        setattr(forged, name, array)
        with pytest.raises(InputError, match=name):
            require_declared(forged)
