"""What `Ranker` does for every ranker: preferences teach, columns have no unit, unlikely input is warned of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from corank.base import Calibrated
from corank.data.io.stores import open_store, write_store
from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError, UsageWarning
from corank.models.gp import OrdinalGP, PreferenceGP
from helpers.estimators import LAWFUL, over

PROBLEM = make_ranking(12, (2, 9), random_state=3)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
PAIRS = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])

every = over()
taking_pairs = over(lambda model: model._learns_from_differences)


@taking_pairs
def test_preferences_teach_an_order(make):
    model = make().fit(X, pairs=PAIRS, qid=QID)
    assert model.score(X, PROBLEM.y, qid=QID) > 0.6
    np.testing.assert_array_equal(model.predict(X), make().fit(RankingData.of_pairs(X, PAIRS, QID)).predict(X))


@taking_pairs
def test_a_preference_of_weight_two_is_the_preference_twice(make):
    weights = np.random.default_rng(0).integers(0, 3, len(PAIRS))
    one = make().fit(X, pairs=PAIRS, qid=QID, pair_weight=weights).predict(X)
    other = make().fit(X, pairs=np.repeat(PAIRS, weights, axis=0), qid=QID).predict(X)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@taking_pairs
def test_pairs_come_without_scores_and_weights_with_pairs(make):
    with pytest.raises(InputError, match="y and pairs were both given"):
        make().fit(X, Y, pairs=PAIRS, qid=QID)
    with pytest.raises(InputError, match="pair_weight was passed, but pairs was not"):
        make().fit(X, Y, qid=QID, pair_weight=np.ones(len(PAIRS)))
    with pytest.raises(InputError, match=r"pair_weight has shape \(3,\) for \d+ pairs"):
        make().fit(X, pairs=PAIRS, qid=QID, pair_weight=np.ones(3))


@every
def test_columns_have_no_unit(make):
    if not getattr(make(), "scale", False):
        pytest.skip("this ranker does not scale columns")
    units = 10.0 ** np.random.default_rng(0).integers(-6, 7, X.shape[1])
    one = make().fit(X, Y, qid=QID).predict(X)
    other = make().fit(X * units, Y, qid=QID).predict(X * units)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@every
def test_scaled_columns_are_columns_that_were_scaled_before(make):
    if not getattr(make(), "scale", False):
        pytest.skip("this ranker does not scale columns")
    model = make().fit(X * 7.0, Y, qid=QID)
    by_hand = make().set_params(scale=False).fit(X * 7.0 * model.column_scale_, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), by_hand.predict(X * model.column_scale_), rtol=1e-6, atol=1e-8)


@every
def test_a_store_teaches_what_arrays_teach(make, tmp_path):
    write_store(tmp_path / "store", X, Y, QID)
    one = make().fit(X, Y, qid=QID).predict(X)
    np.testing.assert_array_equal(one, make().fit(open_store(tmp_path / "store").data).predict(X))


@every
def test_many_graded_rows_without_query_ids_are_asked_about(make):
    if isinstance(make(), Calibrated):
        pytest.skip("its ranker speaks for itself")
    if isinstance(make(), OrdinalGP):
        pytest.skip("it learns from grades, which need no queries")
    if isinstance(make(), PreferenceGP):
        pytest.skip("a process of all pairs of 120 rows takes ten seconds")
    many = make_ranking(10, 12, random_state=0)
    with pytest.warns(UsageWarning, match="qid was not given, so all 120 rows are") as caught:
        make().fit(many.X, many.y)
    assert {warning.filename for warning in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UsageWarning)
        y = mask_scores(many.y, fraction=0.5, random_state=0)
        make().fit(many.X, y, qid=np.zeros(len(many.y)))
        make().fit(many.X, np.where(np.isnan(y), y, np.arange(len(y))))


@pytest.mark.parametrize("name", ["LCRA", "CoRankRLS", "CoRankingPursuit"])
def test_views_with_nothing_to_agree_on_say_so(name):
    make = LAWFUL[name]
    with pytest.warns(UsageWarning, match="coupling is") as caught:
        make().set_params(coupling=0.5).fit(X, PROBLEM.y, qid=QID)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UsageWarning)
        make().set_params(coupling=0.0).fit(X, PROBLEM.y, qid=QID)
        make().set_params(coupling=0.5).fit(X, Y, qid=QID)
        # with preferences, rows in none of them are unscored
        named = np.isin(QID, np.unique(QID)[:6])[PAIRS[:, 0]]
        make().set_params(coupling=0.5).fit(X, pairs=PAIRS[named], qid=QID)
