from __future__ import annotations

import json
from dataclasses import fields
from mmap import mmap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import corank
from corank.data.io.letor_reader import read_letor
from corank.data.io.stores import open_store, store_letor, write_store
from corank.data.io.write import write_letor
from corank.data.ranking import RankingData
from corank.errors import InputError


def problem(seed: int, as_csr: bool = False, dtype: type = np.float32) -> tuple:
    rng = np.random.default_rng(seed)
    n = 300
    X = (rng.normal(size=(n, 7)) * (rng.random((n, 7)) < 0.6)).astype(dtype)
    y = rng.integers(0, 3, n).astype(float)
    y[rng.random(n) < 0.2] = np.nan
    qid = rng.integers(0, 40, n)
    return (sparse.csr_matrix(X) if as_csr else X), y, qid


def is_mapped(array) -> bool:
    while array is not None and not isinstance(array, mmap):
        array = getattr(array, "base", None)
    return array is not None


def same_index(a: RankingData, b: RankingData) -> None:
    for field in fields(RankingData):
        if field.name not in ("X", "queries", "pairs"):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name), err_msg=field.name)
    for name in ("ids", "codes", "order", "starts"):
        np.testing.assert_array_equal(getattr(a.queries, name), getattr(b.queries, name), err_msg=name)


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [None, int, str, object])
def test_a_store_holds_the_problem_and_its_index(tmp_path: Path, as_csr: bool, dtype: type, kind) -> None:
    X, y, qid = problem(1, as_csr, dtype)
    qids = (
        None if kind is None else qid.astype(kind) if kind is not object else np.array([f"é{q}" for q in qid], object)
    )
    docids = [f"GX{k}" * (k % 3) for k in range(len(y))]
    write_store(tmp_path / "s", X, y, qids, docids)
    store = open_store(tmp_path / "s")
    store.verify()
    same_index(store.data, RankingData.of(X, y, qids))
    assert sparse.issparse(store.X) == as_csr
    assert store.X.dtype == dtype
    np.testing.assert_array_equal(store.X.toarray() if as_csr else store.X, X.toarray() if as_csr else X)
    np.testing.assert_array_equal(store.y, y)
    assert (store.qid is None) == (kind is None)
    if kind is not None:
        assert store.qid.tolist() == qids.tolist()
    assert store.docids.tolist() == docids
    assert store.header["n_queries"] == len(store.data.queries)
    for array in [store.X.data, store.X.indices, store.X.indptr] if as_csr else [store.X]:
        assert not array.flags.writeable
        assert is_mapped(array)


def test_without_documents_and_with_one_row(tmp_path: Path) -> None:
    write_store(tmp_path / "s", [[0.0]], [np.nan])
    store = open_store(tmp_path / "s")
    store.verify()
    assert store.docids is None
    assert store.qid is None
    assert store.X.tolist() == [[0]]
    assert store.data.n_pairs == 0


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("n_features", [None, 9])
def test_text_is_parsed_straight_into_a_store(tmp_path: Path, as_csr: bool, n_features: int | None) -> None:
    X, y, qid = problem(2, as_csr)
    text = tmp_path / "a.txt.gz"
    write_letor(text, X, y, [f"q:{q}" for q in qid], [f"docid = D{k}" for k in range(len(y))], unjudged=-1)
    options = {"unjudged": -1, "layout": "csr" if as_csr else "dense", "n_features": n_features}
    store_letor(tmp_path / "s", [text], **options)
    store, file = open_store(tmp_path / "s"), read_letor(text, **options)
    store.verify()
    same_index(store.data, file.data)
    assert (store.X != file.X).sum() == 0
    assert store.X.shape == file.X.shape
    assert store.docids.tolist() == file.docids.tolist()
    assert store.qid.tolist() == file.qid.tolist()


