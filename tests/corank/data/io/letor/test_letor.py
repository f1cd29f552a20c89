from __future__ import annotations

import gzip
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from corank.data.durable import text as texts
from corank.data.io import letor_pieces as pieces
from corank.data.io.letor_reader import read_letor
from corank.data.io.write import write_letor
from corank.errors import InputError


def naive(text: str) -> tuple[list[dict[int, float]], list[float], list[str | None]]:
    rows, labels, qids = [], [], []
    for line in text.splitlines():
        tokens = line.partition("#")[0].split()
        if tokens:
            label, *rest = tokens
            qids.append(rest.pop(0)[4:] if rest and rest[0].startswith("qid:") else None)
            labels.append(float(label))
            rows.append({int(f): float(v) for f, v in (token.split(":") for token in rest)})
    return rows, labels, qids


def make_text(rng: np.random.Generator, n_rows: int, n_features: int, density: float) -> str:
    lines = []
    for row in range(n_rows):
        ids = np.flatnonzero(rng.random(n_features) < density) + 1
        features = " ".join(f"{k}:{v!r}" for k, v in zip(ids.tolist(), rng.normal(size=len(ids)).tolist(), strict=True))
        comment = rng.choice(["", f" #docid = GX{row:03d} inc = 1", f" # GX{row:03d}"])
        lines.append(f"{rng.integers(3)} qid:{row // 7 + 10} {features}{comment}{rng.choice(['', chr(13)])}\n")
        if rng.random() < 0.1:
            lines.append(str(rng.choice(["\n", "# a full line: 1:2\n", "  \r\n"])))
    return "".join(lines)


@pytest.mark.parametrize("density", [0.05, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reading_agrees_with_a_naive_reader(tmp_path: Path, density: float, dtype: type, monkeypatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1000)
    text = make_text(np.random.default_rng(1), 200, 40, density)
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    rows, labels, qids = naive(text)
    file = read_letor(path, dtype=dtype, n_jobs=3)
    assert sparse.issparse(file.X) == (density < 0.25)
    expected = np.zeros((len(rows), max(max(row, default=0) for row in rows)))
    for k, row in enumerate(rows):
        for feature, value in row.items():
            expected[k, feature - 1] = value
    for layout in ("dense", "csr"):
        X = read_letor(path, dtype=dtype, layout=layout, n_jobs=3).X
        assert X.dtype == dtype
        np.testing.assert_array_equal(X if layout == "dense" else X.toarray(), expected.astype(dtype))
    assert file.y.tolist() == labels
    assert file.qid.tolist() == [int(q) for q in qids]
    marks = [line.rstrip("\r").partition("#")[2] for line in text.split("\n") if line.partition("#")[0].strip()]
    assert file.comments.tolist() == marks
    assert file.docids.tolist() == [m.replace("docid = ", "").split()[0] if m else "" for m in marks]
    assert file.data.n_rows == len(rows)
    assert len(file.data.queries) == len(set(qids))


def test_reading_agrees_with_sklearn(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(make_text(np.random.default_rng(2), 50, 9, 0.5))
    X, y, qid = load_svmlight_file(path, query_id=True)
    file = read_letor(path, dtype=np.float64, layout="csr")
    assert (file.X != X).nnz == 0
    assert file.X.shape == X.shape
    np.testing.assert_array_equal(file.y, y)
    np.testing.assert_array_equal(file.qid, qid)


def test_several_files_are_one_after_the_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    texts = [make_text(rng, 30, 6, 0.9), make_text(rng, 1, 8, 1.0).rstrip("\n"), make_text(rng, 20, 4, 0.9)]
    paths = []
    for k, text in enumerate(texts):
        paths.append(tmp_path / f"{k}.txt")
        paths[-1].write_text(text)
    whole = tmp_path / "whole.txt"
    whole.write_text("\n".join(texts))
    parts, one = read_letor(paths), read_letor(whole)
    np.testing.assert_array_equal(parts.X, one.X)
    np.testing.assert_array_equal(parts.qid, one.qid)
    assert parts.comments.tolist() == one.comments.tolist()
    paths[2].write_text("oops\n")
    with pytest.raises(InputError, match=r"2\.txt, line 1, column 1: expected a label"):
        read_letor(paths)


@given(
    st.lists(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1),
    st.sampled_from(["a.txt", "a.txt.gz", "a.svm.xz", "a.letor.zst"]),
    st.booleans(),
    st.data(),
)
def test_what_is_written_reads_back_bit_for_bit(tmp_path_factory, rows, name, as_csr, data) -> None:
    path = tmp_path_factory.mktemp("letor") / name
    n = len(rows)
    X = np.array(rows, dtype=np.float32)
    y = np.array(data.draw(st.lists(st.floats(allow_infinity=False), min_size=n, max_size=n)))
    y[y == -7.5] = 0
    qid = data.draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(-(10**17), 10**17), min_size=n, max_size=n),
            st.lists(st.sampled_from(["q:1", "b-2", "é", "007x"]), min_size=n, max_size=n),
        )
    )
    comments = data.draw(
        st.one_of(st.none(), st.lists(st.sampled_from(["", " x", "docid = ü # 1:2"]), min_size=n, max_size=n))
    )
    write_letor(path, sparse.csr_matrix(X) if as_csr else X, y, qid, comments, unjudged=-7.5)
    file = read_letor(path, n_features=3, layout="csr" if as_csr else "dense", unjudged=-7.5)
    got = file.X.toarray() if as_csr else file.X
    if as_csr:
        np.testing.assert_array_equal(got, X)
    else:
        np.testing.assert_array_equal(got.view(np.uint32), X.view(np.uint32))
    np.testing.assert_array_equal(np.isnan(file.y), np.isnan(y))
    scored = ~np.isnan(y)
    np.testing.assert_array_equal(file.y[scored].view(np.uint64), y[scored].view(np.uint64))
    assert (None if file.qid is None else file.qid.tolist()) == qid
    assert (None if file.comments is None else file.comments.tolist()) == (
        comments if comments and any(comments) else None
    )


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_doubles_read_back_bit_for_bit(tmp_path_factory, values: list[float]) -> None:
    path = tmp_path_factory.mktemp("letor") / "a.txt"
    X = np.array([values])
    write_letor(path, X, [1])
    np.testing.assert_array_equal(read_letor(path, dtype=np.float64).X.view(np.uint64), X.view(np.uint64))


