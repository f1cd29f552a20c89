from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from corank.data.io.items import Items, read_items
from corank.errors import InputError

ROWS = [
    {"id": 7, "name": "tea", "price": 1.5, "story": "green", "good": 2},
    {"id": 8, "name": "milk", "price": 1.0, "story": None, "good": 1},
    {"id": 9, "name": 'ü, "water"', "price": 0.0, "story": "3", "good": 3},
]


def written(folder, form):
    path = folder / f"things.{form}"
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(arrow.Table.from_pylist(ROWS), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        text = 'id;name;price;story;good\n7;tea;1.5;green;2\n8;milk;1.0;;1\n9;"ü, ""water""";0;3;3\n'
        path.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())
    return path


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet"])
def test_every_format_gives_the_same_items(form, tmp_path):
    items, y = read_items(written(tmp_path, form), judged="good")
    assert items.names == ["tea", "milk", 'ü, "water"']
    assert items.columns == ["price"]  # not the id, text, or the grades
    np.testing.assert_array_equal(items.X, [[1.5], [1.0], [0.0]])
    np.testing.assert_array_equal(y, [2.0, 1.0, 3.0])
    assert list(items.fields[0]) == ["id", "price", "story"]
    assert "story" not in items.fields[1]


def test_columns_are_chosen_by_name(tmp_path):
    path = written(tmp_path, "csv")
    assert read_items(path, name="id")[0].names == ["7", "8", "9"]
    assert read_items(path, features=["good", "id"])[0].X.tolist() == [[2, 7], [1, 8], [3, 9]]
    assert read_items(path, features=[])[0].X.shape == (3, 0)
    (tmp_path / "bare.csv").write_text("what\na\nb\n")
    assert read_items(tmp_path / "bare.csv")[0].names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\n", "has no rows"),
        ("name\na\n", "names has 1 items; pass at least two"),
        ("name,x\na,1\na,2\n", "two rows have the name 'a'"),
        ("name,x\na,1\n,2\n", "line 3: column 'name' is empty"),
        ("name,x\na,1\nb,\n", "line 3: column 'x' is empty; fill it, or choose other columns with features="),
        ("name,name\na,1\n", "two columns named 'name'"),
    ],
)
def test_a_bad_list_of_items_raises(text, message, tmp_path):
    path = tmp_path / "things.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_items(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n{}", "has no rows"),
        ("{}\n{}\n", "has no rows"),
        (f'{{"name": "a", "x": {"9" * 400}}}\n{{"name": "b", "x": 1}}\n', "line 1: column 'x' is infinite"),
    ],
)
def test_bad_json_lines_of_items_raise(text, message, tmp_path):
    path = tmp_path / "things.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_items(path)


def test_an_unknown_suffix_and_missing_columns_raise(tmp_path):
    with pytest.raises(InputError, match="has an unknown suffix"):
        read_items(tmp_path / "things.txt")
    with pytest.raises(InputError, match="no column 'nam' for name="):
        read_items(written(tmp_path, "csv"), name="nam")
    with pytest.raises(InputError, match="one row of finite numbers per name"):
        Items(["a", "b"], [[1.0], [np.nan]])
    with pytest.raises(InputError, match="there is no file"):
        read_items(tmp_path / "none.parquet")


def test_a_column_has_only_one_role(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,size,age\na,1,2\nb,2,3\n")
    with pytest.raises(InputError, match="column 'name' holds the names, so it cannot"):
        read_items(path, judged="name")
    with pytest.raises(InputError, match="column 'size' is a feature, so it cannot"):
        read_items(path, features=["size"], judged="size")
    path.write_text("name,size\na,1\nb,inf\nc,3\n")
    with pytest.raises(InputError, match="line 3: column 'size' is infinite"):
        read_items(path)
