"""docs/map.md is true."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_map_lists_every_module_as_it_is():
    spec = importlib.util.spec_from_file_location("make_map", ROOT / "docs" / "make_map.py")
    make_map = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_map)
    assert (ROOT / "docs" / "map.md").read_text(encoding="utf-8") == make_map.full_map(), "run: python docs/make_map.py"
