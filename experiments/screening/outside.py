"""
Results of another program on the same reviews and starts, from a file of JSON lines:

    {"records": "Donners_2021.csv.gz", "start": 0, "atd": 0.0926, "wss95": 0.5711, "recall10": 0.6429, "last": 0.3789}

One line per replay. `records` is the file of the review, `start` the seed of its pair of records (see
`corank_lab.screening.simulate`); the measures are those of `corank_lab.screening.ScreeningReplay`, and `last`
is the share of records read when the last relevant one is found. Other keys are ignored.
"""

from __future__ import annotations

import json
from pathlib import Path

from corank.data.durable.text import open_text
from corank.errors import InputError

KEYS = {"atd": "ATD", "wss95": "WSS@95", "recall10": "recall@10 %", "last": "last"}
"""Measures in the file, and their names in tables."""


def read_outside(path: Path, reviews: list[str], starts: int) -> dict[tuple[str, int], dict[str, float]]:
    """
    Read the measures of every review and start.

    path: the file.
    reviews: names of the reviews.
    starts: number of starts; all of them must be in the file.
    Returns: measures by review and start.
    """
    found: dict[tuple[str, int], dict[str, float]] = {}
    for at, line in enumerate(open_text(path).read().tobytes().splitlines(), 1):
        try:
            given = json.loads(line)
            name = str(given["records"]).split(".")[0]
            found[name, int(given["start"])] = {ours: float(given[key]) for key, ours in KEYS.items()}
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f"{path}, line {at}: {line[:60]!r} is not a replay; expected a JSON object with records, start, "
                f"{', '.join(KEYS)}."
            ) from None
    missing = [(name, start) for name in reviews for start in range(starts) if (name, start) not in found]
    if missing:
        name, start = missing[0]
        raise InputError(
            f"{path} has no replay of {name} from start {start}; add it, or pass fewer starts with --repeats."
        )
    return found
