"""Wikispeedia: articles of Wikipedia for Schools 2007 with their categories."""

from __future__ import annotations

import io
import re
import tarfile
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.text import open_text
from corank.errors import InputError
from experiments.datasets.catalog import dataset

# the second paragraph of an article names its categories, which would be the answer
_SUBJECTS = re.compile(r"[^\n]*Related subjects:.*?(?:\n[ \t]*\n|\Z)", re.DOTALL)
_EDITION = re.compile(r"#copyright|2007 Schools Wikipedia Selection\.?")


@dataclass(frozen=True, eq=False)
class Articles:
    """
    The articles.

    names: URL-encoded, in the order of the set's list.
    texts: their words, without the line that names their categories.
    categories: such as "Science.Biology.Birds"; an article may have several, or none.
    """

    names: list[str]
    texts: list[str]
    categories: list[frozenset[str]]

    def in_category(self, category: str) -> NDArray[np.float64]:
        """Return 1 for each article of a category, 0 for the others."""
        return np.array([category in of_article for of_article in self.categories], dtype=np.float64)


@cache
def read_articles() -> Articles:
    """
    Read the 4,604 articles.

    Returns: names, texts and categories.
    """
    source = dataset("wikispeedia")
    names = [fields[0] for fields in _lines(source.path("articles.tsv").as_posix())]
    results: dict[str, set[str]] = {name: set() for name in names}
    for name, category in _lines(source.path("categories.tsv").as_posix()):
        results[name].add(category.removeprefix("subject."))
    path, texts = source.path("plaintext_articles.tar"), {}
    with tarfile.open(fileobj=io.BytesIO(open_text(path).read().data)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.endswith(".txt") else None
            if content is not None:
                name = member.name.rpartition("/")[2].removesuffix(".txt")
                texts[name] = without_subjects(content.read().decode("utf-8", "replace"))
    missing = [name for name in names if name not in texts]
    if missing or not names:
        raise InputError(f"{path} lacks {len(missing)} of {len(names)} articles; get it again.")
    return Articles(names, [texts[name] for name in names], [frozenset(results[name]) for name in names])


@cache
def read_links() -> list[tuple[str, str]]:
    """
    Read the 119,882 links between articles.

    Returns: names of the article that holds a link, and of the one it leads to.
    """
    lines = _lines(dataset("wikispeedia").path("links.tsv").as_posix())
    return [(source, target) for source, target in lines]


def without_subjects(text: str) -> str:
    """
    Take out of an article what its makers wrote of it: its categories, and the name of the edition.

    >>> without_subjects("Tin\\n\\n2007 Schools Wikipedia Selection. Related subjects: Metals\\n\\nTin is soft.")
    'Tin\\n\\nTin is soft.'
    """
    return _EDITION.sub(" ", _SUBJECTS.sub("", text)).strip()


def _lines(path: str) -> list[list[str]]:
    """Fields of a table, without its comments."""
    text = open_text(path).read().tobytes().decode("utf-8")
    return [line.split("\t") for line in text.splitlines() if line.strip() and not line.startswith("#")]
