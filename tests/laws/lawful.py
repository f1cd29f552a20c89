"""The rankers that the laws are run on: every one that corank exports, in settings small enough for tests."""

from __future__ import annotations

from collections.abc import Callable

from plain_ranker import PlainRanker

import corank
from corank.base import Ranker
from corank.descent import CRR, LCRA, SPD

LAWFUL: dict[str, Callable[[], Ranker]] = {
    "PlainRanker": PlainRanker,
    "SPD": lambda: SPD(loss="squared", alpha=0.1),
    "SPD squared hinge": lambda: SPD(loss="squared_hinge", alpha=0.1),
    "CRR": lambda: CRR(alpha=0.1),
    "LCRA": lambda: LCRA(loss="squared", alpha=0.1, coupling=0.1, random_state=0),
}


def exported() -> set[str]:
    """Names of the concrete rankers that corank exports."""
    names = set()
    for name in corank.__all__:
        thing = getattr(corank, name)
        if isinstance(thing, type) and issubclass(thing, Ranker) and thing is not Ranker:
            names.add(name)
    return names
