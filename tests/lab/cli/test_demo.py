from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

import corank
from corank.errors import InputError


@pytest.mark.long
def test_the_demo_runs_commands_of_three_tasks_that_users_can_repeat(says, tmp_path):
    said = says("demo", "--output", tmp_path / "a b")
    for word in ("Tune search", "Donners", "10.34894/HE6NAQ", "WSS@95", "in truth owl fox", "Vote next"):
        assert word in said
    for picture in ("screening/recall.png", "votes.png"):
        assert (tmp_path / "a b" / picture).read_bytes().startswith(b"\x89PNG")
    # queries of others.csv were not used to learn the fusion; its value is that of the library
    folder = tmp_path / "a b"
    runs = corank.data.read_runs([folder / "bm25.run", folder / "vectors.run"])
    few, others = (runs.join(corank.data.read_grades(folder / name)[0])[0] for name in ("judgements.csv", "others.csv"))
    assert not set(runs.qid[~np.isnan(few)]) & set(runs.qid[~np.isnan(others)])
    assert "nDCG@10" in said.partition("evaluate")[2]
    # each command is printed so that it runs, and gives the same
    commands = [shlex.split(line)[2:] for line in said.splitlines() if line.startswith("$ corank ")]
    assert len(commands) == 5
    for words in commands:
        more = ["--force"] if {"--output", "--plot"} & {*words} else []
        assert re.sub(r"\d\.\d+ *$", "", says(*words, *more), flags=re.MULTILINE) in re.sub(
            r"\d\.\d+ *$", "", said, flags=re.MULTILINE
        )
    with pytest.raises(InputError, match=r"fusion\.json exists already"):
        says("demo", "--output", folder)
    says("demo", "--output", folder, "--force")


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
