from __future__ import annotations

import mmap
import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import corank
from corank.data.rows import as_rows
from corank.errors import InputError


def twice_stored():
    """[[0, 3], [4, 5]], unsorted, the 3 in two parts."""
    return sparse.csr_matrix(
        (np.array([1.0, 2.0, 5.0, 4.0]), np.array([1, 1, 1, 0]), np.array([0, 2, 4])), shape=(2, 2)
    )


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_entry_of_a_sparse_matrix_is_stored_once_and_sorted(index):
    given = twice_stored()
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    rows = as_rows(given)
    assert rows.data.tolist() == [3, 4, 5]
    assert rows.indices.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(rows.toarray(), given.toarray())
    assert given.nnz == 4, "the user's matrix is left as it was"


def test_room_behind_the_last_entry_is_not_read():
    X = sparse.csr_matrix((np.array([1.0, 2.0, np.nan]), np.array([0, 1, 0]), np.array([0, 1, 2])), shape=(2, 2))
    X.data = np.array([1.0, 2.0, np.nan])
    X.indices = np.array([0, 1, 0], dtype=np.int32)
    np.testing.assert_array_equal(as_rows(X).toarray(), [[1, 0], [0, 2]])


@pytest.mark.parametrize(
    "X",
    [
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1, 2], [3, 4]], dtype=">f4"),
        np.array([[1, 2], [3, 4]], dtype=np.float16),
        np.frombuffer(np.array([1.0, 2.0, 3.0, 4.0]).tobytes()).reshape(2, 2),
        pd.DataFrame({"a": [1, 3], "b": [2, 4]}, dtype="Int64"),
        pd.DataFrame({"a": [1, 3], "b": [2, 4]}, dtype="double[pyarrow]"),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        pa.table({"a": [1.0, 3.0], "b": [2.0, 4.0]}),
    ],
)
def test_tables_of_any_kind_are_c_ordered_floats(X):
    rows = as_rows(X)
    assert rows.dtype in (np.float32, np.float64)
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, [[1, 2], [3, 4]])


def test_names_of_columns_are_no_attributes_of_a_matrix():
    frame = pd.DataFrame({"format": [0.0, 1.0], "base": [2.0, 3.0], "data": [4.0, 5.0], "indptr": [6.0, 7.0]})
    assert as_rows(frame).tolist() == [[0.0, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0]]


def test_a_memory_map_is_not_copied(tmp_path):
    np.arange(4.0).tofile(tmp_path / "x")
    X = np.memmap(tmp_path / "x", dtype=np.float64, mode="r", shape=(2, 2))
    assert np.shares_memory(as_rows(X), X)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([[1, 2], [3]], "X has rows of different lengths; pass a table"),
        ([1, 2], r"X has shape \(2,\); pass a table of shape \(n_rows, n_features\)"),
        (np.zeros((0, 2)), r"X is empty: .*shape=\(0, 2\)"),
        ([["a", "b"]], r"X cannot be read as a table of numbers \(could not convert string to float: 'a'\); convert"),
        (np.array([[1j]]), r"\(Complex data not supported\); convert or drop values that are not numbers\.$"),
        (pd.DataFrame({"a": [1], "b": pd.Categorical(["x"])}), r"get_dummies\(X\) or, .* X.astype\(\{'b': 'category'"),
        (pd.DataFrame({"a": [1, pd.NA]}, dtype=object), r"X cannot be read as a table of numbers \(.*NAType"),
        (pd.DataFrame({"a": [1, None]}, dtype="Int64"), "X contains NaN at row 1, column 0; pass finite numbers"),
        (pl.LazyFrame({"a": [1.0]}), r"X is a LazyFrame, which has not been evaluated; pass X.collect\(\)\.$"),
        (pl.DataFrame({"a": [1.0, None]}), "X contains NaN at row 1, column 0"),
        (sparse.csr_matrix([[1.0, 0.0], [0.0, np.inf]]), "X contains infinity at row 1, column 1"),
    ],
)
def test_bad_rows_get_one_sentence(X, sentence):
    with pytest.raises(InputError, match=sentence):
        as_rows(X)


def test_a_wrong_type_is_a_type_error_too():
    with pytest.raises(TypeError, match="argument must be a string or a real number"):
        as_rows(np.array([[{}]], dtype=object))


