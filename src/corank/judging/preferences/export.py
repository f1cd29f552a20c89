"""The order of things as a table, by all judges and by each, and how much judges agree."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from itertools import combinations

from corank.data.formats.compressed import write_text
from corank.data.formats.items import Choices
from corank.judging.preferences.answers import Told
from corank.judging.preferences.ranking import Ranking


def write_order(
    path: str | os.PathLike[str],
    choices: Choices,
    ranking: Ranking,
    judges: Mapping[str, Ranking],
    *,
    overwrite: bool = False,
) -> None:
    """
    Write things, the best first, with score and standard deviation.

    path: .csv, perhaps packed.
    judges: further scores, a column for each.
    overwrite: whether a file that stands there is replaced.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["rank", "name", "score", "std", *(f"score_{judge}" for judge in judges)])
    for rank, thing in enumerate(ranking.order.tolist(), 1):
        scores = (ranking.score[thing], ranking.std[thing], *(one.score[thing] for one in judges.values()))
        writer.writerow([rank, choices.names[thing], *(f"{score:.6g}" for score in scores)])
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(out.getvalue().encode())


def agreement(judges: Mapping[str, Sequence[Told]]) -> tuple[int, int]:
    """
    Count pairs that two judges answered, by their last answers.

    Returns: how many were answered alike, and how many there are.
    """
    said = [{frozenset(one[:2]): None if one.is_equal else one.better for one in told} for told in judges.values()]
    alike = [first[pair] == second[pair] for first, second in combinations(said, 2) for pair in first.keys() & second]
    return sum(alike), len(alike)
