"""Screening on pages: import, reading with reasons and notes, several judges, conflicts, report and exports."""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from html import unescape

import pytest

from corank_lab.database.connections import DatabaseError
from corank_lab.pages.app import create_app
from corank_lab.pages.markup import highlight
from corank_lab.records.records import read_records
from corank_lab.screening.certificate import verify
from corank_lab.screening.stopping.rules import DEFAULT_CONFIDENCE, TRADE
from helpers.pages import PageClient, answers_of_judges, fields, words
from helpers.reviews import bees, with_duplicate
from helpers.stores import open_new

SETTINGS = {
    "project_name": "Bees", "criteria": "**Include** bees", "reasons": "wrong species\nno data", "topic": "bees",
    "highlight": "pollen, bee*", "highlight_against": "concrete", "readers": "1", "shared_records": "100",
    "rule": "agree", "target": "95", "confidence": "95", "richness": "0", "seed": "0",
}  # fmt: skip


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def store(request, tmp_path):
    with open_new(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def app(store):
    return create_app(store)


@pytest.fixture
def owner(app, store):
    return PageClient(app, store.add_owner())


def new_review(client, *files, **settings):
    files = files or (("bees.ris", with_duplicate(40)),)
    made = client.post("/projects", {"kind": "screen"}, [("files", (name, text.encode())) for name, text in files])
    assert made.status_code == 303, words(made.text)
    assert made.headers["location"].endswith("/import")
    path = made.headers["location"].removesuffix("/import")
    saved = client.post(f"{path}/settings", {**SETTINGS, **{name: str(value) for name, value in settings.items()}})
    assert saved.status_code == 303, words(saved.text)
    return path


def answer(client, path, action, html=None, **more):
    html = html or client.get(f"{path}/judge").text
    form = {**fields(html), "action": action, **more}
    return client.post(f"{path}/judge", form, headers={"x-corank": "1"}).text


def title_of(html):
    found = html.partition('<h1 id="title"')[2].partition(">")[2].partition("</h1>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", found)).split())


def workspace_of(app, store, path):
    return app.app.state.site.workspaces.get(store.project(path[3:]))


def read(app, store, client, path, n, wrong=()):
    """Read records as the titles say; return the titles."""
    titles = []
    for number in range(n):
        workspace_of(app, store, path).background.wait()
        html = client.get(f"{path}/judge").text
        titles.append(title_of(html))
        is_bee = "bee" in titles[-1].lower()
        answer(client, path, "relevant" if is_bee != (number in wrong) else "not-1", html)
    return titles


def test_the_import_shows_files_duplicates_and_missing_fields(owner):
    path = new_review(owner, ("one.ris", with_duplicate(10)), ("two.ris", bees(1)))
    page = words(owner.get(f"{path}/import").text)
    for text in ("one.ris", "two.ris", "RIS", "Groups of duplicates: 1", "Not duplicates", "No labels were found"):
        assert text in page
    assert "Imported: 12 records, duplicates among them: 2" in words(owner.get(path).text)
    assert owner.post(f"{path}/settle", {"item": "b0", "action": "eat", "client_id": "x"}).status_code == 422


def with_column(n):
    """A table of records with a column of probabilities, which are high for those about bees."""
    titles = [f"{'Bees' if at % 4 == 0 else 'Glaciers'} and study {at}" for at in range(n)]
    rows = [f"w{at},{title},{0.9 if 'Bees' in title else 0.1},{at + 90}" for at, title in enumerate(titles)]
    return "id,title,llm,size\n" + "\n".join(rows) + "\n"


OLD = "id,title,included\n" + "".join(f"o{at},{'Bees' if at % 2 else 'Ice'} of old {at},{at % 2}\n" for at in range(12))


