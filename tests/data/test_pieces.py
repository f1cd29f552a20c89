from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corank.core.bytes import PADDING
from corank.data.compressed import open_text
from corank.data.pieces import Pieces, cut_lines

lines = st.lists(st.sampled_from([b"", b"1 1:2", b"0 qid:1 3:4 # c", b"x" * 30]), min_size=1, max_size=12)


def text_of(path: Path, content: bytes):
    path.write_bytes(content)
    return open_text(path)


@given(lines, st.booleans(), st.integers(1, 60))
def test_pieces_are_whole_lines_and_cover_the_text(tmp_path_factory, chosen, ended: bool, size: int) -> None:
    content = b"\n".join(chosen) + (b"\n" if ended or not any(chosen) else b"")
    text = text_of(tmp_path_factory.mktemp("pieces") / "a", content)
    pieces = list(cut_lines(text, 1000, size))
    joined = b""
    for piece in pieces:
        part = piece.bytes[piece.begin : piece.end].tobytes()
        assert piece.shift + piece.begin == 1000 + len(joined)
        assert part.endswith(b"\n")
        assert len(piece.bytes) >= piece.end + PADDING
        joined += part
    assert joined == content + b"\n"


def test_positions_are_split_by_text(tmp_path: Path) -> None:
    texts = [text_of(tmp_path / name, b"1 1:1\n" * k) for name, k in (("a", 2), ("b", 1), ("c", 3))]
    pieces = Pieces.of(texts)
    assert pieces.rows.sum() == 6
    assert pieces.bases.tolist() == [pieces.base(text) for text in texts] == [0, 12, 18]
    parts = list(pieces.by_text(np.array([0, 6, 20, 30])))
    assert [(text.path.name, first, last) for text, first, last in parts] == [("a", 0, 2), ("b", 2, 2), ("c", 2, 4)]
