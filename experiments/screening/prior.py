"""
Prior knowledge of a screening: how much sooner relevant records are found, and what a useless source costs.

Reviews are replayed with three old reviews of other questions of the same kind, the title of the review as criteria,
and a simulated column of probabilities whose area under the ROC curve is given. Six reviews chose the constants of
`corank_lab.screening.prior`; the table of the others is the one to quote.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from corank.comparison.report import Report
from corank.tables import Cell, ReportTable
from corank_lab.records.records import Records, read_records
from corank_lab.screening import make_views
from corank_lab.screening.model import ScreeningModel, choose_first
from corank_lab.screening.prior import TRUST, Prior
from corank_lab.screening.simulate import start_pair
from corank_lab.screening.views import Views
from experiments.datasets.catalog import dataset
from experiments.options import ExperimentOptions
from experiments.screening.reviews import TITLES
from experiments.screening.stopping import KINDS

CHOSEN = ("Donners_2021", "Meijboom_2021", "Sep_2021", "CD009135", "UrinaryIncontinence", "CD010542")
"""Reviews on which the constants were chosen."""
OTHERS = ("Oud_2018", "Nelson_2002", "CD008691", "CD010023", "BetaBlockers", "ProtonPumpInhibitors", "Kitchenham_2010")
QUALITIES = (0.5, 0.7, 0.8, 0.9)
MAX_OLD = 400
"""Irrelevant records of an old review."""
EVERY = 0.03
STARTS = ("nothing", "a pair")

Floats = NDArray[np.float64]


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: quick runs use two reviews.
    Returns: a table for the reviews that chose the constants, and one for the others.
    """
    groups = {"Reviews that chose the constants": CHOSEN, "Other reviews": OTHERS}
    if options.quick:
        groups = {name: names[:1] for name, names in groups.items()}
    options.expect(sum(map(len, groups.values())))
    tables = [_table(options, title, names) for title, names in groups.items()]
    return Report(
        "Prior knowledge of a screening",
        "ATD is the mean position of the relevant records as a share of the records; smaller is better. Change: with "
        "the source minus without it, mean and worst review. From a pair: one relevant and one irrelevant record are "
        f"known. The model is fitted again when {EVERY:.0%} more records are judged.",
        tuple(tables),
        (),
    )


def _table(options: ExperimentOptions, title: str, names: tuple[str, ...]) -> ReportTable:
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name in names:
        key = {"experiment": "screening-prior", "review": name, "first": "in turn", "trust": TRUST}
        results[name] = options.result(key, lambda name=name: replay_review(name))  # type: ignore[misc]
    sources = list(dict.fromkeys(source for of_review in results.values() for source in of_review))
    rows: list[tuple[Cell, ...]] = []
    for source in sources:
        cells: list[Cell] = []
        for start in STARTS:
            given = [of_review for of_review in results.values() if source in of_review]
            values = np.array([(of_review[source][start], of_review["none"][start]) for of_review in given])
            change = values[:, 0] - values[:, 1]
            cells += [float(values[:, 0].mean()), float(change.mean()), float(change.max())]
        rows.append((source, len(given), *cells))
    columns = [f"{start}, {what}" for start in STARTS for what in ("ATD", "change", "worst")]
    return ReportTable(title, ("source", "reviews", *columns), tuple(rows), digits=3)


def replay_review(name: str) -> dict[str, dict[str, float]]:
    """Return the ATD with each source and from each start."""
    records = _read(name)
    y, views = records.labels == 1, make_views(records)
    kind = next(kind for kind in KINDS.values() if name in kind)
    same = [other for other in kind if other != name][:3]
    result: dict[str, dict[str, float]] = {}
    for source, (prior, given, criteria) in _sources(name, records, same).items():
        columns = prior.columns(given, views, criteria)
        pairs = {"nothing": (), "a pair": start_pair(y, 0)}
        result[source] = {start: replay(views, y, columns, pair) for start, pair in pairs.items()}
    return result


def _sources(name: str, records: Records, same: list[str]) -> dict[str, tuple[Prior, Records, str]]:
    rng, y = np.random.default_rng(1), records.labels == 1
    others = [_read(other) for other in same]
    result = {
        "none": (Prior(), records, ""),
        "old reviews of other questions": (Prior(_joined(others)), records, ""),
    }
    if name in TITLES:
        result["title as criteria"] = (Prior(), records, TITLES[name])
    for quality in QUALITIES:
        scores = rng.normal(size=len(y)) + np.sqrt(2) * norm.ppf(quality) * y
        column = (1 / (1 + np.exp(-scores))).round(4)
        fields = [{**old, "p": [str(value)]} for old, value in zip(records.fields, column.tolist(), strict=True)]
        result[f"probabilities, AUC {quality:g}"] = (Prior(column="p"), replace(records, fields=fields), "")
    return result


def _joined(reviews: list[Records]) -> Records:
    """Old reviews with all relevant records and some of the others."""
    parts = []
    for records in reviews:
        y, rng = records.labels == 1, np.random.default_rng(0)
        others = np.flatnonzero(~y)
        some = rng.choice(others, min(MAX_OLD, len(others)), replace=False)
        parts.append(records.take([*np.flatnonzero(y).tolist(), *some.tolist()]))
    return Records(
        [f"{number}-{id}" for number, part in enumerate(parts) for id in part.ids],
        [title for part in parts for title in part.titles], [text for part in parts for text in part.abstracts],
        labels=np.concatenate([part.labels for part in parts]),
    )  # fmt: skip


def replay(views: Views, y: NDArray[np.bool_], sources: Floats, pair: tuple[int, ...]) -> float:
    """Replay, and return the mean position of the relevant records as a share of the records."""
    read, model = [*pair], ScreeningModel(views, sources)
    is_unread = np.ones(len(y), dtype=np.bool_)
    is_unread[read] = False
    while is_unread.any():
        unread = np.flatnonzero(is_unread)
        if y[read].any():
            scores = model.scores(read, y[read].tolist())[unread]
            chosen = unread[np.argsort(-scores, kind="stable")[: max(1, int(EVERY * len(read)))]].tolist()
        else:
            chosen = [choose_first(views, unread, read, sources=sources)]
        read += chosen
        is_unread[chosen] = False
    found = y[read[len(pair) :]]
    return float((np.flatnonzero(found) + 1).mean() / len(found))


def _read(name: str) -> Records:
    folder = "synergy" if name in KINDS["SYNERGY"] else "reviews"
    return read_records(dataset(folder).path(f"{name}.csv"))
