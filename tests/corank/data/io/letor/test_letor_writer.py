from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from corank.data.io.write import write_letor
from corank.errors import InputError


def test_sklearn_reads_what_is_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random(2500, 30, 0.2, format="csr", random_state=1)
    y, qid = rng.integers(0, 3, 2500), np.repeat(np.arange(250), 10)
    write_letor(tmp_path / "a.txt", X, y, qid)
    back, labels, groups = load_svmlight_file(tmp_path / "a.txt", query_id=True, n_features=30)
    assert (back != X).nnz == 0
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(groups, qid)


def test_repeated_entries_are_summed_in_the_text_only(tmp_path: Path) -> None:
    X = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    write_letor(tmp_path / "a.txt", X, [1])
    assert (tmp_path / "a.txt").read_text() == "1 1:3.0\n"
    assert X.nnz == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [1.0, np.nan]}, "y is NaN at row 1.*pass unjudged="),
        ({"y": [1.0]}, "y has 1 scores for 2 rows"),
        ({"qid": ["a b", "c"]}, "qid contains 'a b'"),
        ({"qid": ["", "c"]}, "qid contains ''"),
        ({"comments": ["x"]}, "comments has 1 entries, but X has 2 rows"),
        ({"comments": ["x", "a\nb"]}, "comment of row 1 contains a line break"),
        ({"X": np.zeros((0, 2)), "y": []}, "minimum of 1 is required"),
        ({"X": [[1.0], [np.inf]]}, "X contains infinity"),
    ],
)
def test_what_text_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path, options: dict, message: str) -> None:
    arguments = {"X": [[1.0], [2.0]], "y": [1.0, 0.0]} | options
    with pytest.raises(InputError, match=message):
        write_letor(tmp_path / "a.txt", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"qid": [0, "0"]}, "qid holds ids that LETOR text cannot store"),
        ({"qid": [b"a", b"b"]}, "qid holds ids that LETOR text cannot store"),
        (
            {"y": [-1, np.nan], "unjudged": -1},
            "unjudged is -1, which is also the label of row 0; choose a label that no judged row has",
        ),
        ({"y": [1, np.nan], "unjudged": np.nan}, "unjudged is nan, which is not finite"),
    ],
)
def test_what_would_read_back_otherwise_is_refused(tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_letor(tmp_path / "t", **({"X": [[1.0], [2.0]], "y": [1, 0]} | options))
    assert list(tmp_path.iterdir()) == []


def test_no_comment_may_be_none(tmp_path: Path) -> None:
    write_letor(tmp_path / "t", [[1.0], [2.0]], [1, 0], comments=[None, "x"])
    assert (tmp_path / "t").read_text() == "1 1:1.0\n0 1:2.0 #x\n"
