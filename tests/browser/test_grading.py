"""Grading in Chromium: result lists by key and without the script, and from a book of Quepid to a trained model."""

from __future__ import annotations

import json
import re

import pytest
from screenshots import add_judge, press, show_lists, upload
from test_pages import status_of, violations

from helpers.projects import DOCUMENTS
from helpers.server import ServerProcess

pytestmark = pytest.mark.long
TOPICS = ("heat pump", "wind turbine", "solar panel", "old house", "quiet fan", "brick wall")


def quepid_book():
    """Return a book whose better documents have more words of their query."""
    pairs = []
    for topic in TOPICS:
        first, second = topic.split()
        texts = [f"{first} and {second}, {topic} again", f"a {first} with a {second}", f"one {first}", "something else"]
        for place, text in enumerate(texts):
            fields = {
                "title": f"{topic}: document {place}",
                "body": f"{text} in a text that is about as long as others",
            }
            pairs.append(
                {
                    "query_text": topic, "doc_id": f"{first}-{place}", "position": 1 + (place + 2) % 4,
                    "document_fields": fields, "information_need": f"Everything about the {topic}.", "judgements": [],
                }
            )  # fmt: skip
    scale = {"0": "Poor", "1": "Fair", "2": "Good", "3": "Perfect"}
    return json.dumps({"name": "energy", "scale": [0, 1, 2, 3], "scale_with_labels": scale, "query_doc_pairs": pairs})


def grade_list(page):
    """Grade the documents of a list by their titles, with keys."""
    for _ in TOPICS[:4]:
        current = page.locator("[data-current] h2").inner_text()
        before = page.locator("input[name=client_id]").first.input_value()
        page.keyboard.press(str(3 - int(current[-1])))
        page.wait_for_function("b => document.querySelector('input[name=client_id]').value !== b", arg=before)


def test_grade_from_a_quepid_book_to_a_trained_model(browser, server, owner, tmp_path):
    book = upload(owner, server.base, "grade", "energy.json", quepid_book())
    owner.get_by_role("button", name="Train and compare").click()
    status_of(owner, "0 queries have two different grades")
    show_lists(owner, book)
    owner.goto(f"{book}/judge")
    for topic in TOPICS:
        assert owner.locator("h1").inner_text() == topic
        status_of(owner, f"Everything about the {topic}.")
        grade_list(owner)
        status_of(owner, "All documents of this list are answered")
        assert owner.evaluate("document.activeElement.value") == "next"
        owner.keyboard.press("Enter")
        owner.wait_for_function("t => document.querySelector('h1').innerText !== t", arg=topic)
    status_of(owner, "No more questions")
    owner.goto(book)
    status_of(owner, "24 of 24 documents of 6 queries are finished")
    owner.get_by_role("button", name="Train and compare").click()
    status_of(owner, "Comparing rankers")
    owner.reload()
    owner.get_by_role("link", name="Open the report").wait_for(timeout=900_000)
    status_of(owner, "From 24 grades of 6 queries")
    with owner.expect_popup() as opened:
        owner.get_by_role("link", name="Open the report").click()
    report = opened.value
    assert "Rankers compared on energy" in report.locator("h1").inner_text()
    assert report.evaluate("getComputedStyle(document.body).maxWidth") != "none"  # its own style applies
    with owner.expect_download() as saved:
        owner.get_by_role("link", name="Save the model").click()
    model = saved.value.path().read_bytes()
    assert json.loads(model[8 : 8 + int.from_bytes(model[:8], "little")])
    port = server.port
    server.kill()
    again = ServerProcess(tmp_path, port=port)
    try:
        owner.goto(book)
        assert owner.get_by_role("link", name="Save the model").is_visible()
    finally:
        again.kill()


def test_a_list_with_keys_clicks_and_undo(server, owner):
    case = upload(owner, server.base, "grade", "heating.csv", DOCUMENTS)
    show_lists(owner, case)
    owner.goto(f"{case}/judge")
    titles = owner.locator("article h2").all_inner_texts()
    owner.keyboard.press("ArrowDown")
    owner.keyboard.press("ArrowDown")
    owner.keyboard.press("2")
    status_of(owner, "1 of 4 documents of this list are answered")
    pressed = owner.locator("article:has([aria-pressed=true]) h2").all_inner_texts()
    assert pressed == [titles[1]]
    assert owner.evaluate("document.activeElement.querySelector('h2').innerText") == titles[2]
    owner.locator("article").last.get_by_role("button", name=re.compile("^0")).click()
    status_of(owner, "2 of 4 documents")
    owner.locator("article").first.locator("summary", has_text="Note").click()
    note = owner.locator("article").first.get_by_label("Note (optional)")
    note.fill("not sure")
    note.press("Enter")  # is not an answer
    note.press("Escape")
    owner.keyboard.press("x")
    status_of(owner, "3 of 4 documents")
    owner.keyboard.press("u")
    status_of(owner, "2 of 4 documents")
    assert owner.evaluate("document.activeElement.querySelector('h2').innerText") == titles[0]
    owner.keyboard.press("n")
    status_of(owner, "0 of 3 documents of this list are answered")
    assert owner.evaluate("document.activeElement.tagName") == "H1"
    owner.goto(f"{case}/history")
    status_of(owner, "2 of 2 answers")
    owner.get_by_role("link", name=f"Change {titles[1]}").click()
    assert owner.evaluate("document.activeElement.querySelector('h2').innerText") == titles[1]


def test_lists_work_without_the_script(browser, server, owner):
    case = upload(owner, server.base, "grade", "heating.csv", DOCUMENTS)
    show_lists(owner, case)
    context = browser.new_context(java_script_enabled=False, storage_state=owner.context.storage_state())
    page = context.new_page()
    page.goto(f"{case}/judge")
    first = page.locator("article h2").first.inner_text()
    page.locator("article").first.get_by_role("button", name=re.compile("^3")).click()
    page.get_by_text("1 of 4 documents of this list are answered").wait_for()
    assert page.url.endswith("#current")
    assert page.locator("article:has([aria-pressed=true]) h2").all_inner_texts() == [first]
    page.get_by_role("button", name="Next query").click()
    page.get_by_text("0 of 3 documents of this list are answered").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("0 of 4 documents of this list are answered").wait_for()
    context.close()


def test_lists_are_accessible_at_320_pixels_and_on_wide_screens(browser, server, owner, axe):
    case = upload(owner, server.base, "grade", "heating.csv", DOCUMENTS)
    show_lists(owner, case)
    press(owner, case, ["3", "0", "l"])
    assert violations(browser, owner, axe, [f"{case}/judge", case]) == []
    owner.goto(f"{case}/judge")
    tree = owner.locator("body").aria_snapshot()
    at = -1
    for word in (
        "banner", "main", "heading", "list", "article", "Document 1 of 4", "Grades of", "0 Poor", "pressed",
        "Cannot be rated", "article", "Document 4 of 4", "Next query", "of this list are answered", "Undo",
    ):  # fmt: skip
        at = tree.find(word, at + 1)
        assert at >= 0, f"{word!r} is missing or out of order:\n{tree}"


def test_judges_hold_lists(browser, server, owner):
    case = upload(owner, server.base, "grade", "heating.csv", DOCUMENTS)
    show_lists(owner, case)
    ann, bob = (add_judge(browser, owner, case, name) for name in ("Ann", "Bob"))
    for page in (ann, bob):
        page.goto(f"{case}/judge")
    assert [page.locator("h1").inner_text() for page in (ann, bob)] == [
        "heat pump in an old house",
        "quiet wind turbine",
    ]
