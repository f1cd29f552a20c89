"""Small functions by example."""

from __future__ import annotations

from corank_lab.preferences.ranking import wilson


def test_ranking():
    assert tuple(round(end, 3) for end in wilson(8, 10)) == (0.49, 0.943)
