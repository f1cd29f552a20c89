"""
Smaller text formats, valid or damaged: items, documents, links, scores, preferences, ratings and label tables.

There is no second reader; what is read is used, and written and read again where there is a writer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import corank
from corank.cli.rows import read_preferences
from corank.data.io.items import read_items
from corank.data.io.trec import read_scores
from corank.errors import InputError
from corank.models.labels import LabelPreferences
from corank.text.files import open_corpus, read_corpus, read_pairs, read_texts, save_corpus
from fuzz.format import Format, Wrong
from fuzz.mutations import HARD_NUMBERS, ODD_BYTES, ODD_VALUES, mutate, mutate_json, number

TEXTS = [
    "tin", "tea", "", " ", "two words", "Über", 'so "called"', "a,b", "=1+1", "\x1b[31m", "\u2028", "\0", "🦀",
    "x" * 99, "NA", "nan", "1", "-7", "007",
]  # fmt: skip
WORDS = [
    *ODD_BYTES,
    *(word.encode() for word in HARD_NUMBERS[:40]),
    b"[" * 60,
    b"[" * 100_000,
    b'"\\ud800"',
    b"null",
    b"{}",
    b"\n\n",
]


@dataclass
class Recipe:
    """
    One format.

    columns: names of the columns, each with a kind of cell: "name", "text", "number", "flag" or "place".
    use: reads a file and uses it.
    is_json: JSON lines instead of a table.
    has_header: whether a table begins with the names of its columns.
    mark: separator of a table.
    """

    name: str
    suffix: str
    columns: dict[str, str]
    use: Callable[[Path], Any]
    is_json: bool = False
    has_header: bool = True
    mark: str = ","


class TextTable(Format):
    """Files of one recipe."""

    is_text = True
    share = 0.5

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.name, self.suffix = recipe, recipe.name, recipe.suffix
        self.sample = self._text(Random(0), fine=True)

    def generate(self, rng: Random) -> bytes:
        text = self._text(rng, fine=rng.random() < 0.6)
        return text if rng.random() < 0.5 else mutate(text, rng, WORDS, lambda: self._text(rng, fine=True))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / f"in{self.recipe.suffix}"
        path.write_bytes(content)
        self.recipe.use(path)
        return True

    def _text(self, rng: Random, *, fine: bool) -> bytes:
        columns = self.recipe.columns
        rows = [
            {name: _cell(kind, at, rng, fine) for name, kind in columns.items()} for at in range(rng.randrange(1, 7))
        ]
        if self.recipe.is_json:
            lines = [json.dumps(row if fine else mutate_json(row, rng, ODD_VALUES)) for row in rows]
        else:
            heads = [list(columns)] if self.recipe.has_header else []
            lines = [self.recipe.mark.join(_quoted(str(cell), self.recipe.mark) for cell in row) for row in heads]
            lines += [
                self.recipe.mark.join(_quoted(str(cell), self.recipe.mark) for cell in row.values()) for row in rows
            ]
        end = rng.choice(("\n", "\n", "\r\n"))
        return (end.join(lines) + rng.choice((end, ""))).encode("utf-8", "surrogatepass")


def _cell(kind: str, at: int, rng: Random, fine: bool) -> Any:
    if not fine and rng.random() < 0.15:
        return rng.choice([*TEXTS, *HARD_NUMBERS])
    match kind:
        case "name":
            return f"d{at}"
        case "some name":
            return f"d{rng.randrange(3)}"
        case "number":
            return rng.choice((0, 1, 2.5, -3, at)) if fine else number(rng)
        case "flag":
            return rng.randrange(2)
        case "place":
            return at + 1
    return rng.choice(TEXTS[:5])


def _quoted(cell: str, mark: str) -> str:
    needs = mark == "," and any(one in cell for one in ',"\n\r')
    return '"' + cell.replace('"', '""') + '"' if needs else cell.replace("\t", " ")


def _use_items(path: Path) -> None:
    items, _ = read_items(path)
    if len(set(items.names)) < len(items) or not np.isfinite(items.X).all():
        raise Wrong("items", items.names)
    "".join([*items.names, *(text for row in items.fields for text in row.values())]).encode()


def _use_documents(path: Path) -> None:
    read_texts(path)
    corpus = read_corpus(path, language=None)
    again = path.with_name("again.index")
    save_corpus(corpus, again, overwrite=True)
    opened = open_corpus(again)
    if opened.ids.tolist() != corpus.ids.tolist() or (opened.counts != corpus.counts).nnz:
        raise Wrong("index", corpus)
    corank.BM25().to_index(opened).search("tin tea", 3, n_jobs=None)


def _cells(path: Path) -> list[dict[str, Any]]:
    """Return the rows of JSON lines; raise `InputError` for others, which this package does not read."""
    try:
        rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
    except (ValueError, RecursionError):
        raise InputError("not JSON") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError("not objects")
    return rows


def _use_ratings(path: Path) -> None:
    rows = _cells(path)
    items, users, ratings = ([row.get(key) for row in rows] for key in ("item", "user", "rating"))
    for make in (corank.models.ItemMean, lambda: corank.Collaborative(alpha=1.0, power=0.5)):
        model = make().fit(items, ratings, qid=users)
        model.predict(items, users)
        model.recommend(users[0], 2)


def _use_labels(path: Path) -> None:
    rows = _cells(path)
    table = [[row.get(key) for key in ("a", "b", "c")] for row in rows]
    made = [
        _or_none(kind, table)
        for kind in (LabelPreferences.from_ranks, LabelPreferences.from_top, LabelPreferences.from_indicator)
    ]
    lists = _or_none(lambda given: LabelPreferences.from_lists(given, 3), [row.get("list") for row in rows])
    known = [one for one in (*made, lists) if one is not None]
    if not known:
        raise InputError("none of the forms")
    X = np.arange(2.0 * len(rows)).reshape(-1, 2) % 5.0
    for preferences in known:
        corank.OnlineLabelRanker(random_state=0).fit(X, preferences).predict_ranking(X)


def _or_none(make: Callable[[Any], Any], given: Any) -> Any:
    try:
        return make(given)
    except InputError:
        return None


def formats() -> list[TextTable]:
    """One of each recipe."""
    items = {"name": "name", "price": "number", "about": "text"}
    rating = {"item": "name", "user": "some name", "rating": "number"}
    label = {"a": "place", "b": "flag", "c": "place", "list": "text"}
    recipes = [
        Recipe("items_csv", ".csv", items, _use_items),
        Recipe("items_jsonl", ".jsonl", items, _use_items, is_json=True),
        Recipe("documents_jsonl", ".jsonl", {"id": "name", "text": "text"}, _use_documents, is_json=True),
        Recipe("documents_tsv", ".tsv", {"id": "name", "text": "text"}, _use_documents, has_header=False, mark="\t"),
        Recipe("links_tsv", ".tsv", {"a": "name", "b": "name"}, read_pairs, has_header=False, mark="\t"),
        Recipe("scores", ".txt", {"score": "number"}, read_scores, has_header=False),
        Recipe(
            "preferences_csv", ".csv", {"winner": "some name", "loser": "name", "weight": "number"},
            lambda path: read_preferences(path, ["d0", "d1", "d2", "d3", "d4", "d5"]),
        ),
        Recipe("ratings", ".jsonl", rating, _use_ratings, is_json=True),
        Recipe("labels", ".jsonl", label, _use_labels, is_json=True),
    ]  # fmt: skip
    return [TextTable(recipe) for recipe in recipes]
