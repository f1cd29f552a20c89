from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from corank.data.durable import compressed
from corank.data.io import frames
from corank.data.io.frames import read_csv, read_parquet
from corank.data.io.write import write_parquet
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
    monkeypatch.setattr(frames, "BATCH_ROWS", 16)
    monkeypatch.setattr(frames, "BATCH_ROWS", 16)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 4)).astype(dtype), rng.integers(0, 3, 60).astype(float)
    y[::7] = np.nan
    ids = None if qid is None else rng.integers(0, 5, 60).astype(qid)
    write_parquet(tmp_path / "t", X, y, ids, [f"d{k}" for k in range(60)])
    rows = read_parquet(tmp_path / "t")
    assert rows.X.dtype == dtype
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, y)
    assert (rows.qid is None) if qid is None else (rows.qid.tolist() == ids.tolist())
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "t")[["f1", "f2", "f3", "f4"]], X)
    assert rows.docids.tolist() == [f"d{k}" for k in range(60)]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {}, r"column 'doc' contains .*string, but features are numbers; .* leave it out with drop='doc'"),
        ({}, {"docid": "doc", "y": "grade"}, r"has no column 'grade'; choose one of .* with y="),
        ({}, {"docid": "doc", "qid": "topic"}, r"has no column 'topic'"),
        ({"a": [np.inf] + [1.0] * 49}, {"docid": "doc"}, "X contains infinity at row 0, column 0"),
        ({"qid": [None] + ["x"] * 49}, {"docid": "doc"}, "column 'qid' is null at row 0"),
        ({"label": ["x"] * 50}, {"docid": "doc"}, "label column 'label' contains"),
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
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_parquet(tmp_path / "t")
    with pytest.raises(InputError, match="there is no file"):
        read_parquet(tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": sparse.csr_matrix([[1.0], [0.0]])}, "X is sparse, but tables are dense"),
        ({"docids": ["a"]}, r"docids has shape \(1,\), but X has 2 rows"),
        ({"qid": [(1, 2), (3, 4)]}, "qid holds ids that a column of a table cannot store"),
        ({"qid": ["a", "\udce9"]}, r"qid is not valid UTF-8 at row 1 \(.*\), as tables require"),
        ({"docids": ["\udce9", "b"]}, "docids is not valid UTF-8 at row 0"),
        ({"names": ["label"]}, "expected 1 different names, none of them in"),
        ({"names": ["a", "b"]}, "names has 2 entries"),
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
    with pytest.raises(InputError, match="has 0 rows and 3 feature columns"):
        read_parquet(tmp_path / "t", docid="doc")
    frame()[["label", "qid"]].to_parquet(tmp_path / "t")
    with pytest.raises(InputError, match="has 50 rows and 0 feature columns"):
        read_parquet(tmp_path / "t")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("mark", [",", "\t", ";"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_text_tables_read_as_python_reads_them(tmp_path: Path, mark: str, encoding: str, monkeypatch) -> None:
    monkeypatch.setattr(frames, "BATCH_ROWS", 16)
    table = frame().assign(label=np.where(np.arange(50) % 3, np.arange(50) % 2, np.nan), c=1e-300, d=1 / 3)
    table["doc"] = [f'a "{mark}" in {k}, ü' for k in range(50)]
    table.to_csv(tmp_path / "t", sep=mark, index=False, encoding=encoding)
    rows = read_csv(tmp_path / "t", docid="doc")
    with (tmp_path / "t").open(encoding=encoding, newline="") as file:
        lines = list(csv.DictReader(file, delimiter=mark))
    assert rows.names == ["a", "b", "c", "d"]
    assert rows.X.tolist() == [[float(line[name]) for name in rows.names] for line in lines]
    np.testing.assert_array_equal(rows.y, [float(line["label"] or "nan") for line in lines])
    assert rows.qid.tolist() == [line["qid"] for line in lines]
    assert rows.docids.tolist() == [line["doc"] for line in lines]


def test_types_do_not_hang_on_the_first_rows(tmp_path: Path) -> None:
    n = 200_000  # more than one block of pyarrow
    lines = [f"{k},1,0" for k in range(n)]
    text = "\n".join(["qid,label,f", *lines, "last,0.5,0.25"]) + "\n"
    rows = read_csv(written(tmp_path / "t", text))
    assert rows.qid[[0, -2, -1]].tolist() == ["0", str(n - 1), "last"]
    assert (rows.y[-1], rows.X[-1, 0]) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("ids", "found"),
    [(["1", "2"], [1, 2]), (["-3", "2"], [-3, 2]), (["01", "1"], ["01", "1"]), (["1.0", "1"], ["1.0", "1"]),
     (["NA", "null"], ["NA", "null"]), ([str(2**64), "1"], [str(2**64), "1"])],
)  # fmt: skip
def test_query_ids_of_text_are_integers_where_all_are_written_so(tmp_path: Path, ids: list, found: list) -> None:
    rows = read_csv(written(tmp_path / "t", "qid,label,f\n" + "".join(f"{one},1,1\n" for one in ids)))
    assert rows.qid.tolist() == found


@pytest.mark.parametrize("label", ["", "NA", "NaN", "nan", '""'])
def test_a_missing_label_of_text_is_an_unscored_row(tmp_path: Path, label: str) -> None:
    rows = read_csv(written(tmp_path / "t", f"label,f\n{label},1\n2,1\n"))
    np.testing.assert_array_equal(rows.y, [np.nan, 2])
    assert (rows.qid, rows.docids) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("points,f\n1,2\n", r"t has no label column \(label, grade, .*; choose one of 'points', 'f' with y="),
        ("1,7,0.5\n", r"t begins with numbers \('1', '7', '0.5'\); expected a header"),
        ("label,f,g\n1,2,3\n0,2,red\n", r"t: column 'g' contains 'red' in line 3, but .* leave it out with drop='g'"),
        ("label,f\nhigh,2\n", r"the label column 'label' contains 'high' in line 2, but labels are numbers"),
        ("label,f\n1,2\n1\n", r"cannot be read as a table \(.*Expected 2 columns, got 1"),
        ("label,f\n1,inf\n", "X contains infinity at row 0, column 0"),
        ("label,f\ninf,1\n", "y contains infinity at row 0"),
        ("label,qid,f\n1,a,1\n1,,1\n", "column 'qid' is null at row 1; give every row an id"),
        ("label,qid,f\n1,3,1\n1,,1\n", "column 'qid' is null at row 1; give every row an id"),
        ("label,f,f\n1,2,3\n", "has two columns named 'f'; rename one"),
        ("label,qid\n1,2\n", "has 1 rows and 0 feature columns; expected at least one of each"),
        ("label,f\n", "has 0 rows and 1 feature columns; expected at least one of each"),
        ("label,f", "cannot be read as a table .*Empty CSV"),
        ("\n\n", "contains only blank lines; expected a header"),
        ("", "t is empty; expected at least one line"),
    ],
)
def test_faults_of_text_tables_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_csv(written(tmp_path / "t", text))


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes("label,f\n1,2\n".encode("utf-16"))
    with pytest.raises(InputError, match="t is encoded in UTF-16"):
        read_csv(tmp_path / "t")
    for content in (b"label,qid,f\n1,\xff,2\n", b"label,\xff\n1,2\n"):
        (tmp_path / "t").write_bytes(content)
        with pytest.raises(InputError, match=r"t cannot be read as a table \(.*(UTF8|utf-8)"):
            read_csv(tmp_path / "t")


