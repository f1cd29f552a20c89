"""Requests that would spoil a model, mix up events or be read in two ways."""

from __future__ import annotations

import json
import socket
import threading

import numpy as np
import pytest
import uvicorn

from corank.clicks import PDGD, PairwiseEpsilonGreedy
from corank.data.inputs import MAX_VALUE
from corank_lab.api.learner import replay
from corank_lab.api.log import CLICK, EXCLUDED
from corank_lab.api.requests import made_id
from corank_lab.pages.app import create_app
from helpers.api import ask, online_bytes, running
from helpers.stores import open_new

SHOP = ("shop", "online", online_bytes())
ONLINE = [PDGD, PairwiseEpsilonGreedy]


@pytest.fixture
def store(tmp_path):
    with open_new("sqlite", tmp_path) as opened:
        yield opened


@pytest.fixture
def client(store):
    with running(store, models=[SHOP]) as opened:
        yield opened


def test_feedback_without_ids_is_told_apart_by_its_parts(client):
    sent = [{"impression": "a", "item": "b/c"}, {"impression": "a/b", "item": "c"}]
    assert client.post("/feedback", sent).json()["accepted"] == 2
    lists = {"impression": "l", "id": "x" * 200, "clicks": ["a", "b"]}
    assert client.post("/feedback", lists).json()["accepted"] == 2
    assert client.post("/feedback", lists).json()["duplicates"] == 2
    other = [{"impression": "l", "id": f"y/{at}", "item": "a"} for at in range(2)]
    assert (
        client.post("/feedback", [*other, {"impression": "l", "id": "y", "clicks": ["a", "b"]}]).json()["accepted"] == 4
    )


def test_feedback_without_an_id_is_not_hidden_by_what_does_not_count(client):
    """A bot's click comes before that of a person, a short dwell before a long one."""
    client.post("/rank", ask(id="r1"))
    sent = [
        {"impression": "r1", "item": "item0", "agent": "Examplebot/1.0"},
        {"impression": "r1", "item": "item0", "agent": "Firefox"},
        {"impression": "r1", "item": "item1", "action": "dwell", "seconds": 5},
        {"impression": "r1", "item": "item1", "action": "dwell", "seconds": 60},
        {"impression": "r1", "item": "item2", "user": "ann", "owner": "ann"},
        {"impression": "r1", "item": "item2", "user": "bob", "owner": "ann"},
    ]
    assert client.post("/feedback", sent).json()["accepted"] == 6
    assert client.post("/feedback", sent).json()["duplicates"] == 6
    flags = [event.flag for event in client.service.log.after(0) if event.kind == "feedback"]
    assert flags == [CLICK | EXCLUDED, CLICK, 0, CLICK, CLICK | EXCLUDED, CLICK]


def test_ids_made_of_different_parts_differ():
    parts = ["", "a", "b", "a/b", "1:a", "a1:b", ":"]
    every = [(one, other, third) for one in parts for other in parts for third in parts]
    assert len({made_id(*one) for one in every}) == len(every)


def test_a_known_id_with_another_request_is_a_conflict(client):
    first = client.post("/rank", ask(id="r1", query="tin", k=2)).json()
    others = ask(5, id="r1", query="tin", k=2), ask(id="r1", query="tea", k=2), ask(id="r1", query="tin", k=3)
    for other, name in zip(others, ("items", "query", "k"), strict=True):
        answer = client.post("/rank", other)
        assert (answer.status_code, f"another value of {name}; send a new id" in answer.json()["error"]) == (409, True)
    assert client.post("/rank", ask(id="r1", query="tin", k=2)).json() == first
    client.service.registry.add("other", "online", online_bytes(), {})
    answer = client.post("/rank", ask(id="r1", query="tin", k=2, model="other"))
    assert (answer.status_code, "another value of model" in answer.json()["error"]) == (409, True)
    assert client.post("/rank", ask(id="r1", query="tin", k=2, model="shop")).json() == first


