"""Any file is recognised, shown, corrected and becomes a project, or is refused with its preview kept."""

from __future__ import annotations

import gzip
import io
import re
import zipfile

import numpy as np
import pytest

from corank_lab.database.backends import SqliteDatabase
from corank_lab.pages.app import KINDS, create_app
from corank_lab.pages.imports import TASKS, NewUpload, find_import, make_project, unfinished_imports
from corank_lab.pages.uploads import ANY, ROLES, SAVED, UploadedFile, preview_files, with_roles
from helpers.pages import TEAS, PageClient, words
from helpers.reviews import bees

VOTES = b"model_a,model_b,winner,judge\nx,y,model_a,Ann\ny,z,tie,Bo\nz,x,model_b,Ann\n"
PAIRS = b"query,docid,title,rating\nheat pump,d1,Pumps,2\nheat pump,d2,Owls,0\nwind,d1,Pumps,\n"
RUN = b"q1 Q0 d1 1 9.5 bm25\nq1 Q0 d2 2 8.25 bm25\n"
RECORDS = b"Title;Abstract;Year\nBees and pesticides;We studied bees.;2020\nConcrete;Nothing alive.;2019\n"
ODD = b"name,what,words\nr1,Bees and pesticides,We studied bees.\nr2,Concrete,Nothing alive.\n"


def workbook(rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("compare", "votes.csv", VOTES),
        ("compare", "teas.csv", TEAS),
        ("grade", "pairs.csv", PAIRS),
        ("grade", "pairs.csv.gz", gzip.compress(PAIRS, mtime=0)),
        ("grade", "bm25.run", RUN),
        ("grade", "book.json", b'{"name": "x", "query_doc_pairs": [{"query_text": "a", "doc_id": "1"}]}'),
        ("screen", "records.csv", RECORDS),
        ("screen", "records.bin", RECORDS.replace(b";", b"\t")),
        ("", "broken.bin", b"\x00\x01\x02"),
        ("", "paper.pdf", b"%PDF-1.7 and more"),
    ],
)
def test_the_kind_of_work_is_recognised_by_content(kind, name, content):
    found, (preview,) = preview_files([UploadedFile(name, content)])
    assert (found, preview.kind) == (kind, kind)


def test_records_of_a_dialect_are_shown_without_roles():
    found, (preview,) = preview_files([UploadedFile("export.txt", bees(3).encode())])
    assert (found, preview.format, preview.roles) == ("screen", "RIS", None)
    assert len(preview.rows) == 3


def test_excel_shows_its_rows_and_the_roles_of_its_columns():
    content = workbook([["Title", "Abstract", "Year"], ["Bees", "We studied bees.", 2020]])
    kind, (preview,) = preview_files([UploadedFile("x.xlsx", content)])
    assert kind == "screen"
    assert preview.rows == (("Bees", "We studied bees.", "2020"),)
    assert [preview.role_of("screen", column) for column in preview.columns] == ["title", "abstract", "year"]


@pytest.mark.parametrize("seed", range(5))
def test_a_corrected_role_is_the_one_that_readers_find(seed):
    """Whatever the columns are called, the reader finds what was chosen, and nothing else is lost."""
    rng = np.random.default_rng(seed)
    names = [str(one) for one in rng.permutation(["alpha", "title", "beta", "text"])]
    rows = [[f'{name} {k}, "quoted"\nand more' for name in names] for k in range(3)]
    file = UploadedFile("x.csv", b"".join([(",".join(names) + "\n").encode(), *(
        (",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n").encode() for row in rows
    )]))  # fmt: skip
    changed = with_roles(file, "screen", {"beta": "title", "alpha": "abstract", "text": "none"})
    _, (preview,) = preview_files([changed])
    assert preview.role_of("screen", "title") == "title"
    assert set(preview.columns) == {"title", "abstract", "title (source)"}
    assert dict(zip(preview.columns, preview.rows[1], strict=True))["title"] == 'beta 1, "quoted" and more'


