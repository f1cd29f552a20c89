from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold

from corank.errors import InputError
from corank.metrics import evaluate, scorer


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    return X, np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=200)), 0, 2), np.repeat(np.arange(20), 10)


@pytest.mark.parametrize(("name", "sign"), [("nDCG@5", 1), ("disagreement", -1)])
def test_grid_search_hands_query_ids_to_the_metric(problem, name, sign):
    X, y, qid = problem
    splits = list(GroupKFold(4).split(X, y, qid))
    score = scorer(name)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(Ridge(), {"alpha": [0.1, 1000.0]}, scoring=score, cv=splits).fit(X, y, qid=qid)
    for k, (train, test) in enumerate(splits):
        scores = Ridge(alpha=0.1).fit(X[train], y[train]).predict(X[test])
        expected = sign * evaluate(y[test], scores, qid[test], name)[name].mean
        assert search.cv_results_[f"split{k}_test_score"][0] == pytest.approx(expected)


def test_making_a_scorer_leaves_the_configuration_alone_and_it_can_be_pickled(problem):
    X, y, _ = problem
    before = sklearn.get_config()
    score = pickle.loads(pickle.dumps(scorer("AP", convention="letor4")))
    assert sklearn.get_config() == before
    model = Ridge().fit(X, y)
    assert score(model, X, y) == evaluate(y, model.predict(X), None, "AP", convention="letor4")["AP"].mean


def test_a_wrong_name_is_noticed_at_once():
    with pytest.raises(InputError, match="not a known metric"):
        scorer("nDGC@10")
    with pytest.raises(InputError, match="not a known convention"):
        scorer("nDCG@10", convention="letor5")