def test_only_a_store_is_overwritten_and_only_on_request(tmp_path: Path) -> None:
    X, y, qid = problem(3)
    place = tmp_path / "s"
    place.mkdir()
    write_store(place, X, y, qid)
    with pytest.raises(InputError, match="s exists already"):
        write_store(place, X[:9], y[:9], qid[:9])
    assert open_store(place).data.n_rows == len(y)
    write_store(place, X[:9], y[:9], qid[:9], overwrite=True)
    assert open_store(place).data.n_rows == 9
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="not a store, and is not replaced"):
        write_store(other, X, y, qid, overwrite=True)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(InputError, match="file is a file"):
        write_store(tmp_path / "file", X, y, qid, overwrite=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "other", "s"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"docids": ["a"]}, r"docids has shape \(1,\), but X has 2 rows"),
        ({"qid": [(1, 2), (3, 4)]}, "qid holds ids that a store cannot store"),
        ({"X": [[np.nan], [1.0]]}, "X contains NaN"),
    ],
)
def test_bad_input_leaves_nothing_behind(tmp_path: Path, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_store(tmp_path / "s", **({"X": [[1.0], [2.0]], "y": [1, 0]} | arguments))
    assert list(tmp_path.iterdir()) == []


def test_a_faulty_text_leaves_nothing_behind(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("1 qid:1 1:1\n" * 1000 + "1 qid:1 1:x\n")
    with pytest.raises(InputError, match="line 1001"):
        store_letor(tmp_path / "s", [text])
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def edit(place: Path, change) -> None:
    header = json.loads((place / "header.json").read_text())
    change(header)
    (place / "header.json").write_text(json.dumps(header))


def test_damage_is_refused_with_one_sentence(tmp_path: Path) -> None:
    X, y, qid = problem(4)

    def fresh() -> Path:
        write_store(tmp_path / "s", X, y, qid, overwrite=True)
        return tmp_path / "s"

    with pytest.raises(InputError, match="there is no store"):
        open_store(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is not a store"):
        open_store(tmp_path / "empty")

    place = fresh()
    edit(place, lambda header: header.update(version=2))
    with pytest.raises(InputError, match="store of version 2"):
        open_store(place)

    place = fresh()
    edit(place, lambda header: header["content"].update(n_rows=10**9))
    with pytest.raises(InputError, match=r"damaged: header\.json does not match its"):
        open_store(place)

    place = fresh()
    text = (place / "header.json").read_text()
    (place / "header.json").write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match="is not a store: it has no header"):
        open_store(place)

    place = tmp_path / "cut"
    write_store(place, X, y, qid)
    (place / "values.bin").write_bytes((place / "values.bin").read_bytes()[:-1])
    with pytest.raises(InputError, match=r"damaged: values\.bin has 8399 bytes"):
        open_store(place)

    (place / "values.bin").unlink()
    with pytest.raises(InputError, match=r"damaged: values\.bin is missing"):
        open_store(place)


def test_a_flipped_bit_is_found_by_verify(tmp_path: Path) -> None:
    place = tmp_path / "s"
    write_store(place, *problem(5))
    content = bytearray((place / "order.bin").read_bytes())
    content[100] ^= 1
    (place / "order.bin").write_bytes(content)
    store = open_store(place)
    with pytest.raises(InputError, match=r"damaged: order\.bin does not match its"):
        store.verify()


def test_names_of_columns_are_kept(tmp_path: Path) -> None:
    X, y = np.arange(6.0).reshape(3, 2), [0, 1, 2]
    names = ["bm25 body", "größe"]
    write_store(tmp_path / "a", pd.DataFrame(X, columns=names), y)
    write_store(tmp_path / "b", sparse.csr_matrix(X), y, names=names)
    write_store(tmp_path / "c", pd.DataFrame(X), y)
    assert open_store(tmp_path / "a").names == open_store(tmp_path / "b").names == names
    assert open_store(tmp_path / "c").names is None
    for store in ("a", "b"):
        assert open_store(tmp_path / store).data.names == tuple(names)
        open_store(tmp_path / store).verify()
        rows = corank.read(tmp_path / store, features=names[::-1])
        assert (rows.names, rows.roles.is_reordered) == (names[::-1], True)
        dense = rows.X.toarray() if sparse.issparse(rows.X) else rows.X
        np.testing.assert_array_equal(dense, X[:, ::-1])
        with pytest.raises(InputError, match="lacks 'x', which the model was fitted on"):
            corank.read(tmp_path / store, features=[names[0], "x"])
    for wrong in (["a"], ["a", "a"]):
        with pytest.raises(InputError, match="expected 2 different names"):
            write_store(tmp_path / "d", X, y, names=wrong)


def test_damaged_names_are_refused(tmp_path: Path) -> None:
    write_store(tmp_path / "a", np.ones((2, 2)), [0, 1], names=["ab", "c"])
    (tmp_path / "a" / "name_stops.bin").write_bytes(np.array([9, 3], dtype="<i8").tobytes())
    with pytest.raises(InputError, match=r"name_stops.bin does not match name_bytes.bin"):
        open_store(tmp_path / "a")
    (tmp_path / "a" / "name_stops.bin").write_bytes(np.array([2, 3], dtype="<i8").tobytes())
    (tmp_path / "a" / "name_stops.bin").unlink()
    with pytest.raises(InputError, match=r"name_stops.bin is missing"):
        open_store(tmp_path / "a")
