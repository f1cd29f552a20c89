"""Which rankers the command line can fit, under which names, and how its words become their parameters."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags

import corank
from corank.errors import InputError, suggest_names, warn
from corank.estimator.base import Ranker
from corank.label_ranking import LabelRanker

LOOPS = {
    "pairs": ("pairs", "pairs"),
    "query": ("equal", "pairs"),
    "rows": ("pairs", "rows"),
    "roc": ("pairs", "pairs"),
    "rank": ("pairs", "rows"),
    "query-norm-rank": ("equal", "pairs"),
    "combined-roc": ("pairs", "pairs"),
    "combined-ranking": ("pairs", "rows"),
}
"""Parameters `query_weight` and `draw` of each way to draw pairs: corank's own three names, then sofia-ml's loops."""

ALIASES = {"labelranker": "onlinelabelranker"}
"""Short names of rankers, without hyphens."""

IGNORE_QUERIES = ("roc", "combined-roc")
"""sofia-ml's loops that compare all rows with each other, whatever their query."""


GAP = 4
"""How much longer than any other gap a gap at the end must be to tell that the file has fewer features."""


def kebab(name: str) -> str:
    """
    Return a class name as it is typed on the command line.

    name: such as "CoRankRLS".
    Returns: such as "co-rankrls".

    >>> [kebab(name) for name in ("SPD", "RankRLS", "CoRankRLS", "CoRankingPursuit")]
    ['spd', 'rankrls', 'co-rankrls', 'co-ranking-pursuit']
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", name).lower()


def rankers() -> list[str]:
    """
    Return the names of every ranker that corank exports and that needs no argument to be made.

    Returns: names on the command line.
    """
    return sorted(kebab(name) for name in corank.__all__ if _ranker(name) is not None)


def find_ranker(name: str) -> type[Ranker | LabelRanker]:
    """
    Look up a ranker by its name on the command line; case and hyphens do not matter.

    name: such as "spd".
    """
    wanted = name.replace("-", "").replace("_", "").lower()
    wanted = ALIASES.get(wanted, wanted)
    # only the room of the wanted ranker is imported
    found = next((_ranker(exported) for exported in corank.__all__ if exported.lower() == wanted), None)
    if found is None:
        raise InputError(f"there is no model {name!r}; {suggest_names(name, rankers())}.")
    return found


def _ranker(name: str) -> type[Ranker | LabelRanker] | None:
    thing = getattr(corank, name)
    if not (isinstance(thing, type) and issubclass(thing, Ranker | LabelRanker)) or inspect.isabstract(thing):
        return None
    if getattr(thing, "_reads_ids", False):  # which files of rows do not hold
        return None
    needed = [p for p in inspect.signature(thing).parameters.values() if p.default is p.empty]
    return None if needed else thing


def build(kind: type[Any], options: Mapping[str, tuple[str, Any]], assignments: Iterable[str]) -> Any:
    """
    Make a ranker from options that were given and from ``name=value`` assignments.

    options: parameter to (option, value); a value of None means that the option was not given.
    assignments: ``name=value``; the value is read as JSON (numbers, true, null, lists) and as a word otherwise.
    Returns: not fitted yet.
    """
    names = sorted(inspect.signature(kind).parameters)
    given = {parameter: value for parameter, (_, value) in options.items() if value is not None}
    for parameter in given:
        if parameter not in names:
            option = options[parameter][0]
            raise InputError(
                f"{option} sets {parameter!r}, which {kind.__name__} does not have; it has {', '.join(names)}."
            )
    for assignment in assignments:
        parameter, equals, text = assignment.partition("=")
        if not equals:
            raise InputError(f"--set {assignment!r} has no '='; write name=value, such as --set alpha=0.01.")
        if parameter not in names:
            raise InputError(f"{kind.__name__} has no parameter {parameter!r}; {suggest_names(parameter, names)}.")
        given[parameter] = _value(text)
    return kind(**given)


def add_working_directory() -> None:
    """Let modules be imported that stand where the command is run."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def parse_lambda(kind: type[Ranker], text: str | None) -> dict[str, tuple[str, Any]]:
    """
    Read ``--lambda``: the weight of the penalty or, of a ranker that is pulled by forces, the forces.

    text: as it was typed; None where it was not.
    Returns: an option for `build`.
    """
    if "forces" in inspect.signature(kind).parameters:
        if text is not None and ":" in text:
            add_working_directory()
        return {"forces": ("--lambda", text)}
    try:
        return {"alpha": ("--lambda", None if text is None else float(text))}
    except ValueError:
        raise InputError(
            f"--lambda is {text!r}; pass a number, the weight of the penalty, or choose --model lambdarank."
        ) from None


