"""BM25: against scores written out word by word."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank.errors import InputError
from corank.text import BM25, Corpus

TEXTS = [
    "tin tin prices rise", "iron and tin", "", "wheat corn wheat wheat", "the price of corn", "tin", "iron iron ore",
    "Größe der Ähre", "ＧＲÖSSE straße",
]  # fmt: skip
QUERIES = ["tin prices", "wheat wheat corn", "unheard words", "", "grösse", "the iron tin ore"]


def by_hand(texts, query, k1, b, idf):
    """Words as `Words` makes them, without stemming and stop words."""
    from corank.text.words import fold

    docs = [[w for w in fold(text).replace(",", " ").split() if len(w) > 1] for text in texts]
    mean, n = sum(map(len, docs)) / len(docs), len(docs)
    scores = []
    for doc in docs:
        tf, score = Counter(doc), 0.0
        for word in [w for w in fold(query).split() if len(w) > 1]:
            df = sum(word in other for other in docs)
            if not tf[word]:
                continue
            worth = {
                "lucene": math.log(1 + (n - df + 0.5) / (df + 0.5)),
                "robertson": math.log((n - df + 0.5) / (df + 0.5)),
                "plain": math.log(n / df),
            }[idf]
            score += worth * tf[word] * (k1 + 1) / (tf[word] + k1 * (1 - b + b * len(doc) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("idf", ["lucene", "robertson", "plain"])
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.0, 0.3), (2.0, 0.0), (0.5, 1.0)])
def test_scores_are_those_written_out(idf, k1, b):
    corpus = Corpus.of(TEXTS, language=None, stop_words=None)
    index = BM25(k1, b, idf=idf).to_index(corpus)
    wanted = np.array([by_hand(TEXTS, query, k1, b, idf) for query in QUERIES])
    np.testing.assert_allclose(index.scores(QUERIES), wanted, rtol=1e-5, atol=1e-6)


def test_search_gives_the_best_of_all_scores():
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(60)]
    texts = [" ".join(rng.choice(words, rng.integers(0, 30), p=None)) for _ in range(300)]
    queries = [" ".join(rng.choice([*words, "never"], rng.integers(0, 6))) for _ in range(40)]
    index = BM25().to_index(Corpus.of(texts, language=None))
    scores = index.scores(queries).astype(np.float32)
    for k in (1, 7, 300, 1000):
        found = index.search(queries, k)
        assert found.documents.shape == (40, min(k, 300))
        for q in range(len(queries)):
            best = [d for d in np.argsort(-scores[q], kind="stable") if scores[q, d] > 0][:k]
            n = len(best)
            np.testing.assert_allclose(found.scores[q, :n], scores[q, best], rtol=1e-5)
            assert (found.documents[q, n:] == -1).all()
            assert np.isneginf(found.scores[q, n:]).all()
            assert (np.diff(found.scores[q, :n]) <= 0).all()
            assert len(set(found.documents[q, :n])) == n
    one = index.search(queries, 5, n_jobs=None)
    np.testing.assert_array_equal(one.documents, index.search(queries, 5).documents)


def test_equal_scores_come_in_the_order_of_documents():
    index = BM25().to_index(Corpus.of(["tin"] * 20 + ["tin tin"], language=None))
    found = index.search("tin", 4)
    assert found.documents[0].tolist() == [20, 0, 1, 2]


@pytest.mark.thin(3)
@parametrize_with_checks([BM25()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array, np.float32], ids=["dense", "csr", "float32"])
def test_rows_are_scored_as_documents_are(as_given, tmp_path):
    corpus = Corpus.of(TEXTS, language=None)
    asked = np.zeros(corpus.n_terms)
    asked[[corpus.terms.tolist().index(word) for word in ("tin", "corn")]] = 1, 2
    X = as_given(corpus.counts.toarray())
    model = BM25(0.9, 0.4, query=asked).fit(X)
    wanted = BM25(0.9, 0.4).to_index(corpus).scores("tin corn corn")[0]
    np.testing.assert_allclose(model.predict(X), wanted, rtol=1e-5)
    corank.save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(corank.load(tmp_path / "model.safetensors").predict(X), model.predict(X))


def test_it_is_a_prior_ranker():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (60, 12)).astype(float)
    asked = np.r_[1.0, 1.0, np.zeros(10)]
    y = (X[:, 0] + X[:, 1] - X[:, 5] > 1).astype(float)
    y[20:] = np.nan
    model = corank.base.ResidualRanker(BM25(query=asked), corank.RankRLS()).fit(X, y)
    assert model.slope_ > 0
    np.testing.assert_allclose(
        model.predict(X), model.slope_ * BM25(query=asked).fit(X).predict(X) + model.ranker_._score_rows(X)
    )


@pytest.mark.parametrize(
    ("model", "X", "sentence"),
    [
        (BM25(-1), [[1.0]], "k1"),
        (BM25(b=1.5), [[1.0]], "b "),
        (BM25(idf="okapi"), [[1.0]], "idf"),
        (BM25(query=[1.0, 2.0]), [[1.0]], "query has 2 numbers for 1 columns; pass one for each"),
        (BM25(query=[np.nan]), [[1.0]], "query must be a list of numbers"),
        (BM25(query=["tin"]), [[1.0]], "query must be a list of numbers"),
        (BM25(), [[-1.0]], "Negative values in data: X holds some, and BM25 takes counts"),
    ],
)
def test_what_is_wrong_is_said(model, X, sentence):
    with pytest.raises(InputError, match=sentence):
        model.fit(X)
