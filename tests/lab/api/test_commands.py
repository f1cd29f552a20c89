"""The commands of the service: models, keys, forgetting, and the service as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from corank import PDGD, RankSVM, cli, load, make_ranking, save
from corank.clicks import Impression
from corank_lab.api.learner import LogLearner
from corank_lab.api.log import EventLog
from corank_lab.api.models import Registry
from helpers.api import ask, running
from helpers.stores import open_new


def corank(*words, code=0):
    said = CliRunner().invoke(cli.app, [str(word) for word in words])
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    assert said.exit_code == code, said.output
    return said.output


def test_models_are_added_listed_activated_saved_and_removed(tmp_path):
    problem = make_ranking(8, 6, random_state=0)
    ranker = RankSVM().fit(problem.X, problem.y, qid=problem.qid)
    save(ranker, tmp_path / "model.safetensors")
    place = tmp_path / "shop"
    assert corank("serve", "add", place, "main", "--model", tmp_path / "model.safetensors") == "added main version 1\n"
    added = corank("serve", "add", place, "main", "--online", "pdgd", "--columns", "20")
    assert added == "added main version 2; activate it with corank serve activate\n"
    corank("serve", "activate", place, "main", 2)
    assert "main 2 (active): online" in corank("serve", "models", place)
    corank("serve", "activate", place, "main", 1)
    listed = json.loads(corank("serve", "models", place, "--json"))["models"]
    assert [(one["version"], one["is_active"]) for one in listed] == [(1, True), (2, False)]
    corank("serve", "save", place, "main", "--output", tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="is active; activate another"):
        corank("serve", "remove", place, "main", 1)
    corank("serve", "remove", place, "main", 2)
    assert "main 2" not in corank("serve", "models", place)
    for words, sentence in [
        (["add", place, "x", "--online", "none", "--columns", "2"], "there is no online ranker 'none'"),
        (["add", place, "x", "--online", "pdgd", "--columns", "a,a"], "distinct names"),
        (["add", place, "x"], "pass one of --model, --online and --interleave"),
        (["add", place, "x", "--interleave", "main"], "pass the names of two models"),
        (["add", place, "a/b", "--online", "pdgd", "--columns", "2"], "a model cannot be called 'a/b'"),
        (["key", place, "--scope", "all"], "there is no scope 'all'"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            corank("serve", *words)


def test_keys_are_added_listed_and_revoked(tmp_path):
    key = corank("serve", "key", tmp_path, "--scope", "rank", "--name", "web").strip()
    id, _, secret = key.partition(".")
    listed = corank("serve", "key", tmp_path)
    assert f"{id} 'web': rank" in listed
    assert secret not in listed
    corank("serve", "key", tmp_path, "--revoke", id)
    assert "(revoked)" in corank("serve", "key", tmp_path)


def write_log(store, users, seed=0):
    """Let users click, through the service."""
    rng = np.random.default_rng(seed)
    with running(store) as client:
        for at, user in enumerate(users):
            answer = client.post("/rank", ask(seed=at, user=user, id=f"list{at}")).json()
            clicked = answer["items"][int(rng.integers(4))]["id"]
            # feedback of one user on the list of another, which goes with its user
            sent = {"impression": f"list{at}", "clicks": [clicked], "final": True, "user": user}
            client.post("/feedback?wait=true", sent)
            client.post("/feedback?wait=true", {"impression": f"list{at}", "item": "item0", "user": users[0]})


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_a_forgotten_user_leaves_no_event_and_no_trace_in_the_models(tmp_path, kind):
    users = ["ann", "bob", "cat", "bob", "ann", "cat", "bob"]
    with open_new(kind, tmp_path) as store:
        place = store.address if kind == "postgresql" else tmp_path
        corank("serve", "add", place, "shop", "--online", "PDGD", "--columns", "3")
        write_log(store, users)
        before = [event for part in EventLog(store).batches() for event in part]
        said = json.loads(corank("serve", "events", "forget", place, "bob", "--json"))
        left = [event for part in EventLog(store).batches() for event in part]
        of_bob = {f"list{at}" for at, user in enumerate(users) if user == "bob"}
        expected = [
            event for event in before
            if event.person != "bob" and event.id not in of_bob and event.subject not in of_bob
        ]  # fmt: skip
        assert left == expected
        assert (said["n_events"], said["n_left"]) == (len(before) - len(left), len(left))
        # the model is what the library learns from the lists of the others
        ranker = PDGD(random_state=0)
        ranker._begin(np.zeros((1, 3)), None)
        log = EventLog(store)
        for event in left:
            if event.kind == "impression":
                arrays = log.arrays([event.number])[event.number]
                body = json.loads(log.bodies([event.number])[event.number])
                first = min(one.number for one in left if one.subject == event.id and one.flag & 2)
                clicked = {one.item for one in left if one.subject == event.id and one.number < first}
                parts = (arrays["rows"], arrays["log_propensities"], body["learnt"], arrays["X"], arrays["scores"])
                ranker.learn(
                    Impression(event.number, *parts), [body["items"][row] in clicked for row in arrays["rows"]]
                )
        learnt = Registry(store).model("shop", 1).ranker
        np.testing.assert_array_equal(learnt.coef_, ranker.coef_)
        assert "same bytes for 1 models" in corank("serve", "events", "verify", place)
        if kind == "sqlite":
            assert not any(b"bob" in path.read_bytes() for path in tmp_path.glob("corank.db*"))
        # the service goes on from there
        learner = LogLearner(log, Registry(store))
        assert learner.step() == 0


def test_verify_finds_a_model_that_is_not_what_the_log_says(tmp_path):
    with open_new("sqlite", tmp_path) as store:
        corank("serve", "add", tmp_path, "shop", "--online", "PDGD", "--columns", "3")
        write_log(store, ["ann", "bob"])
        assert "same bytes" in corank("serve", "events", "verify", tmp_path)
        store.write(("UPDATE models SET state = initial",))
        assert "different after a replay of 8 events: shop/1" in corank("serve", "events", "verify", tmp_path, code=1)


def test_the_service_runs_as_a_process_goes_on_after_a_kill_and_stops_on_request(tmp_path):
    corank("serve", "add", tmp_path, "shop", "--online", "PDGD", "--columns", "3")
    words = [sys.executable, "-m", "corank", "serve", "start", str(tmp_path), "--port", "0"]
    key, learnt = "", []
    for number, ending in enumerate((signal.SIGKILL, signal.SIGTERM)):
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "500"},
        )  # fmt: skip
        try:
            line = process.stdout.readline()
            if found := re.match(r"Key \(shown once\): (\S+)", line):
                key, line = found[1], process.stdout.readline()
            base = re.search(r"http://[\d.:]+\d", line)[0]
            with httpx.Client(base_url=base, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
                answer = client.post("/rank", json=ask(id=f"list{number}")).json()
                sent = {"impression": f"list{number}", "clicks": [answer["items"][1]["id"]], "final": True}
                assert client.post("/feedback?wait=true", json=sent).status_code == 200
                learnt.append(client.get("/models").json()["models"][0]["learnt_lists"])
        finally:
            process.send_signal(ending)
            process.wait()
            rest = process.stdout.read()
            process.stdout.close()
        assert "Traceback" not in rest, rest
    assert learnt == [1, 2]
    assert process.returncode in (0, 143)
    corank("serve", "save", tmp_path, "shop", "--output", tmp_path / "shop.safetensors")
    assert load(tmp_path / "shop.safetensors", PDGD).n_learnt_ == 2
