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


def test_an_export_is_read_again_and_learnt_from(shop, says, tmp_path):
    folder, store, wanted = shop
    target = tmp_path / "log"
    assert "43 lists" in says("serve", "events", "export", folder, "-o", target)
    clicks, rows = target / "clicks.csv", target / "rows.csv"
    assert [(query.partition("#")[2], *rest) for query, *rest in as_lists(read_clicks(clicks))] == list(wanted.values())
    assert not any("ann" in path.read_text() for path in (clicks, rows))
    table, lists = corank.read(rows, y=False), logged_rows(EventLog(store))
    np.testing.assert_array_equal(table.X, lists.X)
    assert (table.qid.tolist(), table.docids.tolist()) == (lists.qid, lists.docids)
    words = ("--model", "shop", "-o", target, "--force", "--json")
    said = json.loads(says("serve", "events", "export", folder, *words))
    assert (said["verb"], said["n_lists"]) == ("serve events export", 40)
    model = tmp_path / "new.safetensors"
    says("learn-clicks", rows, clicks, "--model", "ranksvm", "--bias", 0, "-o", model)
    says("serve", "add", folder, "shop", "--model", model)


def test_a_feature_with_the_name_of_a_label_is_said_and_can_be_kept(says, tmp_path):
    (tmp_path / "rows.csv").write_text("qid,docid,rating,bm25\nq,a,1,2\nq,b,3,1\n")
    (tmp_path / "log.csv").write_text("qid,docid,position,clicked\nq,a,1,0\nq,b,2,1\n")
    words = ("learn-clicks", tmp_path / "rows.csv", tmp_path / "log.csv", "--bias", 0, "--held-out", 0)
    result = CliRunner().invoke(app, [str(word) for word in (*words, "-o", tmp_path / "without")])
    assert "label 'rating'" in result.stderr
    says(*words, "--keep", "rating", "-o", tmp_path / "with")
    assert corank.load(tmp_path / "without").feature_names_in_.tolist() == ["bm25"]
    assert corank.load(tmp_path / "with").feature_names_in_.tolist() == ["rating", "bm25"]


def test_lists_of_equal_items_share_their_rows(shop):
    _, store, wanted = shop
    found = logged_rows(EventLog(store), "shop")
    assert found.X.shape == (24, 3)  # four queries of six items
    assert found.log.n_impressions == 40
    assert [(query.partition("#")[2], *rest) for query, *rest in as_lists(found.log)] == list(wanted.values())[:40]
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
    says("serve", "events", "export", folder, "-o", tmp_path / "log")
    log = (tmp_path / "log" / "clicks.csv", "--rows", tmp_path / "log" / "rows.csv")
    said = json.loads(says("replay", *log, "--model", tmp_path / "new.safetensors", "--metric", "clicks@1", "--json"))
    assert said["difference"]["low"] > 0.0
    assert said["new"]["low"] <= gain[np.argmax(X @ WEIGHTS)] <= said["new"]["high"]
    with_bias = ("--metric", "DCG@2", "--bias", 1)
    assert "the new ranker is better" in says("replay", *log, "--model", tmp_path / "new.safetensors", *with_bias)


def test_refusals(shop, says, tmp_path):
    folder, store, _ = shop
    with pytest.raises(InputError, match="no list of the model 'none'"):
        says("serve", "events", "export", folder, "--model", "none", "-o", folder / "x")
    with pytest.raises(InputError, match="has no database"):
        says("serve", "events", "export", tmp_path, "-o", folder / "x")
    assert not (tmp_path / "corank.db").exists()
    with running(store, models=[("wide", "online", online_bytes(5))]) as client:
        assert client.post("/rank", ask(d=5, model="wide")).status_code == 200
    with pytest.raises(InputError, match="choose the lists of one model"):
        logged_rows(EventLog(store))
    assert not (folder / "x").exists()
    with pytest.raises(InputError, match=r"corank\.db, which would be lost"):
        says("serve", "events", "export", folder, "--output", folder, "--force")
    assert (folder / "corank.db").is_file()
