"""docs/check_prose.py finds the listed phrases, and accepts lines that use them in their ordinary meaning."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def load_check():
    spec = importlib.util.spec_from_file_location("check_prose", ROOT / "docs" / "check_prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_planted_phrase_is_found_with_its_line_and_its_replacement(tmp_path, monkeypatch):
    check = load_check()
    monkeypatch.setattr(check, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("A plain sentence.\nNothing is written, and Nobody reads it.\n", encoding="utf-8")
    assert check.faults(page) == [
        "page.md:2: 'Nothing is': write state the subject: no file is written",
        "page.md:2: 'Nobody': write no one, or name the actor",
    ]


def test_an_allowed_line_is_accepted_in_its_own_file_only(tmp_path, monkeypatch):
    check = load_check()
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "ALLOWED", (("flats.md", "two rooms"),))
    for name in ("flats.md", "other.md"):
        (tmp_path / name).write_text("A flat with two rooms.\nA room.\n", encoding="utf-8")
    assert [line.split(": ")[0] for line in check.faults(tmp_path / "flats.md")] == ["flats.md:2"]
    assert [line.split(": ")[0] for line in check.faults(tmp_path / "other.md")] == ["other.md:1", "other.md:2"]


def test_every_allowed_line_is_needed():
    check = load_check()
    for end, part in check.ALLOWED:
        assert part in (ROOT / end).read_text(encoding="utf-8")
