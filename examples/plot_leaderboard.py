"""
Rank models from votes
======================

Sixty votes of people leave the order of eight models open. Two thousand votes of a cheap judge who is mostly right, but
not to be trusted blindly, settle most of it: how much they count is learnt from the people's votes.
"""

import sys

import numpy as np

from corank import Leaderboard

rng = np.random.default_rng(0)
names = np.array(["owl", "fox", "elk", "lynx", "hare", "mole", "wren", "newt"])
strength = np.array([1.4, 1.0, 0.7, 0.2, -0.1, -0.6, -1.1, -1.5])


def votes(scores, n):
    """Draw winners and losers of random pairs."""
    a = rng.integers(0, 8, n)
    b = (a + rng.integers(1, 8, n)) % 8
    wins = rng.random(n) < 1 / (1 + np.exp(scores[b] - scores[a]))
    return {"winner": names[np.where(wins, a, b)], "loser": names[np.where(wins, b, a)]}


people = votes(strength, 60)
cheap = votes(1.5 * strength + rng.normal(0.0, 0.3, 8), 2000)

# %%
# People alone, and with the cheap judge as a prior.
alone = Leaderboard().fit(people)
both = Leaderboard().fit(people, cheap=cheap)
print(alone.summary())
print(both.summary())
print("next votes:", both.next_votes(3))

figure = both.plot()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "leaderboard.png")
