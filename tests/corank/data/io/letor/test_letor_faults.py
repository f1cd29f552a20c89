from __future__ import annotations

from pathlib import Path

import pytest

from corank.data.io import letor_pieces as pieces
from corank.data.io.letor_reader import read_letor
from corank.errors import InputError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:1\n1 qid:1 12:", r"line 2, column 12: expected a finite value, found the end of the line"),
        ("0.5 qid:1 1:1\n0.5 qid:1 3", r"line 2, column 11: expected id:value, found '3'"),
        ("0.5 qid:1 1:1\n0.5 qi", r"line 2, column 5: expected qid:Q.* found 'qi'"),
        ("1 qid:1 2:1 1:1\n", r"line 1, column 13: expected feature ids from 1 in increasing order.* found 1"),
        ("1 qid:1 2:1 2:1\n", r"line 1, column 13: .* increasing order along the line, found 2"),
        ("1 qid:1 0:1\n", r"line 1, column 9: .* ids from 1.* found 0"),
        ("1 qid:1 1:nan\n", r"line 1, column 11: expected a finite value, found 'nan'"),
        ("1 qid:1 1:1 2:-inf\n", r"line 1, column 15: expected a finite value, found '-inf'"),
        ("1 qid:1 1:1e999\n", r"line 1, column 11: expected a finite value, found '1e999'\.$"),
        ("1 qid:1 1:1e400#x\n", r"column 11: expected a finite value, found '1e400#x'\.$"),
        ("1 qid:1 1:1e39\n", r"range of float32, found '1e39'; read the file with dtype=float64"),
        ("1 qid:1 2147483648:1\n", r"line 1, column 9: expected a feature id of at most 2147483647, found 2147483648"),
        ("1 qid:1 12345678901234567890:1\n", r"line 1, column 9: expected a feature id of at most 2147483647"),
        (
            "1 qid:1 2147483647:5\n",
            r"column 9: expected a feature id of at most 16777216, found 2147483647; .* n_features=",
        ),
        ("1 qid:1 1:1 16777217:5\n", r"column 13: expected a feature id of at most 16777216, found 16777217"),
        ("1 qid:1 ²:5\n", r"line 1, column 9: expected id:value, found '²:5'"),
        ("1 qid:1 1:1." + "0" * 197 + "e400\n", r"line 1, column 11: expected a finite value, found '1\.0+'\.$"),
        ("1 qid:1 1:1." + "0" * 197 + "e39\n", r"column 11: expected a value in the range of float32"),
        ("1 qid:1 1:\x0b\n", r"column 11: expected a finite value, found '\\x0b'"),
        ("1 qid:1 \x0c\n", r"column 9: expected id:value, found '\\x0c'"),
        ("\x0b\n", r"column 1: expected a label \(a finite number\), found '\\x0b'"),
        (
            "1 qid:1 1:1\r0 qid:1 1:2\r",
            r"line 1, column 13: expected lines that end with a newline, found a carriage return alone",
        ),
        ("1 qid:1 1:1 # a\r0 qid:1 1:2 # b\r", r"line 1, column 16: .* found a carriage return alone"),
        ("# a\r0 qid:1 1:2\r", r"line 1, column 4: .* found a carriage return alone"),
        ("1 qid:1\r\n0 qid:1 # x\r\r\n0 qid:1 # x\ry\r\n", r"line 3, column 12: .* carriage return alone"),
        ("# c\n\nrelevant qid:1 1:1\n", r"line 3, column 1: expected a label \(a finite number\), found 'relevant'"),
        ("-1e999 qid:1 1:1\n", r"line 1, column 1: expected a label \(a finite number\), found '-1e999'"),
        ("nan qid:1 1:1\n", r"line 1, column 1: expected a label.* found 'nan'"),
        ("1 qid:1 1:1\n1 1:1\n", r"line 2, column 3: expected qid:Q, as in the first row"),
        ("1 qid:1 1:1 2:2 3:3\n" + "1\n" * 9, r"line 2, column 2: expected qid:Q.*found the end of the line"),
        (" " * 5000 + "x\n", r"line 1, column 5001: expected a label"),
        ("1 1:1\n1 qid:1 1:1\n", r"line 2, column 3: expected id:value, found 'qid:1'.* also the first"),
        ("1 qid:1 1:0,5\n", r"line 1, column 11: expected a finite value, found '0,5'"),
        ("1 qid:1 a:1\n", r"line 1, column 9: expected id:value, found 'a:1'"),
        ("\x7fELF\x02\x00\x01" + "\x00" * 100, r"line 1, column 1: found binary data"),
        ("", r"is empty"),
        ("# nothing\n\n", r"contains only blank lines and comments"),
    ],
)
@pytest.mark.parametrize("layout", ["auto", "dense", "csr"])
def test_a_fault_is_named_with_file_line_and_column(tmp_path: Path, text: str, message: str, layout: str) -> None:
    path = tmp_path / "fault.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"fault\.txt.*" + message):
        read_letor(path, layout=layout)


def test_the_first_of_several_faults_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 64)
    lines = [f"1 qid:1 1:{k}\n" for k in range(100)]
    lines[40], lines[90] = "1 qid:1 1:x\n", "1 qid:1 1:y\n"
    path = tmp_path / "a.txt"
    path.write_text("".join(lines))
    with pytest.raises(InputError, match=r"line 41, column 11: .* found 'x'"):
        read_letor(path)


def test_a_fault_at_the_end_of_a_file_is_not_that_of_the_next(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_text("1 qid:1 1:1\n1 qid:1 12:")
    paths[1].write_text("1 qid:1 1:1\n")
    with pytest.raises(InputError, match=r"a\.txt, line 2, column 12"):
        read_letor(paths)


def test_an_id_beyond_n_features_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 1:1 5:1\n")
    for layout in ("dense", "csr"):
        with pytest.raises(InputError, match="column 7: expected a feature id of at most"):
            read_letor(path, n_features=4, layout=layout)


def test_large_ids_are_read_where_the_number_of_features_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:1 2147483647:5\n")
    assert read_letor(path, n_features=2**31 - 1).X.shape == (1, 2**31 - 1)
    path.write_text("1 qid:1 1:1 16777216:5\n")
    assert read_letor(path).X.shape == (1, 2**24)
