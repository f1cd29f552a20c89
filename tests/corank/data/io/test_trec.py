from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from corank.data.io import trec
from corank.data.io.trec import Qrels, Run, join_run, read_qrels, read_run, read_scores, write_qrels, write_run
from corank.errors import InputError

ids = st.text("ab1-#é", min_size=1, max_size=3)


def as_dict(qid, docids, values) -> dict:
    table: dict = {}
    for query, document, value in zip(qid, docids, values, strict=True):
        table.setdefault(str(query), {})[document] = value
    return table


def test_pytrec_eval_reads_what_is_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 20, 500)
    docids = [f"D{k}" for k in range(500)]
    scores, grades = rng.normal(size=500), rng.integers(0, 3, 500)
    write_run(tmp_path / "run", qid, docids, scores, tag="mine")
    write_qrels(tmp_path / "qrels", qid, docids, grades)
    with (tmp_path / "run").open() as handle:
        assert pytrec_eval.parse_run(handle) == as_dict(qid, docids, scores)
    with (tmp_path / "qrels").open() as handle:
        assert pytrec_eval.parse_qrel(handle) == as_dict(qid, docids, grades)


def test_ranks_follow_the_scores(tmp_path: Path) -> None:
    write_run(tmp_path / "run", ["b", "a", "b", "b"], ["x", "y", "z", "w"], [0.5, 1, 2, 0.5])
    expected = "b Q0 z 1 2.0 corank\nb Q0 x 2 0.5 corank\nb Q0 w 3 0.5 corank\na Q0 y 1 1.0 corank\n"
    assert (tmp_path / "run").read_text() == expected


@given(st.dictionaries(st.tuples(ids, ids), st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_files_read_back_as_written(tmp_path_factory, rows: dict) -> None:
    folder = tmp_path_factory.mktemp("trec")
    qid, docids = np.array([q for q, _ in rows], object), np.array([d for _, d in rows], object)
    values = np.array(list(rows.values()))
    write_run(folder / "run.gz", qid, docids, values, tag="t")
    run = read_run(folder / "run.gz")
    assert run.tag == "t"
    assert as_dict(run.qid, run.docids, run.scores.tolist()) == as_dict(qid, docids, values.tolist())
    write_qrels(folder / "qrels", qid, docids, values)
    qrels = read_qrels(folder / "qrels")
    assert (qrels.qid.tolist(), qrels.docids.tolist(), qrels.y.tolist()) == (
        qid.tolist(),
        docids.tolist(),
        values.tolist(),
    )


def test_unjudged_rows_are_left_out_of_qrels(tmp_path: Path) -> None:
    write_qrels(tmp_path / "q", [1, 1], ["a", "b"], [np.nan, 2])
    assert (tmp_path / "q").read_text() == "1 0 b 2\n"


@pytest.mark.parametrize("unjudged", [0.0, float("nan")])
def test_joining_agrees_with_a_double_loop(unjudged: float) -> None:
    rng = np.random.default_rng(1)
    pool = [(str(q), f"d{k}") for q in range(6) for k in range(12)]

    def some(n: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = [pool[k] for k in rng.permutation(len(pool))[:n]]
        return np.array([q for q, _ in chosen], object), np.array([d for _, d in chosen], object)

    run = Run(*some(40), rng.normal(size=40), "t")
    qrels = Qrels(*some(30), rng.integers(0, 3, 30).astype(float))
    judged = join_run(run, qrels, unjudged=unjudged)
    expected = []
    for query, document in zip(run.qid, run.docids, strict=True):
        grade = unjudged
        for k in range(30):
            if qrels.qid[k] == query and qrels.docids[k] == document:
                grade = qrels.y[k]
        expected.append(grade)
    np.testing.assert_array_equal(judged.y, expected)
    assert judged.scores is run.scores
    hits = sum(pair in set(zip(run.qid, run.docids, strict=True)) for pair in zip(qrels.qid, qrels.docids, strict=True))
    assert len(judged.missed_y) == len(judged.missed_qid) == 30 - hits


def test_documents_that_appear_twice_are_named() -> None:
    two = np.array(["1", "1"], object), np.array(["a", "a"], object)
    one = np.array(["1"], object), np.array(["a"], object)
    with pytest.raises(InputError, match="contains document 'a' twice for query '1'"):
        join_run(Run(*two, np.zeros(2), "t"), Qrels(*one, np.ones(1)))
    with pytest.raises(InputError, match="two different grades for document 'a' of"):
        join_run(Run(*one, np.zeros(1), "t"), Qrels(*two, np.array([0.0, 1.0])))
    assert join_run(Run(*one, np.zeros(1), "t"), Qrels(*two, np.ones(2))).y.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 0.5 t\n1 Q0 b 2 0.4\n", r"line 2, column 13: expected 6 columns \(query Q0 .*\), found fewer"),
        ("1 Q0 a 1 0.5 my tag\n", r"line 1, column 17: expected 6 columns .*, found more"),
        ("1 Q0 a 1 high t\n", r"line 1, column 10: expected a finite number as the score, found 'high'"),
        ("1 Q0 a 1 nan t\n", r"column 10: expected a finite number as the score, found 'nan'"),
        ("1 Q0 a 1 1e999 t\n", r"column 10: expected a finite number as the score, found '1e999'"),
        ("", "is empty"),
        ("\n\n", "contains only blank lines; expected lines of the form 'query Q0 document rank score tag'"),
    ],
)
def test_faults_of_a_run_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"run\.txt.*" + message):
        read_run(path)


