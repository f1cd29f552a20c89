"""
Speed of simulating and learning from clicks on MQ2008, against a plain numpy loop of PDGD in the same run.

Each line of output is one figure as JSON, in lists per second of processor time. The numpy loop is written plainly:
Gumbel noise, `argsort`, and the pairs of a list one by one; it learns the same as PDGD. `memory` is the growth of the
process's peak memory while a hundred times as many lists are served.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

from corank.clicks import PDGD, PairwiseEpsilonGreedy, simulate_clicks
from experiments.clicks.problem import part, user_of


def plain_pdgd(data, user, n: int, seed: int, k: int = 10, eta: float = 0.1) -> np.ndarray:
    """PDGD in numpy, list by list."""
    rng, w = np.random.default_rng(seed), np.zeros(data.n_features)
    starts, order, probabilities = data.starts, data.queries.order, user.probabilities
    grades = data.y[order].astype(int)
    for _ in range(n):
        q = rng.integers(len(starts) - 1)
        rows = order[starts[q] : starts[q + 1]]
        f = data.X[rows] @ w
        shown = np.argsort(-(f + rng.gumbel(size=len(f))))[:k]
        levels = grades[starts[q] : starts[q + 1]][shown]
        clicks = rng.random(len(shown)) < probabilities.click[levels]
        stops = (rng.random(len(shown)) < probabilities.stop[levels]) & (clicks | (not probabilities.needs_click))
        if stops.any():
            clicks[np.argmax(stops) + 1 :] = False
        if not clicks.any():
            continue
        seen = min(np.flatnonzero(clicks)[-1] + 2, len(shown))
        e = np.exp(f - f.max())
        left = e.sum() - np.concatenate([[0.0], np.cumsum(e[shown])[:-1]])
        gradient = np.zeros(len(shown))
        for a in np.flatnonzero(clicks):
            for b in np.flatnonzero(~clicks[:seen]):
                i, j = min(a, b), max(a, b)
                flipped = left[i + 1 : j + 1] - e[shown[j]] + e[shown[i]]
                ratio = np.prod(left[i + 1 : j + 1] / flipped)
                share = 1.0 / (1.0 + np.exp(f[shown[b]] - f[shown[a]]))
                g = ratio / (1.0 + ratio) * share * (1.0 - share)
                gradient[a] += g
                gradient[b] -= g
        w += eta * gradient @ data.X[rows[shown]]
    return w


def seconds(work, repeats: int = 3) -> float:
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))


def figure(**values: object) -> None:
    print(json.dumps({"bench": "clicks", **values}), flush=True)


def main(n: int) -> None:
    data, user = part(0, "train"), user_of("navigational", "click")
    plain = n // 20 / seconds(lambda: plain_pdgd(data, user, n // 20, 0))
    figure(what="plain numpy PDGD", lists_per_second=round(plain))
    models = {
        "PDGD": PDGD(),
        "PairwiseEpsilonGreedy": PairwiseEpsilonGreedy(),
    }
    for name, model in models.items():
        simulate_clicks(model, data, user, 10, evaluate_at=[10])  # compiled, or found in the cache
        speed = n / seconds(lambda: simulate_clicks(model, data, user, n, evaluate_at=[n], random_state=0))  # noqa: B023
        figure(what=name, lists_per_second=round(speed), times_plain=round(speed / plain, 1))
    X = data.X[: data.starts[1]]

    def by_hand() -> None:
        ranker, rng = PDGD(random_state=0), np.random.default_rng(0)
        for _ in range(1000):
            impression = ranker.show(X)
            ranker.learn(impression, rng.random(len(impression)) < 0.2)

    figure(what="PDGD, show and learn from Python", lists_per_second=round(1000 / seconds(by_hand)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    simulate_clicks(PDGD(), data, user, 100 * n, evaluate_at=[100 * n], random_state=0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    figure(what="memory", lists=100 * n, peak_grew_by_kib=grown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=20_000)
    main(parser.parse_args().lists)
