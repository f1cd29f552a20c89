from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.data.queries import Queries
from corank.errors import InputError, UsageWarning
from helpers.columns import COLUMNS

ids = st.one_of(
    st.lists(st.integers(-3, 3)),
    st.lists(st.sampled_from(["a", "b", "ü", ""])),
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from("xy"))),
    st.lists(st.one_of(st.integers(0, 2), st.sampled_from("012"), st.binary(max_size=2))),
    st.lists(st.one_of(st.text("a\0", max_size=2), st.integers(2**53, 2**53 + 2), st.just(0.5))),
    st.lists(st.integers(-(2**64), 2**64)),
    st.lists(st.lists(st.integers(0, 1), max_size=2).map(tuple)),
)


@pytest.mark.filterwarnings("ignore:qid holds the number")
@given(ids)
def test_grouping_equals_a_dictionary_of_lists(qid):
    queries = Queries.of(qid, len(qid))
    groups: dict = {}
    for row, q in enumerate(qid):
        groups.setdefault(q, []).append(row)
    assert list(queries.ids) == list(groups)
    found = [queries.order[a:b].tolist() for a, b in zip(queries.starts, queries.starts[1:], strict=False)]
    assert found == list(groups.values())
    assert [queries.ids[c] for c in queries.codes] == qid


def test_no_qid_is_one_query():
    queries = Queries.of(None, 3)
    assert len(queries) == 1
    assert queries.sizes.tolist() == [3]
    assert len(Queries.of(None, 0)) == 0


def test_numbers_beside_strings_stay_apart():
    assert list(Queries.of([1, "1", 1.0], 3).ids) == [1, "1"]


@pytest.mark.parametrize(
    ("qid", "sentence"),
    [
        ([1, 2], "qid has 2 values for 5 rows of X; pass one query id per row."),
        ([2, 3], r"look like group sizes, since they sum to 5: use numpy.repeat"),
        (np.ones((5, 2)), r"qid has shape \(5, 2\); pass one query id per row"),
        ([1, 2, np.nan, 3, 4], r"qid is missing .* at row 2; every row needs a query id"),
        (np.array([[1], [2], [3], [4], [5]], dtype=object), r"qid has shape \(5, 1\)"),
        (np.array([{}, {}, {}, {}, {}], dtype=object), "cannot be hashed"),
    ],
)
def test_bad_ids_get_one_sentence(qid, sentence):
    with pytest.raises(InputError, match=sentence):
        Queries.of(qid, 5)


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_any_library_group_alike_and_may_not_miss_an_id(column):
    for wanted in (["b", "a", "b"], [3, 1, 3]):
        found = Queries.of(column(wanted), 3)
        assert found.ids.tolist() == wanted[:2]
        assert found.codes.tolist() == [0, 1, 0]
        with pytest.raises(InputError, match=r"qid is missing .* at row 1"):
            Queries.of(column([wanted[0], None, wanted[2]]), 3)


@given(st.lists(st.integers(0, 3), min_size=1), st.data())
def test_ranks_count_the_better_rows(qid, data):
    scores = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=len(qid), max_size=len(qid)))
    ranks = Queries.of(qid, len(qid)).ranks(np.array(scores))
    for i, rank in enumerate(ranks):
        rivals = [j for j in range(len(qid)) if qid[j] == qid[i]]
        assert rank == 1 + sum(scores[j] > scores[i] or (scores[j] == scores[i] and j < i) for j in rivals)


@pytest.mark.parametrize(
    "qid", [[1, 2.5], ["a", "b"], [True, False], [2**62, 2**62 + 1], np.array([1, 2], dtype=object)]
)
def test_plain_ids_are_the_ids(qid):
    plain = Queries.of(qid, 2).plain_ids("a store")
    assert plain.dtype.kind in "iufUb"
    assert plain.tolist() == list(qid)


@pytest.mark.parametrize("qid", [[1, "1"], [b"a", b"b"], [(1, 2), (3, 4)], ["a", "a\0"], [2**70, 1], [2**53 + 1, 0.5]])
def test_ids_that_a_file_would_change_are_refused(qid):
    with pytest.raises(InputError, match="qid holds ids that a store cannot store"):
        Queries.of(qid, 2).plain_ids("a store")


@pytest.mark.parametrize("qid", [[1, "1", 1.0], [1.0, 2, "1"], np.array(["a", 7, "7"], dtype=object)])
def test_a_number_and_a_text_that_look_the_same_are_named(qid):
    with pytest.warns(UsageWarning, match=r"qid holds the number \d(.0)? and the text '\d'"):
        queries = Queries.of(qid, 3)
    assert len(queries) == len(set(qid))


def test_other_mixtures_of_ids_pass_in_silence(recwarn):
    assert len(Queries.of([1, "a", 2.5, "2"], 4)) == 4
    assert not recwarn
