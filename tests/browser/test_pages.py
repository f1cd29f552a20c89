"""Whole stories in Chromium: drag and drop, keys, retries, accessibility, narrow and dark pages."""

from __future__ import annotations

import re

import pytest
from screenshots import add_judge, press, screen, set_criteria, upload

from helpers.projects import DOCUMENTS, TEAS, image
from helpers.reviews import bees, with_duplicate
from helpers.server import ServerProcess

pytestmark = pytest.mark.long


def status_of(page, text):
    page.wait_for_function("t => document.body.innerText.includes(t)", arg=text)


def test_compare_with_keys_undo_restart_and_a_second_judge(browser, server, owner, tmp_path):
    teas = upload(owner, server.base, "compare", "teas.csv", TEAS)
    owner.get_by_role("link", name="Judge", exact=True).first.click()
    owner.wait_for_url("**/judge")
    press(owner, teas, ["ArrowLeft", "ArrowRight", "ArrowUp"])
    status_of(owner, "3 answered")
    owner.keyboard.press("u")
    status_of(owner, "2 answered")
    owner.get_by_role("button", name="Both bad").click()
    status_of(owner, "3 answered")
    ann = add_judge(browser, owner, teas, "Ann")
    press(ann, teas, ["ArrowLeft"])
    assert "Ann" in ann.locator("header").inner_text()
    assert ann.goto(teas).status == 403
    port = server.port
    server.kill()
    again = ServerProcess(tmp_path, port=port)
    try:
        press(ann, teas, ["ArrowRight"])
        status_of(ann, "2 answered")
        owner.goto(teas)
        status_of(owner, "Order so far")
        rows = owner.locator("#judges tbody tr").all_inner_texts()
        assert [re.split(r"\s+", row)[0] for row in rows] == ["me", "Ann"]
        with owner.expect_download() as saved:
            owner.get_by_role("link", name="All comparisons").click()
        assert len(saved.value.path().read_text().splitlines()) == 1 + 7
    finally:
        again.kill()


def test_an_answer_given_while_the_server_is_away_is_saved_once(browser, server, owner, tmp_path):
    teas = upload(owner, server.base, "compare", "teas.csv", TEAS)
    owner.goto(f"{teas}/judge")
    port = server.port
    server.kill()
    owner.keyboard.press("ArrowLeft")
    status_of(owner, "Not saved yet")
    owner.keyboard.press("ArrowLeft")  # impatience
    again = ServerProcess(tmp_path, port=port)
    try:
        status_of(owner, "1 answered")
        owner.goto(f"{teas}/history")
        status_of(owner, "1 of 1 answers")
    finally:
        again.kill()


def test_an_answer_counts_once_whatever_happens_to_its_request(browser, server, owner):
    """A double click, a lost response, no network, a second tab and the back button."""
    review = upload(owner, server.base, "screen", "bees.ris", bees(12))
    owner.goto(f"{review}/judge")
    title = owner.locator("h1#title").inner_text()
    owner.get_by_role("button", name="Exclude").first.dblclick()
    status_of(owner, "1 read by you")
    assert owner.locator("h1#title").inner_text() != title

    lost = []

    def lose(route):
        if lost or route.request.method != "POST":
            route.continue_()
            return
        lost.append(route.fetch().status)  # the server has stored the answer, the page does not hear of it
        route.abort()

    owner.route("**/judge", lose)
    owner.keyboard.press("n")
    status_of(owner, "2 read by you")
    assert lost == [200]
    owner.unroute("**/judge")

    owner.context.set_offline(True)
    owner.keyboard.press("n")
    status_of(owner, "Not saved yet")
    owner.context.set_offline(False)
    status_of(owner, "3 read by you")

    other = owner.context.new_page()
    other.goto(f"{review}/judge")
    assert other.locator("h1#title").inner_text() == owner.locator("h1#title").inner_text()
    owner.keyboard.press("n")
    status_of(owner, "4 read by you")
    other.keyboard.press("r")
    status_of(other, "answered already")
    status_of(other, "4 read by you")

    other.goto(f"{review}/history")
    other.go_back()
    other.keyboard.press("n")
    status_of(other, "5 read by you")
    other.goto(f"{review}/history")
    status_of(other, "5 of 5 answers")


