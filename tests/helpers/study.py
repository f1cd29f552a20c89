"""Synthetic studies for reports: complete, unfinished, and unusual ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from corank.comparison import (
    CurvePoint,
    DataSummary,
    MethodOutcome,
    Rival,
    Study,
)
from corank.metrics import PairedTest, compare_runs, evaluate

METRICS = ("nDCG@10", "AP")
TITLES = {
    "rankrls": ("RankRLS", 1.0),
    "lcra": ("LCRA, two random views that agree on unjudged rows", 1.1),
    "lambdarank": ("LambdaRank, trees", 1.3),
    "crr": ("CRR", 1.35),
    "spd": ("SPD", 1.4),
    "ranksvm": ("RankSVM", 1.6),
    "lightgbm": ("LightGBM, defaults", 2.0),
    "column": ("Mean of the columns <no labels>", 3.0),
}
FRACTIONS = (0.01, 0.03, 0.1, 0.3, 1.0)


def _outcome(name: str, place: int, y: np.ndarray, qid: np.ndarray) -> MethodOutcome:
    title, noise = TITLES[name]
    scores = y + np.random.default_rng(place).normal(scale=noise, size=len(y))
    evaluation = evaluate(y, scores, qid, METRICS)
    mean = evaluation[METRICS[0]].mean
    tuned = name not in ("column", "lightgbm")
    return MethodOutcome(
        name, title, name == "column", name == "lcra", 0 if name == "column" else place + 1,
        "exact leave-query-out over 20 values of alpha" if tuned else "",
        tuple({"alpha": 10.0**-fold, "loss": "squared"} for fold in range(5)) if tuned else ({},) * 5,
        evaluation, mean - 0.02, mean + 0.02, 1.5 * (place + 1), 0.02, 5,
    )  # fmt: skip


def full_study(n_queries: int = 200, larger_is_better: bool = True) -> Study:
    """Every part, with values that belong together: evaluations, means, tests and queries."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), 12)
    y = rng.choice([0.0, 1.0, 2.0], size=len(qid), p=[0.7, 0.2, 0.1])
    outcomes = sorted(
        (_outcome(name, place, y, qid) for place, name in enumerate(TITLES)),
        key=lambda one: -one.evaluation[METRICS[0]].mean,
    )
    best = outcomes[0]
    cut = replace(
        outcomes[3], name="preference-gp", title="PreferenceGP", evaluation=None, low=np.nan, high=np.nan, n_done=2,
    )  # fmt: skip
    failed = replace(cut, name="co-rankrls", title="CoRankRLS", n_done=0, error="the views have no columns in common.")
    data = DataSummary(
        name="mq2008/Fold1.txt", fingerprint="f00dcafe12345678", n_rows=len(y), n_features=46, n_queries=n_queries,
        grades=tuple((grade, int((y == grade).sum())) for grade in (0.0, 1.0, 2.0)), n_unscored_rows=120,
        n_unscored_queries=3, n_single_grade_queries=17, n_pool_rows=500,
    )  # fmt: skip
    return Study(
        data=data,
        metric=METRICS[0],
        metrics=METRICS,
        convention="corank",
        larger_is_better=larger_is_better,
        level=0.95,
        outcomes=(*outcomes, cut, failed),
        tests=_tests(best, outcomes[1:]),
        curve=tuple(
            CurvePoint(one.name, part, max(1, round(part * 0.8 * n_queries)), mean, mean - 0.02, mean + 0.02)
            for one in outcomes
            for part in FRACTIONS
            for mean in [one.evaluation[METRICS[0]].mean - 0.1 * (1 - part)]
        ),
        best=best.name,
        simplest="column",
        winner=best.name,
        rule="The recommended method has the best expected result.",
        verdict=f"{best.title} is recommended; 200 queries settle it.",
        notes=("PreferenceGP was cut: the budget of 10 minutes had ended.", "xgboost is not installed."),
        folds=5,
        seed=0,
        versions={"corank": "0.1.0", "numpy": "2.3.1", "numba": "0.63.0"},
        command="corank compare mq2008/Fold1.txt --models spd,crr,lcra,rankrls,lambdarank --budget 10m --seed 0",
        seconds=274.2,
        model=Path("out/compare/model.safetensors"),
        rivals=tuple(
            Rival(one.name, 0.01 * at, 1.0 - 0.4 * 0.5**at, 40 * 2**at) for at, one in enumerate(outcomes[1:])
        ),
    )


def _tests(best: MethodOutcome, others: list[MethodOutcome]) -> tuple[PairedTest, ...]:
    evaluations = {one.name: one.evaluation for one in (best, *others)}
    return tuple(compare_runs(evaluations, METRICS[0], base=best.name, random_state=0, n_resamples=200))


HOSTILE = (
    "<script>hacked = 1</script><img src=x onerror='hacked = 1'>[a](javascript:b) ![c](http://a.example/d.png) \u202e"
)


def hostile_study() -> Study:
    """Every text that a user's files determine is hostile."""
    whole = full_study(20)
    return replace(
        whole,
        data=replace(whole.data, name=f"{HOSTILE}.txt"),
        outcomes=tuple(replace(one, title=HOSTILE, error=one.error and HOSTILE) for one in whole.outcomes),
        verdict=HOSTILE,
        notes=(HOSTILE,),
        command=f"corank compare '{HOSTILE}'",
        model=Path(HOSTILE),
    )


def unfinished_study() -> Study:
    """Nothing was done in the time given."""
    whole = full_study(20)
    none = tuple(
        replace(one, evaluation=None, low=np.nan, high=np.nan, n_done=0, chosen=(), tuning="") for one in whole.outcomes
    )
    return replace(
        whole, outcomes=none, tests=(), curve=(), best="", simplest="", winner="", verdict="No method was finished.",
        notes=(), model=None,
    )  # fmt: skip
