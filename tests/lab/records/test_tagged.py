from __future__ import annotations

import re

import numpy as np
import pytest

from helpers.record_samples import ABSTRACT, check_works, read

RIS = """TY  - JOUR
ID  - a1
TI  - Tin mining & sleep: a trial
AU  - Roe, Ann B.
AU  - Doe, Ben
PY  - 2001
JO  - Journal of Ore
AB  - Rats sleep in tin mines. Effects were large (p < 0.05).
KW  - tin
KW  - deep sleep
DO  - 10.1000/ORE.1
C2  - 12345678
UR  - https://ore.example/1
ER  -

TY  - JOUR
ID  - b2
TI  - Gold dust
PY  - 1999
AB  - [No abstract available]
ER  -
"""
OTHER_TAGS = (
    RIS.replace("TI  -", "T1  -").replace("AU  -", "A1  -").replace("PY  - 2001", "Y1  - 2001/05/03/Spring")
    .replace("JO  -", "T2  -").replace("AB  -", "N2  -").replace("UR  -", "L2  -").replace("PY  -", "DA  -")
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        RIS,
        RIS.replace("\n", "\r\n"),
        RIS.replace("\n", "\r"),
        "\ufeff" + RIS,
        "\n\n" + RIS,
        RIS.replace("ER  -", "ER  - "),
        RIS.replace("  - ", "  -  "),
        RIS.replace("\nTI  - ", "\nJF  - \nTI  - "),
        re.sub(r"(?m)^(..)  -", r"\1 -", RIS),
        re.sub(r"(?m)^(?=..  -)", "  ", RIS),
        RIS.replace("TY  -", "1. \nTY  -", 1).replace("\n\nTY  -", "\n\n2. \nTY  -"),
        RIS.replace("TY  -", "Record #3 of 18\nProvider: Somebody\nContent: text/plain\n\nTY  -"),
        RIS.replace("tin mines. Effects", "tin mines.\nEffects"),
        RIS.replace("tin mines. Effects", "tin mines.\n\n  Effects"),
        RIS.replace("mines. Effects", "mines.\nAB  - Effects"),
        RIS.replace("AB  - Rats", "N2  - A note\nAB  - Rats"),
        RIS.replace("AB  - Rats", "AB  - \nN2  - Rats"),
        RIS.replace("DO  - 10.1000/ORE.1", "DO  - https://doi.org/10.1000/ORE.1     LK  - https://x.example"),
        RIS.replace("DO  - 10.1000/ORE.1", "M3  - doi: 10.1000/ORE.1"),
        RIS.replace("DO  - 10.1000/ORE.1", "L2  - http://dx.doi.org/10.1000/ORE.1"),
        RIS.replace("AU  - Roe, Ann B.\nAU  - Doe, Ben", "AU  - Roe, Ann B.; Doe, Ben"),
        RIS.replace("KW  - tin\nKW  - deep sleep", "KW  - tin; deep sleep"),
        RIS.replace("KW  - tin\nKW  - deep sleep", "KW  - tin\ndeep sleep\nKW  - n/a"),
        RIS.replace("C2  - 12345678", "C3  - PUBMED 12345678,EMBASE 99"),
        RIS.replace("JO  - Journal of Ore", "J2  - J. Ore\nJF  - Journal of Ore\nT2  - Other"),
        OTHER_TAGS,
    ],
)
def test_ris_in_all_its_variants(text, tmp_path):
    found = read(tmp_path, text)
    check_works(found, "RIS")
    assert found.ids == ["a1", "b2"]
    assert not found.sources[0].remarks


def test_secondary_titles_are_not_titles(tmp_path):
    text = "TY  - CHAP\nT2  - The big book\nTI  - Its chapter\nT3  - A series\nER  -\nTY  - BOOK\nBT  - A book\nER  -\n"
    found = read(tmp_path, text)
    assert found.titles == ["Its chapter", "A book"]
    assert found.details[0].journal == "The big book"


def test_a_record_without_its_end_is_read_with_a_remark(tmp_path):
    found = read(tmp_path, RIS.rstrip().removesuffix("ER  -"))
    check_works(found, "RIS")
    assert found.sources[0].remarks == ("The last record has no 'ER' line; check that the file is complete.",)
    check_works(read(tmp_path, RIS.replace("ER  -\n", "")), "RIS")


