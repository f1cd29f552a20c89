"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# a first call may compile, so no deadline; the same examples every time, so that a failure can be repeated
settings.register_profile("corank", deadline=None, derandomize=True)
settings.load_profile("corank")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets, or skip."""
    root = os.environ.get("CORANK_DATA")
    if not root:
        pytest.skip("needs real data: set CORANK_DATA to the folder that holds it")
    return Path(root)
