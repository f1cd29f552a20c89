"""
Groups of records that describe one work, with the evidence; no record is deleted.

Pairs come from `corank_lab.records.duplicates` and are decided by `corank_lab.records.evidence`. They are merged from
the surest to the least sure, and two groups are merged only if no record of one contradicts a record of the other. So
a chain of resembling records does not join two works.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from corank.errors import InputError
from corank_lab.records.evidence import ComparedRecord, Match, compare, contradict, entry_of, make_entries
from corank_lab.records.records import ComputedSequence, Records, without_collection

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

    first: int
    other: int
    strength: float
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class DuplicateGroups:
    """Duplicates in a collection; made by `find_duplicates`."""

    n_records: int  # size of the collection
    groups: list[DuplicateGroup]  # groups of at least two records, in the order of their first members
    pairs: tuple[DuplicatePair, ...]  # that the groups were made of, to restore them with `restore_duplicates`
    _entries: Sequence[ComparedRecord]
    _order: Sequence[Any]
    _rejected: frozenset[tuple[int, int]] = frozenset()
    _confirmed: frozenset[tuple[int, int]] = frozenset()

    def __repr__(self) -> str:
        n_groups = len(self.groups)
        return f"<DuplicateGroups: {self.n_duplicates} duplicates in {n_groups} groups of {self.n_records} records>"

    @property
    def n_duplicates(self) -> int:
        """Number of records that need no judgement of their own."""
        return sum(len(group.members) - 1 for group in self.groups)

    @cached_property
    def _group(self) -> dict[int, DuplicateGroup]:
        return {i: group for group in self.groups for i in group.members}

    @cached_property
    def representatives(self) -> list[int]:
        """Numbers of the records to judge, in the order of the file: one of each group, and all single records."""
        return [i for i in range(self.n_records) if (group := self._group.get(i)) is None or group.representative == i]

    def group_of(self, number: int) -> tuple[int, ...]:
        """Return the records that describe the same work as one record."""
        group = self._group.get(number)
        return group.members if group else (number,)

    def without(self, pairs: Iterable[tuple[int, int]]) -> DuplicateGroups:
        """Return groups in which some pairs of records are in different groups, as a person decided."""
        rejected = self._rejected | self._checked(pairs)
        return _grouped(self.pairs, self._entries, self._order, rejected, self._confirmed - rejected)

    def joined(self, pairs: Iterable[tuple[int, int]]) -> DuplicateGroups:
        """Return groups in which some pairs of records are in one group, as a person decided."""
        confirmed = self._confirmed | self._checked(pairs)
        return _grouped(self.pairs, self._entries, self._order, self._rejected - confirmed, confirmed)

    def _checked(self, pairs: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        result = frozenset((min(pair), max(pair)) for pair in pairs)
        for pair in result:
            if pair[0] == pair[1] or pair[0] < 0 or pair[1] >= self.n_records:
                raise InputError(
                    f"the pair of records is {pair}; pass two different numbers from 0 to {self.n_records - 1}."
                )
        return result


@without_collection()
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
    for position in sorted(range(len(records)), key=lambda index: order[index]):
        copies[entries[position]].append(position)
    pairs, distinct = [], []
    for entry, members in copies.items():
        match = compare(entry, entry) if len(members) > 1 else None
        pairs += [DuplicatePair(members[0], other, *match) for other in members[1:]] if match else []
        # copies that no evidence joins, such as two editorials without any details, are left alone
        distinct += members[:1] if match or len(members) == 1 else []
    candidates = candidate_pairs([entries[i] for i in distinct], lambda share: report(0.2 + 0.5 * share))
    for number, (item, other) in enumerate(candidates):
        if not number % 1000:
            report(0.7 + 0.3 * number / len(candidates))
        match = compare(entries[distinct[item]], entries[distinct[other]])
        if match:
            pairs.append(DuplicatePair(distinct[item], distinct[other], *match))
    joined = {frozenset(pair[:2]) for pair in pairs}
    for first, *others in _same_rows(records, entries, order):
        rest = [i for i in others if {first, i} not in joined and not contradict(entries[first], entries[i])]
        pairs += [DuplicatePair(first, i, *SAME_ROW) for i in rest]
    groups = _grouped(tuple(pairs), entries, order, frozenset(), frozenset())
    entries_later, order_later = _computed_later(records)
    return replace(groups, _entries=entries_later, _order=order_later)


def _same_rows(records: Records, entries: Sequence[ComparedRecord], order: Sequence[int]) -> Iterable[list[int]]:
    """Return records with one id, title and abstract, which are one work even if many works have such a title."""
    rows: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i in sorted(range(len(records)), key=lambda index: order[index]):
        id, entry = records.details[i].given_id, entries[i]
        if id and entry.text:
            rows[id, entry.title, entry.text].append(i)
    return rows.values()


def restore_duplicates(records: Records, pairs: Iterable[Sequence[Any]]) -> DuplicateGroups:
    """Make groups of pairs that were found before, without comparing the records again."""
    result = tuple(DuplicatePair(*pair) for pair in pairs)
    return _grouped(result, *_computed_later(records), frozenset(), frozenset())


def _computed_later(records: Records) -> tuple[ComputedSequence[ComparedRecord], ComputedSequence[Any]]:
    """Entries and order that are computed when they are needed: most records have no duplicates."""
    n = len(records)
    order = ComputedSequence(n, lambda i: (*_content(records, i), i))  # sorts as the places of `_order` do
    return ComputedSequence(n, lambda i: entry_of(records, i)), order


def _order(records: Records) -> list[int]:
    """Place of each record in an order by content, so that the order of the file does not matter."""
    order = [0] * len(records)
    texts = [_texts(records, i) for i in range(len(records))]
    by_texts = sorted(range(len(records)), key=texts.__getitem__)
    place = 0
    for _, members in groupby(by_texts, key=texts.__getitem__):
        same = list(members)
        if len(same) > 1:
            same.sort(key=lambda position: _rest(records, position))
        for index in same:
            order[index] = place
            place += 1
    return order


def _content(records: Records, index: int) -> tuple[object, ...]:
    """Sort key by content, the most complete record first, so that the order of the file does not matter."""
    return *_texts(records, index), *_rest(records, index)


def _texts(records: Records, index: int) -> tuple[object, ...]:
    """Return the first part of `_content`, which few records share."""
    item, abstract, title = records.details[index], records.abstracts[index], records.titles[index]
    known = (item.doi, item.pmid, item.year, item.authors, item.journal, item.accession, item.url, item.keywords)
    return not abstract, not item.doi, -sum(map(bool, known)), -len(abstract), -len(title), title, abstract


def _rest(records: Records, index: int) -> tuple[object, ...]:
    """Return the rest of `_content`."""
    item = records.details[index]
    return (
        item.doi, item.pmid, item.year or 0, item.authors, item.journal, item.accession, item.given_id, item.source,
        sorted((name, tuple(values)) for name, values in records.fields[index].items()),
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
    matched = {(entries[pair.first], entries[pair.other]) for pair in pairs}

    trusted = {i for pair in confirmed for i in pair}

    def is_consistent(left: int, right: int) -> bool:
        mine, theirs = versions[left], versions[right]
        return len(mine) * len(theirs) <= MAX_VERSIONS**2 and not any(
            (a, b) not in matched and (b, a) not in matched and contradict(a, b) for a in mine for b in theirs
        )

    def merge(first: int, other: int, text: str, is_sure: bool) -> None:
        left, right = sorted(
            (group[first], group[other]), key=lambda position: (-len(members.get(position, ())), order[position])
        )
        for index in (left, right):
            members.setdefault(index, [index])
            # what a person confirmed need not resemble the rest
            versions.setdefault(index, {} if index in trusted else {entries[index]: None})
        if left != right:
            if any({group[a], group[b]} == {left, right} for a, b in rejected):
                return
            if not is_sure and not is_consistent(left, right):
                return
            for index in members[right]:
                group[index] = left
            members[left] += members.pop(right)
            versions[left] |= versions.pop(right)
            texts[left] += texts.pop(right, [])
        texts[left].append(text)

    for entry, other in sorted(confirmed, key=lambda pair: sorted((order[pair[0]], order[pair[1]]))):
        merge(entry, other, "confirmed by a person", True)
    for pair in sorted(pairs, key=lambda pair: (-pair.strength, *sorted((order[pair.first], order[pair.other])))):
        merge(pair.first, pair.other, pair.text, False)
    groups = [
        DuplicateGroup(
            tuple(sorted(result)), min(result, key=lambda index: order[index]), tuple(dict.fromkeys(texts[i]))
        )
        for i, result in members.items()
        if len(result) > 1
    ]
    groups.sort(key=lambda item: item.members)
    return DuplicateGroups(len(entries), groups, pairs, entries, order, rejected, confirmed)


MAX_BLOCK, NEIGHBOURS = 400, 40
"""Size up to which all pairs of a block are compared; a larger one is split by year, then into neighbours by title."""

N_RARE, MAX_RARE = 4, 60
"""Number of rare words of a title that make blocks, and how many titles may contain such a word."""

MIN_ALIKE = 60.0
EDGE = 18
"""Similarity of titles in percent from which a pair is compared further, and letters of a beginning or an end."""

_SMALL_BLOCK = 8


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
        if len(members) <= _SMALL_BLOCK:  # less work than a matrix
            for item, other in combinations(members, 2):
                if not least or fuzz.ratio(compact[item] or "?", compact[other] or "?", score_cutoff=least):
                    small.add(min(item, other) * n + max(item, other))
            continue
        rows = np.array(members)
        if least:
            texts = [compact[i] or "?" for i in members]
            alike = process.cdist(texts, texts, scorer=fuzz.ratio, score_cutoff=least, dtype=np.uint8, workers=1)
            left, right = np.nonzero(np.triu(alike, 1))
        else:
            left, right = np.triu_indices(len(rows), 1)
        codes.append(np.minimum(rows[left], rows[right]).astype(np.int64) * n + np.maximum(rows[left], rows[right]))
    unique = sorted(small.union(*(element.tolist() for element in codes)))
    return [divmod(code, n) for code in unique]


def _blocks(entries: Sequence[ComparedRecord]) -> Iterator[tuple[list[int], float]]:
    """Blocks of at least two records, and the similarity of titles that a pair needs."""
    strong: dict[str, list[int]] = defaultdict(list)
    places: dict[str, list[int]] = defaultdict(list)
    titles: dict[str, list[int]] = defaultdict(list)
    frequency = Counter(word for entry in entries for word in set(entry.title.split()))
    for i, item in enumerate(entries):
        for kind in ("doi", "pmid", "accession"):
            if getattr(item, kind):
                strong[f"{kind}:{getattr(item, kind)}"].append(i)
        if item.volume and item.page:
            places[f"{item.year}:{item.volume}:{item.page[1]}"].append(i)
        if not item.title:
            titles[f"abstract:{item.text[:60]}"].append(i)
        elif item.generic:
            titles[f"generic:{item.title}:{item.year}:{item.author[:1]}"].append(i)
        if item.generic:
            continue
        titles["begin:" + item.compact[:EDGE]].append(i)
        titles["end:" + item.compact[-EDGE:]].append(i)
        if item.author and item.year:
            titles[f"author:{item.author[0]}:{item.year}"].append(i)
        words = {word for word in item.title.split() if 1 < frequency[word] <= MAX_RARE}
        for word in sorted(words, key=lambda word: (frequency[word], word))[:N_RARE]:
            titles["word:" + word].append(i)
    for blocks, least in ((strong, 0.0), (places, 0.0), (titles, MIN_ALIKE)):
        for members in blocks.values():
            for part in _split(members, entries) if len(members) > MAX_BLOCK else (members,):
                if len(part) > 1:
                    yield part, least if len(part) <= 20 or least else MIN_ALIKE


def _split(members: list[int], entries: Sequence[ComparedRecord]) -> Iterator[list[int]]:
    """Parts of a large block: by year, then neighbours in the order of the titles."""
    by_year: dict[int | None, list[int]] = defaultdict(list)
    for index in members:
        by_year[entries[index].year].append(index)
    for part in by_year.values():
        if len(part) <= MAX_BLOCK:
            yield part
            continue
        ordered = sorted(part, key=lambda i: entries[i].sort_key)
        for start in range(0, len(ordered) - NEIGHBOURS // 2, NEIGHBOURS // 2):
            yield ordered[start : start + NEIGHBOURS]
