"""Records as CSV, RIS and JSON lines: whole or damaged, read against slow readers, written and read again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from corank.data.records.records import Records, read_records
from corank.data.records.writer import write_records
from fuzz.dice import ODD_BYTES, ODD_VALUES, mutate, mutate_json
from fuzz.format import Format, Wrong
from fuzz.reference_records import NAMES, Work, read_works

TEXTS = [
    "Tin", "", " ", "two words", "Über 3 µm", "a, b; c", 'so "called"', "line\nbreak", "a\rb", "tab\there", "x" * 300,
    "\u2028", "\x85", "\x0b", "\x0c\x1c", "TI  - no", "ER  - ", "ASReview_relevant", "\0", "\ufeff", "NA", "0", "|",
    "🦀",
]  # fmt: skip
LABELS = ["1", "0", "", "yes", "No", "1.0", "-1", "nan", "2", "maybe", " 1 "]
IDS = ["W1", "W2", "W3", "7", "1", "2", "", " W1 ", "a b"]
WORDS = [*ODD_BYTES, b'"', b'""', b'","', b"\r", b"\n\n", b"ER  - \n", b"TI  - ", b"title", b"\\ud800", b"[" * 50]
WAYS = ("plain", "packed", "written as CSV", "written as RIS")


class RecordsFile(Format):
    """Records of one kind of file."""

    ways = len(WAYS)
    is_text = True

    def __init__(self, kind: str, sample: bytes) -> None:
        self.kind, self.name, self.suffix, self.sample = kind, f"records_{kind}", f".{kind}", sample

    def generate(self, dice: Random) -> bytes:
        text = self._text(dice)
        return text if dice.random() < 0.5 else mutate(text, dice, WORDS, lambda: self._text(dice))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        packed = WAYS[way] == "packed"
        path = folder / f"in.{self.kind}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content, 1, mtime=0) if packed else content)
        expected = read_works(content, self.kind)
        if expected is None:
            read_records(path)
            raise Wrong("accepted", content[:200])
        found = read_records(path)
        if _keys(found) != [work.key() for work in expected]:
            raise Wrong("works", f"{_keys(found)} for {[work.key() for work in expected]}")
        if way >= 2:
            self._write(found, folder / f"out.{('csv', 'ris')[way - 2]}")
        return True

    def _write(self, found: Records, path: Path) -> None:
        write_records(path, found, found.labels, {"note": [""] * len(found)}, overwrite=True)
        names = [_flat(one) for one in found.ids]
        if len(set(names)) < len(names) or any(name != one for name, one in zip(names, found.ids, strict=True)):
            return  # ids with line breaks; what comes back has other ones
        again = read_records(path)
        if (again.ids, _flat_all(again.titles)) != (found.ids, _flat_all(found.titles)):
            raise Wrong("written", f"{again.ids} {again.titles} for {found.ids} {found.titles}")
        if not np.array_equal(again.labels, found.labels, equal_nan=True):
            raise Wrong("labels written", f"{again.labels} for {found.labels}")

    def _text(self, dice: Random) -> bytes:
        works = [_work(dice) for _ in range(dice.choice((0, 1, 2, 3, 5)))]
        return {"csv": _csv, "ris": _ris, "jsonl": _jsonl}[self.kind](works, dice).encode("utf-8", "surrogatepass")


def formats() -> list[RecordsFile]:
    """One of each kind."""
    return [
        RecordsFile("csv", b"title,included\nTin,1\n"),
        RecordsFile("ris", b"TY  - JOUR\nTI  - Tin\nER  - \n"),
        RecordsFile("jsonl", b'{"title": "Tin"}\n'),
    ]


def _keys(records: Records) -> list[tuple[Any, ...]]:
    columns = (records.ids, records.titles, records.abstracts, records.references, records.labels.tolist())
    return [
        Work(one, title, abstract, list(cited), label).key()
        for one, title, abstract, cited, label in zip(*columns, strict=True)
    ]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _flat_all(texts: Any) -> list[str]:
    return [_flat(text) for text in texts]


def _work(dice: Random) -> dict[str, Any]:
    plain = dice.random() < 0.5
    few = TEXTS[:5] if plain else TEXTS
    cited = [dice.choice(IDS[:6] if plain else [*IDS, "x|y", ", ;"]) for _ in range(dice.choice((0, 0, 1, 3)))]
    return {
        "id": dice.choice(IDS) if dice.random() < 0.8 else str(dice.random()),
        "title": dice.choice(few),
        "abstract": dice.choice(few),
        "references": cited,
        "label": dice.choice(LABELS[:3] if plain else LABELS),
    }


def _names(dice: Random) -> dict[str, str]:
    """What the columns are called, in any case; some are left out."""
    names = {ours: dice.choice(spellings) for ours, spellings in NAMES.items() if dice.random() < 0.85}
    return {
        ours: dice.choice((str, str.upper, str.title, lambda name: f" {name} "))(name) for ours, name in names.items()
    }


def _csv(works: list[dict[str, Any]], dice: Random) -> str:
    mark, end, names = dice.choice(",,;\t"), dice.choice(("\n", "\n", "\r\n", "\r")), _names(dice)
    others = dice.sample(["year", "", "Title", "note"], dice.choice((0, 0, 1, 2)))
    lines = [mark.join([*names.values(), *others])]
    for work in works:
        cells = [
            dice.choice((" ", "|", "; ")).join(work[ours]) if ours == "references" else work[ours] for ours in names
        ]
        quoted = [_quoted(cell, mark, dice) for cell in [*cells, *(dice.choice(TEXTS) for _ in others)]]
        lines.append(mark.join(quoted))
    return end.join(lines) + dice.choice((end, "", end * 2))


def _quoted(cell: str, mark: str, dice: Random) -> str:
    must = any(letter in cell for letter in f'"\r\n{mark}')
    return '"' + cell.replace('"', '""') + '"' if dice.random() < (0.95 if must else 0.2) else cell


def _jsonl(works: list[dict[str, Any]], dice: Random) -> str:
    lines = []
    names = _names(dice)
    for work in works:
        row: Any = {name: work[ours] for ours, name in names.items() if dice.random() < 0.95}
        if dice.random() < 0.3:
            row = mutate_json(row, dice, [*ODD_VALUES, True, False, [], {}, [["a"]]])
        lines.append(json.dumps(row, ensure_ascii=dice.random() < 0.5))
    return "\n".join(lines) + dice.choice(("\n", "", "\r\n", "\n \n"))


def _ris(works: list[dict[str, Any]], dice: Random) -> str:
    end, lines = dice.choice(("\n", "\n", "\r\n", "\r")), []
    for work in works:
        lines += [f"TY  - {dice.choice(('JOUR', '', 'GEN'))}"] if dice.random() < 0.9 else []
        lines += [f"{dice.choice(('ID', 'AN'))}  - {work['id']}"] if dice.random() < 0.8 else []
        lines += [f"{dice.choice(('TI', 'T1', 'TI'))}  - {work['title']}"]
        lines += [f"{dice.choice(('AB', 'N2'))}  - {work['abstract']}" for _ in range(dice.choice((0, 1, 1, 2)))]
        lines += [f"CR  - {cited}" for cited in work["references"]]
        marks = ("ASReview_relevant", "ASReview_irrelevant", "asreview_NOT_relevant", "ASReview_not_seen", "a note", "")
        lines += [f"N1  - {dice.choice(marks)}" for _ in range(dice.choice((0, 1, 1, 2)))]
        lines += [dice.choice(("  going on", "KW  -x", "KW - y", "A1  - Z", ""))] if dice.random() < 0.2 else []
        lines += [dice.choice(("ER  - ", "ER  -", "ER  - "))] if dice.random() < 0.98 else []
        lines += [""] * dice.choice((0, 1))
    return end.join(lines) + dice.choice((end, ""))
