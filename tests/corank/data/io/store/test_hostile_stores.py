"""Stores that an attacker wrote: one sentence each, and never a signal."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from corank.data.io.stores import open_store, write_store
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.models.linear import SPD
from helpers.forge import forge_array, forge_store, wrong_arrays, wrong_headers

# what may end the process runs in another one: a signal there fails the test here
CHILD = """
import sys, warnings
from pathlib import Path
import corank
from corank.errors import InputError
warnings.simplefilter("ignore")
for place in sorted(Path(sys.argv[1]).iterdir()):
    for use in (
        lambda store: corank.SPD(solver="sgd", n_steps=300, random_state=0).fit(store.data),
        lambda store: corank.RankRLS(alpha=1.0).fit(store.X, store.y, qid=store.qid).predict(store.X),
    ):
        try:
            use(corank.data.open_store(place))
        except InputError as error:
            print(place.name, "refused", error, sep="\\t")
        else:
            print(place.name, "taken", sep="\\t")
"""


def small_store(place: Path, as_csr: bool) -> Path:
    rng = np.random.default_rng(0)
    n = 300
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.6)
    y = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n))
    qid = rng.integers(0, 40, n)
    write_store(place, sparse.csr_matrix(X) if as_csr else X, y, qid, [f"d{k}" for k in range(n)])
    return place


def refusal(place: Path) -> str:
    try:
        open_store(place)
    except InputError as error:
        return str(error)
    return "none"


dense_or_csr = pytest.mark.parametrize("as_csr", [pytest.param(False, marks=pytest.mark.long), True])


@dense_or_csr
def test_a_header_says_what_stores_say_or_is_refused(tmp_path: Path, as_csr: bool) -> None:
    right = small_store(tmp_path / "right", as_csr)
    text = (right / "header.json").read_bytes()
    np.zeros(3).tofile(tmp_path / "x.bin")
    # columns of a CSR matrix are held against their number when they are read
    harmless = {"has_qid=True", *(["n_features=0", "n_features=2147483648"] if as_csr else ["layout='dense'"])}
    n_seen = 0
    for name, change in wrong_headers():
        if name in harmless:
            continue
        forge_store(right, change)
        assert re.fullmatch(r"[^\n]* is damaged: [^\n]*; write the store again\.", refusal(right)), name
        (right / "header.json").write_bytes(text)
        n_seen += 1
    assert n_seen > 300
    assert open_store(right).data.n_rows == 300


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"format": "corank store", "version": 1, "sha256": "", "content": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"format": "corank store", "version": 1, "content": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"format": "corank store"' + b" " * (1 << 20) + b"}",
        b"[]",
        b"\xff\xfe",
        b"1" * 5000,
        b'{"format": "corank store", "version": ' + b"[[]]" + b"}",
    ],
)
def test_other_headers_are_refused(tmp_path: Path, text: bytes) -> None:
    (small_store(tmp_path / "s", False) / "header.json").write_bytes(text)
    with pytest.raises(InputError, match=r"is not a store|is damaged|is a store of version"):
        open_store(tmp_path / "s")


def test_a_header_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    place = small_store(tmp_path / "s", False)
    (place / "header.json").unlink()
    os.mkfifo(place / "header.json")
    with pytest.raises(InputError, match="is not a store"):
        open_store(place)


@pytest.mark.long
@dense_or_csr
def test_no_array_leads_a_kernel_astray(tmp_path: Path, as_csr: bool) -> None:
    right, stores = small_store(tmp_path / "right", as_csr), tmp_path / "stores"
    stores.mkdir()
    names = {"0": "the right one"}
    shutil.copytree(right, stores / "0")
    for k, (name, what, change) in enumerate(wrong_arrays(as_csr), start=1):
        shutil.copytree(right, stores / str(k))
        forge_array(stores / str(k), name, change)
        names[str(k)] = f"{name} {what}"
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(stores)], capture_output=True, text=True, timeout=600, check=False
    )
    assert child.returncode == 0, (child.returncode, child.stdout[-300:], child.stderr[-2000:])
    said = [line.split("\t") for line in child.stdout.splitlines()]
    assert len(said) == 2 * len(names)
    for number, outcome, *sentence in said:
        assert outcome == ("taken" if number == "0" else "refused"), names[number]
        if sentence:
            assert sentence[0].startswith(f"{stores / number} is damaged: "), names[number]


@pytest.mark.parametrize("as_csr", [False, True])
def test_a_number_that_is_none_is_named_with_its_place(tmp_path: Path, as_csr: bool) -> None:
    place = small_store(tmp_path / "s", as_csr)
    X = open_store(place).X
    row, column = 200, int(X[200].indices[1]) if as_csr else 3
    at = int(X.indptr[200]) + 1 if as_csr else 200 * 6 + 3
    forge_array(place, "values", lambda a: a.reshape(-1).__setitem__(at, np.nan))
    with pytest.raises(InputError, match=rf"X contains NaN at row {row}, column {column};"):
        _ = open_store(place).data


@pytest.mark.parametrize("stops", [[0] * 300, [-1] + [9] * 299, [2**62] * 300, list(range(300, 0, -1))])
def test_documents_end_where_their_text_does(tmp_path: Path, stops: list[int]) -> None:
    place = small_store(tmp_path / "s", False)
    forge_array(place, "docid_stops", lambda a: np.array(stops))
    store = open_store(place)
    assert store.data.n_rows == 300
    with pytest.raises(InputError, match=r"docid_stops\.bin does not match"):
        _ = store.docids


def test_long_ids_are_kept_once(tmp_path: Path) -> None:
    """A million rows of one long id would need a million times its length; its file holds it once."""
    place = small_store(tmp_path / "s", False)
    wide = np.array([f"{k}" * 20_000 for k in range(40)])
    forge_array(place, "ids", lambda a: wide[: len(a)])
    store = open_store(place)
    assert store.qid.dtype == object
    assert store.qid.tolist() == store.data.queries.ids[store.data.queries.codes].tolist()


def test_opening_reads_no_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = small_store(tmp_path / "s", True)
    for name in ("csr_structure", "all_finite"):
        monkeypatch.setattr(f"corank.data.rows.{name}", lambda *_: pytest.fail("rows were read"))
    monkeypatch.setattr("corank.data.io.stores.index_fault", lambda *_: pytest.fail("the index was read"))
    assert "300 rows" in repr(open_store(place))


def test_rows_and_index_are_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import corank.data.io.stores as files
    import corank.data.rows as rows

    calls: list[str] = []

    def counted(home, name: str) -> None:
        plain = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *given: (calls.append(name), plain(*given))[1])

    counted(rows, "csr_structure")
    counted(files, "index_fault")
    store = open_store(small_store(tmp_path / "s", True))
    for _ in range(3):
        assert store.data.X is store.X
        assert store.qid is store.qid
    assert sorted(calls) == ["csr_structure", "csr_structure", "index_fault"]  # the writer's own, and ours


@pytest.mark.long
@dense_or_csr
def test_a_file_cut_after_opening_gets_a_sentence_and_no_signal(tmp_path: Path, as_csr: bool) -> None:
    child = f"""
