from __future__ import annotations

import pytest

from corank.errors import InputError
from helpers.record_samples import ABSTRACT, check_works, read

pytest.importorskip("defusedxml")

ENDNOTE = """<?xml version="1.0" encoding="UTF-8" ?><xml><records><record>
<source-app name="EndNote">EndNote</source-app>
<rec-number>258</rec-number><ref-type name="Journal Article">17</ref-type><contributors><authors>
<author><style face="normal">Roe, </style><style face="bold">Ann B.</style></author><author>Doe, Ben</author></authors>
<secondary-authors><author>Editor, E</author></secondary-authors></contributors>
<titles><title><style>Tin mining &amp; </style><style face="italic">sleep</style><style>: a trial</style></title>
<secondary-title>Journal of Ore</secondary-title></titles>
<periodical><full-title>Journal of Ore</full-title></periodical>
<keywords><keyword>tin</keyword><keyword><style>deep sleep</style></keyword></keywords>
<dates><year><style>2001</style></year><pub-dates><date>May</date></pub-dates></dates>
<abstract><style>Rats sleep in tin mines.&#xD;Effects were large (p &lt; 0.05).</style></abstract>
<accession-num>A1</accession-num><electronic-resource-num>10.1000/ore.1</electronic-resource-num>
<urls><related-urls><url>https://ore.example/1</url></related-urls><pdf-urls><url>internal-pdf://x</url></pdf-urls></urls>
</record><record><titles><title>Gold dust</title></titles><dates><year>1999</year></dates>
<abstract>No abstract</abstract></record></records></xml>"""


@pytest.mark.parametrize(
    "text",
    [
        ENDNOTE,
        "\ufeff" + ENDNOTE.replace("\n", "\r\n"),
        ENDNOTE.replace("Rats sleep", "Rats\x02 sleep&#x1F;"),
        ENDNOTE.replace("&amp;", "&"),
        ENDNOTE.replace("Rats sleep", "Rats&nbsp;sleep"),
    ],
)
def test_endnote(text, tmp_path):
    found = read(tmp_path, text)
    check_works(found, "EndNote XML", without="pmid")
    assert found.fields[0]["secondary-authors"] == ["Editor, E"]
    assert found.fields[0]["ref-type"] == ["Journal Article"]
    assert found.ids[0] == "A1"


PUBMED = """<?xml version="1.0" ?><!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD" "https://dtd.example/x.dtd">
<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>12345678</PMID><Article>
<Journal><JournalIssue><PubDate><Year>2001</Year></PubDate></JournalIssue><Title>Journal of Ore</Title></Journal>
<ArticleTitle>Tin mining &amp; <i>sleep</i>: a trial</ArticleTitle>
<Abstract><AbstractText>Rats sleep in tin mines.</AbstractText>
<AbstractText>Effects were large (p &lt; 0.05).</AbstractText>
</Abstract><AuthorList><Author><LastName>Roe</LastName><ForeName>Ann B.</ForeName></Author>
<Author><LastName>Doe</LastName><ForeName>Ben</ForeName></Author></AuthorList></Article>
<MeshHeadingList><MeshHeading><DescriptorName>deep sleep</DescriptorName></MeshHeading></MeshHeadingList>
<KeywordList><Keyword>tin</Keyword></KeywordList></MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="doi">10.1000/ore.1</ArticleId></ArticleIdList>
<ReferenceList><Reference><ArticleIdList>
<ArticleId IdType="pubmed">77</ArticleId></ArticleIdList></Reference></ReferenceList>
</PubmedData></PubmedArticle><PubmedArticle><MedlineCitation><PMID>99</PMID><Article>
<ArticleTitle>Gold dust</ArticleTitle>
<Journal><JournalIssue><PubDate><MedlineDate>1999 Winter</MedlineDate></PubDate></JournalIssue></Journal></Article>
</MedlineCitation></PubmedArticle></PubmedArticleSet>"""


def test_pubmed(tmp_path):
    found = read(tmp_path, PUBMED)
    check_works(found, "PubMed XML", without="url")
    assert found.ids == ["12345678", "99"]
    assert [list(of) for of in found.references] == [["77"], []]


def test_other_xml_with_titles(tmp_path):
    text = """<feed xmlns="http://www.w3.org/2005/Atom"><title>a search</title>
    <entry><id>http://arxiv.example/1</id><title>Tin mining
      &amp; sleep: a trial</title><summary>Rats sleep in tin mines. Effects were large (p &lt; 0.05).</summary>
    <published>2001-05-03</published><author><name>Roe, Ann B.</name></author><author><name>Doe, Ben</name></author>
    <doi>10.1000/ore.1</doi><url>https://ore.example/1</url></entry>
    <entry><id>http://arxiv.example/2</id><title>Gold dust</title><published>1999</published></entry></feed>"""
    check_works(read(tmp_path, text), "XML", without="pmid keywords journal")


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><xml>&b;</xml>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "EntitiesForbidden"),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><xml>&a;</xml>', "EntitiesForbidden"),
        (ENDNOTE[:-40], "is not valid XML"),
        ("<a>" * 100_000 + "</a>" * 100_000, "has more than 500 levels"),
        ("<svg><path/></svg>", "is XML with the elements svg, path; expected an export of EndNote"),
        (
            ENDNOTE.replace("title>", "name>"),
            r"\(EndNote XML\) has no titles; it has the fields source-app, rec-number",
        ),
    ],
)
def test_hostile_and_other_xml_is_refused(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_the_declared_encoding_is_used(tmp_path):
    text = ENDNOTE.replace("UTF-8", "iso-8859-2").replace("Gold dust", "Złoto")
    found = read(tmp_path, text.encode("iso-8859-2"))
    assert found.titles[1] == "Złoto"
    assert found.abstracts[0].replace("\n", " ") == ABSTRACT
    assert found.sources[0].remarks == ("The encoding is iso-8859-2, as the file says.",)
