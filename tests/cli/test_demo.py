from __future__ import annotations

import numpy as np
import pytest

import corank


def test_the_demo_learns_compares_and_saves(says, tmp_path):
    said = says("demo", "--output", tmp_path, "--queries", 90)
    for word in ("SPD", "CRR", "LCRA", "nDCG@10", "Wilcoxon", "it ranks the same"):
        assert word in said
    data = corank.open_store(tmp_path / "training.store").data
    model = corank.load(tmp_path / "lcra.safetensors")
    assert model.n_features_in_ == data.n_features
    # 5 % of the 60 training queries
    assert len(data.queries) == 60
    assert len(np.unique(data.queries.codes[data.is_scored])) == 3
    again = says("demo", "--output", tmp_path, "--queries", 90)
    assert table_of(again) == table_of(said)
    assert len(table_of(said)) >= 4


def table_of(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.split()[:1] in (["SPD"], ["CRR"], ["LCRA"], ["ideal"])]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_smallest_demo_runs_whatever_the_seed(says, tmp_path, seed):
    assert "it ranks the same" in says("demo", "--output", tmp_path, "--queries", 60, "--seed", seed)
