"""
Logs of clicks: tables with valid headers, and queries and events of User Behavior Insights (UBI).

Most tables keep their header and most of their rows, so that damaged cells reach the checks of lists, of positions and
of propensities behind the reader. What is accepted is compared with a slow reader, written and read again, and used:
judgements, position bias, pairs and estimates.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from corank.clicks import click_pairs, estimate_from_clicks, position_bias
from corank.data.io.clicks import COLUMNS, OPTIONAL, ClickLog, read_clicks, write_clicks
from corank.errors import InputError
from fuzz.format import Format, Wrong
from fuzz.mutations import HARD_NUMBERS, ODD_BYTES, mutate, mutate_json

TEXTS = ["tin", "tea", "two words", "Über", 'so "called"', "a,b", "=1+1", "\x1b[31m", "\u2028", "🦀", "x" * 99, "007"]
ODD_TEXTS = [*TEXTS, "", " ", "\0", "NA", "nan", "1", "-7", "a\nb", "0", "1.0", "true", "inf", *HARD_NUMBERS]
WORDS = [
    *ODD_BYTES, *(word.encode() for word in HARD_NUMBERS[:40]), b"[" * 60, b"[" * 100_000, b'"\\ud800"', b"null", b"{}",
    b"\n\n", b'"', b",", b"\t",
]  # fmt: skip
MAX_LIST = 8
ARRAYS = ("position", "clicked", "impression", "propensity", "log_propensity", "complete")


class ClickTable(Format):
    """
    Tables with one row per document shown.

    mark: separator of cells.
    """

    is_text = True
    ways, quick = 2, 1

    def __init__(self, name: str, suffix: str, mark: str) -> None:
        self.name, self.suffix, self._mark = name, suffix, mark
        self.sample = self._table(Random(0), 0.0)

    def generate(self, rng: Random) -> bytes:
        head, rest = self._table(rng, rng.choice((0.0, 0.0, 0.01, 0.05))).split(b"\n", 1)
        kind = rng.random()
        if kind < 0.2:
            rest = mutate(rest, rng, WORDS, lambda: self._table(rng, 0.0))
        elif kind < 0.25:
            return mutate(head + b"\n" + rest, rng, WORDS, lambda: self._table(rng, 0.0))
        return head + b"\n" + rest

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / f"in{self.suffix}"
        path.write_bytes(content)
        log = read_clicks(path)
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=self._mark))
        rows = [row for row in rows if any((cell or "").strip() for cell in row.values() if not isinstance(cell, list))]
        found = [(row["docid"].strip(), float(row["position"]), bool(float(row["clicked"]))) for row in rows]
        read = zip((one.strip() for one in log.docids), log.position, log.clicked, strict=True)
        if found != list(read):
            raise Wrong("rows of a click table", f"{log.docids} for {found}")
        write_again(path, log)
        if way:
            use_clicks(log)
        return True

    def _table(self, rng: Random, share: float) -> bytes:
        """Return a table whose cells are odd with probability `share`."""
        names = [*COLUMNS, *(name for name in OPTIONAL if rng.random() < 0.3), *rng.choice(((), (), ("note",)))]
        rng.shuffle(names)
        rows: list[dict[str, Any]] = []
        for number in range(rng.randrange(1, 9)):
            query, complete = rng.choice(TEXTS) if rng.random() < 0.2 else f"q{rng.randrange(3)}", rng.random() < 0.8
            places = range(1, rng.randrange(2, MAX_LIST))
            documents = rng.sample(range(MAX_LIST), len(places))
            for place, document in zip(places, documents, strict=True):
                rows.append(
                    {
                        "qid": query, "docid": f"d{document}", "position": place, "clicked": int(rng.random() < 0.3),
                        "impression": f"l{number}", "propensity": rng.choice((1, 0.5, 1 / place, 1e-9)),
                        "complete": int(complete), "log_propensity": rng.choice((0, -0.5, -30)), "note": "",
                    }
                )  # fmt: skip
        if rng.random() < 0.1:
            rng.shuffle(rows)
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self._mark, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            cells = [rng.choice(ODD_TEXTS) if rng.random() < share else row[name] for name in names]
            writer.writerow(cells if rng.random() >= share else rng.choice((cells[:-1], [*cells, ""], [])))
        return text.getvalue().encode("utf-8", "surrogatepass")


class Ubi(Format):
    """Events and queries of User Behavior Insights, as JSON lines or as saved answers of OpenSearch."""

    name = "clicks_ubi"
    suffix = ".jsonl"
    is_text = True
    ways, quick = 2, 1
    share = 0.7

    @property
    def sample(self) -> bytes:  # type: ignore[override]
        return self._text(Random(0), 0.0)

    def generate(self, rng: Random) -> bytes:
        text = self._text(rng, rng.choice((0.0, 0.0, 0.3)))
        return text if rng.random() < 0.7 else mutate(text, rng, WORDS, lambda: self._text(rng, 0.0))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "in.jsonl"
        path.write_bytes(content)
        log = read_clicks(path)
        write_again(path, log)
        if way:
            use_clicks(log)
        return True

    def _text(self, rng: Random, share: float) -> bytes:
        objects: list[Any] = []
        for search in range(rng.randrange(1, 4)):
            name, n = f"s{search}", rng.randrange(1, MAX_LIST)
            query: dict[str, Any] = {"query_id": name, "user_query": rng.choice(ODD_TEXTS)}
            if rng.random() < 0.7:
                query["query_response_hit_ids"] = [f"d{at}" for at in range(n)]
            objects.append(query)
            for _ in range(rng.randrange(3)):
                at = rng.randrange(n)
                objects.append(
                    {
                        "action_name": rng.choice(("click", "impression", "purchase", "other")), "query_id": name,
                        "event_attributes": {"object": {"object_id": f"d{at}"}, "position": {"ordinal": at + 1}},
                    }
                )  # fmt: skip
        objects = [mutate_json(one, rng) if rng.random() < share else one for one in objects]
        if rng.random() < 0.3:
            answer: Any = {"took": 1, "hits": {"total": 3, "hits": [{"_id": "1", "_source": one} for one in objects]}}
            objects = [mutate_json(answer, rng) if share else answer]
        return "\n".join(json.dumps(one) for one in objects).encode("utf-8", "surrogatepass")


def write_again(path: Path, log: ClickLog) -> None:
    """Write a log and read it again."""
    written = path.with_name("again.csv")
    write_clicks(written, log, overwrite=True)
    back = read_clicks(written)
    for name in ARRAYS:
        ours, theirs = getattr(log, name), getattr(back, name)
        if (ours is None) != (theirs is None) or (ours is not None and not np.array_equal(ours, theirs)):
            raise Wrong(f"{name} of clicks written", f"{theirs} for {ours}")
    if [one.strip() for one in back.docids] != [one.strip() for one in log.docids]:
        raise Wrong("documents of clicks written", f"{back.docids} for {log.docids}")


def use_clicks(log: ClickLog) -> None:
    """Use a log in every way that it allows."""
    pairs = list(dict.fromkeys(zip(log.qid.tolist(), log.docids.tolist(), strict=True)))
    qid, docids = (list(part) for part in zip(*pairs, strict=True))
    X = np.arange(2.0 * len(pairs)).reshape(-1, 2) % 5.0
    if (log.find(qid, docids) < 0).any():
        raise Wrong("rows of a log", "find misses rows of the log itself")
    judged = _or_none(log.expected_clicks)
    if judged is not None and not (np.isfinite(judged[2]).all() and (judged[2] >= 0).all()):
        raise Wrong("judgements of clicks", judged[2])
    bias = _or_none(lambda: position_bias(log))
    if bias is not None and not np.isfinite(bias.examined).all():
        raise Wrong("position bias", bias)
    _or_none(lambda: click_pairs(log, qid, docids, bias=bias))
    estimate = _or_none(lambda: estimate_from_clicks(log, X[:, 0], qid, docids, bias=bias))
    if estimate is not None and not np.isfinite(estimate.value):
        raise Wrong("estimate from clicks", estimate)


def _or_none(call: Callable[[], Any]) -> Any:
    """Return what a call returns; None if the log lacks what it needs."""
    try:
        return call()
    except InputError:
        return None


def formats() -> list[Format]:
    """Return the formats of clicks."""
    return [ClickTable("clicks_csv", ".csv", ","), ClickTable("clicks_tsv", ".tsv", "\t"), Ubi()]
