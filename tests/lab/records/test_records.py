from __future__ import annotations

import gzip
import hashlib
import json
import pickle

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.records.identity import fingerprint
from corank_lab.records.records import Records, read_records, records_from_json, records_to_json
from corank_lab.records.writer import write_records


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
    assert [of.get("Year") for of in found.fields] == [["2001"], ["2002"], None]
    assert found.fields[0]["LABEL_INCLUDED"] == ["1"]
    assert found.fields[0]["Abstract"] == ["An, abstract\nof two lines"]
    assert [of.year for of in found.details] == [2001, 2002, None]
    assert repr(found) == "<Records: 3 works, 2 with abstract, 2 with references; 1 relevant, 1 not>"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_byte_order_mark_and_compression(separator, tmp_path):
    text = separator.join(["title", "included"]) + "\r\n" + separator.join(["Tin über", "yes"]) + "\r\n"
    found = reads(tmp_path, "a.csv.gz", gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    mark = fingerprint("tin uber", None, ())
    assert (found.titles, found.ids, found.labels.tolist()) == (["Tin über"], [f"title:{mark}"], [1.0])


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
    assert found.fields[0] == {
        "id": ["7"], "title": ["Tin"], "references": ["a", "8"], "relevant": ["true"], "authors": ["X", "Y"]
    }  # fmt: skip
    assert found.details[0].authors == ("X", "Y")


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
    with pytest.raises(InputError, match="line 1: expected a list of positions for"):
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
    assert found.fields[0] == {
        "TY": ["JOUR"], "AN": ["W1"], "T1": ["Tin and\nits mines"], "AU": ["One, A.", "Two, B."], "AB": ["First part."],
        "N1": ["ASReview_relevant"], "CR": ["W2"],
    }  # fmt: skip
    assert found.fields[1]["N1"] == ["a remark"]


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
        ("a.csv", "name,note\nTin,x\n", "has no titles; it has the columns name, note. Name the one of titles title"),
        ("a.csv", "title,abstract\n,\n ,\n", "contains no records"),
        ("a.csv", "title,abstract\n,Tin\n", "has no titles; it has the columns title, abstract"),
        ("a.csv", "title,abstract\n", "contains no records"),
        ("a.csv", "title,abstract\nTin,x,y\n", "line 2: found 3 cells, expected 2"),
        ("a.csv", "title,included\nTin,perhaps\n", "line 2: the judgement is 'perhaps'; expected 1"),
        ("a.csv", 'title,id\n"Tin,W1\n', r"line \d: unexpected end of data"),
        ("a.csv", "", "is empty"),
        ("a.csv", b"\xff\xfe", "contains no records"),
        ("a.jsonl", '{"title": "Tin"}\n[1]\n', "line 2: expected a JSON object, found"),
        ("a.jsonl", "[" * 100_000, "line 1: expected a JSON object, found"),
        ("a.ris", "Tin and gold\n", "has the columns Tin and gold|contains no records"),
        ("a.ris", "TY  - JOUR\nAU  - Tin\nER  - \n", r"\(RIS\) has no titles; it has the fields TY, AU"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", r"is an old Excel file \(\.xls\); save it as \.xlsx or CSV"),
        ("a.pdf", b"%PDF-1.7", "is a PDF file; export the records"),
        ("a.ris", "<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page"),
    ],
)
def test_bad_files_raise(name, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        reads(tmp_path, name, text)


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
    with pytest.raises(InputError, match="there is no record 'wa1'"):
        records.numbers_of(["wa1"])


@pytest.mark.parametrize("name", ["a.ris", "a.txt", "a", "a.csv", "a.xml"])
def test_the_content_decides_on_the_format(name, tmp_path):
    assert reads(tmp_path, name, RIS).sources[0].format == "RIS"
    assert reads(tmp_path, name, "title,year\nTin,2001\n").sources[0].format == "CSV"
    assert reads(tmp_path, name, '[{"title": "Tin"}]').sources[0].format == "JSON"


def test_several_files_are_one_collection(tmp_path):
    (tmp_path / "a.csv").write_text("id,title,doi\n1,Tin,10.1000/A\n2,Ore,\n")
    (tmp_path / "b.ris").write_text("TY  - JOUR\nID  - 1\nTI  - Gold\nER  - \n")
    found = read_records(tmp_path / "a.csv", tmp_path / "b.ris")
    assert found.titles == ["Tin", "Ore", "Gold"]
    assert found.ids == ["doi:10.1000/a", "2", f"title:{fingerprint('Gold', None, ())}"]
    assert [of.source for of in found.details] == ["a.csv", "a.csv", "b.ris"]
    assert [(of.name, of.format, of.n_records) for of in found.sources] == [("a.csv", "CSV", 2), ("b.ris", "RIS", 1)]
    assert found.sources[0].sha256 == hashlib.sha256((tmp_path / "a.csv").read_bytes()).hexdigest()


def test_files_of_the_same_name_are_told_apart_by_their_paths(tmp_path):
    paths = [tmp_path / folder / "a.csv" for folder in ("x", "y")]
    for at, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(f"title\nTin {at}\n")
    assert [of.source for of in read_records(*paths).details] == [str(path) for path in paths]


def test_ids_do_not_depend_on_the_order(tmp_path):
    rows = [
        "1,Tin,10.1/a,2001", "1,Tin,10.1/b,2001", "2,Ore,,", "2,Ore,,", "2,Ore,,1999", ",Gold,10.1000/c,",
        ",Gold,10.1000/c,2000", "7,Zinc,,", ",,10.1000/d,", ",Lead,,",
    ]  # fmt: skip
    head = "id,title,doi,year\n"
    found = [
        reads(tmp_path, "a.csv", head + "\n".join(order) + "\n") for order in (rows, rows[::-1], rows[3:] + rows[:3])
    ]
    for other in found[1:]:
        assert sorted(zip(other.ids, map(str, other.fields), strict=True)) == sorted(
            zip(found[0].ids, map(str, found[0].fields), strict=True)
        )
    assert len(set(found[0].ids)) == len(rows)
    assert found[0].ids[7] == "7"
    assert {"2", "2#2"} <= set(found[0].ids)


def test_a_file_in_which_most_titles_are_missing_gets_a_remark(tmp_path):
    found = reads(tmp_path, "a.csv", "title,doi,year\nTin,10.1000/a,2001\n,10.1000/b,2001\n,10.1000/c,2002\n")
    assert found.sources[0].remarks == ("Only 1 of 3 records have a title; check the column or tag of the title.",)
    assert not reads(tmp_path, "a.csv", "title,doi\nTin,10.1000/a\n").sources[0].remarks


def test_records_as_json_hold_each_text_once_and_come_back(tmp_path):
    (tmp_path / "a.csv").write_text(
        "key,title,abstract,note\n1,Tin,A long abstract on tin.,abstract\n2,Ore,Ore,Ore\n3,  Zinc  ore ,,title\n",
        encoding="utf-8",
    )
    records = read_records(tmp_path / "a.csv")
    text = json.dumps(records_to_json(records))
    assert text.count("A long abstract on tin.") == 1
    again = records_from_json(json.loads(text))
    assert list(again.fields) == [dict(fields) for fields in records.fields]
    assert (list(again.titles), list(again.abstracts)) == (list(records.titles), list(records.abstracts))
    assert (list(again.details), list(again.sources)) == (list(records.details), list(records.sources))
    whole = json.loads(text)
    whole["fields"] = [dict(fields) for fields in records.fields]  # as projects were stored before
    assert list(records_from_json(whole).fields) == list(again.fields)


def test_keys_are_a_sequence_that_can_be_pickled():
    records = Records(["a", "b", "c"], ["Tin", "Tea", "Ice"], ["", "", ""])
    keys = list(records.keys)
    assert (records.keys[-1], records.keys[1:]) == (keys[2], keys[1:])
    with pytest.raises(IndexError):
        records.keys[3]
    assert list(pickle.loads(pickle.dumps(records)).keys) == keys
