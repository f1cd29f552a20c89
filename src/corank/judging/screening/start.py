"""Start: what to read while nothing relevant is known."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from corank.judging.screening.views import Views


def choose_first(
    views: Views, unread: NDArray[np.intp], rejected: Iterable[int], *, topic: str = "", seed: int = 0
) -> int:
    """
    Choose the record that is most like the topic, the most typical one, and any, in turn.

    Typical is what resembles many records and few of those rejected. No model is learnt: a topic has no citations, and
    taken for a relevant record it would teach just that.

    unread: numbers of the records to choose from.
    rejected: numbers of those that were read in vain.
    topic: what is looked for, in words; without it the other two ways take turns.
    seed: of the choice at random.
    """
    vain = np.array([*rejected], dtype=np.intp)
    ways = ["topic", "typical", "random"] if topic else ["typical", "random"]
    way = ways[len(vain) % len(ways)]
    if way == "random":
        return int(np.random.default_rng([seed, len(vain)]).choice(unread))
    if way == "topic":
        scores = views.likeness(topic)
    else:
        scores = views.typical
        if len(vain):
            scores = scores - views.times(views.take(vain), np.full(len(vain), 1 / len(vain)))
    return int(unread[np.argmax(scores[unread])])
