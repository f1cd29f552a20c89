"""The files that people and their tools read beside the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import corank

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_has_what_the_format_requires():
    cited = read("CITATION.cff")
    # required keys and types of https://citation-file-format.github.io, 1.2.0
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["authors"] == [{"name": "The corank developers"}]
    assert cited["license"] == PROJECT["project"]["license"]
    assert len(cited["references"]) >= 6
    for paper in cited["references"]:
        assert {"type", "title", "authors", "year", "notes"} <= paper.keys()
        assert all(author.keys() == {"family-names", "given-names"} for author in paper["authors"])
        assert isinstance(paper["year"], int)


def test_the_citation_names_the_paper_of_every_method_that_has_one():
    named = {name.strip() for paper in read("CITATION.cff")["references"] for name in paper["notes"].split(",")}
    assert {name for name in named if hasattr(corank, name)} == {
        "CRR", "CalibratedLabelRanker", "CoRankRLS", "CoRankingPursuit", "LCRA", "OnlineLabelRanker", "RankRLS",
        "RankingPursuit", "SPD",
    }  # fmt: skip


def test_hooks_before_a_commit_are_the_lines_of_make_lint():
    (repo,) = read(".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repo["hooks"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, flags=re.MULTILINE)[1]
    assert [hook["entry"] for hook in repo["hooks"]] == lint.replace("\t$(BIN)", ".venv/bin").splitlines()


def test_types_travel_with_the_package():
    assert (Path(corank.__file__).parent / "py.typed").is_file()
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/corank"]


@pytest.mark.parametrize("name", PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
def test_what_the_source_distribution_lists_is_there(name):
    assert (ROOT / name).exists()


def test_files_that_contributors_are_sent_to_are_there():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w/.-]+)`", guide))
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]
