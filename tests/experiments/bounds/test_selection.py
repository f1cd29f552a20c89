"""Choice of alpha by D: every rule against a search of scikit-learn with the scorer of the library."""

from __future__ import annotations

import numpy as np
import pytest

from corank import QuerySearchCV, RankRLS, evaluate, make_ranking
from corank.metrics.bounds import DistanceScorer
from experiments.bounds import selection


def test_errors_and_distance_choose_what_a_search_with_the_scorer_chooses(monkeypatch):
    made = make_ranking(60, 8, random_state=0)
    monkeypatch.setattr(selection, "ALPHAS", (0.01, 1.0, 100.0, 1e4))
    values = selection.choose(lambda: made, 10, [0, 1])
    several = [q for q in range(60) if len(np.unique(made.y[made.qid == q])) > 1]
    queries = np.random.default_rng([0, 1]).permutation(several)
    judged, rest = np.isin(made.qid, queries[:10]), np.isin(made.qid, queries[10:])
    train = made.X[judged], made.y[judged], made.qid[judged]
    scorer = DistanceScorer(*train, (made.X[rest], made.qid[rest]))
    search = QuerySearchCV(RankRLS(), {"alpha": list(selection.ALPHAS)}, metric=scorer)
    scores = search.fit(train[0], train[1], qid=train[2]).predict(made.X[rest])
    expected = evaluate(made.y[rest], scores, made.qid[rest], "nDCG@10")["nDCG@10"].mean
    assert values["errors + D"]["nDCG@10"] == pytest.approx(expected)
