"""Which pair to ask whom: simulated judges with values of their own around shared ones answer one after the other."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from corank.data.io.items import Items
from corank.metrics import disagreement_error
from corank.tables import Cell, ReportTable
from corank_lab.preferences import PreferenceSession
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry
from corank_lab.preferences.model import PreferenceModel
from experiments.options import ExperimentOptions
from experiments.significance import p_text

Floats = NDArray[np.float64]

QUESTIONS = ("random", "the judge's own answers", "the answers of all judges")
N_ITEMS, N_JUDGES, N_ANSWERS, OWN, NOISE = 20, 4, 20, 0.4, 0.3
DRAWS, QUICK_DRAWS = 50, 2


def asked_table(options: ExperimentOptions, draws: int) -> ReportTable:
    """Compare what judges are asked, by the order that their answers give."""
    wrong = {
        by: np.array(
            [
                options.result(
                    {"experiment": "gp-judges", "questions by": by, "draw": draw},
                    partial(wrong_after, by, options.seed + draw),
                )
                for draw in range(draws)
            ]
        )
        for by in QUESTIONS
    }
    last = wrong[QUESTIONS[-1]]
    rows: list[tuple[Cell, ...]] = [
        (by, mean_cell(of), "" if of is last else p_text(last - of, ".1g", "")) for by, of in wrong.items()
    ]
    return ReportTable(
        f"Which pair to ask whom: {N_JUDGES} simulated judges, {N_ANSWERS} answers of each",
        ("questions by", "pairs in the wrong order", "p against the last row"),
        tuple(rows),
        note=f"{N_ITEMS} items of variance 1, judges' own values of standard deviation {OWN:g} around them, noise "
        f"{NOISE:g}; judges answer one after the other, and `fit_judges` orders the items by all answers. Means over "
        f"{draws} draws ± half of the 95 % interval; the last row is `corank prefer` with several judges.",
    )


def wrong_after(by: str, seed: int) -> float:
    """Return the share of pairs in the wrong order after all answers of the simulated judges."""
    rng = np.random.default_rng(seed)
    g = rng.normal(size=N_ITEMS)
    items = Items([f"item {number}" for number in range(N_ITEMS)])
    done: dict[str, list[PreferenceEntry]] = {}
    for number in range(N_JUDGES):
        f, judge = g + OWN * rng.normal(size=N_ITEMS), f"judge {number}"
        done[judge] = []
        if by == QUESTIONS[-1] and number:
            session = PreferenceSession(items, judge=judge, random_state=seed)
            for name, entries in done.items():
                for entry in entries:
                    session.add(name, entry)
        else:
            strategy = "random" if by == QUESTIONS[0] else "bald"
            session = PreferenceSession(items, strategy=strategy, random_state=seed + number)
        for _ in range(N_ANSWERS):
            question = session.next()
            if question is None:
                break
            gap = f[question.left] - f[question.right] + NOISE * np.sqrt(2.0) * rng.normal()
            session.answer(question, "left" if gap > 0 else "right")
            names = items.names[question.left], items.names[question.right]
            done[judge].append(PreferenceEntry("left" if gap > 0 else "right", *names, question.chosen_by))
    answers = {judge: PreferenceAnswers(items, entries).pairwise for judge, entries in done.items()}
    model = PreferenceModel(items.X).learn_judges(answers)
    return float(disagreement_error(g, model.overall.mean))


def mean_cell(values: Floats) -> str:
    """Return a mean and half of its 95 % interval."""
    return f"{values.mean():.4f} ± {1.96 * values.std(ddof=1) / np.sqrt(len(values)):.4f}"