def test_faults_of_qrels_are_named(tmp_path: Path) -> None:
    path = tmp_path / "q"
    path.write_text("1 0 a 1\n1 0 b x")
    with pytest.raises(InputError, match="line 2, column 7"):
        read_qrels(path)
    path.write_text("1 0 a 1." + "0" * 30 + "1")
    assert read_qrels(path).y.tolist() == [1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["1"], ["a b"], [1.0]), "docids is 'a b' at row 0.*write 'a_b'"),
        ((["x y"], ["a"], [1.0]), "qid is 'x y' at row 0"),
        (([1, "1"], ["a", "a"], [1.0, 2.0]), "qid holds ids that a TREC file cannot store"),
        ((["1"], ["a"], [np.nan]), "scores is NaN at row 0"),
        ((["1"], ["a"], [1.0, 2.0]), "y has 2 scores for 1 rows"),
        ((["1"], ["a"], [1.0], "my tag"), "tag is 'my tag'"),
    ],
)
def test_what_a_run_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path, arguments, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_run(tmp_path / "run", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_not_utf8_survive(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"q\xe9 Q0 d\xe9 1 0.5 x\n")
    (tmp_path / "qrels").write_bytes(b"q\xe9 0 d\xe9 1\n")
    run, qrels = read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels")
    write_run(tmp_path / "run2", run.qid, run.docids, run.scores, run.tag)
    write_qrels(tmp_path / "qrels2", qrels.qid, qrels.docids, qrels.y)
    assert (tmp_path / "run2").read_bytes() == (tmp_path / "run").read_bytes()
    assert (tmp_path / "qrels2").read_bytes() == (tmp_path / "qrels").read_bytes()


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85"])
def test_only_blanks_part_columns(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(f"1 0 a{mark}b 1\n")
    assert read_qrels(path).docids.tolist() == [f"a{mark}b"]
    path.write_text(f"1 0 a {mark}\n")
    with pytest.raises(InputError, match="line 1, column 7"):
        read_qrels(path)


def test_bare_returns_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_bytes(b"\xef\xbb\xbf1 0 a 1\r\n2 0 b 0\r\n")
    assert read_qrels(path).qid.tolist() == ["1", "2"]
    path.write_bytes(b"1 0 a 1\r2 0 b 0\r")
    with pytest.raises(InputError, match="line 1, column 9"):
        read_qrels(path)


def test_pieces_of_a_run_are_put_together(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(trec, "PIECE", 100)
    qid, docids = np.arange(300) // 7, [f"d{k}" for k in range(300)]
    write_run(tmp_path / "run", qid, docids, -np.arange(300.0), tag="mine")
    (tmp_path / "run").write_bytes(b"\n" * 150 + (tmp_path / "run").read_bytes())
    run = read_run(tmp_path / "run")
    assert (run.qid.tolist(), run.docids.tolist(), run.tag) == (qid.astype(str).tolist(), docids, "mine")
    assert run.scores.tolist() == (-np.arange(300.0)).tolist()


def test_scores_are_read_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_text("0.5\n\n -1e3 \r\n0.1000000000000000055511151231257827\n")
    assert read_scores(path).tolist() == [0.5, -1000.0, 0.1]
    for bad in ("1_0", "nan", "inf", "1 2", "0x1", "1\x0b"):
        path.write_text(f"1\n{bad}\n")
        with pytest.raises(InputError, match="scores, line 2, column"):
            read_scores(path)
