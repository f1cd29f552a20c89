from __future__ import annotations

import gzip
import lzma

import numpy as np
import pandas as pd
import pytest
import zstandard
from scipy import sparse

import corank
from corank.data.io.read import detect_format
from corank.data.io.stores import write_store
from corank.data.io.write import write_letor, write_parquet
from corank.data.synthetic import make_ranking
from corank.errors import InputError

MADE = make_ranking(6, 5, features_per_view=5, random_state=0)
Y = np.where(MADE.y == 0, -1.0, MADE.y)
DOCS = np.array([f"d{row}" for row in range(len(Y))], dtype=object)
LAID_OUT = {"text": "rows", "store": "rows.store", "parquet": "rows.parquet", "csv": "rows.csv"}


def write(place, y=Y):
    """Write the rows as the suffix says, text by default."""
    match place.suffix:
        case ".store":
            write_store(place, MADE.X, y, MADE.qid, docids=DOCS)
        case ".parquet":
            write_parquet(place, MADE.X, y, MADE.qid, docids=DOCS)
        case ".csv" | ".tsv":
            frame().to_csv(place, index=False, sep="\t" if place.suffix == ".tsv" else ",")
        case _:
            write_letor(place, MADE.X, y, MADE.qid, comments=DOCS)
    return place


def frame():
    table = pd.DataFrame(MADE.X, columns=[f"f{k}" for k in range(1, MADE.X.shape[1] + 1)])
    return table.assign(docid=DOCS, label=Y, qid=MADE.qid)


@pytest.fixture(params=["rows.txt.gz", "rows.store", "rows.parquet", "rows.csv", "rows.tsv"])
def path(request, tmp_path):
    return write(tmp_path / request.param)


def test_every_kind_of_file_gives_the_same_rows(path):
    rows = corank.read(path, unjudged=-1)
    assert isinstance(rows, corank.data.Dataset)
    np.testing.assert_allclose(rows.X, MADE.X, rtol=1e-6)
    np.testing.assert_array_equal(rows.y, np.where(Y == -1, np.nan, Y))
    expected = corank.RankingData.of(MADE.X, rows.y, MADE.qid)
    assert rows.data.X is rows.X
    np.testing.assert_array_equal(rows.data.y, rows.y)
    np.testing.assert_array_equal(rows.data.order, expected.order)
    np.testing.assert_array_equal(rows.data.pairs_per_query, expected.pairs_per_query)
    assert rows.qid.tolist() == MADE.qid.tolist()
    assert rows.docids.tolist() == DOCS.tolist()


def test_query_ids_can_be_ignored(path):
    rows = corank.read(str(path), unjudged=-1, qid=False)
    assert rows.qid is None
    assert len(rows.data.queries) == 1
    assert rows.data.n_features == MADE.X.shape[1]
    assert rows.docids.tolist() == DOCS.tolist()


def test_a_marker_that_no_row_has_changes_nothing(path):
    assert corank.read(path, unjudged=-7).data.n_scored == len(Y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_type_and_layout_can_be_chosen(path, dtype, layout):
    rows = corank.read(path, dtype=dtype, layout=layout)
    assert sparse.issparse(rows.X) == (layout == "csr")
    assert rows.X.dtype == dtype
    np.testing.assert_allclose(rows.X.toarray() if layout == "csr" else rows.X, MADE.X, rtol=1e-6)
    assert rows.data.X is rows.X
    assert rows.data.n_pairs == corank.read(path).data.n_pairs


@pytest.mark.parametrize(
    ("pack", "suffix"), [(gzip.compress, "gz"), (lzma.compress, "xz"), (zstandard.compress, "zst")]
)
@pytest.mark.parametrize("name", ["rows", "rows.csv"])
def test_text_may_be_packed_whatever_it_is_called(tmp_path, pack, suffix, name):
    plain = write(tmp_path / name)
    for packed in (f"{name}.{suffix}", "anything"):
        (tmp_path / packed).write_bytes(pack(plain.read_bytes()))
        rows = corank.read(tmp_path / packed)
        np.testing.assert_allclose(rows.X, MADE.X, rtol=1e-6)
        assert rows.docids.tolist() == DOCS.tolist()


@pytest.mark.parametrize("kind", LAID_OUT)
def test_a_kind_is_told_by_what_is_inside(tmp_path, kind):
    write(tmp_path / LAID_OUT[kind]).rename(tmp_path / "nameless")
    assert detect_format(tmp_path / "nameless") == kind
    assert len(corank.read(tmp_path / "nameless").y) == len(Y)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("2 qid:1 1:0.5 # a, b", "text"),
        ("2\tqid:1\t1:0.5", "text"),
        ("2 qid:a,b 1:0.5", "text"),
        ("# a comment, with commas\n\n1 1:0.5", "text"),
        ("-1", "text"),
        ("what is this", "text"),
        ("label,qid,f1", "csv"),
        ("\n\ufefflabel\tqid\tf1", "csv"),
        ("label;f1", "csv"),
        ("1,2,3", "csv"),
    ],
)
def test_the_first_line_tells_text_from_tables(tmp_path, line, kind):
    (tmp_path / "file").write_text(f"{line}\n", encoding="utf-8")
    assert detect_format(tmp_path / "file") == kind


