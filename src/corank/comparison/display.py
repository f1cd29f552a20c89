"""The tables of a study: the methods with their means and costs, and the paired tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank.metrics.significance import few_queries_note
from corank.tables import Cell, ReportTable

if TYPE_CHECKING:
    from corank.comparison.values import MethodOutcome, Study


def leaderboard(study: Study) -> ReportTable:
    """Return the table of methods, the best first, with means, intervals, tests against the best, and costs."""
    apart, sure = _against_best(study), {one.name: one.p_better for one in study.rivals}
    costs = {"fit s": ".3g", "predict s": ".3g", "MB": ".0f"}
    formats = {"method": "", **dict.fromkeys((study.metric, "low", "high", *study.metrics[1:]), ".4f")}
    formats |= {"P(worse)": ".2f", "minus best": "+.4f", "p (Holm)": ".2g", **costs, "remarks": ""}
    rows: list[tuple[Cell, ...]] = []
    for one in study.outcomes:
        means: list[float | None] = [None] * len(study.metrics)
        if one.evaluation is not None:
            means = [one.evaluation[name].mean for name in study.metrics]
        spent = (one.fit_seconds, one.predict_seconds, one.peak_bytes / 1e6)
        rest = (sure.get(one.name), *apart.get(one.name, (None, None)), *spent, remarks(one, study))
        rows.append((one.title, means[0], one.low, one.high, *means[1:], *rest))
    note = (
        f"Low and high: {study.level:.0%} interval of the mean {study.metric} over queries, out of fold. "
        "P(worse): probability that the method is worse than the recommended one (Bayesian bootstrap over queries). "
        "Minus best, p: difference from the best mean, and its sign-flip test with Holm's correction. Times "
        f"are processor times of all {study.folds} folds, with tuning; MB is the peak memory of fitting."
    ) + few_queries_note(study.tests)
    return ReportTable(
        "Methods, the best first", tuple(formats), tuple(rows), note=note, formats=tuple(formats.values())
    )


def paired_table(study: Study) -> ReportTable:
    """Return the table of paired tests."""
    formats = {"methods": "", **dict.fromkeys(("difference", "low", "high"), "+.4f"), "p": ".2g", "p (Holm)": ".2g"}
    formats |= dict.fromkeys(("queries", "higher", "lower"), "")
    titles = {one.name: one.title for one in study.outcomes}
    rows = tuple(
        (
            f"{titles[test.other]} minus {titles[test.base]}", test.difference, test.low, test.high, test.p_value,
            test.p_adjusted, test.n_queries, test.n_higher, test.n_lower,
        )
        for test in study.tests
    )  # fmt: skip
    note = (
        f"{study.metric}, paired by query: mean difference, its {study.level:.0%} interval, p-value of the "
        "sign-flip test without and with Holm's correction, and the number of queries on which the first method is "
        "higher and lower."
    ) + few_queries_note(study.tests)
    return ReportTable("Paired tests", tuple(formats), rows, note=note, formats=tuple(formats.values()))


def remarks(one: MethodOutcome, study: Study) -> str:
    """Return remarks about a method, or ""."""
    words = [
        (one.name == study.winner, "recommended"),
        (one.name == study.simplest, "simplest"),
        (one.is_label_free, "needs no judgements"),
        (one.uses_unscored, "also learns from unjudged rows"),
        (one.is_cut, f"{one.n_done} of {study.folds} folds within the budget"),
    ]
    return ", ".join([text for holds, text in words if holds] + ([one.error] if one.error else []))


def _against_best(study: Study) -> dict[str, tuple[float, float]]:
    """Return the difference of each method from the best and its adjusted p-value; tests of the best come first."""
    found: dict[str, tuple[float, float]] = {}
    for test in study.tests:
        if study.best in (test.base, test.other):
            name, sign = (test.other, 1.0) if test.base == study.best else (test.base, -1.0)
            found.setdefault(name, (sign * test.difference, test.p_adjusted))
    return found
