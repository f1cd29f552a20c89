from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from corank_lab.screening import views as tfidf
from corank_lab.screening.views import TfidfVocabulary, join_columns
from helpers.records import tfidf_products

OTHERS = ["tin gold", "gold tin", "silver", "", "tin unknown gold", "mine mine mine", "Tin, gold"]


def directions(rows):
    """Rows of norm 1."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 1e-7, norms, 1.0)


def without_diagonal(products):
    return products - np.diag(np.diag(products))


def held_against(texts, others):
    """Products of scikit-learn's rows; a pair of one text only counts in its norm."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95)
    words, blocks = TfidfVocabulary.learn(texts)
    rows = join_columns(blocks)
    assert rows.dtype == np.float32
    assert rows.indices.dtype == np.int32
    try:
        expected = vectorizer.fit_transform(texts)
    except ValueError:
        assert rows.nnz == 0
        return
    products = (expected @ expected.T).toarray()
    np.testing.assert_allclose(without_diagonal((rows @ rows.T).toarray()), without_diagonal(products), atol=1e-5)
    columns = [
        term for term, at in vectorizer.vocabulary_.items()
        if " " not in term or expected[:, at].nnz > 1
    ]  # fmt: skip
    assert rows.nnz == expected[:, [vectorizer.vocabulary_[term] for term in columns]].nnz
    # other texts: norms leave out the pairs of one text
    shared = np.zeros(expected.shape[1], dtype=bool)
    shared[[vectorizer.vocabulary_[term] for term in columns]] = True
    wanted = directions(vectorizer.transform(others).toarray() * shared)
    later = words.rows(others).toarray()
    np.testing.assert_allclose(rows @ later.T, expected @ wanted.T, atol=1e-5)
    np.testing.assert_allclose(later @ later.T, wanted @ wanted.T, atol=1e-5)


@pytest.mark.parametrize("part", [1, 4, 2_000_000])
@pytest.mark.parametrize(
    "texts",
    [
        ["tin mine", "gold and tin", "a tin mine and a gold mine", "", "x", "silver_2 Über straße İ"],
        ["tin", "tin", "gold"],
        ["same"] * 30 + ["other"],
        ["tin-mine's ore: 3.14, 100%", "tin mine\ns ore\t3 14 100"],
        ["mine " * 40, "mine tin " * 3],
        ["", "a"],
    ],
)
def test_rows_equal_those_of_scikit_learn(texts, part, monkeypatch):
    monkeypatch.setattr(tfidf, "PART", part)
    held_against(texts, OTHERS)


WORD = st.sampled_from(["tin", "Gold", "mine", "ore", "a", "of", "x1", "É", "-", "ﬁn", "ß"])
TEXT = st.lists(WORD, max_size=12).map(" ".join)


@pytest.mark.long
@given(st.lists(TEXT, min_size=1, max_size=12), st.lists(TEXT, min_size=1, max_size=4))
def test_other_texts_equal_those_of_scikit_learn(texts, others):
    held_against(texts, others)


def test_products_follow_the_definition():
    texts = [
        "Randomised trials of statins", "a randomized trial of a statin; statins in trials",
        "statin trials, not randomised",
        "mining of tin", "tin mines and mining", "",
    ]  # fmt: skip
    rows = join_columns(TfidfVocabulary.learn(texts)[1])
    expected = tfidf_products(texts)
    np.testing.assert_allclose(without_diagonal((rows @ rows.T).toarray()), without_diagonal(expected), atol=1e-6)
    assert expected[3, 4] > 0.2
    assert (rows @ rows.T).diagonal().max() < 1 + 1e-6
