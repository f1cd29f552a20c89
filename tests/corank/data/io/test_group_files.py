"""Sizes of queries in a file beside the data become query ids."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.errors import InputError, UsageWarning

ROWS = [f"{i % 3} 1:{i} 2:{(i * 7) % 5}\n" for i in range(10)]
SIZES = "4\n1\n\n5\n"
QID = [1, 1, 1, 1, 2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("suffix", [".query", ".group"])
def test_sizes_beside_the_data_become_query_ids(tmp_path, suffix):
    path = tmp_path / "train.txt"
    path.write_text("".join(ROWS))
    (tmp_path / f"train.txt{suffix}").write_text(SIZES)
    with pytest.warns(UsageWarning, match=rf"3 queries were taken from the sizes in .*train\.txt\{suffix}"):
        rows = corank.read(path, unjudged=2)
    assert rows.qid.tolist() == rows.data.queries.ids[rows.data.queries.codes].tolist() == QID
    assert np.isnan(rows.y).sum() == 3
    assert corank.read(path, qid=False).qid is None


@pytest.mark.filterwarnings("ignore:the data has no query ids")
def test_compressed_files_and_tables_have_sizes_and_several_files_are_joined(tmp_path):
    with gzip.open(tmp_path / "a.txt.gz", "wt") as file:
        file.writelines(ROWS)
    (tmp_path / "a.txt.query").write_text(SIZES)
    (tmp_path / "b.txt").write_text("".join(ROWS))
    files = [tmp_path / "a.txt.gz", tmp_path / "b.txt"]
    with pytest.raises(InputError, match=r"no such file beside .*b\.txt; add it"):
        corank.read(files)
    (tmp_path / "b.txt.query").write_text("3\n7\n")
    assert corank.read(files).qid.tolist() == [*QID, *[4] * 3, *[5] * 7]
    (tmp_path / "t.csv").write_text("label,f1\n1,2\n0,3\n1,1\n")
    (tmp_path / "t.csv.query").write_text("2\n1\n")
    assert corank.read(tmp_path / "t.csv").qid.tolist() == [1, 1, 2]


def test_wrong_sizes_are_refused_and_ids_in_the_data_come_first(tmp_path):
    path, sizes = tmp_path / "train.txt", tmp_path / "train.txt.query"
    path.write_text("".join(ROWS))
    sizes.write_text("4\n5\n")
    with pytest.raises(InputError, match="has 2 sizes of queries with sum 9"):
        corank.read(path)
    for bad in ("4\nsix\n", "4\n-1\n", "9" * 400, "5.5"):
        sizes.write_text(bad)
        with pytest.raises(InputError, match=r"line [12]: expected the number of rows of a"):
            corank.read(path)
    path.write_text("1 qid:7 1:2\n0 qid:7 1:3\n")
    assert corank.read(path).qid.tolist() == [7, 7]


@pytest.mark.filterwarnings("ignore:the data has no query ids")
def test_commands_use_the_sizes(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(ROWS))
    (tmp_path / "train.txt.query").write_text(SIZES)

    def run(*words: object) -> str:
        result = CliRunner().invoke(app, list(map(str, words)))
        assert result.exit_code == 0, result.output
        return result.output

    with pytest.warns(UsageWarning, match=r"taken from the sizes in .*train\.txt\.query"):
        assert "in 3 queries" in run("fit", path, "-m", "rankrls", "-o", tmp_path / "m")
    run("rank", tmp_path / "m", path, "--format", "trec", "-o", tmp_path / "run")
    assert [line.split()[0] for line in (tmp_path / "run").read_text().splitlines()] == list(map(str, QID))
    run("convert", path, tmp_path / "s.store")
    assert corank.read(tmp_path / "s.store").qid.tolist() == QID
