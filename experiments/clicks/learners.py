"""Published figures of learning from clicks on MQ2008, and corank's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.clicks import PDGD, OnlineRanker, PairwiseEpsilonGreedy, simulate_clicks
from corank.data.durable.atomic import atomic_file
from corank.errors import import_extra
from corank.metrics import evaluate
from corank.models.rls import RankRLS
from corank.tables import ReportTable
from experiments.clicks.as_published import SampledMGD, WorstFirst, upside_down
from experiments.clicks.dueling import DBGD, MGD
from experiments.clicks.problem import DISCOUNT, LISTS, STOPS, USERS, K, bm25, fold_error, part, seed_of, user_of
from experiments.datasets.mq2008 import N_FOLDS
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

SAMPLED_ONE, SAMPLED, WORST_FIRST = "DBGD, sampled winners", "MGD, sampled winners", "pairs, worst row first"

PUBLISHED: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "DBGD": ((0.683, 0.670, 0.631), (844, 817, 757)),
    SAMPLED_ONE: ((0.683, 0.670, 0.631), (844, 817, 757)),
    "MGD": ((0.690, 0.662, 0.647), (859, 825, 815)),
    SAMPLED: ((0.690, 0.662, 0.647), (859, 825, 815)),
    "PairwiseEpsilonGreedy": ((0.674, 0.677, 0.677), (617, 619, 620)),
    WORST_FIRST: ((0.674, 0.677, 0.677), (617, 619, 620)),
    "PDGD": ((0.699, 0.695, 0.690), (960, 903, 908)),
}
"""Offline and online performance with the three users: table 3 of Oosterhuis and de Rijke (2018)."""

METHODS: dict[str, OnlineRanker] = {
    "DBGD": DBGD(),
    SAMPLED_ONE: SampledMGD(1),
    "MGD": MGD(),
    SAMPLED: SampledMGD(),
    "PairwiseEpsilonGreedy": PairwiseEpsilonGreedy(),
    WORST_FIRST: WorstFirst(),
    "PDGD": PDGD(),
}
LIMITS = (0.01, 15.0)
"""Tolerances of offline and online figures."""

Curves = dict[tuple[str, str, str], dict[str, Floats]]

LISTS_QUICK = 1_000
AT = (0, 10, 30, 100, 300, 1_000, 3_000, 10_000)


def cell(options: ExperimentOptions, method: str, kind: str, stop: str, fold: int, n_runs: int) -> dict[str, Any]:
    """Run a method with a user on one fold: offline and online curves of each run."""
    lists = LISTS_QUICK if options.quick else LISTS
    key = {
        "experiment": "clicks", "method": method, "user": kind, "stop": stop, "fold": fold, "runs": n_runs,
        "lists": lists,
    }  # fmt: skip

    def compute() -> dict[str, Any]:
        test = part(fold, "test")
        test = upside_down(test) if method == WORST_FIRST else test
        index = [point for point in AT if point <= lists]
        how: dict[str, Any] = {"k": K, "discount": DISCOUNT, "evaluate_at": index, "n_runs": n_runs}
        seed = seed_of(options.seed, fold)
        results = simulate_clicks(
            METHODS[method], part(fold, "train"), user_of(kind, stop), lists, test=test, random_state=seed, **how
        )
        return {"offline": results.offline.tolist(), "online": results.online.tolist()}

    result: dict[str, Any] = options.result(key, compute)
    return result


def table(options: ExperimentOptions, runs: int) -> tuple[ReportTable, Curves]:
    """
    Fill the table.

    runs: of each method and user, over all folds.
    Returns: the table, and the curves by method, user and stopping rule.
    """
    n_runs = -(-runs // N_FOLDS)
    results: Curves = {}
    rows: list[tuple[str | float | None, ...]] = []
    for method, (offline, online) in PUBLISHED.items():
        for kind, wanted, wanted_online in zip(USERS, offline, online, strict=True):
            for stop in STOPS:
                if (kind == "perfect" and stop == "click") or ("sampled" in method and stop == "click"):
                    continue  # the perfect user never stops
                # drawing 10,000 assignments per list is slow
                n = max(2, n_runs // 5) if "sampled" in method else n_runs
                cells = [cell(options, method, kind, stop, fold, n) for fold in range(N_FOLDS)]
                curves = {name: np.concatenate([item[name] for item in cells]) for name in ("offline", "online")}
                results[method, kind, stop] = curves
                ends = [curves[name][:, -1] for name in ("offline", "online")]
                errors = [float(fold_error(end)) for end in ends]
                rows.append(
                    (
                        method, kind, "" if kind == "perfect" else stop, float(ends[0].mean()), errors[0], wanted,
                        f"{ends[1].mean():.0f}", f"{errors[1]:.1f}", f"{wanted_online:.0f}",
                    )
                )  # fmt: skip
    rows += [(name, "", "", value, None, None, "", "", "") for name, value in label_free(options).items()]
    return (
        ReportTable(
            f"Learning from clicks on MQ2008: nDCG@{K} on test queries after the last list, and the discounted sum "
            f"over lists shown ({N_FOLDS * n_runs} runs per line, a fifth with sampled winners)",
            (
                "method", "user", "stops after", "offline", "error", "published", "online", "error of it",
                "published online",
            ),
            tuple(rows),
            note="Errors are standard errors over runs, with fixed folds. Published: 125 runs of 10,000 lists, users "
            "who stop after any row.",
        ),
        results,
    )  # fmt: skip


def findings(results: Curves) -> tuple[str, ...]:
    """Return which published figures are reproduced, with users who stop after any row."""
    text = []
    for method, published in PUBLISHED.items():
        words = []
        for name, limit, wanted in zip(("offline", "online"), LIMITS, published, strict=True):
            gaps = [
                results[method, kind, "any"][name][:, -1].mean() - value
                for kind, value in zip(USERS, wanted, strict=True)
            ]
            met = [kind for kind, gap in zip(USERS, gaps, strict=True) if abs(gap) <= limit]
            words.append(f"{name} within {limit:g} of the published figure for {', '.join(met) or 'no user'}")
        text.append(f"{method}: {'; '.join(words)}.")
    return tuple(text)


def label_free(options: ExperimentOptions) -> dict[str, float]:
    """Return nDCG without clicks: of BM25's columns, and of a ranker fitted to all judgements of the train part."""

    def compute() -> dict[str, float]:
        names, metric, values = ("mean of BM25's columns", "RankRLS on all grades"), f"nDCG@{K}", []
        for fold in range(N_FOLDS):
            train, test = part(fold, "train"), part(fold, "test")
            both = (bm25(test), RankRLS().fit(train).predict(test.X))
            codes = test.queries.codes
            values += [evaluate(test.y, scores, codes, metric)[metric].mean for scores in both]  # type: ignore[arg-type]
        means = np.reshape(values, (N_FOLDS, 2)).mean(axis=0)
        return {f"no clicks: {name}": float(mean) for name, mean in zip(names, means, strict=True)}

    results: dict[str, float] = options.result({"experiment": "clicks", "what": "label-free"}, compute)
    return results


def plot_lines(panels: Mapping[str, Mapping[str, Floats]], index: Sequence[int], words: str, path: Path) -> None:
    """
    Plot means over runs with 95 % bands against the number of lists, one panel after the other.

    panels: title to label to values of shape (n_runs, n_points).
    at: numbers of lists.
    words: label of the vertical axis.
    path: the PNG file to write.
    """
    import_extra("matplotlib", "report")
    # needs no window system, and changes no global state of pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(3.3 * columns, 3.0 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for panel, (title, by_label) in zip(axes.ravel(), panels.items(), strict=False):
        for label, values in by_label.items():
            mean, half = values.mean(axis=0), 1.96 * np.nan_to_num(fold_error(values))
            (line,) = panel.plot(index, mean, marker="o", markersize=3, label=label)
            panel.fill_between(index, mean - half, mean + half, color=line.get_color(), alpha=0.2, linewidth=0)
        panel.set_xscale("log")
        panel.set_title(title, fontsize=10)
    for panel in axes.ravel()[len(panels) :]:
        panel.set_visible(False)
    axes[0, 0].legend(fontsize=7)
    figure.supxlabel("lists shown")
    figure.supylabel(words)
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)
