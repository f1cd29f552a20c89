"""Pages in use: clicks to the first record, keys and focus, local times, print, and the order of a screen reader."""

from __future__ import annotations

import io
import re

import pytest
from screenshots import add_judge, press, screen, set_criteria, show_lists, upload

from helpers.projects import DOCUMENTS, TEAS
from helpers.reviews import bees, with_duplicate

pytestmark = pytest.mark.long


def wait_for(page, text):
    page.wait_for_function("t => document.body.innerText.includes(t)", arg=text)


@pytest.mark.parametrize(
    ("kind", "name", "content", "link"),
    [("screen", "bees.ris", bees(20), "Read the first record"), ("compare", "teas.csv", TEAS, "Judge")],
)
def test_two_clicks_from_the_start_to_the_first_question(server, owner, tmp_path, kind, name, content, link):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    owner.goto(f"{server.base}/")
    with owner.expect_file_chooser() as chooser:
        owner.locator(f"form.kind:has(input[value={kind}]) .drop").click()
    chooser.value.set_files(path)
    owner.wait_for_url("**/p/**")
    owner.locator("main").get_by_role("link", name=link, exact=True).click()
    owner.wait_for_url("**/judge")
    assert owner.locator("form[data-answer] input[name=client_id]").count() >= 1
    owner.goto(f"{server.base}/")
    assert owner.locator(".projects li").count() == 1


