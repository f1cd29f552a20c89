"""A small pool of made-up stories about three topics."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from corank.base.smooth import NeighborSmoother
from experiments.few_judgements.problems import TopicPool
from helpers.texts import made_texts


@pytest.fixture(scope="session")
def pool():
    rng = np.random.default_rng(0)
    texts, about = made_texts(300, rng)
    vectoriser = TfidfVectorizer().fit(texts)
    X = vectoriser.transform(texts)
    named = {topic: (X @ vectoriser.transform([topic]).T).toarray()[:, 0] for topic in about}
    with pytest.warns(UserWarning, match="X has 300 rows"):
        smooth = NeighborSmoother(n_components=20, random_state=0).fit(X).transform(X)
    return TopicPool("made up", X, smooth, np.arange(300) % 3 == 0, about, named)
