"""Group files: sizes of queries next to the data, as LightGBM (``.query``) and XGBoost (``.group``) read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data.collection import Dataset
from corank.data.io.compressed import SUFFIXES
from corank.data.io.text import STANDARD_INPUT, TextFile, open_text
from corank.errors import InputError, warn

GROUP_SUFFIXES = (".query", ".group")
"""Suffixes that are appended to the name of the data."""


def group_file(source: TextFile | Path) -> Path | None:
    """Return the file with the query sizes of a source, or None if there is none."""
    if str(source) == STANDARD_INPUT:
        return None
    path = source.path if isinstance(source, TextFile) else source
    stems = [path, path.with_suffix("")] if path.suffix in SUFFIXES else [path]
    places = [stem.with_name(stem.name + suffix) for stem in stems for suffix in GROUP_SUFFIXES]
    return next((place for place in places if place.is_file()), None)


def with_groups(rows: Dataset, sources: Sequence[TextFile | Path]) -> Dataset:
    """
    Return rows with query ids 1, 2, ... from the group files of their sources, and say so; the rows if there are none.
    """
    files = [group_file(source) for source in sources]
    if not any(files):
        return rows
    if not all(files):
        absent = sources[files.index(None)]
        raise InputError(
            f"{next(filter(None, files))} has sizes of queries, but there is no such file beside {absent}; add it, or "
            "give every row a query id."
        )
    sizes = np.concatenate([_sizes(file) for file in files if file is not None])
    named = " and ".join(map(str, files))
    if sizes.sum() != len(rows.y):
        raise InputError(
            f"{named} has {len(sizes)} sizes of queries with sum {sizes.sum()}, but the data has {len(rows.y)} rows; "
            "correct the file, or ignore it with qid=False."
        )
    warn(f"the data has no query ids; {len(sizes)} queries were taken from the sizes in {named}.")
    qid = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return replace(rows, _qid=lambda: qid)


def _sizes(path: Path) -> NDArray[np.int64]:
    """Read one number of rows per line; blank lines are skipped."""
    text = open_text(path)
    lines = text.read().tobytes().splitlines()
    sizes: list[int] = []
    for number, line in enumerate(lines, start=1):
        word = line.strip()
        if not word:
            continue
        # isdigit of bytes: that of str also accepts other Unicode digits
        if not word.isdigit() or len(word) > 15:
            shown = word.decode(errors="replace")[:40]
            raise InputError(
                f"{path}, line {number}: expected the number of rows of a query, found {shown!r}; correct the file, or "
                "ignore it with qid=False."
            )
        sizes.append(int(word))
    return np.array(sizes, dtype=np.int64)
