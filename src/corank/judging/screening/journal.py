"""The journal of a screening: which records were answered, put off and noted, and how each was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from corank.data.durable import journal


@dataclass(frozen=True)
class Line(journal.Entry):
    """
    One line of a journal.

    action {"relevant", "not", "later", "undo", "note", "topic"}: what was done.
    id: the record; empty for a topic.
    by: how the record was chosen: "model", "start", "known", "sample"; empty where that does not matter.
    text: of a note or topic.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ("relevant", "not", "later", "undo", "note", "topic")

    id: str = ""
    by: str = ""
    text: str = ""


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
    ...     answers.append(Line("relevant", "W1"))
    >>> path.read_text()
    '{"action": "relevant", "id": "W1"}\\n'
    """

    kind = Line
    folder = "answers"
