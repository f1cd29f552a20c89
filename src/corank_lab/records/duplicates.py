"""
Groups of records that describe one work, with the evidence; no record is deleted.

Pairs come from `corank_lab.records.duplicates` and are decided by `corank_lab.records.evidence`. They are merged from
the surest to the least sure, and two groups are merged only if no record of one contradicts a record of the other. So
a chain of resembling records does not join two works.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from corank.errors import InputError
from corank_lab.records.evidence import ComparedRecord, Match, compare, contradict, entry_of, make_entries
from corank_lab.records.records import Records

MAX_VERSIONS = 100
"""Number of different versions of a work up to which groups are merged; more are hardly one work."""
SAME_ROW = Match(300.0, "the same id, title and abstract")
"""Evidence for copies with a common title."""


@dataclass(frozen=True)
class DuplicateGroup:
    """Records that describe one work."""

    members: tuple[int, ...]  # numbers of the records, from 0, in the order of the file
    representative: int  # the most complete of them, which is judged for all
    evidence: tuple[str, ...]  # why they belong together, one text per kind of evidence


class DuplicatePair(NamedTuple):
    """Two records of one work, how sure that is, and why."""

    one: int
    other: int
    strength: float
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class DuplicateGroups:
    """Duplicates in a collection; made by `find_duplicates`."""

    n_records: int  # size of the collection
    groups: list[DuplicateGroup]  # groups of at least two records, in the order of their first members
    _pairs: tuple[DuplicatePair, ...]
    _entries: Sequence[ComparedRecord]
    _order: Sequence[Any]
    _rejected: frozenset[tuple[int, int]] = frozenset()
    _confirmed: frozenset[tuple[int, int]] = frozenset()

    def __repr__(self) -> str:
        n_groups = len(self.groups)
        return f"<DuplicateGroups: {self.n_duplicates} duplicates in {n_groups} groups of {self.n_records} records>"

    @property
    def pairs(self) -> tuple[DuplicatePair, ...]:
        """The pairs of records that the groups were made of, to restore them with `restore_duplicates`."""
        return self._pairs

    @property
    def n_duplicates(self) -> int:
        """Number of records that need no judgement of their own."""
        return sum(len(group.members) - 1 for group in self.groups)

    @cached_property
    def _group(self) -> dict[int, DuplicateGroup]:
        return {at: group for group in self.groups for at in group.members}

    @cached_property
    def representatives(self) -> list[int]:
        """Numbers of the records to judge, in the order of the file: one of each group, and all single records."""
        return [
            at for at in range(self.n_records) if (group := self._group.get(at)) is None or group.representative == at
        ]

    def group_of(self, number: int) -> tuple[int, ...]:
        """Return the records that describe the same work as one record."""
        group = self._group.get(number)
        return group.members if group else (number,)

    def without(self, pairs: Iterable[tuple[int, int]]) -> DuplicateGroups:
        """Return groups in which some pairs of records are in different groups, as a person decided."""
        rejected = self._rejected | self._checked(pairs)
        return _grouped(self._pairs, self._entries, self._order, rejected, self._confirmed - rejected)

    def joined(self, pairs: Iterable[tuple[int, int]]) -> DuplicateGroups:
        """Return groups in which some pairs of records are in one group, as a person decided."""
        confirmed = self._confirmed | self._checked(pairs)
        return _grouped(self._pairs, self._entries, self._order, self._rejected - confirmed, confirmed)

    def _checked(self, pairs: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        found = frozenset((min(pair), max(pair)) for pair in pairs)
        for pair in found:
            if pair[0] == pair[1] or pair[0] < 0 or pair[1] >= self.n_records:
                raise InputError(
                    f"the pair of records is {pair}; pass two different numbers from 0 to {self.n_records - 1}."
                )
        return found


def find_duplicates(records: Records, *, report: Callable[[float], None] | None = None) -> DuplicateGroups:
    """
    Find records that describe one work, by identifiers and by similar titles with agreeing details.

    A shared DOI is not enough if titles differ, as for abstracts of one supplement. Similar titles are not enough if
    numbers, first author, page or journal differ, as for parts of a series or a conference abstract and its article.
    The result does not depend on the order of the records.

    >>> from corank_lab.records.records import RecordDetails
    >>> details = [RecordDetails(year=2001, authors=("Roe, A.",)), RecordDetails(year=2001, authors=("A Roe",))]
    >>> titles = ["Sleep and memory in young rats", "Sleep and memory in young rats."]
    >>> find_duplicates(Records(["a", "b"], titles, ["", ""], details=details)).groups[0].evidence
    ('the same title, same year and first author',)
    """
    report = report or (lambda share: None)
    entries = make_entries(records)
    order = _order(records)
    report(0.2)
    copies: dict[ComparedRecord, list[int]] = defaultdict(list)
    for at in sorted(range(len(records)), key=lambda at: order[at]):
        copies[entries[at]].append(at)
    pairs, distinct = [], []
    for entry, members in copies.items():
        match = compare(entry, entry) if len(members) > 1 else None
        pairs += [DuplicatePair(members[0], other, *match) for other in members[1:]] if match else []
        # copies that no evidence joins, such as two editorials without any details, are left alone
        distinct += members[:1] if match or len(members) == 1 else []
    candidates = candidate_pairs([entries[at] for at in distinct], lambda share: report(0.2 + 0.5 * share))
    for number, (one, other) in enumerate(candidates):
        if not number % 1000:
            report(0.7 + 0.3 * number / len(candidates))
        match = compare(entries[distinct[one]], entries[distinct[other]])
        if match:
            pairs.append(DuplicatePair(distinct[one], distinct[other], *match))
    joined = {frozenset(pair[:2]) for pair in pairs}
    for first, *others in _same_rows(records, entries, order):
        rest = [at for at in others if {first, at} not in joined and not contradict(entries[first], entries[at])]
        pairs += [DuplicatePair(first, at, *SAME_ROW) for at in rest]
    return _grouped(tuple(pairs), entries, order, frozenset(), frozenset())


def _same_rows(records: Records, entries: Sequence[ComparedRecord], order: Sequence[int]) -> Iterable[list[int]]:
    """Return records with one id, title and abstract, which are one work even if many works have such a title."""
    rows: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for at in sorted(range(len(records)), key=lambda at: order[at]):
        id, entry = records.details[at].given_id, entries[at]
        if id and entry.text:
            rows[id, entry.title, entry.text].append(at)
    return rows.values()


def restore_duplicates(records: Records, pairs: Iterable[Sequence[Any]]) -> DuplicateGroups:
    """Make groups of pairs that were found before, without comparing the records again."""
    found = tuple(DuplicatePair(*one) for one in pairs)
    entries = _Computed(len(records), lambda at: entry_of(records, at))
    order = _Computed(len(records), lambda at: (*_content(records, at), at))  # sorts as the places of `_order` do
    return _grouped(found, entries, order, frozenset(), frozenset())


class _Computed(Sequence[Any]):
    """Values that are computed when they are needed: most records have no duplicates."""

    def __init__(self, n: int, compute: Callable[[int], Any]) -> None:
        self._n, self._compute = n, cache(compute)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, at: Any) -> Any:
        return self._compute(at)


def _order(records: Records) -> list[int]:
    """Place of each record in an order by content, so that the order of the file does not matter."""
    order = [0] * len(records)
    texts = [_texts(records, at) for at in range(len(records))]
    by_texts = sorted(range(len(records)), key=texts.__getitem__)
    place = 0
    for _, members in groupby(by_texts, key=texts.__getitem__):
        same = list(members)
        if len(same) > 1:
            same.sort(key=lambda at: _rest(records, at))
        for at in same:
            order[at] = place
            place += 1
    return order


def _content(records: Records, at: int) -> tuple[object, ...]:
    """Sort key by content, the most complete record first, so that the order of the file does not matter."""
    return *_texts(records, at), *_rest(records, at)


def _texts(records: Records, at: int) -> tuple[object, ...]:
    """Return the first part of `_content`, which few records share."""
    one, abstract, title = records.details[at], records.abstracts[at], records.titles[at]
    known = (one.doi, one.pmid, one.year, one.authors, one.journal, one.accession, one.url, one.keywords)
    return not abstract, not one.doi, -sum(map(bool, known)), -len(abstract), -len(title), title, abstract


def _rest(records: Records, at: int) -> tuple[object, ...]:
    """Return the rest of `_content`."""
    one = records.details[at]
    return (
        one.doi, one.pmid, one.year or 0, one.authors, one.journal, one.accession, one.given_id, one.source,
        sorted((name, tuple(values)) for name, values in records.fields[at].items()),
    )  # fmt: skip


def _grouped(
    pairs: tuple[DuplicatePair, ...],
    entries: Sequence[ComparedRecord],
    order: Sequence[Any],
    rejected: frozenset[tuple[int, int]],
    confirmed: frozenset[tuple[int, int]],
) -> DuplicateGroups:
    """Merge pairs from the surest to the least sure; rejected pairs stay apart."""
    group = list(range(len(entries)))
    members: dict[int, list[int]] = {}
    versions: dict[int, dict[ComparedRecord, None]] = {}
    texts: dict[int, list[str]] = defaultdict(list)
    matched = {(entries[pair.one], entries[pair.other]) for pair in pairs}

    trusted = {at for pair in confirmed for at in pair}

    def is_consistent(left: int, right: int) -> bool:
        mine, theirs = versions[left], versions[right]
        return len(mine) * len(theirs) <= MAX_VERSIONS**2 and not any(
            (a, b) not in matched and (b, a) not in matched and contradict(a, b) for a in mine for b in theirs
        )

    def merge(one: int, other: int, text: str, is_sure: bool) -> None:
        left, right = sorted((group[one], group[other]), key=lambda at: (-len(members.get(at, ())), order[at]))
        for at in (left, right):
            members.setdefault(at, [at])
            # what a person confirmed need not resemble the rest
            versions.setdefault(at, {} if at in trusted else {entries[at]: None})
        if left != right:
            if any({group[a], group[b]} == {left, right} for a, b in rejected):
                return
            if not is_sure and not is_consistent(left, right):
                return
            for at in members[right]:
                group[at] = left
            members[left] += members.pop(right)
            versions[left] |= versions.pop(right)
            texts[left] += texts.pop(right, [])
        texts[left].append(text)

    for one, other in sorted(confirmed, key=lambda pair: sorted((order[pair[0]], order[pair[1]]))):
        merge(one, other, "confirmed by a person", True)
    for pair in sorted(pairs, key=lambda pair: (-pair.strength, *sorted((order[pair.one], order[pair.other])))):
        merge(pair.one, pair.other, pair.text, False)
    groups = [
        DuplicateGroup(tuple(sorted(found)), min(found, key=lambda at: order[at]), tuple(dict.fromkeys(texts[at])))
        for at, found in members.items()
        if len(found) > 1
    ]
    groups.sort(key=lambda one: one.members)
    return DuplicateGroups(len(entries), groups, pairs, entries, order, rejected, confirmed)


MAX_BLOCK, NEIGHBOURS = 400, 40
"""Size up to which all pairs of a block are compared; a larger one is split by year, then into neighbours by title."""

N_RARE, MAX_RARE = 4, 60
"""Number of rare words of a title that make blocks, and how many titles may contain such a word."""

MIN_ALIKE = 60.0
EDGE = 18
"""Similarity of titles in percent from which a pair is compared further, and letters of a beginning or an end."""

_FEW = 8


def candidate_pairs(
    entries: Sequence[ComparedRecord], report: Callable[[float], None] = lambda share: None
) -> list[tuple[int, int]]:
    """Return pairs of records that may describe one work."""
    n = len(entries)
    compact = [entry.compact for entry in entries]
    codes: list[NDArray[np.int64]] = []
    small: set[int] = set()
    blocks = list(_blocks(entries))
    for number, (members, least) in enumerate(blocks):
        if not number % 1000:
            report(number / len(blocks))
        if len(members) <= _FEW:  # less work than a matrix
            for one, other in combinations(members, 2):
                if not least or fuzz.ratio(compact[one] or "?", compact[other] or "?", score_cutoff=least):
                    small.add(min(one, other) * n + max(one, other))
            continue
        rows = np.array(members)
        if least:
            texts = [compact[at] or "?" for at in members]
            alike = process.cdist(texts, texts, scorer=fuzz.ratio, score_cutoff=least, dtype=np.uint8, workers=1)
            left, right = np.nonzero(np.triu(alike, 1))
        else:
            left, right = np.triu_indices(len(rows), 1)
        codes.append(np.minimum(rows[left], rows[right]).astype(np.int64) * n + np.maximum(rows[left], rows[right]))
    unique = sorted(small.union(*(one.tolist() for one in codes)))
    return [divmod(code, n) for code in unique]


def _blocks(entries: Sequence[ComparedRecord]) -> Iterator[tuple[list[int], float]]:
    """Blocks of at least two records, and the similarity of titles that a pair needs."""
    strong: dict[str, list[int]] = defaultdict(list)
    places: dict[str, list[int]] = defaultdict(list)
    titles: dict[str, list[int]] = defaultdict(list)
    frequency = Counter(word for entry in entries for word in set(entry.title.split()))
    for at, one in enumerate(entries):
        for kind in ("doi", "pmid", "accession"):
            if getattr(one, kind):
                strong[f"{kind}:{getattr(one, kind)}"].append(at)
        if one.volume and one.page:
            places[f"{one.year}:{one.volume}:{one.page[1]}"].append(at)
        if not one.title:
            titles[f"abstract:{one.text[:60]}"].append(at)
        elif one.generic:
            titles[f"generic:{one.title}:{one.year}:{one.author[:1]}"].append(at)
        if one.generic:
            continue
        titles["begin:" + one.compact[:EDGE]].append(at)
        titles["end:" + one.compact[-EDGE:]].append(at)
        if one.author and one.year:
            titles[f"author:{one.author[0]}:{one.year}"].append(at)
        words = {word for word in one.title.split() if 1 < frequency[word] <= MAX_RARE}
        for word in sorted(words, key=lambda word: (frequency[word], word))[:N_RARE]:
            titles["word:" + word].append(at)
    for blocks, least in ((strong, 0.0), (places, 0.0), (titles, MIN_ALIKE)):
        for members in blocks.values():
            for part in _split(members, entries) if len(members) > MAX_BLOCK else (members,):
                if len(part) > 1:
                    yield part, least if len(part) <= 20 or least else MIN_ALIKE


def _split(members: list[int], entries: Sequence[ComparedRecord]) -> Iterator[list[int]]:
    """Parts of a large block: by year, then neighbours in the order of the titles."""
    by_year: dict[int | None, list[int]] = defaultdict(list)
    for at in members:
        by_year[entries[at].year].append(at)
    for part in by_year.values():
        if len(part) <= MAX_BLOCK:
            yield part
            continue
        ordered = sorted(part, key=lambda at: entries[at].sort_key)
        for start in range(0, len(ordered) - NEIGHBOURS // 2, NEIGHBOURS // 2):
            yield ordered[start : start + NEIGHBOURS]
