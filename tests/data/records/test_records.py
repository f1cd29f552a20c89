from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.data.records.records import Records, read_records
from corank.data.records.writer import write_records
from corank.errors import InputError


def reads(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_records(path)


def test_columns_are_found_in_any_case_and_order(tmp_path):
    text = (
        'Year,LABEL_INCLUDED,Abstract, Title ,Record_ID,References\n2001,1,"An, abstract\nof two lines",Tin,W1,W2 W3\n'
    )
    text += "2002,0,,Gold,W2,\n,,Silver,,W3,W1; W2\n\n"
    found = reads(tmp_path, "a.csv", text)
    assert found.ids == ["W1", "W2", "W3"]
    assert found.titles == ["Tin", "Gold", ""]
    assert found.abstracts == ["An, abstract\nof two lines", "", "Silver"]
    assert [list(of) for of in found.references] == [["W2", "W3"], [], ["W1", "W2"]]
    np.testing.assert_array_equal(found.labels, [1, 0, np.nan])
    assert found.fields == [{"Year": ["2001"]}, {"Year": ["2002"]}, {}]
    assert repr(found) == "<Records: 3 works, 2 with abstract, 2 with references; 1 relevant, 1 not>"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_byte_order_mark_and_compression(separator, tmp_path):
    text = separator.join(["title", "included"]) + "\r\n" + separator.join(["Tin über", "yes"]) + "\r\n"
    found = reads(tmp_path, "a.csv.gz", gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    assert (found.titles, found.ids, found.labels.tolist()) == (["Tin über"], ["1"], [1.0])


def test_long_cells_are_read_and_the_csv_limit_is_unchanged(tmp_path):
    import csv

    before = csv.field_size_limit()
    found = reads(tmp_path, "a.csv", "title,references\nTin," + " ".join(f"W{k}" for k in range(50_000)) + "\n")
    assert len(found.references[0]) == 50_000
    assert csv.field_size_limit() == before


def test_json_lines(tmp_path):
    rows = [
        {"id": 7, "title": "Tin", "abstract": None, "references": ["a", 8], "relevant": True, "authors": ["X", "Y"]},
        {"id": "8", "title": "Gold", "references": "7|9", "relevant": None},
        {"id": "9", "abstract": "Only this", "relevant": 0},
    ]
    found = reads(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert found.ids == ["7", "8", "9"]
    assert [list(of) for of in found.references] == [["a", "8"], ["7", "9"], []]
    np.testing.assert_array_equal(found.labels, [1, np.nan, 0])
    assert found.fields[0] == {"authors": ['["X", "Y"]']}


def test_json_lines_with_inverted_indexes(tmp_path):
    rows = [
        {"id": "W1", "title": "Tin", "abstract_inverted_index": {"the": [0, 2], "tin,": [1], "ore": [3]}},
        {"id": "W2", "title": "Ore", "abstract_inverted_index": None},
        {"id": "W3", "title": "Gap", "abstract_inverted_index": {"late": [10**12], "early": [-1]}},
    ]
    found = reads(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert found.abstracts == ["the tin, the ore", "", "early late"]


@pytest.mark.parametrize("index", [{"tin": 3}, {"tin": ["a"]}, {"tin": [True]}, {"tin": [[1]]}])
def test_wrong_inverted_indexes_raise(tmp_path, index):
    with pytest.raises(InputError, match="line 1: expected a list of positions for each word"):
        reads(tmp_path, "a.jsonl", json.dumps({"title": "Tin", "abstract_inverted_index": index}))


RIS = """TY  - JOUR
AN  - W1
T1  - Tin and
 its mines
AU  - One, A.
AU  - Two, B.
AB  - First part.
N1  - ASReview_relevant
CR  - W2
ER  -

TY  - JOUR
ID  - W2
TI  - Gold
N2  - Second.
N1  - a remark
ER  - \r
"""


def test_ris(tmp_path):
    found = reads(tmp_path, "a.ris", RIS)
    assert found.ids == ["W1", "W2"]
    assert found.titles == ["Tin and its mines", "Gold"]
    assert found.abstracts == ["First part.", "Second."]
    assert [list(of) for of in found.references] == [["W2"], []]
    np.testing.assert_array_equal(found.labels, [1, np.nan])
    assert found.fields[0] == {"TY": ["JOUR"], "AU": ["One, A.", "Two, B."]}
    assert found.fields[1] == {"TY": ["JOUR"], "N1": ["a remark"]}


@pytest.mark.parametrize("source", ["a.csv", "a.ris"])
@pytest.mark.parametrize("target", ["b.csv", "b.ris", "b.csv.gz"])
def test_written_records_are_read_back(source, target, tmp_path):
    csv = 'id,title,abstract,references,included,year\nW1,"Tin, and",First.,W2 W9,1,2001\nW2,Gold,,,,2002\n'
    records = reads(tmp_path, source, RIS if source.endswith("ris") else csv)
    labels = np.array([0.0, np.nan])
    write_records(tmp_path / target, records, labels, {"note": ["a\nnote", ""]})
    again = read_records(tmp_path / target)
    assert again.ids == records.ids
    assert again.titles == records.titles
    assert again.abstracts == records.abstracts
    assert [list(of) for of in again.references] == [list(of) for of in records.references]
    np.testing.assert_array_equal(again.labels, labels)
    assert "note" in str(again.fields[0])
    assert ("2001" in str(again.fields[0])) == (source == "a.csv")
    with pytest.raises(InputError, match="exists already"):
        write_records(tmp_path / target, records, labels, {})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "title\nTin\n", r"has an unknown suffix; records are read from \.csv"),
        ("a.csv", "name,text\nTin,x\n", "has the columns name, text; name at least one of them title or abstract"),
        ("a.csv", "title,abstract\n,\n ,\n", "neither titles nor abstracts"),
        ("a.csv", "title,abstract\n", "contains no records"),
        ("a.csv", "title,abstract\nTin\n", "line 2: found 1 cells, expected 2"),
        ("a.csv", "title,included\nTin,maybe\n", "line 2: the judgement is 'maybe'; expected 1"),
        ("a.csv", "id,title\nW1,Tin\nW2,Ore\nW1,Gold\n", "records 1 and 3 have the same id 'W1'"),
        ("a.csv", 'title,id\n"Tin,W1\n', r"line \d: unexpected end of data"),
        ("a.csv", b"title\nT\xe4n\n", "is not UTF-8 at line 2, byte 2"),
        ("a.csv", b"\xff\xfet\x00", "UTF-16"),
        ("a.csv", "", "is empty"),
        ("a.jsonl", '{"title": "Tin"}\n[1]\n', "line 2: expected a JSON object, found"),
        ("a.jsonl", "[" * 100_000, "line 1: expected a JSON object, found"),
        ("a.jsonl", '{"title": "Tin", "references": 3}\n', "line 1: references are 3"),
        ("a.ris", "Tin and gold\n", "line 1: expected a tag such as 'TY  - '"),
        ("a.ris", "TY  - JOUR\nTI  - Tin\n", "ends inside a record"),
    ],
)
def test_bad_files_raise(name, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        reads(tmp_path, name, text)


SAMPLES = {
    ".csv": b'id,title,abstract,references,included\nW1,"Tin, ""and""",First.,W2 W9,1\nW2,Gold,,,\n',
    ".ris": RIS.encode(),
    ".jsonl": b'{"id": "W1", "title": "Tin", "references": ["a"], "relevant": 1}\n{"id": 2, "abstract": "Gold"}\n',
}
PIECES = [
    b"",
    b'"',
    b"\n",
    b"\r",
    b"\0",
    b",",
    b";",
    b"\xff",
    b"ER  - ",
    b"  - ",
    b"null",
    b"[",
    b"}",
    b"-1",
    b"\xe2\x80\xa8",
]


@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9), st.sampled_from(PIECES))),
)
def test_damaged_files_are_read_or_raise(tmp_path_factory, suffix, damage):
    content = SAMPLES[suffix]
    for begin, length, piece in damage:
        content = content[:begin] + piece + content[begin + length :]
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    path.write_bytes(content)
    try:
        found = read_records(path)
    except InputError:
        return
    assert len({*found.ids}) == len(found.titles) == len(found.labels)


def test_records_of_columns_that_differ_in_length_are_refused():
    with pytest.raises(InputError, match="titles has 1 values for 2 ids"):
        Records(["a", "b"], ["x"], ["", ""])
    with pytest.raises(InputError, match=r"labels contains 2; pass 1"):
        Records(["a"], ["x"], [""], labels=[2])
    with pytest.raises(InputError, match="there are no records"):
        Records([], [], [])


def test_numbers_of_ids_and_misspelt_ids():
    records = Records(["Wa1", "Wb2"], ["x", "y"], ["", ""])
    assert records.numbers_of(["Wb2", "Wa1"]) == [1, 0]
    with pytest.raises(InputError, match=r"there is no record 'wa1'; did you mean 'Wa1'\?"):
        records.numbers_of(["wa1"])
