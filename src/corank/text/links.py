"""Links between texts and documents: hyperlinks, citations, or clicks on results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.text.postings import Bags, sizes, totals
from corank.data.queries import take_blocks
from corank.errors import InputError
from corank.parameters import check_values, number, rng_of
from corank.text.corpus import Corpus, as_bags


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """
    Texts, and the documents of a corpus that each is linked with.

    corpus: The documents.
    texts: The words of the texts that have links.
    lengths: Number of words of each text.
    starts, linked: ``linked[starts[i]:starts[i + 1]]`` are the numbers of the documents of text i, without repetitions.
    own: Number of the document that is the text itself; −1 for texts that are not documents, such as queries.
    n_missing: Number of links left out because their document or text does not exist.
    n_own: Number of links of a document to itself, which are left out too.
    """

    corpus: Corpus
    texts: Bags
    lengths: NDArray[np.int64]
    starts: NDArray[np.uint64]
    linked: NDArray[np.uint32]
    own: NDArray[np.int64]
    n_missing: int
    n_own: int

    @classmethod
    def of(cls, corpus: Corpus, pairs: Iterable[Sequence[Any]]) -> Links:
        """
        Make links between documents; each link counts in both directions, as in the paper.

        >>> corpus = Corpus.of(["tin", "iron", "wheat"], ids=["t", "i", "w"], language=None)
        >>> Links.of(corpus, [("t", "i"), ("i", "t"), ("w", "w"), ("w", "gold")])
        <Links: 2 texts, 2 links; left out: 1 to themselves, 1 missing>
        """
        numbers, n_missing = _numbers(pairs, corpus.number, corpus.number)
        is_own = numbers[:, 0] == numbers[:, 1]
        both = np.concatenate([numbers[~is_own], numbers[~is_own][:, ::-1]])
        sources, starts, linked = _grouped(both)
        bags = as_bags(corpus.counts[sources])
        return cls(corpus, bags, corpus.lengths[sources], starts, linked, sources, n_missing, int(is_own.sum()))

    @classmethod
    def of_queries(cls, corpus: Corpus, queries: Mapping[Any, str], pairs: Iterable[Sequence[Any]]) -> Links:
        """Make links from other texts to documents, such as clicks on results of queries."""
        names = [str(name) for name in queries]
        numbers, n_missing = _numbers(pairs, {name: i for i, name in enumerate(names)}, corpus.number)
        own = np.array([corpus.number.get(name, -1) for name in names], dtype=np.int64)
        is_own = own[numbers[:, 0]] == numbers[:, 1]
        sources, starts, linked = _grouped(numbers[~is_own])
        texts = list(queries.values())
        bags = corpus.count([texts[i] for i in sources])
        return cls(corpus, bags, totals(bags), starts, linked, own[sources], n_missing, int(is_own.sum()))

    def __len__(self) -> int:
        return len(self.own)

    def __repr__(self) -> str:
        left_out = f"left out: {self.n_own} to themselves, {self.n_missing} missing"
        return f"<Links: {len(self)} texts, {len(self.linked)} links; {left_out}>"

    @property
    def n_constraints(self) -> int:
        """Number of triples (text, linked, unlinked) that the links imply."""
        return int(self.constraints.sum())

    @property
    def constraints(self) -> NDArray[np.int64]:
        """Number of constraints of each text: its linked times its unlinked documents."""
        n_linked = sizes(self.starts)
        return np.asarray(n_linked * (self.corpus.n_documents - n_linked - (self.own >= 0)))

    def take(self, texts: NDArray[np.integer[Any]]) -> Links:
        """Select the links of some texts; all documents are kept."""
        words, ends = take_blocks(self.texts.starts, texts)
        links, starts = take_blocks(self.starts, texts)
        return replace(
            self,
            texts=Bags(ends.astype(np.uint64), self.texts.terms[words], self.texts.values[words]),
            lengths=self.lengths[texts],
            starts=starts.astype(np.uint64),
            linked=self.linked[links],
            own=self.own[texts],
        )

    def grades(self) -> NDArray[np.float64]:
        """Return links as grades."""
        grades = np.zeros((len(self), self.corpus.n_documents))
        grades[np.repeat(np.arange(len(self)), sizes(self.starts)), self.linked] = 1.0
        is_document = self.own >= 0
        grades[np.flatnonzero(is_document), self.own[is_document]] = np.nan
        return grades


def split_links(
    corpus: Corpus,
    pairs: Iterable[Sequence[Any]],
    fraction: float = 0.5,
    *,
    queries: Mapping[Any, str] | None = None,
    random_state: Any = None,
) -> tuple[Links, Links]:
    """Split documents at random into a training and a validation corpus, each with the links inside it."""
    check_values({"fraction": fraction}, {"fraction": number(0, 1, inside="()")})
    listed = [(str(a), str(b)) for a, b in pairs]
    sources = corpus.number if queries is None else {str(name): i for i, name in enumerate(queries)}
    _, n_missing = _numbers(listed, sources, corpus.number)
    n = corpus.n_documents
    held = np.zeros(n, dtype=bool)
    held[rng_of(random_state).permutation(n)[: round(fraction * n)]] = True
    parts = []
    for members in (~held, held):
        inside, part = set(corpus.ids[members].tolist()), corpus.subset(members)
        if queries is None:
            chosen = [pair for pair in listed if pair[0] in inside and pair[1] in inside]
            parts.append(Links.of(_require_links(part, chosen, listed), chosen))
        else:
            texts = {
                name: text for name, text in queries.items() if str(name) in inside or str(name) not in corpus.number
            }
            wanted = {str(name) for name in texts}
            chosen = [pair for pair in listed if pair[0] in wanted and pair[1] in inside]
            parts.append(Links.of_queries(_require_links(part, chosen, listed), texts, chosen))
    return replace(parts[0], n_missing=n_missing), parts[1]


def _require_links(part: Corpus, chosen: list[tuple[str, str]], listed: list[tuple[str, str]]) -> Corpus:
    """Raise if no link is inside a part."""
    if not chosen:
        raise InputError(
            f"one of the two parts of the documents contains none of the {len(listed)} links; pass more links, or fit "
            "without validation links."
        )
    return part


def _numbers(
    pairs: Iterable[Sequence[Any]], sources: dict[str, int], targets: dict[str, int]
) -> tuple[NDArray[np.int64], int]:
    numbers, n_missing = [], 0
    for pair in pairs:
        if isinstance(pair, str | bytes) or len(pair) != 2:
            raise InputError(f"a link is {pair!r}; pass pairs of document ids.")
        source, target = sources.get(str(pair[0])), targets.get(str(pair[1]))
        if source is None or target is None:
            n_missing += 1
        else:
            numbers.append((source, target))
    if not numbers:
        raise InputError(f"none of the {n_missing} links is between existing documents; check their ids.")
    return np.array(numbers, dtype=np.int64), n_missing


def _grouped(pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]:
    """Return the distinct sources, and the distinct targets of each."""
    distinct = np.unique(pairs, axis=0).reshape(-1, 2)
    sources, starts = np.unique(distinct[:, 0], return_index=True)
    ends = np.append(starts, len(distinct)).astype(np.uint64)
    return sources, ends, distinct[:, 1].astype(np.uint32)
