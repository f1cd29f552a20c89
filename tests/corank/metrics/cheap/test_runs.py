"""evaluate_runs: values as evaluate_run computes them, scales, holes of judges, samples, verdicts, reports."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.data.cheap import map_grades
from corank.data.io.trec import write_qrels, write_run
from corank.errors import InputError, UsageWarning
from corank.metrics import evaluate_run, evaluate_runs
from corank.metrics.cheap.report import junit, losses


def make(seed=0, n_queries=30, n_docs=25, noises=(1.0, 1.2, 3.0)):
    """Return truth, a noisy judge, and runs whose scores are grades with noise."""
    rng = np.random.default_rng(seed)
    truth = {f"q{q}": {f"d{d}": int(g) for d, g in enumerate(rng.choice(4, n_docs, p=[0.6, 0.2, 0.1, 0.1]))}
             for q in range(n_queries)}  # fmt: skip
    judge = {
        q: {d: int(np.clip(g + rng.choice([-1, 0, 0, 1]), 0, 3)) for d, g in row.items()} for q, row in truth.items()
    }
    runs = {f"s{at}": {q: {d: g + noise * rng.normal() for d, g in row.items() if rng.random() < 0.8}
                       for q, row in truth.items()} for at, noise in enumerate(noises)}  # fmt: skip
    gold = {q: truth[q] for q in list(truth)[::3]}
    return truth, gold, judge, runs


@pytest.mark.parametrize("convention", ["corank", "trec_eval"])
def test_values_are_those_of_each_run_alone(convention):
    _, gold, judge, runs = make()
    found = evaluate_runs(gold, runs, ["nDCG@10", "AP"], cheap=judge, convention=convention)
    for name in ("nDCG@10", "AP"):
        for at, run in enumerate(runs.values()):
            assert found[name].cheap[at] == pytest.approx(
                evaluate_run(judge, run, name, convention=convention)[name].mean
            )
            human = evaluate_run(gold, run, name, convention=convention)[name].mean
            assert found[name].human.values[at] == pytest.approx(human)
    assert found["ndcg@10"].human.n_gold == 10
    assert len(found.query_ids) == 30


def test_a_query_that_a_run_does_not_answer_is_an_empty_list():
    _, gold, judge, runs = make()
    first = next(iter(gold))
    missing = {**runs, "s0": {q: row for q, row in runs["s0"].items() if q != first}}
    values = evaluate_runs(gold, runs, "nDCG@10", cheap=judge)["nDCG@10"].human.gold
    found = evaluate_runs(gold, missing, "nDCG@10", cheap=judge)["nDCG@10"].human.gold
    assert found[0, 0] == 0.0
    np.testing.assert_array_equal(found[1:], values[1:])


def test_another_scale_is_mapped_and_said():
    _, gold, judge, runs = make()
    percent = {q: {d: 20.0 + 25.0 * g for d, g in row.items()} for q, row in judge.items()}
    with pytest.warns(UsageWarning, match="from 20 to 95, another scale"):
        found = evaluate_runs(gold, runs, "nDCG@10", cheap={"percent": percent})
    assert found["nDCG@10"].judges[0].verdict == "useful"
    gold_grades = np.array([0.0, 0, 0, 0, 0, 0, 1, 1, 2, 3])
    cheap = np.arange(10.0) ** 2
    np.testing.assert_array_equal(map_grades(gold_grades, cheap, cheap), gold_grades)
    assert (np.diff(map_grades(gold_grades, cheap, np.linspace(-5, 99, 60))) >= 0).all()


def test_a_reversed_judge_is_found_out_and_a_random_one_saves_nothing():
    truth, gold, judge, runs = make(noises=(0.5, 1.0, 2.0, 4.0))
    turned = {q: {d: 3 - g for d, g in row.items()} for q, row in truth.items()}
    with pytest.warns(UsageWarning, match="scale may be reversed"):
        found = evaluate_runs(gold, runs, "nDCG@10", cheap={"turned": turned})["nDCG@10"]
    assert found.judges[0].verdict == "reversed"
    assert found.order[0] in ("s0", "s1")
    rng = np.random.default_rng(0)
    shuffled = {
        q: dict(zip(row, rng.permutation(list(row.values())).tolist(), strict=True)) for q, row in judge.items()
    }
    constant = {q: dict.fromkeys(row, 1) for q, row in judge.items()}
    for name, useless in (("random", shuffled), ("constant", constant)):
        with pytest.warns(UsageWarning, match="do not show that"):
            found = evaluate_runs(gold, runs, "nDCG@10", cheap={name: useless})["nDCG@10"]
        assert found.corrected.mean_variance() < 1.1 * found.human.mean_variance()


def test_gold_queries_that_are_no_sample_and_judges_with_gaps_are_said():
    truth, _, judge, runs = make(n_queries=40)
    level = {q: np.mean([evaluate_run({q: judge[q]}, {q: run[q]}, "nDCG@10")["nDCG@10"].mean for run in runs.values()])
             for q in judge}  # fmt: skip
    hardest = sorted(level, key=level.get)[:10]
    with pytest.warns(UsageWarning, match="do not look like a random sample"):
        evaluate_runs({q: truth[q] for q in hardest}, runs, "nDCG@10", cheap=judge)
    gold = {q: truth[q] for q in list(truth)[::3]}
    with pytest.warns(UsageWarning, match="no value of nDCG@10 for 1 gold queries"):
        found = evaluate_runs(gold, runs, "nDCG@10", cheap={"partial": {q: judge[q] for q in list(judge)[1:]}})
    assert found["nDCG@10"].human.n_gold == len(gold)
    with pytest.raises(InputError, match="graded no document that has a gold grade"):
        evaluate_runs({"q0": {"other": 1}}, runs, cheap=judge)


def test_queries_that_nobody_graded_are_counted():
    _, gold, judge, runs = make()
    half = {q: judge[q] for q in list(judge)[::2]}  # every third query is gold: 10 of 30 have neither
    with pytest.warns(UsageWarning, match="10 of 30 queries of the runs"):
        found = evaluate_runs(gold, runs, "nDCG@10", cheap=half)
    assert len(found.query_ids) == 20


def test_a_judge_that_graded_few_of_the_first_documents_is_noted():
    _, gold, judge, runs = make()
    few = {q: dict(list(row.items())[:6]) for q, row in judge.items()}
    shares = []
    for q, row in few.items():
        for run in runs.values():
            shares += [document in row for document in sorted(run[q], key=lambda d, of=run[q]: -of[d])[:10]]
    with pytest.warns(UsageWarning, match=f"graded {np.mean(shares):.0%} of the first 10 documents"):
        evaluate_runs(gold, runs, "nDCG@10", cheap=few)
    assert not any("of the first" in note for note in evaluate_runs(gold, runs, "nDCG@10", cheap=judge).notes)


def test_more_queries_halve_the_interval():
    _, gold, judge, runs = make(n_queries=60)
    found = evaluate_runs(gold, runs, "nDCG@10", cheap=judge, these_queries=True)["nDCG@10"]
    more, n, N = found.more_queries(), found.human.n_gold, 60
    s2 = found.corrected.mean_variance() / (1 / n - 1 / N)
    wanted = found.corrected.mean_variance() / 4
    assert s2 * (1 / (n + more) - 1 / N) <= wanted * (1 + 1e-9)
    assert s2 * (1 / (n + more - 1) - 1 / N) > wanted


def test_the_gate_fails_only_clear_losses():
    _, gold, judge, runs = make(n_queries=60, noises=(0.3, 0.31, 4.0))
    found = evaluate_runs(gold, runs, "nDCG@10", cheap=judge)
    assert [system for _, system, _ in losses(found, 0.01)] == ["s2"]
    assert losses(found, 0.9) == []
    suite = ElementTree.fromstring(junit(found, 0.01))
    assert suite.attrib["tests"] == "2"
    assert [case.attrib["name"] for case in suite if len(case)] == ["s2"]
    assert "How large" in repr(found)


@pytest.fixture
def files(tmp_path):
    _, gold, judge, runs = make(n_queries=45, noises=(0.3, 4.0))
    for name, rows in (("gold", gold), ("llm", judge)):
        cells = [(q, d, g) for q, row in rows.items() for d, g in row.items()]
        write_qrels(tmp_path / name, *zip(*cells, strict=True))
    for name, rows in runs.items():
        cells = [(q, d, g) for q, row in rows.items() for d, g in row.items()]
        write_run(tmp_path / name, *zip(*cells, strict=True))
    return tmp_path


def test_the_command_prints_tables_json_and_junit_and_fails(files):
    words = ["evaluate", files / "s0", files / "s1", "--gold", files / "gold", "--cheap", files / "llm"]
    run = CliRunner().invoke
    said = run(app, list(map(str, words)), catch_exceptions=False)
    assert said.exit_code == 0
    assert "nDCG@10: differences from s0" in said.output
    assert "llm: useful; it saves" in said.output
    human_only = run(app, list(map(str, words[:-2])), catch_exceptions=False)
    assert (human_only.exit_code, "nDCG@10: differences from s0" in human_only.output) == (0, True)
    gate = [*words, "--fail-if-worse", "0.01", "--junit", files / "gate.xml", "--json", "--these-queries"]
    gate += ["--report", files / "page.html"]
    said = run(app, list(map(str, gate)), catch_exceptions=False)
    assert said.exit_code == 1
    report = json.loads(said.output)
    assert report["failed"] == ["nDCG@10: s1"]
    assert report["these_queries"] is True
    assert report["metrics"]["nDCG@10"]["differences"][0]["corrected"]["high"] < 0
    assert ElementTree.parse(files / "gate.xml").getroot().attrib["failures"] == "1"
    page = (files / "page.html").read_text()
    assert all(f"s0, {kind}" in page for kind in ("corrected", "cheap only", "human only"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["s0", "--gold", "gold", "--cheap", "llm", "--fail-if-worse", "0.01"], "pass two runs or more"),
        (["s0", "s0", "--gold", "gold"], "passed twice"),
        (["gold", "s0", "--cheap", "llm"], "pass --gold"),
        (["gold", "s0", "s1"], "3 files were passed"),
        (["llm", "s0", "--gold", "gold"], "all files are TREC runs"),
        (["s0", "s1", "--gold", "gold", "--junit", "x.xml"], "pass --fail-if-worse"),
    ],
)
def test_misuse_is_refused(files, monkeypatch, words, message):
    monkeypatch.chdir(files)
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["evaluate", *words], catch_exceptions=False)
