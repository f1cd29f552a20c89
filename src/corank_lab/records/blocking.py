"""
Pairs of records that may be duplicates, without comparing all pairs.

Records meet in blocks: an identifier, the same beginning or end of the title, a rare word of the title, first author
and year, or year, volume and first page. Within a block only pairs with similar titles are kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from corank_lab.records.evidence import Entry

MAX_BLOCK, NEIGHBOURS = 400, 40
"""Size up to which all pairs of a block are compared; a larger one is split by year, then into neighbours by title."""

N_RARE, MAX_RARE = 4, 60
"""Number of rare words of a title that make blocks, and how many titles may contain such a word."""

LEAST_ALIKE = 60.0
EDGE = 18
"""Similarity of titles in percent from which a pair is compared further, and letters of a beginning or an end."""

_FEW = 8


def candidate_pairs(
    entries: Sequence[Entry], report: Callable[[float], None] = lambda share: None
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


def _blocks(entries: Sequence[Entry]) -> Iterator[tuple[list[int], float]]:
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
    for blocks, least in ((strong, 0.0), (places, 0.0), (titles, LEAST_ALIKE)):
        for members in blocks.values():
            for part in _split(members, entries) if len(members) > MAX_BLOCK else (members,):
                if len(part) > 1:
                    yield part, least if len(part) <= 20 or least else LEAST_ALIKE


def _split(members: list[int], entries: Sequence[Entry]) -> Iterator[list[int]]:
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
