"""LETOR text a piece at a time, held against the same text read whole."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse

from corank.data.io import letor_reader
from corank.data.io.letor_reader import Scattered, read_letor, stream_letor, whole_queries
from corank.errors import InputError


@pytest.fixture(params=[1, 40, 1000])
def _piece(request, monkeypatch):
    monkeypatch.setattr(letor_reader, "BLOCK", request.param)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def written(tmp_path, text, name="rows.txt"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


ROWS = "# head\n" + "".join(
    f"{k % 3} qid:{k // 7} {' '.join(f'{j}:{k + j / 8}' for j in range(1, 1 + k % 5))} # d{k} more\n"
    for k in range(100)
)


@pytest.mark.usefixtures("_piece")
@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz"])
@pytest.mark.parametrize("layout", ["auto", "dense"])
def test_pieces_are_the_rows_of_the_whole(tmp_path, name, layout):
    paths = [written(tmp_path, ROWS, name), written(tmp_path, "1 qid:x 2:5 # last", "more.txt")]
    whole = read_letor(paths, n_features=6)
    for together in (lambda blocks: blocks, whole_queries):
        blocks = list(together(stream_letor(paths, n_features=6, layout=layout, docids=True)))
        np.testing.assert_array_equal(np.vstack([dense(block.X) for block in blocks]), dense(whole.X))
        assert [str(one) for block in blocks for one in block.qid] == whole.qid.tolist()
        assert [one for block in blocks for one in block.docids] == whole.docids.tolist()
        if layout == "dense":
            assert not any(sparse.issparse(block.X) for block in blocks)
    for block in blocks:  # whole queries
        assert all((whole.qid == str(query)).sum() == (block.qid == query).sum() for query in set(block.qid.tolist()))


@pytest.mark.usefixtures("_piece")
def test_rows_without_queries(tmp_path):
    path = written(tmp_path, "1 1:0.5\n\n# nothing\n0 2:0.25\n" * 30)
    blocks = list(stream_letor([path], n_features=2))
    assert {block.qid is None for block in blocks} == {True}
    assert sum(map(len, blocks)) == 60
    with pytest.raises(Scattered):
        list(whole_queries(iter(blocks)))


@pytest.mark.usefixtures("_piece")
@pytest.mark.parametrize("text", ["1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:1\n", "# nothing\n\n"])
def test_what_does_not_stand_together_is_scattered(tmp_path, text):
    with pytest.raises(Scattered):
        list(whole_queries(stream_letor([written(tmp_path, text)], n_features=1)))


@pytest.mark.usefixtures("_piece")
@pytest.mark.parametrize(
    "line", ["1 qid:4 1:x", "one qid:4 1:1", "1 1:1", "1 qid:4 9:1", "1 qid:4 2:1 1:1", "1 qid:4 1:1 # a\rb"]
)
def test_a_fault_is_said_as_of_the_whole(tmp_path, line):
    path = written(tmp_path, ROWS + line + "\n" + ROWS)
    with pytest.raises(InputError) as whole:
        read_letor(path, n_features=8)
    with pytest.raises(InputError) as pieces:
        list(stream_letor([path], n_features=8))
    assert str(pieces.value) == str(whole.value)
    assert "line 102" in str(pieces.value)
