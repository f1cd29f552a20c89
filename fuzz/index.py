"""Indices of documents: changed headers and postings, searched, saved again and cut while they are open."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import corank
from corank.errors import InputError
from corank.text.corpus import Corpus
from corank.text.files import open_corpus, save_corpus
from fuzz.format import Format, Wrong
from fuzz.mutations import ODD_VALUES, mutate, mutate_json
from fuzz.safetensors import Parts, damage_tensor, damaged_outer

KEY = "corank index"
TEXTS = ("tin is soft", "iron and tin rust", "", "gold gold coins", "été, naïve façade and tin", "soft iron coins")
WAYS = ("search", "count", "save", "cut")


class Index(Format):
    name = "index"
    suffix = ".index"
    share = 1.0
    ways = len(WAYS)

    @property
    def sample(self) -> bytes:  # type: ignore[override]
        return _bases()[0]

    def generate(self, rng: Random) -> bytes:
        parts = Parts.of(rng.choice(_bases()), KEY)
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            if rng.random() < 0.7:
                damage_tensor(parts, rng)
            else:
                parts.header = mutate_json(parts.header, rng, [*ODD_VALUES, ["the", 1], "english", {"a": {}}])
        content = parts.sealed()
        kind = rng.random()
        if kind < 0.1:
            return damaged_outer(content, rng)
        return mutate(content, rng) if kind < 0.2 else content

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / "some.index"
        path.write_bytes(content)
        corpus = open_corpus(path)
        if content in _bases() and corpus.n_documents != len(TEXTS):
            raise Wrong("documents", corpus)
        if WAYS[way] == "cut":
            return _cut(corpus, path, is_known=content in _bases())
        _require_same(corpus, _plain(corpus))
        if WAYS[way] == "count":
            corpus.add(["tin and lead"], ["another id"])
            _use(corpus.subset([0]) if corpus.n_documents else corpus)
        elif WAYS[way] == "save":
            save_corpus(corpus, folder / "again.index", overwrite=True)
            _require_same(open_corpus(folder / "again.index"), _plain(corpus))
        else:
            _use(corpus)
        return True


@cache
def _bases() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder, "index"), []
        for stop_words in ("english", None):
            save_corpus(Corpus.of(TEXTS, language=None, stop_words=stop_words), path, overwrite=True)
            found.append(path.read_bytes())
        return found


def _use(corpus: Corpus) -> None:
    index = corank.BM25().to_index(corpus)
    index.search(["gold tin", "soft"], 3, n_jobs=None)
    index.scores("iron", n_jobs=None)
    "\n".join([*corpus.ids, repr(corpus)]).encode()


def _plain(corpus: Corpus) -> Any:
    """Return the word counts of each document, computed in Python."""
    starts, docs, values = (part.tolist() for part in corpus.postings)
    counts: list[dict[int, int]] = [{} for _ in range(corpus.n_documents)]
    for term in range(corpus.n_terms):
        for at in range(starts[term], starts[term + 1]):
            counts[docs[at]][term] = counts[docs[at]].get(term, 0) + values[at]
    return counts


def _require_same(corpus: Corpus, counts: Any) -> None:
    if [sum(one.values()) for one in counts] != corpus.lengths.tolist():
        raise Wrong("lengths", corpus.lengths)
    rows = corpus.counts
    for row, expected in enumerate(counts):
        found = rows[[row]]
        if dict(zip(found.indices.tolist(), found.data.tolist(), strict=True)) != expected:
            raise Wrong("counts", expected)


def _cut(corpus: Corpus, path: Path, *, is_known: bool) -> bool:
    """Truncate the file below the open index: every use must be refused."""
    index = corank.BM25().to_index(corpus)
    os.truncate(path, 10)
    uses = (
        lambda: index.search("tin"), lambda: index.scores("tin"), lambda: corpus.bags, lambda: corpus.counts,
        lambda: corpus.document_frequency, lambda: corpus.mean_length, lambda: corank.BM25().to_index(corpus),
        lambda: corpus.add(["a"], ["b"]), lambda: corpus.subset([0]),
        lambda: save_corpus(corpus, path.with_suffix(".x")),
    )  # fmt: skip
    for use in uses:
        try:
            use()
        except InputError:
            continue
        if is_known:  # parts of others may lie where they cannot be mapped
            raise Wrong("a cut file was read", use)
    return True
