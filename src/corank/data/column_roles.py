"""
Roles of the columns of a table: label, query, document, judge; all other columns are features.

A role is chosen by name, or recognised by a usual name of `USUAL_NAMES`; case, blanks, hyphens and underscores are
ignored. This is the one place where columns are recognised: readers of CSV and Parquet, parts, and all commands use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from corank.errors import InputError, closest

USUAL_NAMES = {
    "y": ("label", "grade", "relevance", "rating", "y"),
    "qid": ("qid", "query_id", "query", "srch_id", "session_id"),
    "docid": ("docid", "doc_id", "document_id", "docno", "document", "product_id", "item_id", "id", "url", "name"),
    "judge": ("judge", "assessor", "annotator", "rater", "reviewer", "user"),
}
"""Usual names of the columns of each role, by the parameter that names another column."""

JudgeRule = Literal["median", "mean", "majority", "keep"]
"""Rule for several rows of the same document of a query; "keep" keeps them all."""

_TITLES = {"y": "label", "qid": "query", "docid": "document", "judge": "judge"}
_SHOWN = 6
_SEPARATORS = re.compile(r"[\s_-]+")
# columns without a name, and the row numbers that pandas writes
_NAMELESS = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")


@dataclass(frozen=True)
class ColumnRoles:
    """
    Roles of the columns of one table.

    y, qid, docid, judge: The columns of labels, query ids, document ids and judges; None if the table has none.
    left_out: Columns that are not used: dropped, without a name (the index of pandas), or with a usual name of a role
        that another column has.
    """

    y: str | None
    qid: str | None
    docid: str | None
    judge: str | None
    features: tuple[str, ...]  # the feature columns, in the order of X
    left_out: tuple[str, ...] = ()
    is_reordered: bool = False  # whether the features have another order in the table

    def __str__(self) -> str:
        """Return the roles in words: label 'grade', query 'query_id', 2 features 'bm25', 'age'; left out 'url'."""
        taken = [f"{title} {getattr(self, role)!r}" for role, title in _TITLES.items() if getattr(self, role)]
        named = f" {list_names(self.features)}" if self.features else ""
        count = f"{len(self.features)} feature{'s' * (len(self.features) != 1)}{named}"
        unused = f"; left out {list_names(self.left_out)}" if self.left_out else ""
        return ", ".join([*taken, count]) + unused


@dataclass(frozen=True)
class ColumnChoice:
    """
    What the user said about the columns of a table.

    y: Label column. None recognises and requires one; False recognises one, and accepts a table without labels.
    qid: Query column. None recognises one; False ignores all that look like one, and puts all rows in one query.
    features: Names and order of the features, such as the `feature_names_in_` of a model; None accepts any.
    """

    y: str | Literal[False] | None = None
    qid: str | Literal[False] | None = None
    docid: str | None = None  # docid, judge: columns of document ids and of judges; None recognises them
    judge: str | None = None
    drop: Sequence[str] = ()  # columns to leave out; they may be absent if `features` is given
    keep: Sequence[str] = ()  # features whose names look like another role
    features: Sequence[str] | None = None

    def roles(self, names: Sequence[str], path: object) -> ColumnRoles:
        """Assign a role to each column of a table, or raise `InputError` if that is not clear."""
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path} has two columns named {twice!r}; rename one of them.")
        given = {"y": self.y, "qid": self.qid, "docid": self.docid, "judge": self.judge}
        named = [(role, name) for role, name in given.items() if isinstance(name, str)]
        others = [("drop", name) for name in self.drop] + [("keep", name) for name in self.keep]
        for option, name in named if self.features is not None else named + others:
            if name not in names:
                near = closest(name, names)
                hint = f"did you mean {near!r}? Choose" if near else "choose"
                raise InputError(f"{path} has no column {name!r}; {hint} one of {list_names(names)} with {option}=.")
        wanted_names = () if self.features is None else self.features
        is_set = {name for _, name in named} | {*self.drop, *self.keep, *wanted_names}
        result: dict[str, str | None] = {}
        left_out = [*self.drop, *(item for item in names if item not in is_set and _NAMELESS.fullmatch(str(item)))]
        for role, chosen in given.items():
            alike = _alike([item for item in names if item not in is_set], role)
            result[role] = chosen if isinstance(chosen, str) else self._recognised(role, alike, path)
            left_out += [item for item in alike if item != result[role]]
        if result["y"] is None and self.y is None:
            if all(map(_is_number, names)):
                raise InputError(
                    f"{path} begins with numbers ({list_names(names)}); expected a header of column names."
                )
            usual = ", ".join(USUAL_NAMES["y"])
            raise InputError(f"{path} has no label column ({usual}); choose one of {list_names(names)} with y=.")
        taken = {*result.values(), *left_out}
        features = [item for item in names if item not in taken]
        wanted = features if self.features is None else list(self.features)
        require_same_features(features, wanted, path)
        return ColumnRoles(**result, features=tuple(wanted), left_out=tuple(left_out), is_reordered=wanted != features)

    def _recognised(self, role: str, alike: list[str], path: object) -> str | None:
        """Return the column with a usual name of a role."""
        if role == "qid" and self.qid is False:
            return None
        if len(alike) > 1 and role != "docid":  # any id names a document; the most usual one is taken
            title = {"y": "labels", "qid": "query ids", "judge": "judges"}[role]
            raise InputError(
                f"{path} has the columns {list_names(alike)}, which look like {title}; choose one with {role}= (the "
                "others are left out), or keep one as a feature with keep=."
            )
        return alike[0] if alike else None


ANY_COLUMNS = ColumnChoice()
"""All roles are recognised."""


def column_numbers(columns: Iterable[Any], names: Sequence[str] | None, what: str) -> list[Any]:
    """Replace names of columns by their numbers; other entries stay."""
    result: list[Any] = []
    for column in columns:
        if isinstance(column, str):
            if names is None:
                raise InputError(f"{what} names the column {column!r}, but X has no column names; pass its number.")
            if column not in names:
                near = closest(column, names)
                hint = f"did you mean {near!r}?" if near else f"choose from {list_names(names)}."
                raise InputError(f"{what} names the column {column!r}, which X does not have; {hint}")
            column = list(names).index(column)
        result.append(column)
    return result


def _alike(names: Iterable[str], role: str) -> list[str]:
    """Return the columns with a usual name of a role, the most usual first."""
    usual = [_folded(name) for name in USUAL_NAMES[role]]
    result = [(usual.index(_folded(name)), name) for name in names if _folded(name) in usual]
    return [name for _, name in sorted(result, key=lambda pair: pair[0])]


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def require_same_features(found: Sequence[str], wanted: Sequence[str], path: object) -> None:
    """Raise `InputError` with the names that differ if a table lacks features, or has others; any order is allowed."""
    are_found, are_wanted = set(found), set(wanted)
    if are_found == are_wanted:
        return
    missing = [name for name in wanted if name not in are_found]
    extra = [name for name in found if name not in are_wanted]
    lacks = f"lacks {list_names(missing)}, which the model was fitted on" if missing else ""
    has = f"has {list_names(extra)}, which the model was not fitted on" if extra else ""
    hint = "; name them with y=, qid= or docid=, or leave them out with drop=" if extra and not missing else ""
    hint = hint or "; pass a table with the columns of the model"
    raise InputError(f"{path} {', and '.join(filter(None, (lacks, has)))}{hint}.")


def usual_names(role: str) -> str:
    """Return the usual names of the columns of a role in words."""
    *most, last = USUAL_NAMES[role]
    return f"{', '.join(most)} or {last}"


def list_names(names: Iterable[str]) -> str:
    """Return names in quotes; of many, the first three and the last three."""
    shown = list(map(repr, names))
    if len(shown) <= _SHOWN:
        return ", ".join(shown)
    half = _SHOWN // 2
    return ", ".join([*shown[:half], "...", *shown[-half:]]) + f" ({len(shown)} in all)"


def column_name(column: int, names: Sequence[str] | None = None) -> str:
    """Return the name of a column; without names f1, f2, ..., as features are numbered in LETOR text."""
    return f"f{column + 1}" if names is None else str(names[column])