def test_many_hard_numbers_on_one_line_and_on_many(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    long = ["0." + "123456789" * 4 + str(k) for k in range(9)]
    path.write_text(
        "".join(f"{long[0]} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(long)) + "\n" for _ in range(5))
    )
    file = read_letor(path, dtype=np.float64)
    assert file.X.tolist() == [[float(v) for v in long]] * 5
    assert file.y.tolist() == [float(long[0])] * 5


def test_colons_in_query_ids_leave_no_gap(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 64)
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{k % 2} qid:a:b:{k % 3} {k + 1}:{k}.5 500:1\n" for k in range(100)) + "1 qid:900:x\n")
    file = read_letor(path, layout="csr")
    assert file.X.shape == (101, 500)
    expected = np.zeros((101, 500))
    expected[np.arange(100), np.arange(100)] = np.arange(100) + 0.5
    expected[:100, 499] = 1
    np.testing.assert_array_equal(file.X.toarray(), expected)
    np.testing.assert_array_equal(read_letor(path, layout="dense").X, expected)
    assert file.qid[-2:].tolist() == ["a:b:0", "900:x"]


def test_rows_may_have_no_features_and_the_file_no_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n0")
    file = read_letor(path)
    assert file.X.shape == (2, 0)
    assert file.y.tolist() == [1, 0]
    assert file.qid is None
    assert file.docids is None
    assert read_letor(path, n_features=3, layout="dense").X.tolist() == [[0, 0, 0], [0, 0, 0]]


LINE = re.compile(
    r"(?P<label>[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)"
    r"([ \t\r]+qid:(?P<qid>[^ \t\r\n#\0]+))?"
    r"(?P<features>([ \t\r]+\d{1,10}:[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)*)[ \t\r]*"
)


def strict(text: str) -> tuple[list[dict[int, float]], list[float], list[str | None]] | None:
    """Return what the text says, or None where it breaks a rule."""
    bare = [line.partition("#")[0].strip(" \t\r") for line in text.split("\n")]
    found = [LINE.fullmatch(line) for line in bare if line]
    if not found or None in found or any(np.isinf(float(match["label"])) for match in found):
        return None
    if any("\r" in line.partition("#")[2].rstrip("\r") for line in text.split("\n")):
        return None
    qids = [match["qid"] for match in found]
    rows = [[token.split(":") for token in match["features"].split()] for match in found]
    for row in rows:
        ids = [0] + [int(k) for k, _ in row]
        if any(b <= a for a, b in pairwise(ids)) or ids[-1] > 2**24 or any(np.isinf(float(v)) for _, v in row):
            return None
    if len({q is None for q in qids}) > 1:
        return None
    return [{int(k): float(v) for k, v in row} for row in rows], [float(m["label"]) for m in found], qids


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from(list("0123456789:.#qid -+e\n\t\r\0x")), st.booleans()),
        max_size=4,
    ),
    st.booleans(),
    st.sampled_from(["dense", "csr"]),
)
def test_damaged_text_is_refused_or_read_as_it_stands(tmp_path_factory, damage, with_qid: bool, layout: str) -> None:
    text = "".join(f"{k} {f'qid:{k // 2} ' if with_qid else ''}1:0.{k}5 3:-1e{k} 4:12345678 # d{k}\n" for k in range(4))
    for place, character, insert in damage:
        place %= len(text)
        text = text[:place] + character + text[place + (not insert) :]
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    path.write_bytes(text.encode())
    expected = strict(text)
    if expected is None:
        with pytest.raises(InputError, match=r"damaged\.txt"):
            read_letor(path, layout=layout, dtype=np.float64)
        return
    rows, labels, qids = expected
    width = max(max(row, default=0) for row in rows)
    if layout == "dense" and width > 10**6:
        return
    file = read_letor(path, layout=layout, dtype=np.float64)
    assert file.y.tolist() == labels
    assert file.X.shape == (len(rows), width)
    X = file.X if layout == "csr" else sparse.csr_matrix(file.X)
    nonzeros = {(r, k): v for r, row in enumerate(rows) for k, v in row.items() if v}
    assert {(r, k + 1): v for r, k, v in zip(*sparse.find(X), strict=True)} == nonzeros
    assert (file.qid is None) == (qids[0] is None)
    if file.qid is not None:
        integers = all(re.fullmatch(r"-?\d{1,18}", q) for q in qids)
        assert file.qid.tolist() == ([int(q) for q in qids] if integers else qids)


