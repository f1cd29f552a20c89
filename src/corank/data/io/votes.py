"""
Read votes on pairs of items: who won, as a side, a name, a tie or "both bad", by whom and about what.

Tables (CSV, JSON, JSON lines, Parquet, DataFrames) have two columns of items and one of winners, such as
``model_a,model_b,winner`` or ``left,right,label``, or the columns ``winner,loser``; one row per vote, or with a column
of counts, or counts of both sides and ties. JSON objects may hold ``scores`` of two or more items instead, as
comparative evaluations of LangSmith do. Journals of `corank prefer` have actions; "undo" and "change" correct earlier
lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.column_roles import list_names
from corank.data.io.tables import (
    JSON,
    Table,
    at_path,
    columns_of_rows,
    csv_table,
    json_values,
    plain_text,
    read_table,
    read_utf8,
    shortened,
    suffix_of,
)
from corank.errors import InputError

Integers = NDArray[np.int64]

MAX_COUNT = 10**12
"""Largest number of equal votes in a row."""
MAX_SCORED = 200
"""Largest number of items in the scores of a JSON object, whose pairs become votes."""
FIRST, TIE, SECOND = 0, 1, 2
"""Outcomes of a vote: the first item wins, neither, the second."""
_STEMS = ("model", "", "item", "system", "option", "candidate", "player", "variant", "experiment", "run", "design",
          "generator", "name")  # fmt: skip
_SIDES = (("a", "b"), ("left", "right"), ("1", "2"), ("first", "second"), ("x", "y"))
_WINNERS = ("winner", "label", "vote", "outcome", "preference", "result", "choice", "verdict", "preferred", "action",
            "judgement", "judgment", "answer", "better", "winnermodel")  # fmt: skip
_LOSERS = (("winner", "loser"), ("chosen", "rejected"), ("preferred", "rejected"), ("better", "worse"))
_COUNTS = ("count", "counts", "n", "votes", "nvotes", "times", "frequency", "weight")
_JUDGES = ("judge", "worker", "annotator", "rater", "reviewer", "assessor", "evaluator", "voter", "user")
_GROUPS = ("prompt", "question", "instruction", "example", "task", "query", "topic", "group", "language", "category")
_TIES = ("tie", "tied", "ties", "draw", "equal", "same", "even", "bothgood", "both")
_BAD = ("bothbad", "tiebothbad", "bad", "neither")
_NONE = ("", "skip", "none", "null", "nan", "na")
_NAME_LISTS = ("models", "items", "experiments", "runs", "options", "candidates", "systems")
_PUNCTUATION = re.compile(r"[\W_]+")
_VERDICT = re.compile(r"\b([ab])\s*(>+|<+|=+)\s*([ab])\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """
    Votes on pairs of items.

    items: names; numbers in `first` and `second` are positions in this list.
    first, second (n,): the items in the order in which they were shown.
    outcome (n,): 0 if the first item won, 1 for a tie, 2 if the second won.
    count (n,): number of equal votes.
    judge, group (n,): positions in `judges` and `groups`; None if unknown.
    has_sides: whether the order of the items is that on the screen; not so for winners and losers.
    both_bad (n,): whether a tie was a vote for "both bad"; None if none was.
    notes: how the file was read, one sentence each.
    """

    items: tuple[str, ...]
    first: Integers
    second: Integers
    outcome: Integers
    count: Integers
    judge: Integers | None = None
    judges: tuple[str, ...] = ()
    group: Integers | None = None
    groups: tuple[str, ...] = ()
    has_sides: bool = True
    both_bad: NDArray[np.bool_] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.count.sum())

    def __repr__(self) -> str:
        return f"<Votes: {len(self):,} votes on {len(self.items)} items>"

    @property
    def n_ties(self) -> int:
        """Number of ties, "both bad" included."""
        return int(self.count[self.outcome == TIE].sum())

    @property
    def n_both_bad(self) -> int:
        """Number of votes for "both bad"."""
        return 0 if self.both_bad is None else int(self.count[self.both_bad].sum())

    def on(self, items: Sequence[str]) -> Votes:
        """Return the same votes with item numbers of another list of names, which contains all items."""
        number = {name: index for index, name in enumerate(items)}
        i = np.array([number[name] for name in self.items], dtype=np.int64)
        return replace(self, items=tuple(items), first=i[self.first], second=i[self.second])

    def components(self) -> list[list[str]]:
        """Return groups of items that chains of votes connect, the largest first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n, voted = len(self.items), self.count > 0
        edges = coo_array((np.ones(int(voted.sum())), (self.first[voted], self.second[voted])), shape=(n, n))
        n_parts, part = connected_components(edges, directed=False)
        parts = [[self.items[i] for i in np.flatnonzero(part == number)] for number in range(n_parts)]
        return sorted(parts, key=len, reverse=True)


