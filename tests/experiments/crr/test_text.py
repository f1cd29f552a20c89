from __future__ import annotations

import numpy as np
import pytest

from experiments.crr import text
from experiments.datasets.reuters import Stories
from experiments.options import ExperimentOptions


def test_topics_are_spread_over_frequencies_rarest_first():
    sizes = {"rare": 6, "few": 20, "some": 60, "many": 200, "unseen in the test part": 50, "too rare": 3}
    topics, is_test = [], []
    for name, n in sizes.items():
        topics += [frozenset({name})] * (n + 5)
        is_test += [False] * n + ([False] * 5 if name.startswith("unseen") else [True] * 5)
    stories = Stories([""] * len(topics), topics, np.array(is_test))
    assert text._topics(stories, 10) == ["rare", "few", "some", "many"]
    assert text._topics(stories, 2) == ["rare", "many"]


def test_counts_of_topics_on_which_crr_is_best():
    # AUC loss and MSE of regression, ranking and CRR
    values = np.array(
        [
            [[0.30, 0.10], [0.20, 0.50], [0.20, 0.09]],  # best on both
            [[0.30, 0.10], [0.20, 0.50], [0.2009, 0.1]],  # within 0.001 on one, best on the other
            [[0.30, 0.10], [0.20, 0.50], [0.25, 0.09]],  # 0.05 off on one
        ]
    )
    close, best = text._counts(values)
    assert "on 2 of 3 topics" in close
    assert "0.0500 in AUC loss" in close
    assert "best on both on 1 topics" in best


@pytest.mark.long
def test_a_run_on_stories_made_of_words(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiou" for c in "lmnrs"]
    topics, texts = [], []
    for _ in range(400):
        topic = "tin" if rng.random() < 0.06 else "gold" if rng.random() < 0.5 else ""
        signal = [f"about{topic}"] if topic and rng.random() < 0.8 else []
        texts.append(" ".join([*rng.choice(words, 12), *signal]))
        topics.append(frozenset({topic} - {""}))
    stories = Stories(texts, topics, rng.random(400) < 0.3)
    monkeypatch.setattr(text, "read_modapte", lambda: stories)
    monkeypatch.setattr(text, "ALPHAS", (1e-2, 1e-3))
    text._features.cache_clear()
    report = text.run(ExperimentOptions(tmp_path, quick=True))
    text._features.cache_clear()
    assert [row[0] for row in report.tables[0].rows] == ["tin", "gold"]
    for row in report.tables[0].rows:
        # worse than chance, or no better than always saying the base rate, would be a mistake somewhere
        assert max(row[2::2]) < 0.35
        assert max(row[3], row[7]) < 0.25
    assert "on the 1 topics under 10%" in report.findings[2]


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_accuracy_is_that_of_the_best_training_threshold(balanced, seed):
    rng = np.random.default_rng(seed)
    y, test_y = (rng.random(40) < 0.3).astype(float), (rng.random(60) < 0.3).astype(float)
    scores, test_scores = np.round(y + rng.normal(size=40), 1), np.round(test_y + rng.normal(size=60), 1)

    def accuracy(scores, y, threshold):
        right = (scores >= threshold) == (y > 0)
        return (right[y > 0].mean() + right[y == 0].mean()) / 2 if balanced else right.mean()

    every = [np.inf, *np.unique(scores)]
    values = [accuracy(scores, y, threshold) for threshold in every]
    best = [accuracy(test_scores, test_y, t) for t, v in zip(every, values, strict=True) if v > max(values) - 1e-12]
    found = text._accuracy(scores, y, test_scores, test_y, balanced)
    assert min(abs(found - value) for value in best) < 1e-12
