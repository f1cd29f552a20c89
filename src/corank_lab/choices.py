"""Stopping rules with one line on each, for help texts and pages: read from the source, whose import takes long."""

from __future__ import annotations

import re
from pathlib import Path

STOPPING_RULES = dict(
    re.findall(
        r'^    name = "(\w+)"\n    summary = "(.+)"$',
        Path(__file__).with_name("screening").joinpath("stopping", "rules.py").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
"""Those of `corank_lab.screening.stopping.rules`, in the same order."""
