"""
Time to the first result: commands, the first fit, and predictions of few rows, compared with LightGBM.

Each line of output is one figure as JSON. Seconds are processor time (user and system, of the command and of its
children), the least of several runs, so that a busy machine changes them little; `median` is the median of these runs,
and `clock` the least time by the clock. `ratio` is the time of the named alternative over corank's in the same run: a
Python process that imports LightGBM and fits its ranker to the same file, or only imports scikit-learn. A first fit
starts with an empty cache of compiled code.

    python benchmarks/bench_startup.py                # all figures, about four minutes
    python benchmarks/bench_startup.py --only predict
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

LIGHTGBM = """
import sys
import lightgbm, numpy as np
rows = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1)
group = np.unique(rows[:, 0], return_counts=True)[1]
lightgbm.LGBMRanker(verbose=-1, n_jobs=1).fit(rows[:, 2:], rows[:, 1].astype(int), group=group)
"""
IMPORTS = {"numpy": "import numpy", "numba": "import numba", "scikit-learn": "import sklearn.base"}


def report(**figure: object) -> None:
    print(json.dumps({"bench": "startup", **figure}), flush=True)


def seconds_of(words: list[str], repeats: int, before: Callable[[], dict[str, str]] = dict) -> dict[str, float]:
    """Run a process several times; return its least and median processor time, and its least time by the clock."""
    times, clocks = [], []
    for _ in range(repeats):
        environment = {**os.environ, **before()}
        began, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(words, check=True, capture_output=True, env=environment)
        clocks.append(time.perf_counter() - started)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime)
    return {
        "seconds": round(min(times), 3),
        "median": round(float(np.median(times)), 3),
        "clock": round(min(clocks), 3),
    }


def commands(folder: Path, repeats: int) -> None:
    """Time warm commands on 60 rows of 5 features, and first fits; imports of libraries for comparison."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 5)), np.repeat(np.arange(6), 10)
    y = X[:, 0] + 0.3 * rng.normal(size=60) > 0.5
    table = [",".join(["qid", "y", *(f"f{j}" for j in range(5))])]
    table += [",".join(map(str, (q, int(label), *row))) for q, label, row in zip(qid, y, X.round(4), strict=True)]
    text = [
        " ".join([str(int(label)), f"qid:{q}", *(f"{j}:{x}" for j, x in enumerate(row, 1))])
        for q, label, row in zip(qid, y, X.round(4), strict=True)
    ]
    (folder / "rows.csv").write_text("\n".join(table) + "\n")
    (folder / "rows.txt").write_text("\n".join(text) + "\n")
    python = {name: seconds_of([sys.executable, "-c", code], repeats) for name, code in IMPORTS.items()}
    for name, found in python.items():
        report(figure=f"python, import {name}", **found)
    corank = [sys.executable, "-m", "corank"]
    rows, letor, model, scores = (str(folder / name) for name in ("rows.csv", "rows.txt", "model", "scores"))
    lightgbm = seconds_of([sys.executable, "-c", LIGHTGBM, rows], repeats)
    report(figure="python, LightGBM: import, read and fit", **lightgbm)
    for name in ("auto-ranker", "lambdarank", "rankrls", "spd"):
        fit = [*corank, "fit", rows, "-m", name, "-o", model, "--force"]
        first = seconds_of(fit, 1, lambda: {"NUMBA_CACHE_DIR": tempfile.mkdtemp(dir=folder)})
        seconds_of(fit, 1)
        for when, found in (("first", first), ("warm", seconds_of(fit, repeats))):
            ratio = round(lightgbm["seconds"] / found["seconds"], 2)
            report(figure=f"corank fit -m {name}, {when}", **found, alternative="LightGBM, a process", ratio=ratio)
    for words in (
        ["rank", model, rows, "-o", scores, "--force"],
        ["rank", model, letor, "-o", scores, "--force"],
        ["evaluate", rows, scores],
        ["evaluate", letor, scores],
        ["convert", rows, str(folder / "a.store"), "--force"],
        ["convert", letor, str(folder / "b.store"), "--force"],
    ):
        found = seconds_of([*corank, *words], repeats)
        kind = "CSV" if rows in words else "LETOR"
        report(
            figure=f"corank {words[0]}, {kind}, warm",
            **found,
            alternative="import of scikit-learn",
            ratio=round(python["scikit-learn"]["seconds"] / found["seconds"], 2),
        )


def microseconds(work: Callable[[], object], calls: int = 50, repeats: int = 25) -> float:
    work()
    least = np.inf
    for _ in range(repeats):
        began = time.process_time()
        for _ in range(calls):
            work()
        least = min(least, (time.process_time() - began) / calls)
    return 1e6 * float(least)


def predictions() -> None:
    """Time predictions of 100 rows of 20 columns."""
    import lightgbm
    import pandas as pd

    import corank

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(2000, 20)), np.repeat(np.arange(100), 20)
    y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int) + (X[:, 2] > 1)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(20)])
    rows, some = np.ascontiguousarray(X[:100]), frame.iloc[:100].reset_index(drop=True)
    trees = {"verbose": -1, "n_jobs": 1}
    of_array = lightgbm.LGBMRanker(**trees).fit(X, y, group=[20] * 100)
    of_frame = lightgbm.LGBMRanker(**trees).fit(frame, y, group=[20] * 100)
    other = {
        "array": microseconds(lambda: of_array.predict(rows)),
        "frame": microseconds(lambda: of_frame.predict(some)),
        "booster": microseconds(lambda: of_array.booster_.predict(rows)),
    }
    models = {
        "SPD": corank.SPD(),
        "RankRLS, 500 basis rows": corank.RankRLS(kernel="gaussian", n_basis=500, random_state=0),
        "LambdaRank trees": corank.LambdaRank(scorer="trees", random_state=0),
    }
    for name, model in models.items():
        fitted = model.fit(X, y, qid=qid)
        found = {"array": microseconds(lambda fitted=fitted: fitted.predict(rows))}
        fitted = model.fit(frame, y, qid=qid)
        found["frame"] = microseconds(lambda fitted=fitted: fitted.predict(some))
        for kind, least in found.items():
            report(
                figure=f"predict 100 rows of 20, {name}, {kind}",
                microseconds=round(least, 1),
                alternative=f"LGBMRanker, {kind}",
                ratio=round(other[kind] / least, 2),
                ratio_to_booster=round(other["booster"] / least, 2) if kind == "array" else None,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["commands", "predict"])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.only != "predict":
        with tempfile.TemporaryDirectory() as folder:
            commands(Path(folder), arguments.repeats)
    if arguments.only != "commands":
        predictions()


if __name__ == "__main__":
    main()
