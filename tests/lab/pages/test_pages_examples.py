"""Small functions by example."""

from __future__ import annotations

from corank_lab.pages.markup import clean
from corank_lab.pages.uploads import file_name
from corank_lab.screening.project import split_words


def test_markup():
    assert clean("a\x1b\u202eb\r\nc") == "ab\nc"


def test_screening_view():
    assert split_words("rat*, heart failure\n mice") == ["rat*", "heart failure", "mice"]


def test_uploads():
    assert file_name("C:\\fakepath\\..\\teas.csv") == "teas.csv"
    assert file_name("../../etc/passwd") == "passwd"
    assert file_name("") == "file"
