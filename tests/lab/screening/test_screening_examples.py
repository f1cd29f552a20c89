"""Small functions by example."""

from __future__ import annotations

from corank_lab.screening.stopping.urns import missing_allowed


def test_stopping_urns():
    assert missing_allowed(95, 0.95) == 5
    assert missing_allowed(18, 0.95) == 0
