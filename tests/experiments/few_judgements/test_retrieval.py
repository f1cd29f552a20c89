from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from experiments.few_judgements.retrieval import BM25Index, Feedback

TEXTS = ["tin quarry tin tin", "gold quarry", "rice field paddy rice", "gold gold price price tin", "wheat"]
QUERIES = ["tin price tin", "rice unknown"]


@pytest.fixture(scope="module")
def index():
    return BM25Index.of(TEXTS, QUERIES, 1.2, 0.75)


def weights_by_hand():
    counts = [Counter(text.split()) for text in TEXTS]
    mean = np.mean([sum(of.values()) for of in counts])
    found = []
    for of in counts:
        k = 1.2 * (0.25 + 0.75 * sum(of.values()) / mean)
        n = {word: sum(word in other for other in counts) for word in of}
        found.append({w: np.log(1 + (5 - n[w] + 0.5) / (n[w] + 0.5)) * 2.2 * tf / (tf + k) for w, tf in of.items()})
    return found


def test_bm25_is_its_sum_over_words(index):
    docs = weights_by_hand()
    expected = [
        [sum(n * doc.get(word, 0.0) for word, n in Counter(query.split()).items()) for doc in docs] for query in QUERIES
    ]
    np.testing.assert_allclose(index.scores(), expected, rtol=1e-6)


def test_feedback_moves_the_query_word_by_word(index):
    docs = weights_by_hand()
    unit = [{w: v / np.sqrt(sum(x * x for x in doc.values())) for w, v in doc.items()} for doc in docs]
    moved = {"tin": 2 / np.sqrt(5), "price": 1 / np.sqrt(5)}
    for doc, share in ((unit[0], 0.5), (unit[3], 0.5), (unit[1], -0.3)):
        for word, value in doc.items():
            moved[word] = moved.get(word, 0.0) + share * value
    kept = sorted(moved, key=lambda word: -abs(moved[word]))[:3]
    expected = [sum(moved[word] * doc.get(word, 0.0) for word in kept) for doc in docs]
    found = index.feedback(0, np.array([0, 3]), np.array([1]), [Feedback(0.0, 0.0, 9), Feedback(1.0, 0.3, 3)])
    np.testing.assert_allclose(found[1], expected, rtol=1e-6)


def test_without_judged_documents_the_order_is_that_of_bm25(index):
    none = np.array([], dtype=np.int64)
    found = index.feedback(0, none, none, [Feedback(1.0, 0.5, 100)])
    np.testing.assert_allclose(found[0], index.scores()[0] / np.sqrt(5))
