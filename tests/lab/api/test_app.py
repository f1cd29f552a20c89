"""The service over HTTP: what it answers, records and learns."""

from __future__ import annotations

import asyncio
import base64
import json
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from corank import PDGD, AutoRanker, QueryScaler, RankingData, RankSVM, make_ranking
from corank.clicks import simulate_clicks
from corank.clicks.ranker import LISTS
from corank.clicks.simulation import _started
from corank.core.random import random_below, seed_state
from corank.data.rows import with_names
from corank.deploy.persist.files import model_bytes
from corank.parameters import rng_of
from corank_lab.api.app import OPERATIONS
from corank_lab.api.learner import replay
from corank_lab.api.requests import MAX_ITEMS
from corank_lab.api.service import Rules
from helpers.api import ask, online_bytes, running
from helpers.stores import open_new

SHOP = ("shop", "online", online_bytes())


@pytest.fixture
def store(tmp_path):
    with open_new("sqlite", tmp_path) as opened:
        yield opened


@pytest.fixture
def client(store):
    with running(store, models=[SHOP]) as opened:
        yield opened


def state_of(store, name="shop"):
    return bytes(store.read("SELECT state FROM models WHERE name = ? ORDER BY version DESC", name)[0][0])


def test_ranked_lists_and_clicks_are_logged_and_learnt(client, store):
    for seed in range(5):
        answer = client.post("/rank", ask(seed=seed, query="red shoes", user="ann")).json()
        assert (answer["model"], answer["version"], answer["learnt"]) == ("shop", 1, seed)
        assert sorted(one["id"] for one in answer["items"]) == [f"item{at}" for at in range(4)]
        clicked = answer["items"][1]["id"]
        sent = {"impression": answer["impression"], "clicks": [clicked], "final": True, "user": "ann"}
        assert client.post("/feedback?wait=true", sent).json() == {"accepted": 2, "duplicates": 0, "last": 3 * seed + 3}
    (model,) = client.get("/models").json()["models"]
    assert (model["learnt_lists"], model["lists"], model["clicked"]) == (5, 5, 5)
    assert (model["last_learnt_event"], model["is_active"], model["kind"]) == (13, True, "online")
    assert replay(client.service.log)[0] == {"shop/1": state_of(store)}
    event = client.service.log.after(0)[0]
    assert (event.kind, event.person, event.subject) == ("impression", "ann", "shop/1")


class Clicker:
    """A user without compiled code, so that `simulate_clicks` draws clicks as this test does."""

    def clicks(self, grades, rng):
        return rng.random(len(grades)) < np.array([0.1, 0.4, 0.9])[np.minimum(grades, 2)]


def test_learning_over_http_equals_simulate_with_the_same_seed(store):
    problem = make_ranking(12, 9, n_latent=2, features_per_view=3, random_state=0)
    data = RankingData.of(problem.X, np.minimum(problem.y, 2), problem.qid)
    n_lists, k = 25, 5
    curve = simulate_clicks(PDGD(), data, Clicker(), n_lists, k=k, random_state=3)
    (rng,) = rng_of(3).spawn(1)
    ranker = _started(PDGD(), data, rng)
    rngs = np.stack([seed_state(rng), seed_state(rng)])
    user_rng, state = np.random.default_rng(rngs[1]), ranker.run_["rng_state"][LISTS].astype("<u8").tobytes().hex()
    with running(store, models=[("shop", "online", model_bytes(ranker))]) as client:
        for _ in range(n_lists):
            query = int(random_below(rngs[0], len(data.starts) - 1))
            rows = data.queries.order[data.starts[query] : data.starts[query + 1]]
            items = [{"id": str(row), "features": data.X[row].tolist()} for row in rows]
            answer = client.post("/rank", {"items": items, "k": k, "random_state": state}).json()
            state, shown = answer["random_state"], [one["id"] for one in answer["items"]]
            clicked = Clicker().clicks(data.y[[int(one) for one in shown]].astype(int), user_rng)
            clicks = [id for id, is_clicked in zip(shown, clicked, strict=True) if is_clicked]
            sent = {"impression": answer["impression"], "clicks": clicks, "final": True}
            assert client.post("/feedback?wait=true", sent).status_code == 200
        learnt = client.service.registry.model("shop", 1).ranker
    np.testing.assert_array_equal(learnt.coef_, curve.coefs[0])


