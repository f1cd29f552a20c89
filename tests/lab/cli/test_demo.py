from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import corank
import corank_lab.screening


@pytest.mark.long
def test_the_demo_learns_compares_and_saves(says, tmp_path):
    said = says("demo", "--output", tmp_path, "--queries", 90)
    for word in (
        "Donners",
        "10.34894/HE6NAQ",
        "100 % |",
        "careful rule",
        "SPD",
        "CRR",
        "LCRA",
        "nDCG@10",
        "sign-flip",
        "the loaded model gives the same scores",
    ):
        assert word in said
    data = corank.data.open_store(tmp_path / "training.store").data
    model = corank.load(tmp_path / "lcra.safetensors")
    assert model.n_features_in_ == data.n_features
    # 5 % of the 60 training queries
    assert len(data.queries) == 60
    assert len(np.unique(data.queries.codes[data.is_scored])) == 3
    again = says("demo", "--output", tmp_path, "--queries", 90)
    assert table_of(again) == table_of(said)
    assert len(table_of(said)) >= 4


@pytest.mark.long
def test_the_review_of_the_demo_can_be_screened_where_it_says(says, tmp_path):
    said = says("demo", "--output", tmp_path, "--queries", 60)
    (path,) = re.findall(r"screen it yourself: corank screen (.*) --ignore-labels\n", said)
    assert Path(path).parent == tmp_path
    # in a terminal, a fully labelled file leads to a question, unless its labels are ignored
    assert "All records have a label" not in says("screen", path, "--ignore-labels")
    assert said.splitlines()[-1].startswith(f"open the pages for people who judge: corank lab {tmp_path}")
    assert corank_lab.screening.read_records(path).ids == corank_lab.screening.load_review().ids
    replayed = says("screen", "replay", path, "--starts", 10)
    (atd, _, wss), *_ = re.findall(r"mean +(\S+) +(\S+) +(\S+)", replayed)
    (read, saved) = re.search(r"corank, until 95 % are found +(\d+) +100% +(\d+)%", said).groups()
    # WSS@95 is the share that is saved then, less 5 %
    assert abs(int(saved) / 100 - 0.05 - float(wss)) < 0.01
    assert abs(1 - int(read) / 256 - 0.05 - float(wss)) < 0.01
    assert float(atd) < 0.1


def test_the_files_of_the_demo_hold_what_it_says(says, tmp_path):
    said = says("demo", "--files", "--output", tmp_path)
    names = ("products.csv", "judged.csv", "train.txt.gz", "test.txt.gz", "old.scores")
    lists = ("bm25.run", "vectors.run", "judgements.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((*names, *lists))
    assert all(f"{tmp_path / name}: " in said for name in names)
    products, judged = (corank.read(tmp_path / name) for name in names[:2])
    graded = set(products.qid[~np.isnan(products.y)])
    assert (len(graded), len(set(products.qid)), len(set(judged.qid))) == (40, 60, 40)
    assert not np.isnan(judged.y).any()
    assert not set(products.qid) & set(judged.qid)
    assert products.names == judged.names == ["bm25", "title", "clicks", "age", "price", "stock"]
    train, test = corank.read(tmp_path / "train.txt.gz", unjudged=-1), corank.read(tmp_path / "test.txt.gz")
    assert 10 < len(set(train.qid[~np.isnan(train.y)])) < 30
    assert not np.isnan(test.y).any()
    assert len(np.loadtxt(tmp_path / "old.scores")) == len(test.y)
    before = {name: (tmp_path / name).read_bytes() for name in names}
    says("demo", "--files", "--output", tmp_path)
    assert before == {name: (tmp_path / name).read_bytes() for name in names}


def table_of(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.split()[:1] in (["SPD"], ["CRR"], ["LCRA"], ["ideal"])]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_the_smallest_demo_runs_whatever_the_seed(says, tmp_path, seed):
    assert "the loaded model gives the same scores" in says(
        "demo", "--output", tmp_path, "--queries", 60, "--seed", seed
    )
