"""
Pairwise answers of many judges: one model with a noise per judge, against pooling and against each judge alone.

Sushi (Kamishima, 2003): complete rankings of ten kinds of sushi. MovieLens 1M: pairs of the 100 movies with the most
ratings that a user rated differently. Some pairs of each person are answers; the others are predicted.

Which pair to ask whom is simulated; see `team_questions`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.comparison.report import Report
from corank.data.durable.text import open_text
from corank.metrics import wilcoxon
from corank.models.gp import PreferenceGP, fit_judges
from corank.tables import Cell, ReportTable
from experiments.datasets.catalog import dataset
from experiments.datasets.movielens import read_ratings
from experiments.gp.team_questions import DRAWS, QUESTIONS, QUICK_DRAWS, asked_table, mean_cell
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PEOPLE, QUICK_PEOPLE = 5000, 60
N_MOVIES, LEAST_PAIRS = 100, 40
SETTINGS = (("sushi", 5), ("sushi", 10), ("sushi", 20), ("MovieLens", 10), ("MovieLens", 20))
# one person in so many answers at random
COIN = 5
WAYS = ("pooled", "alone", "judges")


@cache
def preferences(name: str) -> tuple[int, list[Integers]]:
    """Return the number of items, and all pairs of each person, the preferred item first."""
    if name == "sushi":
        text = open_text(dataset("sushi").path("sushi_rankings.csv")).read().tobytes().decode()
        # the position of each kind, 1 is the best
        values = -np.array([line.split(",") for line in text.split()[1:]][-5000:], dtype=np.float64)
    else:
        ratings = read_ratings().astype(np.float64)
        often = np.argsort(-(~np.isnan(ratings)).sum(axis=0), kind="stable")[:N_MOVIES]
        values = ratings[:, often]
    every = np.column_stack(np.triu_indices(values.shape[1], 1))
    people = []
    for y in values:
        gap = y[every[:, 0]] - y[every[:, 1]]
        pairs = np.where((gap > 0)[:, None], every, every[:, ::-1])[~np.isnan(gap) & (gap != 0)]
        if len(pairs) >= LEAST_PAIRS:
            people.append(pairs)
    return values.shape[1], people


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: one draw of people and pairs by default; quick runs use 60 people.
    Returns: shares of predicted pairs in the right order, and weights of random judges.
    """
    n_people, repeats = QUICK_PEOPLE if options.quick else PEOPLE, options.repeats or 1
    draws = QUICK_DRAWS if options.quick else DRAWS
    options.expect((len(SETTINGS) + 1) * repeats + len(QUESTIONS) * draws)
    found = {
        (name, k): [_result(options, name, k, n_people, repeat, coins=False) for repeat in range(repeats)]
        for name, k in SETTINGS
    }
    coins = [_result(options, "sushi", 20, n_people, repeat, coins=True) for repeat in range(repeats)]
    return Report(
        "Many judges with few comparisons each",
        f"{n_people} people per setting; some random pairs of each are answers, and all others are predicted. Pooled: "
        "one PreferenceGP for the answers of all. Alone: one process for each person. Judges: fit_judges, with "
        "values and a noise per judge and a prior shared by all. Items have no features. Share of the predicted pairs "
        "in the right order, mean over people ± half of the 95 % interval; p is Wilcoxon's test over people.",
        (_accuracy(found), _coins(coins), asked_table(options, draws)),
        _findings(found, coins),
    )


def _result(
    options: ExperimentOptions, name: str, k: int, n_people: int, repeat: int, *, coins: bool
) -> dict[str, Any]:
    key = {
        "experiment": "gp-judges", "set": name, "answers": k, "people": n_people, "coins": coins, "repeat": repeat,
    }  # fmt: skip
    value: dict[str, Any] = options.result(key, lambda: compared(name, k, n_people, [options.seed, repeat], coins))
    return value


