"""Files of JSON lines, valid or damaged: compared with a plain reader, imported into a database and exported."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from corank.data import Items, csv_text
from corank.errors import InputError
from corank.models.gp.process import Posterior
from corank_lab.database.backends import open_database
from corank_lab.database.journal import parse_lines
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry, PreferenceJournal
from corank_lab.preferences.model import ItemPosterior, Ranking, agreement
from corank_lab.preferences.session import PreferenceFit
from corank_lab.records.records import Records
from corank_lab.records.writer import write_records
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.team import ScreeningJournal
from fuzz.format import Format, Wrong
from fuzz.mutations import ODD_BYTES, ODD_VALUES, mutate, mutate_json

NAMES = ["W1", "W2", "Wü 3", "=1+1", "\x1b[31m", "-"]
WORDS = [
    *ODD_BYTES, b"[" * 50, b"[" * 100_000, b'{"a":' * 50_000, b'"\\ud800"', b'"\\ud83d\\ude00"', b"null", b"NaN",
    b"1e999", b"\n\n", b"{}\n", b'{"action": "not"}\n', b'"id": "W1", ', b"\r", b"\x00",
]  # fmt: skip
STAMP = ("time", "judge", "version", "records")
LISTS, NUMBERS = ("keys", "tags"), ("rank", "score")
KEYS = {
    "screen": ("action", "id", "by", "text", "title", "reason", "of", *LISTS, *NUMBERS, *STAMP),
    "ask": ("action", "left", "right", "by", *STAMP),
}
ACTIONS = {
    "screen": ("relevant", "not", "later", "duplicate", "distinct", "undo", "note", "topic"),
    "ask": ("left", "right", "equal", "skip", "undo"),
}
TEXTS = ("start", "model", "é\u2028", "=2+3", "🦀")
WAYS = ("read", "imported", "exported")


class JournalFile(Format):
    """The journal of one kind of session: "screen" or "ask"."""

    suffix = ".jsonl"
    ways = len(WAYS)
    is_text = True
    share = 0.7

    def __init__(self, kind: str) -> None:
        self.kind, self.name = kind, f"journal_{kind}"
        self.sample = b'{"action": "undo", "id": "W1"}\n' if kind == "screen" else b'{"action": "undo"}\n'

    def generate(self, rng: Random) -> bytes:
        text = self._text(rng)
        return text if rng.random() < 0.5 else mutate(text, rng, WORDS, lambda: self._text(rng))

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "me.jsonl"
        path.write_bytes(content)
        expected, fault = _plain(content, self.kind)
        screens = self.kind == "screen"
        try:
            entries: Any = parse_lines(ScreeningEntry if screens else PreferenceEntry, content, path)
            answers = ScreeningAnswers(RECORDS, entries) if screens else PreferenceAnswers(ITEMS, entries)
        except InputError as error:
            if fault is None:
                raise Wrong("refused", error) from error
            if f"me.jsonl, line {fault}: " not in str(error):
                raise Wrong("line", f"{error} for line {fault}") from error
            return False
        if fault is not None:
            raise Wrong("accepted", f"line {fault}")
        found = [_filled({key: getattr(entry, key) for key in KEYS[self.kind]}) for entry in entries]
        if found != expected:
            raise Wrong("entries", f"{found} for {expected}")
        if WAYS[way] == "imported":
            self._import(path, len(entries))
        if WAYS[way] == "exported":
            _export_records(answers, folder) if screens else _export_items(answers, folder)
        return True

    def _import(self, path: Path, n: int) -> None:
        for old in path.parent.glob("corank.db*"):
            old.unlink()
        with open_database(path.parent / "corank.db") as store:
            journal: Any
            if self.kind == "screen":
                journal = ScreeningJournal(store)
                journal.begin(UniqueRecords(RECORDS))
            else:
                journal = PreferenceJournal(store)
                journal.begin(ITEMS)
            found = [journal.import_files([path]) for _ in range(2)]
            if found != [n, 0] or len(journal.log) != n:
                raise Wrong("imported", f"{found} of {n}")

    def _text(self, rng: Random) -> bytes:
        lines = []
        for _ in range(rng.choice((0, 1, 2, 3, 6))):
            entry: Any = {"action": rng.choice(ACTIONS[self.kind])}
            for key in KEYS[self.kind][1:]:
                if key in ("id", "left", "right"):
                    entry[key] = rng.choice(NAMES)
                elif rng.random() < 0.3:
                    entry[key] = _value(key, rng)
            if rng.random() < 0.15:
                entry = mutate_json(entry, rng, [*ODD_VALUES, *NAMES])
            text = json.dumps(entry, ensure_ascii=rng.random() < 0.5)
            lines.append(text.encode("utf-8", "surrogatepass"))
        return b"\n".join(lines) + rng.choice((b"\n", b"\n", b"\n", b"", b"\r\n"))


RECORDS = Records(NAMES, ["t"] * len(NAMES), ["a"] * len(NAMES))
ITEMS = Items(NAMES, np.empty((0, 0)))


def formats() -> list[JournalFile]:
    """One of each kind."""
    return [JournalFile("screen"), JournalFile("ask")]


def _plain(content: bytes, kind: str) -> tuple[list[dict[str, Any]], int | None]:
    """Return the entries of a journal, and the number of the first bad line; an unfinished last line is ignored."""
    lines = content[: content.rfind(b"\n") + 1].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    entries = []
    for number, line in enumerate(lines, 1):
        entry = _entry(line, kind)
        if entry is None:
            return [], number
        entries.append(entry)
    for number, entry in enumerate(entries, 1):
        if not _is_known(entry, kind):
            return [], number
    return [_filled(entry) for entry in entries], None


def _filled(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are not empty, with lists as tuples."""
    plain = {key: tuple(value) if key in LISTS else value for key, value in entry.items()}
    return {key: value for key, value in plain.items() if value not in ("", (), None)}


