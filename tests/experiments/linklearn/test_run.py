"""The experiment on made-up collections: its choices, tables and picture."""

from __future__ import annotations

import numpy as np
import pytest

from corank.text import Corpus
from corank_lab.records.records import Records
from experiments.datasets.smart import Topics
from experiments.linklearn import citations, hidden, paper, problems, reviews, run
from experiments.options import ExperimentOptions
from helpers.texts import made_texts


def made(seed):
    texts, about = made_texts(60, np.random.default_rng(seed))
    corpus = Corpus.of(texts, language=None)
    queries = list(about)
    return problems.Searched(corpus, corpus.count(queries), np.array([about[name] for name in queries], dtype=float))


class Articles:
    def __init__(self):
        self.texts, about = made_texts(80, np.random.default_rng(9))
        self.names = [f"a{n}" for n in range(80)]
        self.topic = np.argmax(list(about.values()), axis=0)

    def links(self):
        return [(f"a{i}", f"a{j}") for i in range(80) for j in range(i) if self.topic[i] == self.topic[j]][::3]


def some_review(name):
    texts, about = made_texts(60, np.random.default_rng(len(name)))
    topic = np.argmax(list(about.values()), axis=0)
    ids = [f"r{n}" for n in range(60)]
    cited = [[f"r{m}" for m in range(n) if topic[m] == topic[n]] for n in range(60)]
    records = Records(ids, texts, [""] * 60, cited, np.asarray(about["tin"]))
    return records, Corpus.of(texts, ids, language=None)


def use_made_up_texts(monkeypatch, of_citations):
    articles = Articles()
    collections = {name: made(at) for at, name in enumerate(run.COLLECTIONS)}
    monkeypatch.setattr(problems, "searched", lambda: collections)
    monkeypatch.setattr(problems, "read_articles", lambda: articles)
    monkeypatch.setattr(problems, "read_links", articles.links)
    monkeypatch.setattr(of_citations, "read_topics", lambda name: Topics(articles.texts, [], np.zeros((0, 80), bool)))
    monkeypatch.setattr(of_citations, "read_citations", lambda name: [(a[1:], b[1:]) for a, b in articles.links()])
    problems._articles.cache_clear()


@pytest.mark.long
def test_the_report_has_tables_tests_and_a_picture(tmp_path, monkeypatch):
    use_made_up_texts(monkeypatch, citations)
    monkeypatch.setattr(run, "VARIANTS", (run.PAPER, run.PLAIN, *run.VARIANTS[7:9]))
    monkeypatch.setattr(run, "STEPS", 60)
    monkeypatch.setattr(problems, "STEPS", 300)
    monkeypatch.setattr(problems, "RATES", (0.02, 0.1))
    monkeypatch.setattr(reviews, "REVIEWS", ("one", "two", "three"))
    monkeypatch.setattr(reviews, "_read", some_review)
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    problems._articles.cache_clear()
    assert [len(table.rows) for table in report.tables] == [18, 4, 4, 9, 5]
    assert len(report.findings) == 18 + 8 + 1
    for table in report.tables:
        assert any("as in the paper" in row[0] for row in table.rows)
    # what was learnt from is not searched
    assert [[cell == "" for cell in row[2:]] for row in report.tables[3].rows[1::4]] == [
        [False, False, False, True],
        [False, True, False, False],
    ]
    assert report.plots[0].read_bytes().startswith(b"\x89PNG")


def test_the_choice_for_a_collection_does_not_see_it():
    low, high = {"AP": [0.1]}, {"AP": [0.9]}
    names = run.COLLECTIONS
    ways = [{name: (high if name == names[0] else low) for name in names}, {name: {"AP": [0.2]} for name in names}]
    assert problems.best_elsewhere(ways, names[0]) == 1
    assert problems.best_elsewhere(ways, names[1]) == 0


@pytest.mark.long
def test_both_forms_learn_from_the_same_links(tmp_path, monkeypatch):
    use_made_up_texts(monkeypatch, paper)
    for module in (paper, problems):
        monkeypatch.setattr(module, "STEPS", 300)
        monkeypatch.setattr(module, "RATES", (0.02, 0.1, 1e9))
    report = paper.run(ExperimentOptions(tmp_path, repeats=1))
    problems._articles.cache_clear()
    curve, links, found = report.tables
    assert [len(table.rows) for table in report.tables] == [6, 9, 3 * 7]
    for table in report.tables:  # both rows for every source
        forms = [(row[1], row[0]) for row in table.rows if row[0] in (paper.PAPER, paper.OURS)]
        assert set(forms) == {(source, form) for source in paper.SOURCES for form in (paper.PAPER, paper.OURS)}
    for row in curve.rows:
        assert row[7] >= max(row[2:7])
        assert row[8] <= row[10]
    assert {row[4] for row in links.rows if row[0] == paper.PAPER} <= {"0.02", "0.1"}  # the other one diverges
    assert [cell == "" for cell in found.rows[3][3:]] == [name == "cacm" for name in run.COLLECTIONS]
    assert len(report.findings) == 9
    assert report.plots[0].read_bytes().startswith(b"\x89PNG")


def test_training_of_both_forms_ends_ten_checks_after_the_best(monkeypatch):
    use_made_up_texts(monkeypatch, paper)
    monkeypatch.setattr(hidden, "N_STEPS", {"ours": 300, hidden.PAPER: 2000})
    monkeypatch.setattr(hidden, "PAPER_CHECK", 20)
    for form, n_steps in hidden.N_STEPS.items():
        result = hidden.learn(form, 3, 0)
        training, validation = paper.links_of(hidden.SOURCE, 0)
        check = -(-len(training) // 16) if form == "ours" else len(training) / max(1, round(len(training) / 20))
        assert result["taken"] == n_steps or abs(result["taken"] - result["kept"] - 10 * check) < 10
        assert result["best"] >= max(result["start"], result["end"])
        best = max(problems.link_precision(hidden.BM25(k1, b).to_index, validation) for k1, b in hidden.LINK_GRID)
        assert result["bm25"] == best
    problems._articles.cache_clear()
