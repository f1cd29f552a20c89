"""
Screenshots of all pages at three widths: ``python tests/browser/screenshots.py FOLDER [light|dark]``.

The pages are those of three small projects with three judges. Files have few colours, so that they are small.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
from helpers.projects import DOCUMENTS, TEAS
from helpers.reviews import with_duplicate
from helpers.server import ServerProcess

WIDTHS = (390, 800, 1400)
HEIGHT = 1500
"""Longer pages are cut."""


def upload(page, base, kind, name, text):
    page.goto(f"{base}/")
    form = page.locator(f"form.kind:has(input[value={'search' if kind == 'grade' else kind}])")
    form.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/csv", "buffer": text.encode()})
    page.wait_for_url("**/p/**")
    return page.url.removesuffix("/import")


def drop(page, base):
    """Drop a file on the home page; return the address of its preview."""
    page.goto(f"{base}/")
    form = page.locator("form:has(input[value=any])")
    form.locator("input[type=file]").set_input_files(
        {"name": "documents.csv", "mimeType": "text/csv", "buffer": DOCUMENTS.encode()}
    )
    page.wait_for_url("**/imports/**")
    return page.url


def add_judge(browser, page, project, name):
    page.goto(project)
    page.get_by_label("Name of a new judge").fill(name)
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("#link").input_value()
    other = browser.new_context().new_page()
    other.goto(link)
    other.wait_for_url("**/")
    return other


def press(page, project, keys):
    page.goto(f"{project}/judge")
    for key in keys:
        if not page.locator("input[name=client_id]").count():
            break
        before = page.locator("input[name=client_id]").first.input_value()
        page.keyboard.press(key)
        page.wait_for_function("b => (document.querySelector('input[name=client_id]') || {}).value !== b", arg=before)


def show_lists(page, project):
    page.goto(project)
    page.locator("summary", has_text="Settings").click()
    page.get_by_label("What judges see").select_option("list")
    page.get_by_role("button", name="Save settings").click()
    page.wait_for_url(project)


def set_criteria(page, project):
    page.goto(project)
    page.locator("summary", has_text="Settings").click()
    for label, text in {
        "Criteria": "**Include** studies of bees that were exposed to pesticides.\n- any design\n- any language",
        "Reasons of exclusion": "wrong species\nno exposure\nno data",
        "Topic": "bees and pesticides",
        "Words for inclusion": "bee*, pesticide*",
        "Words against inclusion": "concrete, nobody",
        "Judges per record": "2",
    }.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Save settings").click()
    page.wait_for_url(project)


def screen(page, project, n, wrong=()):
    """Read n records by their titles, some of them wrongly."""
    page.goto(f"{project}/judge")
    for number in range(n):
        is_bee = "bee" in page.locator("h1").inner_text().lower()
        before = page.locator("input[name=client_id]").first.input_value()
        page.keyboard.press("r" if is_bee != (number in wrong) else "1")
        page.wait_for_function("b => (document.querySelector('input[name=client_id]') || {}).value !== b", arg=before)


def main(folder, scheme="light"):
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        server = ServerProcess(place)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        try:
            page = browser.new_context().new_page()
            page.goto(server.link)
            page.wait_for_url("**/")
            shoot(browser, page, target, scheme, {"start": f"{server.base}/", "preview": drop(page, server.base)})
            teas = upload(page, server.base, "compare", "teas.csv", TEAS)
            shoot(browser, page, target, scheme, {"compare-empty": teas})
            for name in ("Ann", "Bernadette"):
                press(
                    add_judge(browser, page, teas, name), teas, ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowLeft", "s"]
                )
            press(page, teas, ["ArrowLeft", "ArrowRight", "b", "ArrowLeft"])
            documents = upload(page, server.base, "grade", "heating.csv", DOCUMENTS)
            page.locator("summary", has_text="Settings").click()
            page.get_by_label("Judges per document").fill("2")
            page.get_by_label("Guidelines").fill(
                "Grade what the searcher would *use*.\n- 3: answers the question\n- 0: off topic"
            )
            page.get_by_role("button", name="Save settings").click()
            press(add_judge(browser, page, documents, "Ann"), documents, ["3", "0", "2", "x", "1"])
            press(page, documents, ["3", "1", "l", "1"])
            lists = upload(page, server.base, "grade", "lists.csv", DOCUMENTS)
            show_lists(page, lists)
            press(page, lists, ["3", "0"])
            bees = upload(page, server.base, "screen", "bees.ris", with_duplicate(60))
            set_criteria(page, bees)
            ann = add_judge(browser, page, bees, "Ann")
            screen(ann, bees, 14)
            screen(page, bees, 12, wrong=[2, 5])
            page.goto(f"{bees}/conflicts")
            page.keyboard.press("1")
            page.get_by_text("settled: 1").wait_for()
            page.goto(f"{bees}/history")
            change = page.get_by_role("link", name="Change").first.get_attribute("href")
            page.goto(teas)
            page.get_by_label("Name of a new judge").fill("Chen")
            page.get_by_role("button", name="Make a link").click()
            page.wait_for_timeout(2500)
            pages = {
                "projects": f"{server.base}/", "compare": f"{teas}/judge", "compare-answers": f"{teas}/history",
                "compare-overview": teas, "grade": f"{documents}/judge", "grade-answers": f"{documents}/history",
                "grade-overview": documents, "grade-list": f"{lists}/judge", "screen": f"{bees}/judge",
                "screen-change": f"{server.base}{change}",
                "screen-answers": f"{bees}/history", "screen-overview": bees, "screen-import": f"{bees}/import",
                "screen-conflicts": f"{bees}/conflicts", "screen-report": f"{bees}/report",
                "screen-similar": f"{bees}/similar?item=b4",
                "missing": f"{server.base}/nothing",
            }  # fmt: skip
            shoot(browser, page, target, scheme, pages)
        finally:
            browser.close()
            server.stop()


def shoot(browser, page, target, scheme, pages):
    from PIL import Image

    for width in WIDTHS:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, storage_state=page.context.storage_state()
        )
        view = context.new_page()
        for name, address in pages.items():
            view.goto(address)
            view.wait_for_load_state("networkidle")
            long = view.evaluate("document.documentElement.scrollHeight") > 900
            # a window as high as the page, so that the bar at its end covers nothing
            view.set_viewport_size({"width": width, "height": HEIGHT if long else 900})
            shot = Image.open(io.BytesIO(view.screenshot())).convert("RGB")
            view.set_viewport_size({"width": width, "height": 900})
            if width > 1000:
                shot = shot.resize((width // 2, shot.height // 2), Image.Resampling.LANCZOS)
            shot.quantize(64, dither=Image.Dither.NONE).save(target / f"{name}-{width}.png", optimize=True)
        context.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
