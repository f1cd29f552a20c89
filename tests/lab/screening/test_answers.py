"""Answers follow from the entries alone, however they were added; records are found again in other files."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from corank_lab.records.duplicates import find_duplicates
from corank_lab.records.records import RecordDetails, Records
from corank_lab.screening import Screening, ScreeningJournal, UniqueRecords
from corank_lab.screening.answers import LABEL, UNRANKED, ScreeningAnswers, ScreeningEntry
from helpers.records import collection

RECORDS = collection()


def entry(action, number, by="model", **words):
    return ScreeningEntry(action, f"r{number}", by, **words)


def test_orders_of_reading_are_kept_up_to_date():
    """Random entries: what is extended after every entry equals what follows from the order of answers."""
    rng = random.Random(4)
    for _ in range(30):
        answers = ScreeningAnswers(RECORDS)
        for _ in range(60):
            number = rng.randrange(12)
            actions = ["relevant", "not", "later", "duplicate"] if number not in answers.relevant else ["undo"]
            way = rng.choice(["model", "model", "known", "sample", "adjudication"])
            if number in answers.relevant and rng.random() < 0.5:
                actions, way = ["relevant", "not"], "history"
            answers.add(entry(rng.choice(actions), number, way, of="r30"))
            order = list(answers.chosen_by)
            assert order == list(answers.relevant)
            ways = list(answers.chosen_by.values())
            before = order[: ways.index("sample")] if "sample" in ways else order
            ranked = [one for one in before if answers.chosen_by[one] not in UNRANKED]
            assert answers.ranked == ranked
            assert answers.finds == [at for at, one in enumerate(ranked, 1) if answers.relevant[one]]
            assert answers.n_found == sum(answers.relevant.values())
            assert answers.beforehand == [one for one in order if answers.chosen_by[one] == "known"]
            assert answers.n_known == sum(answers.relevant[one] for one in answers.beforehand)
            assert answers.is_sampled == ("sample" in ways)
            assert not set(answers.later) & set(answers.relevant)


def test_a_change_keeps_the_place_in_the_order_and_can_be_undone():
    answers = ScreeningAnswers(RECORDS, [entry("not", 1), entry("relevant", 2), entry("not", 3, reason="animals")])
    answers.add(entry("relevant", 1, "history"))
    assert list(answers.relevant.items()) == [(1, True), (2, True), (3, False)]
    assert answers.chosen_by == dict.fromkeys((1, 2, 3), "model")
    assert answers.finds == [1, 2]
    answers.add(entry("undo", 1, ""))
    assert answers.relevant[1] is False
    answers.add(entry("undo", 3, ""))
    assert list(answers.relevant) == [1, 2]
    answers.add(entry("later", 5))
    answers.add(entry("not", 5, "history"))
    assert answers.chosen_by[5] == "model"  # as it was shown when it was put aside
    answers.add(entry("undo", 5, ""))
    assert list(answers.later) == [5]


def test_a_duplicate_is_read_but_not_found_or_learnt_from():
    screening = Screening(RECORDS, known=["r1"])
    record = screening.next()
    screening.duplicate(record, 1)
    assert screening.progress().found == 1
    assert screening.progress().read == 2
    assert record not in screening.judged[0]
    assert screening.next() != record
    assert screening.undo() == record
    assert screening.next() == record


def test_search_finds_all_words_in_any_field():
    answers = ScreeningAnswers(RECORDS, [entry("not", 1, reason="Wrong dose"), entry("relevant", 2, tags=("rct",))])
    answers.add(entry("note", 2, text="read again"))
    assert [number for number, _ in answers.search("wrong DOSE")] == [1]
    assert [number for number, _ in answers.search("rct again")] == [2]
    assert [number for number, _ in answers.search("rct dose")] == []
    assert {number for number, _ in answers.search("")} == {1, 2}


def test_labels_are_prior_knowledge_unless_they_are_ignored(tmp_path):
    labels = np.full(len(RECORDS), np.nan)
    labels[[3, 4, 5]] = 1, 0, 0
    records = replace(RECORDS, labels=labels)
    for _ in range(2):  # they are not written twice
        with ScreeningJournal(tmp_path / "corank.db") as journal:
            screening = Screening(records, journal=journal, labels=True, known=["r4"])
            assert screening.answers == {3: True, 5: False, 4: True}
            written = {(one.id, one.action, one.by, one.text) for one in journal.entries}
            assert len(journal.entries) == len(written) == 3
            assert ("r4", "relevant", "known", "") in written
            assert ("r3", "relevant", "known", LABEL) in written
            assert screening.undo() is None
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        assert Screening(records, journal=journal).answers == {4: True}
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        assert Screening(records, journal=journal, labels=True).answers == {4: True, 3: True, 5: False}


def article(at, *, title=None, doi=None, given="", year=2001):
    return (
        title or f"Study {at} of sleep and memory in {at + 2} hospitals of the north",
        RecordDetails(year=year, authors=(f"Roe{at}, A", "Doe, B"), doi=doi or "", given_id=given),
    )


def make(articles, ids=None):
    titles, details = zip(*articles, strict=True)
    ids = ids or [(one.doi and f"doi:{one.doi}") or f"title:{at}-{title}" for at, (title, one) in enumerate(articles)]
    return Records(ids, titles, [f"text word{at}" for at in range(len(ids))], details=details)


def answered(records, path, relevant):
    """Answer some records by title, and return the titles of what a later session of other records finds."""
    with ScreeningJournal(path) as journal:
        screening = Screening(records, journal=journal)
        for number, title in enumerate(records.titles):
            if title in relevant:
                screening.answer(number, relevant[title])


def found(records, path):
    with ScreeningJournal(path) as journal:
        screening = Screening(records, journal=journal)
        answers = {records.titles[number]: value for number, value in screening.answers.items()}
        return answers, [one.title for one in screening.unmatched]


@pytest.mark.parametrize("identified", ["doi", "title", "id"])
def test_answers_stay_with_their_records_in_other_files(identified, tmp_path):
    path = tmp_path / "corank.db"
    words = {"doi": lambda at: {"doi": f"10.1000/x{at}"}, "title": lambda _: {}, "id": lambda at: {"given": f"W{at}"}}
    articles = [article(at, **words[identified](at)) for at in range(12)]
    ids = [f"W{at}" for at in range(12)] if identified == "id" else None
    old = make(articles, ids)
    relevant = {old.titles[at]: at % 2 == 0 for at in (1, 4, 7, 10)}
    answered(old, path, relevant)
    order = random.Random(1).sample(range(12), 12)
    shuffled = make([articles[at] for at in order], ids and [ids[at] for at in order])
    assert found(shuffled, path) == (relevant, [])
    # an update search: new records before, between and after the old ones
    new = [article(at, **words[identified](at)) for at in range(50, 60)]
    more = [new[0], *articles[:6], *new[1:5], *articles[6:], *new[5:]]
    update = make(more, ids and [one.given_id for _, one in more])
    assert found(update, path) == (relevant, [])
    # without one of the records, its answer is listed and stays in the journal
    fewer = [article for at, article in enumerate(articles) if at != 4]
    rest = {title: value for title, value in relevant.items() if title != old.titles[4]}
    assert found(make(fewer, ids and [one.given_id for _, one in fewer]), path) == (rest, [old.titles[4]])
    assert found(old, path) == (relevant, [])


def test_a_corrected_title_keeps_its_answer(tmp_path):
    articles = [article(at, doi=f"10.1000/x{at}") for at in range(5)]
    answered(make(articles), tmp_path / "corank.db", {articles[2][0]: True})
    corrected = article(
        2, title="Study 2 of sleep and memory: a corrected title of hospitals", doi="10.1000/x2", year=2002
    )
    records = make([*articles[:2], corrected, *articles[3:]])
    assert found(records, tmp_path / "corank.db") == ({corrected[0]: True}, [])


def test_given_numbers_of_another_export_do_not_move_answers(tmp_path):
    """Files numbered from 1, of which the second has a row inserted at the top."""
    articles = [article(at, given=str(at + 1)) for at in range(6)]
    old = make(articles, [str(at + 1) for at in range(6)])
    answered(old, tmp_path / "corank.db", {old.titles[0]: True, old.titles[3]: False})
    shifted = [article(40, given="1"), *(article(at, given=str(at + 2)) for at in range(6))]
    new = make(shifted, [str(at + 1) for at in range(7)])
    assert found(new, tmp_path / "corank.db") == ({old.titles[0]: True, old.titles[3]: False}, [])


def test_old_journals_are_imported_once_and_stay(tmp_path):
    """Entries of earlier versions have an id only, which may be the place in the file."""
    articles = [article(at, doi=f"10.1000/x{at}", given=f"W{at}") for at in range(3)] + [article(3)]
    old = make(articles)
    path = tmp_path / "works.csv.answers" / "ann.jsonl"
    path.parent.mkdir()
    lines = [
        '{"action": "topic", "text": "sleep"}', '{"action": "relevant", "id": "W1", "by": "known"}',
        '{"action": "not", "id": "4", "by": "model"}', '{"action": "later", "id": "gone"}',
        '{"action": "not", "id": "W2',
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    before = path.read_bytes()
    for round_ in range(2):
        with ScreeningJournal(tmp_path / "corank.db", "ann") as journal:
            journal.begin(UniqueRecords(old))
            said = journal.import_old(path.parent)
            assert bool(said) == (round_ == 0)
            assert [(one.action, bool(one.keys)) for one in journal.entries] == [
                ("topic", False), ("relevant", True), ("not", True), ("later", False),
            ]  # fmt: skip
            screening = Screening(old, journal=journal)
            assert screening.answers == {1: True, 3: False}
            assert [one.id for one in screening.unmatched] == ["gone"]
    assert path.read_bytes() == before


def test_duplicates_are_judged_once_and_separated_on_request(tmp_path):
    one = article(1, doi="10.1000/x1")
    articles = [article(0, doi="10.1000/x0"), one, article(2, doi="10.1000/x2"), one]
    ids = ["a", "b", "c", "d"]
    records = make(articles, ids)
    unique = UniqueRecords(records, find_duplicates(records))
    assert len(unique.unique) == 3
    number = unique.find("d")
    assert number == unique.find("b")
    assert {records.ids[at] for at in unique.members(number)} == {"b", "d"}
    assert unique.evidence(number)
    with ScreeningJournal(tmp_path / "corank.db") as journal:
        screening = Screening(unique, journal=journal, known=["d"])
        assert screening.answers == {number: True}
        screening.distinct(number)
        assert {journal.entries[-1].id, journal.entries[-1].of} == {"b", "d"}
        with pytest.raises(ValueError, match="has no duplicates"):
            screening.distinct(unique.find("a"))
    # the answer holds for both records when they are separate
    single = UniqueRecords(records)
    answers = ScreeningAnswers(single, journal.entries)
    assert list(answers.relevant.values()) == [True]


def test_labels_of_a_group_count_if_they_agree():
    one = article(1, doi="10.1000/x1")
    for labels, expected in (((1, np.nan), 1.0), ((np.nan, 0), 0.0), ((1, 0), np.nan)):
        records = replace(make([one, one, article(2)], ["a", "b", "c"]), labels=np.array([*labels, np.nan]))
        assert np.array_equal(UniqueRecords(records, find_duplicates(records)).unique.labels, [expected, np.nan], True)


def test_references_link_records_by_whatever_name_they_use():
    details = [
        RecordDetails(2001, ("Roe, A.",), doi="10.1000/x1"), RecordDetails(2001, ("Roe, A.",), doi="10.1000/x1"),
        RecordDetails(1999, ("Doe, B.",), pmid="77"), RecordDetails(2005, ("Poe, C.",)),
    ]  # fmt: skip
    titles = ["Sleep and memory in young rats", "Sleep and memory in young rats", "Trade of tin by sea", "A review"]
    references = [
        (), ("Doe B., Trade of tin by sea, Ore, 4, pp. 5-9, (1999)",), ("https://doi.org/10.1000/X1",),
        ("b", "PMID: 77", "10.9999/far", "d"),
    ]  # fmt: skip
    records = Records(list("abcd"), titles, ["", "long", "", ""], references, details=details)
    unique = UniqueRecords(records, find_duplicates(records))
    first = unique.unique.ids[unique.find("a")]
    linked = dict(zip(unique.unique.ids, unique.linked().references, strict=True))
    assert linked == {first: ("c",), "c": (first,), "d": (first, "c", "doi:10.9999/far")}
    plain = Records(list("abc"), titles[1:], [""] * 3, [("b", "W9"), ("b",), ()])
    assert UniqueRecords(plain).linked() is plain


def test_answers_to_records_without_titles_do_not_move_when_a_file_is_numbered_anew():
    def works(*texts):
        details = [RecordDetails(given_id=str(at)) for at in range(len(texts))]
        ids, titles = [str(at) for at in range(len(texts))], [title for title, _ in texts]
        return UniqueRecords(Records(ids, titles, [abstract for _, abstract in texts], details=details))

    a, b, c = ("", "Rats sleep."), ("", "Tin is traded."), ("Copper mines of the old north", "")
    before = works(a, b, c)
    entries = [ScreeningEntry("relevant", before.unique.ids[at], "model").about(before, at) for at in range(3)]
    for order in ([a, b, c], [c, a, b], [b, c, a], [c, b]):
        after = works(*order)
        found = [after.find(entry.id, entry.keys, entry.title) for entry in entries]
        assert found == [order.index(one) if one in order else None for one in (a, b, c)]


def test_a_shared_doi_and_a_new_number_do_not_move_an_answer():
    def works(*titles):
        details = [RecordDetails(2001, given_id=str(at), doi="10.1000/supplement") for at in range(len(titles))]
        return UniqueRecords(Records([d.given_id for d in details], titles, [""] * len(titles), details=details))

    titles = ("Sleep and memory in young rats", "Trade of tin by sea", "Copper mines of the old north")
    before, after = works(*titles), works(*titles[::-1])
    for at in range(3):
        entry = ScreeningEntry("relevant", before.unique.ids[at], "model").about(before, at)
        assert after.find(entry.id, entry.keys, entry.title) == 2 - at