@pytest.fixture
def owner(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as store:
        yield PageClient(create_app(store), store.add_owner()), store


def send(owner, *files):
    client, _ = owner
    answer = client.post("/projects", {"kind": ANY, "client_id": "1"}, [("files", file) for file in files])
    assert answer.status_code == 303
    return answer.headers["location"]


def test_dropped_files_wait_are_corrected_and_become_a_project(owner):
    client, store = owner
    place = send(owner, ("odd.csv", ODD))
    assert place in client.get("/").text, "the home page offers what waits"
    shown = client.get(place)
    assert "We studied bees." in words(shown.text)
    assert re.search(r'value="compare" required checked', shown.text)
    refused = client.post(place, {"kind": "search", "name": ""})
    assert refused.status_code == 422
    assert "name the columns query and docid" in words(refused.text)
    assert "We studied bees." in words(refused.text)
    made = client.post(place, {"kind": "screen", "role-0-1": "screen.title", "role-0-2": "screen.abstract"})
    assert made.status_code == 303, words(made.text)
    (project,) = store.projects()
    assert project.kind == "screen"
    assert "Bees and pesticides" in words(client.get(f"/p/{project.id}/judge").text) or "Concrete" in words(
        client.get(f"/p/{project.id}/judge").text
    )
    again = client.post(place, {"kind": "screen"})
    assert client.follow(again).status_code in (200, 303)
    assert len(store.projects()) == 1, "a second click makes no second project"


def test_waiting_files_survive_and_are_not_read_before_the_decision(owner):
    client, store = owner
    place = send(owner, ("votes.csv", VOTES))
    create_app(store)  # a restart
    (waiting,) = unfinished_imports(store)
    assert (waiting.kind, waiting.attempts) == (ANY, 0)
    assert client.post(place, {"discard": "1"}).headers["location"] == "/"
    assert unfinished_imports(store) == []
    assert find_import(store, waiting.id).error
    assert place not in client.get("/").text


def test_two_columns_cannot_have_one_role(owner):
    client, store = owner
    place = send(owner, ("odd.csv", ODD))
    refused = client.post(place, {"kind": "screen", "role-0-0": "screen.title", "role-0-1": "screen.title"})
    assert refused.status_code == 422
    assert "two columns have the role" in words(refused.text)
    assert store.projects() == []


def test_a_project_for_judging_together_asks_every_document_twice(owner):
    _, store = owner
    project = make_project(store, KINDS, NewUpload("u", "together", "", [UploadedFile("pairs.csv", PAIRS)]))
    assert project.kind == "grade"
    assert (project.settings["judges"], project.settings["shared"]) == (2, 1.0)


def test_tasks_and_roles_are_about_kinds_of_work():
    assert {task.kind for task in TASKS.values()} - {SAVED} == set(KINDS) == set(ROLES)


def test_only_the_owner_decides(owner):
    client, store = owner
    place = send(owner, ("votes.csv", VOTES))
    project = make_project(store, KINDS, NewUpload("u", "compare", "", [UploadedFile("teas.csv", TEAS)]))
    judge = PageClient(client.app, store.add_judge(project.id, "Ann"))
    assert judge.get(place).status_code == 403
    assert judge.post(place, {"kind": "compare"}).status_code == 403


def test_refusals_of_previews_name_the_upload():
    for content in (b"\n", b"PAR1" + b"\0" * 50):
        _, (preview,) = preview_files([UploadedFile("mine.csv", content)])
        assert preview.remarks[0].startswith("mine.csv ")


def test_a_long_table_is_not_cut_inside_a_cell():
    row = '"A title","' + "line\n" * 5000 + '"\n'
    _, (preview,) = preview_files([UploadedFile("a.csv", ("title,abstract\n" + row * 20).encode())])
    assert preview.format == "CSV"
    assert len(preview.rows) == 5


def test_a_saved_project_has_no_roles(owner):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("project.json", "{}")
        archive.writestr("answers.jsonl", "")
    place = send(owner, ("saved.zip", content.getvalue()))
    assert owner[0].post(place, {"kind": "project", "role-0-0": "screen.title"}).status_code == 422


def test_roles_sent_for_files_without_columns_change_nothing(owner):
    """A form of another upload, sent for images."""
    client, _ = owner
    image = b"\x89PNG\r\n\x1a\n"
    place = send(owner, ("a.png", image + b"1"), ("b.png", image + b"2"))
    assert client.post(place, {"kind": "compare", "role-0-0": "compare.name"}).status_code == 303