def test_fields_keep_every_tag_and_its_markup(tmp_path):
    text = "TY  - JOUR\nTI  - <i>Tin</i> &amp; ore\nAB  - <jats:p>One</jats:p><jats:p>Two</jats:p>\nXY  - z\nER  -\n"
    found = read(tmp_path, text)
    assert (found.titles, found.abstracts) == (["Tin & ore"], ["One\nTwo"])
    assert found.fields[0] == {
        "TY": ["JOUR"], "TI": ["<i>Tin</i> &amp; ore"], "AB": ["<jats:p>One</jats:p><jats:p>Two</jats:p>"], "XY": ["z"]
    }  # fmt: skip


def test_a_scopus_address_is_not_a_doi_but_an_accession_number(tmp_path):
    address = "https://www.scopus.com/inward/record.uri?eid=2-s2.0-85189760133&doi=10.1038%2fs41467&partnerID=40"
    found = read(tmp_path, f"TY  - JOUR\nTI  - Tin\nUR  - {address}\nER  -\n").details[0]
    assert (found.doi, found.accession, found.url) == ("", "2-s2.0-85189760133", address)


PUBMED = """
PMID- 12345678
OWN - NLM
IS  - 1878-0849 (Electronic)
DP  - 2001 Feb
TI  - Tin mining & sleep: a
      trial
LID - S1769-7212(19)30059-X [pii]
LID - 10.1000/ore.1 [doi]
AB  - Rats sleep in tin
      mines. Effects were
      large (p < 0.05).
FAU - Roe, Ann B.
AU  - Roe AB
FAU - Doe, Ben
AU  - Doe B
TA  - J Ore
JT  - Journal of Ore
MH  - tin
OT  - deep sleep
SO  - J Ore. 2001 Feb;1:2. doi: 10.1000/ore.1.

PMID- 99
TI  - Gold dust
DP  - 1999 Winter
"""


@pytest.mark.parametrize("text", [PUBMED, PUBMED.replace("\n", "\r\n"), PUBMED.lstrip().replace("\nPMID", "PMID")])
def test_pubmed(text, tmp_path):
    found = read(tmp_path, text, "works.ris")
    check_works(found, "PubMed", without="url")
    assert found.ids == ["12345678", "99"]


OVID = """<3001. >
VN  - Ovid Technologies
DB  - Embase
UI  - 621
TI  - Tin mining & sleep: a trial
SO  - Journal of Ore. Conference: 2nd. 12 (Supplement 3), 2001. Date of Publication: 2001.
AU  - Roe, Ann B.
AU  - Doe, Ben
AB  - Rats sleep in tin mines.
Effects were large (p < 0.05).
MH  - tin
OD  - tin
MH  - deep sleep
DO  - http://dx.doi.org/10.1000/ore.1
CR  - Copyright 2001 Ore

<3002. >
VN  - Ovid Technologies
UI  - 622
TI  - Gold dust
YR  - 1999
"""


@pytest.mark.parametrize("text", [OVID, OVID.replace("<3002. >\n", ""), re.sub(r"<(\d+)\. >", r"\1. ", OVID)])
def test_ovid(text, tmp_path):
    found = read(tmp_path, text, "works.cgi")
    check_works(found, "Ovid", without="url pmid")
    assert found.ids == ["621", "622"]
    assert found.references == [(), ()]


LABELLED = """<1>
Accession Number
  621
Title
  Tin mining & sleep: a trial
Source
  Journal of Ore
Author
  Roe, Ann B.
  Doe, Ben
Abstract
  Rats sleep in tin mines.
  Effects were large (p < 0.05).
Keywords
  tin
  deep sleep
Year of Publication
  2001
DOI
  10.1000/ore.1

<2>
Accession Number
  622
Title
  Gold dust
Year of Publication
  1999
"""


def test_ovid_with_names_of_fields(tmp_path):
    found = read(tmp_path, LABELLED, "citation.txt")
    check_works(found, "Ovid", without="url pmid")
    assert found.ids == ["621", "622"]


COCHRANE = """Record #1 of 2
ID: CN-01
AU: Roe, Ann B.
AU: Doe, Ben
TI: Tin mining & sleep: a trial
SO: Journal of Ore, 2001, 12, 39
YR: 2001
XR: PUBMED 12345678
KY: tin; deep sleep
DOI: 10.1000/ore.1
AB: Rats sleep in tin mines. Effects were large (p < 0.05).
US: https://ore.example/1


Record #2 of 2
ID: CN-02
TI: Gold dust
YR: 1999
"""


