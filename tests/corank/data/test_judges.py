"""Rows of several judges become one row per document, in every file format."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from corank import RankRLS, read
from corank.data import write_letor, write_store
from corank.data.io.write import write_parquet
from corank.errors import InputError, UsageWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)).round(3)
QID = np.repeat([1, 2, 3], 4)
DOCIDS = [f"d{row % 4}" for row in range(12)]
GRADES = RNG.integers(0, 4, size=(12, 3)).astype(float)
GRADES[0] = [2, np.nan, 0]
GRADES[5] = [1, 1, 1]
GRADES[7] = np.nan
ORDER = RNG.permutation(36)
"""Rows of three judges, in any order: row r of the file is judgement ORDER[r] % 3 of document ORDER[r] // 3."""


def table(path, columns):
    """Write a CSV; an empty cell for NaN."""
    names = list(columns)
    cells = zip(*columns.values(), strict=True)
    lines = [",".join("" if cell != cell else str(cell) for cell in row) for row in cells]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def columns(judge="judge", **more):
    of, by = ORDER // 3, ORDER % 3
    found = {"query": QID[of], "docid": np.array(DOCIDS)[of], "grade": GRADES[of, by]}
    found |= {judge: np.array(["ann", "bob", "eve"])[by]} if judge else {}
    return found | {f"f{k}": X[of, k] for k in range(3)} | more