def damaged(kind: str, part: str, at: int, value: int):
    X = sparse.random_array((30, 6), density=0.4, rng=np.random.default_rng(0), format="csr").asformat(kind)
    X.sort_indices()
    getattr(X, part)[at] = value
    return X


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("part", "at", "value", "fault"),
    [
        ("indices", 3, 2**30, "has a (column|row) index outside 0 to"),
        ("indices", 0, -1, "has a (column|row) index outside 0 to"),
        ("indices", -1, 40, "has a (column|row) index outside 0 to"),
        ("indptr", 2, 2**30, "has an invalid pointer"),
        ("indptr", 0, 1, "has an invalid pointer"),
        ("indptr", -1, 10**6, "has an invalid pointer"),
        ("indptr", 3, 0, "has an invalid pointer"),
    ],
)
def test_a_matrix_that_points_out_of_itself_is_refused(kind, part, at, value, fault):
    X = damaged(kind, part, at, value)
    with pytest.raises(InputError, match=f"X is an invalid {kind.upper()} matrix: (row|column) [0-9]+ {fault}"):
        as_rows(X)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: setattr(X, "indices", X.indices[:-1]),
        lambda X: setattr(X, "indices", X.indices.astype(float)),
        lambda X: setattr(X, "indices", X.indices.astype(">i4")),
        lambda X: setattr(X, "indptr", X.indptr[:-1]),
        lambda X: setattr(X, "indptr", X.indptr.astype(np.uint32)),
        lambda X: setattr(X, "data", X.data[None]),
    ],
)
def test_a_matrix_of_other_arrays_is_refused(change):
    X = damaged("csr", "indices", 0, 0)
    change(X)
    with pytest.raises(InputError, match="X is an invalid CSR matrix"):
        as_rows(X)


def test_what_a_matrix_says_of_its_order_is_not_believed():
    given = twice_stored()
    given.has_sorted_indices = given.has_canonical_format = True
    rows = as_rows(given)
    assert (rows.data.tolist(), rows.indices.tolist()) == ([3, 4, 5], [1, 0, 1])
    assert given.nnz == 4


def test_other_formats_are_converted_once():
    dense = np.array([[0.0, 3.0], [4.0, 5.0]])
    for kind in ("csc", "coo", "lil", "bsr", "dok", "dia"):
        np.testing.assert_array_equal(as_rows(sparse.csr_array(dense).asformat(kind)).toarray(), dense)


def test_a_file_that_was_cut_is_not_read(tmp_path):
    """To read behind the end of a mapped file would end the process."""
    np.arange(4000.0).tofile(tmp_path / "x")
    X = np.memmap(tmp_path / "x", dtype=np.float64, mode="r", shape=(1000, 4))
    assert as_rows(X[1:]).shape == (999, 4)
    os.truncate(tmp_path / "x", 100)
    for rows in (X, X[1:], np.asarray(X)[:, :2], np.asarray(X).T):
        with pytest.raises(InputError, match="was truncated from 32000 to 100 bytes after it was opened"):
            as_rows(rows)


def test_memory_of_no_file_is_taken():
    X = np.frombuffer(mmap.mmap(-1, 64)).reshape(4, 2)
    assert as_rows(X).shape == (4, 2)


def test_a_signalling_nan_is_named_without_a_warning():
    bits = np.array([0x3F800000, 0x7F800001], dtype=np.uint32).view(np.float32)  # 1, and a NaN that arithmetic tells of
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (sparse.csr_matrix((bits, ([0, 1], [1, 2])), shape=(2, 3)), bits.reshape(2, 1)):
            with pytest.raises(InputError, match=r"X contains NaN at row 1"):
                as_rows(X)


@pytest.mark.parametrize(("names", "shown"), [(["a", "b", "a"], "'a'"), ([0, 1, 0], "'0'")])
@pytest.mark.parametrize("kind", [float, int])
def test_columns_of_the_same_name_are_refused_in_a_sentence(names, shown, kind):
    frame = pd.DataFrame(np.arange(12).reshape(4, 3).astype(kind), columns=names)
    model = corank.RankRLS().fit(frame.to_numpy(), range(4))
    for refused in (corank.RankRLS().fit, lambda X, y: model.predict(X), corank.RankingData.of):
        with pytest.raises(InputError, match=f"X has 2 columns named {shown}; rename them"):
            refused(frame, range(4))
