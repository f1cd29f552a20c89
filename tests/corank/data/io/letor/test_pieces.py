from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.data.durable.text import open_text
from corank.data.io.letor_pieces import Pieces, cut_lines
from corank.errors import InputError

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
        room = piece.read()
        part = room[: piece.length].tobytes()
        assert piece.shift == 1000 + len(joined)
        assert part.endswith(b"\n")
        assert len(room) >= piece.length + 1
        joined += part
    assert joined == content + b"\n"


def test_positions_lie_in_texts(tmp_path: Path) -> None:
    texts = [text_of(tmp_path / name, b"1 1:1\n" * k) for name, k in (("a", 2), ("b", 1), ("c", 3))]
    pieces = Pieces.of(texts)
    assert pieces.rows.tolist() == [2, 1, 3]
    found = [pieces.locate(position) for position in (0, 6, 12, 13, 20, 37)]
    expected = [("a", 0), ("a", 6), ("a", 12), ("b", 0), ("c", 0), ("c", 17)]
    assert [(text.path.name, at) for text, at in found] == expected


def test_words_are_read_at_positions_of_rows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("corank.data.io.letor_pieces.PIECE", 10)
    texts = [text_of(tmp_path / name, content) for name, content in (("a", b"1 ab\n\n2 cd\n3 e"), ("b", b"4 fgh"))]
    pieces = Pieces.of(texts)
    assert list(pieces.match(re.compile(rb" (\w+)"), np.array([1, 7, -1, 16]))) == [b"ab", b"cd", b"", b"fgh"]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("corank.data.durable.text.MAX_LINE_BYTES", 1 << 21)
    (tmp_path / "a").write_bytes(b" 1" * (1 << 22))
    with pytest.raises(InputError, match="a has a line of more than 2,097,152 bytes"):
        Pieces.of([open_text(tmp_path / "a")])


def test_a_word_without_end_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 32)  # zeros that take no room on the disk
    with pytest.raises(InputError, match=r"a, line 1: the word at .* has more than"):
        Pieces.of([open_text(tmp_path / "a")])