def read_votes(
    path: str | os.PathLike[str], *, items: tuple[str, str] | None = None, winner: str | None = None,
    judge: str | None = None, group: str | None = None, count: str | None = None,
) -> Votes:  # fmt: skip
    """Read votes from a file; parameters name columns that have unusual names."""
    return _VoteTable(_read(path), items, winner, judge, group, count).votes()


def as_votes(votes: Any, **columns: Any) -> Votes:
    """Return votes of a file, a DataFrame, a list of dictionaries or a dictionary of columns; see `read_votes`."""
    if isinstance(votes, Votes):
        return votes
    if isinstance(votes, str | os.PathLike):
        return read_votes(votes, **columns)
    if isinstance(votes, Sequence) and votes and all(isinstance(row, Mapping) for row in votes):
        votes = [row for i, value in enumerate(votes) for row in _json_rows(dict(value), f"votes, row {i}")]
    return _VoteTable(read_table(votes, "votes"), **columns).votes()


def _read(path: str | os.PathLike[str]) -> Table:
    """Read a table; JSON may be objects of any form, with a vote or several."""
    if suffix_of(path) not in JSON:
        return read_table(path)
    rows, lines = _json_votes(read_utf8(path), str(path))
    return Table(str(path), columns_of_rows(rows), lambda row: lines[row])


def pair_votes(winners: Any, losers: Any, *, judge: Any = None, group: Any = None, ties: Any = None) -> Votes:
    """Return votes of arrays of winners and losers; `ties` marks votes without a winner."""
    given = {"winner": winners, "loser": losers, "judge": judge, "group": group, "ties": ties}
    table = {name: list(values) for name, values in given.items() if values is not None}
    for name, values in table.items():
        if len(values) != len(table["winner"]):
            raise InputError(f"{name} has {len(values)} values for {len(table['winner'])} winners; pass one per vote.")
    is_tie = np.asarray(table.pop("ties", []), dtype=bool)
    votes = as_votes(table)
    return replace(votes, outcome=np.where(is_tie, TIE, votes.outcome)) if len(is_tie) else votes


def looks_like_votes(columns: Iterable[str]) -> bool:
    """Return whether the columns of a table are those of votes."""
    table = _VoteTable(Table("", {str(column): [] for column in columns}, str))
    return table.losers() is not None or (table.pair() is not None and bool(table.winner_column() or table.wide()))


