from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
import zstandard

from corank.data.durable import compressed
from corank.data.durable.compressed import compression_of, is_stream, unpack, write_text
from corank.errors import InputError

CONTENT = np.random.default_rng(0).integers(32, 127, 1_500_000, dtype=np.uint8).tobytes() + b"\nend\n"
PACK = {
    "gzip": gzip.compress,
    "xz": lambda content: lzma.compress(content, preset=0),
    "zstandard": zstandard.ZstdCompressor().compress,
}


def unpacked(packed: bytes, kind: str) -> bytes:
    return b"".join(unpack(io.BytesIO(packed), kind, "a"))


@pytest.mark.parametrize("kind", PACK)
def test_packed_bytes_are_known_by_the_first_of_them(kind: str) -> None:
    handle = io.BytesIO(PACK[kind](CONTENT))
    assert compression_of(handle) == kind
    assert b"".join(unpack(handle, kind, "a")) == CONTENT
    assert compression_of(io.BytesIO(CONTENT)) is compression_of(io.BytesIO(b"")) is None


@pytest.mark.parametrize("kind", PACK)
def test_several_packed_parts_are_one(kind: str) -> None:
    parts = [b"one\n", b"", CONTENT, b"two\n", b""]
    assert unpacked(b"".join(map(PACK[kind], parts)), kind) == b"".join(parts)


def test_xz_streams_may_be_padded() -> None:
    one, two = (lzma.compress(part) for part in (b"one\n", b"two\n"))
    assert unpacked(one + bytes(8) + two + bytes(2 << 20), "xz") == b"one\ntwo\n"


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("lost", [1, 1_000_000])
def test_what_was_cut_is_refused(kind: str, lost: int) -> None:
    with pytest.raises(InputError, match=f"a is damaged or truncated: its {kind} data"):
        unpacked(PACK[kind](CONTENT)[:-lost], kind)


@pytest.mark.parametrize("kind", PACK)
def test_every_cut_of_a_small_file_is_refused(kind: str) -> None:
    packed = PACK[kind](b"1 qid:1 1:0.5\n" * 3)
    for size in range(6, len(packed)):
        with pytest.raises(InputError, match="damaged or truncated"):
            unpacked(packed[:size], kind)