def test_a_click_on_an_item_that_was_not_shown_is_refused_by_name(client):
    answer = client.post("/rank", ask(id="r1", k=2)).json()
    shown = [one["id"] for one in answer["items"]]
    (hidden, *_) = {f"item{at}" for at in range(4)} - set(shown)
    last = client.service.log.last_number()
    for path, sent, item in (
        ("/feedback", {"impression": "r1", "item": hidden}, hidden),
        ("/feedback", [{"impression": "r1", "item": shown[0]}, {"impression": "r1", "item": "other"}], "other"),
        ("/feedback", {"impression": "r1", "clicks": [*shown, hidden], "final": True}, hidden),
    ):
        refused = client.post(path, sent)
        assert (refused.status_code, f"did not show the item {item!r}" in refused.json()["error"]) == (422, True)
    assert client.service.log.last_number() == last
    for path, sent in (
        ("/feedback", {"impression": "r1", "clicks": shown}),
        ("/feedback", {"impression": "shown elsewhere", "item": "b"}),
        ("/feedback", {"impression": "r1", "item": hidden, "action": "view"}),  # it counts as no click
    ):
        assert client.post(path, sent).status_code == 200


@pytest.mark.parametrize("value", [1e150, -1.1e15, 10**400])
def test_values_outside_the_range_are_refused(client, value):
    items = [{"id": "a", "features": [0, value, 0]}, {"id": "b", "features": [0, 0, 0]}]
    for path, sent in (
        ("/rank", {"items": items}),
        ("/rank", {"items": ["a", "b"], "features": [one["features"] for one in items]}),
    ):
        answer = client.send("POST", path, content=json.dumps(sent))
        assert (answer.status_code, "from -1e+15 to 1e+15" in answer.text) == (422, True), answer.text
    assert client.service.log.last_number() == 0


@pytest.mark.parametrize("make", ONLINE)
def test_a_list_of_huge_values_does_not_spoil_an_online_model(store, make):
    with running(store, models=[("shop", "online", online_bytes(ranker=make(random_state=0)))]) as client:
        for at in range(6):
            asked = ask(seed=at, id=f"r{at}")
            if at < 3:
                for number, item in enumerate(asked["items"]):
                    item["features"] = [MAX_VALUE * (-1.0) ** number, 1.0, 10.0**at]
            answer = client.post("/rank", asked)
            assert answer.status_code == 200, answer.text
            clicked = answer.json()["items"][1]["id"]
            client.post("/feedback?wait=true", {"impression": f"r{at}", "clicks": [clicked], "final": True})
        coef = client.service.registry.model("shop", 1).ranker.coef_
        assert np.abs(coef).max() < 10.0
        scores = [one["score"] for one in answer.json()["items"]]
        assert np.ptp(scores) < 1e3
        state = store.read("SELECT state FROM models")[0][0]
        assert replay(client.service.log)[0] == {"shop/1": bytes(state)}


def test_scores_that_overflow_are_refused_and_lists_of_earlier_versions_are_not_learnt(store):
    ranker = PDGD(random_state=0)
    with running(store, models=[("shop", "online", online_bytes(ranker=ranker))]) as client:
        model = client.service.registry.model("shop", 1)
        drawn = model.draw(np.eye(4, 3), None, 4, np.arange(1, 5, dtype=np.uint64))
        clicked = np.array([False, True, False, False])
        for bad in ({"X": 1e150 * np.eye(4, 3)}, {"scores": np.array([np.nan, 0, 0, 0])}):
            assert not model.learn({**drawn.arrays, **bad}, 0, clicked)
        assert not model.ranker.coef_.any()
        assert model.learn(drawn.arrays, 0, clicked)
        model.ranker.coef_ = np.full(3, 1e300)
        huge = [{"id": "a", "features": [1e15, 0, 0]}, {"id": "b", "features": [0, 1, 0]}]
        answer = client.post("/rank", {"items": huge})
        assert (answer.status_code, "scores of shop version 1 overflow" in answer.text) == (422, True)


@pytest.fixture(params=["service", "pages"])
def port(request, store, client):
    app = client.app.asgi if request.param == "service" else create_app(store)
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(60)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_request_with_two_lengths_is_refused_and_the_connection_closed(port, method, order):
    lengths = ["Content-Length: 4", "Transfer-Encoding: chunked"][::order]
    head = "\r\n".join([f"{method} /rank HTTP/1.1", f"Host: 127.0.0.1:{port}", *lengths])
    smuggled = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{head}\r\n\r\n0\r\n\r\n{smuggled}".encode())
        found = b""
        while part := connection.recv(65536):
            found += part
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert b"Content-Length and Transfer-Encoding" in found