def compared(name: str, k: int, n_people: int, seed: Sequence[int], coins: bool) -> dict[str, Any]:
    """
    Compare the three ways on one draw.

    Returns: the share of right predictions of each person by way, the weights of the judges, which of them answer at
    random, and processor seconds of the model of judges.
    """
    rng = np.random.default_rng([*seed, k])
    n, people = preferences(name)
    chosen = [rng.permutation(people[at]) for at in rng.permutation(len(people))[:n_people]]
    answers, left_out = [pairs[:k] for pairs in chosen], [pairs[k:] for pairs in chosen]
    is_coin = np.arange(len(chosen)) % COIN == 0 if coins else np.zeros(len(chosen), dtype=bool)
    for at in np.flatnonzero(is_coin):
        answers[at] = np.where((rng.random(k) < 0.5)[:, None], answers[at], answers[at][:, ::-1])
    K = np.eye(n)
    began = time.process_time()
    model = fit_judges(K, [(pairs, None) for pairs in answers])
    seconds = time.process_time() - began
    pooled = PreferenceGP("linear", learn=False, scale=False).fit(K, pairs=np.concatenate(answers)).predict(K)
    means = {
        "pooled": [pooled] * len(chosen),
        "alone": [fit_judges(K, [(pairs, None)], max_iter=0).of(0).mean for pairs in answers],
        "judges": [model.of(j).mean for j in range(len(chosen))],
    }
    right = {
        way: [
            float(np.mean(0.5 + 0.5 * np.sign(f[pairs[:, 0]] - f[pairs[:, 1]])))
            for f, pairs in zip(of, left_out, strict=True)
        ]
        for way, of in means.items()
    }
    return {"right": right, "weights": model.weights.tolist(), "is_coin": is_coin.tolist(), "seconds": seconds}


def _shares(results: list[dict[str, Any]], way: str, *, honest: bool = True) -> Floats:
    parts = [np.array(one["right"][way])[~np.array(one["is_coin"])] for one in results]
    return np.concatenate(parts) if honest else np.concatenate([np.array(one["right"][way]) for one in results])


def _accuracy(found: dict[tuple[str, int], list[dict[str, Any]]]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for (name, k), results in found.items():
        of = {way: _shares(results, way) for way in WAYS}
        p = [f"{wilcoxon(of['judges'] - of[way]):.1g}" for way in ("pooled", "alone")]
        rows.append((name, k, *(mean_cell(of[way]) for way in WAYS), *p))
    columns = ("set", "answers of each", *WAYS, "p against pooled", "p against alone")
    return ReportTable("Predicted pairs in the right order", columns, tuple(rows))


def _coins(results: list[dict[str, Any]]) -> ReportTable:
    weights = np.concatenate([np.array(one["weights"]) for one in results])
    is_coin = np.concatenate([np.array(one["is_coin"]) for one in results])
    rows: list[tuple[Cell, ...]] = []
    for who, chosen in (("random answers", is_coin), ("own answers", ~is_coin)):
        rows.append((who, int(chosen.sum()), *(float(q) for q in np.quantile(weights[chosen], [0.1, 0.5, 0.9]))))
    return ReportTable(
        f"Weights of judges if one in {COIN} answers at random (sushi, 20 answers of each)",
        ("judges", "number", "10 % quantile", "median", "90 % quantile"),
        tuple(rows),
        note="The weight is the expected share of the variance of a comparison that is not noise.",
    )


def _findings(found: dict[tuple[str, int], list[dict[str, Any]]], coins: list[dict[str, Any]]) -> tuple[str, ...]:
    lines = []
    for (name, k), results in found.items():
        of = {way: float(_shares(results, way).mean()) for way in WAYS}
        lines.append(
            f"{name}, {k} answers: {of['judges']:.3f}, against {of['pooled']:.3f} pooled and {of['alone']:.3f} alone."
        )
    of = {way: float(_shares(coins, way).mean()) for way in WAYS}
    lines.append(
        f"With one random judge in {COIN}, the others are predicted with {of['judges']:.3f}, against "
        f"{of['pooled']:.3f} pooled and {of['alone']:.3f} alone."
    )
    return tuple(lines)
