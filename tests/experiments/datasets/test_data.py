"""`python -m experiments.datasets`: what it lists, what it promises to fetch, and what it fetches."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from typer.testing import CliRunner

from corank.errors import InputError
from experiments.datasets import catalog
from experiments.datasets.catalog import Dataset, File
from experiments.datasets.command import app


def says(*words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_promises_what_the_catalog_has_addresses_for():
    lines = says().splitlines()
    for entry in catalog.datasets().values():
        n, n_files = sum(file.url is not None for file in entry.files), len(entry.files)
        promise = "no" if n == 0 else "yes" if n == n_files else f"{n} of {n_files}"
        (line,) = [line for line in lines if line.split()[:1] == [entry.name]]
        assert line[: line.index(entry.about)].rstrip().endswith(promise)
        assert line.rstrip().endswith(entry.terms)


def test_fetching_ends_well_only_where_all_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("CORANK_DATA", str(tmp_path / "root"))
    (tmp_path / "source.txt").write_bytes(b"1 qid:1 1:2\n")
    digest = hashlib.sha256(b"1 qid:1 1:2\n").hexdigest()
    whole = Dataset("toy", "toy", "a toy", "free", (File("in/part.txt", digest, (tmp_path / "source.txt").as_uri()),))
    partly = dataclasses.replace(whole, files=(File("rare.txt", "0" * 64), *whole.files))
    monkeypatch.setattr(catalog, "datasets", lambda: {"toy": partly})
    with pytest.raises(InputError, match=r"rare.txt of data set toy cannot be downloaded by corank"):
        says("--fetch", "toy")
    # what has an address is there nevertheless, under its own path
    assert (tmp_path / "root" / "toy" / "in" / "part.txt").read_bytes() == b"1 qid:1 1:2\n"
    monkeypatch.setattr(catalog, "datasets", lambda: {"toy": whole})
    assert f"toy is complete in {whole.home}; terms: free" in says("--fetch", "toy")
