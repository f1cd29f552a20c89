"""Choices apart from the model: records to read first, similar records, and words by which relevant records differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from corank.text import split_words
from corank_lab.screening.views import Views


def choose_first(
    views: Views, unread: NDArray[np.intp], rejected: Iterable[int], *, topic: str = "", seed: int = 0
) -> int:
    """
    Choose a record while no relevant one is known: most similar to the topic, most typical, and random, in turn.

    A typical record is similar to many records and to few rejected ones. The topic is not used as a relevant record: it
    has no citations, and the model would learn that.
    """
    irrelevant = np.array([*rejected], dtype=np.intp)
    ways = ["topic", "typical", "random"] if topic else ["typical", "random"]
    way = ways[len(irrelevant) % len(ways)]
    if way == "random":
        return int(np.random.default_rng([seed, len(irrelevant)]).choice(unread))
    if way == "topic":
        scores = views.likeness(topic)
    else:
        scores = views.typical
        if len(irrelevant):
            scores = scores - views.times(views.take(irrelevant), np.full(len(irrelevant), 1 / len(irrelevant)))
    return int(unread[np.argmax(scores[unread])])


def telling_words(
    views: Views, text: str, judged: Sequence[int], relevant: Sequence[bool], *, n: int
) -> list[tuple[str, float]]:
    """Return the words of a text by which relevant records differ most from the others that were read."""
    number, chosen = views.vocabulary.number, np.array(relevant, dtype=np.bool_)
    terms = {word: number[word] for word in dict.fromkeys(split_words(text.lower())) if word in number}
    if not (chosen.any() and (~chosen).any() and terms):
        return []
    rows = views.text[np.array(judged)][:, list(terms.values())]
    weights = np.asarray(rows[chosen].mean(axis=0) - rows[~chosen].mean(axis=0)).ravel()
    order = np.argsort(-np.abs(weights), kind="stable")[:n].tolist()
    words = list(terms)
    return [(words[at], float(weights[at])) for at in order if weights[at]]


def similar_records(views: Views, record: int, *, n: int) -> list[int]:
    """Return the records with the most similar text, of which a record may be a duplicate."""
    cosines = (views.text @ views.text[record].T).toarray().ravel()
    cosines[record] = -1.0
    order = np.argsort(-cosines, kind="stable")[:n]
    return [number for number in order.tolist() if cosines[number] > 0]
