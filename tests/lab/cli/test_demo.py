from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import corank
import corank_lab.screening


@pytest.mark.long
def test_the_demo_shows_three_tasks_and_a_picture_of_each(says, tmp_path):
    said = says("demo", "--output", tmp_path)
    for word in ("Tune search", "Donners", "10.34894/HE6NAQ", "100 % |", "careful rule", "The true order is owl fox"):
        assert word in said
    for picture in ("search.png", "screening.png", "votes.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
        assert str(tmp_path / picture) in said
    # figures of the table, computed from the files that the demo wrote: the queries of others.csv were not used
    runs = corank.data.read_runs([tmp_path / "bm25.run", tmp_path / "vectors.run"])
    few, others = (
        runs.join(corank.data.read_grades(tmp_path / name)[0])[0] for name in ("judgements.csv", "others.csv")
    )
    assert not set(runs.qid[~np.isnan(few)]) & set(runs.qid[~np.isnan(others)])
    fusion = corank.Fusion(random_state=0).fit(runs.X, few, qid=runs.qid)
    tested = ~np.isnan(others)
    value = corank.evaluate(others[tested], fusion.predict(runs.X, qid=runs.qid)[tested], runs.qid[tested], "nDCG@10")[
        "nDCG@10"
    ].mean
    assert re.search(rf"^fusion +{value:.4f}", said, re.MULTILINE)
    again = says("demo", "--output", tmp_path)
    assert re.sub(r"\d+\.\d s", "", again) == re.sub(r"\d+\.\d s", "", said)


@pytest.mark.long
def test_the_review_of_the_demo_can_be_screened_where_it_says(says, tmp_path):
    said = says("demo", "--output", tmp_path)
    (path,) = re.findall(r"screen it yourself: corank screen (.*) --ignore-labels\n", said)
    assert Path(path).parent == tmp_path
    # in a terminal, a fully labelled file leads to a question, unless its labels are ignored
    assert "All records have a label" not in says("screen", path, "--ignore-labels")
    assert said.splitlines()[-1].startswith(f"the pages for people who judge: corank lab {tmp_path}")
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
    lists = ("bm25.run", "vectors.run", "judgements.csv", "others.csv", "votes.csv", "llm.csv", "review.jsonl")
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
