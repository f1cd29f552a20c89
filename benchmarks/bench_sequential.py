"""
False alarms and power of the sequential test of interleaving, against t-tests, in simulations.

Each list has a credit of +1, 0 or −1; half of the lists are ties. `InterleavingTest` is looked at after every list. The
t-test is looked at once, after the number of lists at which it has a power of 90 %; and naively after every hundredth
list, as people do. Every line of output is one figure as JSON.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from corank.clicks import InterleavingTest
from corank.clicks.sequential import log_mixture

TIES = 0.5
SHARES = (0.5, 0.52, 0.55, 0.6)
EVERY = 100
CHUNK = 500
NORMAL_95, NORMAL_90 = 1.959964, 1.281552


def lists_for_power(share: float) -> float:
    """Return the lists after which a t-test of level 5 % finds this share of wins with a probability of 90 %."""
    mean = (1.0 - TIES) * (2.0 * share - 1.0)
    return (NORMAL_95 + NORMAL_90) ** 2 * (1.0 - TIES - mean**2) / mean**2


def run(share: float, runs: int, n: int, fixed: int, seed: int) -> dict[str, object]:
    """Simulate `runs` tests of n lists; `fixed` is the look of the t-test that is looked at once."""
    rng, test = np.random.default_rng(seed), InterleavingTest()
    threshold, total, squares = np.log(2.0 / test.alpha), np.zeros(runs), np.zeros(runs)
    decided = np.full(runs, n + 1)
    by_t, by_looking = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    covered = np.ones(runs, dtype=bool)
    mean = (1.0 - TIES) * (2.0 * share - 1.0)
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        x = np.where(rng.random((runs, size)) < TIES, 0.0, np.where(rng.random((runs, size)) < share, 1.0, -1.0))
        s, v = total[:, None] + np.cumsum(x, axis=1), squares[:, None] + np.cumsum(x * x, axis=1)
        counts = np.arange(start + 1, start + size + 1)
        hit = log_mixture(np.abs(s), v, test._rho) >= threshold
        decided = np.where((decided > n) & hit.any(axis=1), start + 1 + hit.argmax(axis=1), decided)
        covered &= (log_mixture(np.abs(s - counts * mean), v, test._rho) < threshold).all(axis=1)
        spread = np.sqrt(np.maximum(v - s**2 / counts, 1e-12) / np.maximum(counts - 1, 1) * counts)
        beyond = np.abs(s) > NORMAL_95 * spread
        by_looking |= beyond[:, counts % EVERY == 0].any(axis=1)
        if start < fixed <= start + size:
            by_t = beyond[:, fixed - start - 1]
        total, squares = s[:, -1], v[:, -1]
    return {
        "share_of_wins": share, "lists": n, "runs": runs, "sequential_decides": round(float((decided <= n).mean()), 4),
        "median_lists": None if np.median(decided) > n else int(np.median(decided)),
        "interval_always_covers": round(float(covered.mean()), 4), "t_test_once_after": fixed,
        "t_test_once": round(float(by_t.mean()), 4), "t_test_every_100": round(float(by_looking.mean()), 4),
    }  # fmt: skip


def main(runs: int, shares: list[float]) -> None:
    for share in shares:
        fixed = 10_000 if share == 0.5 else round(lists_for_power(share))
        n = 10_000 if share == 0.5 else 2 * fixed
        print(json.dumps({"bench": "sequential", **run(share, runs, n, fixed, seed=0)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES), help="shares of wins of A; .5 is none")
    chosen = parser.parse_args()
    main(chosen.runs, chosen.shares)
