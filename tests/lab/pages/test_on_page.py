"""`corank screen FILE --page`: the project of a file is made once, and its page is opened."""

from __future__ import annotations

from importlib import import_module

import pytest
from typer.testing import CliRunner

from corank import cli
from corank.errors import InputError
from corank_lab.cli.screening.session import open_project, read_settings
from corank_lab.database.backends import SqliteDatabase
from corank_lab.pages.app import create_app
from corank_lab.screening import STOPPING_RULES
from helpers.pages import PageClient
from helpers.reviews import bees


def test_the_project_of_a_file_is_made_once(tmp_path):
    file = tmp_path / "bees.ris"
    file.write_text(bees(6))
    with SqliteDatabase(tmp_path / "corank.db") as store:
        first = open_project(store, [file], {"topic": "bees"})
        assert first.endswith("/import")
        assert open_project(store, [file], {}) == first.replace("/import", "/judge")
        file.write_text(bees(7))
        assert open_project(store, [file], {}).endswith("/import")
        # a changed file continues its project
        assert [len(store.payload(one.id)["records"]["ids"]) for one in store.projects()] == [7]
        client = PageClient(create_app(store), store.add_owner())
        page = client.get(f"/enter?token={store.add_owner()}&to={first}").text
        assert f'content="0; url={first}"' in page


@pytest.mark.parametrize("options", [{"rule": "nonsense"}, {"target": 7.0}])
def test_settings_that_a_page_refuses_are_refused_before_a_project_is_made(options):
    with pytest.raises(InputError, match=str(next(iter(options.values())))):
        read_settings(options)


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/p/x/../y", "javascript:x", "/p/x?y"])
def test_a_link_leads_only_to_pages_of_projects(tmp_path, to):
    with SqliteDatabase(tmp_path / "corank.db") as store:
        page = PageClient(create_app(store)).get(f"/enter?token={store.add_owner()}&to={to}").text
    assert 'content="0; url=/"' in page


def test_the_command_serves_next_to_the_file(tmp_path, monkeypatch):
    file = tmp_path / "bees.ris"
    file.write_text(bees(6))
    served = []
    module = import_module("corank_lab.cli.lab")
    monkeypatch.setattr(module, "run_server", lambda folder, *_, begin, **__: served.append((folder, begin)))
    said = CliRunner().invoke(cli.app, ["screen", str(file), "--page", "--reason", "wrong species"])
    assert said.exit_code == 0, said.output
    assert served[0][0] == tmp_path
    with SqliteDatabase(tmp_path / "corank.db") as store:
        served[0][1](store)
        assert store.projects()[0].settings["reasons"] == "wrong species"
    (tmp_path / "more.txt").write_text("wrong dose\n\n")
    CliRunner().invoke(
        cli.app, ["screen", str(file), "--page", "--reasons", str(tmp_path / "more.txt"), "--target", "0.9"]
    )
    with SqliteDatabase(tmp_path / "corank.db") as store:
        served[1][1](store)
        (project,) = store.projects()
        assert (project.settings["reasons"], project.settings["target"]) == ("wrong dose", 0.9)
    missing = CliRunner().invoke(cli.app, ["screen", str(tmp_path / "none.ris"), "--page"])
    assert "none.ris is not a file" in f"{missing.output} {missing.exception}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rule", "nonsense"], "rule is 'nonsense'; choose one of agree, "),
        (["--target", "0.2"], "target is 0.2; write a number from 0.5 to 0.999"),
        ([f"--reason=r{at}" for at in range(10)], "there are 10 reasons; the keys 1 to 9 allow 9"),
        (["--topic", "x" * 10_001], "a text has 10001 characters; the limit is 10000"),
        (["--known", "a"], "--known does not work with --page: include the records on the page"),
        (["--answers", "folder"], "--answers does not work with --page"),
        (["--share", "--overlap", "0.5"], "--overlap does not work with --page: set the number of readers"),
        (["--richness", "7"], "richness is 7, but there are 6 records"),
        (["--keep-duplicates"], "--keep-duplicates does not work with --page"),
        (["--title", "name"], "--title does not work with --page"),
    ],
)
def test_what_pages_cannot_do_is_refused_before_anything_is_stored(words, sentence, tmp_path, monkeypatch):
    file = tmp_path / "bees.ris"
    file.write_text(bees(6))
    monkeypatch.setattr(import_module("corank_lab.cli.lab"), "run_server", lambda *_, **__: pytest.fail("it serves"))
    said = CliRunner().invoke(cli.app, ["screen", str(file), "--page", *words])
    assert said.exit_code == 1
    assert str(said.exception).startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["bees.ris"]


def test_a_setting_that_an_earlier_version_stored_wrongly_is_mended(tmp_path):
    file = tmp_path / "bees.ris"
    file.write_text(bees(6))
    with SqliteDatabase(tmp_path / "corank.db") as store:
        first = open_project(store, [file], {"rule": "nonsense", "target": 0.9})
        assert open_project(store, [file], read_settings({"rule": "agree", "target": 0.95})) == (
            first.replace("/import", "/judge")
        )
        settings = store.projects()[0].settings
        assert (settings["rule"], settings["target"]) == ("agree", 0.95)
        client = PageClient(create_app(store), store.add_owner())
        assert client.get(first.replace("/import", "/judge")).status_code == 200


def test_the_page_lists_every_stopping_rule(tmp_path):
    file = tmp_path / "bees.ris"
    file.write_text(bees(6))
    with SqliteDatabase(tmp_path / "corank.db") as store:
        path = open_project(store, [file], {}).removesuffix("/import")
        page = PageClient(create_app(store), store.add_owner()).get(path).text
    assert all(f'<option value="{name}"' in page for name in STOPPING_RULES)