def test_images_dropped_on_the_page_become_a_project(server, owner):
    owner.goto(f"{server.base}/")
    pictures = {
        f"{name}.png": list(image(*colour))
        for name, colour in {"red": (170, 40, 40), "blue": (40, 40, 170), "green": (30, 130, 60)}.items()
    }
    owner.evaluate(
        """files => {
            const form = document.querySelector("form.kind:has(input[value=compare])");
            const data = new DataTransfer();
            for (const [name, bytes] of Object.entries(files)) data.items.add(new File([new Uint8Array(bytes)], name));
            form.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        pictures,
    )
    owner.wait_for_url("**/p/*")
    owner.get_by_role("link", name="Judge", exact=True).first.click()
    owner.wait_for_url("**/judge")
    sizes = owner.evaluate("[...document.images].map(one => one.naturalWidth)")
    assert sizes == [160, 160]


def test_grade_from_a_quepid_file_to_qrels(server, owner):
    rows = "query,docid,rating\nred tea,a,3\nred tea,b,\nblack tea,c,\n"
    case = upload(owner, server.base, "grade", "case.csv", rows)
    status_of(owner, "1 of 3 documents")
    press(owner, case, ["0"])
    owner.get_by_label("Note (optional)").fill("not sure")
    owner.get_by_label("Note (optional)").press("2")  # a key in a field is a letter
    assert owner.get_by_label("Note (optional)").input_value() == "not sure2"
    owner.get_by_role("button", name=re.compile("^2")).click()
    status_of(owner, "No more questions")
    owner.goto(case)
    with owner.expect_download() as saved:
        owner.get_by_role("link", name="TREC qrels").click()
    assert saved.value.path().read_text() == "q1 0 a 3\nq1 0 b 0\nq2 0 c 2\n"


def test_pages_work_without_the_script(browser, server, owner):
    teas = upload(owner, server.base, "compare", "teas.csv", TEAS)
    context = browser.new_context(java_script_enabled=False, storage_state=owner.context.storage_state())
    page = context.new_page()
    page.goto(f"{teas}/judge")
    page.get_by_role("button", name="This one").first.click()
    page.get_by_text("1 answered").wait_for()
    page.go_back()
    page.get_by_role("button", name="This one").last.click()
    assert "0 answered" not in page.locator("main").inner_text()
    context.close()


@pytest.fixture
def pages(browser, server, owner):
    """Addresses of all pages, with answers of two judges."""
    teas = upload(owner, server.base, "compare", "teas.csv", TEAS)
    press(add_judge(browser, owner, teas, "Ann"), teas, ["ArrowLeft", "ArrowRight"])
    press(owner, teas, ["ArrowLeft"])
    documents = upload(owner, server.base, "grade", "heating.csv", DOCUMENTS)
    owner.locator("summary", has_text="Settings").click()
    owner.get_by_label("Judges per document").fill("2")
    owner.get_by_role("button", name="Save settings").click()
    press(add_judge(browser, owner, documents, "Ann"), documents, ["3", "1"])
    press(owner, documents, ["0", "1"])
    review = upload(owner, server.base, "screen", "bees.ris", with_duplicate(40))
    set_criteria(owner, review)
    screen(add_judge(browser, owner, review, "Ann"), review, 6)
    screen(owner, review, 6, wrong=[1, 2])
    owner.goto(f"{review}/conflicts")
    owner.keyboard.press("2")
    status_of(owner, "settled: 1")
    return [
        f"{server.base}/", teas, f"{teas}/judge", f"{teas}/history", documents, f"{documents}/judge",
        f"{documents}/history", f"{server.base}/nothing", review, f"{review}/judge", f"{review}/history",
        f"{review}/import", f"{review}/conflicts", f"{review}/report", f"{review}/similar?item=b4",
    ]  # fmt: skip


def violations(browser, owner, axe, addresses):
    """Return what axe finds on pages, light and dark, narrow and wide, and pages that are wider than the screen."""
    found = []
    for scheme in ("light", "dark"):
        for width in (320, 1920):
            context = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True,
                storage_state=owner.context.storage_state(), reduced_motion="reduce",
            )  # fmt: skip
            page = context.new_page()
            for address in addresses:
                page.goto(address)
                page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
                page.evaluate(axe)
                result = page.evaluate("axe.run()")
                found += [(scheme, width, address, one["id"], one["nodes"][0]["html"]) for one in result["violations"]]
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    found.append((scheme, width, address, "overflow", wide))
            context.close()
    return found


def test_axe_finds_no_violation_and_nothing_overflows(browser, owner, pages, axe):
    assert violations(browser, owner, axe, pages) == []


def test_screen_a_review_from_import_to_export_with_a_restart(browser, server, owner, tmp_path):
    review = upload(owner, server.base, "screen", "bees.ris", with_duplicate(80))
    status_of(owner, "Groups of duplicates: 1")
    set_criteria(owner, review)
    screen(owner, review, 30)
    status_of(owner, "30 read by you, 20 included")  # all that there are
    owner.keyboard.press("u")
    status_of(owner, "29 read by you")
    owner.keyboard.press("o")
    owner.keyboard.type("not sure")
    owner.keyboard.press("Escape")
    owner.keyboard.press("2")
    status_of(owner, "30 read by you")
    owner.goto(f"{review}/history?find=sure")
    status_of(owner, "excluded: no exposure")
    ann = add_judge(browser, owner, review, "Ann")
    screen(ann, review, 5, wrong=[3])
    assert ann.goto(f"{review}/conflicts").status == 403
    owner.goto(f"{review}/conflicts")
    status_of(owner, "Conflicts to settle: 1")
    owner.keyboard.press("r")
    status_of(owner, "Conflicts to settle: 0; settled: 1")
    port = server.port
    server.kill()
    again = ServerProcess(tmp_path, port=port)
    try:
        screen(ann, review, 1)
        status_of(ann, "6 read by you")
        screen(owner, review, 1)
        status_of(owner, "31 read by you")
        owner.goto(review)
        with owner.expect_download() as saved:
            owner.get_by_role("link", name="RIS Included").click()
        text = saved.value.path().read_text()
        assert text.count("TY  - ") == 20  # one record per work
        owner.goto(f"{review}/report")
        status_of(owner, "The search identified 81 records")
        size = owner.evaluate("document.querySelector('.diagram').naturalWidth")
        assert size > 400
    finally:
        again.kill()


def test_telling_words_stay_shown_after_an_answer(server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", bees(40))
    set_criteria(owner, review)
    press(owner, review, ["r", "n", "r", "n"])  # words differ once there are answers of both kinds
    owner.goto(f"{review}/judge")
    box = owner.locator("#telling")
    assert not box.is_checked()
    owner.keyboard.press("t")
    assert box.is_checked()
    assert owner.locator(".tellfor, .tellagainst").count() > 0
    before = owner.locator("input[name=client_id]").first.input_value()
    owner.keyboard.press("n")
    owner.wait_for_function("b => document.querySelector('input[name=client_id]').value !== b", arg=before)
    assert owner.locator("#telling").is_checked()


def test_the_order_that_a_screen_reader_meets(owner, pages):
    owner.goto(pages[2])
    tree = owner.locator("body").aria_snapshot()
    wanted = [
        "Skip to the content",
        "banner",
        "Judging as me",
        "main",
        "Which is better?",
        "article",
        "This one",
        "article",
        "This one",
        "Other answers",
        "Equally good",
    ]
    at = -1
    for word in wanted:
        at = tree.find(word, at + 1)
        assert at >= 0, f"{word!r} is missing or out of order:\n{tree}"


def test_the_order_in_which_a_screen_reader_meets_a_record(server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", bees(8))
    set_criteria(owner, review)
    owner.goto(f"{review}/judge")
    tree = owner.locator("body").aria_snapshot()
    at = -1
    for word in (
        "Skip to the content", "banner", "main", "article", "heading", "Criteria", "Answers", "Include", "Exclude",
        "Put aside", "Exclude for a reason", "wrong species", "Tags and note", "0 read by you",
    ):  # fmt: skip
        at = tree.find(word, at + 1)
        assert at >= 0, f"{word!r} is missing or out of order:\n{tree}"


def test_scripts_of_texts_do_not_run_and_no_other_host_is_asked(server, owner):
    hostile = (
        "name,note,link\n<script>hacked = 1</script>,<img src=x onerror='hacked = 1'>,javascript:hacked=1\n"
        "two,<svg onload=hacked=1>,https://elsewhere.example/x\n"
    )
    asked = []
    owner.on("request", lambda request: asked.append(request.url))
    path = upload(owner, server.base, "compare", "x.csv", hostile)
    for page in (path, f"{path}/judge", f"{path}/history"):
        owner.goto(page)
        assert owner.evaluate("typeof hacked") == "undefined"
    assert all(url.startswith(server.base) for url in asked)
