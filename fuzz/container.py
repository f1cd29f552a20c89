"""Compressed text: unusual but valid gzip, xz and zstandard files, damaged, compared with strict decompressors."""

from __future__ import annotations

import lzma
import struct
import zlib
from pathlib import Path
from random import Random

import zstandard

from corank.data.durable import compressed
from corank.data.durable import text as texts
from corank.data.io import letor_pieces as pieces
from corank.data.io.letor_reader import read_letor
from fuzz.format import Format, Unclear, tune
from fuzz.letor import Letor, Way, check_text, make_text
from fuzz.mutations import mutate

WAYS = (
    Way(piece=1 << 20, held=1 << 20, chunk=1 << 20),
    Way("float32", chunk=1, route="read"),
    Way(layout="csr", chunk=300, route="store"),
    Way(layout="csr", route="cut"),
)
MEMORY, LONGEST = 1 << 28, 1 << 20
"""Memory limit of a decompressor, and size limit of a text; larger inputs have no reference."""


class Container(Format):
    name = "container"
    suffix = ".bin"
    share = 1.5
    ways = len(WAYS)

    sample = zstandard.ZstdCompressor().compress(Letor.sample)

    def generate(self, rng: Random) -> bytes:
        pack = rng.choice((_gzip, _xz, _zstandard))
        parts = [pack(part, rng) for part in _cut(make_text(rng), rng)]
        content = b"".join(parts)
        return content if rng.random() < 0.4 else _damaged(content, rng)

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        try:
            text = unpack(content)
        except Unclear:
            for module in (pieces, texts, compressed):
                tune(module, PIECE=LONGEST)  # what is long is not cut into lines
            tune(texts, MAX_HELD_BYTES=LONGEST)
            path = folder / "0.txt"
            path.write_bytes(content)
            read_letor(path, n_jobs=1)
            return True
        return check_text(content, content if text == content else text, WAYS[way], folder)


def unpack(content: bytes) -> bytes | None:
    """Return the text of a file, compressed or not; None if it is damaged, truncated or followed by other bytes."""
    unpackers = {b"\x1f\x8b": _gunzip, b"\xfd7zXZ\x00": _unxz, b"\x28\xb5\x2f\xfd": _unzstd}
    for magic, one in unpackers.items():
        if content.startswith(magic):
            try:
                return one(content)
            except (ValueError, IndexError, zlib.error, lzma.LZMAError, zstandard.ZstdError, struct.error):
                return None
    return content


def _cut(text: bytes, rng: Random) -> list[bytes]:
    if rng.random() < 0.6:
        return [text]
    at = rng.randrange(len(text) + 1)
    return [text[:at], text[at:]]


def _gzip(text: bytes, rng: Random) -> bytes:
    packer = zlib.compressobj(rng.randrange(10), zlib.DEFLATED, -15)
    flags, extra = 0, b""
    if rng.random() < 0.2:
        flags, extra = flags | 4, struct.pack("<H", 3) + b"abc"
    if rng.random() < 0.2:
        flags, extra = flags | 8, extra + b"name\xe9\0"
    if rng.random() < 0.2:
        flags, extra = flags | 16, extra + b"remark\0"
    head = struct.pack("<BBBBIBB", 0x1F, 0x8B, 8, flags, rng.randrange(1 << 32), 0, 255) + extra
    body = packer.compress(text) + packer.flush()
    padding = b"\0" * rng.choice((0, 0, 0, 1, 7))
    return head + body + struct.pack("<II", zlib.crc32(text), len(text)) + padding


def _xz(text: bytes, rng: Random) -> bytes:
    check = rng.choice((lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": rng.randrange(3), "dict_size": 1 << rng.randrange(12, 21)}]
    if rng.random() < 0.2:
        filters.insert(0, {"id": lzma.FILTER_DELTA, "dist": rng.randrange(1, 5)})
    return lzma.compress(text, lzma.FORMAT_XZ, check, filters=filters) + b"\0" * rng.choice((0, 0, 0, 4, 8))


def _zstandard(text: bytes, rng: Random) -> bytes:
    packer = zstandard.ZstdCompressor(
        level=rng.choice((-3, 1, 3, 9)), write_checksum=rng.random() < 0.5, write_content_size=rng.random() < 0.5
    )
    frame = packer.compress(text)
    note = struct.pack("<II", 0x184D2A50 + rng.randrange(16), 3) + b"abc"
    return frame + (note if rng.random() < 0.15 else b"")


def _damaged(content: bytes, rng: Random) -> bytes:
    if rng.random() < 0.3:  # the first bytes say how much memory it takes
        head = rng.randrange(4, 24)
        return (
            content[:4] + mutate(content[4:head], rng, [b"\0", b"\xff", b"\x7f", b"\xff\xff\xff\x7f"]) + content[head:]
        )
    return mutate(
        content, rng, [b"\0", b"\0\0\0\0", b"\xff", b"abc", b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"]
    )


def _gunzip(content: bytes) -> bytes:
    """Decompress all members (RFC 1952); trailing zeros are allowed."""
    text = b""
    while content:
        if content[:3] != b"\x1f\x8b\x08":
            raise ValueError("no member")
        flags, at = content[3], 10
        if flags & 4:
            at += 2 + struct.unpack("<H", content[at : at + 2])[0]
        for _ in range(bool(flags & 8) + bool(flags & 16)):
            at = content.index(b"\0", at) + 1
        at += 2 * bool(flags & 2)
        unpacker = zlib.decompressobj(-15)
        part = unpacker.decompress(content[at:], LONGEST)
        if len(part) == LONGEST:
            raise Unclear
        if not unpacker.eof:
            raise ValueError("cut short")
        rest = unpacker.unused_data
        if struct.unpack("<II", rest[:8]) != (zlib.crc32(part), len(part)):
            raise ValueError("checksum")
        text += part
        content = rest[8:].lstrip(b"\0")
    return text


def _unxz(content: bytes) -> bytes:
    """Decompress all streams; zeros may follow each."""
    text = b""
    while content:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
        try:
            part = unpacker.decompress(content, LONGEST)
        except lzma.LZMAError as error:
            if "limit" in str(error).lower():
                raise Unclear from error
            raise
        if len(part) == LONGEST:
            raise Unclear
        if not unpacker.eof:
            raise ValueError("cut short")
        text += part
        content = unpacker.unused_data.lstrip(b"\0")
    return text


def _unzstd(content: bytes) -> bytes:
    """Decompress all frames; skippable frames are ignored."""
    text = b""
    while content:
        (magic,) = struct.unpack("<I", content[:4])
        if magic & ~15 == 0x184D2A50:
            (size,) = struct.unpack("<I", content[4:8])
            if len(content) < 8 + size:
                raise ValueError("cut short")
            content = content[8 + size :]
            continue
        facts = zstandard.get_frame_parameters(content)
        if facts.window_size > 1 << 23 or LONGEST < facts.content_size < 1 << 63:
            raise Unclear
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        text += unpacker.decompress(content)
        if not unpacker.eof:
            raise ValueError("cut short")
        content = unpacker.unused_data
        if len(text) > LONGEST:
            raise Unclear
    return text
