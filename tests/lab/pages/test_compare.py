"""Comparisons on pages: whole stories, and answers that arrive twice, late or out of order."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from urllib.parse import urlencode

import pytest

from corank_lab.pages.app import create_app
from helpers.pages import TEAS, PageClient, answers_of_judges, fields, new_project, words
from helpers.stores import open_new

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)
HOSTILE = (
    "name,note,link\n<script>alert(1)</script>,<img src=x onerror=alert(2)>,javascript:alert(3)\n"
    "=cmd|'/c calc'!A0,\u202eevil\x1b[31m,https://example.org/a?b=1&c=<\n"
)


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


def answer(client, path, action, html=None):
    html = html or client.get(f"{path}/judge").text
    return client.post(f"{path}/judge", {**fields(html), "action": action}, headers={"x-corank": "1"})


def test_a_story_of_two_judges(app, store, owner):
    path = new_project(owner)
    assert "There are no answers about the 5 items yet" in words(owner.get(path).text)
    page = owner.post(f"{path}/judges", {"name": "Ann"}).text
    link = re.search(r'value="(http://localhost/enter\?token=[^"]+)"', page)[1]
    ann = PageClient(app, link.partition("token=")[2])
    assert path in ann.get("/").text
    html = ann.get(f"{path}/judge").text
    for number in range(8):
        assert f"{number} answered" in words(html)
        asked = fields(html)
        # the item with the smaller number is better
        html = answer(ann, path, "left" if int(asked["left"]) < int(asked["right"]) else "right", html).text
        if "client_id" not in html:
            break
    app.app.state.site.workspaces.get(store.project(path[3:])).background.wait()
    overview = words(owner.get(path).text)
    assert "answers about 5 items" in overview
    assert "Ann" in overview
    rows = list(csv.DictReader(io.StringIO(owner.get(f"{path}/export/scores").text)))
    assert rows[0]["name"] == "Assam"
    pairs = list(csv.DictReader(io.StringIO(owner.get(f"{path}/export/pairs").text)))
    assert {row["judge"] for row in pairs} == {"Ann"}
    assert len(pairs) == len(store.answers(path[3:]))


def test_a_double_click_a_second_tab_and_the_back_button_change_nothing(store, owner):
    path = new_project(owner)
    first = owner.get(f"{path}/judge").text
    tab = owner.get(f"{path}/judge").text
    assert fields(first) == fields(tab)
    assert "answered already" not in answer(owner, path, "left", first).text
    for late in (first, tab, first):
        assert "answered already" in answer(owner, path, "right", late).text
    assert [one.action for one in store.answers(path[3:])] == ["left"]


def test_without_the_script_forms_redirect(store, owner):
    path = new_project(owner)
    html = owner.get(f"{path}/judge").text
    page = owner.follow(owner.post(f"{path}/judge", {**fields(html), "action": "equal"}))
    assert "1 answered" in words(page.text)
    page = owner.follow(owner.post(f"{path}/judge", {**fields(html), "action": "equal"}))
    assert "answered already" in words(page.text)


def test_undo_and_change(store, owner):
    path = new_project(owner)
    first = owner.get(f"{path}/judge").text
    page = answer(owner, path, "left", first).text
    undo = re.search(r'value="(\d+-undo)"', page)[1]
    for _ in range(2):  # a double click withdraws one answer
        owner.post(f"{path}/undo", {"client_id": undo})
    assert [one.action for one in store.answers(path[3:])] == ["left", "undo"]
    assert answers_of_judges(owner, path) == ["0"]
    assert "0 answered" in words(owner.get(f"{path}/judge").text)
    answer(owner, path, "left")
    history = owner.get(f"{path}/history").text
    change = re.search(r'href="([^"]+\?item=[^"]+)"', history)[1]
    page = owner.get(change).text
    assert "You change an earlier answer: left is better" in words(page)
    answer(owner, path, "bad", page)
    assert "both bad" in words(owner.get(f"{path}/history").text)
    assert "1 of 1 answers" in words(owner.get(f"{path}/history").text)


def test_two_judges_do_not_get_the_same_pair_at_once(app, store, owner):
    path = new_project(owner)
    project = store.project(path[3:])
    store.change_project(project.id, name="x", settings={**project.settings, "overlap": 0.0}, is_archived=False)
    clients = [PageClient(app, store.add_judge(project.id, name)) for name in ("ann", "bob", "cat")]
    asked = [fields(client.get(f"{path}/judge").text) for client in clients]
    assert len({frozenset((one["left"], one["right"])) for one in asked}) == 3


def test_a_second_server_on_the_same_database_sees_the_answers(app, store, owner):
    path = new_project(owner)
    other = PageClient(create_app(store), store.add_owner())
    html = owner.get(f"{path}/judge").text
    assert fields(other.get(f"{path}/judge").text) == fields(html)
    answer(owner, path, "left", html)
    assert "answered already" in answer(other, path, "left", html).text
    assert "1 answered" in words(other.get(f"{path}/judge").text)


@pytest.mark.parametrize(
    "form",
    [
        {}, {"action": "left"}, {"action": "up", "left": "0", "right": "1"},
        {"action": "left", "left": "0", "right": "0"},
        {"action": "left", "left": "0", "right": "99"}, {"action": "left", "left": "-1", "right": "1"},
        {"action": "left", "left": "٣", "right": "1"}, {"action": "left", "left": "0", "right": "1", "client_id": ""},
        {"action": "left", "left": "0", "right": "1", "client_id": "x" * 1000},
    ],
)  # fmt: skip
def test_forged_forms_are_refused(store, owner, form):
    path = new_project(owner)
    assert owner.post(f"{path}/judge", form).status_code == 422
    assert store.answers(path[3:]) == []
    assert owner.get(f"{path}/judge?item=9-1").status_code == 404


@pytest.mark.parametrize("item", ["9" * 5000, "1-" + "9" * 5000, "\u0663-4", "0-0", "\x00"])
def test_an_address_of_no_pair_is_not_found(owner, item):
    path = new_project(owner)
    assert owner.get(f"{path}/judge?{urlencode({'item': item})}").status_code == 404


def test_hostile_texts_are_shown_as_text(owner):
    path = new_project(owner, files=[("<b>.csv", HOSTILE.encode())])
    for page in ("/", path, f"{path}/judge", f"{path}/history"):
        html = owner.get(page).text
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert 'href="javascript' not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
    assert 'href="https://example.org/a?b=1&amp;c=' in owner.get(f"{path}/judge").text
    answer(owner, path, "left")
    assert "'=cmd" in owner.get(f"{path}/export/pairs").text


def test_images_alone_or_in_an_archive(owner):
    path = new_project(owner, files=[("a.png", PNG), ("../b.png", PNG + b"b"), ("c.png", PNG + b"c")])
    html = owner.get(f"{path}/judge").text
    assert html.count("/files/") == 2
    found = owner.get(f"{path}/files/b.png")
    assert (found.content, found.headers["content-type"]) == (PNG + b"b", "image/png")
    assert "sandbox" in found.headers["content-security-policy"]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("items.csv", "name,picture\nOne,pictures/a.png\nTwo,b.gif\n")
        archive.writestr("pictures/a.png", PNG)
        archive.writestr("../../b.gif", b"GIF89a" + bytes(20))
    path = new_project(owner, files=[("all.zip", packed.getvalue())])
    assert owner.get(f"{path}/judge").text.count("/files/") == 2


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "No file was sent"),
        ([("a.csv", b"")], "No file was sent"),
        ([("a.csv", b"name\nx\n")], "at least two"),
        ([("a.csv", b"name\nx\nx\n")], "two rows have the name"),
        ([("a.svg", b"<svg onload=alert(1)></svg>")], "has an unknown suffix"),
        ([("a.csv", TEAS), ("b.csv", TEAS)], "found 2 tables"),
        ([("a.zip", b"PK\x03\x04broken")], "cannot be unpacked"),
        ([("a.png", PNG)], "found 1 images and no table"),
    ],
)
def test_files_that_cannot_be_compared_are_one_sentence(owner, files, message):
    answer = owner.post("/projects", {"kind": "compare"}, [("files", one) for one in files])
    assert answer.status_code == 422
    assert message in words(answer.text)
    assert "/tmp" not in answer.text


def test_settings_change_and_bad_ones_are_refused(store, owner):
    path = new_project(owner)
    good = {
        "project_name": "Best tea",
        "question": "Which tea?",
        "guidelines": "*Sip*",
        "repeat": "0",
        "overlap": "50",
        "tol": "0.1",
    }
    assert owner.post(f"{path}/settings", good).status_code == 303
    assert store.project(path[3:]).settings["overlap"] == 0.5
    page = owner.get(f"{path}/judge").text
    assert "Which tea?" in page
    assert "<em>Sip</em>" in page
    for wrong in ({"overlap": "101"}, {"overlap": "x"}, {"tol": "-1"}, {"tol": "nan"}):
        assert owner.post(f"{path}/settings", {**good, **wrong}).status_code == 422
    assert store.project(path[3:]).name == "Best tea"


def test_a_judge_who_answers_at_random_is_flagged(app, store, owner):
    path = new_project(owner)
    names = [row.split(",")[0] for row in TEAS.decode().splitlines()[1:]]
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    for judge, wrong in (("ann", ()), ("bob", ()), ("dan", range(0, 10, 2))):
        for number, (a, b) in enumerate(pairs):
            entry = {
                "action": "right" if number in wrong else "left",
                "left": names[a],
                "right": names[b],
                "by": "start",
            }
            store.append(path[3:], judge, f"{a}-{b}", entry)
    page = owner.get(path).text
    rows = {name: row for row in page.split("<tr>") for name in ("ann", "bob", "dan") if f'row">{name}' in row}
    assert ["near chance" in rows[name] for name in ("ann", "bob", "dan")] == [False, False, True]


VOTES = "model_a,model_b,winner,worker\n" + "".join(
    f"m{a},m{b},{'model_a' if (a + b + k) % 4 else 'both bad' if k < 2 else 'tie'},w{k % 2}\n"
    for k in range(8)
    for a in range(4)
    for b in range(a + 1, 4)
)


def test_a_file_of_votes_becomes_a_leaderboard_that_goes_on(app, store, owner):
    path = new_project(owner, files=[("votes.csv", VOTES.encode())])
    workspace = app.app.state.site.workspaces.get(store.project(path[3:]))
    workspace.background.wait()
    assert list(workspace.items.names) == ["m0", "m1", "m2", "m3"]
    assert workspace.session.has_votes
    overview = words(owner.get(path).text)
    assert "48 answers about 4 items" in overview
    assert "Sets of ranks hold together" in overview
    assert "12 answers are ties, of which 3 are both bad" in overview
    export = owner.get(f"{path}/export/pairs").text
    assert (export.count(",bad,"), export.count(",equal,")) == (3, 9)
    rows = list(csv.DictReader(io.StringIO(owner.get(f"{path}/export/scores").text)))
    assert [row["item"] for row in rows] == ["m0", "m1", "m2", "m3"]
    assert rows[0]["best_rank"] == "1"
    assert sum(int(row["votes"]) for row in rows) == 96
    # pairs that others voted on are asked again, the most informative first, with two random sides
    html = owner.get(f"{path}/judge").text
    asked = {fields(html)["left"], fields(html)["right"]}
    assert len(asked) == 2
    answer(owner, path, "left", html)
    workspace.background.wait()
    assert "49 answers" in words(owner.get(path).text)
    assert workspace.session.model.board.judges_ == ("w0", "w1")


def test_votes_go_on_until_all_ranks_are_decided(app, store, owner):
    rows = [f"a,b,{'model_a' if k % 2 else 'model_b'}\n" for k in range(200)] + ["a,c,model_a\n", "b,c,model_a\n"] * 40
    path = new_project(owner, files=[("votes.csv", ("model_a,model_b,winner\n" + "".join(rows)).encode())])
    workspace = app.app.state.site.workspaces.get(store.project(path[3:]))
    workspace.background.wait()
    for _ in range(3):  # one vote tells little, and the judge may vote on a pair again
        html = owner.get(f"{path}/judge").text
        assert {fields(html)["left"], fields(html)["right"]} == {"0", "1"}
        answer(owner, path, "left", html)
        workspace.background.wait()
    assert "No further answer would tell much" not in words(owner.get(path).text)
