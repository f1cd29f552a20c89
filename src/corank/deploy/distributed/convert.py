"""Convert parts to files with complete queries, one file per part, in a folder that appears atomically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from corank.data.durable.atomic import atomic_folder, require_no_input
from corank.data.io.letor.writer import write_letor
from corank.data.io.store.store import write_store
from corank.data.io.write_frames import write_parquet
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.sources import Rows
from corank.deploy.distributed.tasks import NumberedRows, WholeQueries, joined
from corank.errors import InputError, import_extra

_SUFFIXES = {"store": ".store", "parquet": ".parquet", "letor": ".txt"}
_NAME = "part-"


@dataclass(frozen=True)
class _Target:
    """
    Settings of all tasks.

    folder: folder for attempts to write a part.
    names: names of the columns, if any.
    unscored: label of unscored rows in text.
    """

    folder: str
    kind: str
    names: tuple[str, ...] | None
    unscored: float | None


def convert_parts(
    parts: Any,
    folder: str | os.PathLike[str],
    kind: Literal["store", "parquet", "letor"] = "store",
    client: Any = None,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """
    Write parts as files of one format, with each query complete in one file.

    Queries that are spread over parts move first, as in `fit_parts`, so that later fits move nothing. Rows keep their
    order inside a file. One file is written for each part that holds a complete query. Document ids and comments are
    dropped.

    Parameters
    ----------
    parts : Parts, path, sequence, or Dask collections
        The rows, see `Parts`; its `unscored` is written for unscored rows of text.
    folder : path
        The folder to write. It appears with all its files or not at all. On a cluster, every worker must see it.
    kind : {"store", "parquet", "letor"}
        Format of the files.
    client : distributed.Client, Engine or None
        Where tasks run; None means this machine. Dask unpickles what workers send: use trusted clusters only.
    overwrite : bool
        Whether to replace an existing folder of such parts. Any other folder, and the one that is read, is never
        replaced.

    Returns
    -------
    list of Path
        The files, in the order of their first rows.

    Examples
    --------
    >>> import tempfile
    >>> cut = [([[0.0], [1.0]], [0, 1], ["a", "b"]), ([[2.0], [3.0]], [1, 0], ["a", "a"])]
    >>> paths = convert_parts(cut, Path(tempfile.mkdtemp(), "whole"))
    >>> [path.name for path in paths], Parts(paths).n_straddling
    (['part-00000.store', 'part-00001.store'], 0)
    """
    if kind not in _SUFFIXES:
        raise InputError(f"kind is {kind!r}; choose {', '.join(_SUFFIXES)}.")
    if kind == "parquet":
        import_extra("pyarrow", "frames")
    place = Path(folder)
    _require_parts_only(place)
    parts = parts if isinstance(parts, Parts) else Parts(parts, client)
    require_no_input(place, [one for one in parts.sources if isinstance(one, str)])
    with atomic_folder(place, overwrite=overwrite) as scratch:
        # a task may run twice or be interrupted: only the attempt that it returned counts
        attempts = scratch / "attempts"
        attempts.mkdir()
        target = _Target(str(attempts), kind, parts.names, parts.unscored)
        written = parts.engine.gather(parts.over(_write_part, target, "files"))
        names = []
        for number, (_, attempt) in enumerate(sorted(one for one in written if one is not None)):
            names.append(f"{_NAME}{number:05d}{_SUFFIXES[kind]}")
            (attempts / attempt).rename(scratch / names[-1])
        shutil.rmtree(attempts)
    return [place / name for name in names]


def _require_parts_only(place: Path) -> None:
    """Refuse to replace a folder that holds anything else."""
    for entry in sorted(place.iterdir()) if place.is_dir() else ():
        if not entry.name.startswith(_NAME) or entry.suffix not in _SUFFIXES.values():
            raise InputError(f"{place} holds {entry.name}, which is not a part, so it is kept; choose another name.")


def _write_part(problems: Iterator[WholeQueries], target: _Target) -> tuple[int, str] | None:
    """Write the queries of a part; return the number of its first row and the file name, or None without queries."""
    rows = []
    for problem in problems:
        data = problem.data
        assert data.y is not None
        rows.append(NumberedRows(Rows(data.X, data.y, data.queries.ids[data.queries.codes]), problem.numbers))
    if not rows:
        return None
    part = joined(rows) if len(rows) > 1 else rows[0]
    X, y, qid = part.rows
    name = f"{uuid4().hex}{_SUFFIXES[target.kind]}"
    path = Path(target.folder, name)
    if target.kind == "store":
        write_store(path, X, y, qid, names=target.names)
    elif target.kind == "parquet":
        write_parquet(path, X, y, qid, names=target.names)
    else:
        write_letor(path, X, y, qid, unscored=target.unscored)
    return int(part.numbers[0]), name
