"""Scores of a fitted model over parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.routing import predict_with_qid
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.tasks import WholeQueries, laid_out_for
from corank.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def predict_parts(model: Any, parts: Any, client: Any = None) -> Floats:
    """
    Score the rows of parts.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted model.
    parts : Parts, path, sequence, or Dask collections
        The rows, see `Parts`.
    client : distributed.Client, Engine or None
        Where tasks run; None means this machine. Dask unpickles what workers send: use trusted clusters only.

    Returns
    -------
    array of shape (n_rows,)
        Scores in the order of the parts and of the rows in them.
    """
    parts = _checked(model, parts, client)
    out = np.empty(parts.n_rows)
    for some in parts.engine.gather(parts.over(_scores_part, model, "scores")):
        for numbers, values in some:
            out[numbers] = values
    return out


def _checked(model: Any, parts: Any, client: Any) -> Parts:
    """Return parts with the columns of the model; raise `InputError` for other names, or another order of them."""
    checked = parts if isinstance(parts, Parts) else Parts(parts, client)
    known, names = getattr(model, "feature_names_in_", None), checked.feature_names
    if known is None or names is None or list(known) == list(names):
        return checked
    if len(known) != len(names):
        raise InputError(
            f"the parts have {len(names)} columns, but the model was fitted on {len(known)}; pass parts with the same "
            "columns."
        )
    at = next(k for k, (one, other) in enumerate(zip(names, known, strict=True)) if one != other)
    raise InputError(
        f"the parts have {names[at]!r} as column {at + 1}, but the model was fitted on {known[at]!r}; pass parts with "
        "the same columns in the same order."
    )


def _scores_part(problems: Iterator[WholeQueries], model: Any) -> list[tuple[Integers, Floats]]:
    return [
        (problem.numbers, predict_with_qid(model, laid_out_for(model, problem.data.X), problem.data.queries.codes))
        for problem in problems
    ]
