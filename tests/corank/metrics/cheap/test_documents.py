"""Weights of documents give the metric back; probabilities, unbiasedness and coverage of the document estimate."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.data.io.trec import qrels_of, run_of, write_qrels, write_run
from corank.errors import InputError
from corank.metrics import evaluate_run
from corank.metrics.cheap.documents import (
    document_sizes,
    document_weights,
    estimate_documents,
    gains,
    sample_documents,
    sequential_terms,
)
from corank.metrics.cheap.values import GradedRuns
from corank.metrics.conventions import find_convention


def make(seed=0):
    rng = np.random.default_rng(seed)
    truth = {
        f"q{q}": {f"d{d}": int(g) for d, g in enumerate(rng.choice(4, 30, p=[0.5, 0.2, 0.2, 0.1]))} for q in range(12)
    }
    runs = {f"s{s}": run_of({q: {d: g + (1 + s) * rng.normal() for d, g in row.items()} for q, row in truth.items()})
            for s in range(3)}  # fmt: skip
    return GradedRuns.of(runs, [qrels_of(truth)])


@pytest.mark.parametrize("metric", ["DCG@10", "P@5", "RBP", "RBP(p=0.5)@7"])
@pytest.mark.parametrize("convention", ["corank", "trec_eval", "letor4"])
def test_weights_times_gains_are_the_metric(metric, convention):
    graded, rules = make(), find_convention(convention)
    W = document_weights(graded, metric, rules)
    values = next(iter(graded.values(graded.grades[0], [metric], rules).values()))
    np.testing.assert_allclose(W @ gains(graded.grades[0], metric, rules), values.mean(axis=1))


def test_the_estimate_of_a_draw_and_of_its_first_documents_is_unbiased_and_covers():
    graded, rules = make(), find_convention("trec_eval")
    W, query = document_weights(graded, "DCG@10", rules), graded.documents[0]
    h = gains(graded.grades[0], "DCG@10", rules)
    rng = np.random.default_rng(1)
    cheap = (h + rng.normal(0.5, 0.7, len(h)))[:, None]
    truth = float((W[0] - W[2]) @ h)
    fixed, found, first = [], [], []
    for _ in range(300):
        sampled = sample_documents(W, cheap, 40, rng)
        at = sampled.documents
        assert len(set(at.tolist())) == 40
        assert (np.diff(sampled.times) > 0).all()
        fixed.append(float(((W[0] - W[2])[at] * h[at] / sampled.probabilities).sum()))
        one = estimate_documents(W, cheap, query, sampled, h[at]).interval(0, 2)
        found.append((one.value, one.low <= truth <= one.high))
        part, said = sampled.graded(np.arange(40) < 20)
        assert "smaller draw" in said
        first.append(float(((W[0] - W[2])[part.documents] * h[part.documents] / part.probabilities).sum()))
    for values in (fixed, first, [value for value, _ in found]):
        assert abs(np.mean(values) - truth) < 3.5 * np.std(values) / np.sqrt(300)
    assert np.mean([covered for _, covered in found]) > 0.92
    assert np.std([value for value, _ in found]) < np.std(fixed)


def test_terms_of_the_test_at_any_time_have_the_mean_of_the_difference_at_every_draw():
    graded, rules = make(), find_convention("trec_eval")
    W, query = document_weights(graded, "DCG@10", rules), graded.documents[0]
    h, w = gains(graded.grades[0], "DCG@10", rules), W[2] - W[0]
    rng = np.random.default_rng(2)
    cheap = (h + rng.normal(0.5, 0.7, len(h)))[:, None]
    terms, size = [], document_sizes(W, cheap)
    for _ in range(300):
        sampled = sample_documents(W, cheap, 25, rng)
        x, bound = sequential_terms(w, cheap, W, size, query, sampled, h[sampled.documents])
        assert (np.abs(x) <= bound).all()
        terms.append(x)
    error = np.std(terms, axis=0) / np.sqrt(300)
    assert (np.abs(np.mean(terms, axis=0) - w @ h) < 4.5 * error).all()


def test_all_documents_give_the_exact_value_and_other_metrics_are_refused():
    graded, rules = make(), find_convention("corank")
    W, query = document_weights(graded, "P@5", rules), graded.documents[0]
    h = gains(graded.grades[0], "P@5", rules)
    sampled = sample_documents(W, np.empty((len(h), 0)), 10_000, np.random.default_rng(0))
    one = estimate_documents(W, np.empty((len(h), 0)), query, sampled, h[sampled.documents]).interval(0, 1)
    assert one.value == pytest.approx(float((W[0] - W[1]) @ h))
    assert one.high == pytest.approx(one.low)
    with pytest.raises(InputError, match="not linear"):
        document_weights(graded, "nDCG@10", rules)


def test_drawn_documents_are_graded_in_a_table_and_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, truth = np.random.default_rng(4), {}
    for q in range(15):
        truth |= {(f"q{q}", f"d{d}"): int(g) for d, g in enumerate(rng.choice(4, 25, p=[0.5, 0.2, 0.2, 0.1]))}
    keys = np.array(list(truth), dtype=object)
    for name, noise in (("old", 3.0), ("new", 0.3)):
        scores = np.array(list(truth.values())) + noise * rng.normal(size=len(truth))
        write_run(f"{name}.run", keys[:, 0], keys[:, 1], scores, name)
    write_qrels("llm.qrels", keys[:, 0], keys[:, 1], [min(3, g + 1) for g in truth.values()])
    command = "suggest old.run --for evaluation --runs new.run --cheap llm.qrels --n 60 -o drawn.csv"
    run = CliRunner().invoke(app, command.split(), catch_exceptions=False)
    assert run.exit_code == 0
    columns, *rows = csv.reader(Path("drawn.csv").read_text().splitlines())
    assert columns == ["query", "docid", "probability", "share", "time", "rating"]
    graded = [[*row[:-1], truth[row[0], row[1]]] for row in rows]
    with open("graded.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([columns, *graded])
    lines = "".join(f"{row[0]} 0 {row[1]} {row[-1]}\n" for row in graded[:30])
    Path("human.qrels").write_text(lines)
    all_graded, half = (
        json.loads(CliRunner().invoke(app, ["evaluate", "old.run", "new.run", *more.split(), "--cheap", "llm.qrels",
                                            "--json"], catch_exceptions=False).stdout)
        for more in ("--gold graded.csv", "--gold human.qrels --drawn drawn.csv")
    )  # fmt: skip
    assert (all_graded["n_graded"], half["n_graded"]) == (60, 30)
    full = evaluate_run({q: {d: g for (p, d), g in truth.items() if p == q} for q, _ in truth}, "new.run", "DCG@10")
    base = evaluate_run({q: {d: g for (p, d), g in truth.items() if p == q} for q, _ in truth}, "old.run", "DCG@10")
    expected = full["DCG@10"].mean - base["DCG@10"].mean
    for found in (all_graded, half):
        one = found["differences"][0]["corrected"]
        assert one["low"] < expected < one["high"]
    assert all_graded["at_any_time"][0]["low"] < expected < all_graded["at_any_time"][0]["high"]
    arguments = ["evaluate", "old.run", "new.run", "--gold", "human.qrels", "--cheap", "llm.qrels", "--json", "--drawn"]
    with open("sorted.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([columns, *sorted(rows)])
    assert json.loads(CliRunner().invoke(app, [*arguments, "sorted.csv"]).stdout) == half
    with open("twice.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows, rows[0]])
    for refused in ("human.qrels", "twice.csv"):
        assert CliRunner().invoke(app, [*arguments, refused]).exit_code != 0
    empty = CliRunner().invoke(app, ["evaluate", "old.run", "new.run", "--gold", "drawn.csv", "--cheap", "llm.qrels"])
    assert "has no grades" in str(empty.exception)
