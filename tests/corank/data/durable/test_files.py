"""Only regular files are opened where a pipe would wait for ever; every mapping goes through one module."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import corank
from corank.data.durable import files as regular
from corank.data.durable.compressed import write_text
from corank.data.durable.files import JsonLines, complete_lines, map_array, map_bytes, open_regular, read_regular
from corank.data.durable.text import open_text
from corank.data.io.frames import read_parquet
from corank.data.io.items import read_items
from corank.errors import InputError
from corank.text.files import open_corpus
from corank_lab.records.records import read_records

SOURCES = Path(corank.__file__).parent

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def odd_places(folder: Path, suffix: str):
    """Yield what a file name may lead to, and what a message calls it."""
    os.mkfifo(folder / f"pipe{suffix}")
    yield folder / f"pipe{suffix}", "a named pipe"
    (folder / f"folder{suffix}").mkdir()
    yield folder / f"folder{suffix}", "a folder"
    (folder / f"zero{suffix}").symlink_to("/dev/zero")
    yield folder / f"zero{suffix}", "a device"
    (folder / f"link{suffix}").symlink_to(folder / f"pipe{suffix}")
    yield folder / f"link{suffix}", "a named pipe"
    here = os.getcwd()
    os.chdir(folder)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(f"socket{suffix}")
    finally:
        os.chdir(here)
    yield folder / f"socket{suffix}", "a socket"


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        (".jsonl", JsonLines),
        (".jsonl", complete_lines),
        (".jsonl", read_records),
        (".ris", read_records),
        (".csv", read_records),
        (".csv", read_items),
        (".parquet", read_items),
        (".index", open_corpus),
        (".bin", open_regular),
        (".bin", read_regular),
        (".bin", map_bytes),
        (".bin", lambda path: map_array(path, "f8", (2,))),
    ],
)
def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path, suffix: str, read) -> None:
    for path, kind in odd_places(tmp_path, suffix):
        # a folder may hold e-mails
        expected = "is a folder without" if (read, kind) == (read_records, "a folder") else f"is {kind}; pass a regular"
        with pytest.raises(InputError, match=f"{re.escape(path.name)} {expected}"):
            read(path)


def test_models_and_tables_do_not_wait_either(tmp_path: Path) -> None:
    for path, _ in odd_places(tmp_path, ".parquet"):
        with pytest.raises(InputError):
            corank.load(path)
        with pytest.raises(InputError):
            read_parquet(path)


def test_a_text_may_be_a_pipe_but_not_a_device_without_end(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="/dev/zero is a device"):
        open_text("/dev/zero")
    with pytest.raises(InputError, match="is empty"):
        open_text("/dev/null")


def test_a_pipe_without_another_end_is_refused_after_a_while(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(regular, "PIPE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a named pipe"):
        open_text(tmp_path / "pipe")

    def write() -> None:
        with write_text(tmp_path / "pipe"):
            pass

    with pytest.raises(InputError, match="pipe is a named pipe"):
        write()


def test_a_pipe_may_have_a_writer_who_is_slow_or_who_leaves(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(regular, "PIPE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)  # a writer, and a reader for whom nobody has to wait

    def write() -> None:
        os.write(held, b"1 1:2\n")
        os.close(held)

    later = threading.Timer(0.3, write)
    later.start()
    assert open_text(tmp_path / "pipe").read().tobytes() == b"1 1:2\n"
    later.join()
    monkeypatch.setattr(regular, "PIPE_SECONDS", 60.0)
    leaver = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"",))
    leaver.start()
    with pytest.raises(InputError, match="is empty"):
        open_text(tmp_path / "pipe")
    leaver.join()


def test_standard_input_is_not_a_device_without_end_either(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/zero") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        with pytest.raises(InputError, match="standard input is a device"):
            open_text("-")


def test_arrays_are_mapped_and_empty_ones_are_made(tmp_path: Path) -> None:
    numbers = np.arange(6.0).reshape(2, 3)
    numbers.tofile(tmp_path / "a")
    mapped = map_array(tmp_path / "a", "f8", (2, 3))
    np.testing.assert_array_equal(mapped, numbers)
    assert type(mapped) is np.ndarray
    assert not mapped.flags.writeable
    with pytest.raises(InputError, match="a has 48 bytes, expected 24"):
        map_array(tmp_path / "a", "f4", (2, 3))
    (tmp_path / "b").touch()
    assert map_array(tmp_path / "b", "f8", (0, 3)).shape == (0, 3)
    assert len(map_bytes(tmp_path / "b")) == 0


def test_no_other_module_maps_files() -> None:
    """A store that is being written maps its own new files, and a comparison its own temporary one."""
    allowed = {"data/durable/files.py", "data/io/stores.py", "comparison/runner.py"}
    found = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        if re.search(r"np\.memmap\(|mmap_mode|mmap\.mmap\(", file.read_text())
    }
    assert found <= allowed