def parse_views(text: str) -> int | list[list[int]]:
    """
    Read views: a number of random ones, or the features of each.

    text: ``2``, or ``1-23/24-46``: views divided by ``/``, 1-based feature ids and ranges divided by ``,``.
    Returns: the number of views, or the 0-based columns of each.

    >>> parse_views("2"), parse_views("1-3/4,6")
    (2, [[0, 1, 2], [3, 5]])
    """
    if text.isdecimal():
        return int(text)
    return [parse_features(view, "--views", "a number of views, or ") for view in text.split("/")]


def parse_features(text: str, option: str, instead: str = "") -> list[int]:
    """
    Read features: 1-based ids and ranges divided by commas.

    option, instead: where they were typed, and what else may stand there, for the message.
    Returns: 0-based columns.

    >>> parse_features("21-23,40", "--prior")
    [20, 21, 22, 39]
    """
    columns: list[int] = []
    for piece in text.split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        if ends is None or not 1 <= int(ends[1]) <= int(ends[2] or ends[1]):
            raise InputError(
                f"{option} {text!r} has {piece!r}; write {instead}feature ids from 1 and ranges, such as "
                f"{'1-23/24-46' if instead else '1-5,8'}."
            )
        columns += range(int(ends[1]) - 1, int(ends[2] or ends[1]))
    return columns


def require_features(columns: Iterable[int], option: str, n_features: int) -> None:
    """
    Raise one sentence, in the numbers that were typed, where an option names features that the data does not have.

    columns: as `parse_features` returns them.
    n_features: number of features of the data.
    """
    highest = 1 + max(columns, default=-1)
    if highest > n_features:
        raise InputError(f"{option} names feature {highest}, but the data has {n_features}; name features that exist.")


def law_of(loop: str | None) -> tuple[str | None, str | None]:
    """
    Return the law of drawing pairs that a ``--loop`` names.

    loop: one of `LOOPS`.
    Returns: the parameters of those names; None where there is no loop.
    """
    if loop is None:
        return None, None
    if loop not in LOOPS:
        alike: dict[object, list[str]] = {}
        for name, law in LOOPS.items():
            alike.setdefault((law, name in IGNORE_QUERIES), []).append(name)
        shown = {name: " or ".join(names) for names in alike.values() for name in names}
        raise InputError(f"--loop {loop!r} is unknown; {suggest_names(loop, shown)}.")
    return LOOPS[loop]


def occurring(X: Any, before: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """
    Say which columns are anywhere other than 0, as far as `warn_of_absent_features` has to know: all of them, or the
    last.

    X: rows as wide as the model wants them.
    before: what rows before them said.
    """
    occurs = np.zeros(X.shape[1], dtype=bool) if before is None else before
    if occurs[-1]:
        return occurs
    if sparse.issparse(X):
        occurs[X.indices] = True
    elif X[:, -1].any():
        occurs[-1] = True
    else:
        occurs |= np.array([X[:, column].any() for column in range(X.shape[1])])
    return occurs


def warn_of_absent_features(occurs: NDArray[np.bool_], source: object, model: object) -> None:
    """
    Warn where the last columns never occur, as in text of fewer features than the model knows.

    In sparse text the last feature may well be absent from a file: it is the end that is missing where the columns that
    are absent there are `GAP` times as many as are absent in a row before.

    occurs (n_features,): which columns do, by `occurring`.
    source, model: the files, for the message.
    """
    if occurs[-1]:
        return
    n = len(occurs)
    # columns that occur, counted from 1, with one before the first
    found = np.concatenate([[0], np.flatnonzero(occurs) + 1])
    if n - found[-1] > GAP * (np.diff(found) - 1).max(initial=0):
        warn(
            f"{source} has no feature beyond {found[-1]}, but {model} was fitted on {n}: the others count as 0; check "
            "that the file has the features of the model."
        )


def layout_of(model: Any) -> Literal["auto", "dense"]:
    """
    Say how a model wants its rows.

    Returns: the `layout` to read with.
    """
    return "auto" if get_tags(model).input_tags.sparse else "dense"


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"None": None, "True": True, "False": False}.get(text, text)
