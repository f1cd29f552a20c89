from __future__ import annotations

import numpy as np
import pytest

from experiments.datasets.reuters import Stories
from experiments.datasets.wikispeedia import Articles
from experiments.few_judgements import problems


@pytest.fixture(autouse=True)
def fresh():
    readers = (problems.reuters, problems.wikispeedia)
    for reader in readers:
        reader.cache_clear()
    yield
    for reader in readers:
        reader.cache_clear()


@pytest.mark.filterwarnings("ignore:X has")
def test_topics_are_rare_or_common_by_their_training_stories(monkeypatch):
    sizes = {"too-rare": 19, "least": 20, "most": 100, "common": 101}
    topics = [frozenset({name}) for name, n in sizes.items() for _ in range(n)]
    topics += [frozenset({name}) for name in sizes for _ in range(50)]
    is_test = np.arange(len(topics)) >= sum(sizes.values())
    texts = [f"{next(iter(of))} news {at % 7}x" for at, of in enumerate(topics)]
    monkeypatch.setattr(problems, "read_modapte", lambda: Stories(texts, topics, is_test))
    monkeypatch.setattr(problems, "read_topic_names", lambda: {"least": "News"})
    rare, common = problems.reuters()
    assert list(rare.about) == ["least", "most"]
    assert list(common.about) == ["common"]
    assert rare.about["least"].sum() == 70
    # the name in words where there is one, else the topic itself
    np.testing.assert_allclose(rare.named["most"] > 0, rare.about["most"] > 0)
    assert (rare.named["least"] > 0).all()


@pytest.mark.filterwarnings("ignore:X has")
def test_the_largest_categories_are_taken_and_words_of_the_test_part_are_not(monkeypatch):
    rng = np.random.default_rng(1)
    kinds = np.sort(np.append(rng.integers(30, size=170), np.arange(30)))
    categories = [frozenset({f"A.Kind_{kind}"}) for kind in kinds]
    texts = [f"word{rng.integers(9)} only{at}" for at in range(200)]
    monkeypatch.setattr(problems, "read_articles", lambda: Articles(list(map(str, range(200))), texts, categories))
    pool = problems.wikispeedia()
    sizes = [int(y.sum()) for y in pool.about.values()]
    assert sizes == sorted(np.bincount(kinds), reverse=True)[:25]
    assert pool.text.shape == (200, 9)
    assert 0.2 < pool.is_test.mean() < 0.45


def test_topics_are_spread_over_their_sizes(pool):
    sizes = {topic: y.sum() for topic, y in pool.about.items()}
    by_size = sorted(sizes, key=lambda topic: (sizes[topic], topic))
    assert pool.spread(2) == [by_size[0], by_size[-1]]
    assert pool.spread(9) == by_size


@pytest.mark.usefixtures("real_data")
def test_the_rule_gives_28_rare_topics(monkeypatch):
    monkeypatch.setattr(problems, "_rows", lambda texts, is_test: problems._Rows(None, None, None))
    monkeypatch.setattr(problems, "_pool", lambda name, rows, is_test, about, names: (name, len(about)))
    assert problems.reuters() == (("Reuters, rare topics", 28), ("Reuters, common topics", 16))
