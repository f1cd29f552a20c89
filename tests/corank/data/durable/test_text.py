from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zstandard

from corank.data.durable import text as texts
from corank.data.durable.text import TextFile, open_text
from corank.data.io.letor_reader import read_letor, stream_letor
from corank.errors import InputError

CONTENT = np.random.default_rng(0).integers(32, 127, 1_500_000, dtype=np.uint8).tobytes() + b"\nend\n"
PACK = {
    "gz": gzip.compress,
    "xz": lambda content: lzma.compress(content, preset=0),
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(params=[None, 100], ids=["held", "in a file"])
def held(request, monkeypatch) -> None:
    if request.param:
        monkeypatch.setattr(texts, "MAX_HELD_BYTES", request.param)


@pytest.mark.parametrize("kind", [None, *PACK])
def test_any_part_of_a_text_is_read(tmp_path: Path, held, kind: str | None) -> None:
    path = tmp_path / "anything"
    path.write_bytes(PACK[kind](CONTENT) if kind else CONTENT)
    text = open_text(path)
    assert text.size == len(CONTENT)
    assert text.read().tobytes() == CONTENT
    assert text.read(10, 2000, padding=3).tobytes() == CONTENT[10:2000] + b"\n\n\n"
    assert open_text(text) is text
    path.unlink()
    assert text.read(7, 9).tobytes() == CONTENT[7:9]


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="a system without reads at an offset has no forks")
@pytest.mark.parametrize("kind", [None, "gz"])
def test_the_place_in_the_file_that_forked_processes_share_does_not_move(tmp_path: Path, monkeypatch, kind) -> None:
    monkeypatch.setattr(texts, "MAX_HELD_BYTES", 100)
    path = tmp_path / "a"
    path.write_bytes(PACK[kind](CONTENT) if kind else CONTENT)
    text = open_text(path)
    descriptor = text._file.fileno()
    for begin in (700, 20, 1_400_000):
        place = os.lseek(descriptor, begin, os.SEEK_SET)
        assert text.read(begin + 5, begin + 900).tobytes() == CONTENT[begin + 5 : begin + 900]
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == place


def test_a_system_without_reads_at_an_offset_seeks(tmp_path: Path, held, monkeypatch) -> None:
    monkeypatch.delattr(os, "preadv", raising=False)
    path = tmp_path / "a"
    path.write_bytes(CONTENT)
    text = open_text(path)
    assert [text.read(begin, begin + 900).tobytes() for begin in (700, 20)] == [CONTENT[700:1600], CONTENT[20:920]]


@pytest.mark.parametrize("kind", [None, *PACK])
def test_a_byte_order_mark_is_no_text(tmp_path: Path, held, kind: str | None) -> None:
    path = tmp_path / "a"
    content = b"\xef\xbb\xbf" + b"1 qid:3 1:0.5\n" * 20 + b"x"
    path.write_bytes(PACK[kind](content) if kind else content)
    assert open_text(path).read().tobytes() == content[3:]
    with pytest.raises(InputError, match="line 21, column 1: expected a label"):
        read_letor(path)
    path.write_bytes("1 qid:1\n".encode("utf-16"))
    with pytest.raises(InputError, match="a is encoded in UTF-16; save it as UTF-8"):
        open_text(path)
    path.write_bytes(content[:3])
    with pytest.raises(InputError, match="a is empty"):
        open_text(path)


def test_places_are_found_by_counting_lines(tmp_path: Path, held) -> None:
    path = tmp_path / "a"
    content = b"ab\n\ncde\nf" + b"x" * 2_000_000 + b"\nlast"
    path.write_bytes(content)
    text = open_text(path)
    for position in (0, 1, 2, 3, 4, 6, 7, 8, 2_000_000, len(content) - 1):
        before = content[:position]
        assert text.locate(position) == (before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1)
        found = content.find(b"\n", position)
        assert text.line_end(position) == (found + 1 if found >= 0 else len(content))
    assert text.word(4) == b"cde"
    assert text.word(3) == b""
    assert len(text.word(9)) == 200


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*none\.txt"):
        open_text(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot be read"):
        open_text(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="empty is empty"):
        open_text(tmp_path / "empty")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch) -> None:
    class Full(io.BytesIO):
        def write(self, piece) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(texts.tempfile, "SpooledTemporaryFile", lambda size: Full())
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"1 1:1\n"))
    with pytest.raises(
        InputError,
        match=r"a\.gz does not fit into the folder",
    ):
        open_text(tmp_path / "a.gz")


