"""Dask unpickles what workers send: every function that takes a client, the guide and SECURITY.md warn of it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from corank.deploy import distributed

TAKING = [
    one for one in map(distributed.__dict__.get, distributed.__all__) if "client" in inspect.signature(one).parameters
]


@pytest.mark.parametrize("function", TAKING, ids=lambda one: one.__name__)
def test_a_parameter_client_comes_with_a_warning(function):
    words = " ".join(function.__doc__.split())
    assert "trusted clusters only" in words or "clusters that you trust" in words
    assert "npickl" in words


def test_all_of_them_are_found_and_the_pages_warn_too():
    assert {"fit_parts", "predict_parts", "Parts", "DaskEngine"} <= {one.__name__ for one in TAKING}
    home = Path(__file__).parents[4]
    for page in ("docs/guide/distributed.md", "SECURITY.md"):
        text = (home / page).read_text(encoding="utf-8")
        assert "pickle" in text
        assert "clusters that you trust" in text