def has_votes(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds votes; only the header of CSV is read, and nothing of other kinds of text."""
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        return looks_like_votes(csv_table(read_utf8(path).split("\n", 1)[0], str(path)).names)
    return suffix in (*JSON, ".parquet") and looks_like_votes(_read(path).names)


@dataclass
class _VoteTable:
    """A table of votes: its columns by role."""

    source: Table
    items: tuple[str, str] | None = None
    winner: str | None = None
    judge: str | None = None
    group: str | None = None
    count: str | None = None

    def __post_init__(self) -> None:
        self.table, self.name, self.place = self.source.columns, self.source.name, self.source.place
        self.folded = {_fold(column): column for column in reversed(self.table)}
        self.source.require(*(self.items or ()), self.winner, self.judge, self.group, self.count)

    def losers(self) -> tuple[str, str] | None:
        """Columns of winners and losers."""
        if self.items or self.winner:
            return None
        return self._both(_LOSERS)

    def pair(self) -> tuple[str, str] | None:
        """Columns of the two items."""
        if self.items:
            return self.items
        sides = ((a, b, stem) for a, b in _SIDES for stem in _STEMS)
        return self._both(names for a, b, stem in sides for names in ((stem + a, stem + b), (a + stem, b + stem)))

    def winner_column(self) -> str | None:
        """Column of the winners."""
        return self.winner or self._usual(_WINNERS)

    def wide(self) -> tuple[str, ...]:
        """Columns of the numbers of votes for the first item, the second and neither, if there are any."""
        forms = ("wins{}", "{}wins", "win{}", "winner{}", *(f"winner{stem}{{}}" for stem in _STEMS))
        pair = self._both((form.format(a), form.format(b)) for a, b in _SIDES for form in forms)
        tie = pair and self._usual(("ties", "tie", "draws", "winnertie"))
        return (*pair, tie) if pair and tie else pair or ()

    def _both(self, names: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
        """The first pair of names that are both columns."""
        both = (pair for pair in names if pair[0] in self.folded and pair[1] in self.folded)
        return next(((self.folded[a], self.folded[b]) for a, b in both), None)

    def _usual(self, names: Iterable[str]) -> str | None:
        return next((self.folded[name] for name in names if name in self.folded), None)

    def votes(self) -> Votes:
        """Read all rows."""
        notes: list[str] = []
        losers, pair, wide, column = self.losers(), self.pair(), self.wide(), self.winner_column()
        if not self.table:
            raise InputError(f"{self.name} has no votes; write one row per vote, such as model_a,model_b,winner.")
        if losers is None and (pair is None or not (wide or column)):
            raise InputError(
                f"{self.name} has the columns {list_names(self.table)}, but no votes; expected two columns of items "
                "and one of winners, such as model_a,model_b,winner, or the columns winner,loser."
            )
        wide = () if losers or self.winner else wide
        column = None if losers or wide else column
        used = list(losers or pair or ())
        texts = [[_text(cell) for cell in self.table[name]] for name in used]
        n, n_copies = len(texts[0]), max(len(wide), 1)
        outcome, bad = np.repeat((FIRST, SECOND, TIE)[:n_copies], n), np.zeros(n * n_copies, dtype=bool)
        if column is not None:
            used.append(column)
            outcome, bad = self._outcomes(column, texts, used, notes)
        columns: dict[str, Any] = {}
        names: dict[str, tuple[str, ...]] = {}
        for role, given, usual in (("judge", self.judge, _JUDGES), ("group", self.group, _GROUPS)):
            name = given or self._role(usual, used)
            if name is not None:
                used.append(name)
                columns[role], names[role] = _codes([_text(cell) for cell in self.table[name]])
        counted = wide or (self.count or next((c for c in map(self.folded.get, _COUNTS) if c and c not in used), ""),)
        used += [name for name in counted if name]
        count = np.concatenate([self._counts(name) if name else np.ones(n, dtype=np.int64) for name in counted])
        codes, items = _codes([*texts[0], *texts[1]])
        columns |= {"first": codes[:n], "second": codes[n:]}
        self._require_items(columns["first"], columns["second"], texts, outcome[:n] >= 0)
        columns = {name: np.tile(values, n_copies) for name, values in columns.items()}
        columns |= {"outcome": outcome, "count": count}
        kept = (outcome >= 0) & (count > 0) & self._uncorrected(columns, column)
        if not kept.any():
            raise InputError(f"{self.name} has no votes; write one row per vote, such as model_a,model_b,winner.")
        columns = {name: values[kept] for name, values in columns.items()}
        present, codes = np.unique([columns["first"], columns["second"]], return_inverse=True)
        columns["first"], columns["second"] = codes.reshape(2, -1)
        unused = [name for name in self.table if name not in used]
        if unused:
            notes.append(f"{self.name}: not used: column{'s' * (len(unused) > 1)} {list_names(unused)}")
        return Votes(
            tuple(items[i] for i in present), **columns, judges=names.get("judge", ()), groups=names.get("group", ()),
            has_sides=losers is None, both_bad=bad[kept] if bad[kept].any() else None, notes=tuple(notes),
        )  # fmt: skip

    def _role(self, names: Iterable[str], used: Sequence[str]) -> str | None:
        """Find a column by its usual name, with or without "id"; the id comes first."""
        columns = (self.folded.get(name + end) for name in names for end in ("id", "", "name"))
        return next((column for column in columns if column is not None and column not in used), None)

    def _outcomes(
        self, column: str, texts: list[list[str]], used: list[str], notes: list[str]
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Decode winners, −1 for rows without a vote, and mark votes for "both bad"."""
        cells = [_text(cell) for cell in self.table[column]]
        codes, values = _codes(cells)
        sides, numbers = self._words(used), _numeric(values)
        if numbers:
            words = ("the first wins", "a tie", "the second wins")
            meaning = ", ".join(f"{value} means {words[code]}" for value, code in numbers.items())
            notes.append(f"{self.name}: column {column!r} holds numbers; {meaning}")
        decoded = np.array([numbers.get(value, _decoded(value, sides)) for value in values], dtype=np.int64)
        outcome = decoded[codes] if len(codes) else np.empty(0, dtype=np.int64)
        first, second = (np.array(side, dtype=object) == np.array(cells, dtype=object) for side in texts)
        outcome = np.where(first, FIRST, np.where(second, SECOND, outcome))
        for row in np.flatnonzero(outcome == -2)[:1].tolist():
            raise InputError(
                f"{self.place(row)}: the winner is {shortened(cells[row])}, which is neither {texts[0][row]!r} nor "
                f"{texts[1][row]!r}, nor a side, nor a tie; write the winner's name, its column, tie or both bad."
            )
        n_empty = sum(_fold(cells[row]) != "undo" for row in np.flatnonzero(outcome == -1))
        if n_empty:
            left_out = "row without a vote is" if n_empty == 1 else "rows without a vote are"
            notes.append(f"{self.name}: {n_empty} {left_out} left out")
        bad = np.array([_fold(value) in _BAD for value in values] or [False])[codes] & (outcome == TIE)
        return outcome, bad

    def _words(self, used: list[str]) -> dict[str, int]:
        """Words for the outcomes: the columns' own names, sides, ties, none."""
        words = dict.fromkeys(_TIES + _BAD, TIE) | dict.fromkeys((*_NONE, "undo"), -1)
        for a, b in _SIDES[:2] + _SIDES[3:]:
            for stem in _STEMS:
                words |= {stem + a: FIRST, a + stem: FIRST, stem + b: SECOND, b + stem: SECOND}
        words |= {"win": FIRST, "loss": SECOND, "lose": SECOND}
        return words | {_fold(used[0]): FIRST, _fold(used[1]): SECOND}

    def _counts(self, column: str) -> Integers:
        numbers = np.zeros(len(self.table[column]), dtype=np.int64)
        for row, cell in enumerate(self.table[column]):
            try:
                value = float(_text(cell) or 0.0)
            except ValueError:
                value = np.nan
            if not (0.0 <= value <= MAX_COUNT and value == int(value)):
                raise InputError(
                    f"{self.place(row)}: the number of votes in column {column!r} is {shortened(cell)}; expected a "
                    f"whole number from 0 to {MAX_COUNT:,}."
                )
            numbers[row] = int(value)
        return numbers

    def _require_items(self, first: Integers, second: Integers, texts: list[list[str]], voted: Any) -> None:
        for row in np.flatnonzero(voted & (first == second)).tolist()[:1]:
            if texts[0][row]:
                name = f"{texts[0][row]!r} is compared with itself"
                raise InputError(f"{self.place(row)}: {name}; expected two different items.")
        empty = [row for row in np.flatnonzero(voted).tolist() if not (texts[0][row] and texts[1][row])]
        if empty:
            raise InputError(f"{self.place(empty[0])}: the name of an item is empty; name both items of a vote.")

    def _uncorrected(self, columns: dict[str, Any], column: str | None) -> NDArray[np.bool_]:
        """Mark rows of a journal that no later "undo" or "change" of the same judge withdrew."""
        kept = np.ones(len(columns["outcome"]), dtype=bool)
        if column is None or _fold(column) != "action":
            return kept
        actions, by = [_fold(_text(cell)) for cell in self.table[column]], self.folded.get("by")
        changes = [False] * len(actions) if by is None else [_fold(_text(cell)) == "change" for cell in self.table[by]]
        if "undo" not in actions and not any(changes):
            return kept
        judge = columns.get("judge", np.zeros(len(actions), dtype=np.int64))
        history: dict[int, list[int]] = {}
        for row, action in enumerate(actions):
            rows = history.setdefault(int(judge[row]), [])
            pair = {int(columns["first"][row]), int(columns["second"][row])}
            if action == "undo":
                kept[row] = False
                if rows:
                    kept[rows.pop()] = False
                continue
            before = [i for i in rows if {int(columns["first"][i]), int(columns["second"][i])} == pair]
            if changes[row] and before:
                kept[before[-1]] = False
                rows.remove(before[-1])
            rows.append(row)
        return kept


def _decoded(value: str, words: Mapping[str, int]) -> int:
    """Return the outcome that a word or a verdict such as A>>B stands for; −2 if it is unknown."""
    verdict = _VERDICT.search(value)
    if verdict is None:
        return words.get(_fold(value), -2)
    if "=" in verdict[2] or verdict[1].casefold() == verdict[3].casefold():
        return TIE
    return FIRST if (verdict[1].casefold() == "a") == (">" in verdict[2]) else SECOND


def _numeric(values: Sequence[str]) -> dict[str, int]:
    """Return the meaning of outcomes that are numbers: 1 is the first item; 0 or −1 or 2 the second; the rest a tie."""
    try:
        numbers = {value: float(value) for value in values if _fold(value) not in _NONE + _TIES + _BAD}
    except ValueError:
        return {}
    present = set(numbers.values())
    for second, ties in ((0.0, {0.5}), (2.0, {0.0, 1.5}), (-1.0, {0.0})):
        meaning = {1.0: FIRST, second: SECOND} | dict.fromkeys(ties, TIE)
        if present and present <= set(meaning) and (len(present) > 1 or present <= {1.0, 2.0}):
            return {value: meaning[number] for value, number in numbers.items()}
    return {}


def _json_votes(text: str, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    for where, value in json_values(text, name):
        parts = value.values() if isinstance(value, dict) else ()
        inside = [part for part in parts if isinstance(part, list) and part and all(isinstance(x, dict) for x in part)]
        if len(inside) == 1 and not looks_like_votes(value):  # such as {"results": [...]}
            value = inside[0]
        for number, element in enumerate(value if isinstance(value, list) else [value], 1):
            place = f"{where}, element {number}" if isinstance(value, list) else where
            if not isinstance(element, dict):
                expected = "an object with model_a, model_b and winner"
                raise InputError(f"{place}: found {shortened(element)}; expected {expected}.")
            votes = _json_rows(element, place)
            rows += votes
            lines += [place] * len(votes)
    return rows, lines


def _json_rows(value: dict[str, Any], place: str) -> list[dict[str, Any]]:
    """Return one row per vote of an object: itself, or all pairs of its scores."""
    nested = (at_path(value, *path, "scores") for path in ((), ("feedback",), ("evaluation",), ("result",)))
    scores = next((part for part in nested if isinstance(part, dict)), None)
    if scores is not None and len(scores) > 1 and all(isinstance(score, int | float) for score in scores.values()):
        if len(scores) > MAX_SCORED:
            raise InputError(f"{place}: there are scores of {len(scores):,} items; expected at most {MAX_SCORED}.")
        for name, score in scores.items():
            if score != score:  # NaN
                raise InputError(f"{place}: the score of {name!r} is not a number; leave the item out.")
        rest = {name: part for name, part in value.items() if not isinstance(part, dict | list)}
        pairs = [(a, b, scores[a] - scores[b]) for a, b in combinations(scores, 2)]
        return [
            rest | {"model_a": a, "model_b": b, "winner": a if d > 0 else b if d < 0 else "tie"} for a, b, d in pairs
        ]
    for name in _NAME_LISTS:
        pair = value.get(name)
        if isinstance(pair, list) and len(pair) == 2:
            a, b = (at_path(item, "name") or at_path(item, "id") or item for item in pair)
            return [{**{key: part for key, part in value.items() if key != name}, "model_a": a, "model_b": b}]
    return [value]


def _fold(name: Any) -> str:
    return _PUNCTUATION.sub("", str(name).casefold())


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # NaN
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return cell.strip() if isinstance(cell, str) else plain_text(cell).strip()


def _codes(texts: Sequence[str]) -> tuple[Integers, tuple[str, ...]]:
    numbers: dict[str, int] = {}
    codes = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64, len(texts))
    return codes, tuple(numbers)
