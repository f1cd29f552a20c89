"""Grades on pages."""

from __future__ import annotations

import json
import re
import threading
import time
from functools import partial
from itertools import product

import pytest

from corank import comparison, load, read
from corank.data.rows import with_names
from corank.errors import InputError
from corank.metrics import evaluate
from corank.progress import progress
from corank_lab.database.backends import SqliteDatabase
from corank_lab.pages import training
from corank_lab.pages.app import create_app
from helpers.pages import PageClient, answers_of_judges, fields, new_project, words

TABLE = (
    b"query,docid,title,text,bm25\n"
    b"heat pump,d1,Pumps,All about *heat* pumps in old houses; how loud they are and what they cost per year,2.5\n"
    b"heat pump,d2,Cats,<script>alert(1)</script>,0.5\nwind,d3,Mills,How mills turn,1.5\n"
)


@pytest.fixture
def store(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as opened:
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
    for name in ("queries", "quepid", "opensearch", "rank_eval", "judgements"):
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
    assert answers_of_judges(owner, path) == ["0"]
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


def test_a_list_shows_short_texts_and_opens_long_ones(app, store, owner):
    table = f"query,docid,title,text\ntea,d1,Cup,A cup of tea\ntea,d2,Pot,{'A pot of tea. ' * 30}\n"
    path = new_project(owner, "grade", [("docs.csv", table.encode())])
    change(owner, store, path, view="list")
    cards = owner.get(f"{path}/judge").text.split("<article")[1:]
    short, long = sorted(cards, key=lambda card: "A pot of tea" in card)
    assert "A cup of tea" in short
    assert "Whole text" not in short  # nothing is hidden
    assert "Whole text" in long
    assert "<kbd>T</kbd>" in long
    assert "<kbd>O</kbd>" not in long  # it looks like the grade 0


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


def many(n_queries, text=True):
    """Return a table of graded documents: the better ones have more words of the query and more stars."""
    lines = ["query,docid,text,stars,rating" if text else "query,docid,stars,rating"]
    for q, d in product(range(n_queries), range(6)):
        words = " ".join([f"tea{q}"] * (d % 4) + ["pot"] * (1 + d))
        lines.append(f"tea{q} pot,d{q}{d},{words + ',' if text else ''}{d % 4 + 0.25 * (q % 2)},{d % 4}")
    return "\n".join(lines).encode()


def test_an_index_is_refused_with_the_command_that_searches_it(owner):
    page = owner.post("/projects", {"kind": "grade"}, [("files", ("a.index", b"x"))])
    assert (page.status_code, "corank search wiki.index" in words(page.text)) == (422, True)


def test_training_needs_grades_of_several_queries(owner, path):
    page = owner.post(f"{path}/train")
    assert page.status_code == 422
    assert "0 queries have two different grades; grade documents of at least 5 queries" in words(page.text)
    assert owner.get(f"{path}/train").headers["location"] == f"{path}#train"
    assert owner.get(f"{path}/export/model").status_code == 404


@pytest.mark.parametrize("about", [b"", b"[1]", b'{"time": "yesterday"}', b'{"time": 5}', b"[" * 100_000])
def test_a_damaged_result_of_training_is_ignored(owner, store, path, about):
    store.add_files(path[3:], {training.ABOUT: ("application/json", about)})
    assert "Train and compare" in owner.get(path).text


def test_answers_since_a_training_are_those_that_were_not_undone(owner, store, path):
    html = answer(owner, path, "grade-1", owner.get(f"{path}/judge").text).text
    values = {"n_grades": 1, "n_queries": 1, "time": "2026-01-01", "verdict": "", "has_model": False}
    workspace = owner.app.app.state.site.workspaces.get(store.project(path[3:]))
    about = json.dumps({"n_answers": workspace.session.n_answers, **values})
    store.add_files(path[3:], {training.ABOUT: ("application/json", about.encode())})
    html = answer(owner, path, "grade-2", html).text
    assert "Answers since then: 1." in words(owner.get(path).text)
    owner.post(f"{path}/undo", {"client_id": re.search(r'value="(\d+-undo)"', html)[1]})
    assert "Answers since then" not in words(owner.get(path).text)
    answer(owner, path, "later", owner.get(f"{path}/judge").text)
    assert "Answers since then" not in words(owner.get(path).text)


def test_progress_of_training_survives_reloads_and_settings_and_errors_are_shown(owner, store, monkeypatch):
    path = new_project(owner, "grade", [("docs.csv", many(5))])
    may_end, calls = threading.Event(), []

    def slow(**options):
        calls.append(options)
        with progress(8, "9 methods", verbose=False) as advance:
            advance(2)
            may_end.wait(60)
        raise InputError("the rows are all equal.")

    monkeypatch.setattr("corank.comparison.compare", slow)
    assert owner.post(f"{path}/train").headers["location"] == f"{path}#train"
    job = training.job_of(store, path[3:])
    while not job.done:
        time.sleep(0.01)
    owner.post(f"{path}/train")  # a double click
    change(owner, store, path, depth=3)  # makes a new workspace
    assert "Comparing rankers: 9 methods, 25 %" in words(owner.get(path).text)
    may_end.set()
    job.thread.join(60)
    page = words(owner.get(path).text)
    assert "the rows are all equal." in page
    assert "Comparing rankers" not in page
    (options,) = calls
    assert options["X"].names == ["stars", "bm25 text", "words text", "length text"]
    assert options["prior"] == ["bm25 text"]


@pytest.mark.long
@pytest.mark.parametrize("has_numbers", [True, False])
def test_train_compare_report_and_model(app, owner, store, tmp_path, monkeypatch, has_numbers):
    table = many(6).replace(b",stars,", b",_,") if not has_numbers else many(6, text=False)
    if not has_numbers:
        table = re.sub(rb",[\d.]+,(\d)$", rb",x,\1", table, flags=re.MULTILINE)
    quick = partial(comparison.compare, ["rankrls"], folds=2, fractions=())
    monkeypatch.setattr("corank.comparison.compare", quick)
    path = new_project(owner, "grade", [("docs.csv", table)])
    owner.post(f"{path}/train")
    job = training.job_of(store, path[3:])
    job.thread.join(300)
    assert (job.error, job.is_running) == ("", False)
    page = words(owner.get(path).text)
    assert "nDCG@10" in page
    assert "From 36 grades of 6 queries" in page
    assert ("Learnt from: stars" if has_numbers else "“Present order” is that by bm25") in page
    report = owner.get(f"{path}/train")
    assert "RankRLS" in report.text
    policy = report.headers["content-security-policy"]
    assert "script-src" not in policy
    assert "sandbox" in policy
    (tmp_path / "m.safetensors").write_bytes(owner.get(f"{path}/export/model").content)
    (tmp_path / "f.csv").write_text(owner.get(f"{path}/export/features").text)
    rows = read(tmp_path / "f.csv")
    ranks = load(tmp_path / "m.safetensors").rank(with_names(rows.X, rows.names), qid=rows.qid)
    assert evaluate(rows.y, -ranks.astype(float), rows.qid, "nDCG@10")["nDCG@10"].mean > 0.9
    assert rows.names == (["stars"] if has_numbers else ["bm25 text", "words text", "length text"])
    judge = PageClient(app, store.add_judge(path[3:], "ann"))
    for address in ("train", "export/model", "files/train/model.safetensors", "files/train%2Fmodel.safetensors"):
        assert judge.get(f"{path}/{address}").status_code in (403, 404)
    again = owner.post(
        "/projects", {"kind": "project"}, [("files", ("p.zip", owner.get(f"{path}/export/project").content))]
    )
    assert owner.get(f"{again.headers['location']}/train").text == report.text
