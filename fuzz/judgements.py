"""
Judgement lists: tables, books of Quepid, lists of OpenSearch, `_rank_eval` requests, qrels and LETOR text, damaged.

The first line of an input is the suffix of the file. What is read is written as a table and as a book, which must give
the same grades, and is also read as a file to grade.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from corank.data.io.judgements import read_judgements, write_judgements
from corank.errors import InputError
from corank_lab.grading.task import read_grading_task
from fuzz.format import Format, Wrong
from fuzz.mutations import mutate, mutate_json, number
from fuzz.tables import TEXTS, WORDS

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt")
GRADES = [0, 1, 2, 3, "1", 2.0, None, ""]


class Judgements(Format):
    """Judgements in all formats."""

    name, suffix, is_text = "judgements", ".judgements", True
    sample = b".csv\nquery,docid,rating\ntea,d1,3\n"

    def generate(self, rng: Random) -> bytes:
        suffix = rng.choice(SUFFIXES)
        fine = rng.random() < 0.5
        body = _body(suffix, rng, fine)
        if not fine and rng.random() < 0.5:
            body = mutate(body, rng, WORDS, lambda: _body(suffix, rng, fine=True))
        return suffix.encode() + b"\n" + body

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        suffix, _, body = content.partition(b"\n")
        path = folder / f"in{suffix.decode('latin-1') if suffix.decode('latin-1') in SUFFIXES else '.json'}"
        path.write_bytes(body)
        with suppress(InputError):
            json.dumps(read_grading_task(path).task.to_json()).encode()
        found = read_judgements(path)
        with suppress(InputError):
            found.final("median")
        for form, again in (("table", folder / "again.csv"), ("quepid-book", folder / "again.json")):
            try:
                lost = write_judgements(again, found, form, overwrite=True)
            except InputError:
                continue  # a format that cannot hold these judgements
            back = read_judgements(again)
            if not lost and sorted(back.y[back.y == back.y]) != sorted(found.y[found.y == found.y]):
                raise Wrong(f"grades in a {form}", f"{back.y} for {found.y}")
        return True


def _body(suffix: str, rng: Random, fine: bool) -> bytes:
    """Return the content of a file of some judgements."""
    rows = [_row(rng, fine) for _ in range(rng.randrange(1, 7))]
    if suffix == ".txt":
        qrels = rng.random() < 0.5
        line = "{query} 0 {docid} {rating}" if qrels else "{rating} qid:{query} 1:{place} # {docid}"
        return "\n".join(line.format(**row) for row in rows).encode("utf-8", "surrogatepass")
    if suffix in (".csv", ".tsv"):
        mark = rng.choice(",;") if suffix == ".csv" else "\t"
        names = list(rows[0]) if rng.random() < 0.8 else ["query", "docid", "ann", "bob"]
        cells = [names, *([row.get(name, rng.choice(GRADES)) for name in names] for row in rows)]
        quoted = (mark.join('"{}"'.format(str(cell).replace('"', '""')) for cell in line) for line in cells)
        return "\n".join(quoted).encode("utf-8", "surrogatepass")
    if suffix == ".jsonl":
        values: list[Any] = rows
    else:
        values = [rng.choice((_book, _workbench, _rank_eval))(rows)]
        if rng.random() < 0.2:
            values = [{"hits": {"hits": [{"_source": value} for value in values]}}]
    if not fine:
        values = [mutate_json(value, rng) for value in values]
    return "\n".join(json.dumps(value) for value in values).encode("utf-8", "surrogatepass")


def _row(rng: Random, fine: bool) -> dict[str, Any]:
    odd = not fine and rng.random() < 0.3
    return {
        "query": rng.choice(TEXTS) if odd else f"q{rng.randrange(3)}",
        "docid": rng.choice(TEXTS) if odd else f"d{rng.randrange(9)}",
        "rating": number(rng) if odd else rng.randrange(4),
        "judge": rng.choice(("ann", "bob")),
        "place": rng.randrange(9),
        "note": rng.choice(TEXTS) if odd else "",
    }  # fmt: skip


def _book(rows: list[dict[str, Any]]) -> dict[str, Any]:
    pairs = [
        {
            "query_text": row["query"], "doc_id": row["docid"], "position": row["place"],
            "document_fields": {"title": "x"},
            "judgements": [{"rating": row["rating"], "user_email": row["judge"], "explanation": row["note"]}],
        }
        for row in rows
    ]  # fmt: skip
    return {"name": "tea", "scale": [0, 1, 2, 3], "scale_with_labels": {"0": "bad"}, "query_doc_pairs": pairs}


def _workbench(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ratings = [{"query": row["query"], "ratings": [{"docId": row["docid"], "rating": row["rating"]}]} for row in rows]
    return {"name": "tea", "judgmentRatings": ratings}


def _rank_eval(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "requests": [
            {
                "id": row["query"], "request": {"query": {"query_string": {"query": "tea"}}},
                "ratings": [{"_index": "a", "_id": row["docid"], "rating": row["rating"]}],
            }
            for row in rows
        ]
    }  # fmt: skip
