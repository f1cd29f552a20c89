"""
Views of a record as rows whose products are similarities: text, citations inside the collection, all references.

Each row of a view has norm 1, or 0 where the record lacks the view, which is then silent. With their weights they make
one kernel, K = .7 text + .2 links + .1 references + 1; the 1 is a penalised level. Where no record has references, text
weighs 1. The weights were chosen on reviews (docs/experiments/screening.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.records.records import Records
from corank.errors import InputError
from corank.judging.screening.words import Words, unit_rows

TEXT, LINKS, REFERENCES, LEVEL = 0.7, 0.2, 0.1, 1.0
"""What each view weighs in the kernel, and the level that all records share."""

WHOLE = 3000
"""Records up to which the whole kernel is held (36 MB)."""

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Features:
    """
    Records as rows whose products are their similarities.

    sparse: columns of text, links and references that at least two records have, times the roots of the weights.
    own: what the columns of one record only add to its similarity with itself; they touch nothing else.
    """

    sparse: Any
    own: Rows

    def __len__(self) -> int:
        return len(self.own)

    def take(self, rows: NDArray[np.intp]) -> Features:
        """Return a few of the records, by their numbers."""
        return Features(self.sparse[rows], self.own[rows])

    def times(self, few: Features, a: NDArray[Any]) -> Rows:
        """
        Multiply the similarities of these records to a few, `own` left out, with coefficients of the few.

        few: other records of the collection, or the same.
        a: one coefficient for each of them.
        """
        a = a.astype(np.float32)
        level = np.float32(LEVEL) * a.sum()
        found: Rows = self.sparse @ (few.sparse.T @ a) + level
        return found


@dataclass(frozen=True, eq=False)
class Views(Features):
    """
    All records of a collection.

    text: rows of words and pairs of words, and `words`, which makes them.
    whole: the kernel of all records, or None where they are too many.
    """

    text: Any
    words: Words
    whole: Rows | None

    @cached_property
    def typical(self) -> Rows:
        """Mean similarity of each record to all records."""
        return self.times(self, np.full(len(self), 1 / len(self)))

    def likeness(self, topic: str) -> Rows:
        """
        Compare a description with every record.

        topic: free text.
        Returns: cosines of the text; all 0 where no word is shared.
        """
        found: Rows = (self.text @ self.words.rows([topic]).T).toarray().ravel()
        return found


def make_views(records: Records, *, whole: int = WHOLE) -> Views:
    """
    Make the views of a collection, which screenings and replays of the same records may share.

    Parameters
    ----------
    records : Records
        The collection.
    whole : int
        Number of records up to which the whole kernel is held.

    Returns
    -------
    Views
        Features of all records, and their kernel.
    """
    both = [f"{title} {abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True)]
    words, text = Words.learn(both)
    if not text.nnz:
        raise InputError(
            f"the titles and abstracts of the {len(records)} records have no word that tells them apart; check the "
            "columns, or pass more records."
        )
    together = text
    if any(records.references):
        shares = zip((TEXT, LINKS, REFERENCES), (text, *reference_views(records)), strict=True)
        together = sparse.hstack([rows * np.float32(share**0.5) for share, rows in shares], format="csr")
    shared, own = _shared(together)
    kernel = None
    if len(records) <= whole:
        kernel = (shared @ shared.T).toarray() + np.float32(LEVEL)
        kernel[np.diag_indices(len(records))] += own
    return Views(shared, own, text, words, kernel)


def reference_views(records: Records) -> tuple[Any, Any]:
    """
    See each record by who it cites and who cites it.

    Returns: rows over the collection (itself, what it cites there, what cites it there: a direct citation, a shared
        reference and a shared citation all count), and rows over all cited works (itself and its references). Rare
        works weigh more. A record without any has an empty row.
    """
    n = len(records)
    number = dict(records.number)  # works outside the collection come behind it
    cites = [(at, number.setdefault(work, len(number))) for at, of in enumerate(records.references) for work in set(of)]
    rows, columns = np.array(cites).T
    cited = sparse.csr_matrix((np.ones(len(cites), np.float32), (rows, columns)), shape=(n, len(number)))
    inside = cited[:, :n]
    is_linked = (np.diff(inside.indptr) > 0) | (np.bincount(inside.indices, minlength=n) > 0)
    has_any = is_linked | (np.diff(cited.indptr) > 0)
    links = _weighted(inside + inside.T + sparse.identity(n, np.float32, "csr"))
    references = _weighted(cited + sparse.eye(n, len(number), dtype=np.float32, format="csr"))
    return sparse.diags(is_linked.astype(np.float32)) @ links, sparse.diags(has_any.astype(np.float32)) @ references


def _weighted(counts: Any) -> Any:
    """Rows of norm 1 in which a column weighs by how rare it is, however often it was counted."""
    counts = counts.tocsr()
    counts.data[:] = 1.0
    shown = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log((1 + counts.shape[0]) / (1 + shown)) + 1
    return unit_rows((counts @ sparse.diags(rarity.astype(np.float32))).tocsr())


def _shared(features: Any) -> tuple[Any, Rows]:
    """Columns of at least two records, and the squares of the others, summed for each record."""
    shown = np.bincount(features.indices, minlength=features.shape[1])
    own = features.multiply(features) @ (shown < 2).astype(np.float32)
    return features[:, shown >= 2].tocsr(), np.asarray(own, dtype=np.float32).ravel()
