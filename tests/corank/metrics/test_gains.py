from __future__ import annotations

import numpy as np
import pytest

from corank.core.lists.ranked import EXPONENTIAL, LINEAR, RELEVANT
from corank.errors import InputError
from corank.metrics import CONVENTIONS, evaluate
from corank.metrics import measures as module
from corank.metrics.judgements import Judgements


@pytest.mark.parametrize("convention", ["corank", "letor4", "sklearn"])
@pytest.mark.parametrize("gain", [EXPONENTIAL, LINEAR, RELEVANT])
def test_selecting_and_sorting_agree(monkeypatch, convention, gain):
    rng = np.random.default_rng(1)
    qid = rng.integers(0, 40, 2000)
    y, scores = rng.integers(0, 5, 2000).astype(float), rng.integers(0, 12, 2000).astype(float)
    judged = Judgements.of(y, scores, qid, CONVENTIONS[convention], retrieved=rng.random(2000) < 0.9)
    discounts = module.discounts_of(judged, 10)
    selected = module.discounted_gains(judged, gain, discounts, 2.0)
    monkeypatch.setattr(module, "SELECT_AT_MOST", 0)
    for one, other in zip(selected, module.discounted_gains(judged, gain, discounts, 2.0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_deep_lists_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(2)
    y, scores, qid = rng.integers(0, 3, 5000), rng.integers(0, 50, 5000), rng.integers(0, 9, 5000)
    names = ["nDCG@10", "nDCG@100", "nDCG", "P@80", "AP", "kendall"]
    one, three = (evaluate(y, scores, qid, names, n_jobs=n) for n in (1, 3))
    for name in names:
        assert one[name].values.tolist() == three[name].values.tolist()


@pytest.mark.parametrize("name", ["nDCG@10", "nDCG", "DCG@3", "MeanNDCG", "ERR"])
def test_negative_grades_have_no_gain(name):
    with pytest.raises(InputError, match="negative grade -1 in query b"):
        evaluate([1, 0, -1], [1, 2, 3], ["a", "a", "b"], name)
    # measures of pairs do not mind
    assert evaluate([1, 0, -1], [1, 2, 3], None, "disagreement")["disagreement"].mean == 1.0


def test_trec_eval_counts_negative_grades_as_nothing():
    found = evaluate([1, -2], [1, 2], None, "nDCG", convention="trec_eval", docids=["a", "b"])
    assert found["nDCG"].mean == pytest.approx(1 / np.log2(3))


def test_grades_whose_gain_is_infinite_are_refused():
    with pytest.raises(InputError, match=r"grade 5000 in query 0, whose gain 2\^y - 1"):
        evaluate([5000, 0], [1, 2], None, "nDCG@10")
    assert evaluate([5000, 0], [1, 2], None, "nDCG@10", convention="sklearn")["nDCG@10"].mean < 1.0
