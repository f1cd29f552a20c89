"""The journal of an asking: which two things stood side by side, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from corank.data.durable import journal


@dataclass(frozen=True)
class Line(journal.Entry):
    """
    One line of a journal.

    action {"left", "right", "equal", "skip", "undo"}: which is better, or that this cannot be said; undo takes the last
        answer back.
    left, right: names of the two.
    by {"start", "model", "repeat"}: how they were chosen.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ("left", "right", "equal", "skip", "undo")

    left: str = ""
    right: str = ""
    by: str = ""


class Journal(journal.Journal[Line]):
    """
    The answers of one judge, in a file that nobody else writes to meanwhile.

    Parameters
    ----------
    path : path
        The file; created, with its folder, where there is none.

    Attributes
    ----------
    path : Path
        The file.
    lines : list of Line
        What it holds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "me.jsonl")
    >>> with Journal(path) as answers:
    ...     answers.append(Line("left", "tea", "milk", "model"))
    >>> path.read_text()
    '{"action": "left", "left": "tea", "right": "milk", "by": "model"}\\n'
    """

    kind = Line
    folder = "preferences"
