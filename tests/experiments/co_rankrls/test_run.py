from __future__ import annotations

from corank.experiments.co_rankrls import run as co_rankrls
from corank.experiments.options import ExperimentOptions
from corank.experiments.report import ReportTable


def test_the_report_joins_folds_views_and_curves(tmp_path, monkeypatch):
    asked = []

    def table(name):
        def make(options, *how):
            asked.append((name, *how))
            one = ReportTable(name, ("a",), ((1.0,),))
            return (one, (f"about {how[1]}",)) if name == "views" else one

        return make

    monkeypatch.setattr(co_rankrls, "folds_table", table("folds"))
    monkeypatch.setattr(co_rankrls, "views_table", table("views"))
    monkeypatch.setattr(co_rankrls, "curve_table", table("curve"))
    report = co_rankrls.run(ExperimentOptions(tmp_path, quick=True))
    assert [one.title for one in report.tables] == ["folds", "views", "views", "curve", "curve"]
    assert report.findings == ("about 0.5", "about 0.95")
    assert ("views", 1, 0.5) in asked
    co_rankrls.run(ExperimentOptions(tmp_path, repeats=3))
    assert ("curve", 3, 0.95) in asked
