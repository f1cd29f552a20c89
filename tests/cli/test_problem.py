from __future__ import annotations

import numpy as np
import pytest

from corank.cli.problem import read_problem
from corank.data.frames import write_parquet
from corank.data.letor_writer import write_letor
from corank.data.make import make_ranking
from corank.data.store import write_store
from corank.errors import InputError

MADE = make_ranking(6, 5, features_per_view=5, random_state=0)
Y = np.where(MADE.y == 0, -1.0, MADE.y)
DOCS = np.array([f"d{row}" for row in range(len(Y))], dtype=object)


@pytest.fixture(params=["rows.txt.gz", "rows.store", "rows.parquet"])
def path(request, tmp_path):
    place = tmp_path / request.param
    if place.suffix == ".gz":
        write_letor(place, MADE.X, Y, MADE.qid, comments=DOCS)
    else:
        (write_store if place.suffix == ".store" else write_parquet)(place, MADE.X, Y, MADE.qid, docids=DOCS)
    return place


def test_every_kind_of_file_gives_the_same_problem(path):
    problem = read_problem([path], unscored=-1)
    np.testing.assert_allclose(problem.data.X, MADE.X, rtol=1e-6)
    np.testing.assert_array_equal(problem.data.y, np.where(Y == -1, np.nan, Y))
    assert problem.data.n_pairs == read_problem([path], unscored=-1.0).data.n_pairs
    assert [str(q) for q in problem.source.qid] == [str(q) for q in MADE.qid]
    assert problem.source.docids.tolist() == DOCS.tolist()


def test_query_ids_can_be_ignored(path):
    data = read_problem([path], unscored=-1, qid="none").data
    assert len(data.queries) == 1
    assert data.n_features == MADE.X.shape[1]


def test_a_marker_that_no_row_has_changes_nothing(path):
    assert read_problem([path], unscored=-7).data.n_scored == len(Y)


def test_text_files_are_put_together(tmp_path):
    write_letor(tmp_path / "a.txt", MADE.X[:10], Y[:10], MADE.qid[:10])
    write_letor(tmp_path / "b.txt", MADE.X[10:], Y[10:], MADE.qid[10:])
    assert read_problem([tmp_path / "a.txt", tmp_path / "b.txt"]).data.n_rows == len(Y)


def test_two_stores_are_refused(tmp_path):
    write_store(tmp_path / "a.store", MADE.X, Y, MADE.qid)
    with pytest.raises(InputError, match="2 inputs came"):
        read_problem([tmp_path / "a.store", tmp_path / "a.store"])


def test_a_column_name_needs_parquet(tmp_path):
    write_letor(tmp_path / "a.txt", MADE.X, Y, MADE.qid)
    with pytest.raises(InputError, match="is not Parquet"):
        read_problem([tmp_path / "a.txt"], qid="session")
