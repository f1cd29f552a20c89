"""Nobody gets in: every route with every kind of visitor, and what every request passes."""

from __future__ import annotations

import pytest

from corank_lab.database.backends import SqliteDatabase
from corank_lab.http import HEADERS
from corank_lab.pages import app as pages_app
from corank_lab.pages.app import create_app, make_routes
from helpers.pages import TEAS, PageClient, new_project
from helpers.reviews import bees

# status for: no link, the judge of the project, the judge of another one, the owner
MATRIX = {
    "GET /health": (200, 200, 200, 200),
    "GET /static/{name}": (200, 200, 200, 200),
    "GET /enter": (401, 401, 401, 401),  # without a token
    "POST /leave": (401, 200, 200, 200),
    "GET /": (401, 200, 200, 200),
    "POST /projects": (401, 403, 403, 422),
    "GET /imports/{upload}": (401, 403, 403, 404),
    "POST /imports/{upload}": (401, 403, 403, 404),
    "GET /p/{project}": (401, 403, 403, 200),
    "POST /p/{project}/settings": (401, 403, 403, 422),
    "GET /p/{project}/delete": (401, 403, 403, 200),
    "POST /p/{project}/delete": (401, 403, 403, 422),  # without the name of the project
    "POST /p/{project}/judges": (401, 403, 403, 422),
    "POST /p/{project}/judges/{judge}/link": (401, 403, 403, 200),
    "POST /p/{project}/judges/{judge}/revoke": (401, 403, 403, 303),
    "POST /p/{project}/answers": (401, 403, 403, 422),
    "POST /p/{project}/settle": (401, 403, 403, 422),
    "GET /p/{project}/import": (401, 403, 403, 404),  # a comparison; a screening has these four
    "POST /p/{project}/prior": (401, 403, 403, 404),
    "GET /p/{project}/conflicts": (401, 403, 403, 404),
    "GET /p/{project}/report": (401, 403, 403, 404),
    "POST /p/{project}/train": (401, 403, 403, 404),  # only a grading project has these two
    "GET /p/{project}/train": (401, 403, 403, 404),
    "GET /p/{project}/export/{name}": (401, 403, 403, 200),
    "GET /p/{project}/judge": (401, 200, 403, 200),
    "POST /p/{project}/judge": (401, 422, 403, 422),  # an empty form
    "POST /p/{project}/undo": (401, 303, 403, 303),
    "GET /p/{project}/history": (401, 200, 403, 200),
    "GET /p/{project}/similar": (401, 404, 403, 404),  # without a record
    "GET /p/{project}/files/{name}": (401, 404, 403, 404),
    # addresses of forms, opened again
    "GET /leave": (303, 303, 303, 303),
    "GET /projects": (401, 403, 403, 303),
    "GET /p/{project}/settings": (401, 403, 403, 303),
    "GET /p/{project}/judges": (401, 403, 403, 303),
    "GET /p/{project}/judges/{judge}/link": (401, 403, 403, 303),
    "GET /p/{project}/judges/{judge}/revoke": (401, 403, 403, 303),
    "GET /p/{project}/answers": (401, 403, 403, 303),
    "GET /p/{project}/settle": (401, 403, 403, 303),
    "GET /p/{project}/prior": (401, 403, 403, 303),
    "GET /p/{project}/undo": (401, 303, 403, 303),
}
SCREENING = {f"GET /p/{{project}}/{name}": (401, 403, 403, 200) for name in ("import", "conflicts", "report")}
SCREENING["POST /p/{project}/prior"] = (401, 403, 403, 422)  # without an error that is accepted
GRADING = {  # without grades
    "POST /p/{project}/train": (401, 403, 403, 422), "GET /p/{project}/train": (401, 403, 403, 303)
}  # fmt: skip
DIFFERS = {"compare": {}, "screen": SCREENING, "grade": GRADING}
"""What differs for a kind of work."""
OTHER_ROUTES = [(kind, route) for kind, routes in DIFFERS.items() for route in (*routes, "GET /p/{project}/judge")]
FILES = {
    "compare": ("teas.csv", TEAS), "screen": ("bees.ris", bees(5).encode()),
    "grade": ("case.csv", b"query,docid,text\nred tea,a,Assam\nblack tea,b,with bergamot\n"),
}  # fmt: skip
EXPORTS = {"compare": "pairs", "screen": "ris-all", "grade": "judgements"}
VISITORS = ("nobody", "judge", "other", "owner")


