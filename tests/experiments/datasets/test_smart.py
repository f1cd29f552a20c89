from __future__ import annotations

import pytest

from corank.errors import InputError
from corank.text import Corpus, Links
from experiments.datasets.smart import COLLECTIONS, entries, read_citations, read_topics


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "ir_collections" / "cran").mkdir(parents=True)
    (tmp_path / "ir_collections" / "med").mkdir(parents=True)
    (tmp_path / "ir_collections" / "cacm").mkdir(parents=True)
    (tmp_path / "ir_collections" / "cisi").mkdir(parents=True)
    monkeypatch.setenv("CORANK_DATA", str(tmp_path))
    for read in (read_topics, read_citations):
        read.cache_clear()
    yield tmp_path / "ir_collections"
    for read in (read_topics, read_citations):
        read.cache_clear()


DOCUMENTS = ".I 1\n.T\non wings\n.A\nsmith\n.W\nlift of\nwings .\n.I 2\n.W\ntin\n.I 4\n.W\nlead\n"


def test_fields_other_than_title_and_words_are_passed_over():
    text = DOCUMENTS.replace(".A\nsmith", ".A \nsmith\n.X\n1\t5\t1").replace(".T\n", ".T \n")
    assert entries(text) == {1: "on wings lift of wings .", 2: "tin", 4: "lead"}


def test_cranfield_counts_its_queries_and_minus_one_is_not_relevant(folder):
    (folder / "cran" / "cran.all.1400").write_text(DOCUMENTS)
    (folder / "cran" / "cran.qry").write_text(".I 001\n.W\nwings\n.I 004\n.W\nmetals\n.I 009\n.W\nnothing\n")
    (folder / "cran" / "cranqrel").write_text("1 1 2 \n2 2 3\n2 4 1\n2 1 -1\n3 2 -1\n")
    topics = read_topics("cran")
    assert topics.queries == ["wings", "metals"]
    assert topics.relevant.tolist() == [[True, False, False], [False, True, True]]


def test_other_collections_name_queries_and_documents_by_number(folder):
    (folder / "med" / "MED.ALL").write_text(DOCUMENTS)
    (folder / "med" / "MED.QRY").write_text(".I 3\n.W\nlead\n")
    (folder / "med" / "MED.REL").write_text("3 0 4 1\n\n")
    assert read_topics("med").relevant.tolist() == [[False, False, True]]


def test_an_unknown_collection_is_refused():
    with pytest.raises(InputError, match=r"no collection 'crab'; did you mean 'cran'\?"):
        read_topics("crab")


CITING = (
    ".I 1\n.T\non tin\n.X\n2\t5\t1\n1\t5\t1\n9\t5\t1\n4\t6\t1\n\n.I 2\n.T\nlead\n.X\n1\t5\t2\n4\t4\t2\n.I 4\n.T\niron\n"
)


def test_citations_are_links_of_the_corpus(folder):
    (folder / "cacm" / "cacm.all").write_text(CITING)
    assert read_citations("cacm") == [(0, 1), (1, 0)]
    links = Links.of(Corpus.of(entries(CITING).values(), language=None), read_citations("cacm"))
    assert (len(links), links.linked.tolist(), links.n_missing, links.n_own) == (2, [1, 0], 0, 0)


def test_in_cisi_every_count_is_a_link(folder):
    (folder / "cisi" / "CISI.ALL").write_text(CITING)
    assert read_citations("cisi") == [(0, 1), (0, 2), (1, 0), (1, 2)]


def test_a_collection_without_citations_is_refused():
    with pytest.raises(InputError, match="'med' has no citations"):
        read_citations("med")


@pytest.mark.usefixtures("real_data")
def test_both_collections_with_citations_have_thousands():
    different = {name: {tuple(sorted(pair)) for pair in read_citations(name)} for name in ("cacm", "cisi")}
    assert len(different["cacm"]) == 2720
    assert len(different["cisi"]) > 31_000


@pytest.mark.usefixtures("real_data")
def test_sizes_are_those_of_the_sets_readme():
    found = {name: read_topics(name) for name in COLLECTIONS}
    sizes = {name: (len(of.texts), len(of.queries), int(of.relevant.sum())) for name, of in found.items()}
    assert sizes == {
        "cran": (1400, 225, 1837 - 225), "cisi": (1460, 76, 3114), "med": (1033, 30, 696), "cacm": (3204, 52, 796),
    }  # fmt: skip
