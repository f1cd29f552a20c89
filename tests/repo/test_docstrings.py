"""Docstrings of what `import corank` offers follow numpydoc: parameters, returns, a summary sentence."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import corank

CHECKS = {
    "GL01", "GL03", "GL05", "GL06", "GL07", "GL08", "SS01", "SS03",
    "PR01", "PR02", "PR05", "PR06", "PR07", "RT01", "RT03",
}  # fmt: skip


def public_things():
    """Return what `import corank` offers, with the methods of classes, by full name."""
    for name in corank.__all__:
        thing = getattr(corank, name)
        if not (inspect.isfunction(thing) or inspect.isclass(thing)):
            continue
        home = f"{thing.__module__}.{name}"
        yield home, thing
        seen: set[str] = set()
        for owner in thing.__mro__ if inspect.isclass(thing) else ():
            if not owner.__module__.startswith("corank."):
                continue
            for member, value in [item for item in vars(owner).items() if item[0] not in seen]:
                seen.add(member)
                is_method = isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)
                # a method that a base class documents need not be documented again
                inherited = any(hasattr(base, member) for base in owner.__mro__[1:])
                if is_method and not member.startswith("_") and not inherited:
                    yield f"{home}.{member}", value


def record_fields(thing):
    """Fields of a dataclass or named tuple; None for everything else."""
    if not inspect.isclass(thing):
        return None
    if dataclasses.is_dataclass(thing):
        return {field.name for field in dataclasses.fields(thing) if not field.name.startswith("_")}
    return set(thing._fields) if hasattr(thing, "_fields") else None


def complaints(name, checked):
    fields = record_fields(checked)
    if fields is None:
        return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in CHECKS]
    # a record lists its fields once, under Attributes or Parameters
    doc = get_doc_object(checked)
    listed = {
        part.strip()
        for section in ("Attributes", "Parameters")
        for entry in doc[section]
        for part in entry.name.split(",")
    }
    return [f"{name}: fields {sorted(fields - listed)} not documented"] if fields - listed else []


THINGS = dict(public_things())


@pytest.mark.parametrize("name", THINGS)
def test_docstrings(name):
    assert complaints(name, THINGS[name]) == []
