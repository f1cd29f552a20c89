from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

import corank
from corank.cli.learn.models import find_ranker, rankers
from corank.errors import InputError
from corank.models.labels import CalibratedLabelRanker, OnlineLabelRanker

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NAMES = ["jazz", "rock, loud", "pop"]
U = X @ RNG.normal(size=(3, 3)) + 0.1
TOP = np.where(U > 0, np.argsort(np.argsort(-U, axis=1), axis=1) + 1, 0)


def write(path, rows, y):
    columns = {f"label:{name}": y[:, k] for k, name in enumerate(NAMES)}
    pd.DataFrame({"a": rows[:, 0], **columns, "b": rows[:, 1], "c": rows[:, 2]}).to_csv(path, index=False)
    return path


def test_the_names_of_the_models():
    assert find_ranker("online-label-ranker") is OnlineLabelRanker
    assert find_ranker("calibrated-label-ranker") is CalibratedLabelRanker
    assert {"calibrated-label-ranker", "online-label-ranker"} <= set(rankers())


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["-m", "online-label-ranker", "--loss", "kendall", "--set", "targets=top"],
         OnlineLabelRanker("kendall", "top", random_state=0)),
        (["-m", "calibrated-label-ranker", "--lambda", "0.1", "--set", "targets=top", "--loss", "squared"],
         CalibratedLabelRanker("squared", 0.1, "top")),
    ],
)  # fmt: skip
def test_a_table_of_labels_is_learnt_and_ranked(says, tmp_path, words, model):
    path = write(tmp_path / "train.csv", X, TOP)
    said = says("fit", path, *words, "-o", tmp_path / "m")
    assert "from 60 rows of 3 labels (top), 3 features" in said
    found, frame = corank.load(tmp_path / "m"), pd.DataFrame(X, columns=["a", "b", "c"])
    expected = model.fit(X, TOP).utilities(X)
    np.testing.assert_allclose(found.utilities(frame), expected, rtol=1e-12)
    assert found.classes_.tolist() == NAMES
    printed = says("rank", tmp_path / "m", path)
    header, *rows = csv.reader(io.StringIO(printed))
    assert header == NAMES
    np.testing.assert_array_equal(np.array(rows, dtype=float), found.utilities(frame))
    assert "60 rows" in says("rank", tmp_path / "m", path, "-o", tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == printed


def test_parts_of_a_stream_are_gone_over_once_in_their_order(says, tmp_path):
    parts = [write(tmp_path / f"{k}.csv", X[k::2], TOP[k::2]) for k in (0, 1)]
    says("fit", *parts, "-m", "online-label-ranker", "--set", "targets=top", "-o", tmp_path / "m")
    order = np.concatenate([np.arange(0, 60, 2), np.arange(1, 60, 2)])
    expected = OnlineLabelRanker(targets="top").partial_fit(X[order], TOP[order])
    np.testing.assert_array_equal(corank.load(tmp_path / "m").coef_, expected.coef_)


def test_one_label_a_row_is_a_class_in_any_file(says, made, tmp_path):
    corank.data.write_letor(tmp_path / "rows.txt", made.X, made.y, made.qid)
    said = says("fit", tmp_path / "rows.txt", "-m", "calibrated-label-ranker", "-o", tmp_path / "m")
    assert "(classes)" in said
    model = corank.load(tmp_path / "m")
    assert model.classes_.tolist() == sorted(set(made.y.astype(int)))
    assert says("rank", tmp_path / "m", tmp_path / "rows.txt").splitlines()[0] == ",".join(map(str, model.classes_))


def test_what_makes_no_sense_gets_a_sentence_and_no_file(says, tmp_path):
    path = write(tmp_path / "train.csv", X, TOP)
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n")
    (tmp_path / "labels.csv").write_text("label:a,label:b\n1,0\n")
    for words, message in (
        ((path, "-m", "online-label-ranker"), "numbers other than 0 and 1; pass targets"),
        ((path, "-m", "online-label-ranker", "--scale", "minmax"), "--scale applies to rows of queries"),
        ((path, "-m", "online-label-ranker", "--lambda", "1"), "which OnlineLabelRanker does not have"),
        ((path, path, "-m", "calibrated-label-ranker"), "found 2 files"),
        ((tmp_path / "plain.csv", "-m", "online-label-ranker"), "no columns label:NAME, and no class"),
        ((tmp_path / "labels.csv", "-m", "online-label-ranker"), "all 2 columns are label columns"),
    ):
        with pytest.raises(InputError, match=message):
            says("fit", *words, "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()
    says("fit", path, "-m", "online-label-ranker", "--set", "targets=top", "-o", tmp_path / "m")
    for words, message in (
        ((path, "--format", "trec", "-o", tmp_path / "run"), "ranks labels"),
        ((path, path), "found 2 files"),
        ((tmp_path / "plain.csv",), "lacks 'c', which the model was fitted on"),
    ):
        with pytest.raises(InputError, match=message):
            says("rank", tmp_path / "m", *words)
