from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.data.io.frames import read_parquet
from corank.data.io.letor_reader import read_letor
from corank.data.io.stores import open_store
from corank.data.io.write import write_letor
from corank.errors import InputError


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["convert", *(str(argument) for argument in arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def text(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5)).astype(np.float32)
    y = rng.integers(-1, 3, 90)
    write_letor(tmp_path / "a.txt", X, y, np.repeat(np.arange(9), 10), [f"docid = D{k} inc = 1" for k in range(90)])
    return tmp_path / "a.txt"


def test_text_to_store_to_parquet_to_text_changes_nothing(tmp_path: Path, text: Path) -> None:
    out = run(text, tmp_path / "s", "--unjudged", "-1")
    assert "90 rows, 9 queries, 5 features" in out
    assert out.count("\n") == 1
    run(tmp_path / "s", tmp_path / "t.parquet")
    run(tmp_path / "t.parquet", tmp_path / "b.txt.gz", "--unjudged", "-1")
    first, last = read_letor(text, unjudged=-1), read_letor(tmp_path / "b.txt.gz", unjudged=-1)
    for table in (open_store(tmp_path / "s"), read_parquet(tmp_path / "t.parquet"), last):
        np.testing.assert_array_equal(table.X, first.X)
        np.testing.assert_array_equal(table.y, first.y)
        np.testing.assert_array_equal(table.qid, first.qid)
        assert table.docids.tolist() == first.docids.tolist()


def test_text_to_text_keeps_comments_and_joins_files(tmp_path: Path, text: Path) -> None:
    run(text, text, tmp_path / "b.letor.xz")
    assert read_letor(tmp_path / "b.letor.xz").comments.tolist() == read_letor(text).comments.tolist() * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.txt", "b.xlsx"], r"format of .*b\.xlsx is unknown; use the suffix \.txt"),
        (["none.txt", "s"], r"there is no .*none\.txt"),
        (["a.txt", "a.txt"], "is also an input"),
        (["a.txt", "s.store"], r"s\.store exists already; .*overwrite=True"),
        (["s.store", "a.txt", "t.store"], "only LETOR text can be concatenated"),
        (["s.store", "t.store", "--unjudged", "-1"], "stores mark unjudged rows by NaN"),
        (["s.store", "b.txt"], r"y is NaN at row .*pass unjudged="),
    ],
)
def test_faults_are_named_and_nothing_is_left(tmp_path: Path, text: Path, arguments: list[str], message: str) -> None:
    run(text, tmp_path / "s.store", "--unjudged", "-1")
    before = sorted(entry.name for entry in tmp_path.iterdir())
    with pytest.raises(InputError, match=message):
        run(*(a if a.startswith("-") or a.isdigit() else tmp_path / a for a in arguments))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before


def test_force_replaces(tmp_path: Path, text: Path) -> None:
    for target in ("b.txt", "s.store", "t.parquet"):
        run(text, tmp_path / target)
        run(text, text, tmp_path / target, "--force")
    assert len(read_letor(tmp_path / "b.txt").y) == 180
    assert open_store(tmp_path / "s.store").data.n_rows == 180
    assert len(read_parquet(tmp_path / "t.parquet").y) == 180


def test_a_table_of_text_becomes_anything_and_keeps_its_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("docid,label,qid,bm25,age\nA,1,7,0.5,3\nB,-1,7,0.25,4\n")
    for target in ("t.store", "t.parquet", "t.txt"):
        out = run(tmp_path / "t.csv", tmp_path / target, "--unjudged", "-1")
        assert "2 rows, 1 queries, 2 features" in out
    store, table = open_store(tmp_path / "t.store"), read_parquet(tmp_path / "t.parquet")
    for rows in (store, table, read_letor(tmp_path / "t.txt", unjudged=-1)):
        assert rows.X.tolist() == [[0.5, 3], [0.25, 4]]
        np.testing.assert_array_equal(rows.y, [1, np.nan])
        assert (rows.qid.tolist(), rows.docids.tolist()) == ([7, 7], ["A", "B"])
    assert table.names == ["bm25", "age"]


def test_columns_of_text_are_not_named(tmp_path: Path, text: Path) -> None:
    for words in (["--label", "grade"], ["--qid", "session"]):
        with pytest.raises(InputError, match="names a column"):
            run(text, tmp_path / "s.store", *words)
