"""Make the initial state of a version: from a file, as a new online ranker, or as a test of two models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from corank import registry
from corank.clicks import OnlineRanker
from corank.data import read_regular, with_names
from corank.deploy import load, model_bytes
from corank.errors import InputError, suggest_names
from corank_lab.api.rankers import FixedModel, InterleavedModel, OnlineModel
from corank_lab.api.registry import Registry
from corank_lab.api.requests import MAX_FEATURES

ONLINE = ("PDGD", "PairwiseEpsilonGreedy")


def make_version(
    registry: Registry,
    path: Path | None,
    online: str | None,
    columns: str | None,
    interleave: str | None,
    *,
    has_prior: bool,
) -> tuple[str, bytes, dict[str, Any]]:
    """Return kind, state and recipe of a version."""
    if sum(one is not None for one in (path, online, interleave)) != 1:
        raise InputError("pass one of --model, --online and --interleave.")
    if path is not None:
        is_online = isinstance(load(path), OnlineRanker)
        return (OnlineModel if is_online else FixedModel).kind, read_regular(path), {"file": path.name}
    if online is not None:
        ranker = new_online(online, columns, has_prior=has_prior)
        return OnlineModel.kind, model_bytes(ranker), {"online": type(ranker).__name__}
    names = [name.strip() for name in (interleave or "").split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"--interleave is {interleave!r}; pass the names of two models, such as old,new.")
    first, second = (registry.serving(name)[:2] for name in names)
    return InterleavedModel.kind, InterleavedModel.start(first, second, registry.model), {"interleave": names}


def new_online(name: str, columns: str | None, *, has_prior: bool = False) -> Any:
    """Return an online ranker that has learnt nothing."""
    found = next((one for one in ONLINE if one.lower() == name.lower()), None)
    if found is None:
        raise InputError(f"there is no online ranker {name!r}; {suggest_names(name, ONLINE)}.")
    names = [one.strip() for one in (columns or "").split(",")]
    if len(names) == 1 and names[0].isdecimal():
        names, n = [], int(names[0])
    else:
        n = len(names)
    if not 1 <= n <= MAX_FEATURES or (names and (len(set(names)) < n or not all(names))):
        raise InputError(
            f"--columns is {columns!r}; pass the number of features, from 1 to {MAX_FEATURES}, or distinct names with "
            "commas."
        )
    ranker = registry.find(found)(random_state=0)
    ranker._begin(with_names(np.zeros((1, n)), names or None), [0.0] if has_prior else None)
    return ranker
