from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from corank.data import frames
from corank.data.frames import parquet_columns, read_parquet, write_parquet
from corank.errors import InputError


def frame(n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 9, n), "c": rng.random(n) < 0.5})
    table["label"] = rng.integers(0, 3, n)
    table["qid"] = [f"q{k // 7}" for k in range(n)]
    table["doc"] = [f"d{k}" for k in range(n)]
    return table


@pytest.mark.parametrize("writer", ["pandas", "polars"])
def test_frames_of_other_libraries_are_read(tmp_path: Path, writer: str) -> None:
    table = frame()
    table.to_parquet(tmp_path / "t") if writer == "pandas" else pl.from_pandas(table).write_parquet(tmp_path / "t")
    rows = read_parquet(tmp_path / "t", docid="doc")
    np.testing.assert_array_equal(rows.X, table[["a", "b", "c"]].astype(float))
    assert rows.names == ["a", "b", "c"]
    assert rows.y.tolist() == table["label"].tolist()
    assert rows.qid.tolist() == table["qid"].tolist()
    assert rows.docids.tolist() == table["doc"].tolist()
    assert len(rows.data.queries) == table["qid"].nunique()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("qid", [None, "int", "str"])
def test_what_is_written_reads_back_and_pandas_agrees(
    tmp_path: Path, dtype: type, qid: str | None, monkeypatch
) -> None:
    monkeypatch.setattr(frames, "ROWS_AT_ONCE", 16)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 4)).astype(dtype), rng.integers(0, 3, 60).astype(float)
    y[::7] = np.nan
    ids = None if qid is None else rng.integers(0, 5, 60).astype(qid)
    write_parquet(tmp_path / "t", X, y, ids, [f"d{k}" for k in range(60)])
    rows = read_parquet(tmp_path / "t", qid=None if qid is None else "qid", docid="docid")
    assert rows.X.dtype == dtype
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)
    assert (rows.qid is None) if qid is None else (rows.qid.tolist() == ids.tolist())
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "t")[["f1", "f2", "f3", "f4"]], X)
    assert parquet_columns(tmp_path / "t")[0] == "label"


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {}, r"column 'doc' holds .*string, not numbers; drop it"),
        ({}, {"docid": "doc", "y": "grade"}, r"has no column 'grade'; name one of .* with y="),
        ({}, {"docid": "doc", "qid": "topic"}, r"has no column 'topic'"),
        ({"a": [None] + [1.0] * 49}, {"docid": "doc"}, "'a' is null at row 0|X contains NaN at row 0"),
        ({"a": [np.inf] + [1.0] * 49}, {"docid": "doc"}, "X contains infinity at row 0, column 0"),
        ({"qid": [None] + ["x"] * 49}, {"docid": "doc"}, "column 'qid' is null at row 0"),
        ({"label": ["x"] * 50}, {"docid": "doc"}, "label column 'label' holds"),
    ],
)
def test_faults_are_named(tmp_path: Path, change: dict, options: dict, message: str) -> None:
    frame().assign(**change).to_parquet(tmp_path / "t")
    with pytest.raises(InputError, match=message):
        read_parquet(tmp_path / "t", **options)


def test_a_null_label_is_an_unscored_row(tmp_path: Path) -> None:
    pl.DataFrame({"x": [1, 2], "label": [None, 1], "qid": [1, 1]}).write_parquet(tmp_path / "t")
    np.testing.assert_array_equal(read_parquet(tmp_path / "t").y, [np.nan, 1])


def test_files_that_are_no_parquet_are_named(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1 qid:1 1:1\n")
    with pytest.raises(InputError, match="is not a readable Parquet file"):
        read_parquet(tmp_path / "t")
    with pytest.raises(InputError, match="there is no file"):
        read_parquet(tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": sparse.csr_matrix([[1.0], [0.0]])}, "X is sparse, and Parquet keeps dense tables"),
        ({"docids": ["a"]}, r"docids has shape \(1,\) for 2 rows"),
        ({"qid": [(1, 2), (3, 4)]}, "qid holds ids that a Parquet column cannot keep"),
        ({"qid": ["a", "\udce9"]}, r"qid is not UTF-8 at row 1 \(.*\); a Parquet file cannot keep it"),
        ({"docids": ["\udce9", "b"]}, "docids is not UTF-8 at row 0"),
        ({"names": ["label"]}, "names must be 1 different names other than"),
        ({"names": ["a", "b"]}, "got 2 names"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_parquet(tmp_path / "t", **({"X": [[1.0], [2.0]], "y": [1, 0]} | options))
    assert list(tmp_path.iterdir()) == []


def test_documents_are_text_and_queries_may_be_categories(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1.0, 2.0], "label": [0, 1], "qid": pd.Categorical(["b", "a"]), "doc": [7, 8]})
    table.to_parquet(tmp_path / "t")
    rows = read_parquet(tmp_path / "t", docid="doc")
    assert rows.docids is not None
    assert rows.qid is not None
    assert rows.docids.tolist() == ["7", "8"]
    assert rows.qid.tolist() == ["b", "a"]


def test_a_table_without_rows_or_features_is_refused(tmp_path: Path) -> None:
    frame().iloc[:0].to_parquet(tmp_path / "t")
    with pytest.raises(InputError, match="has 0 rows and 3 feature columns; both are needed"):
        read_parquet(tmp_path / "t", docid="doc")
    frame()[["label", "qid"]].to_parquet(tmp_path / "t")
    with pytest.raises(InputError, match="has 50 rows and 0 feature columns"):
        read_parquet(tmp_path / "t")