def test_fields_take_keys_as_letters_and_enter_does_not_answer(server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", bees(20))
    set_criteria(owner, review)
    owner.goto(f"{review}/judge")
    before = owner.locator("h1").inner_text()
    owner.keyboard.press("o")
    owner.keyboard.type("rn1")
    owner.keyboard.press("Enter")
    owner.keyboard.press("g")
    owner.keyboard.type("odd, new")
    owner.keyboard.press("Enter")
    assert owner.locator("h1").inner_text() == before
    owner.keyboard.press("2")
    wait_for(owner, "1 read by you")
    assert owner.locator("details.more").get_attribute("open") is not None  # stays open for the next record
    owner.goto(f"{review}/history?show=tag:odd")
    wait_for(owner, "rn1")
    wait_for(owner, "excluded: no exposure")


def test_prior_knowledge_is_given_before_the_first_record(server, owner, tmp_path):
    old = tmp_path / "old.csv"
    old.write_text("title,included\n" + "".join(f"{'Bees' if at % 2 else 'Ice'} {at},{at % 2}\n" for at in range(10)))
    rows = (f"w{at},{'Bees and pollen' if at == 7 else 'Glacier'} {at},{0.9 if at == 7 else 0.1}" for at in range(12))
    review = upload(owner, server.base, "screen", "works.csv", "id,title,llm\n" + "\n".join(rows) + "\n")
    owner.goto(f"{review}/import")
    owner.get_by_label("Criteria in words").fill("bees")
    owner.get_by_label("Old reviews with labels").set_input_files(old)
    owner.get_by_label("Column of probabilities").select_option("llm")
    owner.get_by_label("1 in 10").check()
    owner.get_by_role("button", name="Save").click()
    wait_for(owner, "In use: old.csv: 10 judged records, 5 relevant")
    assert owner.get_by_label("1 in 10").is_checked()
    owner.get_by_role("link", name="Read the first record").click()
    wait_for(owner, "Bees and pollen 7")


def test_an_unread_record_is_found_and_read(server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", bees(20))
    owner.goto(f"{review}/history")
    owner.get_by_label("Show").select_option("unread")
    owner.get_by_label("Find").fill("pollen")
    owner.get_by_role("button", name="Search").click()
    title = owner.locator(".answers li p").first.inner_text().split("\n")[0]
    owner.get_by_role("link", name=re.compile("^Read")).first.click()
    wait_for(owner, "You looked for this record")
    assert owner.locator("h1").inner_text() == title
    owner.keyboard.press("r")
    wait_for(owner, "1 read by you, 1 included")


def test_focus_is_visible_and_begins_with_the_skip_link(server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", bees(20))
    set_criteria(owner, review)
    owner.goto(f"{review}/history")  # a page that does not move the focus
    names = []
    for _ in range(12):
        owner.keyboard.press("Tab")
        name, style, width = owner.evaluate(
            """() => { const one = document.activeElement, style = getComputedStyle(one);
            return [one.innerText || one.getAttribute("aria-label") || one.name, style.outlineStyle,
                    parseFloat(style.outlineWidth)]; }"""
        )
        assert (style, width >= 2) == ("solid", True), name
        names.append(name)
    assert names[0] == "Skip to the content"
    assert names[1:4] == ["corank", "Overview", "Judge"]
    owner.goto(f"{review}/judge")
    assert owner.evaluate("document.activeElement.tagName") == "H1"  # a screen reader reads the record first


def test_nothing_moves_if_the_reader_prefers_so(browser, server, owner):
    context = browser.new_context(reduced_motion="reduce", storage_state=owner.context.storage_state())
    page = context.new_page()
    page.goto(f"{server.base}/")
    times = page.evaluate("[...document.querySelectorAll('*')].map(one => getComputedStyle(one).transitionDuration)")
    assert set(times) == {"0s"}
    context.close()


def test_times_are_stored_in_utc_and_shown_locally(browser, server, owner):
    teas = upload(owner, server.base, "compare", "teas.csv", TEAS)
    press(owner, teas, ["ArrowLeft"])
    shown = []
    for zone in ("UTC", "Asia/Kathmandu"):
        context = browser.new_context(timezone_id=zone, locale="en-GB", storage_state=owner.context.storage_state())
        page = context.new_page()
        page.goto(f"{teas}/history")
        stamp = page.locator("time").first
        assert stamp.get_attribute("datetime").endswith(("+00:00", "Z"))
        shown.append(stamp.inner_text())
        context.close()
    minutes = [60 * int(one[-5:-3]) + int(one[-2:]) for one in shown]
    assert (minutes[1] - minutes[0]) % (24 * 60) == 5 * 60 + 45


def test_print_leaves_out_navigation_and_buttons(server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", bees(20))
    owner.goto(f"{review}/report")
    owner.emulate_media(media="print")
    assert not owner.locator("header nav").is_visible()
    assert owner.locator("main button:visible, main .button:visible").count() == 0
    assert owner.locator(".diagram").is_visible()


ORDERS = {
    "": "Overview|heading|Settings|Judge|Progress|Read records|relevant records found|How sure is it?|Agreement|"
    "Settle conflicts|Judges|Ann|Name of a new judge|Save files|RIS Included|PRISMA flow diagram",
    "/history": "My answers|Find|Show|Search|of 6 answers|Change",
    "/conflicts": "Conflicts to settle|article|heading|Answers of the judges|Ann|Criteria|Include|Exclude",
    "/report": "Report|PRISMA 2020 flow diagram|Methods paragraph|The search identified|How sure is it?|Kappa",
    "/import": "What was imported|Set criteria, reasons and words|Read the first record|bees.ris|"
    "Groups of duplicates: 1|Not duplicates",
}
"""Words of each page of a review, in the order in which a screen reader meets them."""


def test_the_order_of_the_pages_of_a_review_for_a_screen_reader(browser, server, owner):
    review = upload(owner, server.base, "screen", "bees.ris", with_duplicate(40))
    set_criteria(owner, review)
    screen(add_judge(browser, owner, review, "Ann"), review, 6)
    screen(owner, review, 6, wrong=[1, 2])
    for place, wanted in ORDERS.items():
        owner.goto(f"{review}{place}")
        tree = owner.locator("body").aria_snapshot()
        at = tree.find("main")
        for word in wanted.split("|"):
            at = tree.find(word, at + 1)
            assert at >= 0, f"{place}: {word!r} is missing or out of order:\n{tree}"


def test_the_address_bar_does_not_keep_the_token(browser, server):
    page = browser.new_context().new_page()
    page.goto(f"{server.base}/enter?token=wrong.link")
    page.get_by_text("corank").first.wait_for()
    assert page.url == f"{server.base}/enter"
    page.goto(f"{server.base}/health")
    page.goto(server.link)
    page.wait_for_url(f"{server.base}/")
    page.go_back()
    assert "token" not in page.url
    page.context.close()


def test_rows_of_result_lists_are_low(server, owner):
    lists = upload(owner, server.base, "grade", "lists.csv", DOCUMENTS)
    show_lists(owner, lists)
    for width, most in ((1400, 170), (390, 260)):
        owner.set_viewport_size({"width": width, "height": 900})
        owner.goto(f"{lists}/judge")
        card = owner.locator("article", has_text="Insulating solid brick walls")
        assert card.bounding_box()["height"] < most


def test_an_edge_of_a_table_has_a_shadow_if_more_columns_are_behind_it(server, owner):
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    teas = upload(owner, server.base, "compare", "teas.csv", TEAS)
    owner.set_viewport_size({"width": 390, "height": 900})
    owner.goto(teas)
    table = owner.get_by_role("region", name="Judges")

    def edges():
        """Return the lightness at both edges, in an empty part of the header."""
        shot = image.open(io.BytesIO(table.screenshot())).convert("L")
        return shot.getpixel((3, 4)), shot.getpixel((shot.width - 4, 4))

    left, right = edges()
    assert right < left - 30
    table.evaluate("e => { e.scrollLeft = e.scrollWidth }")
    left, right = edges()
    assert left < right - 30
    owner.set_viewport_size({"width": 1400, "height": 900})
    left, right = edges()
    assert abs(left - right) < 5