def test_old_line_ends_part_rows_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbf\rlabel,f\r1,2\r0,3\r")
    rows = read_csv(tmp_path / "t")
    assert (rows.X.tolist(), rows.y.tolist(), rows.names) == ([[2], [3]], [1, 0], ["f"])


def test_names_lose_outer_blanks_only(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("\n\tf,f g,label\n1,2,3\n")
    assert read_csv(tmp_path / "t").names == ["f", "f g"]
    (tmp_path / "t").write_text("\n\tf,f,label\n1,2,3\n")
    with pytest.raises(InputError, match="two columns named 'f'"):
        read_csv(tmp_path / "t")
    (tmp_path / "t").write_text('label,"f\ng"\n1,2\n')
    with pytest.raises(InputError, match=r"t (cannot be read as a table|has a name of a column)"):
        read_csv(tmp_path / "t")


def parquet_of(path: Path, **columns: object) -> Path:
    made = {name: column if isinstance(column, pa.Array) else pa.array(column) for name, column in columns.items()}
    pq.write_table(pa.Table.from_arrays(list(made.values()), names=list(made)), path)
    return path


def test_ids_that_differ_by_a_nul_stay_apart(tmp_path: Path) -> None:
    ids = ["a\0", "a", "a\0", ""]
    rows = read_parquet(parquet_of(tmp_path / "t", label=[1.0] * 4, f=[1.0] * 4, qid=ids, docid=ids))
    assert rows.qid.tolist() == rows.docids.tolist() == ids
    assert len(rows.data.queries) == 3


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.dictionary(pa.int8(), pa.binary())])
def test_ids_that_are_not_utf8_are_kept_as_in_other_files(tmp_path: Path, kind: pa.DataType) -> None:
    plain = pa.array([b"\xff", "é".encode(), b"\xff"])
    ids = pa.Array.from_buffers(kind, 3, plain.buffers()) if kind == pa.string() else plain.cast(kind)
    rows = read_parquet(parquet_of(tmp_path / "t", label=[1.0] * 3, f=[1.0] * 3, qid=ids, docid=ids))
    assert rows.qid.tolist() == rows.docids.tolist() == ["\udcff", "é", "\udcff"]


@pytest.mark.parametrize("ids", [[[1], [2, 3]], [{"a": 1}, {"a": 2}]])
def test_ids_are_numbers_or_text(tmp_path: Path, ids: list) -> None:
    with pytest.raises(InputError, match=r"column 'qid' has the type (list|struct)<.*>; use numbers or text as ids"):
        read_parquet(parquet_of(tmp_path / "t", label=[1.0, 2.0], f=[1.0, 2.0], qid=ids))


