from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import CONVENTIONS
from corank.metrics.judgements import Judgements


def judge(y, scores, qid=None, convention="corank", **options):
    return Judgements.of(y, scores, qid, CONVENTIONS[convention], **options)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("abc"), st.booleans()), min_size=1))
def test_rows_are_grouped_and_unjudged_ones_dropped(rows):
    y = [np.nan if hidden else float(grade) for grade, _, _, hidden in rows]
    judged = judge(y, [score for _, score, _, _ in rows], [query for _, _, query, _ in rows])
    assert judged.n_unjudged_rows == sum(hidden for *_, hidden in rows)
    for q, query in enumerate(judged.ids):
        own = slice(judged.starts[q], judged.starts[q + 1])
        kept = [(float(grade), float(score)) for grade, score, name, hidden in rows if name == query and not hidden]
        assert list(zip(judged.grades[own], judged.scores[own], strict=True)) == kept
        ranked = list(zip(judged.ranked.grades[own], judged.ranked.scores[own], strict=True))
        assert ranked == sorted(kept, key=lambda row: -row[1])


def test_rows_that_are_grouped_already_are_not_copied():
    y, scores = np.array([1.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0])
    judged = judge(y, scores, [5, 5, 3])
    assert judged.grades is y
    assert judged.scores is scores


def test_trec_eval_takes_unjudged_rows_as_irrelevant_and_ties_by_falling_document_id():
    judged = judge([np.nan, 1, 2, 3], [1, 1, 1, 1], ["q", "q", "q", "p"], "trec_eval", docids=["d1", "d9", "d10", "d"])
    # as strings d9 > d10 > d1
    assert judged.grades.tolist() == [1, 2, 0, 3]
    assert judged.n_unjudged_rows == 1


def test_scores_beyond_single_precision_are_not_taken_for_missing_rows():
    judged = judge([1, 0], [-1e300, 1e300], None, "trec_eval", docids=["a", "b"])
    assert np.isfinite(judged.scores).all()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 0], [1]), {}, "y has 2 grades and scores has 1 numbers; pass one of each per row"),
        (([], []), {}, "y and scores are empty"),
        (([1, 0], [1, np.nan]), {}, "scores is NaN at row 1; pass a finite number"),
        (([1, 0], [-np.inf, 1]), {}, "scores is infinite at row 0"),
        (([1, np.inf], [0, 1]), {}, "y contains infinity at row 1"),
        ((["a", "b"], [0, 1]), {}, "y cannot be read as numbers"),
        (([0, 1], ["a", "b"]), {}, "scores cannot be read as numbers"),
        (([0, 1], [[0, 1], [1, 0]]), {}, r"scores has shape \(2, 2\)"),
        ((5, [0, 1]), {}, "y has shape"),
        (([0, 1, 0, 1], [0, 1, 2, 3], [2, 2]), {}, "these look like group sizes"),
        (([0, 1], [0, 1]), {"convention": "trec_eval"}, "orders ties by document id; pass docids"),
        (([0, 1], [0, 1]), {"convention": "trec_eval", "docids": ["a"]}, r"docids has shape \(1,\) for 2 rows"),
        (([0, 1], [0, 1]), {"retrieved": [1, 0]}, "pass 2 booleans, one per row"),
        (([0, 1], [0, 1]), {"retrieved": [True]}, "pass 2 booleans, one per row"),
    ],
)
def test_bad_input_is_named(arguments, options, message):
    with pytest.raises(InputError, match=message):
        judge(*arguments, **options)


def test_scores_of_rows_that_were_not_retrieved_are_ignored():
    judged = judge([1, 0], [np.nan, 1], retrieved=[False, True])
    assert judged.scores.tolist() == [-np.inf, 1]
