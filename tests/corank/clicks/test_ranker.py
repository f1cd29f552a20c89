"""show and learn: an impression carries everything that learning from its clicks needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import corank
from corank.clicks import PDGD, PairwiseEpsilonGreedy
from corank.clicks import ranker as module
from corank.data.synthetic import make_ranking
from corank.errors import InputError

PROBLEM = make_ranking(20, (2, 15), random_state=0)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
MODELS = {
    "PDGD": lambda: PDGD(random_state=0),
    "PairwiseEpsilonGreedy": lambda: PairwiseEpsilonGreedy(0.5, eta0=0.01, random_state=0),
}
every = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def rows_of(query):
    return np.flatnonzero(query == QID)


def clicks_on(impression, query, rng):
    return rng.random(len(impression)) < Y[rows_of(query)][impression.rows] / 4


def served(model, n, rng, k=6):
    """Show n lists, without learning."""
    queries = rng.integers(20, size=n)
    shown = [model.show(X[rows_of(q)], k) for q in queries]
    return [(one, clicks_on(one, q, rng)) for one, q in zip(shown, queries, strict=True)]


@every
def test_a_list_holds_different_rows_and_their_chances(make):
    model, rng = make(), np.random.default_rng(1)
    for query in range(20):
        impression = model.show(X[rows_of(query)], 6)
        assert len(impression) == min(6, len(rows_of(query))) == len(set(impression.rows.tolist()))
        assert (impression.log_propensities <= 1e-12).all()
        assert impression.version == model.n_learnt_ == query
        np.testing.assert_allclose(impression.scores, model.predict(X[rows_of(query)]), atol=1e-12)
        with pytest.raises(ValueError, match="read-only"):
            impression.rows[0] = 1
        model.learn(impression, clicks_on(impression, query, rng))
    assert model.coef_.any()


@every
def test_a_list_that_comes_twice_is_learnt_once(make):
    model = make()
    one = served(model, 1, np.random.default_rng(3))[0]
    other = served(model, 1, np.random.default_rng(4))[0]
    model.learn(one[0], [True] + [False] * (len(one[0]) - 1)).learn(*other)
    kept = model.coef_
    model.learn(one[0], [True] * len(one[0])).learn(*one)
    np.testing.assert_array_equal(model.coef_, kept)
    assert (model.n_learnt_, model.n_ignored_) == (2, 2)


def test_the_order_in_which_clicks_come_does_not_matter():
    events = served(MODELS["PDGD"](), 30, np.random.default_rng(5))
    one, other = MODELS["PDGD"](), MODELS["PDGD"]()
    for event in events:
        one.learn(*event)
    for at in np.random.default_rng(6).permutation(30):
        other.learn(*events[at])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-10, atol=1e-14)
    assert one.coef_.any()


@every
def test_lost_clicks_leave_nothing_behind(make):
    """Lists without clicks advance the random generator, and change nothing else."""
    one, other = make(), make()
    events = served(one, 10, np.random.default_rng(7))
    size = len(corank.deploy.persist.codec.encode_estimator(one, "", {})["state"])
    assert one.n_learnt_ == 0
    for event in events[5:]:
        one.learn(*event)
        other.learn(*event)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert len(corank.deploy.persist.codec.encode_estimator(one, "", {})["state"]) == size


def test_a_list_older_than_the_memory_is_too_late(monkeypatch):
    monkeypatch.setattr(module, "MEMORY", 4)
    model = PDGD(random_state=0)
    events = served(model, 12, np.random.default_rng(8))
    for event in events[:5]:
        model.learn(*event)
    kept = model.coef_
    # all were drawn by version 0: the ids of the last four are known, the first is too old
    for event in events:
        model.learn(*event)
    np.testing.assert_array_equal(model.coef_, kept)
    assert (model.n_learnt_, model.n_ignored_) == (5, 12)
    assert len(model.run_["ids"]) == 4
    fresh = served(model, 1, np.random.default_rng(9))[0]
    assert model.learn(*fresh).n_learnt_ == 6


@every
def test_a_saved_ranker_goes_on_bit_for_bit(make, tmp_path):
    model, rng = make(), np.random.default_rng(2)
    for event in served(model, 5, rng):
        model.learn(*event)
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    for query in (3, 4, 3):
        one, other = model.show(X[rows_of(query)]), again.show(X[rows_of(query)])
        np.testing.assert_array_equal(one.rows, other.rows)
        assert one.id == other.id
        clicks = np.arange(len(one)) % 2 == 0
        np.testing.assert_array_equal(model.learn(one, clicks).coef_, again.learn(other, clicks).coef_)
    # the files are equal too: a service can compare models by their bytes
    for name, one_model in (("one", model), ("other", again)):
        corank.save(one_model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    # what one showed, the other knows
    assert again.learn(one, clicks).n_ignored_ == model.n_ignored_ + 1


def test_servers_with_their_own_generators_show_other_lists():
    model = PDGD(random_state=0).fit(X, Y, qid=QID)
    kept = model.run_["rng_state"].copy()
    one, other = (model.show(X[:10], rng=np.random.default_rng(seed)) for seed in (1, 2))
    assert one.id != other.id
    assert one.rows.tolist() != other.rows.tolist()
    np.testing.assert_array_equal(model.run_["rng_state"], kept)
    again = model.show(X[:10], rng=np.random.default_rng(1))
    assert (again.id, again.rows.tolist()) == (one.id, one.rows.tolist())


@every
def test_rows_of_any_kind_teach_the_same(make):
    query = rows_of(2)
    frame = pd.DataFrame(X[query], columns=[f"c{j}" for j in range(20)])
    found = []
    for rows in (X[query], sparse.csr_array(X[query]), frame, X[query].tolist()):
        model = make()
        impression = model.show(rows, 4)
        found.append(model.learn(impression, [True] + [False] * (len(impression) - 1)).coef_)
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=1e-12, atol=1e-15)


@every
def test_a_prior_orders_rows_before_anything_is_learnt(make):
    prior = np.zeros(len(rows_of(2)))
    prior[3] = 1e4
    model = make()
    impression = model.show(X[rows_of(2)], 3, prior=prior)
    assert model.has_prior_
    with pytest.raises(InputError, match="prior is missing"):
        model.show(X[rows_of(2)])
    with pytest.raises(InputError, match="prior is missing"):
        model.predict(X)
    model.learn(impression, np.arange(len(impression)) == 0)
    assert model.rank(X[rows_of(2)], prior=prior)[3] == 1
    plain = make()
    plain.show(X[:5])
    with pytest.raises(InputError, match="prior was given"):
        plain.show(X[:5], prior=np.zeros(5))


@every
def test_fit_starts_anew_and_clicks_go_on_from_it(make):
    model = make()
    for event in served(model, 5, np.random.default_rng(0)):
        model.learn(*event)
    model.fit(X, Y, qid=QID)
    assert model.n_learnt_ == 0
    assert model.score(X, Y, qid=QID) > 0.8
    start = model.coef_
    for event in served(model, 20, np.random.default_rng(0)):
        model.learn(*event)
    assert model.n_learnt_ == 20
    assert 0.0 < np.abs(model.coef_ - start).max() < 1.0


@every
def test_nothing_clicked_and_everything_clicked(make):
    model = make().fit(X, Y, qid=QID)
    coef = model.coef_
    nothing, everything = (model.show(X[rows_of(2)]) for _ in range(2))
    model.learn(nothing, np.zeros(len(nothing)))
    np.testing.assert_array_equal(model.coef_, coef)
    assert np.isfinite(model.learn(everything, np.ones(len(everything))).coef_).all()
    assert model.n_learnt_ == 2


@every
def test_a_query_of_one_row(make):
    model = make()
    impression = model.show(X[:1])
    assert impression.rows.tolist() == [0]
    assert impression.log_propensities == pytest.approx([0.0])
    assert not model.learn(impression, [True]).coef_.any()


@every
def test_how_often_a_row_was_clicked_does_not_matter(make):
    one, other = make(), make()
    shown = [model.show(X[rows_of(2)], 4) for model in (one, other)]
    np.testing.assert_array_equal(one.learn(shown[0], [0, 3, 0, 1]).coef_, other.learn(shown[1], [0, 1, 0, 1]).coef_)


@every
@pytest.mark.parametrize(
    ("clicks", "sentence"),
    [
        ([True], r"clicks has shape \(1,\) .* for a list of 4 rows; pass for each rank"),
        ([0, -1, 0, 0], "clicks holds a number below 0 or NaN"),
        ([0, np.nan, 0, 0], "clicks holds a number below 0 or NaN"),
        (["a", "b", "c", "d"], "clicks has shape .* and type .*; pass for each rank"),
    ],
)
def test_bad_clicks_get_one_sentence_and_change_nothing(make, clicks, sentence):
    model = make()
    impression = model.show(X[rows_of(2)], 4)
    with pytest.raises(InputError, match=sentence):
        model.learn(impression, clicks)
    assert model.n_learnt_ == 0
    assert not model.coef_.any()


def test_bad_calls_get_one_sentence():
    model = PDGD(random_state=0)
    with pytest.raises(InputError, match="k is 0; pass a whole number of at least 1"):
        model.show(X[:3], 0)
    assert not hasattr(model, "run_")
    impression = model.show(X[:3])
    with pytest.raises(ValueError, match="X has 2 features, but PDGD is expecting 20"):
        model.show(X[:3, :2])
    with pytest.raises(InputError, match="the impression has 20 features"):
        PDGD(random_state=0).fit(X[:, :2], Y, qid=QID).learn(impression, [1, 0, 0])
    with pytest.raises(InputError, match="the weights overflow with eta0="):
        model.set_params(eta0=1e308).learn(model.show(1e3 * X[:3]), [1, 0, 0])
    assert model.n_learnt_ == 0


@every
def test_values_outside_the_range_are_neither_shown_nor_learnt(make):
    model = make()
    for scale in (1.1e15, 1e150):
        huge = scale * np.eye(3, X.shape[1])
        for rows in (huge, -huge, sparse.csr_array(huge)):
            with pytest.raises(InputError, match="X holds the value"):
                model.show(rows)
    impression = model.show(np.eye(3, X.shape[1]))
    with pytest.raises(InputError, match="X holds the value 1e"):
        model.learn(replace(impression, X=1e150 * impression.X), [0, 1, 0])
    with pytest.raises(InputError, match="prior holds the value 1e"):
        make().show(X[:3], prior=[0.0, 1e100, 0.0])
    assert model.n_learnt_ == 0
    assert not model.coef_.any()


@pytest.mark.parametrize("make", [PDGD, lambda **given: PairwiseEpsilonGreedy(loss="squared", **given)])
@pytest.mark.parametrize("scale", [1.0, 63.0, 1e4, 1e14])
def test_a_step_is_bounded_by_its_change_of_scores(make, scale):
    """The step is that of the formula, or its multiple that changes a difference of scores by 100."""
    rng = np.random.default_rng(0)
    rows = scale * rng.standard_normal((6, 4))
    model = make(eta0=0.1, random_state=0)
    impression = model.show(rows)
    clicks = np.array([0, 1, 0, 1, 0, 0])
    step = model.learn(impression, clicks).coef_
    change = rows[impression.rows] @ step
    assert max(np.ptp(change), np.linalg.norm(step)) <= 100 * (1 + 1e-9)
    plain = make(eta0=1e-20, random_state=0)
    plain = plain.learn(replace(impression, id=1), clicks).coef_
    np.testing.assert_allclose(step / np.linalg.norm(step), plain / np.linalg.norm(plain), rtol=1e-9)
    if scale == 1.0:
        np.testing.assert_allclose(step, 1e19 * plain, rtol=1e-9)


def test_impressions_say_what_they_are():
    assert repr(PDGD(random_state=0).show(X[:3], 2)).startswith("Impression(2 of 3 rows, version 0, id 0x")
