"""
Screening: six systematic reviews from ten starts, topics of Reuters in one pool, and the time of a refit.

Every line is one figure; processor times, one thread. All of it needs CORANK_DATA (synergy_reviews, reuters21578).
The alternative in the pool and of the refits is what ASReview 3.0.8 does by default after each answer: scikit-learn's
LinearSVC with squared hinge, C = .11, on tf-idf of words and pairs, then scores of all records.
Run: python benchmarks/bench_screening.py [--quick] [reviews] [pool] [refits]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from corank.data.reuters import read_modapte
from corank.screening import Records, make_views, read_records, simulate
from corank.screening.model import Model
from corank.screening.simulate import stopped
from corank.screening.stopping import Rule
from corank.screening.views import Views

REVIEWS = ("Donners_2021", "Sep_2021", "Nelson_2002", "Meijboom_2021", "Oud_2018", "Menon_2022")
RULES = ("decline", "poisson", "sample")
PARTS = ["reviews", "pool", "refits"]
PLAIN = ("review", "start")
ASREVIEW = {"C": 0.11, "ratio": 9.8}


def timed(work: Callable[[], object]) -> tuple[float, object]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def reviews(folder: Path, starts: int) -> None:
    for name in REVIEWS:
        records = read_records(folder / f"{name}.csv.gz")
        prepare, views = timed(lambda records=records: make_views(records))
        for seed in range(starts):
            cpu, replays = timed(lambda seed=seed: simulate(records, [seed], views=views))  # noqa: B023
            (replay,) = replays
            n, known = len(replay.found), int(records.labels.sum())
            line = {"review": name, "start": seed, "atd": replay.atd, "wss95": replay.wss95, "cpu": cpu}
            line |= {"recall10": replay.recall10, "last": (np.flatnonzero(replay.found)[-1] + 1) / n}
            line |= {"prepare_cpu": prepare, "ideal": replay.at(0.95) / n}
            for rule in RULES:
                read, found = stopped(replay.found, Rule(rule, n), np.random.default_rng(seed))
                line |= {f"{rule}_read": read / n, f"{rule}_recall": found / known}
            print(json.dumps({**line, **{key: round(float(v), 4) for key, v in line.items() if key not in PLAIN}}))


def linear_svc(views: Views, rows: list[int], relevant: np.ndarray) -> np.ndarray:
    """Scores of all records by ASReview's default."""
    weight = np.where(relevant, 1.0, relevant.sum() / (ASREVIEW["ratio"] * (~relevant).sum()))
    svm = LinearSVC(C=ASREVIEW["C"], loss="squared_hinge")
    svm.fit(views.text[rows], relevant, sample_weight=weight * len(rows) / weight.sum())
    return svm.decision_function(views.text)


def pool(n_topics: int, n_read: int) -> None:
    """Found after reading some, of those that could have been, in all stories; frequent topics, then rarer ones."""
    stories = read_modapte()
    counts = Counter(topic for topics in stories.topics for topic in topics)
    names = [name for name, _ in counts.most_common()]
    n = len(stories.texts)
    views = make_views(Records([str(at) for at in range(n)], stories.texts, [""] * n))
    for kind, chosen in (("frequent", names[:n_topics]), ("rarer", names[2 * n_topics : 3 * n_topics])):
        for seed, topic in enumerate(chosen):
            y = stories.about(topic) > 0
            rng = np.random.default_rng(seed)
            start = [int(rng.choice(np.flatnonzero(y))), int(rng.choice(np.flatnonzero(~y)))]
            model = Model(views)
            ways = {"corank": model.scores, "linear_svc": lambda rows, hits: linear_svc(views, rows, hits)}
            line: dict[str, object] = {"topic": topic, "kind": kind, "relevant": int(y.sum())}
            for way, score in ways.items():
                cpu, read = timed(lambda score=score: follow(score, y, start, n_read))  # noqa: B023
                for depth in (n_read // 3, n_read):
                    most = min(depth, int(y.sum()) - 1)
                    line[f"{way}@{depth}"] = round(int(y[read[2 : 2 + depth]].sum()) / most, 4)
                line[f"{way}_cpu"] = round(cpu, 2)
            line[f"random@{n_read}"] = round(n_read * y.mean() / min(n_read, int(y.sum()) - 1), 4)
            print(json.dumps(line), flush=True)


def follow(score: Callable[..., np.ndarray], y: np.ndarray, start: list[int], n_read: int) -> list[int]:
    read = list(start)
    for _ in range(n_read):
        scores = np.array(score(read, y[read]))
        scores[read] = -np.inf
        read.append(int(np.argmax(scores)))
    return read


def tiled(n: int) -> tuple[Records, np.ndarray]:
    """Reuters stories; beyond them, halves of two, so that no rows are equal; three references each, at random."""
    stories, rng = read_modapte(), np.random.default_rng(0)
    long = [at for at, text in enumerate(stories.texts) if len(text) > 200]
    texts, relevant = [], []
    for at in range(n):
        story = long[at % len(long)]
        words = stories.texts[story].split()
        if at >= len(long):
            half = len(words) // 2
            words = words[:half] + stories.texts[long[rng.integers(len(long))]].split()[: max(20, half)]
        texts.append(" ".join(words))
        relevant.append(bool({"crude", "grain"} & stories.topics[story]))
    cited = rng.integers(0, n, (n, 3)).astype(str).tolist()
    return Records([str(at) for at in range(n)], texts, [""] * n, cited), np.array(relevant)


def refits(n: int, judged: tuple[int, ...], repeats: int) -> None:
    records, y = tiled(n)
    prepare, views = timed(lambda: make_views(records))
    found, others = np.flatnonzero(y), np.flatnonzero(~y)
    order = [int(found[at // 5]) if at % 5 == 0 else int(others[at]) for at in range(max(judged) + repeats + 1)]
    model = Model(views)

    def ours(rows: list[int]) -> object:
        return int(np.argmax(model.scores(rows, y[rows])))

    def theirs(rows: list[int]) -> object:
        return int(np.argmax(linear_svc(views, rows, y[rows])))

    for m in judged:
        ours(order[:m])
        times = [(timed(lambda: ours(rows))[0], timed(lambda: theirs(rows))[0]) for rows in  # noqa: B023
                 (order[: m + k] for k in range(1, repeats + 1))]  # fmt: skip
        mine, svm = (statistics.median(column) for column in zip(*times, strict=True))
        line = {"refit": n, "judged": m, "ms": round(1e3 * mine, 1), "linear_svc_ms": round(1e3 * svm, 1)}
        print(json.dumps({**line, "ratio": round(svm / mine, 1), "prepare_s": round(prepare, 1)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--quick", action="store_true", help="two starts, few topics, and no refit at 100,000 records")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to run; everything by default")
    given = parser.parse_args()
    quick, parts = given.quick, given.parts or PARTS
    root = os.environ.get("CORANK_DATA")
    if root is None:
        raise SystemExit("set CORANK_DATA to the folder that holds synergy_reviews and reuters21578")
    with threadpool_limits(1):
        if "reviews" in parts:
            reviews(Path(root) / "synergy_reviews", 2 if quick else 10)
        if "pool" in parts:
            pool(3 if quick else 20, 300)
        if "refits" in parts:
            refits(10_000, (100, 1000, 2000), 5)
            if not quick:
                refits(100_000, (100, 1000, 3000), 5)


if __name__ == "__main__":
    main()
