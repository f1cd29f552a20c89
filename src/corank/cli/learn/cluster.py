"""Fit to parts from the command line: a folder or several files, on this machine or on a cluster."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corank.data.formats.read import detect_format
from corank.data.store.header import HEADER
from corank.errors import InputError, import_extra, reason

_ADDRESS = re.compile(r"^([a-z][a-z0-9+]+):/(?=[^/])")
_START = 30
"""Seconds that a cluster may take to answer."""


def are_parts(data: Sequence[Path], cluster: str | None) -> bool:
    """Say whether rows come in parts: a cluster was named, a folder of files, or files that are not joined as text."""
    if cluster is not None or any(path.is_dir() and not (path / HEADER).exists() for path in data):
        return True
    return len(data) > 1 and any(str(path) != "-" and path.exists() and detect_format(path) != "text" for path in data)


def fit_cluster(
    model: Any,
    data: Sequence[Path],
    cluster: str | None,
    output: Path,
    reading: Mapping[str, Any],
    unfit: Mapping[str, object],
    *,
    overwrite: bool,
) -> tuple[dict[str, Any], str]:
    """
    Fit a model to parts and save it, whole or not at all.

    model: a ranker, or a pipeline that ends in one.
    cluster: the address of a scheduler, ``local:2`` for so many processes here, None for this process.
    reading: options of `corank.distributed.fit_parts`.
    unfit: options that need all rows at once, with what was given for each.
    Returns: what was done, in numbers and in one line.
    """
    from corank.distributed import Parts, fit_parts
    from corank.persist import save

    if one := next((name for name, value in unfit.items() if value not in (None, False)), None):
        raise InputError(f"{one} needs all rows at once, and these come in parts; leave it out, or join them.")
    began = time.perf_counter()
    with _client(cluster) as client:
        # an address is not a path, which would have lost one of its slashes
        sources = [_ADDRESS.sub(r"\1://", str(path)) for path in data]
        parts = Parts(sources, client, verbose=sys.stderr.isatty(), **reading)
        fit_parts(model, parts)
        took = getattr(parts.engine, "ready", {})
    save(model, output, overwrite=overwrite)
    ranker = model[-1] if hasattr(model, "steps") else model
    moved = sum(one.bytes_moved for one in parts.passes)
    seconds = time.perf_counter() - began
    fields = {
        "output": output, "model": type(ranker).__name__, "n_rows": parts.n_rows, "n_queries": parts.n_queries,
        "n_parts": len(parts.sources), "n_features": parts.n_features, "seconds": seconds, "n_workers": len(took),
        "n_straddling_queries": parts.n_straddling, "bytes_moved": moved,
    }  # fmt: skip
    workers = f"{len(took)} workers, ready in {max(took.values()):.2f} s; " if took else ""
    alpha = f"; alpha {ranker.alpha_:.4g} ({ranker.alpha_from_})" if hasattr(ranker, "alpha_from_") else ""
    return fields, (
        f"wrote {output}: {type(ranker).__name__} from {parts.n_rows} rows in {parts.n_queries} queries and "
        f"{len(parts.sources)} parts, {parts.n_features} features, {seconds:.2f} s; "
        f"{workers}{parts.n_straddling} straddling queries, {moved} bytes moved{alpha}"
    )


@contextmanager
def _client(cluster: str | None) -> Iterator[Any]:
    if cluster is None:
        yield None
        return
    distributed = import_extra("distributed", "dask")
    local = re.fullmatch(r"local:([1-9][0-9]*)", cluster)
    if local:
        options: dict[str, Any] = {
            "n_workers": int(local[1]),
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": ":0",
        }
        options["silence_logs"] = logging.CRITICAL  # what matters of them is said in one sentence
        with distributed.LocalCluster(**options) as here, distributed.Client(here) as client:
            yield client
        return
    try:
        client = distributed.Client(cluster, timeout=_START)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"--cluster {cluster} does not answer ({reason(error)}); pass the address of a Dask scheduler, such as "
            "tcp://host:8786, or local:2 for two processes here."
        ) from error
    with client:
        yield client
