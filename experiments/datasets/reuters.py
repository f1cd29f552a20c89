"""Reuters-21578: stories with topics, in the ModApte split."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.text import open_text
from corank.errors import InputError
from experiments.datasets.catalog import dataset

_STORY = re.compile(r"<REUTERS (?P<head>[^>]*)>(?P<body>.*?)</REUTERS>", re.DOTALL)
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_TEXT = re.compile(r"<TEXT[^>]*>(.*?)</TEXT>", re.DOTALL)
_NAME = re.compile(r"^(\S.*) \(([A-Z-]+)\)[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, eq=False)
class Stories:
    """
    The stories of the ModApte split.

    Attributes
    ----------
    texts : list of str
        Title and body, markup removed.
    topics : list of frozenset of str
        Topics of each story; may be empty.
    is_test : array of bool
        Whether a story is in the test part.
    """

    texts: list[str]
    topics: list[frozenset[str]]
    is_test: NDArray[np.bool_]

    def about(self, topic: str) -> NDArray[np.float64]:
        """
        Return which stories are about a topic.

        Parameters
        ----------
        topic : str
            Such as "earn".

        Returns
        -------
        array of float64
            1 where a story has the topic, 0 elsewhere.
        """
        return np.array([topic in of_story for of_story in self.topics], dtype=np.float64)


@cache
def read_modapte() -> Stories:
    """
    Read the ModApte split: 9,603 stories to train on, 3,299 to test on.

    Returns: texts, topics and split.
    """
    stories = [story for page in _members(".sgm") for story in parse_stories(page)]
    if not stories:
        raise InputError(f"{_archive()} holds no story of the ModApte split; get it again.")
    texts, topics, is_test = zip(*stories, strict=True)
    return Stories(list(texts), list(topics), np.array(is_test))


@cache
def read_topic_names() -> dict[str, str]:
    """
    Read what the topics are called in words.

    Returns: topic to its name, such as "money-fx" to "Money/Foreign Exchange".
    """
    return {
        topic.lower(): name for page in _members("cat-descriptions_120396.txt") for name, topic in _NAME.findall(page)
    }


def parse_stories(page: str) -> list[tuple[str, frozenset[str], bool]]:
    """
    Parse the stories of one SGML file that belong to the ModApte split.

    Parameters
    ----------
    page : str
        The file's text.

    Returns
    -------
    list of (text, topics, is_test)
        Stories whose topics were considered by the indexers, marked TRAIN or TEST.

    Examples
    --------
    >>> page = '<REUTERS TOPICS="YES" LEWISSPLIT="TEST"><TOPICS><D>tin</D></TOPICS><TEXT>Up &lt;ab></TEXT></REUTERS>'
    >>> parse_stories(page)
    [('Up <ab>', frozenset({'tin'}), True)]
    """
    results = []
    for story in _STORY.finditer(page):
        head = story["head"]
        split = re.search(r'LEWISSPLIT="(\w+)"', head)
        if 'TOPICS="YES"' not in head or split is None or split[1] not in ("TRAIN", "TEST"):
            continue
        topics = _TOPICS.search(story["body"])
        text = _TEXT.search(story["body"])
        words = unescape(_TAG.sub(" ", text[1])) if text else ""
        results.append(
            (words.strip(), frozenset(_TOPIC.findall(topics[1])) if topics else frozenset(), split[1] == "TEST")
        )
    return results


def _archive() -> Path:
    return dataset("reuters").path("reuters21578.tar")


def _members(ending: str) -> Iterator[str]:
    """Texts of the archive's files whose names end so, by name."""
    with tarfile.open(fileobj=io.BytesIO(open_text(_archive()).read().data)) as archive:
        for member in sorted(archive.getmembers(), key=lambda entry: entry.name):
            content = archive.extractfile(member) if member.name.endswith(ending) else None
            if content is not None:
                yield content.read().decode("latin-1")
