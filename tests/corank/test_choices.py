"""The types of parameters list the values that are allowed."""

from __future__ import annotations

from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from corank import SPD, registry
from corank.errors import InputError
from corank.parameters import rules_of

CLASSES = [
    kind for name in registry.names() if isinstance(kind := registry.find(name), type) and hasattr(kind, "_rules")
]


def literals(hint):
    """The strings of a Literal, also inside a union."""
    if get_origin(hint) is Literal:
        return {value for value in get_args(hint) if isinstance(value, str)}
    return set().union(*map(literals, get_args(hint)))


def hints_of(kind):
    """Types of parameters; those of a dataclass are declared by its bases, in other modules."""
    return get_type_hints(kind if "__dataclass_fields__" in vars(kind) else kind.__init__)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_listed_values_are_allowed_and_no_other_text(kind):
    for name, hint in hints_of(kind).items():
        if (listed := literals(hint)) and not name.endswith("_"):
            rule = rules_of(kind)[name]
            assert all(map(rule.allows, listed)), name
            assert not rule.allows("no such value"), name
            assert all(repr(value) in rule.words for value in listed), name


def test_choices_of_several_classes_are_typed():
    typed = {name for kind in CLASSES for name, hint in hints_of(kind).items() if literals(hint)}
    assert {"loss", "solver", "query_weight", "missing", "targets", "conversion", "ranking_loss"} <= typed


def test_subclasses_of_users_keep_the_rules():
    """A subclass without a constructor, one with its own, and one with a type that is not imported at run time."""

    class Plain(SPD):
        pass

    class Own(SPD):
        def __init__(self, loss: Literal["hinge", "squared"] = "hinge", sort: NotImported = None) -> None:  # noqa: F821
            super().__init__(loss)

    assert rules_of(Plain)["query_weight"].words == rules_of(SPD)["query_weight"].words
    assert rules_of(Plain)["loss"].words == rules_of(SPD)["loss"].words
    assert "query_weight" not in {name for name in rules_of(Own) if name not in SPD._rules}
    assert rules_of(Own)["loss"].allows("hinge")
    with pytest.raises(InputError, match="loss is 'no'"):
        Plain("no").fit([[0.0], [1.0]], [0, 1])
