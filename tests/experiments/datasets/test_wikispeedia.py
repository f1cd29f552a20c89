from __future__ import annotations

import io
import tarfile

import pytest

from corank.errors import InputError
from experiments.datasets.wikispeedia import read_articles, without_subjects

ARTICLE = """   #copyright

Tin

2007 Schools Wikipedia Selection. Related subjects: Chemical elements; Metals
and mines

   Tin is a metal.

   Related subjects in this box
   Lead
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    home = tmp_path / "wikispeedia"
    home.mkdir()
    (home / "articles.tsv").write_text("# names\n\nTin\nOslo\n", encoding="utf-8")
    (home / "categories.tsv").write_text("# pairs\nTin\tsubject.Science.Metals\nTin\tsubject.Mines\n", encoding="utf-8")
    monkeypatch.setenv("CORANK_DATA", str(tmp_path))
    read_articles.cache_clear()
    yield home
    read_articles.cache_clear()


def pack(home, texts):
    with tarfile.open(home / "plaintext_articles.tar", "w") as archive:
        for name, text in texts.items():
            entry = tarfile.TarInfo(f"plaintext_articles/{name}.txt")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_categories_are_known_and_not_in_the_text(folder):
    pack(folder, {"Oslo": "Oslo is a town.", "Tin": ARTICLE})
    articles = read_articles()
    assert articles.names == ["Tin", "Oslo"]
    assert articles.categories == [frozenset({"Science.Metals", "Mines"}), frozenset()]
    assert articles.in_category("Mines").tolist() == [1.0, 0.0]
    assert " ".join(articles.texts[0].split()) == "Tin Tin is a metal. Related subjects in this box Lead"
    assert articles.texts[1] == "Oslo is a town."


def test_an_article_without_a_text_is_said(folder):
    pack(folder, {"Tin": ARTICLE})
    with pytest.raises(InputError, match="lacks 1 of 2 articles"):
        read_articles()


def test_a_text_that_ends_in_its_categories():
    assert without_subjects("Tin\n\n2007 Schools Wikipedia Selection. Related subjects: Metals") == "Tin"


@pytest.mark.usefixtures("real_data")
def test_the_set_has_the_published_size_and_no_article_names_its_categories():
    articles = read_articles()
    assert len(articles.texts) == 4604
    assert sum(map(len, articles.categories)) == 5204
    assert int(articles.in_category("Countries").sum()) == 229
    assert not any("Related subjects:" in text or "Schools Wikipedia" in text for text in articles.texts)