def test_text_files_are_put_together(tmp_path):
    write_letor(tmp_path / "a.txt", MADE.X[:10], Y[:10], MADE.qid[:10])
    write_letor(tmp_path / "b.txt", MADE.X[10:], Y[10:], MADE.qid[10:])
    assert corank.read([tmp_path / "a.txt", str(tmp_path / "b.txt")]).data.n_rows == len(Y)


@pytest.mark.parametrize("other", ["a.store", "a.parquet", "a.csv"])
def test_only_text_is_put_together(tmp_path, other):
    write(tmp_path / "a.txt"), write(tmp_path / other)
    for paths in ([other, other], ["a.txt", other]):
        with pytest.raises(InputError, match=rf"found 2 files, of which .*{other} is not LETOR text"):
            corank.read([tmp_path / name for name in paths])


def test_query_ids_may_stand_in_another_column(tmp_path):
    frame().rename(columns={"qid": "session"}).to_csv(tmp_path / "t.csv", index=False)
    rows = corank.read(tmp_path / "t.csv", qid="session")
    assert rows.qid.tolist() == MADE.qid.tolist()
    assert "session" not in rows.names


def test_the_width_of_text_can_be_given(tmp_path):
    assert corank.read(write(tmp_path / "a.txt"), n_features=30).X.shape == (len(Y), 30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": "grade"}, "names a column"),
        ({"qid": "session"}, "qid='session' names a column, but .*a.txt is not a table; leave it out"),
        ({"dtype": "int32"}, "dtype is int32; choose float32 or float64"),
        ({"layout": "rows"}, "layout is 'rows'; choose 'auto', 'dense' or 'csr'"),
    ],
)
def test_options_that_cannot_be_met_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        corank.read(write(tmp_path / "a.txt"), **options)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*none\.csv"):
        corank.read(tmp_path / "none.csv")
    with pytest.raises(InputError, match="list of files is empty"):
        corank.read([])
    with pytest.raises(InputError, match="is not a store"):
        corank.read(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="empty is empty"):
        corank.read(tmp_path / "empty")


def test_numbers_too_large_for_the_type_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("label,f1\n1,0.5\n0,1e300\n")
    assert corank.read(tmp_path / "t.csv").X[1, 0] == 1e300
    with pytest.raises(InputError, match="X contains infinity at row 1, column 0"):
        corank.read(tmp_path / "t.csv", dtype="float32")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_scores_may_stand_in_another_column_or_nowhere(tmp_path, suffix):
    table = pd.DataFrame(MADE.X).rename(columns="f{}".format).assign(qid=MADE.qid)
    write = {".csv": lambda frame, path: frame.to_csv(path, index=False), ".parquet": pd.DataFrame.to_parquet}[suffix]
    graded, bare = tmp_path / f"graded{suffix}", tmp_path / f"bare{suffix}"
    write(table.assign(points=MADE.y), graded)
    write(table, bare)
    np.testing.assert_array_equal(corank.read(graded, y="points").y, MADE.y)
    unjudged = corank.read(bare, y=False)
    assert np.isnan(unjudged.y).all()
    np.testing.assert_allclose(unjudged.X, MADE.X)
    with pytest.raises(InputError, match="has no label column"):
        corank.read(graded)


def test_a_collection_says_what_it_holds_in_one_line(tmp_path):
    write(tmp_path / "rows")
    rows = corank.read(tmp_path / "rows", unjudged=-1)
    n_scored = np.count_nonzero(MADE.y)
    assert repr(rows) == f"<Dataset: {len(Y)} rows, {n_scored} scored, {MADE.X.shape[1]} features>"
