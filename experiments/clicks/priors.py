"""
Does a prior speed up learning from clicks?

Rankers start from zero, or from the mean of BM25's columns as a prior. The scale of the prior is chosen on validation
queries. Agreement of two views on rows without a click, the hypothesis of section 5.3 of Tsivtsivadze, Hofmann and
Heskes (2012), was measured here too; it did not help and was removed. Its figures are in docs/experiments/clicks.md.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from corank.clicks import CLICK_MODELS, PDGD, OnlineRanker, PairwiseEpsilonGreedy, simulate_clicks
from corank.data.ranking import RankingData
from corank.tables import ReportTable
from experiments.clicks.problem import DISCOUNT, K, bm25, part, seed_of, user_of
from experiments.datasets.mq2008 import N_FOLDS
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

AT = (30, 100, 300, 1_000)
PRIOR_SCALES = (0.1, 1.0, 10.0)
LEARNERS: dict[str, OnlineRanker] = {"PDGD": PDGD(), "PairwiseEpsilonGreedy": PairwiseEpsilonGreedy()}
# different seeds for choosing on validation queries and for testing
_CHOOSING, _TESTING = 1, 2


def curve(options: ExperimentOptions, learner: str, kind: str, scale: float, which: str, n_runs: int) -> Floats:
    """
    Run one learner on MQ2008.

    scale: factor of the prior; 0 for none.
    which {"validation", "test"}: queries to evaluate on.
    Returns: nDCG at each of `AT`, then the online performance, of each run; shape (n_runs · 5, 5).
    """
    key = {
        "experiment": "clicks", "what": "prior", "learner": learner, "user": kind, "prior": scale, "on": which,
        "runs": n_runs,
    }  # fmt: skip
    user, purpose = user_of(kind, "click"), _CHOOSING if which == "validation" else _TESTING

    def serve(fold: int) -> list[list[float]]:
        train, test = (_with_prior(part(fold, name), scale) for name in ("train", which))
        seed = seed_of(options.seed, fold, purpose)
        results = simulate_clicks(
            LEARNERS[learner], train, user, AT[-1], test=test, k=K, evaluate_at=AT, discount=DISCOUNT, n_runs=n_runs,
            random_state=seed,
        )  # fmt: skip
        values: list[list[float]] = np.column_stack([results.offline, results.online[:, -1]]).tolist()
        return values

    cells = [options.result({**key, "fold": fold}, partial(serve, fold)) for fold in range(N_FOLDS)]
    return np.concatenate(cells)


def table(options: ExperimentOptions, runs: int) -> ReportTable:
    """
    Compare learning from zero with learning from a prior.

    runs: of each learner and user, over all folds.
    """
    n_runs = -(-runs // N_FOLDS)
    n_choosing = max(1, n_runs // 4)
    rows = []
    for learner in LEARNERS:
        for kind in CLICK_MODELS:
            scale = _chosen_scale(options, learner, kind, n_choosing)
            rows += [
                (learner, kind, "no prior", *_levels(curve(options, learner, kind, 0.0, "test", n_runs))),
                (learner, kind, f"prior × {scale:g}", *_levels(curve(options, learner, kind, scale, "test", n_runs))),
            ]
    return ReportTable(
        f"The effect of a prior: nDCG@{K} on test queries, and online ({N_FOLDS * n_runs} runs)",
        ("learner", "user", "arm", *(f"{index} lists" for index in AT), f"online, {AT[-1]} lists"),
        tuple(rows),
        note="The scale of the prior was chosen on validation queries, with other random numbers, by the online "
        "performance. The prior alone, without a click, is in the first table.",
    )


def _with_prior(data: RankingData, scale: float) -> RankingData:
    return data if scale == 0.0 else data.with_prior(scale * bm25(data))


def _chosen_scale(options: ExperimentOptions, learner: str, kind: str, n_runs: int) -> float:
    means = [curve(options, learner, kind, s, "validation", n_runs)[:, -1].mean() for s in PRIOR_SCALES]
    return PRIOR_SCALES[int(np.argmax(means))]


def _levels(values: Floats) -> tuple[str, ...]:
    mean = values.mean(axis=0)
    return (*(f"{value:.4f}" for value in mean[:-1]), f"{mean[-1]:.1f}")
