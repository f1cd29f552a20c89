"""The types of parameters name the values that their rules allow."""

from __future__ import annotations

import re
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from corank import registry

CLASSES = [one for name in registry.names() if isinstance(one := registry.find(name), type) and hasattr(one, "_rules")]


def literals(hint):
    """The strings of a Literal, also inside a union."""
    if get_origin(hint) is Literal:
        return {one for one in get_args(hint) if isinstance(one, str)}
    return set().union(*map(literals, get_args(hint)))


def hints_of(kind):
    """Types of parameters; those of a dataclass are declared by its bases, in other modules."""
    return get_type_hints(kind if "__dataclass_fields__" in vars(kind) else kind.__init__)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_types_are_the_rules(kind):
    for name, hint in hints_of(kind).items():
        if (wanted := literals(hint)) and name in kind._rules:
            rule = kind._rules[name]
            assert wanted == set(re.findall(r"'([^']+)'", rule.words)), name
            assert all(map(rule.allows, wanted)), name


def test_choices_of_several_classes_are_typed():
    typed = {name for kind in CLASSES for name, hint in hints_of(kind).items() if literals(hint)}
    assert {"loss", "solver", "query_weight", "missing", "targets", "conversion", "ranking_loss"} <= typed
