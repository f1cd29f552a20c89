"""Compare rankers, bound their errors and report the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    # the names below for editors and type checkers; a test compares the two lists
    # isort: off
    from corank.evaluation import bounds as bounds, compare as compare, report as report
    # isort: on

# each public name and the module that defines it, which is imported when the name is first used
_HOMES = {
    "bounds": "corank.evaluation",
    "compare": "corank.evaluation",
    "report": "corank.evaluation",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