def expected(rule=np.nanmean):
    """The documents in the order of the file, with the aggregated grade."""
    first = list(dict.fromkeys((ORDER // 3).tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return first, np.array([rule(GRADES[row]) for row in first])


def lower_median(grades):
    found = np.sort(grades[~np.isnan(grades)])
    return found[(len(found) - 1) // 2] if len(found) else np.nan


@pytest.mark.parametrize("judge", ["judge", "Assessor", "user", "annotator", "rater", None])
def test_three_rows_of_a_document_are_learnt_as_one(tmp_path, judge):
    path = table(tmp_path / "judged.csv", columns(judge))
    with pytest.warns(UsageWarning, match="36 rows are judgements of 12 documents") as said:
        rows = read(path)
    first, grades = expected(lower_median)
    np.testing.assert_array_equal(rows.y, grades)
    np.testing.assert_array_equal(rows.X, X[first])
    assert rows.qid.tolist() == QID[first].tolist()
    assert rows.docids.tolist() == [DOCIDS[row] for row in first]
    assert ("3 judges (column" in str(said[0].message)) == (judge is not None)
    want = RankRLS(0.1).fit(X[first], grades, qid=QID[first]).coef_
    np.testing.assert_allclose(RankRLS(0.1).fit(rows).coef_, want)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = read(path, judges="keep")
    assert len(kept.y) == 36
    assert np.abs(RankRLS(0.1).fit(kept).coef_ - want).max() > 1e-3
    with pytest.warns(UsageWarning, match="the mean grade of each is used"):
        np.testing.assert_allclose(read(path, judges="mean").y, expected()[1])


@pytest.mark.parametrize("name", ["judged.txt", "judged.parquet", "judged.store"])
def test_repeated_documents_are_noticed_in_every_format(tmp_path, name):
    of, by = ORDER // 3, ORDER % 3
    y, docids = GRADES[of, by], [DOCIDS[row] for row in of]
    path = tmp_path / name
    if name.endswith("txt"):
        y = np.where(np.isnan(y), -1, y)
        write_letor(path, X[of], y, QID[of], comments=[f"docid = {one}" for one in docids])
    else:
        (write_store if name.endswith("store") else write_parquet)(path, X[of], y, QID[of], docids)
    with pytest.warns(UsageWarning, match="36 rows are judgements of 12 documents"):
        rows = read(path, unjudged=-1 if name.endswith("txt") else None)
    first, grades = expected(lower_median)
    np.testing.assert_array_equal(rows.y, grades)
    np.testing.assert_allclose(rows.X, X[first], atol=1e-6)
    assert len(rows.data.queries) == 3


def test_a_later_grade_of_a_judge_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("qid,docid,judge,label,f\n1,a,ann,0,5\n1,a,bob,1,5\n1,b,ann,0,6\n1,a,ann,1,5\n")
    with pytest.warns(UsageWarning, match="all grades of 1 documents agree"):
        assert read(path).y.tolist() == [1.0, 0.0]


def test_one_row_per_document_is_left_alone(tmp_path):
    path = tmp_path / "judged.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.write_text("qid,docid,judge,label,f\n1,a,ann,0,5\n1,b,bob,1,5\n2,a,ann,0,6\n")
        assert read(path).y.tolist() == [0.0, 1.0, 0.0]
        # one judge per query: rows with equal features are different documents
        path.write_text("qid,judge,label,f\n1,ann,0,5\n1,ann,1,5\n2,bob,0,6\n2,bob,0,6\n")
        assert len(read(path).y) == 4


def test_different_features_of_a_document_are_refused(tmp_path):
    path = table(tmp_path / "judged.csv", columns(seconds=np.arange(36)))
    of = (ORDER // 3).tolist()
    row = next(at for at, document in enumerate(of) if document in of[:at])
    first = of.index(of[row])
    message = rf"of query {QID[of[row]]} has different features in rows {first + 1} and {row + 1} \(column 'seconds': "
    with pytest.raises(InputError, match=message + rf"{first} and {row}\).*judges='keep'"):
        read(path)
    with pytest.warns(UsageWarning, match="12 documents"):
        assert len(read(path, drop="seconds").y) == 12
    assert len(read(path, judges="keep").y) == 36


def test_documents_without_ids_are_known_by_their_features(tmp_path):
    found = columns()
    del found["docid"]
    path = table(tmp_path / "judged.csv", found)
    with pytest.warns(UsageWarning, match="36 rows are judgements of 12 documents by 3 judges"):
        np.testing.assert_array_equal(read(path).y, expected(lower_median)[1])
    path.write_text("qid,judge,label,f\n1,ann,0,5\n1,bob,1,5\n1,ann,1,5\n")
    with pytest.raises(InputError, match="no document ids"):
        read(path)
    assert len(read(path, judges="keep").y) == 3


def test_a_forgotten_query_column_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("topic,docid,label,f\n1,a,0,5\n2,a,1,6\n")
    with pytest.raises(InputError, match="document 'a' has different features in rows 1 and 2"):
        read(path)
    with pytest.raises(InputError, match="judges is 'max'"):
        read(path, judges="max")


def test_rows_without_a_document_id_are_different_documents(tmp_path):
    """In LETOR text, some comments may name a document and others none."""
    text = "1 qid:1 1:0.5 #docid = a\n0 qid:1 1:0.25\n2 qid:1 1:0.75 # nothing\n0 qid:1 1:0.25\n"
    (tmp_path / "rows.txt").write_text(text)
    rows = read(tmp_path / "rows.txt")
    assert rows.y.tolist() == [1.0, 0.0, 2.0, 0.0]


def test_free_comments_of_letor_text_are_not_document_ids(tmp_path):
    """The first word of a comment is the document id; of free comments it repeats, with different features."""
    path = tmp_path / "rows.txt"
    path.write_text("1 qid:1 1:0.5 # judged by ann\n0 qid:1 1:0.25 # judged by bob\n")
    assert read(path).y.tolist() == [1.0, 0.0]
    path.write_text("1 qid:1 1:0.5 # docid = judged\n0 qid:1 1:0.25 # docid = judged\n")
    with pytest.raises(InputError, match="document 'judged' of query 1 has different"):
        read(path)


def test_free_comments_that_begin_alike_are_different_documents(tmp_path):
    path = tmp_path / "free.txt"
    path.write_text("2 qid:1 1:0.5 # good match\n1 qid:1 1:0.5 # good price\n0 qid:1 1:0.7 # bad\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path).y.tolist() == [2, 1, 0]


def test_the_same_comment_is_the_same_document(tmp_path):
    path = tmp_path / "judged.txt"
    path.write_text("2 qid:1 1:0.5 # d1 heat pump\n1 qid:1 1:0.5 # d1 heat pump\n0 qid:1 1:0.7 # d2 heat pump\n")
    with pytest.warns(UsageWarning, match="3 rows are judgements of 2 documents"):
        assert read(path).y.tolist() == [1, 0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_unjudged_rows_need_no_judge_but_grades_do(tmp_path, suffix):
    columns = {"qid": [1] * 4, "docid": list("aabb"), "judge": ["ann", None, "ann", "bob"], "f1": [0.5, 0.5, 0.1, 0.1]}
    path = tmp_path / f"judged.{suffix}"

    def write(grades):
        frame = pd.DataFrame({**columns, "label": grades})
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)

    write([2, None, 0, 0])
    with pytest.warns(UsageWarning, match="4 rows are judgements of 2 documents"):
        assert read(path).y.tolist() == [2, 0]
    write([2, 1, 0, 0])
    with pytest.raises(InputError, match="row 2 has a grade, but its judge is empty"):
        read(path)
