from __future__ import annotations

import subprocess
import sys

import pytest

from corank.data.durable.json_lines import JsonLines
from corank_lab.database.holds import NAME, Holds, is_open

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")


def held_by_others(holds):
    with holds.locked() as held:
        return dict(held)


def test_holds_last_as_long_as_the_journal_is_open(tmp_path):
    ann, bob = Holds(tmp_path, "ann"), Holds(tmp_path, "bob")
    with JsonLines(tmp_path / "ann.jsonl"):
        with ann.locked():
            ann.take("W1", "W2")
        assert held_by_others(ann) == {}
        assert held_by_others(bob) == {"ann": ["W1", "W2"]}
        with ann.locked():
            ann.take()
        assert held_by_others(bob) == {"ann": []}
        with ann.locked():
            ann.take("W3")
    assert held_by_others(bob) == {}
    assert not is_open(tmp_path / "nobody.jsonl")


def test_holds_of_a_killed_process_are_void(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from corank.data.durable.json_lines import JsonLines; "
        "from corank_lab.database.holds import Holds; folder = Path(sys.argv[1]); "
        "journal = JsonLines(folder / 'ann.jsonl'); holds = Holds(folder, 'ann')\n"
        "with holds.locked(): holds.take('W1')\n"
        "print('held', flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert held_by_others(Holds(tmp_path, "bob")) == {"ann": ["W1"]}
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert held_by_others(Holds(tmp_path, "bob")) == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"ann": 3}', b'{"ann": [1, null]}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_holds_nothing(content, tmp_path):
    (tmp_path / NAME).write_bytes(content)
    with JsonLines(tmp_path / "ann.jsonl"):
        assert held_by_others(Holds(tmp_path, "bob")) in ({}, {"ann": []})


def test_a_longer_line_before_is_not_read_as_part_of_a_shorter_one(tmp_path):
    """A kill between writing and cutting the file leaves the end of the old line."""
    (tmp_path / NAME).write_bytes(b'{"ann": ["W1"]}\nW2", "W3"]}\n')
    with JsonLines(tmp_path / "ann.jsonl"):
        assert held_by_others(Holds(tmp_path, "bob")) == {"ann": ["W1"]}