def test_a_request_that_is_sent_again_gets_the_same_list_and_counts_once(client):
    first = client.post("/rank", ask(id="r1")).json()
    sent = {"impression": "r1", "clicks": [first["items"][2]["id"]], "final": True}
    client.post("/feedback?wait=true", sent)
    assert client.post("/rank", ask(id="r1")).json() == first
    assert client.post("/feedback", sent).json() == {"accepted": 0, "duplicates": 2, "last": 0}
    assert client.get("/models").json()["models"][0]["learnt_lists"] == 1
    assert 'corank_events_total{kind="duplicate"} 3' in client.get("/metrics").text


def test_feedback_after_the_list_was_closed_is_kept_and_counted_as_late(client):
    answer = client.post("/rank", ask()).json()
    client.post("/feedback?wait=true", {"impression": answer["impression"], "final": True})
    late = {"impression": answer["impression"], "item": answer["items"][0]["id"], "action": "purchase"}
    assert client.post("/feedback?wait=true", late).json()["accepted"] == 1
    assert client.post("/feedback?wait=true", {"impression": "nothing", "item": "a"}).json()["accepted"] == 1
    metrics = client.get("/metrics").text
    assert 'corank_learner_feedback{outcome="late"} 1' in metrics
    assert 'corank_learner_feedback{outcome="unknown"} 1' in metrics


def test_lists_are_learnt_after_their_window_without_any_other_event(store):
    with running(store, Rules(window_seconds=0.01), models=[SHOP]) as client:
        client.post("/rank", ask())
        client.wait_for(learnt(client, 2))  # the list, then the tick
        assert client.get("/models").json()["models"][0]["learnt_lists"] == 1


async def learnt(client, number):
    await asyncio.wait_for(asyncio.wrap_future(client.service.learner.reached(number)), 60)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"user": "tester"}, "user"),
        ({"user": "u", "agent": "Googlebot/2.1"}, "bot"),
        ({"user": "seller", "owner": "seller"}, "own item"),
        ({"user": "u", "owner": "seller", "agent": "Firefox"}, None),
        ({"user": "u", "action": "dwell", "seconds": 45}, None),
    ],
)
def test_rules_exclude_bots_testers_and_own_clicks_from_learning_but_keep_the_events(store, event, reason):
    with running(store, Rules(excluded_users=frozenset({"tester"})), models=[SHOP]) as client:
        answer = client.post("/rank", ask()).json()
        sent = {"impression": answer["impression"], "item": answer["items"][2]["id"], **event}
        client.post("/feedback", sent)
        client.post("/feedback?wait=true", {"impression": answer["impression"], "final": True})
        body = json.loads(client.service.log.bodies([2])[2])
        assert body.get("excluded") == reason
        assert client.get("/models").json()["models"][0]["clicked"] == (reason is None)


def test_a_user_with_too_many_events_a_minute_is_a_bot(store, monkeypatch):
    monkeypatch.setattr("corank_lab.api.service.now_ms", lambda: 60_000)
    with running(store, Rules(max_per_minute=3), models=[SHOP]) as client:
        sent = [{"impression": "x", "item": f"i{at}", "user": "u"} for at in range(5)]
        client.post("/feedback", sent)
        assert [bool(event.flag & 4) for event in client.service.log.after(0)] == [False] * 3 + [True] * 2


def test_named_columns_need_names(store):
    problem = make_ranking(8, 6, n_latent=1, features_per_view=1, random_state=0)
    ranker = RankSVM().fit(with_names(problem.X, ["price", "stars"]), problem.y, qid=problem.qid)
    with running(store, models=[("fixed", "fixed", model_bytes(ranker))]) as client:
        items = [
            {"id": "a", "features": {"stars": 1.0, "price": 2.0}},
            {"id": "b", "features": {"stars": 3.0, "price": 0.5}},
        ]
        answer = client.post("/rank", {"items": items}).json()
        scores = {one["id"]: one["score"] for one in answer["items"]}
        expected = ranker.predict(with_names(np.array([[2.0, 1.0], [0.5, 3.0]]), ["price", "stars"]))
        assert scores == {"a": expected[0], "b": expected[1]}
        assert [one["id"] for one in answer["items"]] == (["a", "b"] if expected[0] > expected[1] else ["b", "a"])
        refused = client.post("/rank", {"items": ["a", "c"]})
        assert refused.status_code == 422
        assert "the item 'a' has no features" in refused.json()["error"]
        refused = client.post("/rank", {"items": [{"id": "x", "features": {"price": 1}}]})
        assert "has no feature 'stars'" in refused.json()["error"]


