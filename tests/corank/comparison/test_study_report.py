"""The report of a study: tables against their values, accessibility, and no external resource."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from urllib.parse import urlparse

import numpy as np
import pytest

from corank.comparison.outcomes import study_html, write
from corank.comparison.report import CONTENT_POLICY
from corank.errors import InputError
from corank.metrics import CONVENTIONS
from corank.tables import escape_markdown
from helpers.page_reader import Page
from helpers.study import full_study, unfinished_study

STUDY = full_study()
PAGE = Page(study_html(STUDY))


def test_the_leaderboard_shows_every_method_with_its_figures():
    table = PAGE.table("Methods, the best first")
    assert [row[0] for row in table.rows] == [one.title for one in STUDY.outcomes]
    at = {name: table.head.index(name) for name in ("nDCG@10", "low", "high", "AP", "remarks")}
    best = STUDY.outcomes[0]
    for one, row in zip(STUDY.outcomes, table.rows, strict=True):
        if one.evaluation is None:
            assert [row[at[name]] for name in ("nDCG@10", "low", "high", "AP")] == [""] * 4
            continue
        values = STUDY.values(one.name)
        assert float(row[at["nDCG@10"]]) == pytest.approx(np.nanmean(values), abs=6e-5)
        assert float(row[at["AP"]]) == pytest.approx(np.nanmean(one.evaluation["AP"].values), abs=6e-5)
        assert [float(row[at["low"]]), float(row[at["high"]])] == pytest.approx([one.low, one.high], abs=6e-5)
    said = {row[0]: row[at["remarks"]] for row in table.rows}
    assert said["PreferenceGP"] == "2 of 5 folds within the budget"
    assert said["CoRankRLS"] == "the views have no columns in common."
    assert "simplest" in said["Mean of the columns <no labels>"]
    assert [name for name, words in said.items() if "recommended" in words] == [best.title]
    sure = {row[0]: row[table.head.index("P(worse)")] for row in table.rows}
    assert sure[best.title] == ""
    assert all(sure[STUDY.outcome(one.name).title] == f"{one.p_better:.2f}" for one in STUDY.rivals)


def test_the_data_section_lists_counts_and_peculiarities():
    facts = dict(zip(PAGE.text_of("dt"), PAGE.text_of("dd"), strict=True))
    assert facts["queries"] == "200"
    assert facts["rows"] == "2,400"
    assert (facts["queries of a single grade"], facts["unjudged rows"]) == ("17", "120")
    assert [facts[f"rows of grade {grade:g}"] for grade, _ in STUDY.data.grades] == [
        f"{n:,}" for _, n in STUDY.data.grades
    ]


def test_the_worst_queries_come_first_with_the_simplest_method_for_reference():
    table = PAGE.table("Queries on which")
    assert table.head[1:3] == [STUDY.outcomes[0].title, STUDY.outcome("column").title]
    assert [row[0] for row in table.rows] == [
        str(i) for i in np.argsort(STUDY.values(STUDY.winner), kind="stable")[:20]
    ]
    values = np.sort(STUDY.values(STUDY.winner))
    assert [float(row[1]) for row in table.rows] == pytest.approx(values[:20].tolist(), abs=6e-5)


def test_it_can_be_repeated():
    assert STUDY.command in PAGE.text_of("code")
    facts = dict(zip(PAGE.text_of("dt"), PAGE.text_of("dd"), strict=True))
    assert (facts["seed"], facts["outer folds"], facts["numpy"], facts["run time"]) == (
        "0",
        "5",
        "2.3.1",
        "274 s",
    )
    assert any(STUDY.data.fingerprint in text for text in PAGE.text_of("p"))


def test_the_page_loads_no_resource_and_runs_no_script():
    text = study_html(STUDY)
    assert len(text.encode()) < 300_000
    assert not PAGE.all("script")
    assert not PAGE.all("img")
    for _, attributes in PAGE.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "data", "action"):
            assert urlparse(attributes.get(name) or "").scheme in ("", "data")
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert "url(" not in text
    assert "@import" not in text
    policy = [meta["content"] for meta in PAGE.all("meta") if meta.get("http-equiv")]
    assert policy == [CONTENT_POLICY]


def test_it_can_be_read_by_keyboard_and_aloud():
    assert PAGE.all("html")[0]["lang"] == "en"
    assert PAGE.tags[[tag for tag, _ in PAGE.tags].index("body") + 1] == ("a", {"class": "skip", "href": "#main"})
    anchors = {attributes["id"] for _, attributes in PAGE.tags if "id" in attributes}
    assert len(anchors) == sum("id" in attributes for _, attributes in PAGE.tags), "an id stands twice"
    assert {link["href"].removeprefix("#") for link in PAGE.all("a")} <= anchors
    for _, attributes in PAGE.tags:
        assert set((attributes.get("aria-labelledby") or "").split()) <= anchors
    levels = [int(tag[1]) for tag, _ in PAGE.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert all(cell.get("scope") in ("col", "row") for cell in PAGE.all("th"))
    assert len(PAGE.tables) == len(PAGE.all("caption"))


def test_markdown_has_the_sections_and_tables_of_the_page(tmp_path):
    page, markdown = write(STUDY, tmp_path)
    assert page.read_text(encoding="utf-8") == study_html(STUDY)
    text = markdown.read_text(encoding="utf-8")
    assert re.findall("^## (.*)$", text, flags=re.M) == PAGE.text_of("h2")
    assert re.findall(r"^\*\*(.*)\*\*$", text, flags=re.M)[1:] == [
        escape_markdown(table.caption) for table in PAGE.tables
    ]
    assert sorted(tmp_path.iterdir()) == [page, markdown]


def test_parts_without_data_are_left_out():
    page = Page(study_html(unfinished_study()))
    assert page.text_of("h2") == ["The data", "Methods", "How to repeat the study"]
    assert not page.all("svg")
    assert all("0 of 5 folds within the budget" in row[-1] for row in page.table("Methods").rows[:-1])
    assert len(page.table("Methods").rows) == len(STUDY.outcomes)


@pytest.mark.thin(5)
@pytest.mark.parametrize(
    "change",
    [
        {"curve": ()}, {"tests": ()}, {"model": None}, {"command": ""}, {"notes": ()},
        {"convention": "letor4"},
        {"data": replace(STUDY.data, grades=(), n_pool_rows=0, n_single_grade_queries=0)},
        {"outcomes": STUDY.outcomes[:1], "simplest": STUDY.winner, "tests": (), "curve": STUDY.curve[:1]},
        {"curve": tuple(replace(point, low=float("nan"), high=float("nan")) for point in STUDY.curve)},
        {"curve": tuple(replace(point, n_queries=0) for point in STUDY.curve)},
    ],
)  # fmt: skip
def test_any_part_may_be_missing(change):
    less = replace(STUDY, **change)
    page = Page(study_html(less))
    assert "nan" not in " ".join(text for _, text in page.texts).split()


def test_a_user_defined_convention_is_described():
    own = replace(CONVENTIONS["corank"], name="mine", gain="linear")
    outcomes = [one for one in STUDY.outcomes if one.is_complete]
    told = [replace(one, evaluation=replace(one.evaluation, convention=own)) for one in outcomes]
    study = replace(STUDY, outcomes=tuple(told), convention="mine")
    assert "Convention mine: grade y has gain y;" in " ".join(Page(study_html(study)).text_of("p"))
    nothing = replace(unfinished_study(), convention="mine")
    assert "higher is better. Convention mine." in " ".join(Page(study_html(nothing)).text_of("p"))


def test_errors_are_turned_so_that_up_is_better():
    lower = replace(STUDY, larger_is_better=False)
    better = (STUDY.values(STUDY.winner) < STUDY.values("column")).sum()
    (caption,) = [text for text in Page(study_html(lower)).text_of("p") if "worse on" in text]
    assert f"better on {better}," in caption


def test_reports_are_replaced_only_when_asked(tmp_path):
    write(STUDY, tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="exists already"):
        write(STUDY, tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert write(STUDY, tmp_path, overwrite=True)
    with pytest.raises(InputError, match="is not a folder"):
        write(STUDY, tmp_path / "missing")


def test_a_study_is_a_frame_a_latex_table_and_html():
    frame = STUDY.to_frame()
    assert frame["method"].tolist() == [one.title for one in STUDY.outcomes]
    complete = [one for one in STUDY.outcomes if one.is_complete]
    assert frame["nDCG@10"].dropna().tolist() == [one.evaluation["nDCG@10"].mean for one in complete]
    assert frame["p (Holm)"].dropna().tolist() == [test.p_adjusted for test in STUDY.tests]
    assert STUDY.to_latex().count(r"\\") == len(STUDY.outcomes) + 1
    assert len(Page(f"<div>{STUDY._repr_html_()}</div>").tables[0].rows) == len(STUDY.outcomes)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_has_words_of_its_own(name):
    others = [replace(other, name=name).describe() for other in CONVENTIONS.values() if other.name != name]
    assert CONVENTIONS[name].describe().startswith(f"Convention {name}: ")
    assert CONVENTIONS[name].describe() not in others