def _value(key: str, rng: Random) -> Any:
    if key in NUMBERS:
        return rng.choice((0, 1, -3, 0.25, 1e30))
    if key in LISTS:
        return [rng.choice((*TEXTS, *(f"id:{name}" for name in NAMES))) for _ in range(rng.choice((0, 1, 3)))]
    return rng.choice(TEXTS)


def _entry(line: bytes, kind: str) -> dict[str, Any] | None:
    try:
        pairs = json.loads(line, object_pairs_hook=lambda found: ("object", found))
    except (ValueError, RecursionError):
        return None
    if not (isinstance(pairs, tuple) and pairs[0] == "object"):
        return None
    names = [key for key, _ in pairs[1]]
    if len(set(names)) < len(names) or not set(names) <= set(KEYS[kind]):
        return None
    entry = dict(pairs[1])
    texts = []
    for key, value in entry.items():
        if key in NUMBERS:
            if type(value) not in (int, float) or not abs(value) < 1e300:
                return None
        elif key in LISTS:
            if not isinstance(value, list):
                return None
            texts += value
        else:
            texts.append(value)
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        return None
    return entry if entry.get("action") in ACTIONS[kind] else None


def _is_known(entry: dict[str, Any], kind: str) -> bool:
    if kind == "screen":  # answers about other records are listed, not refused
        return True
    left, right = entry.get("left", ""), entry.get("right", "")
    return entry["action"] == "undo" or (left in NAMES and right in NAMES and left != right)


def _export_records(answers: ScreeningAnswers, folder: Path) -> None:
    labels = np.array([float(answers.relevant.get(number, np.nan)) for number in range(len(NAMES))])
    notes = [answers.notes.get(number, "") for number in range(len(NAMES))]
    for suffix in ("csv", "ris"):
        write_records(folder / f"out.{suffix}", RECORDS, labels, {"note": notes}, overwrite=True)
    answers.topic.encode()


def _export_items(answers: PreferenceAnswers, folder: Path) -> None:
    n = len(NAMES)
    mean = np.zeros(n)
    for one in answers.pairwise:
        mean[one.better] += 1.0
    posterior = Posterior(mean, np.eye(n))
    learnt = ItemPosterior(posterior, 1.0, np.empty((0, 2), dtype=np.int64))
    (folder / "out.csv").write_text(csv_text(PreferenceFit(1, learnt, Ranking.of(posterior), (), None).table(ITEMS)))
    agreement({"me": answers.pairwise, "you": answers.pairwise[:1]})
    answers.repeats, answers.repeatable, answers.asked, answers.last  # noqa: B018
