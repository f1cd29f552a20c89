from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
import zstandard

from corank.data.compressed import first_line, open_text, write_text
from corank.errors import InputError

CONTENT = np.random.default_rng(0).integers(32, 127, 1_500_000, dtype=np.uint8).tobytes() + b"\nend\n"
PACK = {
    "gz": gzip.compress,
    "xz": lambda content: lzma.compress(content, preset=0),
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("kind", PACK)
def test_packed_files_are_known_by_their_first_bytes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "anything"
    path.write_bytes(PACK[kind](CONTENT))
    assert open_text(path).mapped[:] == CONTENT


@pytest.mark.parametrize("kind", PACK)
def test_several_packed_parts_are_one_text(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[kind](b"one\n") + PACK[kind](b"two\n"))
    assert open_text(path).mapped[:] == b"one\ntwo\n"


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("lost", [1, 1_000_000])
def test_a_cut_file_is_refused(tmp_path: Path, kind: str, lost: int) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(PACK[kind](CONTENT)[:-lost])
    with pytest.raises(InputError, match="damaged or cut short"):
        open_text(path)


@pytest.mark.parametrize("kind", PACK)
def test_a_damaged_file_is_refused(tmp_path: Path, kind: str) -> None:
    packed = bytearray(PACK[kind](b"some text " * 1000))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / f"a.{kind}"
    path.write_bytes(packed)
    if kind == "zst":  # without a content checksum a flipped byte may only change the text
        packed[4:8] = b"\xff\xff\xff\xff"
        path.write_bytes(packed)
    with pytest.raises(InputError, match="damaged or cut short"):
        open_text(path)


@pytest.mark.parametrize(("suffix", "unpack"), [(".txt", bytes), (".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_writing_packs_by_suffix(tmp_path: Path, suffix: str, unpack) -> None:
    path = tmp_path / f"a{suffix}"
    with write_text(path) as stream:
        stream.write(CONTENT)
    assert unpack(path.read_bytes()) == CONTENT
    first = path.read_bytes()
    with write_text(path, overwrite=True) as stream:
        stream.write(CONTENT)
    assert path.read_bytes() == first


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".xz", ".zst"])
def test_a_failed_write_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    def write() -> None:
        with write_text(tmp_path / f"a{suffix}") as stream:
            stream.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_places_are_found_by_counting_lines(tmp_path: Path) -> None:
    path = tmp_path / "a"
    content = b"ab\n\ncde\nf" + b"x" * 2_000_000 + b"\nlast"
    path.write_bytes(content)
    text = open_text(path)
    for position in (0, 1, 2, 3, 4, 6, 7, 8, 2_000_000, len(content) - 1):
        before = content[:position]
        assert text.locate(position) == (before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1)


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*none\.txt"):
        open_text(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot be read"):
        open_text(tmp_path)


@pytest.mark.parametrize("kind", [None, *PACK])
def test_the_first_line_is_found_behind_blanks_and_comments(tmp_path: Path, kind: str | None) -> None:
    pack = PACK[kind] if kind else bytes
    path = tmp_path / "a"
    for content, plain, bare in (
        (b"one # two\r\nthree\n", b"one # two", b"one "),
        (b"\n \t\n# note\n 1 2\n", b"# note", b" 1 2"),
        (b"no end", b"no end", b"no end"),
        (b" \n\n", b"", b""),
    ):
        path.write_bytes(pack(content))
        assert (first_line(path), first_line(path, comment=b"#")) == (plain, bare)


@pytest.mark.parametrize("kind", PACK)
def test_the_first_line_of_packed_text_is_read_and_no_further(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[kind](b"first\n" + CONTENT)[:-100_000])  # the end is lost, and not missed
    assert first_line(path) == b"first"
    path.write_bytes(PACK[kind](b"\n") + PACK[kind](b"second\n"))
    assert first_line(path) == b"second"
    path.write_bytes(PACK[kind](CONTENT)[:20])
    if kind != "zst":  # a cut frame looks like the end of the text here; open_text names it
        with pytest.raises(InputError, match="damaged or cut short"):
            first_line(path)
