"""tune_bm25 against a grid of single searches and folds written out."""

from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank.metrics import evaluate
from corank.text import BM25, Corpus, tune_bm25

RNG = np.random.default_rng(0)
WORDS = [f"w{k}" for k in range(40)]
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(3, 60), p=np.arange(40, 0, -1) / 820)) for _ in range(80)]
QUERIES = [" ".join(RNG.choice(WORDS, 3)) for _ in range(9)]
RELEVANT = [sorted(RNG.choice(80, RNG.integers(1, 6), replace=False).tolist()) for _ in QUERIES]
CORPUS = Corpus.of(TEXTS, language=None, stop_words=None)


def by_hand(k1, b):
    found = []
    for query, ids in zip(QUERIES, RELEVANT, strict=True):
        y = np.isin(np.arange(80), ids).astype(float)
        scores = BM25(k1, b).to_index(CORPUS).scores(query)[0]
        found.append(evaluate(y, scores, None, "AP")["AP"].mean)
    return np.array(found)


def test_the_grid_and_the_folds_are_those_written_out():
    found = tune_bm25(CORPUS, QUERIES, RELEVANT, k1s=(0.2, 1.2, 5.0), bs=(0.0, 1.0), cv=3, random_state=4)
    values = {at: by_hand(*at) for at in found.grid}
    for at, mean in found.grid.items():
        assert mean == pytest.approx(values[at].mean())
    best = max(values, key=lambda at: values[at].mean())
    assert (found.model.k1, found.model.b) == best
    # every query left out by itself
    alone = tune_bm25(CORPUS, QUERIES, RELEVANT, k1s=(0.2, 1.2, 5.0), bs=(0.0, 1.0), cv=99)
    held = []
    for q in range(len(QUERIES)):
        chosen = max(values, key=lambda at: np.delete(values[at], q).mean())
        held.append(values[chosen][q])
    assert alone.held_out == pytest.approx(np.mean(held))
    assert min(found.grid.values()) - 0.2 < found.held_out <= max(v.max() for v in values.values())


def test_queries_without_a_relevant_document_are_left_out():
    more = tune_bm25(CORPUS, [*QUERIES, "w1", "w2"], [*RELEVANT, [], ["not there"]], k1s=(1.2,), bs=(0.75,))
    assert more.grid == tune_bm25(CORPUS, QUERIES, RELEVANT, k1s=(1.2,), bs=(0.75,)).grid


@pytest.mark.parametrize(
    ("queries", "relevant", "how", "sentence"),
    [
        (QUERIES, RELEVANT[:-1], {}, "relevant have 9 and 8 entries"),
        ("w1 w2", [[1]], {}, "pass a list of texts"),
        (QUERIES, ["1"] * 9, {}, "pass a list of texts, and a list of ids"),
        (QUERIES, [[]] * 9, {}, "0 of 9 queries have a relevant document in the corpus; pass at least two"),
        (QUERIES, RELEVANT, {"k1s": ()}, "k1s or bs is empty"),
        (QUERIES, RELEVANT, {"cv": 1}, "cv"),
        (QUERIES, RELEVANT, {"bs": (1.5,)}, "b"),
    ],
)
def test_bad_input_gets_one_sentence(queries, relevant, how, sentence):
    with pytest.raises(InputError, match=sentence):
        tune_bm25(CORPUS, queries, relevant, **how)