def test_prior_knowledge_of_the_page_leads_the_reading(app, store, owner):
    made = owner.post("/projects", {"kind": "screen"}, [("files", ("works.csv", with_column(24).encode()))])
    path = made.headers["location"].removesuffix("/import")
    page = owner.get(f"{path}/import").text
    assert re.findall(r'<option value="(llm|size|id|title)"', page) == ["llm"]
    assert re.search(r'value="95" required checked> <span><b>1 in 20</b>', page)
    default = next(level for level in TRADE if level.confidence == DEFAULT_CONFIDENCE)
    assert f"reads {100 * default.read:.1f} % of the records; {100 * default.worst_group:.1f} % reach" in words(page)
    form = {"topic": "bees", "probability": "llm", "confidence": "90"}
    saved = owner.post(f"{path}/prior", form, [("files", ("old.csv", OLD.encode()))])
    assert saved.headers["location"] == f"{path}/import#known"
    page = owner.get(f"{path}/import").text
    assert "In use: old.csv: 12 judged records, 6 relevant" in words(page)
    assert '<option value="llm" selected>' in page
    assert re.search(r'value="90" required checked> <span><b>1 in 10</b>', page)
    settings = store.project(path[3:]).settings
    assert (settings["topic"], settings["probability"], settings["confidence"]) == ("bees", "llm", 0.9)
    workspace = workspace_of(app, store, path)
    workspace.background.wait()
    assert workspace.session.sources.shape == (24, 3)
    for _ in range(6):  # all six before any other
        workspace.background.wait()
        html = owner.get(f"{path}/judge").text
        assert title_of(html).startswith("Bees")
        answer(owner, path, "relevant", html)
    whole = owner.get(f"{path}/export/project").content
    again = owner.post("/projects", {"kind": "project"}, [("files", ("works.zip", whole))]).headers["location"]
    assert "In use: old.csv: 12 judged records" in words(owner.get(f"{again.removesuffix('/import')}/import").text)
    forget = {**form, "probability": "", "topic": "", "forget": "on"}
    assert owner.post(f"{path}/prior", forget).status_code == 303
    assert workspace_of(app, store, path).session._prior.reviews is None
    assert "In use" not in words(owner.get(f"{path}/import").text)


@pytest.mark.parametrize(
    ("change", "file", "sentence"),
    [
        ({"probability": "size"}, None, "the column 'size' holds no probabilities"),
        ({"probability": "none"}, None, "no column 'none'"),
        ({"confidence": "30"}, None, "confidence is 0.3"),
        ({}, "id,title\na,Tin\n", "the old reviews have 0 relevant and 0 irrelevant records"),
        ({}, "id,title,included\n" + "a,Tin,1\n" * 700_000, "the limit"),
    ],
)
def test_prior_knowledge_that_cannot_be_used_is_refused(owner, store, change, file, sentence):
    made = owner.post("/projects", {"kind": "screen"}, [("files", ("works.csv", with_column(24).encode()))])
    path = made.headers["location"].removesuffix("/import")
    before = store.project(path[3:])
    files = [("files", ("old.csv", file.encode()))] if file else None
    refused = owner.post(f"{path}/prior", {"topic": "", "probability": "", "confidence": "95", **change}, files)
    assert refused.status_code == 422
    assert sentence in words(refused.text)
    assert store.project(path[3:]) == before


def test_a_database_that_is_away_is_no_fault_of_prior_knowledge(store, owner, monkeypatch):
    made = owner.post("/projects", {"kind": "screen"}, [("files", ("works.csv", with_column(24).encode()))])
    path = made.headers["location"].removesuffix("/import")

    def away(*_):
        raise DatabaseError("the database is away.")

    monkeypatch.setattr(store, "add_files", away)
    form = {"topic": "", "probability": "", "confidence": "95"}
    assert owner.post(f"{path}/prior", form, [("files", ("old.csv", OLD.encode()))]).status_code == 503


