"""The reader of MovieLens against a parse line by line."""

from __future__ import annotations

import lzma

import numpy as np
import pytest

from corank.errors import InputError
from experiments.datasets import movielens


def write(folder, text, monkeypatch):
    (folder / "movielens1m").mkdir()
    (folder / "movielens1m" / "ratings.csv").write_text(text)
    monkeypatch.setenv("CORANK_DATA", str(folder))
    movielens.read_ratings.cache_clear()


@pytest.fixture(autouse=True)
def _forget():
    yield
    movielens.read_ratings.cache_clear()


def test_ratings_stand_where_user_and_item_meet(tmp_path, monkeypatch):
    write(tmp_path, "user,item,rating\n1,2,5\n3,1,4\n", monkeypatch)
    np.testing.assert_array_equal(movielens.read_ratings(), [[np.nan, 5.0], [np.nan, np.nan], [4.0, np.nan]])


@pytest.mark.parametrize("text", ["user,item,rating\n1,2\n", "a,b,c\n1,2,3\n", "user,item,rating\n0,1,3\n"])
def test_another_file_is_refused(tmp_path, monkeypatch, text):
    write(tmp_path, text, monkeypatch)
    with pytest.raises(InputError, match="does not hold user, item and rating"):
        movielens.read_ratings()


def test_the_real_file(real_data):
    ratings = movielens.read_ratings()
    with lzma.open(real_data / "movielens1m" / "ratings.csv.xz", "rt") as lines:
        next(lines)
        first = [next(lines) for _ in range(1000)]
    for line in first:
        user, item, rating = map(int, line.split(","))
        assert ratings[user - 1, item - 1] == rating
    assert (~np.isnan(ratings)).sum() == 999_714
