"""
Check SQLite's write-ahead log, which a killed process leaves behind.

SQLite reads a log up to the first frame whose checksum is wrong and drops the rest without a word, because a power cut
leaves an incomplete last transaction. But every transaction is flushed to the disk before the next one is written. So a
wrong frame before the last transaction is damage, and transactions that were acknowledged would be lost.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x37\x7f\x06"
"""First bytes of a log."""
HEADER, FRAME = 32, 24
"""Number of bytes of the header of a log, and of that of a frame."""
_TRIES = 3
"""Number of times to read a log that seems damaged: another process may begin it again while it is read."""


def log_damage(path: Path) -> str:
    """Return what is damaged in the log of a database; empty if nothing is, or there is no log."""
    log, damage = Path(f"{path}-wal"), ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(0.05)
        try:
            damage = _damage(log.read_bytes())
        except OSError:  # there is none, or SQLite says what is wrong with it
            return ""
        if not damage:
            break
    return f"{log.name}: {damage}" if damage else ""


def _damage(content: bytes) -> str:
    if len(content) <= HEADER or not any(content):  # nothing was committed to it
        return ""
    kind, _, page, _, *salts = struct.unpack(">4sIIIII", content[:24])
    order = ">" if kind[3:] == b"\x83" else "<"
    stated = np.frombuffer(content[24:HEADER], dtype=">u4").astype(np.uint32)
    found = _checksums(np.frombuffer(content[:24], dtype=f"{order}u4")[None], np.zeros((1, 2), dtype=np.uint32))
    if kind[:3] != MAGIC or (found != stated).any() or not 512 <= page <= 65536:
        return "its header was changed"
    n_frames = (len(content) - HEADER) // (FRAME + page)
    frames = np.frombuffer(content, np.uint8, n_frames * (FRAME + page), HEADER).reshape(n_frames, FRAME + page)
    heads = np.ascontiguousarray(frames[:, :FRAME]).view(">u4")
    before = np.vstack([stated, heads[:-1, 4:]]).astype(np.uint32)
    words = np.ascontiguousarray(np.delete(frames, np.s_[8:FRAME], axis=1)).view(f"{order}u4")
    has_salts = (heads[:, 2:4] == salts).all(axis=1)
    is_right = has_salts & (_checksums(words, before) == heads[:, 4:]).all(axis=1)
    if is_right.all():
        return ""
    first = int(np.argmin(is_right))
    commits = np.flatnonzero(has_salts & (heads[:, 1] > 0))
    commits = commits[commits >= first]
    if not len(commits) or not is_right[commits[0] + 1 :].any():  # the last transaction may be incomplete
        return ""
    return f"frame {first + 1} of {n_frames} was changed, and later changes cannot be read"


def _checksums(words: NDArray[Any], before: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return SQLite's checksums of rows of words, each continued from another: a += x + b, b += y + a, modulo 2³²."""
    n = words.shape[1] // 2
    # what a word adds to a and b at the end: (a, b) is multiplied by ((1, 1), (1, 2)) after every pair
    power, coefficients = np.eye(2, dtype=np.uint32), np.empty((2 * n, 2), dtype=np.uint32)
    step = np.array([[1, 1], [1, 2]], dtype=np.uint32)
    for at in reversed(range(n)):
        coefficients[2 * at], coefficients[2 * at + 1] = power[:, 0] + power[:, 1], power[:, 1]
        power = power @ step
    return words.astype(np.uint32) @ coefficients + before @ power.T
