"""What a ranking problem is: rows, scores, queries or pairs, and the files they live in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # isort: off
    from corank.data import (
        catalog as catalog,
        frames as frames,
        jester as jester,
        letor as letor,
        make as make,
        movielens as movielens,
        mq2008 as mq2008,
        reuters as reuters,
        scale as scale,
        split as split,
        store as store,
        trec as trec,
    )
    # isort: on
else:
    # files that `corank.data.<name>` imports when it is used
    _FILES = (
        "catalog", "frames", "jester", "letor", "make", "movielens", "mq2008", "reuters", "scale", "split", "store",
        "trec",
    )  # fmt: skip

    def __getattr__(name):
        if name in _FILES:
            return import_module(f"corank.data.{name}")
        raise AttributeError(f"module 'corank.data' has no attribute {name!r}")

    def __dir__():
        return sorted(_FILES)
