"""The rankers that the laws are run on: every one that corank exports, in settings small enough for tests."""

from __future__ import annotations

from collections.abc import Callable

from plain_ranker import PlainRanker

import corank
from corank.base import Ranker

LAWFUL: dict[str, Callable[[], Ranker]] = {
    "PlainRanker": PlainRanker,
}


def exported() -> set[str]:
    """Names of the concrete rankers that corank exports."""
    names = set()
    for name in corank.__all__:
        thing = getattr(corank, name)
        if isinstance(thing, type) and issubclass(thing, Ranker) and thing is not Ranker:
            names.add(name)
    return names
