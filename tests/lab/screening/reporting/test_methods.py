"""The methods paragraph states the numbers, with the right words, and nothing that is not known."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from corank.errors import InputError
from corank.tables import ReportTable
from corank_lab.screening.methods import EVIDENCE, PairAgreement, ScreeningFacts, methods_paragraph
from corank_lab.screening.prisma import PrismaCounts
from corank_lab.screening.report import ALWAYS, write_report


@dataclass(frozen=True)
class SomeRule:
    name: str = "decline"
    assumes: str = "Finds become rarer as a power of the place."
    evidence: str = "estimated"
    target: float = 0.95
    confidence: float = 0.9


COUNTS = PrismaCounts((("PubMed", 60), ("Embase", 50)), 10, 2, (("animals", 30), ("dose", 5)), 12, 1, 50)
FACTS = ScreeningFacts(
    COUNTS, ["ann", "bob"], "a linear model of words", 7, SomeRule(), True, None, "identifiers and similar titles", 2,
    5, 40, 20, [PairAgreement("ann", "bob", "included", 20, 18, 9, 0.8134, 0.6, 0.95)], 3, ["cy"], "1.2",
)  # fmt: skip


def test_all_facts_are_in_the_paragraph():
    text = methods_paragraph(FACTS)
    for words in (
        "identified 110 records from 2 sources: PubMed (60) and Embase (50).",
        "10 duplicates were removed (found by identifiers and similar titles), and judges marked 2 more, which left 98 "
        "records.",
        "Two judges (ann and bob) screened titles and abstracts with corank, version 1.2.",
        "The answer to 2 records was known before the screening.",
        "in the order of a linear model of words, which learned from every answer (random seed 7)",
        "5 records were looked for, outside of the ranking.",
        "40 records were drawn at random.",
        "At least two judges read 20 records.",
        "Cohen's kappa of the two judges for inclusion was 0.81 (95 % interval 0.60 to 0.95, 20 records read by both).",
        "Adjudication (cy) settled 3 disagreements.",
        "1 disagreement is not settled.",
        "stopped after 48 records by the rule 'decline', which aims at a recall of 0.95 at a confidence of 0.9; "
        "50 records were not screened.",
        "The rule assumes: Finds become rarer as a power of the place.",
        "Of the 48 screened records, 35 were excluded (animals: 30; dose: 5), 12 were included, to be sought for full "
        "text, and 1 is undecided.",
    ):
        assert words in text, words
    assert "  " not in text
    assert ".." not in text


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_words_match_the_evidence(evidence):
    text = methods_paragraph(replace(FACTS, rule=SomeRule(evidence=evidence)))
    assert EVIDENCE[evidence] in text
    assert sum(sentence in text for sentence in EVIDENCE.values()) == 1
    assert ("proof" in text) == (evidence == "estimated")


def test_what_is_not_known_is_not_claimed():
    text = methods_paragraph(ScreeningFacts(COUNTS))
    for word in ("kappa", "judge (", "rule", "seed", "order", "adjudicator", "found by", "random", "None", "recall"):
        assert word not in text, word
    assert "50 records were not screened; the screening was not finished." in text
    early = methods_paragraph(replace(FACTS, is_reached=False))
    assert "The screening was not finished: 50 records were not screened, and the stopping rule 'decline'" in early
    assert "did not advise to stop" in early
    assert not any(sentence in early for sentence in EVIDENCE.values())


def test_a_proved_bound_is_stated_rounded_down():
    facts = replace(FACTS, rule=SomeRule(evidence="proved"), bound=0.96279)
    assert "exact bound from a random sample. The sample proves a recall of at least 0.962." in methods_paragraph(facts)
    early = methods_paragraph(replace(facts, is_reached=False))
    assert "did not advise to stop. The sample proves a recall of at least 0.962." in early


def test_control_characters_of_names_are_shown():
    counts = PrismaCounts((("a\x1b[31m.csv", 5),), 0, 0, (("dose\x07\n", 4),), 1)
    text = methods_paragraph(ScreeningFacts(counts))
    assert text.isprintable()
    assert "a\\x1b[31m.csv" in text


def test_singular_and_plural():
    one = PrismaCounts((("PubMed", 5),), 1, 0, (("animals", 1),), 1, 1, 1)
    text = methods_paragraph(ScreeningFacts(one, ["ann"], n_known=1, n_settled=1))
    for words in (
        "1 duplicate was removed, which left 4 records.", "One judge (ann)", "1 record was not screened",
        "Of the 3 screened records, 1 was excluded (animals: 1), 1 was included", "settled 1 disagreement.",
    ):  # fmt: skip
        assert words in text, words
    assert not re.search(r"\b1 \w+s\b(?<!1 was)(?<!1 is)", text)
    nothing = methods_paragraph(ScreeningFacts(PrismaCounts((("PubMed", 5),), 0, 0, (), 0, 0, 5)))
    assert "No record was screened yet." in nothing


def test_an_undefined_kappa_and_all_read():
    facts = replace(FACTS, agreement=[PairAgreement("ann", "bob", "included", 4, 4, 4, np.nan, np.nan, np.nan)])
    assert "kappa of the two judges is undefined (4 records read by both)" in methods_paragraph(facts)
    full = PrismaCounts((("PubMed", 5),), 0, 0, (("no reason given", 4),), 1)
    text = methods_paragraph(replace(FACTS, counts=full))
    assert "All 5 records were screened." in text
    assert "rule" not in text
    assert "no reason given" not in text


def test_a_report_has_all_files(tmp_path):
    table = ReportTable("Agreement", ("judges", "kappa"), (("=ann, bob", 0.5),), digits=2)
    names = write_report(tmp_path / "report", FACTS, agreement=table, files={"certificate.json": b"{}"})
    assert set(names) == {*ALWAYS, "agreement.csv", "agreement.md", "certificate.json"}
    assert set(names) == {file.name for file in (tmp_path / "report").iterdir()}
    with (tmp_path / "report" / "prisma.csv").open(newline="") as file:
        rows = {row["records"]: int(row["n"]) for row in csv.DictReader(file)}
    assert rows["Records identified"] == 110
    assert rows["Records identified from PubMed"] == 60
    assert (tmp_path / "report" / "agreement.csv").read_text() == 'judges,kappa\n"\'=ann, bob",0.50\n'
    with pytest.raises(InputError, match="exists already"):
        write_report(tmp_path / "report", FACTS)
    assert set(write_report(tmp_path / "report", FACTS, overwrite=True)) == set(ALWAYS)
    (tmp_path / "report" / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match=r"holds mine\.txt"):
        write_report(tmp_path / "report", FACTS, overwrite=True)
