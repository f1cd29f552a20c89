"""Parts written as files: the same rows, each query whole in one of them, all files or none."""

from __future__ import annotations

import numpy as np
import pytest

from corank import RankRLS, make_ranking, read
from corank.data import mask_scores
from corank.data.io.write_frames import write_parquet
from corank.deploy.distributed import LocalEngine, Parts, convert_parts, fit_parts
from corank.errors import InputError, MissingExtra

PROBLEM = make_ranking(20, 6, random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.5, random_state=0)


def pieces(*places, qid=QID):
    return [(X[part], Y[part], qid[part]) for part in np.split(np.arange(len(Y)), places)]


def table(*parts):
    """Rows of all parts, as a set."""
    many = [zip(*part, strict=True) for part in parts]
    return sorted(tuple(map(str, [query, score, *row])) for part in many for row, score, query in part)


@pytest.mark.parametrize("kind", ["store", "parquet", "letor"])
@pytest.mark.parametrize("named", [False, True])
def test_files_hold_the_same_rows_and_whole_queries(tmp_path, kind, named):
    qid = np.array([f"q{query}" for query in QID]) if named else QID
    cut = Parts(pieces(10, 11, 11, 50, qid=qid), unscored=-9.0)
    paths = convert_parts(cut, tmp_path / "out", kind)
    assert paths == sorted((tmp_path / "out").iterdir())
    assert not (tmp_path / "out" / "attempts").exists()
    # the part of one row and the one of none have no query of their own
    assert len(paths) == 3
    assert {path.suffix for path in paths} == {{"store": ".store", "parquet": ".parquet", "letor": ".txt"}[kind]}
    how = {"dtype": "float64", "unscored": -9.0} if kind == "letor" else {}
    found = [read(path, **how) for path in paths]
    assert table(*((one.X, one.y, one.qid) for one in found)) == table((X, Y, qid))
    assert len(np.concatenate([np.unique(one.qid) for one in found])) == 20
    again = Parts(paths, unscored=-9.0 if kind == "letor" else None)
    assert again.n_straddling == 0
    if kind != "letor":
        assert fit_parts(RankRLS(), again).coef_.tobytes() == fit_parts(RankRLS(), pieces()).coef_.tobytes()


def test_rows_keep_their_order_in_a_file(tmp_path):
    ids = np.array([2, 1, 3, 1, 1, 2, 3])
    rows = np.arange(7.0)[:, None]
    cut = [(rows[part], rows[part, 0], ids[part]) for part in (slice(0, 5), slice(5, 7))]
    (path,) = convert_parts(cut, tmp_path / "out")
    assert read(path).X.ravel().tolist() == list(range(7))


def test_names_of_columns_go_along(tmp_path):
    names = [f"g{k}" for k in range(X.shape[1])]
    write_parquet(tmp_path / "a.parquet", X, Y, QID, names=names)
    (path,) = convert_parts(tmp_path / "a.parquet", tmp_path / "out", "parquet")
    assert list(read(path).names) == names


def test_a_folder_that_stands_is_replaced_only_when_asked_and_only_where_it_holds_parts(tmp_path):
    out = tmp_path / "out"
    convert_parts(pieces(60), out)
    with pytest.raises(InputError, match="exists already"):
        convert_parts(pieces(), out)
    for parts in (out, sorted(out.iterdir())):  # never the one that is read
        with pytest.raises(InputError, match=r"out contains the input .*part-00000.*, which would be lost"):
            convert_parts(parts, out, "parquet", overwrite=True)
    paths = convert_parts(pieces(60), out, "parquet", overwrite=True)
    assert [path.name for path in paths] == ["part-00000.parquet", "part-00001.parquet"]
    assert paths == sorted(out.iterdir())
    (out / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds mine\.txt, which is not a part"):
        convert_parts(pieces(), out, overwrite=True)
    assert (out / "mine.txt").read_text() == "mine"


def test_nothing_appears_where_a_part_cannot_be_written(tmp_path):
    cut = [(X[:6], np.zeros(6), QID[:6]), (X[6:12], Y[6:12], QID[6:12])]
    with pytest.raises(InputError, match="LETOR text cannot represent"):
        convert_parts(cut, tmp_path / "out", "letor")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="kind is 'csv'"):
        convert_parts(cut, tmp_path / "out", "csv")


def test_a_task_that_runs_twice_leaves_one_file(tmp_path):
    class Twice(LocalEngine):
        def map(self, function, *columns, name):
            if name == "files":
                super().map(function, *columns, name=name)
            return super().map(function, *columns, name=name)

    paths = convert_parts(pieces(60), tmp_path / "out", client=Twice())
    assert len(paths) == 2
    assert paths == sorted((tmp_path / "out").iterdir())


def test_only_parquet_needs_pyarrow(tmp_path, monkeypatch):
    def missing(name, extra):
        raise MissingExtra(f"{name} is not installed; run: pip install 'corank[{extra}]'")

    monkeypatch.setattr("corank.deploy.distributed.convert.import_extra", missing)
    assert convert_parts(pieces(), tmp_path / "store", "store")
    with pytest.raises(MissingExtra, match="pyarrow is not installed"):
        convert_parts(pieces(), tmp_path / "parquet", "parquet")
    assert not (tmp_path / "parquet").exists()