def test_a_name_that_many_rows_share_is_kept_once(tmp_path: Path) -> None:
    """As numpy's text the ids would take 8 GB."""
    long = "x" * 1_000_000
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), [long])
    path = parquet_of(tmp_path / "t", label=[1.0] * 2000, f=[1.0] * 2000, docid=ids)
    assert len({id(name) for name in read_parquet(path).docids}) == 1


def test_two_columns_of_one_name_are_named(tmp_path: Path) -> None:
    for names in (["label", "a", "a"], ["label", "label", "a"], ["label", "qid", "qid"]):
        pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 3, names=names), tmp_path / "t")
        with pytest.raises(InputError, match=r"t has two columns named '(a|label|qid)'"):
            read_parquet(tmp_path / "t")


def test_damaged_pages_are_refused_or_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {name: rng.random(300) for name in ("label", "f")}
    path = parquet_of(tmp_path / "t", **columns, qid=[f"é{k}" for k in range(300)], docid=list(range(300)))
    sound = path.read_bytes()
    refused = 0
    for _ in range(500):
        damaged = bytearray(sound)
        damaged[rng.integers(4, len(damaged) - 8)] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            read_parquet(path)
        except InputError:
            refused += 1
    assert refused > 50


def varint(number: int) -> bytes:
    """A number as Parquet's footer has it: its double, seven bits a byte, the least first."""
    number *= 2
    return bytes(
        number >> shift & 127 | 128 * (number >> shift > 127) for shift in range(0, max(number.bit_length(), 1), 7)
    )


@pytest.mark.parametrize("n_rows", [2**40, 2**62, 1235, 0])
def test_a_footer_that_speaks_of_rows_that_are_not_there_is_refused(tmp_path: Path, n_rows: int) -> None:
    path = parquet_of(tmp_path / "t", label=np.arange(1234.0), f=np.arange(1234.0))
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -8]
    assert footer.count(b"\x16" + varint(1234)) == 4
    footer = footer.replace(b"\x16" + varint(1234), b"\x16" + varint(n_rows))
    path.write_bytes(content[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(InputError, match=r"t (has .* and expands to more than|is damaged|cannot be rea|has 0 rows)"):
        read_parquet(path)
    # only the number of the file, not that of its group of rows
    first = content.index(b"\x16" + varint(1234), len(content) - 8 - size)
    path.write_bytes(content[:first] + b"\x16" + varint(1000) + content[first + 3 :])
    with pytest.raises(InputError, match=r"t is damaged: found 1234 rows, expected 1000"):
        read_parquet(path)


def test_rows_that_all_are_alike_take_no_room_in_a_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(compressed, "MIN_BYTES", 1 << 16)
    path = parquet_of(tmp_path / "t", label=[1.0] * 300_000, f=[1.0] * 300_000)
    with pytest.raises(InputError, match=r"t has .* bytes and expands to more than"):
        read_parquet(path)
    monkeypatch.setenv("CORANK_UNPACK_GB", "1")
    assert read_parquet(path).X.shape == (300_000, 1)


def test_parquet_is_no_stream(tmp_path: Path) -> None:
    for name in ("-", "/dev/stdin", "/dev/null"):
        with pytest.raises(InputError, match=f"{name} is a stream, but Parquet needs random access"):
            read_parquet(name)


def test_blanks_around_names_and_ids_are_ignored(tmp_path):
    path = tmp_path / "spaced.csv"
    path.write_text("label, qid, docid, f1\n2, 7, a, 0.5\n1, 7, b , 0.25\n")
    rows = read_csv(path)
    assert (rows.names, rows.qid.tolist(), rows.docids.tolist()) == (["f1"], [7, 7], ["a", "b"])
    assert rows.X.tolist() == [[0.5], [0.25]]


def test_empty_cells_of_features_are_missing_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("label,f,g\n2,,1\n1,3,NaN\n0,4,\n")
    rows = read_csv(path)
    np.testing.assert_array_equal(rows.X, [[np.nan, 1], [3, np.nan], [4, np.nan]])
    assert rows.data.has_missing
    for kind in ("bool", "Int64", "Float32"):
        values = pd.array([1, None, 0], dtype="boolean" if kind == "bool" else kind)
        pd.DataFrame({"label": [2, 1, 0], "f": values}).to_parquet(tmp_path / kind)
        np.testing.assert_array_equal(read_parquet(tmp_path / kind).X, [[1], [np.nan], [0]])


@pytest.mark.parametrize(
    ("cell", "advice"),
    [("0,5", "write decimal points"), ("True", "write 1 and 0")],
)
def test_advice_for_cells_of_other_programs(tmp_path, cell, advice):
    path = tmp_path / "excel.csv"
    path.write_text(f"label;qid;f1\n2;7;{cell}\n1;7;1\n")
    with pytest.raises(InputError, match=advice):
        read_csv(path)