def test_a_prior_is_used_and_required_by_a_model_that_has_one(store):
    with running(store, models=[("shop", "online", online_bytes(2, prior=True))]) as client:
        items = [{"id": f"i{at}", "features": [0, 0], "prior": 50.0 * at} for at in range(3)]
        answer = client.post("/rank", {"items": items}).json()
        assert [one["id"] for one in answer["items"]] == ["i2", "i1", "i0"]
        del items[1]["prior"]
        refused = client.post("/rank", {"items": items})
        assert (refused.status_code, "prior of the item 'i1' is missing" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize("has_pipeline", [False, True], ids=["ranker", "pipeline"])
def test_the_items_of_a_request_are_a_query_of_a_model_that_sees_ranks(store, has_pipeline):
    problem = make_ranking(20, 8, n_latent=2, features_per_view=2, random_state=0)
    model = AutoRanker(candidates=["ranks"], random_state=0)
    model = make_pipeline(QueryScaler(), model) if has_pipeline else model
    with config_context(enable_metadata_routing=True):
        model.fit(problem.X, problem.y, qid=problem.qid)
        rows = problem.X[problem.qid == problem.qid[0]]
        expected = model.predict(rows, qid=np.zeros(8))
    assert np.ptp(expected) > 0.0
    with running(store, models=[("shop", "fixed", model_bytes(model))]) as client:
        items = [{"id": str(i), "features": list(row)} for i, row in enumerate(rows)]
        answer = client.post("/rank", {"items": items}).json()["items"]
    scores = {item["id"]: item["score"] for item in answer}
    np.testing.assert_allclose([scores[str(i)] for i in range(8)], expected, rtol=1e-12)


def test_a_packed_matrix_gives_the_same_list_as_numbers(client):
    plain = ask(id="one")
    X = np.array([one["features"] for one in plain["items"]])
    packed = {"items": [one["id"] for one in plain["items"]], "id": "two", "random_state": "01" * 32}
    plain["random_state"] = packed["random_state"]
    expected = client.post("/rank", plain).json()["items"]
    for id, kind in (("two", "float64"), ("three", "float32")):
        packed |= {"id": id, "features": {kind: base64.b64encode(X.astype(kind).tobytes()).decode()}}
        assert client.post("/rank", packed).json()["items"] == expected
    np.testing.assert_array_equal(client.service.log.arrays([2])[2]["X"], X)
    for bad in ({"float32": "AAAA"}, {"float64": "?"}, {"float16": ""}, {}, {"float64": "AAAAAAAA8H8=" * 12}):
        assert client.post("/rank", {**packed, "features": bad}).status_code == 422


def test_versions_are_activated(client):
    service = client.service
    assert service.registry.add("shop", "online", online_bytes(3, PDGD(0.5, random_state=1)), {}) == 2
    assert client.post("/rank", ask()).json()["version"] == 1
    assert client.post("/models/shop/activate", {"version": 2}).json() == {"model": "shop", "version": 2}
    assert client.post("/rank", ask()).json()["version"] == 2
    assert "has no version 7" in client.post("/models/shop/activate", {"version": 7}).json()["error"]
    assert client.post("/models/none/activate", {"version": 1}).status_code == 422


BAD = [
    ("/rank", {}, "items"),
    ("/rank", [], "the body is refused"),
    ("/rank", {"items": [{"id": "a", "features": [1, 2]}]}, "item number 1 has 2 features; send 3 numbers"),
    ("/rank", {"items": [{"id": "a", "features": [1, 2, "x"]}]}, "items[0].features[2] is refused"),
    ("/rank", {"items": [{"id": "a", "features": [1, 2, None]}]}, "items[0].features[2] is refused"),
    ("/rank", {"items": [{"id": "a", "features": [1, 2, 10**400]}]}, "items[0].features[2] is refused"),
    ("/rank", {"items": ["a", "a"]}, "the item 'a' occurs twice"),
    ("/rank", {"items": [{"id": 7}]}, "items[0].id is refused"),
    ("/rank", {"items": [{"id": "x" * 201}]}, "items[0].id is refused"),
    ("/rank", {"items": [{"id": "a\x00"}]}, "NUL character"),
    ("/rank", {"items": ["a"] * (MAX_ITEMS + 1)}, "items is refused"),
    ("/rank", {**ask(), "k": 0}, "k is refused"),
    ("/rank", {**ask(), "k": True}, "k is refused"),
    ("/rank", {**ask(), "k": 1.5}, "k is refused"),
    ("/rank", {**ask(), "model": "other"}, "there is no model 'other'"),
    ("/rank", {**ask(), "random_state": "00" * 32}, "random_state must be 64 hexadecimal digits"),
    ("/feedback", {"item": "a"}, "impression"),
    ("/feedback", {"impression": "a", "clicks": [1]}, "[0].clicks[0] is refused"),
    ("/feedback", {"impression": "a", "item": "b", "seconds": -1}, "[0].seconds is refused"),
    ("/feedback", {"impression": "a", "item": "b", "final": 1}, "[0].final is refused"),
    ("/feedback", [], "the request has 0 events"),
    ("/rank", {"items": [{"id": "a"}]}, "features"),
]


@pytest.mark.parametrize(("path", "value", "sentence"), BAD)
def test_bad_input_is_one_sentence(client, path, value, sentence):
    answer = client.post(path, value)
    assert answer.status_code == 422, answer.text
    assert sentence in answer.json()["error"]
    assert client.service.log.last_number() == 0


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"a":' * 100_000, b'{"items": ["a"]} x', b'{"items": [NaN]}', b'{"\xff": 1}']
)
def test_a_body_that_is_not_json_is_refused(client, content):
    answer = client.send("POST", "/rank", content=content)
    assert answer.status_code == 400
    assert "is not JSON" in answer.json()["error"]


