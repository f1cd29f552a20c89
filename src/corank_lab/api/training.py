"""
Train a new version of a model on the log: from judgements, or from clicks weighted by inverse propensity.

From judgements: the last grade of every query, item and judge counts; the grades of several judges are averaged. From
clicks: all lists of the log with features, and the clicks that rules did not exclude. Position bias is estimated from
items that were shown at several positions (`corank.clicks.position_bias`), and a clicked item is preferred to the
others of its list with weight 1 / propensity (`corank.clicks.click_pairs`). The recipe of a version names the last
event that was used, so the same log gives the same version again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank import registry
from corank.base import Ranker
from corank.clicks import click_pairs, position_bias
from corank.data import ClickLog, with_names
from corank.deploy import model_bytes
from corank.errors import InputError, suggest_names
from corank_lab.api.log import CLICK, EXCLUDED, EventLog
from corank_lab.api.rankers import FixedModel, OnlineModel, ServedModel
from corank_lab.api.registry import Registry

SOURCES = ("judgements", "clicks")
_BY_DEFAULT = "RankSVM"


def describe_training(
    registry: Registry, name: str, source: str, ranker: str, parameters: Mapping[str, Any]
) -> list[str]:
    """Check a training, and return the words of the command that runs it."""
    registry.serving(name)
    _build(ranker or _BY_DEFAULT, parameters)
    return [name, source, ranker or _BY_DEFAULT, json.dumps(dict(parameters))]


def train_version(log: EventLog, registry: Registry, name: str, recipe: Mapping[str, Any]) -> int:
    """Train a new version, add it and return its number; it is not activated."""
    full = {**recipe, "upto": recipe.get("upto", log.last_number())}
    kind, content = train_content(log, registry, name, full)
    return registry.add(name, kind, content, full)


def train_content(log: EventLog, registry: Registry, name: str, recipe: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return kind and state of the version that a recipe stands for."""
    like = registry.serving(name)[2]
    ranker = _build(recipe["ranker"], recipe["parameters"])
    learn = _fit_judgements if recipe["source"] == "judgements" else _fit_clicks
    learn(log, ranker, like, int(recipe["upto"]))
    return OnlineModel.kind if hasattr(ranker, "run_") else FixedModel.kind, model_bytes(ranker)


def _build(name: str, parameters: Mapping[str, Any]) -> Any:
    exported = {one.lower(): one for one in registry.names()}
    kind = registry.find(exported.get(name.lower(), ""))
    if not (isinstance(kind, type) and issubclass(kind, Ranker)):
        raise InputError(f"there is no ranker {name!r}; {suggest_names(name, ('RankSVM', 'RankRLS', 'SPD', 'PDGD'))}.")
    try:
        return kind(**{"random_state": 0, **parameters} if "random_state" in kind._get_param_names() else parameters)
    except TypeError:
        raise InputError(
            f"{kind.__name__} has no such parameters; its parameters are {kind._get_param_names()}."
        ) from None


def _fit_judgements(log: EventLog, ranker: Any, like: ServedModel, upto: int) -> None:
    grades: dict[tuple[str, str], dict[str, float]] = {}
    features: dict[tuple[str, str], Any] = {}
    for events in log.batches(0, upto):
        found = [event for event in events if event.kind == "judgement"]
        bodies = log.bodies([event.number for event in found])
        for event in found:
            for row in json.loads(bodies[event.number])["judgements"]:
                key = (event.subject, row["item"])
                grades.setdefault(key, {})[event.person] = float(row["grade"])
                if "features" in row:
                    features[key] = row["features"]
    missing = [item for query, item in grades if (query, item) not in features]
    stored = _stored(log, missing)
    rows, y, qid = [], [], []
    for key, by_judge in grades.items():
        given = features.get(key, stored.get(key[1]))
        row = _row(given, like)
        if row is not None:
            rows.append(row)
            y.append(float(np.mean([by_judge[judge] for judge in sorted(by_judge)])))
            qid.append(key[0])
    if len(set(y)) < 2:
        raise InputError(
            f"the log has {len(y)} judged items with {like.n_features} features and {len(set(y))} distinct grades; "
            "record more judgements first."
        )
    ranker.fit(_rows(np.array(rows), like), np.array(y), qid=np.array(qid, dtype=object))


def _fit_clicks(log: EventLog, ranker: Any, like: ServedModel, upto: int) -> None:
    clicked: dict[str, set[str]] = {}
    lists: dict[str, int] = {}
    for events in log.batches(0, upto):
        for event in events:
            if event.kind == "impression" and event.subject:
                lists[event.id] = event.number
            elif event.kind == "feedback" and event.flag & CLICK and not event.flag & EXCLUDED:
                clicked.setdefault(event.subject, set()).add(event.item)
    used = [(id, number) for id, number in lists.items() if id in clicked]
    rows: dict[tuple[str, str], NDArray[np.float64]] = {}
    shown: list[tuple[str, str, str, int, bool]] = []
    for first in range(0, len(used), 500):
        part = used[first : first + 500]
        numbers = [number for _, number in part]
        bodies, arrays = log.bodies(numbers), log.arrays(numbers)
        for id, number in part:
            body, found = json.loads(bodies[number]), arrays[number]
            if found["X"].shape[1] != like.n_features:
                continue
            for rank, row in enumerate(found["rows"]):
                item = body["items"][row]
                rows[body["query"], item] = found["X"][row]
                shown.append((id, body["query"], item, rank + 1, item in clicked[id]))
    if not shown:
        raise InputError(f"the log has no clicked list with {like.n_features} features; record feedback first.")
    ids, queries, items, positions, clicks = zip(*shown, strict=True)
    clicks_log = ClickLog.of(queries, items, positions, clicks, impression=ids)
    qid, docids = zip(*rows, strict=True)
    pairs = click_pairs(clicks_log, qid, docids, bias=position_bias(clicks_log))
    X = np.array([rows[key] for key in rows])
    ranker.fit(_rows(X, like), pairs=pairs.pairs, pair_weight=pairs.pair_weight)


def _rows(X: NDArray[np.float64], like: ServedModel) -> Any:
    return with_names(X, like.names)


def _row(given: Any, like: ServedModel) -> list[float] | None:
    """Return features in the order of the columns, None if they do not fit."""
    if isinstance(given, dict):
        if like.names is None or not set(like.names) <= given.keys():
            return None
        given = [given[name] for name in like.names]
    return given if isinstance(given, list) and len(given) == like.n_features else None


def _stored(log: EventLog, ids: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for first in range(0, len(ids), 500):
        part = ids[first : first + 500]
        rows = log.store.read(f"SELECT id, body FROM items WHERE id IN ({', '.join('?' * len(part))})", *part)
        found |= {id: json.loads(body)["features"] for id, body in rows}
    return found
