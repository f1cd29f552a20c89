"""One project on the terminal and on the pages: what either stores, both use, and so do report and certificate."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app as command
from corank.errors import InputError
from corank_lab.database.backends import SqliteDatabase
from corank_lab.pages.app import create_app
from corank_lab.screening import Screening, ScreeningJournal, UniqueRecords, read_records
from helpers.pages import PageClient, fields, words

N = 40
WORKS = "id,title\n" + "".join(f"w{k},{'Bees' if k % 4 == 0 else 'Rivers'} and study {k}\n" for k in range(N))
FORM = {
    "project_name": "Bees", "reasons": "wrong species", "topic": "bees", "highlight": "pollen", "readers": "1",
    "shared_records": "100", "rule": "betting", "target": "90", "confidence": "80", "richness": "5", "seed": "12345678",
}  # fmt: skip
PLAN = {"rule": "betting", "target": 0.9, "confidence": 0.8, "richness": 5, "seed": 12345678}


@pytest.fixture
def works(tmp_path):
    (tmp_path / "works.csv").write_text(WORKS)
    return tmp_path / "works.csv"


@pytest.fixture
def store(works):
    with SqliteDatabase(works.parent / "corank.db") as opened:
        yield opened


@pytest.fixture
def owner(store):
    return PageClient(create_app(store), store.add_owner())


def screen(path, *options, keys="", verb=()):
    result = CliRunner().invoke(command, ["screen", *verb, str(path), *options], input=keys, catch_exceptions=False)
    assert result.exit_code == 0
    return result


def shown(output):
    return [int(number) for number in re.findall(r"^record w(\d+)$", output, flags=re.MULTILINE)]


def made_on_page(owner):
    made = owner.post("/projects", {"kind": "screen"}, [("files", ("works.csv", WORKS.encode()))])
    path = made.headers["location"].removesuffix("/import")
    assert owner.post(f"{path}/settings", FORM).status_code == 303
    return path


def settings_of(store):
    (project,) = store.projects()
    return project.settings


def test_the_terminal_reads_what_the_page_stored(owner, store, works):
    path = made_on_page(owner)
    output = screen(works, keys="r\nn wrong species\nq\n").stdout
    # the random sample is a permutation by the seed, derived here by numpy alone
    drawn = np.random.default_rng([12345678, 0]).permutation(N)[:5].tolist()
    assert shown(output) == drawn[:3]
    assert "rule 'betting', recall 0.9, accepted error 1 in 5, 5 random records first, random seed 12345678" in output
    assert "1-9 reason" in output
    # the page goes on in the same sample, and both state the share by the same sentence
    for number in drawn[2:]:
        html = owner.get(f"{path}/judge").text
        assert f"study {number}" in words(html)
        owner.post(f"{path}/judge", {**fields(html), "action": "relevant" if number % 4 == 0 else "not"})
    workspace = owner.app.app.state.site.workspaces.get(store.project(path[3:]))
    workspace.background.wait()
    n_relevant = 1 + sum(number % 4 == 0 for number in drawn[2:])
    sentence = f"Richness: {n_relevant} of 5 random records are relevant"
    assert sentence in words(owner.get(path).text)
    assert sentence in screen(works, keys="p\nq\n").stdout
    report = json.loads(screen(works, "--json", verb=["report"]).stdout)
    assert report["plan"] == PLAN
    screen(works, "-o", str(works.parent / "c.json"), verb=["certify"])
    rule = json.loads((works.parent / "c.json").read_text())["rule"]
    assert (rule["name"], rule["target"], rule["confidence"]) == ("betting", 0.9, 0.8)


def test_the_page_reads_what_the_terminal_stored(owner, store, works):
    options = ["--rule", "betting", "--target", "0.9", "--accept", "1 in 5", "--richness", "5", "--seed", "12345678"]
    text = ["--topic", "bees", "--highlight", "pollen", "--reason", "wrong species"]
    screen(works, *options, *text, keys="q\n")
    (project,) = store.projects()
    assert {name: project.settings[name] for name in PLAN} == PLAN
    session = owner.app.app.state.site.workspaces.get(project).session
    assert (session.rule.name, session.rule.target, session.rule.confidence) == ("betting", 0.9, 0.8)
    html = owner.get(f"/p/{project.id}").text
    assert '<option value="betting" selected' in html
    for name in ("richness", "seed", "target", "confidence"):
        assert re.search(rf'name="{name}"[^>]* value="{FORM[name]}"', html), name
    page = owner.get(f"/p/{project.id}/judge").text
    assert "wrong species" in words(page)
    # a form without a change is accepted, and changes nothing
    assert owner.post(f"/p/{project.id}/settings", FORM).status_code == 303
    assert {name: settings_of(store)[name] for name in PLAN} == PLAN
    assert owner.post(f"/p/{project.id}/settings", {**FORM, "target": "80"}).status_code == 303
    assert "recall 0.8," in screen(works, keys="q\n").stdout


def test_an_option_that_differs_is_stored_and_named(store, works):
    assert "Stored" not in screen(works, "--rule", "betting", keys="r\nn\nq\n").output  # a new project
    again = screen(works, "--rule", "betting", "--accept", "1 in 20", keys="q\n")
    assert "Stored" not in again.output
    output = screen(works, "--accept", "1 in 10", keys="q\n").output
    assert "Stored for all sessions, pages and reports: confidence 0.9 instead of 0.95. It changed after 2" in output
    result = screen(works, "--target", "0.8", "--json", verb=["report"])
    assert "target 0.8 instead of 0.95" in result.stderr
    assert json.loads(result.stdout)["plan"] == {**PLAN, "target": 0.8, "confidence": 0.9, "richness": 0, "seed": 0}
    assert settings_of(store)["target"] == 0.8
    protocol = screen(works, verb=["protocol"]).stdout
    assert "'betting'" in protocol
    assert "accepted error of 1 in 10" in protocol


def test_the_plan_of_a_sample_that_has_begun_is_kept(owner, store, works):
    relevant = {k for k in range(N) if k % 4 == 0}
    keys = []
    while (
        "random records to read"
        not in (result := screen(works, "--rule", "sample", "--target", "0.5", keys="".join([*keys, "q\n"]))).output
    ):
        keys = ["r\n" if shown(result.output)[-1] in relevant else "n\n"]
    screen(works, keys="n\nq\n")
    for name, value in (("--target", "0.9"), ("--rule", "agree"), ("--accept", "1 in 5"), ("--seed", "7")):
        with pytest.raises(InputError, match="its random sample has begun"):
            screen(works, name, value, keys="q\n")
    (project,) = store.projects()
    form = {**FORM, "rule": "sample", "target": "50", "confidence": "95", "richness": "0", "seed": "0"}
    assert owner.post(f"/p/{project.id}/settings", form).status_code == 303
    refused = owner.post(f"/p/{project.id}/settings", {**form, "target": "60"})
    assert refused.status_code == 422
    assert "its random sample has begun" in words(refused.text)
    refused = owner.post(f"/p/{project.id}/prior", {"topic": "", "confidence": "80"})
    assert refused.status_code == 422
    assert settings_of(store)["target"] == 0.5


def test_a_page_refuses_a_random_sample_that_is_larger_than_the_files(owner, store):
    path = made_on_page(owner)
    refused = owner.post(f"{path}/settings", {**FORM, "richness": str(N + 1)})
    assert refused.status_code == 422
    assert f"richness is {N + 1}, but there are {N} records" in words(refused.text)
    assert settings_of(store)["richness"] == 5


def test_page_and_terminal_state_the_same_of_a_finished_sample(owner, store, works):
    with ScreeningJournal(store) as journal:
        screening = Screening(
            UniqueRecords(read_records(works)), known=["w0"], journal=journal, rule="sample", target=0.5
        )
        while not screening.progress().may_stop:
            number = screening.next()
            screening.answer(number, number % 4 == 0)
        assert screening.progress().evidence == "sample"
    out = works.parent / "report"
    screen(works, "--rule", "sample", "--target", "0.5", "-o", str(out), verb=["report"])
    methods = (out / "methods.txt").read_text()
    assert "by the rule 'sample'" in methods
    bound = json.loads((out / "certificate.json").read_text())["result"]["bound"]
    assert 0.5 <= bound <= 1.0
    assert f"proves a recall of at least {int(bound * 1000 + 1e-6) / 1000:g}" in methods
    (project,) = store.projects()
    assert owner.get(f"/p/{project.id}/export/methods").text == methods
    assert owner.get(f"/p/{project.id}/export/prisma").text == (out / "prisma.csv").read_text()
