"""Sessions by lines of keys: reasons, tags, history, labels, duplicates, judges, shared reading and results."""

from __future__ import annotations

import csv
import json
import os
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank_lab.database.backends import SqliteDatabase
from corank_lab.records.records import read_records
from corank_lab.records.writer import write_records
from corank_lab.screening.answers import LABEL
from helpers.records import collection
from helpers.terminal import OnTerminal

RECORDS = collection()
RELEVANT = [one for one, label in zip(RECORDS.ids, RECORDS.labels, strict=True) if label]
LINE = ("time", "judge", "version", "records")


def types(path, keys, *words, verb=()):
    words = ["screen", *verb, str(path), *map(str, words)]
    result = CliRunner().invoke(app, words, input=keys, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def shown(said):
    return re.findall(r"^record (\S+)$", said, flags=re.MULTILINE)


def log(path, judge="me", folder=None):
    """The answers of a judge in the database next to the file."""
    with SqliteDatabase((folder or path.parent) / "corank.db") as store:
        (project,) = [one for one in store.projects() if one.settings["file"] == path.name]
        return [one.entry for one in store.answers(project.id, judge=judge)]


@pytest.fixture
def works(tmp_path):
    write_records(tmp_path / "works.csv", RECORDS, np.full(len(RECORDS), np.nan), {})
    return tmp_path / "works.csv"


def test_every_line_says_when_who_what_and_why(works):
    types(works, "r\nn\nl\nnote x\nu\nq\n", "--known", RELEVANT[0], "--topic", "topic1", "--judge", "ann")
    lines = log(works, "ann")
    assert [line["action"] for line in lines] == ["relevant", "relevant", "not", "later", "note", "undo"]
    for line in lines:
        assert all(line[name] for name in LINE)
        assert line["judge"] == "ann"
        assert re.fullmatch(r"[0-9a-f]{16}", line["records"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["keys"]
        assert line["title"]
    for line in lines[1:4]:
        assert line["by"] == "model"
        assert line["rank"] >= 1
        assert isinstance(line["score"], float)


def test_reasons_and_tags_are_stored_with_the_answer(works):
    words = ("--known", RELEVANT[0], "--reason", "wrong dose", "--reason", "no trial")
    said = types(works, "2\ntag one, two\n1\nn too old\n7\n?\nq\n", *words)
    answers = [line for line in log(works) if line["by"] == "model"]
    assert [line.get("reason") for line in answers] == ["no trial", "wrong dose", "too old"]
    assert [line.get("tags") for line in answers] == [None, ["one", "two"], None]
    assert "There is no reason 7" in said
    assert "1  exclude: wrong dose" in said
    # the next session knows the reasons
    types(works, "1\nq\n")
    assert log(works)[-1]["reason"] == "wrong dose"
    (works.parent / "list.txt").write_text("a\n\nb\n")
    types(works, "2\nq\n", "--reasons", works.parent / "list.txt")
    assert log(works)[-1]["reason"] == "b"
    with pytest.raises(InputError, match="10 reasons; the keys 1 to 9 allow 9"):
        types(works, "", *(word for at in range(10) for word in ("--reason", f"r{at}")))


def test_earlier_answers_are_listed_searched_and_changed(works):
    said = types(works, "r\nn dose\nn\nq\n", "--known", RELEVANT[0])
    one, two, _, last = shown(said)
    said = types(works, f"history\nhistory dose\nchange {two} relevant\nchange {last} not\nchange {one} not age\nq\n")
    assert said.count(f"{one} relevant | ") == 1
    assert said.count(f"{two} not: dose | ") == 2
    assert f"changed {two}: relevant" in said
    assert f"'{last} not' is not a change" in said
    types(works, "u\nq\n")
    (works.parent / "out.csv").unlink(missing_ok=True)
    types(works, "", "-o", works.parent / "out.csv", verb=["export"])
    rows = {row["id"]: row for row in csv.DictReader((works.parent / "out.csv").read_text().splitlines())}
    assert rows[two]["included"] == "1"
    assert rows[one]["included"] == "1"  # the second change is withdrawn
    assert [(line["action"], line.get("by")) for line in log(works)[-3:]] == [
        ("relevant", "history"), ("not", "history"), ("undo", None),
    ]  # fmt: skip


def test_a_record_marked_as_a_duplicate_is_not_counted(works):
    said = types(
        works, f"duplicate {RELEVANT[1]}\nduplicate r999\nseparate\ntelling\nprogress\nq\n", "--known", RELEVANT[0]
    )
    assert "There is no record 'r999'" in said
    assert "This record has no duplicates." in said
    assert "found 1 relevant, read 2 of 60" in said
    assert "telling words: none before" in said
    assert log(works)[-1]["of"] == RELEVANT[1]


def test_labels_are_known_answers_unless_they_are_ignored(tmp_path):
    labels = np.full(len(RECORDS), np.nan)
    labels[:6] = RECORDS.labels[:6]
    path = tmp_path / "some.csv"
    write_records(path, RECORDS, labels, {})
    said = types(path, "q\n")
    assert "6 labels of the file are used as known answers; --ignore-labels ignores them." in said
    assert "read 6 of 60" in said
    assert [(line["by"], line["text"]) for line in log(path)] == [("known", LABEL)] * 6
    said = types(path, "q\n", "--ignore-labels")
    assert "read 0 of 60" in said
    assert "labels of the file are ignored" in said


def test_a_labelled_file_is_explained(tmp_path):
    path = tmp_path / "judged.csv"
    write_records(path, RECORDS, RECORDS.labels, {})
    said = types(path, "q\n")
    assert "All records have a label. corank screen replay replays them" in said
    assert "read 0 of 60" in said
    first = shown(types(path, "r\nq\n", "--ignore-labels"))
    assert shown(types(path, "q\n")) == first[1:]  # who has read on goes on


def test_duplicates_are_judged_and_exported_once(tmp_path):
    path, title = (
        tmp_path / "two.csv",
        "A randomised trial of sodium restriction in patients with chronic heart failure",
    )
    rows = [("a", title, "text one"), ("b", "Knee surgery in the elderly", "text two"), ("c", title, "text one")]
    lines = [f"{one},{name},{text},2001,10.1000/{len(name)}" for one, name, text in rows]
    path.write_text("\n".join(["id,title,abstract,year,doi", *lines]) + "\n")
    said = types(path, "r\nr\nq\n")
    assert "two.csv (CSV): 3 records" in said
    assert "1 duplicate in 1 group: 2 records to judge." in said
    assert "1 duplicate in 1 group" not in types(path, "q\n")  # the first session says it
    assert len(shown(said)) == 2
    assert "judged together with 1 duplicate; s separates them:" in said
    assert "evidence: " in said
    assert "All records are read." in said
    said = types(path, "", "-o", tmp_path / "out.csv", verb=["export"])
    assert "2 records, 2 relevant, 0 not relevant, 0 unread; 1 duplicate left out" in " ".join(said.split())
    types(path, "", "-o", tmp_path / "all.csv", "--all-copies", verb=["export"])
    for name, n in (("out.csv", 2), ("all.csv", 3)):
        rows = list(csv.DictReader((tmp_path / name).read_text().splitlines()))
        assert [row["included"] for row in rows] == ["1"] * n
    assert len(shown(types(path, "n\nn\nn\nq\n", "--judge", "bob", "--keep-duplicates"))) == 3
    # one judge separates them for all
    types(path, "separate\nq\nr\n", "--judge", "eve")
    types(path, "s\nn\ns\nq\n", "--judge", "eve")
    assert len(shown(types(path, "n\nn\nn\nq\n", "--judge", "dan"))) == 3


def test_undo_keeps_the_tags_for_the_next_answer(works):
    known = ("--known", RELEVANT[0])
    types(works, "tag dose, rats\nr\nu\nn\nq\n", *known)
    given = [(line["action"], line.get("tags")) for line in log(works) if line.get("by") != "known"]
    assert given == [("relevant", ["dose", "rats"]), ("undo", None), ("not", ["dose", "rats"])]
    types(works, "u\nq\n", *known)  # also if the judge comes back later
    first = shown(types(works, "r\nq\n", *known))[0]
    assert first in {line["id"] for line in log(works)}


def test_judges_disagree_and_an_adjudicator_settles(works):
    known = ("--known", RELEVANT[0])
    first = shown(types(works, "r\nn\nnote why\nn dose\nq\n", *known, "--judge", "ann"))
    bob = shown(types(works, "n age\nn\nq\n", *known, "--judge", "bob"))
    assert first[0] == bob[0]
    said = types(works, "", verb=["report"])
    assert "1 conflict, 0 settled" in said
    assert "Settle conflicts with corank screen settle" in said
    said = types(works, "?\nd\nn age\nq\n", "--judge", "eve", verb=["settle"])
    assert shown(said) == [first[0]]
    assert "ann: relevant" in said
    assert "bob: not: age" in said
    assert "All conflicts are settled." in said
    assert "This key has no meaning" in said
    assert "All 1 conflicts are settled." in types(works, "", "--judge", "eve", verb=["settle"])
    assert log(works, "eve")[-1]["by"] == "adjudication"
    out = works.parent / "out.csv"
    types(works, "", "-o", out, verb=["export"])
    rows = {row["id"]: row for row in csv.DictReader(out.read_text().splitlines())}
    assert (rows[first[0]]["included"], rows[first[0]]["included_ann"], rows[first[0]]["included_bob"]) == (
        "0",
        "1",
        "0",
    )
    assert rows[first[0]]["conflict"] == "settled by eve"
    table = json.loads(types(works, "", "--json", verb=["report"]))
    assert (table["n_conflicts"], table["n_settled"]) == (1, 1)


def test_agreement_and_conflicts_need_common_records(works):
    types(works, "r\nq\n", "--known", RELEVANT[0])
    assert "kappa" not in types(works, "", verb=["report"])
    assert "have no conflict" in types(works, "", "--judge", "eve", verb=["settle"])


def test_shared_reading_goes_on_where_others_are(works):
    words = ("--known", RELEVANT[0], "--share")
    ann = shown(types(works, "r\nn\nn\nq\n", *words, "--judge", "ann"))
    bob = shown(types(works, "n\nq\n", *words, "--judge", "bob"))
    assert not set(bob) & set(ann[:3])
    assert ann[3] == bob[0]  # it was held only while the first judge was reading
    with pytest.raises(InputError, match="pass --share too"):
        types(works, "", "--overlap", "0.5")
    both = shown(types(works, "n\n" * 60, *words, "--judge", "eve", "--overlap", "1"))
    assert len(both) == 59


@pytest.mark.parametrize(("only", "n"), [("all", 60), ("included", 2), ("excluded", 1), ("unread", 57)])
def test_parts_are_exported(only, n, works):
    types(works, "r\nn\nq\n", "--known", RELEVANT[0])
    out = works.parent / "out.ris"
    said = json.loads(types(works, "", "-o", out, "--only", only, "--json", verb=["export"]))
    assert said["n_records"] == n == len(read_records(out))
    with pytest.raises(InputError, match="no record is in conflict"):
        types(works, "", "-o", works.parent / "c.csv", "--only", "conflicts", verb=["export"])


REPORT = ["certificate.html", "certificate.json", "methods.txt", "prisma.csv", "prisma.md", "prisma.svg"]


def test_a_report_holds_numbers_diagram_methods_and_certificate(works):
    types(works, "r\nn dose\nq\n", "--known", RELEVANT[0])
    folder = works.parent / "report"
    said = types(works, "", "-o", folder, verb=["report"])
    assert sorted(os.listdir(folder)) == REPORT
    assert said.startswith("The screening is not finished: 57 records are unread. Nothing is stated")
    assert "methods.txt" in said
    numbers, methods = ((folder / name).read_text() for name in ("prisma.csv", "methods.txt"))
    assert "Records excluded: dose,1" in numbers
    assert "Records not screened: screening not finished,57" in numbers
    assert "screening not" in (folder / "prisma.svg").read_text()
    assert "The screening was not finished: 57 records were not screened" in methods
    assert "(random seed 0)" in methods
    with pytest.raises(InputError, match="exists already"):
        types(works, "", "-o", folder, verb=["report"])
    words = ("--rule", "consecutive", "--target", "0.9", "--seed", "3", "--force", "--json")
    result = CliRunner().invoke(app, ["screen", "report", str(works), "-o", str(folder), *words])
    fields = json.loads(result.stdout)
    assert fields["finished"] is False
    assert "rule consecutive instead of agree" in result.stderr
    certificate = json.loads((folder / "certificate.json").read_text())
    assert (certificate["rule"]["name"], certificate["rule"]["target"]) == ("consecutive", 0.9)
    assert "'consecutive' (a recall of 0.9 " in (folder / "methods.txt").read_text()
    assert "(random seed 3)" in (folder / "methods.txt").read_text()


def answer_until(path, rule, *words):
    """Answer by the labels until the rule advises to stop."""
    relevant, keys = set(RELEVANT), []
    while True:
        said = types(path, "".join(keys) + "q\n", "--rule", rule, *words)
        keys = ["r\n" if shown(said)[-1] in relevant else "n\n"] if shown(said) else []
        if not keys or "You may stop" in said or "advises to stop" in said:
            return


@pytest.mark.parametrize(
    ("rule", "target", "words"),
    [
        ("agree", "0.8", "is an estimate of a model, not a proof"),
        (
            "sample",
            "0.5",
            "was shown by an exact bound from a random sample. The sample proves a recall of at least 0.",
        ),
    ],
)
@pytest.mark.long
def test_the_report_of_a_finished_screening_says_by_what(works, rule, target, words):
    goal = ("--target", target, "--seed", "4")
    answer_until(works, rule, *goal, "--known", RELEVANT[0])
    folder = works.parent / "report"
    said = types(works, "", "-o", folder, "--rule", rule, *goal, verb=["report"])
    certificate = json.loads((folder / "certificate.json").read_text())
    n = certificate["reading"]["unread"]
    assert n > 0
    assert certificate["result"]["reached"]
    assert certificate["result"]["statement"] in said
    assert f"Records not screened: stopped by the rule '{rule}',{n}" in (folder / "prisma.csv").read_text()
    methods = (folder / "methods.txt").read_text()
    assert f"Screening stopped after {len(RECORDS) - n} records by the rule '{rule}'" in methods
    assert words in methods
    result = CliRunner().invoke(app, ["screen", "verify", str(folder / "certificate.json"), str(works)])
    assert "Computed anew, with the same result." in result.output


def test_a_report_says_which_rule_stopped_the_reading(works):
    types(works, "n\n" * 55 + "q\n", "--known", RELEVANT[0])
    for rule, reason in (("agree", "screening not finished"), ("consecutive", "stopped by the rule 'consecutive'")):
        folder = works.parent / rule
        types(works, "", "-o", folder, "--rule", rule, verb=["report"])
        assert f"Records not screened: {reason}" in (folder / "prisma.md").read_text()


def test_a_changed_file_keeps_its_answers_and_lists_those_without_a_record(works, tmp_path):
    folder = tmp_path / "folder"
    types(works, "r\nn\nq\n", "--known", RELEVANT[0], "--answers", folder)
    before = log(works, folder=folder)
    few = [at for at in range(60) if RECORDS.ids[at] not in {line["id"] for line in before[:2]}]
    write_records(works, RECORDS.take(few), np.full(len(few), np.nan), {}, overwrite=True)
    said = types(works, "q\n", "--answers", folder)
    assert "2 answers of the journal name no record of these files; they stay in the journal:" in said
    assert all(line["title"] in said for line in before[:2])
    assert "read 1 of 58" in said
    assert log(works, folder=folder) == before
    # another file has a project of its own
    other = tmp_path / "other.csv"
    write_records(other, RECORDS, np.full(60, np.nan), {})
    assert "read 0 of 60" in types(other, "q\n", "--answers", folder)


def test_a_journal_of_version_0_2_is_imported_with_a_sentence(works):
    folder = works.parent / "works.csv.answers"
    folder.mkdir()
    (folder / "me.jsonl").write_text('{"action": "relevant", "id": "r3", "by": "known"}\n')
    (folder / "reasons.txt").write_text("wrong dose\n")
    said = types(works, "1\nq\n")
    assert "1 answers of" in said
    assert "the files stay as they are" in said
    assert "found 1 relevant, read 2 of 60" in said
    assert log(works)[-1]["reason"] == "wrong dose"
    assert log(works)[0]["keys"]
    assert "answers of" not in types(works, "q\n")
    assert sorted(os.listdir(folder)) == ["me.jsonl", "reasons.txt"]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_shows_pages_history_and_help(tmp_path):
    path = tmp_path / "works.csv"
    rows = [f'w{at},"tin ore {at}","{"gold " * 500} metal{at % 2}"' for at in range(5)]
    path.write_text("\n".join(["id,title,abstract", *rows]) + "\n")
    terminal = OnTerminal("screen", path, "--reason", "wrong metal", "--keep-duplicates", "--highlight", "tin")
    terminal.wait_for(b"enter begin")
    terminal.type(b"\n")
    terminal.wait_for(b"q quit")
    steps = [
        (b" ", b"page 2 of"), (b"b", b"page 1 of"), (b"\x1b[6~", b"page 2 of"), (b"?", b"include the record"),
        (b"q", b"q quit"), (b"1", b"read 1 of 5"), (b"r", b"read 2 of 5"), (b"h", b"2 answers"), (b"j", b"> "),
        (b"r", b"> "), (b"/zzz\n", b"0 answers"), (b"q", b"q quit"), (b"d", b"is a duplicate of"),
        (b"\n", b"read 3 of 5"), (b"g", b"tags"), (b"one, two\n", b"saved with the answer"), (b"n", b"read 4 of 5"),
    ]  # fmt: skip
    for keys, expected in steps:
        terminal.type(keys)
        terminal.wait_for(expected)
    terminal.type(b"\x03")  # Ctrl-C quits, and keeps all answers
    terminal.wait_for(b"to continue")
    terminal.close()
    lines = log(path)
    assert [line["action"] for line in lines] == ["not", "relevant", "relevant", "duplicate", "not"]
    assert lines[0]["reason"] == "wrong metal"
    assert lines[2]["by"] == "history"
    assert lines[2]["id"] == lines[0]["id"]
    assert lines[4]["tags"] == ["one", "two"]


def test_the_label_of_any_duplicate_is_known_and_different_labels_are_not(tmp_path):
    rows = [
        "a,Sleep and memory in young rats,Rats sleep well after food,2001,10.1000/a,",
        "b,Sleep and memory in young rats,,2001,10.1000/a,1",
        "c,Gold mines of the old north,Gold is found in the river,2002,10.1000/c,1",
        "d,Gold mines of the old north,,2002,10.1000/c,0",
        "e,Trade of copper and tin by sea,Ships carry tin,2003,10.1000/e,",
    ]
    path = tmp_path / "works.csv"
    path.write_text("id,title,abstract,year,doi,included\n" + "".join(f"{row}\n" for row in rows))
    said = types(path, "q\n")
    assert "One group of duplicates with different labels counts as unlabelled: c." in said
    first = log(path)[0]
    assert (first["id"], first["action"], first["by"], first["text"]) == ("a", "relevant", "known", LABEL)
    assert len(log(path)) == 1
