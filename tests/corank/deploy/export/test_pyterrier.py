"""A ranker in a PyTerrier pipeline ranks as it does by itself."""

from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.deploy.export import pyterrier_ranker
from corank.errors import InputError

pt = pytest.importorskip("pyterrier", reason="python-terrier is not installed")
pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTerrier's own use of pandas


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"qid": np.repeat(["1", "2", "3"], 6), "docno": [f"d{k}" for k in range(18)]})
    frame["query"], frame["score"], frame["rank"] = "x", rng.normal(size=18), list(range(6)) * 3
    frame["features"] = list(rng.normal(size=(18, 3)))
    return frame


@pytest.fixture
def qrels(results):
    judged = results[results["qid"] != "3"]
    label = [int(one[0] + one[1] > 0) for one in judged["features"]]
    return pandas.DataFrame({"qid": judged["qid"], "docno": judged["docno"], "label": label})


@pytest.mark.parametrize("prior", [False, True])
def test_scores_are_those_of_the_ranker_with_unjudged_rows(results, qrels, prior):
    step = pyterrier_ranker(corank.RankRLS(kernel="linear", alpha=0.1), prior=prior).fit(results, qrels)
    X, y = np.vstack(results["features"]), np.append(qrels["label"].to_numpy(float), [np.nan] * 6)
    given = {"prior": results["score"].to_numpy()} if prior else {}
    alone = corank.RankRLS(kernel="linear", alpha=0.1).fit(X, y, qid=results["qid"].to_numpy(), **given)
    found = step.transform(results).sort_values("docno", key=lambda one: one.str[1:].astype(int))
    np.testing.assert_allclose(found["score"], alone.predict(X, **given))
    for _, group in found.groupby("qid"):
        assert (group.sort_values("rank")["score"].diff().dropna() <= 0).all()


def test_it_is_a_step_of_a_pipeline(results, qrels):
    step = pyterrier_ranker(corank.RankRLS(kernel="linear"))
    source = pt.Transformer.from_df(results)
    step.fit(results, qrels)
    found = (source >> step).transform(results[["qid", "query"]].drop_duplicates())
    assert len(found) == 18


def test_bad_input_gets_a_sentence(results, qrels):
    step = pyterrier_ranker(corank.RankRLS())
    with pytest.raises(InputError, match="no column features"):
        step.fit(results.drop(columns="features"), qrels)
    with pytest.raises(InputError, match="no document of the results is judged"):
        step.fit(results, qrels.assign(docno="z"))