@pytest.fixture
def store(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as opened:
        yield opened


@pytest.fixture
def app(store):
    return create_app(store, hosts=["judge.example.org"])


@pytest.fixture
def owner(app, store):
    return PageClient(app, store.add_owner())


def test_every_route_has_a_row():
    assert [f"{one.method} {one.path}" for one in make_routes()] == list(MATRIX)


def test_the_address_of_every_form_can_be_opened_again(owner):
    """The page of a form shows a new link or an error under the address of the form."""
    path = new_project(owner, "grade", [FILES["grade"]])
    for form in {route.path for route in make_routes() if route.method == "POST" and "{upload}" not in route.path}:
        again = owner.get(form.format(project=path[3:], judge="x"))
        place = again.headers.get("location", "") if again.status_code == 303 else ""
        assert again.status_code == 200 or owner.get(place.partition("#")[0]).status_code == 200, form


@pytest.mark.parametrize(("kind", "route"), [*(("compare", route) for route in MATRIX), *OTHER_ROUTES])
def test_every_route_with_every_visitor(kind, route, app, store, owner):
    project, elsewhere = (new_project(owner, kind, [FILES[kind]]).split("/")[2] for _ in range(2))
    judge = store.judge_of(ann := store.add_judge(project, "ann"))
    tokens = {"nobody": None, "judge": ann, "other": store.add_judge(elsewhere, "ann"), "owner": store.add_owner()}
    method, path = route.split()
    name = "app.css" if "static" in path else EXPORTS[kind] if "export" in path else "x.png"
    path = path.format(project=project, judge=judge.id, name=name, upload="x")
    matrix = MATRIX | DIFFERS[kind]
    for visitor, status in zip(VISITORS, matrix[route], strict=True):
        before = [store.projects(), store.answers(project), store.judges(project)]
        client = PageClient(app, tokens[visitor])
        answer = client.get(path) if method == "GET" else client.post(path, {})
        assert answer.status_code == status, visitor
        if status in (401, 403):
            assert [store.projects(), store.answers(project), store.judges(project)] == before, visitor
            assert not any(word in answer.text.lower() for word in ("assam", "pollen", "bergamot")), visitor


@pytest.mark.thin(3)
@pytest.mark.parametrize("route", [f"{one.method} {one.path}" for one in make_routes() if "{project}" in one.path])
def test_an_unknown_project_looks_like_one_of_others(route, app, store, owner):
    project = new_project(owner).rpartition("/")[2]
    client = PageClient(app, store.add_judge(project, "ann"))
    method, path = route.split()
    path = path.format(project="nosuch", judge="x", name="x")
    assert (client.get(path) if method == "GET" else client.post(path, {})).status_code == 403
    assert (owner.get(path) if method == "GET" else owner.post(path, {})).status_code == 404


def test_archived_projects_are_closed_to_judges_only(app, store, owner):
    path = new_project(owner)
    client = PageClient(app, store.add_judge(path[3:], "ann"))
    assert client.get(f"{path}/judge").status_code == 200
    project = store.project(path[3:])
    store.change_project(project.id, name="x", settings=project.settings, is_archived=True)
    assert client.get(f"{path}/judge").status_code == 403
    assert owner.get(f"{path}/judge").status_code == 200


def test_a_revoked_or_replaced_link_closes_at_once(app, store, owner):
    path = new_project(owner)
    client = PageClient(app, store.add_judge(path[3:], "ann"))
    judge = store.judges(path[3:])[0][0].id
    owner.post(f"{path}/judges/{judge}/revoke")
    assert client.get(f"{path}/judge").status_code == 401


def test_judges_see_only_their_own_answers_and_projects(app, store, owner):
    path, other = new_project(owner), new_project(owner)
    ann, bob = (PageClient(app, store.add_judge(path[3:], name)) for name in ("ann", "bob"))
    store.append(path[3:], "bob", "0-1", {"action": "left", "left": "Assam", "right": "Sencha", "by": "start"})
    assert "Assam" in bob.get(f"{path}/history").text
    assert "Assam" not in ann.get(f"{path}/history").text
    assert other not in ann.get("/").text


def test_one_browser_may_hold_several_links(app, store, owner):
    path, other = new_project(owner), new_project(owner)
    client = PageClient(app, store.add_judge(path[3:], "ann"))
    client.get(f"/enter?token={store.add_judge(other[3:], 'anna')}")
    assert client.get(f"{path}/judge").status_code == client.get(f"{other}/judge").status_code == 200
    assert "Judging as anna" in client.get(f"{other}/judge").text
    assert "Judging as ann<" in client.get(f"{path}/judge").text
    client.post("/leave")
    assert client.get("/").status_code == 401


def test_the_cookie_is_strict_and_belongs_to_the_database(app, store):
    answer = PageClient(app).get(f"/enter?token={store.add_owner()}")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"corank_{store.database_id[:8]}=")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert "secure" not in cookie.lower()  # the test speaks http


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "judge"])
def test_other_names_of_this_computer_are_refused(host, app, store):
    token = store.add_owner()
    answer = PageClient(app).send("GET", f"/enter?token={token}", headers={"host": host})
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "host", ["localhost:8000", "127.0.0.1:1", "[::1]:80", "JUDGE.example.org", "judge.example.org:443"]
)
def test_names_that_were_allowed_are_served(host, app):
    assert PageClient(app).send("GET", "/health", headers={"host": host}).status_code == 200