@pytest.mark.parametrize("kind", PACK)
def test_what_was_damaged_is_refused(kind: str) -> None:
    packed = bytearray(PACK[kind](b"some text " * 1000))
    packed[len(packed) // 2] ^= 0xFF
    if kind == "zstandard":  # without a content checksum a flipped byte may only change the text
        packed[4:8] = b"\xff\xff\xff\xff"
    with pytest.raises(InputError, match="damaged or truncated"):
        unpacked(bytes(packed), kind)


def test_a_damaged_second_xz_stream_is_not_taken_for_the_end() -> None:
    with pytest.raises(InputError, match="damaged or truncated"):
        unpacked(lzma.compress(b"one\n") + b"\xfe" + lzma.compress(b"two\n")[1:], "xz")


def zstandard_bomb(blocks: int) -> bytes:
    """Frame of blocks that each repeat one byte 2^17 times, in four bytes."""
    block = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\n"
    return compressed.MAGIC["zstandard"] + b"\x00\x38" + blocks * block + b"\x01\x00\x00"


def xz_bomb() -> bytes:
    """One row, and the wish for a dictionary of 4 GiB; the header has a checksum."""
    packed = bytearray(lzma.compress(b"1 1:1\n"))
    size = 4 * (packed[12] + 1)
    assert packed[14:16] == b"\x21\x01"
    packed[16] = 40
    packed[8 + size : 12 + size] = zlib.crc32(packed[12 : 8 + size]).to_bytes(4, "little")
    return bytes(packed)


def test_an_unpacker_that_asks_for_much_memory_is_refused() -> None:
    with pytest.raises(InputError, match="a needs more than 128 MB of memory to be"):
        unpacked(xz_bomb(), "xz")
    # a window of 2^31 bytes
    wide = compressed.MAGIC["zstandard"] + b"\x00" + bytes([21 << 3]) + b"\x31\x00\x00" + b"1 1:1\n"
    with pytest.raises(InputError, match="a needs more than 128 MB of memory to be"):
        unpacked(wide, "zstandard")
    assert unpacked(wide.replace(bytes([21 << 3]), b"\x88"), "zstandard") == b"1 1:1\n"  # 2^27


def test_a_small_file_of_much_text_is_refused_in_little_memory(tmp_path: Path) -> None:
    """20 kB would become 655 MB."""
    (tmp_path / "bomb.zst").write_bytes(zstandard_bomb(5000))
    code = (
        "import resource, sys\n"
        "from corank.data.durable.text import open_text\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    open_text(sys.argv[1])\n"
        "except ValueError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "bomb.zst"], capture_output=True, text=True, check=True
    )
    sentence, kilobytes = said.stdout.splitlines()
    assert "bomb.zst has 20,009 bytes and expands to more than 0.067 GB" in sentence
    assert "CORANK_UNPACK_GB" in sentence
    assert int(kilobytes) < 100_000


@pytest.mark.parametrize("kind", PACK)
def test_the_bound_is_relative_and_can_be_moved(kind: str, monkeypatch) -> None:
    monkeypatch.setattr(compressed, "MIN_BYTES", 1 << 20)
    packed = PACK[kind](b"1 1:1\n" * 1_000_000)
    most = max(1 << 20, 200 * len(packed)) / 1e9
    with pytest.raises(InputError, match=rf"expands to more than {most:.2g} GB"):
        unpacked(packed, kind)
    monkeypatch.setattr(compressed, "MAX_RATIO", 10_000_000 // len(packed))
    assert len(unpacked(packed, kind)) == 6_000_000
    monkeypatch.setenv("CORANK_UNPACK_GB", "0.0059")
    with pytest.raises(InputError, match=r"expands to more than 0\.0059 GB"):
        unpacked(packed, kind)
    monkeypatch.setenv("CORANK_UNPACK_GB", "much")
    with pytest.raises(InputError, match="CORANK_UNPACK_GB is 'much'"):
        unpacked(packed, kind)


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


def test_streams_are_known_and_written_as_they_come(tmp_path: Path, capfdbinary) -> None:
    os.mkfifo(tmp_path / "pipe.gz")
    (tmp_path / "file").touch()
    assert all(map(is_stream, ["-", Path("-"), tmp_path / "pipe.gz", "/dev/null", "/dev/stdout", "/dev/fd/63"]))
    assert not any(map(is_stream, [tmp_path / "file", tmp_path, tmp_path / "none", "/dev", "dev/stdout"]))
    with write_text("-") as stream:
        stream.write(b"to all\n")
    assert capfdbinary.readouterr().out == b"to all\n"
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe.gz").read_bytes()))
    reader.start()
    with write_text(tmp_path / "pipe.gz") as stream:
        stream.write(b"to one\n")
    reader.join()
    assert gzip.decompress(found[0]) == b"to one\n"


def test_what_an_open_file_has_already_stays(tmp_path: Path) -> None:
    code = "print('first')\nfrom corank.data.durable.compressed import write_text\n"
    code += "with write_text('/dev/stdout') as stream: stream.write(b'second\\n')"
    with (tmp_path / "file").open("w") as file:
        subprocess.run([sys.executable, "-u", "-c", code], stdout=file, check=True)
    assert (tmp_path / "file").read_text() == "first\nsecond\n"


@pytest.mark.parametrize("missing", [1, 30, 200, 1000])
def test_a_zstandard_file_cut_inside_plain_bytes_is_refused(missing: int) -> None:
    """Such a block takes whatever follows for its own."""
    text = bytes(range(256)) * 8
    # a frame by hand: no size, a window of 8 kB, one last block of bytes as they are
    frame = b"\x28\xb5\x2f\xfd\x00\x18" + (len(text) << 3 | 1).to_bytes(3, "little") + text
    assert unpacked(frame, "zstandard") == text
    with pytest.raises(InputError, match="truncated"):
        unpacked(frame[:-missing], "zstandard")
