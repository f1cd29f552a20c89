"""The same column as list, array, pandas and polars series; None is a missing value."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


def _arrow_backed(values):
    return pd.Series(pa.array(values), dtype=pd.ArrowDtype(pa.array(values).type))


def _nullable(values):
    return pd.array(values, dtype="Int64" if isinstance(values[0], int) else "string")


COLUMNS = [
    list,
    tuple,
    lambda values: np.array(values, dtype=object),
    lambda values: pd.Series(values),
    lambda values: pd.Series(values, dtype=object),
    lambda values: pd.Series(values, dtype="category"),
    lambda values: pd.Series(_nullable(values)),
    _arrow_backed,
    lambda values: pl.Series(values),
    lambda values: pa.array(values),
]
