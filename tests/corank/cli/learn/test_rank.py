from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.cli.learn.models import nonzero_columns, warn_of_absent_features
from corank.data.io import letor_reader
from corank.data.io.stores import write_store
from corank.data.io.trec import read_run
from corank.data.io.write import write_parquet
from corank.errors import InputError, UsageWarning


def test_rank_writes_a_run_that_trec_tools_read(says, made, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    said = says("rank", tmp_path / "m", text, "-o", tmp_path / "run.txt", "--format", "trec", "--tag", "mine")
    assert "240 rows in 30 queries" in said
    run = read_run(tmp_path / "run.txt")
    scores = corank.load(tmp_path / "m").predict(made.X)
    expected = {(str(q), f"d{row}"): score for row, (q, score) in enumerate(zip(made.qid, scores, strict=True))}
    assert dict(zip(zip(run.qid, run.docids, strict=True), run.scores, strict=True)) == pytest.approx(expected)
    assert run.tag == "mine"


def test_a_run_needs_a_file(says, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    with pytest.raises(InputError, match="name it with --output"):
        says("rank", tmp_path / "m", text, "--format", "trec")


def test_rows_with_more_features_than_the_model_are_refused(says, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 1:0.5 11:2\n")
    with pytest.raises(InputError, match="11"):
        says("rank", tmp_path / "m", wide, "-o", tmp_path / "scores.txt")
    assert not (tmp_path / "scores.txt").exists()


WARNED = pytest.mark.filterwarnings("always::corank.errors.UsageWarning")


@WARNED
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_text_of_fewer_features_than_the_model_is_told(layout):
    rng = np.random.default_rng(0)
    X = np.zeros((40, 136), dtype=np.float32)
    X[:, :46] = rng.random((40, 46))
    X[:, 5:10] = 0.0  # as in MQ2008, where some columns of some queries are 0 throughout
    rows = sparse.csr_matrix(X) if layout == "csr" else X
    with pytest.warns(UsageWarning, match=r"^a.txt has no feature above 46"):
        warn_of_absent_features(nonzero_columns(rows), "a.txt", "m")


@WARNED
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_rows_that_may_well_have_all_features_are_not_told(layout, recwarn):
    rng = np.random.default_rng(0)
    whole, sparse_text, short = rng.random((9, 30)), np.zeros((9, 3000)), rng.random((9, 30))
    # a share of a large vocabulary: the last of its words occurs as rarely as others
    sparse_text[0, rng.choice(2990, 200, replace=False)] = 1.0
    short[:, 12:14] = short[:, 26:] = 0.0
    for X in (whole, sparse_text, short, np.eye(3)[:, :1]):
        warn_of_absent_features(nonzero_columns(sparse.csr_matrix(X) if layout == "csr" else X), "a.txt", "m")
    assert not recwarn.list


@WARNED
def test_ranking_goes_on_after_the_warning(says, made, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    narrow = made.X.copy()
    narrow[:, 4:] = 0.0
    corank.data.write_letor(tmp_path / "narrow.txt", made.X[:, :4], made.y, made.qid)
    with pytest.warns(UsageWarning, match=r"narrow.txt has no feature above 4"):
        says("rank", tmp_path / "m", tmp_path / "narrow.txt", "-o", tmp_path / "scores")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores"), corank.load(tmp_path / "m").predict(narrow), rtol=1e-6)


@pytest.mark.parametrize(("name", "write"), [("narrow.store", write_store), ("narrow.parquet", write_parquet)])
def test_a_table_of_another_width_is_refused(says, made, text, tmp_path, name, write):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    write(tmp_path / name, made.X[:, :7], made.y, made.qid)
    with pytest.raises(InputError, match=f"{name} has 7 features.*, but .*m was fitted on 10; pass rows"):
        says("rank", tmp_path / "m", tmp_path / name, "-o", tmp_path / "scores.txt")
    assert not (tmp_path / "scores.txt").exists()


def test_rows_of_a_table_are_ranked_by_its_queries(says, made, text, tmp_path):
    says("fit", text, "-m", "crr", "--unjudged", "-1", "-o", tmp_path / "m")
    frame = pd.DataFrame(made.X, columns=[f"f{k}" for k in range(10)]).assign(label=made.y, session=made.qid)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ["rank", tmp_path / "m", tmp_path / "rows.csv", "--qid", "session", "--format", "trec", "-o"]
    assert "240 rows in 30 queries" in says(*words, tmp_path / "run")
    run = read_run(tmp_path / "run")
    scores = dict(zip(run.docids, run.scores, strict=True))
    expected = corank.load(tmp_path / "m").predict(made.X.astype(np.float64))
    np.testing.assert_allclose([scores[str(row + 1)] for row in range(240)], expected, rtol=1e-6)


def test_what_does_not_rank_is_refused(says, made, text, tmp_path):
    corank.save(corank.QueryScaler().fit(made.X), tmp_path / "m")
    with pytest.raises(InputError, match="m contains a QueryScaler"):
        says("rank", tmp_path / "m", text)


def test_a_table_without_labels_or_with_other_names_does_on_the_command_line(says, made, tmp_path):
    table = pd.DataFrame(made.X).rename(columns="f{}".format).assign(query=made.qid)
    table.assign(grade=made.y).to_csv(tmp_path / "graded.csv", index=False)
    table.to_csv(tmp_path / "bare.csv", index=False)
    names = ("--label", "grade", "--qid", "query")
    says("fit", tmp_path / "graded.csv", "-m", "spd", *names, "-o", tmp_path / "m")
    says("rank", tmp_path / "m", tmp_path / "bare.csv", "--qid", "query", "-o", tmp_path / "bare")
    says("rank", tmp_path / "m", tmp_path / "graded.csv", *names, "-o", tmp_path / "graded")
    assert (tmp_path / "bare").read_text() == (tmp_path / "graded").read_text()
    expected = corank.SPD(random_state=0).fit(made.X.astype(np.float64), made.y, qid=made.qid).predict(made.X)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "bare"), expected, rtol=1e-4, atol=1e-6)
    plain = corank.evaluate(made.y, np.loadtxt(tmp_path / "bare"), made.qid, "AP")["AP"].mean
    assert f"{plain:.4f}" in says("evaluate", tmp_path / "graded.csv", tmp_path / "bare", *names)
    says("convert", tmp_path / "graded.csv", tmp_path / "same.store", *names)
    np.testing.assert_array_equal(corank.read(tmp_path / "same.store").y, made.y)


@pytest.fixture
def _small_pieces(monkeypatch):
    monkeypatch.setattr(letor_reader, "BLOCK", 500)


@pytest.mark.thin(3)
@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize(
    "words", [(), ("--scale", "minmax"), ("--prior", "1-3"), ("--scale", "zscore", "--prior", "2")]
)
def test_text_is_scored_in_pieces_as_it_is_whole(says, made, text, tmp_path, words):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m", "--unjudged", "-1", *words)
    says("convert", text, tmp_path / "rows.store", "--unjudged", "-1")  # which is read whole
    shuffled = np.random.default_rng(0).permutation(len(made.y))
    lines = text.read_text().splitlines(keepends=True)
    (tmp_path / "shuffled.txt").write_text("".join(lines[row] for row in shuffled))
    expected = np.array(says("rank", tmp_path / "m", tmp_path / "rows.store").split(), dtype=float)
    pieces = np.array(says("rank", tmp_path / "m", text).split(), dtype=float)
    np.testing.assert_allclose(pieces, expected, rtol=1e-12, atol=1e-12)
    scattered = np.array(says("rank", tmp_path / "m", tmp_path / "shuffled.txt").split(), dtype=float)
    np.testing.assert_allclose(scattered, expected[shuffled], rtol=1e-12, atol=1e-12)

    runs = [says("rank", tmp_path / "m", one, "--format", "trec", "-o", "-") for one in (text, tmp_path / "rows.store")]
    heads = [[line.split()[:4] for line in run.splitlines()] for run in runs]
    assert heads[0] == heads[1]
    run = says("rank", tmp_path / "m", tmp_path / "shuffled.txt", "--format", "trec", "-o", "-")
    assert sorted(line.split()[:4] for line in run.splitlines()) == sorted(heads[0])


@pytest.mark.usefixtures("_small_pieces")
def test_rows_without_documents_are_numbered_through_all_pieces(says, made, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    (tmp_path / "bare.txt").write_text(
        "".join(line.partition(" #")[0] + "\n" for line in text.read_text().splitlines())
    )
    run = says("rank", tmp_path / "m", tmp_path / "bare.txt", "--format", "trec", "-o", "-")
    assert sorted(int(line.split()[2]) for line in run.splitlines()) == list(range(1, len(made.y) + 1))
    lines = text.read_text().splitlines(keepends=True)
    (tmp_path / "some.txt").write_text("".join(lines[:100]) + "".join(line.partition(" #")[0] + "\n" for line in lines))
    with pytest.raises(InputError, match="empty name"):  # as of the whole
        says("rank", tmp_path / "m", tmp_path / "some.txt", "--format", "trec", "-o", "-")


@pytest.mark.usefixtures("_small_pieces")
def test_a_fault_in_the_last_line_leaves_nothing(text, tmp_path, says, monkeypatch):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    with text.open("a") as handle:
        handle.write("1 qid:99 1:oops\n")
    for words in ((), ("-o", "-"), ("-o", str(tmp_path / "s")), ("-o", str(tmp_path / "s.gz"))):
        said = CliRunner().invoke(app, ["rank", str(tmp_path / "m"), str(text), *words])
        assert isinstance(said.exception, InputError)
        assert said.stdout == ""
    assert not list(tmp_path.glob("s*"))
