from __future__ import annotations

import sys
from pathlib import Path

import pytest

from corank.data.durable import atomic as system
from corank.data.durable.atomic import exchange, rename_new


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="this system exchanges no names")
def test_two_folders_exchange_names(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "who").write_text(name)
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system exchanges no names")
    assert [(tmp_path / name / "who").read_text() for name in ("a", "b")] == ["b", "a"]
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "none")


@pytest.mark.parametrize("system", [sys.platform, "another"])
def test_a_rename_does_not_replace(tmp_path: Path, monkeypatch, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    (tmp_path / "a").write_text("a")
    rename_new(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a").write_text("another a")
    with pytest.raises(FileExistsError):
        rename_new(tmp_path / "a", tmp_path / "b")
    assert [(tmp_path / name).read_text() for name in ("a", "b")] == ["another a", "a"]


def test_a_system_without_the_call_returns_false(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").write_text("a")
    monkeypatch.setattr(system, "_libc", object)
    assert not exchange(tmp_path / "a", tmp_path / "a")
    monkeypatch.setattr(sys, "platform", "another")
    assert not exchange(tmp_path / "a", tmp_path / "a")
    assert (tmp_path / "a").read_text() == "a"
