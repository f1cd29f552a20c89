"""Exports of the log: read again by corank's own readers, learnt from in parts, and replayed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.data.io.clicks import read_clicks
from corank.deploy.persist import save
from corank.deploy.persist.files import model_bytes
from corank.errors import InputError
from corank_lab.api.history import logged_rows
from corank_lab.api.log import EventLog
from helpers.api import ask, online_bytes, running
from helpers.stores import open_new

WEIGHTS = np.array([1.0, -0.5, 0.2])


@pytest.fixture
def says():
    """Run a command that must end well, and return its standard output; what it raises is raised."""

    def run(*words):
        result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def fixed_bytes(weights=WEIGHTS):
    ranker = corank.SPD().fit(np.eye(3), weights)
    ranker.coef_ = np.array(weights)
    return model_bytes(ranker)


@pytest.fixture
def shop(tmp_path):
    """A folder with a service that has shown lists: 40 of an online model, 3 of a fixed one."""
    folder = tmp_path / "shop"
    folder.mkdir()
    rng, wanted = np.random.default_rng(0), {}
    with open_new("sqlite", folder) as store:
        models = [("shop", "online", online_bytes()), ("old", "fixed", fixed_bytes())]
        with running(store, models=models) as client:
            for number in range(43):
                model = "shop" if number < 40 else "old"
                sent = ask(n=6, seed=number % 4, query=f"query {number % 4}", user="ann", model=model, k=4)
                answer = client.post("/rank", sent).json()
                shown = [one["id"] for one in answer["items"]]
                clicks = [item for item in shown if rng.random() < 0.4]
                wanted[answer["impression"]] = (f"query {number % 4}", shown, clicks)
                body = {"impression": answer["impression"], "clicks": clicks, "user": "ann", "final": True}
                assert client.post("/feedback", body).status_code == 200
            # feedback of a bot is not exported
            bot = {"impression": answer["impression"], "item": shown[0], "action": "purchase", "agent": "a bot"}
            assert client.post("/feedback", bot).status_code == 200
        yield folder, store, wanted


def as_lists(log):
    """Return query, documents and clicks of each list of a `ClickLog`, by first appearance."""
    found = []
    for number in range(log.n_impressions):
        rows = np.flatnonzero(log.impression == number)
        rows = rows[np.argsort(log.position[rows])]
        found.append((log.qid[rows[0]], log.docids[rows].tolist(), log.docids[rows][log.clicked[rows]].tolist()))
    return found


def test_ubi_is_read_again_by_the_reader_of_ubi(shop, says):
    folder, _, wanted = shop
    target = folder / "events.jsonl"
    assert "43 lists" in says("serve", "events", "export", folder, "-o", target)
    assert as_lists(read_clicks(target)) == list(wanted.values())
    text = target.read_text()
    assert "ann" not in text
    assert "purchase" not in text
    says("serve", "events", "export", folder, "-o", target, "--persons", "--force")
    assert '"client_id": "ann"' in target.read_text()
    words = ("--model", "shop", "-o", target, "--force", "--json")
    said = json.loads(says("serve", "events", "export", folder, *words))
    assert (said["verb"], said["n_lists"]) == ("serve events export", 40)
    ids = [one["query_id"] for one in map(json.loads, text.splitlines()) if "action_name" not in one]
    assert ids == list(wanted)


def test_lists_of_equal_items_share_their_rows(shop):
    _, store, wanted = shop
    found = logged_rows(EventLog(store), "shop")
    assert found.X.shape == (24, 3)  # four queries of six items
    assert found.log.n_impressions == 40
    assert [(query.partition("#")[0], *rest) for query, *rest in as_lists(found.log)] == list(wanted.values())[:40]
    assert (found.log.log_propensity < 0.0).any()
    both = logged_rows(EventLog(store))
    assert both.log.n_impressions == 43


@pytest.mark.long
def test_a_saved_model_is_replayed_on_the_log_of_a_service(tmp_path, says):
    folder = tmp_path / "shop"
    folder.mkdir()
    rng = np.random.default_rng(1)
    with open_new("sqlite", folder) as store, running(store, models=[("shop", "online", online_bytes())]) as client:
        items = ask(n=4, seed=0)
        X = np.array([one["features"] for one in items["items"]])
        gain = 1 / (1 + np.exp(-2 * X @ WEIGHTS))
        for _ in range(700):
            answer = client.post("/rank", {**items, "query": "q"}).json()
            shown = [int(one["id"][4:]) for one in answer["items"]]
            clicks = [f"item{row}" for at, row in enumerate(shown) if rng.random() < gain[row] / (at + 1)]
            client.post("/feedback", {"impression": answer["impression"], "clicks": clicks})
    ranker = corank.SPD().fit(X, X @ WEIGHTS)
    ranker.coef_ = WEIGHTS
    save(ranker, tmp_path / "new.safetensors")
    said = json.loads(says("replay", folder, "--model", tmp_path / "new.safetensors", "--metric", "clicks@1", "--json"))
    assert said["difference"]["low"] > 0.0
    assert said["new"]["low"] <= gain[np.argmax(X @ WEIGHTS)] <= said["new"]["high"]
    with_bias = ("--metric", "DCG@2", "--bias", 1)
    assert "the new ranker is better" in says("replay", folder, "--model", tmp_path / "new.safetensors", *with_bias)


def test_refusals(shop, says, tmp_path):
    folder, store, _ = shop
    with pytest.raises(InputError, match="no list of the model 'none'"):
        says("serve", "events", "export", folder, "--model", "none", "-o", folder / "x.jsonl")
    with pytest.raises(InputError, match="has no database"):
        says("serve", "events", "export", tmp_path, "-o", folder / "x.jsonl")
    assert not (tmp_path / "corank.db").exists()
    with running(store, models=[("wide", "online", online_bytes(5))]) as client:
        assert client.post("/rank", ask(d=5, model="wide")).status_code == 200
    with pytest.raises(InputError, match="choose the lists of one model"):
        logged_rows(EventLog(store))
    assert not (folder / "x.jsonl").exists()
