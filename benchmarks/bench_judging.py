"""
Strategies on Reuters: representative rows, and near-duplicates within a batch.

Each line of output is one setting as JSON: mean AP on the test stories over topics and repeats, and its difference to
the strategy "top" with the standard error over topics. Topics have 20 to 100 training stories; default RankRLS with
`scale=False` on tf-idf; 5 judged stories, then 10 more at a time. `near` allows near-duplicates in a batch. The
experiment `python -m experiments few-judgements` measures strategies, smoothing and other learners.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from corank import RankRLS
from experiments.few_judgements.problems import MIN_TEST, reuters
from experiments.few_judgements.replay import judging_curve

STRATEGIES = ("top", "uncertain", "representative", "random")


def main(n_topics: int, n_repeats: int) -> None:
    pool = reuters()[0]
    out, X = pool.is_test, pool.text
    topics = [topic for topic in pool.spread(n_topics) if pool.about[topic][out].sum() >= MIN_TEST]
    for similar in (0.9, 2.0):
        curves = []
        for topic in topics:
            y = pool.about[topic]
            curve = judging_curve(
                RankRLS(scale=False), X[~out], y[~out], strategy=STRATEGIES, n_repeats=n_repeats, test=(X[out], y[out]),
                similar=similar, random_state=0,
            )  # fmt: skip
            curves.append(curve.mean)
        values = np.array(curves)
        for at, strategy in enumerate(STRATEGIES):
            gap = values[:, at] - values[:, 0]
            figure = {
                "bench": "judging", "strategy": strategy, "near": similar > 1.0, "topics": len(topics),
                "n_judged": curve.n_judged.tolist(), "AP": rounded(values[:, at].mean(axis=0)),
                "over_top": rounded(gap.mean(axis=0)),
                "over_top_error": rounded(gap.std(axis=0, ddof=1) / np.sqrt(len(topics))),
            }  # fmt: skip
            print(json.dumps(figure), flush=True)


def rounded(values: np.ndarray) -> list[float]:
    return np.round(values, 4).tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    main(args.topics, args.repeats)
