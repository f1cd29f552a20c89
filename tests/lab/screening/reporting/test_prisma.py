"""Numbers of the flow diagram add up, and the drawing shows them inside its boxes."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from screening.reporting.test_export import SomeGroups

from corank_lab.records.records import RecordDetails, Records, RecordSource
from corank_lab.screening.export import JudgeAnswer, settle
from corank_lab.screening.prisma import BOX, MAX_ENTRIES, PrismaCounts, flow_diagram, prisma_counts

SVG = "{http://www.w3.org/2000/svg}"
COUNTS = PrismaCounts(
    (("PubMed", 60), ("Embase", 50)), 10, 2, (("animals", 30), ("no reason given", 5)), 12, 3, 48,
    "stopped by the rule 'decline'",
)  # fmt: skip


def texts(svg):
    return [one.text for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@st.composite
def screenings(draw):
    n = draw(st.integers(1, 25))
    sources = draw(st.lists(st.sampled_from(["a.ris", "b.csv", ""]), min_size=n, max_size=n))
    records = Records(
        [f"W{at}" for at in range(n)], ["t"] * n, [""] * n, details=[RecordDetails(source=name) for name in sources],
        sources=[RecordSource("b.csv", "", "CSV", sources.count("b.csv")), RecordSource("a.ris", "", "RIS", 1)],
    )  # fmt: skip
    numbers = draw(st.permutations(range(n)))
    cuts = sorted(draw(st.sets(st.integers(0, n), max_size=4)))
    groups = [tuple(sorted(numbers[begin:end])) for begin, end in pairwise(cuts) if end - begin > 1]
    answer = st.builds(
        JudgeAnswer,
        st.sampled_from([0.0, 1.0, math.nan]),
        st.sampled_from(["", "animals", "dose"]),
        duplicate_of=st.sampled_from(["", "", "", "W0"]),
    )
    groups = SomeGroups(n, tuple(groups))
    one = st.dictionaries(st.sampled_from(groups.representatives), answer)
    return records, groups, draw(one), draw(one)


@given(screenings())
def test_numbers_add_up(screening):
    records, groups, ann, bob = screening
    settled = settle({"ann": ann, "bob": bob})
    counts = prisma_counts(records, settled, groups)
    assert counts.n_identified == len(records)
    assert dict(counts.identified) == Counter(one.source or "other sources" for one in records.details)
    assert counts.n_identified - counts.n_duplicates == counts.unique == counts.screened + counts.unread
    assert counts.screened == counts.included + counts.n_excluded + counts.conflicts
    assert counts.duplicates_found == len(records) - len(groups.representatives)
    status = [settled[at].status if at in settled else "unread" for at in groups.representatives]
    assert counts.included == status.count("included")
    assert counts.n_excluded == status.count("excluded")
    assert counts.duplicates_marked == status.count("duplicate")
    rows = {row[1]: row[2] for row in counts.table().rows}
    assert rows["Records screened"] == counts.screened
    drawn = " ".join(texts(flow_diagram(counts)))
    for head, n in (("Records identified", len(records)), ("Records screened", counts.screened)):
        assert f"{head} (n = {n})" in drawn


def test_numbers_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match="do not add up"):
        PrismaCounts((("a", 10),), 0, 0, (("x", 3),), 2)
    with pytest.raises(ValueError, match="do not add up"):
        PrismaCounts((("a", 4),), 0, 0, (("x", 3),), 2, -1)


def test_unread_records_are_named_with_the_rule():
    table = COUNTS.table().markdown()
    assert "Records not screened: stopped by the rule 'decline' | 48 |" in table
    drawn = " ".join(texts(flow_diagram(COUNTS)))
    assert "Records not screened (n = 48) Stopped by the rule 'decline'" in drawn
    unfinished = PrismaCounts((("a", 5),), 0, 0, (), 1, 0, 4)
    assert "Screening not finished" in texts(flow_diagram(unfinished))


def test_text_is_escaped_and_described():
    hostile = "<script>alert(1)</script> & \"'\x1b]]>"
    counts = PrismaCounts(((hostile, 3),), 0, 0, ((hostile, 2),), 1)
    svg = flow_diagram(counts, title=hostile)
    assert "<script" not in svg
    assert "\x1b" not in svg
    root = ElementTree.fromstring(svg)
    assert "<script>alert(1)</script>" in root.find(f"{SVG}title").text
    assert root.find(f"{SVG}desc").text.endswith("Records included, to be sought for full text: 1.")
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg", "title", "desc", "style", "rect", "text", "path", "polygon",
    }  # fmt: skip


def test_many_long_reasons_stay_inside_their_boxes():
    """The width is measured by the metrics of a real font, wider than Arial."""
    font_manager = pytest.importorskip("matplotlib.font_manager")
    from matplotlib.ft2font import FT2Font

    font = FT2Font(font_manager.findfont("DejaVu Sans"))
    font.set_size(14, 72)
    bold = FT2Font(font_manager.findfont("DejaVu Sans:bold"))
    bold.set_size(14, 72)
    reasons = [
        (f"{word} " * 12 + str(k), 100 - k)
        for k, word in enumerate(["mixed", "WIDE", "x" * 90, "illicit", "Ωμέγα"] * 5)
    ]
    n = sum(n for _, n in reasons)
    svg = flow_diagram(PrismaCounts((("a", n),), 0, 0, tuple(reasons), 0))
    root = ElementTree.fromstring(svg)
    boxes = [
        {name: float(box.get(name, 0)) for name in ("x", "y", "width", "height")} for box in root.iter(f"{SVG}rect")
    ]
    n_lines = 0
    for line in root.iter(f"{SVG}text"):
        if line.get("class") == "stagename":
            continue
        measured = bold if line.get("class") == "strong" else font
        measured.set_text(line.text)
        x, y, width = float(line.get("x")), float(line.get("y")), measured.get_width_height()[0] / 64
        inside = [
            box for box in boxes if box["width"] == BOX and box["x"] <= x and box["y"] <= y <= box["y"] + box["height"]
        ]
        assert any(x + width <= box["x"] + BOX - 4 for box in inside), (line.text, width)
        n_lines += 1
    assert n_lines > 40
    drawn = " ".join(texts(svg))
    assert f"{len(reasons) - MAX_ENTRIES + 1} further reasons" in drawn
    excluded = drawn.split("Records excluded")[1].split("Records included")[0]
    first, *others = map(int, re.findall(r"\(n = (\d+)\)", excluded))
    assert first == sum(others) == n


def test_labels_of_arrays_are_accepted():
    settled = settle({"ann": {at: JudgeAnswer(float(label)) for at, label in enumerate(np.array([1, 0]))}})
    records = Records(["1", "2"], ["t", "u"], ["", ""])
    assert prisma_counts(records, settled).included == 1
