"""
Screening: time of a refit with scores of all records, on stories of Reuters tiled to many records.

Every line is one figure: median processor time, one thread. Needs CORANK_DATA (reuters21578). The alternative is the
step of ASReview 3.0.8's default after each answer: scikit-learn's LinearSVC with squared hinge on tf-idf of words and
pairs, then scores of all records. The experiment ``python -m experiments screening`` measures the finds.
Run: python benchmarks/bench_screening.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from corank_lab.records.records import Records
from corank_lab.screening import make_views
from corank_lab.screening.model import ScreeningModel
from experiments.datasets.reuters import read_modapte
from experiments.screening.order import linear_svm, svm_text


def timed(work: Callable[[], object]) -> tuple[float, object]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def tiled(n: int) -> tuple[Records, np.ndarray]:
    """Reuters stories, then halves of two stories, so that no rows are equal; three random references each."""
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
    model, text = ScreeningModel(views), svm_text(records)

    def ours(rows: list[int]) -> object:
        return int(np.argmax(model.scores(rows, y[rows])))

    def theirs(rows: list[int]) -> object:
        return int(np.argmax(linear_svm(text, rows, y[rows])))

    for m in judged:
        ours(order[:m])
        times = [(timed(lambda: ours(rows))[0], timed(lambda: theirs(rows))[0]) for rows in  # noqa: B023
                 (order[: m + k] for k in range(1, repeats + 1))]  # fmt: skip
        mine, svm = (statistics.median(column) for column in zip(*times, strict=True))
        line = {"refit": n, "judged": m, "ms": round(1e3 * mine, 1), "linear_svm_ms": round(1e3 * svm, 1)}
        print(json.dumps({**line, "ratio": round(svm / mine, 1), "prepare_s": round(prepare, 1)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--quick", action="store_true", help="10,000 records only")
    sizes = {10_000: (100, 1000, 2000), 20_000: (100, 1000, 2000), 100_000: (100, 1000, 3000)}
    with threadpool_limits(1):
        for n in list(sizes)[:1] if parser.parse_args().quick else sizes:
            refits(n, sizes[n], 5)


if __name__ == "__main__":
    main()
