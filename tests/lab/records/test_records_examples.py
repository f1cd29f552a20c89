"""Small functions by example."""

from __future__ import annotations

from corank_lab.records.columns import _label_of_notes, _LabelCounts, normalise_name
from corank_lab.records.evidence import first_author_words, first_page, same_journal
from corank_lab.records.identity import (
    comparable_title,
    family_name,
    fingerprint,
    fold_text,
    is_beginning,
    is_generic,
    kinds_differ,
    normalise_doi,
    normalise_pmid,
    normalise_title,
    numbers_differ,
    replaced_words,
    title_similarity,
)
from corank_lab.records.parsed import (
    clean_abstract,
    clean_line,
    split_authors,
    split_keywords,
    split_references,
)
from corank_lab.records.records import Records, summarise
from corank_lab.records.tagged import decode_latex
from corank_lab.records.writer import family_of, one_cell


def test_evidence():
    assert first_page("S12-S14") == ("s", "12")
    assert first_page("221-8") == ("", "221")
    assert first_page("21-Aug") == ("", "8")
    assert first_page("no pagination") is None
    assert first_author_words(["Adeli K.Lewis G. F."]) == ("adeli",)
    assert first_author_words(["Zixiao Yang"]) == ("yang", "zixiao")
    assert first_author_words(["Roe, A"]) == ("roe",)
    assert same_journal(("j", "am", "coll", "cardiol"), ("journal", "american", "college", "cardiology"))


def test_fields_citations():
    assert split_references(["W2 W3; W9"]) == ("W2", "W3", "W9")
    assert split_references(["Roe A., Tin ore, (2001); Doe B.; Coe C., Gold, (1999)"]) == (
        "Roe A., Tin ore, (2001)",
        "Doe B.; Coe C., Gold, (1999)",
    )


def test_fields_clean():
    assert (
        clean_line("The <i>Caf&eacute;</i>&nbsp;effect\n of H<sub>2</sub>O, p < 0.05")
        == "The Café effect of H2O, p < 0.05"
    )
    assert clean_abstract("<jats:p>Tin &amp;lt; gold.</jats:p> <jats:p>Ore</jats:p>") == "Tin < gold.\nOre"
    assert clean_abstract("[No abstract available]") == ""
    assert clean_abstract("n/a") == ""
    assert clean_abstract("No abstract art was shown.") == "No abstract art was shown."


def test_fields_columns():
    assert normalise_name("Author(s)") == "author s"
    assert normalise_name("Abstract_Note") == "abstract note"
    assert normalise_name(" publicationYear") == "publication year"


def test_fields_labels():
    assert _label_of_notes(['RAYYAN-INCLUSION: {"Ann"=>"Included", "Bo"=>"Included"}'], _LabelCounts()) == 1.0


def test_fields_names():
    assert split_authors(["Griffin DK, O'Connor RE."], is_cell=True) == ("Griffin DK", "O'Connor RE")
    assert split_authors(["Yang, Z."], is_cell=True) == ("Yang, Z.",)
    assert split_keywords(["tin; ore", "Child, Preschool", "n/a"], is_cell=False) == ("tin", "ore", "Child, Preschool")


def test_identity():
    assert normalise_doi("https://doi.org/10.1000/ABC.1 ") == "10.1000/abc.1"
    assert normalise_doi("doi:10.1000/a(b).") == "10.1000/a(b)"
    assert normalise_doi("no") == ""
    assert normalise_pmid("PMID: 0123 ") == "123"
    assert normalise_pmid("https://pubmed.ncbi.nlm.nih.gov/99/") == "99"
    assert normalise_pmid("0") == ""
    assert normalise_title("The <i>Café</i>&nbsp;effect: α-waves!") == "the cafe effect α waves"
    assert fold_text("The <i>Café</i>, 2nd") == "the cafe, 2nd"
    assert [
        family_name(one) for one in ("Yang, Z.", "Zixiao Yang", "Griffin DK", "LEE J", "van Gogh, V.", "J. Roe Jr.")
    ] == ["yang", "yang", "griffin", "lee", "gogh", "roe"]
    assert fingerprint("On tin.", 1990, ["Roe, A"]) == fingerprint("ON TIN", 1990, ["A. Roe"])


def test_parsers_bibtex():
    assert decode_latex(r"{\"O}zg{\"u}r \& {C}af\'{e} \emph{in vivo}") == "Özgür & Café in vivo"


def test_summary():
    assert summarise(Records(["a", "b"], ["Tin", ""], ["", "Ore."], [("b", "x"), ()], [1, 0])).sentences() == (
        "2 records have labels: 1 relevant, 1 irrelevant; 0 without.",
        "2 references, of which 1 names a record of this collection.",
    )


def test_titles():
    assert comparable_title("[TNF-α in type II diabetes.] [French]") == "tnf alpha in type 2 diabetes"
    assert title_similarity("on beta blockers", "on betablockers") == 100.0
    assert round(title_similarity("on tin", "on lead")) == 36
    assert numbers_differ("tin part 1", "tin part 2")
    assert not numbers_differ("glp 1 in mice", "glp1 in mice")
    assert kinds_differ("erratum to on tin", "on tin")
    assert not kinds_differ("dose response of tin", "dose response of tin")
    assert is_generic("introduction to the special issue")
    assert not is_generic("sleep and memory in rats")
    assert replaced_words("tin in rats", "tin in mice")
    assert not replaced_words("tin in the rats", "tinn in rats")
    assert is_beginning(
        "a long title of a work on sleep and memory", "a long title of a work on sleep and memory in rats"
    )


def test_writers_standard():
    assert one_cell("keywords", ["tin", "ore"]) == "tin; ore"
    assert one_cell("keywords", ["Child, Preschool"]) == "Child, Preschool;"
    assert family_of("RIS") == "ris"
    assert family_of("Web of Science") == "wos"
    assert family_of("Excel") == "table"
    assert family_of("OpenAlex JSON lines") == "other"
