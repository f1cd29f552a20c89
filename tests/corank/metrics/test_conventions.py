from __future__ import annotations

import dataclasses

import pytest

from corank.errors import InputError
from corank.metrics import CONVENTIONS, Convention, evaluate
from corank.metrics.conventions import find_convention


def test_each_is_found_by_its_name_and_a_record_is_taken_as_it_is():
    assert [find_convention(name).name for name in CONVENTIONS] == list(CONVENTIONS)
    mine = Convention("mine", gain="linear")
    assert find_convention(mine) is mine


def test_an_unknown_one_lists_the_known_ones():
    with pytest.raises(InputError, match="'trec-eval' is not a known convention"):
        evaluate([1], [1], convention="trec-eval")
    with pytest.raises(InputError, match="choose one of corank, letor4, letor3"):
        evaluate([1], [1], convention="xyz")


def test_the_same_ranking_scores_differently_under_each():
    y, scores, qid = [2, 0, 1, 0, 0, 1], [1, 3, 2, 1, 2, 1], [1, 1, 1, 2, 2, 3]
    docids = ["a", "b", "c", "d", "e", "f"]
    means = {name: evaluate(y, scores, qid, "nDCG@3", convention=name, docids=docids)["nDCG@3"].mean
             for name in CONVENTIONS}  # fmt: skip
    dcg = (1 / 1.584962500721156 + 3 / 2) / (3 + 1 / 1.584962500721156)
    assert means["corank"] == pytest.approx((dcg + 1) / 2)
    assert means["lightgbm"] == pytest.approx((dcg + 1 + 1) / 3)
    assert means["letor4"] == pytest.approx((1 + 3 / 1.584962500721156) / 4 / 3)
    assert means["letor3"] == means["letor4"]


def test_a_derived_one_changes_one_choice():
    shorter = dataclasses.replace(CONVENTIONS["letor4"], name="letor4 without the short rule", short_ndcg="pad")
    y, scores = [1, 0], [1, 0]
    assert evaluate(y, scores, None, "nDCG@3", convention="letor4")["nDCG@3"].mean == 0.0
    assert evaluate(y, scores, None, "nDCG@3", convention=shorter)["nDCG@3"].mean == 1.0


def test_short_precision_differs_between_letor_3_and_4():
    assert evaluate([1, 0], [1, 0], None, "P@4", convention="letor4")["P@4"].mean == 0.25
    assert evaluate([1, 0], [1, 0], None, "P@4", convention="letor3")["P@4"].mean == 0.0
