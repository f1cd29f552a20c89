"""One-topic problems: stories of Reuters, articles of Wikispeedia, each with what is looked for in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from corank.base.smooth import NeighborSmoother
from experiments.datasets.reuters import read_modapte, read_topic_names
from experiments.datasets.wikispeedia import read_articles

RARE = range(20, 101)
"""Training stories of a rare topic: the rule that gives 28 topics."""
N_CATEGORIES = 25
"""Categories of Wikispeedia, the largest."""
TEST_SHARE = 1 / 3
MIN_TEST = 3
"""Rows of a topic in the test part, without which it is not measured there."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TopicPool:
    """
    Rows of text, and the topics that are looked for among them.

    name: of the problem.
    text: rows of tf-idf, the words those of the pool.
    smooth: the same with `NeighborSmoother`, fitted on the pool.
    is_test: which rows are never judged.
    about: topic to 1 where a row is about it, else 0.
    named: topic to cosines with the words of its name: a score that needs no judgement.
    """

    name: str
    text: Any
    smooth: Any
    is_test: NDArray[np.bool_]
    about: dict[str, Floats]
    named: dict[str, Floats]

    def spread(self, n: int) -> list[str]:
        """Choose n topics (all, where there are fewer), evenly over their sizes, the smallest first."""
        sizes = sorted((float(y.sum()), topic) for topic, y in self.about.items())
        return [sizes[index][1] for index in np.unique(np.linspace(0, len(sizes) - 1, min(n, len(sizes))).astype(int))]


@cache
def pools() -> tuple[TopicPool, ...]:
    """Read the problems: rare and common topics of Reuters, categories of Wikispeedia."""
    return (*reuters(), wikispeedia())


@cache
def reuters() -> tuple[TopicPool, TopicPool]:
    """Read Reuters-21578, ModApte split: topics of 20 to 100 training stories, and those of more."""
    stories, names = read_modapte(), read_topic_names()
    topics = Counter(
        topic for of, is_test in zip(stories.topics, stories.is_test, strict=True) for topic in of if not is_test
    )
    rows = _rows(stories.texts, stories.is_test)
    parts = {
        "Reuters, rare topics": [topic for topic in sorted(topics) if topics[topic] in RARE],
        "Reuters, common topics": [topic for topic in sorted(topics) if topics[topic] >= RARE.stop],
    }
    rare, common = (
        _pool(
            name,
            rows,
            stories.is_test,
            {topic: stories.about(topic) for topic in of},
            [names.get(topic, topic) for topic in of],
        )
        for name, of in parts.items()
    )
    return rare, common


@cache
def wikispeedia() -> TopicPool:
    """Read Wikispeedia: the 25 largest categories; a random third of the articles is never judged."""
    articles = read_articles()
    sizes = Counter(category for of in articles.categories for category in of)
    largest = sorted(sizes, key=lambda category: (-sizes[category], category))[:N_CATEGORIES]
    is_test = np.random.default_rng(0).random(len(articles.texts)) < TEST_SHARE
    about = {category: articles.in_category(category) for category in largest}
    names = [category.rpartition(".")[2].replace("_", " ") for category in largest]
    return _pool("Wikispeedia", _rows(articles.texts, is_test), is_test, about, names)


class _Rows(NamedTuple):
    """A fitted vectoriser, rows of text, and the same smoothed."""

    vectoriser: Any
    text: Any
    smooth: Any


def _rows(texts: Sequence[str], is_test: NDArray[np.bool_]) -> _Rows:
    vectoriser = TfidfVectorizer(sublinear_tf=True, min_df=2)
    vectoriser.fit([text for text, out in zip(texts, is_test, strict=True) if not out])
    X = vectoriser.transform(texts)
    return _Rows(vectoriser, X, NeighborSmoother(random_state=0).fit(X[~is_test]).transform(X))


def _pool(
    name: str, rows: _Rows, is_test: NDArray[np.bool_], about: dict[str, Floats], names: Iterable[str]
) -> TopicPool:
    cosines = rows.text @ rows.vectoriser.transform(names).T
    named = {topic: cosines[:, [index]].toarray()[:, 0] for index, topic in enumerate(about)}
    return TopicPool(name, rows.text, rows.smooth, is_test, about, named)
