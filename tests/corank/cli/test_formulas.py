"""Formulas in tables that commands write for spreadsheets: defused by default, restored on reading."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import corank
from corank.data.io.items import read_items
from corank_lab.records.records import read_records
from faults.writers import write_journal
from helpers.files import files

EVIL = "=cmd|'/C calc'!A0"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    return tmp_path


def is_safe(path, separator=","):
    rows = csv.reader(io.StringIO(path.read_text(), newline=""), delimiter=separator)
    cells = [cell for row in rows for cell in row]
    return not any(cell.startswith(("=", "@")) for cell in cells)


def test_records_come_back_from_an_export(here, says):
    source = here / "records.csv"
    header, *rows = source.read_text().splitlines()
    text = "".join(f"{row},@SUM(A1)\n" for row in rows).replace("study of", "=study of")
    source.write_text(f"{header},{EVIL}\n{text}")
    write_journal(here, "records.csv")
    says("screen", "export", source, "-o", here / "out.csv")
    assert is_safe(here / "out.csv")
    before, after = read_records(source), read_records(here / "out.csv")
    assert (after.ids, after.titles, after.abstracts) == (before.ids, before.titles, before.abstracts)
    assert [row[EVIL] for row in after.fields] == [["@SUM(A1)"]] * len(before)
    says("screen", "export", source, "-o", here / "raw.csv", "--keep-formulas")
    assert not is_safe(here / "raw.csv")
    assert read_records(here / "raw.csv").titles == before.titles


def test_names_of_items_come_back_from_an_export(here, says):
    source = here / "items.csv"
    source.write_text(source.read_text().replace("thing", "=thing"))
    write_journal(here, "items.csv")
    says("prefer", source, "--export", here / "out.csv")
    assert is_safe(here / "out.csv")
    assert set(read_items(here / "out.csv", name="name")[0].names) == set(read_items(source)[0].names)
    says("prefer", source, "--export", here / "raw.csv", "--keep-formulas")
    assert not is_safe(here / "raw.csv")


def test_suggestions_and_values_of_queries(here, says):
    rows = (here / "rows.csv").read_text().replace(",d", ",=d").replace(",=docid", ",docid").replace("\n", "\n=")
    (here / "rows.csv").write_text(rows.rstrip("="))
    says("suggest", "model.safetensors", "rows.csv", "-o", "out.csv")
    assert is_safe(here / "out.csv")
    raw = says("suggest", "model.safetensors", "rows.csv", "--keep-formulas")
    assert raw.splitlines()[1].startswith("=")
    (here / "truth").write_text("=q 0 a 1\n=q 0 b 0\n")
    (here / "run").write_text("=q Q0 a 1 2 x\n=q Q0 b 2 1 x\n")
    says("evaluate", "truth", "run", "--per-query", "out.tsv")
    assert is_safe(here / "out.tsv", "\t")
    says("evaluate", "truth", "run", "--per-query", "raw.tsv", "--keep-formulas")
    assert (here / "raw.tsv").read_text().splitlines()[1].startswith("=q\t")


def test_labels_in_the_header_of_utilities(here, says):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = pandas.DataFrame((X[:, :2] > 0).astype(float), columns=["=a", "b"])
    corank.save(corank.OnlineLabelRanker(random_state=0).fit(X, y), here / "labels.safetensors")
    (here / "X.txt").write_text("0 qid:1 1:1 2:1 3:1\n")
    assert says("rank", "labels.safetensors", "X.txt").splitlines()[0] == "'=a,b"
    assert says("rank", "labels.safetensors", "X.txt", "--keep-formulas").splitlines()[0] == "=a,b"