@pytest.mark.thin(5)
@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://localhost"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, True),
        ({"origin": "http://localhost"}, True),
        ({"sec-fetch-site": "same-site"}, False),  # another port of this computer
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.example"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://localhost:81"}, False),
        ({"origin": "null"}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_forms_of_other_sites_are_refused(headers, is_ours, method, owner):
    answer = owner.send(method, "/leave", headers=headers)
    assert (answer.status_code == 403) is not is_ours
    assert "access-control-allow-origin" not in answer.headers


def test_every_answer_carries_the_strict_headers(app, owner, monkeypatch):
    def fail(*_):
        raise RuntimeError("secret detail")

    answers = [owner.get(path) for path in ("/", "/nothing", "/static/app.js", "/static/../app.py")]
    answers += [owner.send("POST", "/"), PageClient(app).get("/"), PageClient(app, host="evil.example").get("/")]
    monkeypatch.setattr(type(app.app.state.site.store), "projects", fail)
    answers.append(broken := owner.get("/"))
    assert (broken.status_code, "secret" in broken.text) == (500, False)
    for answer in answers:
        for name, value in HEADERS.items():
            if name != "Cache-Control":
                assert answer.headers[name] == value, answer.url
        assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_pages_have_no_inline_script_or_style(app, store, owner):
    path = new_project(owner)
    for page in ("/", path, f"{path}/judge", f"{path}/history", "/nothing"):
        html = owner.get(page).text.lower()
        assert " style=" not in html
        assert "<style" not in html
        assert " on" not in html.replace(" on ", "").partition("<main")[0]
        assert html.count("<script") == html.count('<script src="/static/')


def test_wrong_links_are_limited_and_the_right_one_works(app, store):
    token = store.add_owner()
    client = PageClient(app)
    answers = [client.get(f"/enter?token=x.{number}").status_code for number in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert client.get(f"/enter?token={token}").status_code == 200
    assert PageClient(app, address="10.0.0.2").get(f"/enter?token={token}").status_code == 200


def test_guessing_by_cookies_is_limited_and_valid_ones_are_not(app, store, owner):
    name = f"corank_{store.database_id[:8]}"
    guesses = [PageClient(app).send("GET", "/", headers={"cookie": f"{name}=x.{n}"}).status_code for n in range(65)]
    assert guesses == [401] * 60 + [429] * 5
    assert owner.get("/").status_code == 200


def test_large_requests_are_refused(owner, monkeypatch):
    path = new_project(owner)
    assert owner.post(f"{path}/judge", {"text": "x" * (pages_app.FORM_LIMIT + 1)}).status_code == 413
    monkeypatch.setattr(pages_app, "UPLOAD_LIMIT", 1000)
    answer = owner.post("/projects", {"kind": "compare"}, [("files", ("a.csv", b"x" * 2000))])
    assert answer.status_code == 413


def test_a_body_without_a_length_is_counted(app, owner, monkeypatch):
    monkeypatch.setattr(pages_app, "FORM_LIMIT", 100)

    async def body():
        for _ in range(10):
            yield b"x" * 50

    headers = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
    path = new_project(owner)
    assert owner.send("POST", f"{path}/judge", headers=headers, content=body()).status_code == 413
