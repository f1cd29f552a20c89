"""Records as CSV, RIS and JSON lines, valid or damaged: compared with slow readers, written and read again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from corank.data.records.records import Records, read_records
from corank.data.records.writer import write_records
from fuzz.format import Format, Wrong
from fuzz.mutations import ODD_BYTES, ODD_VALUES, mutate, mutate_json
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

    def generate(self, rng: Random) -> bytes:
        text = self._text(rng)
        return text if rng.random() < 0.5 else mutate(text, rng, WORDS, lambda: self._text(rng))

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

    def _text(self, rng: Random) -> bytes:
        works = [_work(rng) for _ in range(rng.choice((0, 1, 2, 3, 5)))]
        return {"csv": _csv, "ris": _ris, "jsonl": _jsonl}[self.kind](works, rng).encode("utf-8", "surrogatepass")


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


def _work(rng: Random) -> dict[str, Any]:
    plain = rng.random() < 0.5
    few = TEXTS[:5] if plain else TEXTS
    cited = [rng.choice(IDS[:6] if plain else [*IDS, "x|y", ", ;"]) for _ in range(rng.choice((0, 0, 1, 3)))]
    return {
        "id": rng.choice(IDS) if rng.random() < 0.8 else str(rng.random()),
        "title": rng.choice(few),
        "abstract": rng.choice(few),
        "references": cited,
        "label": rng.choice(LABELS[:3] if plain else LABELS),
    }


def _names(rng: Random) -> dict[str, str]:
    """Return names of columns in upper or lower case; some are left out."""
    names = {ours: rng.choice(spellings) for ours, spellings in NAMES.items() if rng.random() < 0.85}
    return {
        ours: rng.choice((str, str.upper, str.title, lambda name: f" {name} "))(name) for ours, name in names.items()
    }


def _csv(works: list[dict[str, Any]], rng: Random) -> str:
    mark, end, names = rng.choice(",,;\t"), rng.choice(("\n", "\n", "\r\n", "\r")), _names(rng)
    others = rng.sample(["year", "", "Title", "note"], rng.choice((0, 0, 1, 2)))
    lines = [mark.join([*names.values(), *others])]
    for work in works:
        cells = [
            rng.choice((" ", "|", "; ")).join(work[ours]) if ours == "references" else work[ours] for ours in names
        ]
        quoted = [_quoted(cell, mark, rng) for cell in [*cells, *(rng.choice(TEXTS) for _ in others)]]
        lines.append(mark.join(quoted))
    return end.join(lines) + rng.choice((end, "", end * 2))


def _quoted(cell: str, mark: str, rng: Random) -> str:
    must = any(letter in cell for letter in f'"\r\n{mark}')
    return '"' + cell.replace('"', '""') + '"' if rng.random() < (0.95 if must else 0.2) else cell


def _jsonl(works: list[dict[str, Any]], rng: Random) -> str:
    lines = []
    names = _names(rng)
    for work in works:
        row: Any = {name: work[ours] for ours, name in names.items() if rng.random() < 0.95}
        if rng.random() < 0.3:
            row = mutate_json(row, rng, [*ODD_VALUES, True, False, [], {}, [["a"]]])
        lines.append(json.dumps(row, ensure_ascii=rng.random() < 0.5))
    return "\n".join(lines) + rng.choice(("\n", "", "\r\n", "\n \n"))


def _ris(works: list[dict[str, Any]], rng: Random) -> str:
    end, lines = rng.choice(("\n", "\n", "\r\n", "\r")), []
    for work in works:
        lines += [f"TY  - {rng.choice(('JOUR', '', 'GEN'))}"] if rng.random() < 0.9 else []
        lines += [f"{rng.choice(('ID', 'AN'))}  - {work['id']}"] if rng.random() < 0.8 else []
        lines += [f"{rng.choice(('TI', 'T1', 'TI'))}  - {work['title']}"]
        lines += [f"{rng.choice(('AB', 'N2'))}  - {work['abstract']}" for _ in range(rng.choice((0, 1, 1, 2)))]
        lines += [f"CR  - {cited}" for cited in work["references"]]
        marks = ("ASReview_relevant", "ASReview_irrelevant", "asreview_NOT_relevant", "ASReview_not_seen", "a note", "")
        lines += [f"N1  - {rng.choice(marks)}" for _ in range(rng.choice((0, 1, 1, 2)))]
        lines += [rng.choice(("  going on", "KW  -x", "KW - y", "A1  - Z", ""))] if rng.random() < 0.2 else []
        lines += [rng.choice(("ER  - ", "ER  -", "ER  - "))] if rng.random() < 0.98 else []
        lines += [""] * rng.choice((0, 1))
    return end.join(lines) + rng.choice((end, ""))