def test_cochrane_text(tmp_path):
    found = read(tmp_path, COCHRANE, "citation-export.txt")
    check_works(found, "Cochrane")
    assert found.ids == ["CN-01", "CN-02"]


WOS = """\ufeffFN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Roe, Ann B.
   Doe, Ben
AF Roe, Ann Bo
   Doe, Benjamin
TI Tin mining & sleep: a
   trial
SO Journal of Ore
DE tin; deep
   sleep
AB Rats sleep in tin mines.
   Effects were large (p < 0.05).
CR Coe C, 1990, ORE, V1, P2, DOI 10.1000/old
   Zoe Z, 1991, TIN
NR 2
U1 0
U2 3
PY 2001
DI 10.1000/ore.1
UT WOS:1
PM 12345678
ER

PT J
TI Gold dust
PY 1999
UT WOS:2
ER

EF"""


@pytest.mark.parametrize("text", [WOS, WOS.split("VR 1.0\n")[1], WOS.replace("\n", "\r\n")])
def test_web_of_science(text, tmp_path):
    found = read(tmp_path, text, "savedrecs.txt")
    check_works(found, "Web of Science", without="url")
    assert found.ids == ["WOS:1", "WOS:2"]
    assert list(found.references[0]) == ["Coe C, 1990, ORE, V1, P2, DOI 10.1000/old", "Zoe Z, 1991, TIN"]
    assert found.fields[0]["AF"] == ["Roe, Ann Bo", "Doe, Benjamin"]


REFWORKS = """RT Journal Article
SR Electronic(1)
ID 17
A1 Roe, Ann B.
A1 Doe, Ben
T1 Tin mining & sleep: a trial
YR 2001
JF Journal of Ore
AB Rats sleep in tin mines. Effects were large (p < 0.05).
K1 tin
K1 deep sleep
DO 10.1000/ore.1
UL https://ore.example/1

RT Journal Article
ID 18
T1 Gold dust
YR 1999
"""
REFER = """%0 Journal Article
%A Roe, Ann B.
%A Doe, Ben
%T Tin mining & sleep: a trial
%J Journal of Ore
%D 2001
%X Rats sleep in tin mines. Effects were large (p < 0.05).
%K tin
deep sleep
%R doi:10.1000/ore.1
%U https://ore.example/1
%M 17

%0 Journal Article
%T Gold dust
%D 1999
%M 18
"""


@pytest.mark.parametrize(("text", "format"), [(REFWORKS, "RefWorks"), (REFER, "EndNote tagged")])
def test_refworks_and_refer(text, format, tmp_path):
    found = read(tmp_path, text)
    check_works(found, format, without="pmid")
    assert found.ids == ["17", "18"]


def test_lines_that_look_like_tags_inside_an_abstract(tmp_path):
    text = RIS.replace("tin mines. Effects", "tin mines.\nDNA - no tag\nEffects")
    found = read(tmp_path, text)
    assert found.abstracts[0] == ABSTRACT.replace("mines. ", "mines.\nDNA - no tag\n")


def test_labels_of_notes(tmp_path):
    notes = [
        'RAYYAN-INCLUSION: {"Ann"=>"Included", "Bo"=>"Included"} | RAYYAN-LABELS: x',
        'RAYYAN-INCLUSION: {"Ann"=>"Excluded"} | RAYYAN-EXCLUSION-REASONS: wrong outcome',
        'RAYYAN-INCLUSION: {"Ann"=>"Included", "Bo"=>"Excluded"}',
        'RAYYAN-INCLUSION: {"Ann"=>"Maybe"}',
        "ASReview_relevant",
        "ASReview_irrelevant\nN1  - ASReview_relevant",
        "Exclusion reason: Wrong population; ",
        "a note",
    ]
    text = "".join(f"TY  - JOUR\nTI  - Tin {at}\nN1  - {note}\nER  -\n" for at, note in enumerate(notes))
    found = read(tmp_path, text)
    np.testing.assert_array_equal(found.labels, [1, 0, np.nan, np.nan, 1, 1, 0, np.nan])
    assert found.sources[0].remarks == (
        "Reviewers disagree on 1 record, read as not judged.",
        "The judgement of 1 record is undecided, read as not judged.",
    )