def test_groups_that_are_separated_are_judged_apart(app, store, owner):
    path = new_review(owner, ("one.ris", with_duplicate(10)))
    item = re.search(r'name="item" value="([^"]+)"', owner.get(f"{path}/import").text)[1]
    form = {"item": item, "action": "distinct", "client_id": "distinct-1", "back": "import"}
    for _ in range(2):
        assert owner.post(f"{path}/settle", form).headers["location"] == f"{path}/import"
    assert "No duplicates were found" in words(owner.get(f"{path}/import").text)
    assert [one.action for one in store.answers(path[3:])] == ["distinct"]
    assert "0 of 11 records are read" in words(owner.get(path).text)


def test_a_record_is_shown_with_links_words_and_criteria(app, store, owner):
    path = new_review(owner)
    workspace_of(app, store, path).background.wait()
    html = owner.get(f"{path}/judge").text
    assert re.search(r'href="https://doi.org/10.1000/bees.\d+"', html)
    assert re.search(r'href="https://studies.example/\d+"', html)
    assert "<strong>Include</strong> bees" in html
    assert "bees</mark> &amp; flies" in html
    assert '<mark class="for">' in html  # the topic finds a record about bees
    assert "Journal of Small Studies" in html
    assert "wrong species" in html


def test_answers_reasons_tags_notes_undo_and_changes(app, store, owner):
    path = new_review(owner)
    html = owner.get(f"{path}/judge").text
    answer(owner, path, "not-2", html, tags="odd, very odd", note="look again")
    entries = [one.entry for one in store.answers(path[3:])]
    assert [one["action"] for one in entries] == ["note", "not"]
    assert (entries[1]["reason"], entries[1]["tags"]) == ("no data", ["odd", "very odd"])
    assert entries[1]["keys"]
    assert {"time", "judge", "version", "records", "by"} <= entries[1].keys()
    history = words(owner.get(f"{path}/history").text)
    for text in ("excluded : no data", "very odd", "look again", "1 of 1 answers"):
        assert text.replace(" :", ":") in history.replace(" :", ":")
    assert "0 of 1 answers" in words(owner.get(f"{path}/history?show=relevant").text)
    assert "1 of 1 answers" in words(owner.get(f"{path}/history?show=not&find=odd").text)
    page = owner.get(f"{path}/judge").text
    undo = re.search(r'value="(\d+-undo)"', page)[1]
    for _ in range(2):  # a double click withdraws one answer
        owner.post(f"{path}/undo", {"client_id": undo})
    again = owner.get(f"{path}/judge").text
    assert title_of(again) == title_of(html)
    answer(owner, path, "relevant", again)
    link = re.search(r'href="([^"]+\?item=[^"]+)"', owner.get(f"{path}/history").text)[1]
    page = owner.get(link).text
    assert "You change an earlier answer: included" in words(page)
    answer(owner, path, "not", page)
    assert [one.action for one in store.answers(path[3:])] == ["note", "not", "undo", "relevant", "not"]
    assert store.answers(path[3:])[-1].entry["by"] == "history"
    assert answers_of_judges(owner, path) == ["1"]


def test_answers_are_filtered_by_reason_and_tag_and_unread_records_are_found(app, store, owner):
    path = new_review(owner)
    answer(owner, path, "not-2", tags="odd")
    answer(owner, path, "not-1")
    for show, n in (("reason:no data", 1), ("reason:wrong species", 1), ("tag:odd", 1), ("tag:even", 0), ("not", 2)):
        found = words(owner.get(f"{path}/history?show={show}").text)
        assert f"{n} of 2 answers" in found, show
    workspace = workspace_of(app, store, path)
    workspace.background.wait()
    unread = workspace.unanswered("me")
    assert len(unread) == 40 - 2
    wanted = unread[7]
    page = owner.get(f"{path}/history?show=unread&find={wanted['item']}").text
    assert "of 38 records" in words(page)
    html = owner.get(re.search(r'href="([^"]+\?item=[^"]+)"', page)[1].replace("&amp;", "&")).text
    assert "You looked for this record" in words(html)
    before = workspace.session.rule.n
    answer(owner, path, "relevant", html)
    assert store.answers(path[3:])[-1].entry["by"] == "search"
    team = workspace_of(app, store, path).session.team
    # neither a find of the ranking nor one of the records that the ranking orders
    assert (team.n_found, team.n_known, list(team.finds), len(team.ranked)) == (1, 1, [], 2)
    assert workspace.session.rule.n == before - 1
    assert "1 record was looked for, outside of the ranking" in words(owner.get(f"{path}/report").text)
    undo = re.search(r'value="(\d+-undo)"', owner.get(f"{path}/judge").text)[1]
    owner.post(f"{path}/undo", {"client_id": undo})
    assert (workspace.session.team.n_found, workspace.session.rule.n) == (0, before)


