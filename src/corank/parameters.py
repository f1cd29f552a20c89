"""Rules for the values of parameters, and the random generator of a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from corank.errors import InputError


@dataclass(frozen=True)
class Rule:
    """Allowed values of a parameter; ``a | b`` allows either."""

    words: str  # description of the allowed values, for messages
    allows: Callable[[Any], bool]  # returns whether a value is allowed

    def __or__(self, other: Rule) -> Rule:
        return Rule(f"{self.words}, or {other.words}", lambda value: self.allows(value) or other.allows(value))


Rules = Mapping[str, Rule]

# values of parameters that several estimators share; their rules, and lists in docstrings, are derived from these types
LossName = Literal["hinge", "logistic", "squared", "squared_hinge"]
QueryWeight = Literal["pairs", "equal", "rows"]
Missing = Literal["mean", "error"]
Likelihood = Literal["ordinal", "gaussian"]
Targets = Literal["auto", "classes", "relevant", "ranks", "top"]
Conversion = Literal["all", "adjacent"]
AboveZero = Literal["all", "lowest"]


def number(low: float | None = None, high: float | None = None, *, inside: str = "[]") -> Rule:
    """
    Allow finite numbers in an interval.

    inside {"[]", "()", "[)", "(]"}: which ends are included.
    """
    above = "" if low is None else f" of at least {low:g}" if inside[0] == "[" else f" above {low:g}"
    below = "" if high is None else f" up to {high:g}" if inside[1] == "]" else f" below {high:g}"

    def allows(value: Any) -> bool:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not np.isfinite(float(value)):
            return False
        x = float(value)
        fits_low = low is None or (x >= low if inside[0] == "[" else x > low)
        return fits_low and (high is None or (x <= high if inside[1] == "]" else x < high))

    return Rule(f"a number{above}{' and' if above and below else ''}{below}", allows)


def numbers(low: float | None = None, *, inside: str = "[]") -> Rule:
    """Allow lists of finite numbers in an interval."""
    item = number(low, inside=inside)

    def allows(value: Any) -> bool:
        return isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1 and all(map(item.allows, value))

    return Rule(f"a list with {item.words} for each view", allows)


def integer(low: int | None = None) -> Rule:
    """Allow whole numbers."""
    words = "a whole number" + ("" if low is None else f" of at least {low}")
    return Rule(words, lambda value: is_integer(value) and (low is None or value >= low))


def one_of(*names: str) -> Rule:
    """Allow some strings."""
    return Rule(" or ".join(f"{name!r}" for name in names), lambda value: isinstance(value, str) and value in names)


def having(words: str, *methods: str) -> Rule:
    """Allow objects with some methods."""
    return Rule(words, lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in methods))


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


none = Rule("None", lambda value: value is None)
boolean = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))
text = Rule("a name", lambda value: isinstance(value, str))
listing = Rule("a list", lambda value: not isinstance(value, str) and np.ndim(value) == 1)
items = Rule("a list", lambda value: isinstance(value, list | tuple))
kernel = Rule("the name of a kernel", lambda value: isinstance(value, str)) | having("a Kernel or function", "__call__")
seed = Rule(
    "a whole number, a numpy RandomState or None",
    lambda value: value is None or isinstance(value, np.random.RandomState) or (is_integer(value) and value >= 0),
)
n_jobs = (
    Rule("a number of threads, -1 for every processor", lambda value: is_integer(value) and (value > 0 or value == -1))
    | none
)


@cache
def rules_of(kind: Any) -> Rules:
    """Return the rules of an estimator's parameters: those whose type lists their values, and those in `_rules`."""
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        if "__init__" in vars(base):
            with suppress(NameError):  # a type of a user's class that is imported for type checkers only
                hints |= get_type_hints(base if "__dataclass_fields__" in vars(base) else base.__init__)
    listed = {name: hints[name] for name in kind._get_param_names() if get_origin(hints.get(name)) is Literal}
    return {**{name: one_of(*get_args(hint)) for name, hint in listed.items()}, **kind._rules}


def check_values(values: Mapping[str, Any], rules: Rules) -> None:
    """Raise `InputError` for the first value that its rule does not allow."""
    for name, value in values.items():
        if not rules[name].allows(value):
            raise InputError(f"{name} is {value!r}; pass {rules[name].words}.")


def rng_of(random_state: Any) -> np.random.Generator:
    """Return the random generator of a fit."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


# strategies, and one line on each for the help of commands, which import no more than this module
FUSION_STRATEGIES = {
    "queries": "Whole queries on which plausible fusions differ most",
    "sample": "Single documents, drawn in proportion to that difference",
}
"""Strategies of `corank.models.fusion.suggest`."""
PAIR_STRATEGIES = {
    "entropy": "Largest expected decrease of the entropy of f",
    "bald": "Largest mutual information of the answer and f, without the noise of the answer",
    "random": "Random pairs",
}
"""Strategies of `corank.models.gp.questions`."""
