"""Grades on pages."""

from __future__ import annotations

import json
import re

import pytest

from corank.judging.sessions.sqlite_store import SqliteStore
from corank.server.app import create_app
from some_pages import PageClient, fields, new_project, words

TABLE = (
    b"query,docid,title,text,bm25\n"
    b"heat pump,d1,Pumps,All about *heat* pumps in old houses; how loud they are and what they cost per year,2.5\n"
    b"heat pump,d2,Cats,<script>alert(1)</script>,0.5\nwind,d3,Mills,How mills turn,1.5\n"
)


@pytest.fixture
def store(tmp_path):
    with SqliteStore(tmp_path / "corank.db") as opened:
        yield opened


@pytest.fixture
def app(store):
    return create_app(store)


@pytest.fixture
def owner(app, store):
    return PageClient(app, store.add_owner())


@pytest.fixture
def path(owner):
    return new_project(owner, "grade", [("docs.csv", TABLE)])


def answer(client, path, action, html=None, **more):
    html = html or client.get(f"{path}/judge").text
    return client.post(f"{path}/judge", {**fields(html), "action": action, **more}, headers={"x-corank": "1"})


def change(owner, store, path, **settings):
    project = store.project(path[3:])
    store.change_project(project.id, name="x", settings={**project.settings, **settings}, is_archived=False)