def test_a_double_click_and_a_late_tab_change_nothing(store, owner):
    path = new_review(owner)
    html = owner.get(f"{path}/judge").text
    answer(owner, path, "relevant", html)
    for action in ("relevant", "not", "later"):
        assert "answered already" in answer(owner, path, action, html)
    assert [one.action for one in store.answers(path[3:])] == ["relevant"]


def test_the_model_finds_the_relevant_records_first(app, store, owner):
    path = new_review(owner)
    titles = read(app, store, owner, path, 16)
    assert sum("bee" in title.lower() for title in titles) == 10  # all of them
    assert len(set(titles)) == 16
    workspace_of(app, store, path).background.wait()
    page = words(owner.get(path).text)
    assert "16 of 40 records are read, 10 of them relevant" in page
    for word in ("Estimated:", "Tested:", "Proved:"):
        assert word in page


def test_records_put_aside_come_last(app, store, owner):
    path = new_review(owner, ("few.ris", bees(3)))
    first = owner.get(f"{path}/judge").text
    page = answer(owner, path, "later", first)
    assert title_of(page) != title_of(first)
    answer(owner, path, "not", page)
    answer(owner, path, "not")
    last = owner.get(f"{path}/judge").text
    assert title_of(last) == title_of(first)
    assert "No more questions" in words(answer(owner, path, "relevant", last))


def test_a_duplicate_that_a_judge_marks_counts_with_the_other(store, owner, app):
    path = new_review(owner)
    workspace_of(app, store, path).background.wait()
    html = owner.get(f"{path}/judge").text
    page = owner.get(f"{path}/similar?item={fields(html)['item']}").text
    form = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.partition("</form>")[0]))
    form |= dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.split("</form>")[1]))
    other = form["of"]
    for _ in range(2):
        assert owner.post(f"{path}/judge", {**form, "action": "duplicate"}).status_code == 303
    assert len(store.answers(path[3:])) == 1
    assert store.answers(path[3:])[0].entry["of"] == other
    assert "duplicate" in words(owner.get(f"{path}/history").text)
    late = {**fields(owner.get(f"{path}/judge").text), "action": "duplicate", "of": "nosuch"}
    assert owner.post(f"{path}/judge", late).status_code == 422


