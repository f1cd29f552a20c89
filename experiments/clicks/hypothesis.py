"""
Does agreement of views on rows without a click speed up learning from clicks?

The hypothesis of section 5.3 of Tsivtsivadze, Hofmann and Heskes (2012), which they left untested. Two random views a
run; the same queries and the same dice for every arm. Agreement is compared with the same two views left alone, with
one view of all columns, and with the simplest rival: a good prior, the mean of BM25's columns, as an offset. Made-up
queries whose two views are redundant with independent noise are what the theory of agreement asks for.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.clicks import PDGD, CascadeClicks, ClickedPairs, OnlineRanker, simulate
from corank.clicks.click_models import KINDS
from corank.data.problem.ranking import RankingData
from corank.data.problem.synthetic import make_ranking
from corank.estimator.query_scaler import QueryScaler
from corank.tables import ReportTable
from experiments.clicks.problem import DISCOUNT, K, bm25, fold_error, part, seed_of, user_of
from experiments.datasets.mq2008 import N_FOLDS
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

N_SERVED = 280
AT = (30, 100, 300, 1_000)
# a ranker that steps by eta0 = 0.0001 needs a larger weight for the same effect
COUPLINGS = {"PDGD": (0.01, 0.1, 1.0), "ClickedPairs": (1.0, 10.0, 100.0)}
PRIOR_SCALES = (0.1, 1.0, 10.0)
LEARNERS: dict[str, type[PDGD] | type[ClickedPairs]] = {"PDGD": PDGD, "ClickedPairs": ClickedPairs}
Gains = dict[tuple[str, str], dict[float, Floats]]
ALONE, VIEWS = "one view", "two views"
# a seed of its own for what is chosen on validation queries
_CHOOSING, _TESTING = 1, 2


def _model(learner: str, coupling: float | None, views: Any) -> OnlineRanker:
    kind = LEARNERS[learner]
    return kind() if coupling is None else kind(views=views, coupling=coupling)


def _add_prior(data: RankingData, scale: float) -> RankingData:
    return data if scale == 0.0 else data.on_top_of(scale * bm25(data))


@cache
def made_part(fold: int, which: str) -> RankingData:
    """Return made-up queries, 280 to serve and 120 to test on, of five grades."""
    made = make_ranking(400, 20, random_state=fold)
    X = QueryScaler().fit_transform(made.X, qid=made.qid)
    kept = (made.qid < N_SERVED) == (which == "train")
    return RankingData.of(X[kept], made.y[kept], made.qid[kept])


def curve(
    options: ExperimentOptions, learner: str, kind: str, coupling: float | None, scale: float, which: str, n_runs: int
) -> Floats:
    """
    Run one arm on MQ2008.

    coupling: None for one view.
    scale: what the prior is multiplied by; 0 for none.
    which {"validation", "test"}: queries to measure on.
    Returns: nDCG at each of `AT`, then the online performance, of each run; shape (n_runs · 5, 5).
    """
    key = {
        "experiment": "clicks", "what": "hypothesis", "learner": learner, "user": kind, "coupling": coupling,
        "prior": scale, "on": which, "runs": n_runs,
    }  # fmt: skip
    user, purpose = user_of(kind, "click"), _CHOOSING if which == "validation" else _TESTING

    def serve(fold: int) -> list[list[float]]:
        parts = [_add_prior(part(fold, name), scale) for name in ("train", which)]
        return _served(_model(learner, coupling, 2), parts, user, n_runs, seed_of(options.seed, fold, purpose))

    cells = [options.result({**key, "fold": fold}, partial(serve, fold)) for fold in range(N_FOLDS)]
    return np.concatenate(cells)


def made_curve(options: ExperimentOptions, learner: str, kind: str, coupling: float | None, n_runs: int) -> Floats:
    """Run one arm on made-up queries; as `curve`."""
    key = {
        "experiment": "clicks", "what": "made", "learner": learner, "user": kind, "coupling": coupling, "runs": n_runs,
    }  # fmt: skip
    user, views = CascadeClicks(kind, 5), [slice(10), slice(10, 20)]

    def serve(fold: int) -> list[list[float]]:
        parts = [made_part(fold, name) for name in ("train", "test")]
        return _served(_model(learner, coupling, views), parts, user, n_runs, seed_of(options.seed, fold, _TESTING))

    cells = [options.result({**key, "fold": fold}, partial(serve, fold)) for fold in range(N_FOLDS)]
    return np.concatenate(cells)


def _served(
    model: OnlineRanker, parts: list[RankingData], user: CascadeClicks, n_runs: int, seed: int
) -> list[list[float]]:
    train, test = parts
    found = simulate(
        model, train, user, AT[-1], test=test, k=K, at=AT, discount=DISCOUNT, n_runs=n_runs, random_state=seed
    )
    values: list[list[float]] = np.column_stack([found.offline, found.online[:, -1]]).tolist()
    return values


def tables(options: ExperimentOptions, runs: int) -> tuple[tuple[ReportTable, ...], tuple[str, ...], Gains]:
    """
    Test the hypothesis.

    runs: of each arm, over all folds.
    Returns: a table of gains by agreement, one of all arms, what they say, and gains for a plot.
    """
    n_runs = -(-runs // N_FOLDS)
    n_choosing = max(1, n_runs // 4)
    gains, arms, findings = [], [], []
    drawn: Gains = {}
    for learner in LEARNERS:
        helped: dict[str, list[str]] = {"helps": [], "hurts": []}
        for kind in KINDS:
            alone = curve(options, learner, kind, None, 0.0, "test", n_runs)
            views = curve(options, learner, kind, 0.0, 0.0, "test", n_runs)
            coupled = {c: curve(options, learner, kind, c, 0.0, "test", n_runs) for c in COUPLINGS[learner]}
            for c, values in coupled.items():
                gains.append((learner, kind, f"{c:g}", *_differences(values - views)))
            drawn[learner, kind] = {c: values - views for c, values in coupled.items()}
            best = _chosen(options, learner, kind, n_choosing)
            _note(helped, kind, best, coupled[best] - views)
            scale = _chosen_scale(options, learner, kind, n_choosing)
            with_prior = curve(options, learner, kind, None, scale, "test", n_runs)
            both = curve(options, learner, kind, best, scale, "test", n_runs)
            arms += [
                (learner, kind, ALONE, *_levels(alone)),
                (learner, kind, VIEWS, *_levels(views)),
                (learner, kind, f"{VIEWS}, coupling {best:g}", *_levels(coupled[best])),
                (learner, kind, f"{ALONE}, prior × {scale:g}", *_levels(with_prior)),
                (learner, kind, f"{VIEWS}, coupling {best:g}, prior × {scale:g}", *_levels(both)),
            ]
        findings.append(_finding(learner, helped))
    columns = (*(f"{at} lists" for at in AT), f"online, {AT[-1]} lists")
    return (
        (
            ReportTable(
                f"What agreement adds to two views: difference of nDCG@{K} on test queries, and of the online "
                f"performance, with 95 % intervals ({N_FOLDS * n_runs} paired runs)",
                ("learner", "user", "coupling", *columns),
                tuple(gains),
                note="Users stop after a click. Two views without agreement are coupling 0; * marks an interval "
                "without zero. One in twenty is so by chance.",
            ),
            _made_table(options, max(2, n_runs // 4), columns),
            ReportTable(
                f"The same with one view of all columns, and with a prior: nDCG@{K} on test queries, and online",
                ("learner", "user", "arm", *columns),
                tuple(arms),
                note="Coupling and the scale of the prior were chosen on validation queries, with other random seeds, "
                "by the mean offline and by the online performance. The prior alone, without a click, is in the first "
                "table.",
            ),
        ),
        tuple(findings),
        drawn,
    )


def _made_table(options: ExperimentOptions, n_runs: int, columns: tuple[str, ...]) -> ReportTable:
    rows = []
    for learner in LEARNERS:
        for kind in KINDS:
            alone = made_curve(options, learner, kind, 0.0, n_runs)
            for c in COUPLINGS[learner]:
                gain = made_curve(options, learner, kind, c, n_runs) - alone
                rows.append((learner, kind, f"{c:g}", *_differences(gain)))
    return ReportTable(
        "The same on made-up queries whose views are redundant, with independent noise "
        f"({N_FOLDS * n_runs} paired runs)",
        ("learner", "user", "coupling", *columns),
        tuple(rows),
        note=f"make_ranking, {N_FOLDS} times 280 queries of 20 rows to serve and 120 to test on, its own two views.",
    )


def _chosen(options: ExperimentOptions, learner: str, kind: str, n_runs: int) -> float:
    """The coupling with the highest mean of nDCG over `AT`, on validation queries."""
    means = [curve(options, learner, kind, c, 0.0, "validation", n_runs)[:, :-1].mean() for c in COUPLINGS[learner]]
    return COUPLINGS[learner][int(np.argmax(means))]


def _chosen_scale(options: ExperimentOptions, learner: str, kind: str, n_runs: int) -> float:
    means = [curve(options, learner, kind, None, s, "validation", n_runs)[:, -1].mean() for s in PRIOR_SCALES]
    return PRIOR_SCALES[int(np.argmax(means))]


def _differences(values: Floats) -> tuple[str, ...]:
    mean, half = values.mean(axis=0), 1.96 * fold_error(values)
    digits = [4] * len(AT) + [1]
    return tuple(
        f"{m:+.{d}f} ± {h:.{d}f}{' *' if abs(m) > h else ''}" for m, h, d in zip(mean, half, digits, strict=True)
    )


def _levels(values: Floats) -> tuple[str, ...]:
    mean = values.mean(axis=0)
    return (*(f"{value:.4f}" for value in mean[:-1]), f"{mean[-1]:.1f}")


def _note(helped: dict[str, list[str]], kind: str, coupling: float, values: Floats) -> None:
    mean, half = values.mean(axis=0), 1.96 * fold_error(values)
    names = [*(f"at {at}" for at in AT), "online"]
    for word, sign in (("helps", 1.0), ("hurts", -1.0)):
        found = [name for name, m, h in zip(names, sign * mean, half, strict=True) if m > h]
        if found:
            helped[word].append(f"{kind} (coupling {coupling:g}): {', '.join(found)}")


def _finding(learner: str, helped: dict[str, list[str]]) -> str:
    said = [f"{word} {'; '.join(where)}" for word, where in helped.items() if where]
    return f"{learner}: agreement, its weight chosen on validation queries, {' and '.join(said) or 'changes nothing'}."
