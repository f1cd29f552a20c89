"""Synthetic texts about a few topics."""

from __future__ import annotations


def made_texts(n, rng, topics=("tin", "gold", "rice")):
    """Texts of random words; those about a topic have some of its own."""
    words = [f"{a}{b}{c}" for a in "bcdfg" for b in "aeiou" for c in "lmnrs"]
    about = rng.choice(len(topics) + 1, n, p=[0.1] * len(topics) + [1 - 0.1 * len(topics)])
    own = {topic: [f"{topic}{i}" for i in range(6)] for topic in topics}
    texts = []
    for number in about:
        signal = [*rng.choice(own[topics[number]], 3), topics[number]] if number < len(topics) else []
        texts.append(" ".join([*rng.choice(words, 10), *signal]))
    return texts, {topic: (about == number).astype(float) for number, topic in enumerate(topics)}