def test_nobody_gets_a_record_that_another_holds_or_has_read(app, store, owner):
    path = new_review(owner)
    clients = [PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob", "cat")]
    for _ in range(4):
        pages = [client.get(f"{path}/judge").text for client in clients]
        assert len({fields(page)["item"] for page in pages}) == 3
        for client, page in zip(clients, pages, strict=True):
            answer(client, path, "not", page)
    items = [one.item for one in store.answers(path[3:])]
    assert len(items) == len(set(items)) == 12


def test_two_judges_per_record_conflict_and_the_owner_settles(app, store, owner):
    path = new_review(owner, ("few.ris", bees(12)), readers=2)
    ann, bob, cat = (PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob", "cat"))
    mine = read(app, store, ann, path, 6)
    theirs = read(app, store, bob, path, 6, wrong=[1])
    assert mine == theirs  # a second reading comes before new records
    assert title_of(cat.get(f"{path}/judge").text) not in mine
    assert "bob" not in words(ann.get(f"{path}/history").text)
    assert "Records on which judges disagree: 1" in words(owner.get(path).text)
    page = owner.get(f"{path}/conflicts").text
    assert title_of(page) == mine[1]
    for text in ("ann : included" if "bee" in mine[1].lower() else "ann : excluded", "bob", "Conflicts to settle: 1"):
        assert text in words(page).replace("ann:", "ann :")
    form = {**fields(page), "action": "not-2"}
    for _ in range(2):
        assert owner.post(f"{path}/settle", form).headers["location"] == f"{path}/conflicts"
    page = owner.get(f"{path}/conflicts").text
    assert "Judges do not contradict each other" in words(page)
    report = words(owner.get(f"{path}/report").text)
    assert "Conflicts: 1, settled: 1" in report
    assert "ann, bob" in report
    item = re.search(r'name="item" value="([^"]+)"', page)[1]
    owner.post(f"{path}/settle", {"item": item, "action": "reopen", "client_id": "again"})
    assert "Conflicts to settle: 1" in words(owner.get(f"{path}/conflicts").text)


def test_exports_hold_the_answers(app, store, owner, tmp_path):
    path = new_review(owner)
    read(app, store, owner, path, 12)
    for name, suffix in (("ris", "ris"), ("csv", "csv"), ("excel", "xlsx")):
        file = tmp_path / f"all.{suffix}"
        file.write_bytes(owner.get(f"{path}/export/{name}-all").content)
        assert len(read_records(file)) == 40
        file.write_bytes(owner.get(f"{path}/export/{name}-copies").content)
        assert len(read_records(file)) == 41
    included = tmp_path / "included.ris"
    included.write_bytes(owner.get(f"{path}/export/ris-included").content)
    titles = read_records(included).titles
    assert all("bee" in title.lower() for title in titles)
    assert owner.get(f"{path}/export/ris-conflicts").status_code == 422
    assert "no record is in conflict" in words(owner.get(f"{path}/export/ris-conflicts").text)
    assert owner.get(f"{path}/export/ris-nosuch").status_code == 404
    diagram = owner.get(f"{path}/export/diagram")
    assert (diagram.headers["content-type"], diagram.text[:4]) == ("image/svg+xml", "<svg")
    assert "The search identified 41 records" in owner.get(f"{path}/export/methods").text
    assert len(owner.get(f"{path}/export/log").text.splitlines()) == 12


def test_the_certificate_can_be_verified_from_its_archive(app, store, owner, tmp_path):
    path = new_review(owner, ("one.ris", with_duplicate(10)), ("two words.ris", bees(14)))
    assert owner.get(f"{path}/export/certificate").status_code == 422  # no answers yet
    read(app, store, owner, path, 6)
    found = owner.get(f"{path}/export/certificate")
    zipfile.ZipFile(io.BytesIO(found.content)).extractall(tmp_path)
    files = sorted((tmp_path / "records").rglob("*.ris"))
    lines = verify((tmp_path / "certificate.json").read_bytes(), files, tmp_path / "answers")
    assert any("Computed anew" in line for line in lines)


def test_the_certificate_keeps_judges_apart_whatever_their_names(app, store, owner, tmp_path):
    path = new_review(owner, ("one.ris", bees(15)), readers=6)
    names = ["Ann!", "Ann?", "Ann#", "Åsa", "李", "../../x"]
    for name in names:
        read(app, store, PageClient(app, store.add_judge(path[3:], name)), path, 2)
    answer = owner.get(f"{path}/export/certificate")
    assert answer.status_code == 200, words(answer.text)
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert {"records/1.ris", "names.json", *(f"answers/{n}.jsonl" for n in range(1, 7))} < set(archive.namelist())
    archive.extractall(tmp_path)
    certificate = json.loads((tmp_path / "certificate.json").read_bytes())
    assert sorted(log["judge"] for log in certificate["answers"]) == sorted(names)
    answers = store.answers(path[3:])
    assert sum(log["lines"] for log in certificate["answers"]) == len(answers) == 12
    assert certificate["reading"]["read"] == len({stored.item for stored in answers})
    lines = verify((tmp_path / "certificate.json").read_bytes(), [tmp_path / "records" / "1.ris"], tmp_path / "answers")
    assert "Nothing is signed" in lines[-1]


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", ["records/7/../../x", "records/../x", "records/1//x", "/x", "..", "a\\b", "records/x"])
def test_names_of_files_in_a_project_never_become_paths(store, owner, tmp_path, monkeypatch, name):
    (tmp_path / "temporary" / "deep").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary" / "deep"))
    path = new_review(owner, ("few.ris", bees(6)))
    answer(owner, path, "relevant")
    packed = io.BytesIO()
    saved = zipfile.ZipFile(io.BytesIO(owner.get(f"{path}/export/project").content))
    with zipfile.ZipFile(packed, "w") as forged:
        for part in saved.namelist():
            head = json.loads(saved.read(part)) if part == "project.json" else None
            if head is not None:
                head["files"][0]["name"] = name
            forged.writestr(part, saved.read(part) if head is None else json.dumps(head))
    before = {place for place in tmp_path.rglob("*") if "corank.db" not in place.name}
    refused = owner.post("/projects", {"kind": "project"}, [("files", ("x.zip", packed.getvalue()))])
    if refused.status_code == 303:  # a name that is harmless to store
        assert name == "records/x"
        path = refused.headers["location"]
    else:
        assert refused.status_code == 422
        assert "does not name so" in words(refused.text)
        store.add_files(path[3:], {name: ("application/octet-stream", b"forged")})
    if name.startswith("records/"):
        assert owner.get(f"{path}/export/certificate").status_code == 422
    assert {place for place in tmp_path.rglob("*") if "corank.db" not in place.name} == before


def test_a_project_moves_to_another_store_and_journals_are_added(app, store, owner):
    path = new_review(owner, ("few.ris", bees(6)))
    answer(owner, path, "relevant")
    packed = owner.get(f"{path}/export/project").content
    other = owner.post("/projects", {"kind": "project"}, [("files", ("x.zip", packed))]).headers["location"]
    assert "1 of 6 records are read" in words(owner.get(other).text)
    line = b'{"action": "not", "id": "b3", "by": "model", "time": "2026-01-01T00:00:00.000Z"}\n'
    for _ in range(2):
        owner.post(f"{other}/answers", {}, [("files", ("zoe.jsonl", line))])
    assert [one.judge for one in store.answers(other[3:])] == ["me", "zoe"]
    wrong = owner.post(f"{other}/answers", {}, [("files", ("zoe.jsonl", line.replace(b"b3", b"zz")))])
    assert (wrong.status_code, "no record" in wrong.text) == (422, True)


def test_labels_of_the_file_are_known_answers(app, store, owner):
    rows = "title,abstract,included\n" + "".join(f"Study {n} of bees,text {n},{n % 2}\n" for n in range(4))
    rows += "".join(f"Study {n} of ice,text {n},\n" for n in range(4, 8))
    path = new_review(owner, ("labelled.csv", rows), use_labels="on")
    assert "4 of them were known from labels" in words(owner.get(path).text)
    assert "Labels of the file are used" in words(owner.get(f"{path}/import").text)
    seen = {title_of(answer(owner, path, "not")) for _ in range(3)}
    assert all("ice" in title for title in seen)


@pytest.mark.parametrize(
    "form",
    [
        {}, {"item": "b1"}, {"item": "b1", "action": "eat"}, {"item": "nosuch", "action": "relevant"},
        {"item": "b1", "action": "not-9"}, {"item": "b1", "action": "not-x"}, {"item": "b1", "action": "relevant"},
        {"item": "b1", "action": "duplicate", "of": "b1", "client_id": "x"},
        {"item": "b1", "action": "relevant", "client_id": "x" * 300},
    ],
)  # fmt: skip
def test_forged_forms_are_refused(store, owner, form):
    path = new_review(owner, ("few.ris", bees(6)))
    assert owner.post(f"{path}/judge", form).status_code == 422
    assert store.answers(path[3:]) == []
    assert owner.get(f"{path}/judge?item=nosuch").status_code == 404


@pytest.mark.parametrize("word", ["a*" * 20 + "b", "*".join("ab" * 20), "a* " * 20 + "b", "(a+)+$", "*", "[", "\\"])
def test_hostile_words_take_no_time(word):
    text = ("a" * 2000 + "! ") * 5
    assert str(highlight(text, {"for": [word]})).count("a") >= 10_000


def test_a_star_is_a_wildcard_at_the_end_of_a_word_only():
    html = str(highlight("rats, rate, c*t and a heart  failures", {"for": ["rat*", "c*t", "heart fail*"]}))
    assert re.findall(r"<mark[^>]*>([^<]+)", html) == ["rats", "rate", "c*t", "heart  failures"]


def test_hostile_records_are_shown_as_text(owner, app, store):
    text = (
        "TY  - JOUR\nTI  - <script>alert(1)</script> bee\nAB  - <img src=x onerror=alert(2)> \u202eevil\n"
        'UR  - javascript:alert(3)\nDO  - 10.1000/"><script>x\nAU  - <b>Roe\nKW  - <svg onload=x>\nER  - \n'
        "\nTY  - JOUR\nTI  - =cmd|'/c calc'!A0\nUR  - http://plain.example/\nER  - \n"
    )
    path = new_review(owner, ("<i>.ris", text), criteria="<script>alert(4)</script>")
    for page in ("/", path, f"{path}/judge", f"{path}/import", f"{path}/report", f"{path}/conflicts"):
        html = owner.get(page).text
        assert "<script>" not in html.replace('<script src="/static/', "")
        assert "<img src=x" not in html
        assert 'href="javascript' not in html
        assert 'href="http://' not in html
        assert "<svg onload" not in html
        assert "\u202e" not in html
        assert " style=" not in html
    answer(owner, path, "relevant")
    assert "'=cmd" in owner.get(f"{path}/export/csv-all").text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("x.ris", b"\x00\x01", ""), ("x.csv", b"a,b\n", ""), ("a.png", b"\x89PNG\r\n\x1a\n", "found no records")],
)
def test_files_without_records_are_one_sentence(owner, name, content, message):
    found = owner.post("/projects", {"kind": "screen"}, [("files", (name, content))])
    assert found.status_code == 422
    assert message in words(found.text)
    assert "/tmp" not in found.text


