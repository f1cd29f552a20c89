from __future__ import annotations

from importlib import import_module

import pytest

from corank.errors import InputError
from experiments import EXPERIMENTS, find


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_registered_experiment_can_be_run(name):
    assert find(name) is import_module(EXPERIMENTS[name]).run


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="no experiment 'crr'"):
        find("crr")
