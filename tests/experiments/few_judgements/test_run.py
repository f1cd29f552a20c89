from __future__ import annotations

import pytest

from corank.tables import ReportTable
from experiments.few_judgements import run
from experiments.options import ExperimentOptions


@pytest.mark.long
def test_the_report_joins_all_tables_and_a_picture(pool, tmp_path, monkeypatch):
    asked = []

    def feedback(options, repeats):
        asked.append(repeats)
        return ReportTable("feedback", ("a",), ((1.0,),)), ("about feedback",)

    monkeypatch.setattr(run.problems, "pools", lambda: (pool,))
    monkeypatch.setattr(run.problems, "reuters", lambda: (pool,))
    monkeypatch.setattr(run, "feedback_table", feedback)
    monkeypatch.setattr(run, "QUICK_TOPICS", 2)
    report = run.run(ExperimentOptions(tmp_path, quick=True))
    titles = ["made up: AP of 2 topics", "made up: AP of 2 topics from known rows alone", "feedback"]
    assert [table.title for table in report.tables] == titles
    assert report.findings[-1] == "about feedback"
    assert report.plots[0].read_bytes().startswith(b"\x89PNG")
    assert asked == [1]
