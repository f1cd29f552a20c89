"""Names of rankers on the command line, and parsing of the options that become their parameters."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from corank import registry
from corank._lazy import is_sparse
from corank.cli.imports import import_scikit_learn
from corank.cli.rows import FittedModel
from corank.data.column_roles import column_numbers
from corank.errors import InputError, suggest_names, warn

if TYPE_CHECKING:
    from corank.base.base import Ranker
    from corank.models.labels import LabelRanker

LOOPS = {"pairs": ("pairs", "pairs"), "query": ("equal", "pairs"), "rows": ("pairs", "rows")}
"""Parameters `query_weight` and `draw` for each --loop."""

GAP = 4
"""Trailing absent columns suggest a file with fewer features if there are `GAP` times as many as in any other gap."""


def kebab_case(name: str) -> str:
    """
    Return a class name as written on the command line.
    >>> [kebab_case(name) for name in ("SPD", "RankRLS", "CoRankRLS", "CoRankingPursuit", "OrdinalGP", "LambdaRank")]
    ['spd', 'rankrls', 'co-rankrls', 'co-ranking-pursuit', 'ordinal-gp', 'lambdarank']
    """
    return re.sub(r"(?<=[a-z])(?=(?!Rank$)[A-Z][a-z]|GP$)", "-", name).lower()


def rankers() -> list[str]:
    """Return the command-line names of all exported rankers without required parameters."""
    return sorted(kebab_case(name) for name in registry.names() if _ranker(name) is not None)


def find_ranker(name: str) -> type[Ranker | LabelRanker]:
    """Return the ranker with a command-line name such as "spd"; case and hyphens are ignored."""
    wanted = name.replace("-", "").replace("_", "").lower()
    # imports only the package of that ranker
    kind = next((_ranker(exported) for exported in registry.names() if exported.lower() == wanted), None)
    if kind is None:
        raise InputError(f"there is no model {name!r}; {suggest_names(name, rankers())}.")
    return kind


def _ranker(name: str) -> type[Ranker | LabelRanker] | None:
    from corank.base.base import Ranker
    from corank.models.labels.ranker import LabelRanker

    thing = registry.find(name)
    if not (isinstance(thing, type) and issubclass(thing, Ranker | LabelRanker)) or inspect.isabstract(thing):
        return None
    if getattr(thing, "_reads_ids", False):  # rows of files have no such ids
        return None
    needed = [p for p in inspect.signature(thing).parameters.values() if p.default is p.empty]
    return None if needed else thing


def load_ranker(path: Path, data: Sequence[Path], *, only_scores: bool = False) -> FittedModel:
    """Load a ranker or a pipeline; raise `InputError` for other saved objects, or if the files are swapped."""

    if len(data) == 1 and _is_model(data[0]) and not _is_model(path):
        raise InputError(f"{path} is not a model, but {data[0]} is; pass the model first, then the rows.")
    if only_scores:
        from corank.deploy.persist.container import load_linear

        if (scorer := load_linear(path)) is not None:
            return FittedModel(path, scorer)
    import_scikit_learn()
    from corank.deploy.persist import load

    ranker = load(path)
    if not hasattr(ranker, "predict"):
        raise InputError(
            f"{path} contains a {type(ranker).__name__}, which has no predict; pass a ranker or a pipeline."
        )
    return FittedModel(path, ranker)


def _is_model(path: Path) -> bool:
    """Return whether a file begins like a safetensors file: the length of a header, and its brace."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return getattr(model, "steps", [("", model)])[-1][1]


def build_ranker(
    kind: type[Any], options: Mapping[str, tuple[str, Any]], assignments: Iterable[str], seed: int | None = None
) -> Any:
    """Build a ranker from options and from ``name=value`` assignments."""
    names = sorted(inspect.signature(kind).parameters)
    values = {parameter: value for parameter, (_, value) in options.items() if value is not None}
    for parameter in values:
        if parameter not in names:
            option = options[parameter][0]
            raise InputError(
                f"{option} sets the parameter {parameter!r}, which {kind.__name__} does not have; its parameters are "
                f"{', '.join(names)}."
            )
    for assignment in assignments:
        parameter, equals, text = assignment.partition("=")
        if not equals:
            raise InputError(f"--set {assignment!r} has no '='; write name=value, such as --set alpha=0.01.")
        if parameter not in names:
            raise InputError(f"{kind.__name__} has no parameter {parameter!r}; {suggest_names(parameter, names)}.")
        values[parameter] = _value(text)
    ranker = kind(**values)
    if ranker.get_params(deep=False).get("random_state", seed) is None:
        ranker.set_params(random_state=seed)
    return ranker


