"""Projects that leave and come back, and journals of the terminal."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from corank.data.io.items import read_items
from corank_lab.database.journal import project_logs
from corank_lab.pages.app import create_app
from corank_lab.preferences import PreferenceJournal, PreferenceSession
from helpers.pages import TEAS, PageClient, fields, new_project, words
from helpers.reviews import with_duplicate
from helpers.stores import open_new

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def store(request, tmp_path):
    with open_new(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def owner(store):
    return PageClient(create_app(store), store.add_owner())


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_project_round_trips(kind, store, owner, tmp_path):
    path = new_project(owner, files=[("teas.csv", TEAS.replace(b"strong", b"a.png")), ("a.png", PNG)])
    for action in ("left", "bad", "skip"):
        owner.post(f"{path}/judge", {**fields(owner.get(f"{path}/judge").text), "action": action})
    saved = owner.get(f"{path}/export/project")
    assert saved.headers["content-disposition"] == 'attachment; filename="teas.zip"'
    (tmp_path / "other").mkdir()
    with open_new(kind, tmp_path / "other") as elsewhere:
        client = PageClient(create_app(elsewhere), elsewhere.add_owner())
        again = new_project(client, "project", [("teas.zip", saved.content)])
        before, after = store.project(path[3:]), elsewhere.project(again[3:])
        assert (after.name, after.kind, after.settings) == (before.name, before.kind, before.settings)
        assert elsewhere.payload(after.id) == store.payload(before.id)
        assert elsewhere.file(after.id, "a.png") == ("image/png", PNG)
        kept = [one._replace(number=0) for one in store.answers(before.id)]
        assert [one._replace(number=0) for one in elsewhere.answers(after.id)] == kept
        assert "2 answered" in words(client.get(f"{again}/judge").text)
        assert elsewhere.judges(after.id) == []  # links do not travel


def forge(packed, change):
    """Return a saved project with another description or other answers."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as saved, zipfile.ZipFile(out, "w") as forged:
        head, lines = json.loads(saved.read("project.json")), saved.read("answers.jsonl").decode().splitlines()
        answers = [json.loads(line) for line in lines]
        change(head, answers)
        for name in saved.namelist():
            content = saved.read(name)
            if name == "project.json":
                content = json.dumps(head)
            elif name == "answers.jsonl":
                content = "".join(json.dumps(line) + "\n" for line in answers)
            forged.writestr(name, content)
    return out.getvalue()


FORGERIES = {
    "payload": lambda head, answers: head.update(payload=7),
    "no payload": lambda head, answers: head.update(payload={}),
    "other payload": lambda head, answers: head.update(payload={"records": [{}], "pairs": [[1, "x"]]}),
    "settings": lambda head, answers: head["settings"].update(target="much", rule=["x"], strategy={}),
    "no item": lambda head, answers: [line.update(item="nobody") for line in answers],
    "entry": lambda head, answers: [line.update(entry={"action": "relevant"}) for line in answers],
    "action": lambda head, answers: [line["entry"].update(action=[1]) for line in answers],
    "time": lambda head, answers: [line.update(time="yesterday") for line in answers],
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("kind", ["screen", "compare"])
def test_a_forged_project_is_refused_or_all_its_pages_open(owner, kind, forgery):
    file = ("bees.ris", with_duplicate(6).encode()) if kind == "screen" else ("teas.csv", TEAS)
    path = new_project(owner, kind, [file]).removesuffix("/import")
    for _ in range(2):
        form = fields(owner.get(f"{path}/judge").text)
        owner.post(f"{path}/judge", {**form, "action": "relevant" if kind == "screen" else "left"})
    packed = forge(owner.get(f"{path}/export/project").content, FORGERIES[forgery])
    made = owner.post("/projects", {"kind": "project"}, [("files", ("x.zip", packed))])
    assert made.status_code in (303, 422)
    if made.status_code == 303:
        for page in ("", "/judge", "/history", "/export/project", "/report" if kind == "screen" else ""):
            assert owner.get(made.headers["location"] + page).status_code == 200
    else:
        assert "the project cannot be opened" in words(made.text) or "is not a project" in words(made.text)


@pytest.mark.thin(3)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_owner_deletes_a_project(store, owner, is_damaged):
    path = new_project(owner)
    other = new_project(owner, files=[("more.csv", TEAS)])
    owner.post(f"{path}/judge", {**fields(owner.get(f"{path}/judge").text), "action": "left"})
    judge = PageClient(owner.app, store.add_judge(path[3:], "ann"))
    if is_damaged:
        store.add_files(path[3:], {"": ("payload", b"damaged")})
        owner = PageClient(create_app(store), store.add_owner())
    assert judge.post(f"{path}/delete", {"name": "teas"}).status_code == 403
    assert "teas" in words(owner.get(f"{path}/delete").text)
    assert owner.post(f"{path}/delete", {"name": "tea"}).status_code == 422
    assert store.project(path[3:]) is not None
    assert owner.post(f"{path}/delete", {"name": "teas"}).headers["location"] == "/"
    assert owner.get(path).status_code == 404
    assert store.project(path[3:]) is None
    assert (store.answers(path[3:]), store.judges(path[3:]), store.file_names(path[3:])) == ([], [], set())
    assert owner.get(other).status_code == 200


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_screening_with_notes_undo_conflicts_and_reasons_round_trips(kind, store, owner, tmp_path):
    path = new_project(owner, "screen", [("bees.ris", with_duplicate(6).encode())]).removesuffix("/import")
    settings = {"project_name": "Bees", "reasons": "no data", "readers": "2", "shared_records": "100", "rule": "agree"}
    owner.post(f"{path}/settings", {**settings, "target": "95", "confidence": "95", "richness": "0", "seed": "0"})
    ann = PageClient(owner.app, store.add_judge(path[3:], "ann"))
    for client, actions in ((owner, ("relevant", "not-1", "later")), (ann, ("not", "not", "relevant"))):
        for action in actions:
            form = {
                **fields(client.get(f"{path}/judge").text),
                "action": action,
                "note": f"why {action}",
                "tags": "a, b",
            }
            assert client.post(f"{path}/judge", form).status_code == 303
    ann.post(f"{path}/undo", {"client_id": "u"})
    owner.post(f"{path}/settle", {**fields(owner.get(f"{path}/conflicts").text), "action": "relevant"})
    assert store.answers(path[3:])[-1].entry["by"] == "adjudication"
    packed = owner.get(f"{path}/export/project").content
    (tmp_path / "other").mkdir()
    with open_new(kind, tmp_path / "other") as elsewhere:
        client = PageClient(create_app(elsewhere), elsewhere.add_owner())
        again = new_project(client, "project", [("bees.zip", packed)])
        for name in ("log", "ris-all", "csv-all", "ris-included"):
            assert client.get(f"{again}/export/{name}").content == owner.get(f"{path}/export/{name}").content
        assert words(client.get(f"{again}/conflicts").text) == words(owner.get(f"{path}/conflicts").text)
        repeated = client.get(f"{again}/export/project").content
        third = new_project(client, "project", [("bees.zip", repeated)])
        kept = [one._replace(number=0) for one in elsewhere.answers(again[3:])]
        assert [one._replace(number=0) for one in elsewhere.answers(third[3:])] == kept


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"no archive", b""])
def test_a_file_that_is_not_a_project(owner, content):
    answer = owner.post("/projects", {"kind": "project"}, [("files", ("x.zip", content))])
    assert answer.status_code == 422


