"""Help texts and guides list the registered stopping rules and strategies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corank.base.suggestions import STRATEGIES, suggest
from corank.cli import app
from corank.errors import InputError
from corank.models.gp import suggest_pairs
from corank.parameters import PAIR_STRATEGIES
from corank_lab.preferences import Items, PreferenceSession
from corank_lab.screening import STOPPING_RULES, simulate
from helpers.records import collection

DOCS = Path(__file__).parents[3] / "docs"


def names_in(text, registry):
    return {name for name in registry if re.search(rf"\b{name}\b", text)}


@pytest.mark.parametrize(
    ("command", "option", "registry"),
    [
        ("prefer", "--strategy", PAIR_STRATEGIES),
        ("suggest", "--strategy", {**STRATEGIES, **PAIR_STRATEGIES}),
    ],
)
def test_help_lists_the_registry(command, option, registry):
    text = CliRunner().invoke(app, [*command.split(), "--help"]).stdout
    (entry,) = re.findall(rf"^  {option} .*?(?=^  --)", text, flags=re.MULTILINE | re.DOTALL)
    assert names_in(entry, registry) == set(registry)


@pytest.mark.parametrize(
    ("page", "registry"),
    [
        ("guide/screening.md", STOPPING_RULES),
        ("experiments/screening.md", STOPPING_RULES),
        ("guide/preferences.md", PAIR_STRATEGIES),
        ("guide/command-line.md", STRATEGIES),
        ("guide/command-line.md", PAIR_STRATEGIES),
    ],
)
def test_guides_list_the_registry(page, registry):
    quoted = " ".join(re.findall(r"`[^`\n]+`", (DOCS / page).read_text(encoding="utf-8")))
    assert names_in(quoted, registry) == set(registry)


@pytest.mark.parametrize(("thing", "registry"), [(suggest, STRATEGIES), (suggest_pairs, PAIR_STRATEGIES)])
def test_docstrings_list_the_registry(thing, registry):
    assert all(f'"{name}"' in thing.__doc__ for name in registry)


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