def test_keys_need_the_right_scope(store):
    with running(store, models=[SHOP]) as client:
        keys = {scope: client.app.keys.add(scope, [scope]) for scope in ("rank", "feedback", "admin")}
        client.app.keys.refresh()
        for one in OPERATIONS:
            path = one.path.replace("{name}", "shop")
            body = {"json": {"source": "none"}} if one.method == "POST" else {}
            without = client.send(one.method, path, headers={}, **body).status_code
            assert (without == 401) == bool(one.scope), one.path
            for scope, key in keys.items():
                status = client.send(one.method, path, headers={"authorization": f"Bearer {key}"}, **body).status_code
                is_allowed = one.scope in ("", "any", scope) or scope == "admin"
                assert (status != 403) == is_allowed, (one.path, scope, status)
        wrong = keys["rank"][:-1] + ("a" if keys["rank"][-1] != "a" else "b")
        assert client.get("/models", headers={"authorization": f"Bearer {wrong}"}).status_code == 401
        stored = str(store.read("SELECT * FROM api_keys"))
        assert not any(key.partition(".")[2] in stored for key in keys.values())
        client.app.keys.revoke(keys["rank"].partition(".")[0])
        assert client.get("/models", headers={"authorization": f"Bearer {keys['rank']}"}).status_code == 401


def test_full_queues_large_bodies_and_fast_keys_are_refused_before_anything_is_stored(store, monkeypatch):
    monkeypatch.setattr("corank_lab.api.app.MAX_WAITING", 0)
    with running(store, models=[SHOP]) as client:
        for path, value in (("/rank", ask()), ("/feedback", {"impression": "a", "item": "b"})):
            answer = client.post(path, value)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert client.get("/readyz").status_code == 503
        assert client.send("POST", "/rank", content=b" " * (9 << 20)).status_code == 413
        assert client.service.log.last_number() == 0
    monkeypatch.setattr("corank_lab.api.app.MAX_WAITING", 9)
    with running(store, rate=1.0) as client:
        statuses = [client.post("/rank", ask()).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]


def test_the_description_names_every_address(client):
    described = client.get("/openapi.json").json()
    assert {(method.upper(), path) for path, found in described["paths"].items() for method in found} == {
        (one.method, one.path) for one in OPERATIONS
    }
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described))
    assert set(names) == set(described["components"]["schemas"]) >= {"RankRequest", "Feedback"}
    assert client.get("/").status_code == 404
    assert client.get("/healthz", headers={}).json() == {"status": "ok"}
    assert client.get("/nothing").status_code == 404
    assert client.get("/rank").status_code == 405