import os, sys
import corank
from corank.errors import InputError
from corank.base.pairs import Moments
place = {str(small_store(tmp_path / "s", as_csr))!r}
fresh, used = corank.data.open_store(place), corank.data.open_store(place)
model = corank.SPD(n_steps=100, random_state=0, solver="sgd").fit(used.data)
model.predict(used.X)
search, grades, qid = corank.QuerySearchCV(model, {{"alpha": [1.0]}}), used.y.copy(), used.qid
os.truncate(place + "/values.bin", 10)
os.truncate(place + "/y.bin", 10)
for use in (
    lambda: fresh.X, lambda: fresh.data, lambda: fresh.docids, lambda: model.fit(used.data),
    lambda: model.predict(used.X), lambda: model.partial_fit(used.data), used.verify,
    lambda: Moments.of(used.data), lambda: search.fit(used.X, grades, qid=qid),
    lambda: corank.evaluate(used.y, [1.0] * len(qid), qid), lambda: model.fit([[1.0]] * len(qid), used.y, qid=qid),
):
    try:
        use()
        print("taken")
    except InputError as error:
        print("refused" if "truncated from" in str(error) or "bytes, expected" in str(error) else error)
"""
    ran = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2000:])
    assert ran.stdout.split() == ["refused"] * 11


@pytest.mark.parametrize("name", ["indices", "values", "y", "order", "codes"])
def test_a_file_overwritten_after_opening_is_not_read(tmp_path: Path, name: str) -> None:
    """What was checked before would crash kernels, or give other results without a word."""
    place = small_store(tmp_path / "s", True)
    store = open_store(place)
    data, model = store.data, SPD(n_steps=10, random_state=0, solver="sgd")
    file = place / f"{name}.bin"
    with file.open("r+b") as handle:
        handle.write(b"\x7f" * file.stat().st_size)
    with pytest.raises(InputError, match="a data file was overwritten after it was opened"):
        model.fit(data)


def test_a_store_that_is_written_anew_leaves_an_open_one_as_it_was(tmp_path: Path) -> None:
    place = small_store(tmp_path / "s", True)
    store = open_store(place)
    before = store.X.toarray().copy()
    made = make_ranking(2, 3, random_state=0)
    write_store(place, made.X, made.y, made.qid, overwrite=True)
    np.testing.assert_array_equal(store.X.toarray(), before)
    assert store.data.n_rows == 300
    assert open_store(place).data.n_rows == 6


def test_a_store_of_rows_with_room_behind_the_last_entry(tmp_path: Path) -> None:
    X = sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0]]))
    X.data, X.indices = np.append(X.data, np.nan), np.append(X.indices, 9).astype(np.int32)
    write_store(tmp_path / "s", X, [0, 1])
    np.testing.assert_array_equal(open_store(tmp_path / "s").data.X.toarray(), [[1, 0], [0, 2]])
