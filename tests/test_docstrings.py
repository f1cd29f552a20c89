"""Public docstrings say what numpydoc asks for: parameters, returns, a summary that is a sentence."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

import corank

CHECKS = {
    "GL01", "GL03", "GL05", "GL06", "GL07", "GL08", "SS01", "SS03",
    "PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "RT01", "RT03",
}  # fmt: skip


def public_modules():
    for module in pkgutil.walk_packages(corank.__path__, "corank."):
        # kernels document themselves in one line; the verbs' docstrings are their help text
        if not module.name.startswith(("corank.core", "corank.cli")) and "._" not in module.name:
            yield module.name


def public_names(module_name):
    module = importlib.import_module(module_name)
    yield module_name
    for name, thing in vars(module).items():
        ours = getattr(thing, "__module__", None) == module_name and not name.startswith("_")
        if not ours or not (inspect.isfunction(thing) or inspect.isclass(thing)):
            continue
        yield f"{module_name}.{name}"
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                is_method = isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)
                if is_method and not member.startswith("_"):
                    yield f"{module_name}.{name}.{member}"


def record_fields(thing):
    """Fields of a dataclass or named tuple; None for everything else."""
    if not inspect.isclass(thing):
        return None
    if dataclasses.is_dataclass(thing):
        return {field.name for field in dataclasses.fields(thing) if not field.name.startswith("_")}
    return set(thing._fields) if hasattr(thing, "_fields") else None


def complaints(name):
    checked = Validator.load_obj(name) if "." in name else None
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


@pytest.mark.parametrize("module_name", list(public_modules()))
def test_docstrings(module_name):
    found = [complaint for name in public_names(module_name) for complaint in complaints(name)]
    assert not found, "\n".join(found)