def test_one_long_query_id_does_not_widen_all(tmp_path: Path) -> None:
    """As numpy's text the ids would take 4 GB."""
    path, long = tmp_path / "a.txt", "x" * 50_000
    path.write_text("".join(f"1 qid:{long if k == 7 else 'a'} 1:1\n" for k in range(20_000)))
    file = read_letor(path)
    assert file.qid.tolist() == [long if k == 7 else "a" for k in range(20_000)]
    assert len(file.data.queries) == 2


def test_a_cut_gzip_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(make_text(np.random.default_rng(4), 50, 9, 0.9).encode())[:-100])
    with pytest.raises(InputError, match=r"a\.txt\.gz is damaged or truncated"):
        read_letor(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": np.int32}, "dtype is int32; choose"),
        ({"layout": "coo"}, "layout is 'coo'; choose"),
        ({"n_features": 0}, "n_features is 0; pass"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_letor(tmp_path / "none.txt", **options)
    with pytest.raises(InputError, match="list of files is empty"):
        read_letor([])


def test_comments_of_a_small_file_outlive_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 1:1 # one\n" * 1000)
    file = read_letor(path)
    path.write_text("1 1:1 # two\n" * 1000)
    assert file.docids.tolist() == ["one"] * 1000


@pytest.mark.parametrize("content", ["1 1:1 # two\n" * 1000, "1 1:1 # one\n" * 999, "1 1:1 # one\n" * 1001, ""])
def test_comments_of_a_large_file_that_was_overwritten_are_refused(tmp_path: Path, monkeypatch, content: str) -> None:
    monkeypatch.setattr(texts, "MAX_HELD_BYTES", 100)
    path = tmp_path / "a.txt"
    path.write_text("1 1:1 # one\n" * 1000)
    os.utime(path, ns=(0, 0))  # as if it were written long ago
    file = read_letor(path)
    with path.open("r+") as handle:
        handle.truncate(0)
        handle.write(content)
    with pytest.raises(InputError, match="changed while it was read"):
        _ = file.docids


def test_comments_of_a_large_file_survive_another_in_its_place(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(texts, "MAX_HELD_BYTES", 100)
    path = tmp_path / "a.txt"
    path.write_text("1 1:1 # one\n" * 1000)
    file = read_letor(path)
    (tmp_path / "b.txt").write_text("1 1:1 # two\n" * 1000)
    (tmp_path / "b.txt").rename(path)
    assert file.docids.tolist() == ["one"] * 1000


def test_mq2008_reads_as_sklearn_reads_it(real_data: Path) -> None:
    path = real_data / "letor4_mq2008" / "S1.txt.gz"
    if not path.exists():
        pytest.skip("CORANK_DATA has no letor4_mq2008")
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    file = read_letor(path, dtype=np.float64, layout="dense")
    np.testing.assert_array_equal(file.X, X.toarray())
    np.testing.assert_array_equal(file.y, y)
    np.testing.assert_array_equal(file.qid, qid)
    assert all(docid.startswith("GX") for docid in file.docids)


def test_null_is_a_missing_value_as_in_letor_3(tmp_path):
    path = tmp_path / "null.txt"
    path.write_text("1 qid:1 1:NULL 2:2\n0 qid:1 1:1 3:NULL # doc\n2 qid:2 2:3\n")
    for layout in ("dense", "csr"):
        rows = read_letor(path, layout=layout, dtype=np.float64)
        X = rows.X.toarray() if layout == "csr" else rows.X
        np.testing.assert_array_equal(X, [[np.nan, 2, 0], [1, 0, np.nan], [0, 3, 0]])
        assert rows.data.has_missing
    for bad in ("NULLS", "NUL", "null"):
        path.write_text(f"1 qid:1 1:{bad}\n")
        with pytest.raises(InputError, match="expected a finite value"):
            read_letor(path)