@pytest.mark.parametrize("kind", [None, *PACK])
def test_the_first_line_is_found_behind_blanks_and_comments(tmp_path: Path, kind: str | None) -> None:
    path = tmp_path / "a"
    for content, line in (
        (b"one # two\r\nthree\n", b"one "),
        (b"\n \t\n# note\n 1 2\r\n", b" 1 2"),
        (b"no end", b"no end"),
        (b"1 2\r3 4\r", b"1 2"),
        (b" \n\n", b""),
        (b"# only\n" * 10_000, b""),
        (b"# much\n" * 10_000 + b"x" * 300_000, b"x" * 300_000),
    ):
        path.write_bytes(PACK[kind](content) if kind else content)
        assert open_text(path).first_line() == line


def test_a_word_without_end_is_refused_where_it_becomes_too_long(tmp_path: Path, monkeypatch) -> None:
    """The rest of the word is not read."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"1 qid:1 1:2\n1 qid:1 " + b"1:1 " * 600_000 + b"2:" + b"9" * 12_000_000 + b"\n")
    ends = []
    read = TextFile.read
    monkeypatch.setattr(TextFile, "read", lambda self, *given: ends.append(given[1:2]) or read(self, *given))
    for read_all in (read_letor, lambda path: list(stream_letor([path], n_features=2))):
        with pytest.raises(InputError, match=r"a.txt, line 2: the word at '(2:)?9+' has"):
            read_all(path)
    assert max(end for (end,) in ends if end) < 8_000_000


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 32)  # zeros that take no room
    assert open_text(tmp_path / "a").first_line() == bytes(1 << 24)


def overwritten(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


@pytest.mark.parametrize("size", [0, 1000, 1_200_000, 1_200_001])
def test_a_large_file_that_changes_is_refused(tmp_path: Path, monkeypatch, size: int) -> None:
    monkeypatch.setattr(texts, "MAX_HELD_BYTES", 100)
    path = tmp_path / "a"
    path.write_bytes(b"1 qid:1 1:1\n" * 100_000)
    os.utime(path, ns=(0, 0))
    text = open_text(path)
    overwritten(path, b"2" * size)
    with pytest.raises(InputError, match="a changed while it was read; read it again"):
        text.read(0, 10)


def test_a_file_that_is_cut_while_it_is_read_ends_no_process(tmp_path: Path) -> None:
    """A map of it would: its pages go away."""
    code = """
import sys, threading, time
from corank.data import read_letor
path, row = sys.argv[1], b"1 qid:1 1:0.5 # x\\n"
def cut():
    while not done:
        with open(path, "wb") as file:
            file.write(row * 1_500_000)
        time.sleep(0.02)
done, ends = False, {"read": 0, "refused": 0}
thread = threading.Thread(target=cut)
thread.start()
try:
    for _ in range(15):
        try:
            ends["read"] += len(read_letor(path).docids) < 0
        except ValueError as error:
            assert any(end in str(error) for end in ("changed while", "is empty", "changed", "expected")), error
            ends["refused"] += 1
finally:
    done = True
    thread.join()
print(ends["refused"])
"""
    (tmp_path / "a").write_bytes(b"1 qid:1 1:0.5 # x\n" * 1_500_000)
    said = subprocess.run([sys.executable, "-c", code, tmp_path / "a"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert int(said.stdout) > 0


def test_a_small_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1 1:1\n" * 100)
    stamps = iter([(600, 1), (600, 2)])
    monkeypatch.setattr(texts, "_stamp", lambda _: next(stamps))
    with pytest.raises(InputError, match="a changed while it was read"):
        open_text(path)


def write_later(path: Path, content: bytes) -> threading.Thread:
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    return writer


@pytest.mark.parametrize("kind", [None, *PACK])
def test_a_pipe_is_read_as_a_file_is(tmp_path: Path, held, kind: str | None) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = write_later(path, PACK[kind](CONTENT) if kind else CONTENT)
    text = open_text(path)
    writer.join()
    assert text.read().tobytes() == CONTENT
    assert text.read(5, 9).tobytes() == CONTENT[5:9]


def test_a_hyphen_is_standard_input(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"1 1:2\nx\n"))))
    text = open_text("-")
    assert text.read().tobytes() == b"1 1:2\nx\n"
    assert str(text) == "standard input"
    with pytest.raises(InputError, match="standard input, line 2, column 1"):
        read_letor(text)
    with pytest.raises(InputError, match="standard input is empty"):
        open_text(Path("-"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is not available here"):
        open_text("-")
