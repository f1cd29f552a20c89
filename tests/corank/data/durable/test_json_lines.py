from __future__ import annotations

import json
import os
import shutil
import threading

import pytest

from corank.data.durable.files import JsonLines, complete_lines
from corank.errors import InputError
from faults.limits import small_files


def test_values_are_appended_and_read_back(tmp_path):
    path = tmp_path / "new" / "a.jsonl"
    values = [{"a": 1}, [1.5, None, "ü\n"], "text"]
    with JsonLines(path) as file:
        for value in values:
            file.append(value)
    with JsonLines(path) as file:
        assert [json.loads(line) for line in file.lines] == values
    assert complete_lines(path) == file.lines


def test_an_incomplete_line_is_ignored_and_replaced(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": ')
    assert complete_lines(path) == [b'{"a": 1}']
    with JsonLines(path) as file:
        file.append({"a": 2})
    assert path.read_bytes() == b'{"a": 1}\n{"a": 2}\n'


def test_a_second_writer_raises_or_waits(tmp_path):
    path = tmp_path / "a.jsonl"
    first = JsonLines(path)
    with pytest.raises(BlockingIOError):
        JsonLines(path)
    waited = []

    def write():
        with JsonLines(path, wait=True) as second:
            waited.append(list(second.lines))
            second.append(2)

    thread = threading.Thread(target=write)
    thread.start()
    first.append(1)
    first.close()
    thread.join()
    assert waited == [[b"1"]]
    assert complete_lines(path) == [b"1", b"2"]


def test_a_full_disk_leaves_the_file_unchanged(tmp_path):
    path = tmp_path / "a.jsonl"
    with JsonLines(path) as file:
        file.append("first")
        before = path.read_bytes()
        with small_files(len(before) + 3), pytest.raises(InputError, match="cannot be written"):
            file.append("second")
        assert path.read_bytes() == before
        file.append("third")
    assert complete_lines(path) == [b'"first"', b'"third"']


@pytest.mark.parametrize("is_replaced", [False, True])
def test_nothing_is_appended_to_a_file_that_was_taken_away(is_replaced, tmp_path):
    path, kept = tmp_path / "a.jsonl", tmp_path / "kept"
    with JsonLines(path) as file:
        file.append(1)
        os.rename(path, kept)
        if is_replaced:
            shutil.copy(kept, path)
        for _ in range(2):
            with pytest.raises(InputError, match=r"a.jsonl was deleted or replaced while it was in use"):
                file.append(2)
        assert file.lines == complete_lines(kept) == [b"1"]
        os.replace(kept, path)
        file.append(3)
    assert complete_lines(path) == [b"1", b"3"]


def test_nothing_is_appended_to_a_file_that_was_shortened(tmp_path):
    path = tmp_path / "a.jsonl"
    with JsonLines(path) as file:
        file.append("first")
        os.truncate(path, 3)
        with pytest.raises(InputError, match="was shortened from 8 to 3 bytes while it was in use"):
            file.append("second")
    assert path.read_bytes() == b'"fi'
