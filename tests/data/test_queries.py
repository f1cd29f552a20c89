from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.data.queries import Queries
from corank.errors import InputError

ids = st.one_of(
    st.lists(st.integers(-3, 3)),
    st.lists(st.sampled_from(["a", "b", "ü", ""])),
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from("xy"))),
    st.lists(st.one_of(st.integers(0, 2), st.sampled_from("012"), st.none())),
)


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
        ([1, 2, np.nan, 3, 4], "qid is NaN at row 2"),
        (np.array([{}, {}, {}, {}, {}], dtype=object), "cannot be hashed"),
    ],
)
def test_bad_ids_get_one_sentence(qid, sentence):
    with pytest.raises(InputError, match=sentence):
        Queries.of(qid, 5)
