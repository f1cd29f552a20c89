"""Registered stopping rules and strategies are documented, listed by messages, and run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from corank.base.suggestions import STRATEGIES
from corank.errors import InputError
from corank.parameters import PAIR_STRATEGIES
from corank_lab.preferences import Items, PreferenceSession
from corank_lab.screening import STOPPING_RULES, simulate
from helpers.records import collection

DOCS = Path(__file__).parents[3] / "docs"


def names_in(text, registry):
    return {name for name in registry if re.search(rf"\b{name}\b", text)}


def test_the_guide_lists_the_stopping_rules():
    quoted = " ".join(re.findall(r"`[^`\n]+`", (DOCS / "guide/screening.md").read_text(encoding="utf-8")))
    assert names_in(quoted, STOPPING_RULES) == set(STOPPING_RULES)


def test_every_entry_has_a_summary():
    for entry in (*STOPPING_RULES.values(), *STRATEGIES.values()):
        assert entry.__doc__.strip()


def test_unknown_names_list_the_registry():
    with pytest.raises(InputError, match="strategy is 'bold'; pass") as raised:
        PreferenceSession(Items(["a", "b"]), strategy="bold")
    assert names_in(str(raised.value), PAIR_STRATEGIES) == set(PAIR_STRATEGIES)
    with pytest.raises(InputError, match="rule is 'sampel'; did you mean 'sample'") as raised:
        simulate(collection(), 1, rule="sampel")
    assert names_in(str(raised.value), STOPPING_RULES) == set(STOPPING_RULES)


@pytest.mark.parametrize("rule", STOPPING_RULES)
def test_a_replay_stops_by_every_rule(rule):
    (replay,) = simulate(collection(), 1, rule=rule)
    assert 0 < replay.stop <= len(replay.found)