def test_a_story_with_a_conflict(app, store, owner, path):
    change(owner, store, path, judges=2)
    ann, bob = (PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob"))
    html = ann.get(f"{path}/judge").text
    assert "heat pump" in html
    assert "<em>heat</em>" in html
    assert "bm25" not in html  # for models
    assert "Rank 1" not in html
    html = answer(ann, path, "grade-3", html, note="good one").text
    html = answer(ann, path, "later", html).text
    html = answer(ann, path, "unrateable", html).text
    assert "Cats" in html  # put aside, so it comes again
    answer(ann, path, "grade-0", html)
    assert "No more questions" in ann.get(f"{path}/judge").text
    for grade in (0, 0, 2):
        answer(bob, path, f"grade-{grade}")
    page = owner.get(path).text
    assert "3 of 3 documents of 2 queries are finished" in words(page)
    assert "Documents with different grades: 1" in words(page)
    assert "alpha (ordinal) is" in words(page)
    form = page.partition("/settle")[2].partition("</form>")[0]
    hidden = dict(re.findall(r'name="(item|client_id)" value="([^"]*)"', form))
    hidden["item"] = hidden["item"].replace("&#34;", '"')
    assert owner.post(f"{path}/settle", {**hidden, "grade": "2"}).status_code == 303
    assert "do not contradict" in words(owner.get(path).text)
    assert owner.get(f"{path}/export/qrels").text == "q1 0 d1 2\nq1 0 d2 0\nwind 0 d3 2\n"
    book = json.loads(owner.get(f"{path}/export/book").text)
    notes = [one["explanation"] for pair in book["query_doc_pairs"] for one in pair["judgements"]]
    assert "good one" in notes
    for name in ("queries", "letor", "quepid", "opensearch", "rank_eval", "judgements"):
        answered = owner.get(f"{path}/export/{name}")
        assert (answered.status_code, "attachment" in answered.headers["content-disposition"]) == (200, True)


def test_a_book_continues_where_it_was(owner, store, path):
    answer(owner, path, "grade-3")
    book = owner.get(f"{path}/export/book").text
    again = new_project(owner, "grade", [("book.json", book.encode())])
    assert "1 of 3 documents" in words(owner.get(again).text)
    assert "Cats" in owner.get(f"{again}/judge").text


def test_retries_undo_and_change(owner, store, path):
    first = owner.get(f"{path}/judge").text
    page = answer(owner, path, "grade-1", first).text
    assert "answered already" in answer(owner, path, "grade-2", first).text
    owner.post(f"{path}/undo", {"client_id": re.search(r'value="(\d+-undo)"', page)[1]})
    assert "Pumps" in owner.get(f"{path}/judge").text
    answer(owner, path, "grade-2")
    history = owner.get(f"{path}/history").text
    assert "Good" in words(history)
    page = owner.get(re.search(r'href="([^"]+\?item=[^"]+)"', history)[1]).text
    assert "You change an earlier answer: 2" in words(page)
    answer(owner, path, "grade-0", page)
    assert "Poor" in words(owner.get(f"{path}/history").text)
    assert "0 of 1 answers" in words(owner.get(f"{path}/history?find=nothing").text)


def test_two_judges_get_different_documents_unless_overlap_asks(app, store, owner, path):
    ann, bob = (PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob"))
    assert fields(ann.get(f"{path}/judge").text)["item"] != fields(bob.get(f"{path}/judge").text)["item"]
    change(owner, store, path, judges=2)
    cat = PageClient(app, store.add_judge(path[3:], "cat"))
    assert fields(ann.get(f"{path}/judge").text)["item"] == fields(cat.get(f"{path}/judge").text)["item"]


def test_the_model_chooses_in_the_background(app, store, owner, path):
    change(owner, store, path, order="model")
    for grade in (3, 0, 1):
        assert answer(owner, path, f"grade-{grade}").status_code == 200
    workspace = app.app.state.site.workspaces.get(store.project(path[3:]))
    workspace.background.wait()
    assert workspace.background.error is None
    assert "No more questions" in owner.get(f"{path}/judge").text


def test_a_scale_must_keep_the_grades_that_were_given(owner, store, path):
    answer(owner, path, "grade-3")
    form = {
        "project_name": "x", "question": "", "guidelines": "", "scale": "0 = no\n1 = yes", "order": "query",
        "view": "one", "depth": "0", "judges": "1", "shared": "100", "index": "docs",
    }  # fmt: skip
    page = owner.post(f"{path}/settings", form)
    assert (page.status_code, "judges gave the grade 3" in words(page.text)) == (422, True)
    assert owner.post(f"{path}/settings", {**form, "scale": "0 = no\n3 = yes", "show_rank": "on"}).status_code == 303
    html = owner.get(f"{path}/judge").text
    assert re.findall(r'value="grade-(\d+)"', html) == ["0", "3"]
    assert "Rank 2" in html


def rows(html):
    """Return title, fields and pressed button of each document of a list."""
    found = {}
    for part in html.split("<article")[1:]:
        title = words(re.search(r'<h2 id="title-\d+">(.*?)</h2>', part)[1])
        pressed = re.findall(r'value="([\w-]+)"[^>]*aria-pressed="true"', part)
        found[title] = (fields(part), pressed, "data-current" in part)
    return found


def mark(client, path, html, title, action, **more):
    form = {**rows(html)[title][0], "action": action, **more}
    return client.post(f"{path}/judge", form, headers={"x-corank": "1"}).text


def test_a_result_list_is_graded_in_any_order(owner, store, path):
    change(owner, store, path, view="list")
    html = owner.get(f"{path}/judge").text
    assert sorted(rows(html)) == ["Cats", "Pumps"]
    assert "Rank 1" not in html
    assert "<script>alert" not in html
    html = mark(owner, path, html, "Cats", "grade-0", note="no pump")
    assert rows(html)["Cats"][1:] == (["grade-0"], False)
    assert rows(html)["Pumps"][1:] == ([], True)  # the next one without an answer
    twice = mark(owner, path, html, "Cats", "grade-1", client_id="0-1")
    assert "answered already" in twice
    assert rows(twice)["Cats"][1] == ["grade-0"]
    html = mark(owner, path, html, "Pumps", "later")
    assert "All documents of this list are answered" in words(html)
    html = mark(owner, path, html, "Pumps", "grade-3")  # a change
    assert owner.post(f"{path}/judge", {"item": rows(html)["Pumps"][0]["item"], "action": "next"}).status_code == 303
    html = owner.get(f"{path}/judge").text
    assert list(rows(html)) == ["Mills"]
    undo = owner.post(f"{path}/undo", {"client_id": re.search(r'value="(\d+-undo)"', html)[1]})
    assert rows(owner.follow(undo).text)["Pumps"][1:] == (["later"], True)
    entries = [(one.entry["document"], one.action, one.entry.get("by", "")) for one in store.answers(path[3:])]
    assert entries == [
        ("d2", "grade", "query"), ("d1", "later", "query"), ("d1", "grade", "change"), ("d1", "undo", ""),
    ]  # fmt: skip


def test_partial_lists_come_again_and_two_judges_get_different_lists(app, store, owner, path):
    change(owner, store, path, view="list")
    ann, bob = (PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob"))
    html = ann.get(f"{path}/judge").text
    html = mark(ann, path, html, "Cats", "grade-1")
    item = rows(html)["Pumps"][0]["item"]
    skipped = ann.follow(ann.post(f"{path}/judge", {"item": item, "action": "next"})).text
    assert list(rows(skipped)) == ["Mills"]
    assert list(rows(ann.get(f"{path}/judge").text)) == ["Mills"]  # after a reload too
    assert list(rows(bob.get(f"{path}/judge").text)) == ["Pumps"]  # Cats is finished, Mills is held
    html = mark(ann, path, skipped, "Mills", "grade-2")
    again = ann.follow(ann.post(f"{path}/judge", {"item": rows(html)["Mills"][0]["item"], "action": "next"})).text
    assert "No more questions" in again  # bob holds the rest
    mark(bob, path, bob.get(f"{path}/judge").text, "Pumps", "grade-3")
    assert "3 of 3 documents" in words(owner.get(path).text)
    seen = ann.get(re.search(r'href="([^"]+\?item=[^"]+)"', ann.get(f"{path}/history").text)[1].replace("&amp;", "&"))
    assert rows(seen.text)["Mills"][1:] == (["grade-2"], True)


def test_a_list_is_shuffled_for_each_judge_unless_the_rank_is_shown(app, store, owner):
    table = "query,docid,position\n" + "".join(f"tea,d{k},{20 - k}\n" for k in range(20))
    path = new_project(owner, "grade", [("docs.csv", table.encode())])
    change(owner, store, path, view="list", judges=2, depth=8)
    ann, bob = (PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob"))
    first, second = (list(rows(one.get(f"{path}/judge").text)) for one in (ann, bob))
    by_rank = [f"d{k}" for k in range(19, 11, -1)]
    assert sorted(first) == sorted(second) == sorted(by_rank)
    assert first != second
    assert first == list(rows(ann.get(f"{path}/judge").text))
    change(owner, store, path, view="list", judges=2, depth=8, show_rank=True)
    html = ann.get(f"{path}/judge").text
    assert list(rows(html)) == by_rank
    assert "Rank 8" in html


@pytest.mark.parametrize(
    "form", [{}, {"action": "grade-9"}, {"action": "settle"}, {"action": "grade-"}, {"action": "undo"}]
)
def test_forged_forms_are_refused(owner, store, path, form):
    html = owner.get(f"{path}/judge").text
    assert owner.post(f"{path}/judge", {**fields(html), **form}).status_code == 422
    assert owner.post(f"{path}/judge", {"action": "grade-1", "item": "[]", "client_id": "1"}).status_code == 422
    assert store.answers(path[3:]) == []