def add_working_directory() -> None:
    """Make modules in the working directory importable."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def parse_lambda(kind: type[Ranker], text: str | None) -> dict[str, tuple[str, Any]]:
    """Return ``--alpha`` as an option for `build_ranker`: the penalty weight, or the lambdas of LambdaRank."""
    if "lambdas" in inspect.signature(kind).parameters:
        if text is not None and ":" in text:
            add_working_directory()
        return {"lambdas": ("--lambda", text)}
    try:
        return {"alpha": ("--alpha", None if text is None else float(text))}
    except ValueError:
        raise InputError(
            f"--alpha is {text!r}; pass a number (the weight of the penalty), or choose --model lambdarank."
        ) from None


Features = list[int | str]
"""Features as the user names them: 0-based columns, or names."""


def parse_views(text: str) -> int | list[Features]:
    """Parse --views: a number of random views, or the features of each view."""
    if text.isdecimal():
        return int(text)
    return [parse_features(view, "--views", "a number of views, or ") for view in text.split("/")]


def parse_features(text: str, option: str, instead: str = "") -> Features:
    """Parse features: names, numbers from 1 and ranges of numbers, separated by commas."""
    features: Features = []
    for piece in text.split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        if not piece.strip() or (ends and not 1 <= int(ends[1]) <= int(ends[2] or ends[1])):
            raise InputError(
                f"{option} {text!r} contains {piece!r}; write {instead}names of features, numbers from 1 and ranges, "
                f"such as {'1-23/24-46' if instead else '1-5,8'}."
            )
        features += range(int(ends[1]) - 1, int(ends[2] or ends[1])) if ends else [piece.strip()]
    return features


def resolve_features(features: Features, option: str, names: Sequence[str] | None, n_features: int) -> list[int]:
    """Return features as 0-based columns, or raise `InputError` if the data does not have them."""
    for feature in features:
        if isinstance(feature, str):
            continue
        if feature >= n_features:
            raise InputError(
                f"{option} names feature {feature + 1}, but the data has {n_features} features; use numbers up to "
                f"{n_features}."
            )
        if names is not None and names[feature] != str(feature + 1) and str(feature + 1) in names:
            raise InputError(
                f"{option} {feature + 1} is the number of the feature {names[feature]!r} and the name of another; "
                "rename columns, so that names are not numbers."
            )
    return column_numbers(features, names, option)


def parse_loop(loop: str | None) -> tuple[str | None, str | None]:
    """Return the parameters `query_weight` and `draw` of a ``--loop``; None if there is none."""
    if loop is None:
        return None, None
    if loop not in LOOPS:
        raise InputError(f"--loop {loop!r} is unknown; {suggest_names(loop, list(LOOPS))}.")
    return LOOPS[loop]


def nonzero_columns(X: Any, before: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Mark the columns with a value other than 0, for `warn_of_absent_features`: all, or only the last if it is one."""
    occurs = np.zeros(X.shape[1], dtype=bool) if before is None else before
    if occurs[-1]:
        return occurs
    if is_sparse(X):
        occurs[X.indices] = True
    elif X[:, -1].any():
        occurs[-1] = True
    else:
        occurs |= np.array([X[:, column].any() for column in range(X.shape[1])])
    return occurs


def warn_of_absent_features(occurs: NDArray[np.bool_], source: object, model: object) -> None:
    """
    Warn if the last columns are always 0, as in a file with fewer features than the model.

    In sparse text the last feature may be absent by chance. The warning requires that the columns absent at the end are
    `GAP` times as many as the longest run of absent columns before.
    """
    if occurs[-1]:
        return
    n = len(occurs)
    # ids of the columns that occur, preceded by 0
    ids = np.concatenate([[0], np.flatnonzero(occurs) + 1])
    if n - ids[-1] > GAP * (np.diff(ids) - 1).max(initial=0):
        warn(
            f"{source} has no feature above {ids[-1]}, but {model} was fitted on {n}: the others count as 0; check "
            "that the file has the features of the model."
        )


def preferred_layout(model: Any) -> Literal["auto", "dense"]:
    """Return the layout in which a model needs its rows, for `corank.read`."""
    if not hasattr(model, "__sklearn_tags__"):  # a scorer of rows
        return "auto"
    from sklearn.utils import get_tags

    return "auto" if get_tags(model).input_tags.sparse else "dense"


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"None": None, "True": True, "False": False}.get(text, text)
