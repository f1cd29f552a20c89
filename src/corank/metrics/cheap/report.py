"""Tables, sentences, JSON fields, JUnit XML and gate of `RunsEvaluation`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from corank.metrics.cheap.runs import RunsEvaluation, SystemEstimates
from corank.metrics.names import parse_metric
from corank.tables import ReportTable

HOLES = (
    "On the gold queries: share of judged documents, the value of lists without unjudged documents, and the values if "
    "all unjudged documents were irrelevant or relevant."
)


def tables(result: SystemEstimates) -> tuple[ReportTable, ...]:
    """Return the table of means and, with two or more systems, that of differences from the first."""
    level = result.level
    rows: list[tuple[Any, ...]] = []
    for i, system in enumerate(result.systems):
        human, ours = result.human.interval(i, level=level), result.corrected.interval(i, level=level)
        rows.append((system, human.value, human.low, human.high, float(result.cheap[i]), *ours[:3]))
    columns = ("system", "human", "low", "high", "cheap", "corrected", "low", "high")
    means = [ReportTable(f"{result.metric}: means", columns, tuple(rows))]
    if (result.holes[:, 0] < 1.0).any():
        holes: list[tuple[Any, ...]] = [
            (system, *row) for system, row in zip(result.systems, result.holes.tolist(), strict=True)
        ]
        depth = parse_metric(result.metric).cut
        names = ("system", f"judged@{depth}" if depth else "judged", "condensed", "low", "high")
        means.append(ReportTable(f"{result.metric}: documents without a human grade", names, tuple(holes), note=HOLES))
    if len(result.systems) < 2:
        return tuple(means)
    rows = []
    for i, system in enumerate(result.systems[1:], 1):
        human, ours = (item.interval(i, 0, level) for item in (result.human, result.corrected))
        cheap = float(result.cheap[i] - result.cheap[0])
        rows.append((system, human.value, human.low, human.high, cheap, *ours[:3], ours.p_value))
    differences = ReportTable(
        f"{result.metric}: differences from {result.systems[0]}", (*columns, "p"), tuple(rows),
        formats=("", *("+.4f",) * 7, ".2g"),
    )  # fmt: skip
    return *means, differences


def sentences(result: SystemEstimates, these_queries: bool) -> list[str]:
    """Return the worth of the cheap judges, the order of systems, and the size of differences."""
    n, N = result.human.n_gold, result.corrected.n_queries
    lines = []
    for judge in result.judges:
        weight = f", weight {judge.weight:.2f}" if len(result.judges) > 1 else ""
        bias = "" if judge.bias != judge.bias else f"; its differences are biased by about ±{judge.bias * 2**0.5:.3f}"
        lines.append(f"{judge.name}: {judge.verdict}{weight}; it saves {judge.saved:.0%} of the human grades{bias}.")
    S = len(result.systems)
    if S > 1:
        order = " > ".join(result.order if S <= 6 else [*result.order[:3], "...", *result.order[-2:]])
        lines.append(
            f"Which order: {order}. {result.n_decided} of {S * (S - 1) // 2} pairs are decided"
            + (f"; the cheap order has Kendall's tau {_tau(result):.2f} with it." if result.judges else ".")
        )
    if result.judges:
        lines.append(
            f"How large: {n} of {N} queries have gold grades; the corrected values are as precise as those of about "
            f"{result.effective_queries:.0f} human queries (empirical Bayes)."
        )
    more = result.more_queries()
    if more is not None:
        lines.append(f"{more} more graded queries halve the intervals of differences.")
    meant = "the listed queries" if these_queries else "queries like these"
    lines.append(f"Intervals: {result.level:.0%}, for {meant}; they hold whatever the cheap judges' bias is.")
    return lines


def _tau(result: SystemEstimates) -> float:
    import numpy as np

    a, b = (np.sign(np.subtract.outer(x, x)) for x in (result.cheap, result.corrected.values))
    S = len(result.systems)
    return float((a * b).sum()) / (S * (S - 1))


def text(evaluation: RunsEvaluation) -> str:
    """Return all tables and sentences as plain text."""
    parts = []
    for result in evaluation.values():
        parts += [replace(table, note="").plain() for table in tables(result)]
        parts += sentences(result, evaluation.these_queries)
    return "\n".join([*parts, *(f"Note: {note}" for note in evaluation.notes)])


def fields(evaluation: RunsEvaluation, max_loss: float | None = None) -> dict[str, Any]:
    """Return the JSON fields; all pairs of systems have a difference."""
    metrics = {}
    for name, result in evaluation.items():
        S, level = len(result.systems), result.level
        metrics[name] = {
            "means": [
                {"system": system, "human": result.human.interval(i, level=level)._asdict(),
                 "cheap": float(result.cheap[i]), "corrected": result.corrected.interval(i, level=level)._asdict()}
                for i, system in enumerate(result.systems)
            ],
            "differences": [
                {"base": result.systems[b], "other": result.systems[a],
                 "human": result.human.interval(a, b, level)._asdict(),
                 "cheap": float(result.cheap[a] - result.cheap[b]),
                 "corrected": result.corrected.interval(a, b, level)._asdict()}
                for b in range(S) for a in range(b + 1, S)
            ],
            "holes": [
                dict(zip(("system", "judged", "condensed", "low", "high"), (system, *row), strict=True))
                for system, row in zip(result.systems, result.holes.tolist(), strict=True)
            ],
            "judges": [vars(judge) for judge in result.judges],
            "order": result.order, "n_decided": result.n_decided, "kept_share": result.corrected.kept,
            "effective_queries": result.effective_queries, "more_queries_to_halve": result.more_queries(),
        }  # fmt: skip
    failed = [] if max_loss is None else [f"{metric}: {system}" for metric, system, _ in losses(evaluation, max_loss)]
    return {
        "convention": evaluation.convention, "n_queries": len(evaluation.query_ids),
        "n_gold_queries": len(evaluation.gold), "these_queries": evaluation.these_queries, "metrics": metrics,
        "notes": evaluation.notes, "failed": failed,
    }  # fmt: skip


def losses(evaluation: RunsEvaluation, max_loss: float) -> list[tuple[str, str, str]]:
    """
    Return metric, system and sentence of each run that is worse than the first by more than `max_loss`.

    A run fails if the estimate of its difference is below −max_loss and the interval of the difference is below 0.
    """
    failed = []
    for name, result in evaluation.items():
        for system in result.systems[1:]:
            item = result.difference(system, result.systems[0])
            if item.value < -max_loss and item.high < 0:
                failed.append((
                    name, system,
                    f"{system} is worse than {result.systems[0]} in {name}: {item.value:+.4f} ({item.low:+.4f} to "
                    f"{item.high:+.4f}), more than {max_loss:g} allows.",
                ))  # fmt: skip
    return failed


def junit(evaluation: RunsEvaluation, max_loss: float) -> str:
    """Return the gate as JUnit XML: one test per metric and run after the first."""
    failed = {(metric, system): why for metric, system, why in losses(evaluation, max_loss)}
    cases = [(metric, system) for metric, result in evaluation.items() for system in result.systems[1:]]
    suite = ElementTree.Element(
        "testsuite", name="corank evaluate", tests=str(len(cases)), failures=str(len(failed)), errors="0"
    )
    for metric, system in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=f"corank.{metric}", name=_xml(system))
        if (metric, system) in failed:
            why = _xml(failed[metric, system])
            ElementTree.SubElement(case, "failure", message=why).text = why
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(words: str) -> str:
    """Replace characters that XML 1.0 does not allow."""
    return "".join(word if word in "\t\n" or (word >= " " and not 0xD800 <= ord(word) <= 0xDFFF and word not in "￾￿")
                   else "�" for word in words)  # fmt: skip
