from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from experiments.datasets.mq2008 import BASELINES, folds, published, read_parts


def test_every_part_is_tested_and_tuned_on_once_and_never_trained_on_in_the_same_fold():
    assert sorted(fold.test for fold in folds()) == [1, 2, 3, 4, 5]
    assert sorted(fold.validation for fold in folds()) == [1, 2, 3, 4, 5]
    for fold in folds():
        assert sorted((*fold.train, fold.validation, fold.test)) == [1, 2, 3, 4, 5]


def test_the_collection_has_the_published_size(real_data):
    rows = read_parts()
    assert rows.X.shape == (15211, 46)
    assert len(np.unique(rows.qid)) == 784
    assert np.bincount(rows.y.astype(int)).tolist() == [12279, 2001, 931]


@pytest.mark.parametrize("method", BASELINES)
def test_the_published_average_is_the_mean_of_the_folds(real_data, method):
    found = published(method)
    path = real_data / "letor4_mq2008" / "published_baselines" / f"{method}.MQ2008.txt"
    tables = path.read_text().split("Performance on validation set")[0].strip().split("\n\n")
    last = [float(line.split()[-1]) for line in tables[-1].splitlines()[1:6]]
    assert abs(np.mean(last) - found["MAP"]) < 2e-4


def test_missing_data_says_where_to_put_it(monkeypatch, tmp_path):
    monkeypatch.setenv("CORANK_DATA", str(tmp_path))
    with pytest.raises(InputError, match="set CORANK_DATA"):
        published("RankBoost")