def test_a_journal_of_the_terminal_is_added_once(store, owner, tmp_path):
    table = tmp_path / "teas.csv"
    table.write_bytes(TEAS)
    items, _ = read_items(table)
    with PreferenceJournal(tmp_path / "terminal.db", "ann") as journal:
        session = PreferenceSession(items, journal=journal)
        for _ in range(3):
            session.answer(session.next(), "left")
        session.undo()
        lines = project_logs(journal.store, journal.id)["ann"]
    path = new_project(owner)
    for _ in range(2):
        assert owner.post(f"{path}/answers", {}, [("files", ("ann.jsonl", lines))]).status_code == 303
    assert [one.action for one in store.answers(path[3:], judge="ann")] == ["left", "left", "left", "undo"]
    owner.app.app.state.site.workspaces.get(store.project(path[3:])).background.wait()
    assert "2 answers about 5 items" in words(owner.get(path).text)
    for wrong in (b"[]\n", b'{"action": "left", "left": "no", "right": "Assam"}\n', b"x", b'{"action": "up"}\n'):
        assert owner.post(f"{path}/answers", {}, [("files", ("bob.jsonl", wrong))]).status_code == 422
    assert store.answers(path[3:], judge="bob") == []


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    "change", [{"time": "yesterday"}, {"time": 5}, {"tags": 7}, {"tags": [[1]]}, {"by": 7}, {"keys": [1]}, {"title": 3}]
)
def test_a_journal_that_pages_cannot_show_is_refused(store, owner, change):
    path = new_project(owner, "screen", [("bees.ris", with_duplicate(6).encode())]).removesuffix("/import")
    line = json.dumps({"action": "relevant", "id": "b5", **change}).encode()
    assert owner.post(f"{path}/answers", {}, [("files", ("ann.jsonl", line))]).status_code == 422
    assert store.answers(path[3:]) == []


def test_a_numbered_journal_belongs_to_the_judge_in_its_lines(store, owner, monkeypatch):
    path = new_project(owner)
    line = b'{"action": "left", "left": "Assam", "right": "Sencha", "judge": "\xe6\x9d\x8e"}\n'
    assert owner.post(f"{path}/answers", {}, [("files", ("1.jsonl", line))]).status_code == 303
    assert [one.judge for one in store.answers(path[3:])] == ["李"]
    assert owner.post(f"{path}/answers", {}, [("files", ("a" * 90 + ".jsonl", line))]).status_code == 422
    monkeypatch.setattr("corank_lab.pages.pages_owner.MAX_JOURNAL_VALUES", 100)
    long = b'{"action": "undo", "x": [' + b"[]," * 100 + b"[]]}"
    assert owner.post(f"{path}/answers", {}, [("files", ("ann.jsonl", long))]).status_code == 422


@pytest.mark.parametrize("name", ["!!!.csv", "\U0001d49c" * 90 + ".csv", "x" * 300 + ".csv", ".csv", "李.csv"])
def test_any_name_of_a_file_is_read_by_its_suffix(owner, name):
    path = new_project(owner, files=[(name, TEAS)])
    header = owner.get(f"{path}/export/project").headers["content-disposition"]
    assert header.partition(";")[2].startswith(' filename="')
    assert header.partition('"')[2].partition('"')[0].endswith(".zip")
    assert header.isascii()
    if name == "李.csv":
        assert header.endswith("filename*=UTF-8''%E6%9D%8E.zip")