def test_a_second_server_continues(app, store, owner):
    path = new_review(owner, ("few.ris", bees(8)))
    html = owner.get(f"{path}/judge").text
    other = PageClient(create_app(store), store.add_owner())
    assert fields(other.get(f"{path}/judge").text) == fields(html)
    answer(owner, path, "relevant", html)
    assert "answered already" in answer(other, path, "relevant", html)
    assert "1 read by you, 1 included" in words(other.get(f"{path}/judge").text)


def test_too_many_reasons_are_refused(owner):
    path = new_review(owner, ("few.ris", bees(6)))
    reasons = "\n".join(f"reason {n}" for n in range(10))
    assert owner.post(f"{path}/settings", {**SETTINGS, "reasons": reasons}).status_code == 422


def test_an_old_project_with_a_removed_rule_opens_and_says_so(app, store, owner):
    path = new_review(owner, ("few.ris", bees(6)))
    project = store.project(path[3:])
    settings = {**project.settings, "rule": "knee"}
    store.change_project(project.id, name=project.name, settings=settings, is_archived=False)
    shown = owner.get(path)
    assert shown.status_code == 200
    assert "the stopping rule 'knee' was removed; choose one of agree" in words(shown.text)
    assert owner.get(f"{path}/judge").status_code == 200
    assert owner.post(f"{path}/settings", {**SETTINGS, "rule": "betting"}).status_code == 303
    assert "was removed" not in words(owner.get(path).text)
