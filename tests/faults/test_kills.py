"""Killed writers, short form: a few instants each, those around the renames first; `make faults` uses all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.commands import COMMANDS
from faults.functions import FUNCTIONS, IN_PARTS, RESULTS

EVERY = (*COMMANDS, *FUNCTIONS, *RESULTS, *IN_PARTS)
long = pytest.mark.long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("kills", "writers"),
    [
        (4, ["convert to store"]),
        pytest.param(4, [one.name for one in EVERY if not one.is_slow], id="all", marks=long),
    ],
)
def test_a_killed_writer_leaves_the_old_or_the_new_version(kills, writers):
    # a new process: a fork of this one would inherit the threads of the test runner
    tests = Path(__file__).parent.parent
    paths = os.pathsep.join(
        [str(tests), str(tests / "corank"), str(tests.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, tests / "faults" / "kill.py", "--kills", str(kills), *writers],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count('"faults": []') == len(writers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("kills", "kind", "database"),
    [
        (2, "screen", "sqlite"),
        pytest.param(5, "screen", "postgresql", marks=long),
        pytest.param(5, "grade", "sqlite", marks=long),
        pytest.param(5, "grade", "postgresql", marks=long),
        pytest.param(5, "screen", "killed-postgresql", marks=long),
        pytest.param(5, "grade", "killed-postgresql", marks=long),
    ],
)
def test_a_killed_server_keeps_what_it_acknowledged(kills, kind, database):
    kill("kill_server.py", "--kills", str(kills), "--kind", kind, "--database", database)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "killed-postgresql"])
@long
def test_a_killed_service_loses_no_event_and_learns_none_twice(database):
    kill("kill_service.py", "--kills", "5", "--database", database)


def kill(program, *options):
    """Run a program that kills servers, and check that it found no fault."""
    tests = Path(__file__).parent.parent
    paths = os.pathsep.join(
        [str(tests), str(tests / "corank"), str(tests.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, tests / "faults" / program, *options],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"faults": []' in done.stdout
