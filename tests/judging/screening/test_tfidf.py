from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from corank.judging.screening.tfidf import TfidfVocabulary

OTHERS = ["tin gold", "gold tin", "silver", "", "tin unknown gold", "mine mine mine", "Tin, gold"]


def held_against(texts, others):
    """Products of scikit-learn's rows, which do not depend on the order of columns."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95)
    try:
        expected = vectorizer.fit_transform(texts)
    except ValueError:
        assert TfidfVocabulary.learn(texts)[1].nnz == 0
        return
    words, rows = TfidfVocabulary.learn(texts)
    assert rows.dtype == np.float32
    assert rows.nnz == expected.nnz
    np.testing.assert_allclose((rows @ rows.T).toarray(), (expected @ expected.T).toarray(), atol=1e-5)
    later, wanted = words.rows(others), vectorizer.transform(others)
    assert later.nnz == wanted.nnz
    np.testing.assert_allclose((rows @ later.T).toarray(), (expected @ wanted.T).toarray(), atol=1e-5)
    np.testing.assert_allclose((later @ later.T).toarray(), (wanted @ wanted.T).toarray(), atol=1e-5)


@pytest.mark.parametrize(
    "texts",
    [
        ["tin mine", "gold and tin", "a tin mine and a gold mine", "", "x", "silver_2 Über straße İ"],
        ["tin", "tin", "gold"],
        ["same"] * 30 + ["other"],
        ["tin-mine's ore: 3.14, 100%", "tin mine\ns ore\t3 14 100"],
        ["mine " * 40, "mine tin " * 3],
    ],
)
def test_rows_equal_those_of_scikit_learn(texts):
    held_against(texts, OTHERS)


WORD = st.sampled_from(["tin", "Gold", "mine", "ore", "a", "of", "x1", "É", "-", "ﬁn", "ß"])
TEXT = st.lists(WORD, max_size=12).map(" ".join)


@given(st.lists(TEXT, min_size=1, max_size=12), st.lists(TEXT, min_size=1, max_size=4))
def test_other_texts_equal_those_of_scikit_learn(texts, others):
    held_against(texts, others)
