"""Docstrings of what `import corank` offers describe every parameter and nothing that is not one."""

from __future__ import annotations

import dataclasses
import inspect

from numpydoc.validate import validate

import corank

# no docstring; a parameter that is missing, unknown or not described; a value that is returned and not described
CHECKS = {"GL08", "PR01", "PR02", "PR07", "RT01"}


def public_names():
    """
    Return names of functions and classes, and of the methods that list parameters, as those of `Ranker` must.

    Other methods have one sentence. Records document their fields as attributes.
    """
    for name in corank.__all__:
        thing = getattr(corank, name)
        if inspect.isfunction(thing):
            yield f"{thing.__module__}.{name}"
        elif inspect.isclass(thing) and not dataclasses.is_dataclass(thing) and not hasattr(thing, "_fields"):
            yield f"{thing.__module__}.{name}"
            for member, value in vars(thing).items():
                is_inherited = any(hasattr(base, member) for base in thing.__bases__)
                is_listed = thing is corank.Ranker or "\n---" in (inspect.getdoc(value) or "")
                if inspect.isfunction(value) and not member.startswith("_") and not is_inherited and is_listed:
                    yield f"{thing.__module__}.{name}.{member}"


def test_docstrings_describe_parameters():
    errors = {name: [text for code, text in validate(name)["errors"] if code in CHECKS] for name in public_names()}
    assert {name: texts for name, texts in errors.items() if texts} == {}
