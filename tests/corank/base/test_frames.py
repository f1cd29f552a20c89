"""Frames of floats take a short path to an array; it gives the rows and the errors of the long one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from corank import SPD
from corank.data.rows import as_rows
from corank.errors import InputError

VALUES = np.arange(12.0).reshape(6, 2)
NAMES = ["a", "b"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frame_of_floats_keeps_its_type(frame, dtype):
    rows = as_rows(frame({name: VALUES[:, j].astype(dtype) for j, name in enumerate(NAMES)}))
    assert rows.dtype == dtype
    assert rows.flags.c_contiguous
    assert rows.tolist() == VALUES.tolist()


def test_columns_of_two_types_become_float64():
    frame = pd.DataFrame({"a": VALUES[:, 0].astype(np.float32), "b": VALUES[:, 1]})
    assert as_rows(frame).dtype == np.float64


def test_sparse_columns_stay_sparse():
    frame = pd.DataFrame([[0.0, 2.0], [1.0, 0.0]], columns=NAMES).astype(pd.SparseDtype(float, 0.0))
    assert as_rows(frame).toarray().tolist() == [[0.0, 2.0], [1.0, 0.0]]


def test_missing_value_of_a_frame_is_named():
    frame = pd.DataFrame(VALUES, columns=NAMES)
    frame.loc[3, "b"] = np.nan
    with pytest.raises(InputError, match="NaN at row 3, column 1"):
        as_rows(frame)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_in_another_order_are_refused(frame):
    columns = {name: VALUES[:, j] for j, name in enumerate(NAMES)}
    model = SPD().fit(frame(columns), [1, 0, 1, 0, 1, 0], qid=[0] * 6)
    np.testing.assert_allclose(model.predict(frame(columns)), VALUES @ model.coef_)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame({name: columns[name] for name in reversed(NAMES)}))
