"""Grading: readers, who grades what, agreement, conflicts and judgement lists."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from corank.errors import InputError
from corank.metrics.agreement import krippendorff_alpha, read_judgements
from corank_lab.grading import (
    GradingDocument,
    GradingQuery,
    GradingScale,
    GradingSession,
    GradingTask,
    alpha_interval,
    export,
    grading_features,
    read_grading_task,
)  # fmt: skip
from corank_lab.grading.task import GradingEntry

NAN = float("nan")


def task(n_queries=3, n_documents=4):
    queries = [GradingQuery(f"q{q}", f"query {q}") for q in range(n_queries)]
    documents = [
        GradingDocument(q, f"d{d}", {"text": f"text {q} {d}"}, d + 1)
        for q, d in product(range(n_queries), range(n_documents))
    ]
    return GradingTask(queries, documents)


def grade(session, judge, number, value, action="grade"):
    one = session.task.documents[number]
    query = session.task.queries[one.query].id
    session.add(judge, GradingEntry(action, query, one.id, str(value) if action in ("grade", "settle") else ""))


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_a_table_gives_documents_features_and_grades(tmp_path):
    path = write(
        tmp_path, "a.csv",
        "query,docid,title,bm25,rating,judge\nheat pump,d1,One,1.5,2,ann\nheat pump,d1,One,1.5,0,bob\n"
        "heat pump,d2,Two,0.5,,\nwind,d1,One,3,1,ann\n",
    )  # fmt: skip
    found = read_grading_task(path)
    assert [(one.id, one.text) for one in found.task.queries] == [("q1", "heat pump"), ("wind", "wind")]
    assert [(one.query, one.id, one.position) for one in found.task.documents] == [
        (0, "d1", 1),
        (0, "d2", 2),
        (1, "d1", 1),
    ]
    assert found.task.columns == ["bm25"]
    assert found.task.X.tolist() == [[1.5], [0.5], [3.0]]
    assert [(judge, one.document, one.grade) for judge, one in found.known] == [
        ("ann", "d1", "2"),
        ("bob", "d1", "0"),
        ("ann", "d1", "1"),
    ]
    assert found.task.from_json(json.loads(json.dumps(found.task.to_json()))).keys == found.task.keys


def test_the_csv_of_quepid_has_queries_without_documents(tmp_path):
    path = write(tmp_path, "case.csv", "query,docid,rating\ntea,1,3\ntea,2,\ncoffee,,\n")
    found = read_grading_task(path)
    assert [one.text for one in found.task.queries] == ["tea"]
    assert len(found.known) == 1


def test_a_book_round_trips(tmp_path):
    session = GradingSession(task(2, 2), GradingScale((0, 1, 2), ("no", "some", "yes")))
    grade(session, "ann@x", 0, 2)
    grade(session, "bob@x", 0, 0)
    grade(session, "ann@x", 1, 0, "unrateable")
    grade(session, "ann@x", 2, 0, "later")
    path = write(tmp_path, "book.json", export.as_quepid_book(session, "B"))
    found = read_grading_task(path)
    assert found.task.scale == session.scale
    again = GradingSession(found.task)
    for judge, entry in found.known:
        again.add(judge, entry)
    assert again.judges == session.judges
    book = read_judgements(path)
    np.testing.assert_array_equal(book.y, [2, 0, NAN, NAN])


def test_a_run_with_texts(tmp_path):
    run = write(tmp_path, "run.txt", "7 Q0 a 1 0.5 t\n7 Q0 b 2 0.9 t\n8 Q0 a 1 1 t\n")
    texts = write(tmp_path, "texts.csv", "docid,title,text\na,Tea,about tea\nb,Pot,about pots\n")
    queries = write(tmp_path, "queries.tsv", "qid\tquery_text\n7\tgreen tea\n8\tpots\n")
    found = read_grading_task(queries, run, texts).task
    assert [(one.id, one.text) for one in found.queries] == [("7", "green tea"), ("8", "pots")]
    assert [(one.id, one.fields["title"], one.position) for one in found.documents] == [
        ("b", "Pot", 1),
        ("a", "Tea", 2),
        ("a", "Tea", 1),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "title,rating\nx,1\n", "has no column of queries"),
        ("a.csv", "query,title\nx,1\n", "has no column of documents"),
        ("a.csv", "query,docid\n", "has no documents"),
        ("a.csv", "query,docid,rating\nx,1,good\n", "the grade is 'good'"),
        ("a.csv", "query,docid,rating\nx,1,1.5\n", "the grade is '1.5'"),
        ("a.csv", "query,docid,rating\nx,1,50\n", "has grades up to 50"),
        ("a.json", "[]", "is not a book of Quepid"),
        ("a.json", '{"query_doc_pairs": [1]}', "expected query_text and doc_id"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_graded(tmp_path, name, text, message):
    with pytest.raises(InputError, match=message):
        read_grading_task(write(tmp_path, name, text))


LONG = "9" * 400


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", f'{{"query": "x", "docid": 1, "price": {LONG}}}'),
        ("a.jsonl", f'{{"query": "x", "docid": 1, "position": {LONG}}}'),
        ("a.csv", f"query,docid,position\nx,1,{LONG}\n"),
        ("a.json", f'{{"query_doc_pairs": [{{"query_text": "x", "doc_id": 1, "position": {LONG}}}]}}'),
        ("a.json", '{"scale": [0, Infinity], "query_doc_pairs": [{"query_text": "x", "doc_id": 1}]}'),
        ("a.json", f'{{"scale": [0, {LONG}], "query_doc_pairs": [{{"query_text": "x", "doc_id": 1}}]}}'),
        ("a.json", '{"scale": "0,1e300", "query_doc_pairs": [{"query_text": "x", "doc_id": 1}]}'),
    ],
)  # fmt: skip
def test_numbers_that_are_too_large_are_no_features_positions_or_scales(tmp_path, name, text):
    task = read_grading_task(write(tmp_path, name, text)).task
    assert (task.documents[0].position, task.X.shape[1], task.scale) == (1, 0, None)


@pytest.mark.parametrize("text", ["", "0 = a", "x = 1\n0 = b", "0 = a\n0 = b"])
def test_a_scale_needs_two_grades(text):
    with pytest.raises(InputError):
        GradingScale.of_lines(text)


def test_orders_and_depth():
    def order(**options):
        session = GradingSession(task(2, 3), **options)
        return [
            (session.task.documents[one.number].query, session.task.documents[one.number].id)
            for (one,) in session.open_lists("ann")
        ]

    assert order() == [(0, "d0"), (0, "d1"), (0, "d2"), (1, "d0"), (1, "d1"), (1, "d2")]
    assert order(order="depth", depth=2) == [(0, "d0"), (1, "d0"), (0, "d1"), (1, "d1")]


def test_result_lists_against_a_plain_enumeration():
    rng = np.random.default_rng(0)
    for order, depth in product(("query", "depth"), (0, 5)):
        session = GradingSession(task(3, 7), order=order, depth=depth, list_size=3)
        for number in rng.permutation(21)[:9].tolist():
            grade(session, rng.choice(["ann", "bob"]), number, 0, rng.choice(["grade", "later", "unrateable"]))
        open_ones = {
            number
            for number, one in enumerate(session.task.documents)
            if (not depth or one.position <= depth)
            and not any(number in mine and (mine[number].action != "later") for mine in session.judges.values())
        }
        aside = {number for number, one in session.judges.get("ann", {}).items() if one.action == "later"}
        blocks = [[7 * q + d for d in range(start, min(start + 3, 7))] for q in range(3) for start in (0, 3, 6)]
        if order == "depth":
            blocks.sort(key=lambda block: block[0] % 7)
        wanted = [[number for number in block if number in open_ones] for block in blocks]
        wanted = [block for block in wanted if block]
        wanted.sort(key=lambda block: set(block) <= aside)  # lists that were put aside come last
        found = [[one.number for one in block] for block in session.open_lists("ann")]
        assert [block for block in found if not set(block) <= aside] == [
            block for block in wanted if not set(block) <= aside
        ]
        assert sorted(found) == sorted(wanted)
        for at, block in enumerate(blocks):
            after = [one for one in blocks[at + 1 :] + blocks[:at] if set(one) & open_ones]
            expected = [number for number in after[0] if number in open_ones] if after else []
            assert [one.number for one in session.list_after("ann", block[0])] == expected
            wide = [number for number in block if not depth or number % 7 < depth or number == block[0]]
            assert session.list_of(block[0]) == wide


def test_overlap_is_kept_and_later_comes_last():
    session = GradingSession(task(1, 3), overlap=2)
    grade(session, "ann", 0, 1)
    grade(session, "bob", 0, 0, "unrateable")
    assert [one.number for (one,) in session.open_lists("cat")] == [1, 2]  # two judges answered
    grade(session, "ann", 1, 0, "later")
    assert [one.number for (one,) in session.open_lists("ann")] == [2, 1]
    grade(session, "ann", 2, 0)
    assert [one.number for (one,) in session.open_lists("ann")] == [1]
    assert session.counts == {"wanted": 3, "finished": 1, "missing": 3}


def test_every_document_gets_exactly_its_judges_whatever_the_turns():
    rng = np.random.default_rng(0)
    session = GradingSession(task(5, 8), overlap=3, shared=0.5)
    judges = ["ann", "bob", "cat", "dan"]
    while any(session.open_lists(judge) for judge in judges):
        judge = judges[rng.integers(4)]
        free = session.open_lists(judge)
        if free:
            grade(session, judge, free[0][0].number, int(rng.integers(4)))
    n_grades = np.array([len(one) for one in session.grades()])
    assert set(n_grades) == {1, 3}
    assert 8 <= (n_grades == 3).sum() <= 32


def test_undo_restores_the_answer_before():
    session = GradingSession(task(1, 2))
    grade(session, "ann", 0, 1)
    grade(session, "ann", 0, 3)
    session.add("ann", GradingEntry("undo"))
    assert session.judges["ann"][0].grade == 1
    session.add("ann", GradingEntry("undo"))
    session.add("ann", GradingEntry("undo"))
    assert session.judges["ann"] == {}
    assert session.counts["missing"] == 2


def test_final_grades_and_conflicts():
    session = GradingSession(task(1, 3), overlap=2)
    grade(session, "ann", 0, 3)
    grade(session, "bob", 0, 0)
    grade(session, "ann", 1, 2)
    grade(session, "bob", 1, 1)
    grade(session, "ann", 2, 1)
    assert session.conflicts() == [0, 1]
    np.testing.assert_array_equal(session.final(), [0, 1, 1])
    grade(session, "me", 0, 2, "settle")
    assert session.conflicts() == [1]
    np.testing.assert_array_equal(session.final(), [2, 1, 1])


def test_grades_outside_the_scale_and_unknown_documents_are_refused():
    session = GradingSession(task(1, 1))
    with pytest.raises(InputError, match="the grade is '9'"):
        grade(session, "ann", 0, 9)
    with pytest.raises(InputError, match="an answer about 'q9/d0'"):
        session.add("ann", GradingEntry("grade", "q9", "d0", "1"))


def test_the_model_suggests_open_documents_of_all_queries():
    rng = np.random.default_rng(1)
    some = task(4, 10)
    session = GradingSession(
        GradingTask(some.queries, some.documents, rng.normal(size=(40, 3)), ["a", "b", "c"]), order="model", depth=8
    )
    for number in (0, 1, 10, 11):
        grade(session, "ann", number, number % 2 * 3)
    session.install(session.suggest(session.final()))
    free = [one for (one,) in session.open_lists("ann", most=8)]
    assert {some.documents[one.number].query for one in free} == {0, 1, 2, 3}
    assert {one.number for one in free}.isdisjoint({0, 1, 10, 11, 8, 9, 18, 19})
    words = GradingSession(some, order="model")  # without features: words
    assert len(words.suggest(words.final())) == 40


def test_alpha_is_that_of_the_coefficient_and_its_interval_covers_it():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 4, 60)
    table = np.clip(truth + rng.integers(-1, 2, (3, 60)), 0, 3).astype(float)
    table[0, :10] = table[1, 5:15] = NAN
    rows = [[value for value in column if value == value] for column in table.T.tolist()]
    found = alpha_interval(rows)
    assert found.alpha == pytest.approx(krippendorff_alpha(table))
    assert found.low < found.alpha < found.high
    assert found.high - found.low < 0.3
    assert np.isnan(alpha_interval([[1], [2]]).alpha)


def test_the_bootstrap_draws_documents_not_grades():
    rows = [[0, 0], [3, 3], [1, 1, 1], [2, 2]]
    assert alpha_interval(3 * rows)[:3] == (1.0, 1.0, 1.0)
    few = alpha_interval(rows)  # too few for an interval
    assert (few.alpha, np.isnan(few.low), np.isnan(few.high)) == (1.0, True, True)


@pytest.fixture
def graded():
    queries = [GradingQuery("q1", "=tea pots"), GradingQuery("wind", "wind")]
    documents = [
        GradingDocument(0, "a b", {"title": "x"}, 1),
        GradingDocument(0, "c", {}, 2),
        GradingDocument(1, "c", {}, 1),
    ]
    session = GradingSession(GradingTask(queries, documents, np.array([[1.0], [2.0], [3.0]]), ["f"]))
    grade(session, "ann", 0, 3)
    grade(session, "ann", 1, 0)
    return session


def test_lists_for_other_tools(graded, tmp_path):
    made = {name: file.make(graded, "n", "idx") for name, file in export.EXPORTS.items()}
    assert made["qrels"] == "q1 0 a%20b 3\nq1 0 c 0\n"
    path = tmp_path / "qrels.txt"
    path.write_text(made["qrels"])
    assert read_judgements(path).y.tolist() == [3, 0]
    assert made["quepid"] == "query,docid,rating\n =tea pots,a b,3\n =tea pots,c,0\n"
    opensearch = json.loads(made["opensearch"])
    assert opensearch["type"] == "IMPORT_JUDGMENT"
    assert opensearch["judgmentRatings"] == [
        {"query": "=tea pots", "ratings": [{"docId": "a b", "rating": 3}, {"docId": "c", "rating": 0}]}
    ]
    request = json.loads(made["rank_eval"])
    assert request["requests"][0]["ratings"] == [
        {"_index": "idx", "_id": "a b", "rating": 3},
        {"_index": "idx", "_id": "c", "rating": 0},
    ]
    assert request["metric"] == {"dcg": {"k": 10, "normalize": True}}
    rows = export.as_features(graded, grading_features(graded.task, use_texts=False)).splitlines()
    assert rows == ["qid,docid,rating,f", "q1,a b,3,1.0", "q1,c,0,2.0", "wind,c,,3.0"]
    table = tmp_path / "all.csv"
    table.write_text(made["judgements"])
    assert read_judgements(table).judges.tolist() == ["ann", "ann"]
    assert "'=tea pots" in made["judgements"]
    assert made["queries"].splitlines()[1] == "q1,'=tea pots,"


def test_nothing_to_save_is_one_sentence():
    with pytest.raises(InputError, match="there are no grades yet"):
        export.EXPORTS["qrels"].make(GradingSession(task()), "", "")


def test_words_shared_with_the_query_by_brute_force():
    rng = np.random.default_rng(0)
    vocabulary = ["tea", "pot", "mill", "wind", "heat", "pump"]
    queries = [GradingQuery(str(q), " ".join(rng.choice(vocabulary, 3))) for q in range(4)]
    documents = [
        GradingDocument(
            q, f"d{q}{d}", {"title": rng.choice(vocabulary), "body": " ".join(rng.choice(vocabulary, 1 + d))}
        )
        for q, d in product(range(4), range(5))
    ]
    found = grading_features(GradingTask(queries, documents))
    assert found.columns == [f"{what} {of}" for of in ("text", "title") for what in ("bm25", "words", "length")]
    assert found.prior == "bm25 text"
    for of, offset in (("text", 0), ("title", 3)):
        texts = [
            (f"{one.fields['title']} {one.fields['body']}" if of == "text" else one.fields["title"]).split()
            for one in documents
        ]
        mean = np.mean([len(one) for one in texts])
        for row, (one, text) in enumerate(zip(documents, texts, strict=True)):
            asked = queries[one.query].text.split()
            asked = [word for word in asked if any(word in other for other in texts)]
            bm25 = 0.0
            for word in asked:
                n, tf = sum(word in other for other in texts), text.count(word)
                idf = np.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
                bm25 += idf * 2.2 * tf / (tf + 1.2 * (0.25 + 0.75 * len(text) / mean))
            share = len(set(asked) & set(text)) / max(len(set(asked)), 1)
            np.testing.assert_allclose(found.X[row, offset : offset + 3], [bm25, share, np.log1p(len(text))], rtol=1e-5)


@pytest.mark.parametrize(
    ("columns", "has_order", "use_texts", "names", "prior"),
    [
        ((), True, True, ["rank discount", "bm25 text", "words text", "length text"], "rank discount"),
        (("score",), True, True, ["score", "bm25 text", "words text", "length text"], "score"),
        (("price",), True, False, ["price", "rank discount"], "rank discount"),
        (("price", "BM25"), False, False, ["price", "BM25"], "BM25"),
        (("price",), False, False, ["price"], None),
        (("price",), False, True, ["price", "bm25 text", "words text", "length text"], "bm25 text"),
    ],
)
def test_which_columns_are_features(columns, has_order, use_texts, names, prior):
    documents = [GradingDocument(0, "a", {"text": "tea"}, 1), GradingDocument(0, "b", {"text": "pot"}, 3)]
    X = np.ones((2, len(columns)))
    task = GradingTask([GradingQuery("1", "tea")], documents, X, columns, has_order=has_order)
    found = grading_features(task, use_texts=use_texts)
    assert (list(found.columns), found.prior) == (names, prior)
    if "rank discount" in names:
        np.testing.assert_allclose(found.X[:, names.index("rank discount")], [1.0, 0.5])


def test_nothing_to_learn_from():
    with pytest.raises(InputError, match="nothing to learn from"):
        grading_features(GradingTask([GradingQuery("1", "tea")], [GradingDocument(0, "a")]))
