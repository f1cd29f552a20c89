"""
Latency of exported models: the scores of one query of 100 documents, in corank and in what `corank export` writes.

Every line is one figure: microseconds per query, the median of repeats. Node.js is timed inside its process.
With --table, the largest difference between model and target for every kind of model, as Markdown.
Run: python benchmarks/bench_export.py [--quick] [--documents 100] [--table]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxruntime
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank.data.routing import fit_with_qid
from corank.deploy.export.describe import describe
from corank.deploy.export.export import TARGETS, make_export, verify
from corank.deploy.export.target import ExportOptions
from corank.deploy.export.targets.json_form import json_form
from corank.deploy.export.targets.onnx_graph import make_graph
from corank.errors import InputError

N_FEATURES = 46

_NODE = """
const { score } = require(process.argv[1]);
const { model, rows, repeats } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const times = [];
for (let r = 0; r < repeats; r++) {
  const begin = process.hrtime.bigint();
  for (const row of rows) score(model, row);
  times.push(Number(process.hrtime.bigint() - begin) / 1000);
}
times.sort((a, b) => a - b);
console.log(times[Math.floor(times.length / 2)]);
"""


def microseconds(work: Callable[[], object], repeats: int) -> float:
    for _ in range(5):
        work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def node_microseconds(form: dict[str, Any], rows: np.ndarray, repeats: int) -> float | None:
    node = shutil.which("node")
    if node is None:
        return None
    script = Path(corank.__file__).parent / "export" / "scorer.js"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.json")
        data.write_text(json.dumps({"model": form, "rows": rows.tolist(), "repeats": repeats}), encoding="utf-8")
        run = subprocess.run([node, "-e", _NODE, str(script), str(data)], capture_output=True, text=True, check=True)
    return float(run.stdout)


def models(quick: bool) -> dict[str, Any]:
    n_trees = 50 if quick else 200
    return {
        "linear": corank.RankRLS(),
        "perceptron (32)": corank.LambdaRank(scorer="mlp", n_steps=50, random_state=0),
        f"{n_trees} trees": corank.LambdaRank(scorer="trees", n_steps=n_trees, random_state=0),
        "gaussian, 100 basis rows": corank.RankRLS(kernel="gaussian", n_basis=100, random_state=0),
    }


def kinds() -> dict[str, Any]:
    boosted = {"scorer": "trees", "n_steps": 30, "random_state": 0}
    perceptron = {"scorer": "mlp", "n_steps": 50, "random_state": 0}
    kernels = ("gaussian", "ard", "laplacian", "chi-square", "polynomial", "cosine")
    return {
        "SPD": corank.SPD(),
        "CRR": corank.CRR(mix=0.3),
        "LCRA": corank.LCRA(random_state=0),
        "RankSVM": corank.RankSVM(),
        "RankSVM, gaussian": corank.RankSVM(kernel="gaussian"),
        "RankRLS": corank.RankRLS(),
        **{f"RankRLS, {kernel}": corank.RankRLS(kernel=kernel) for kernel in kernels},
        "RankRLS, n_basis": corank.RankRLS(kernel="gaussian", n_basis=20, random_state=0),
        "CoRankRLS": corank.CoRankRLS(random_state=0),
        "CoRankRLS, gaussian": corank.CoRankRLS(kernel="gaussian", n_basis=20, random_state=0),
        "ViewRankRLS": corank.ViewRankRLS(random_state=0),
        "ViewRankRLS, mixed": corank.ViewRankRLS(
            [corank.View([0, 1], "gaussian"), corank.View([2, 3])], random_state=0
        ),
        "RankingPursuit": corank.RankingPursuit(20),
        "RankingPursuit, columns": corank.RankingPursuit(5, dictionary="columns", mix=0.5),
        "CoRankingPursuit": corank.CoRankingPursuit(10, random_state=0),
        "LambdaRank": corank.LambdaRank(random_state=0),
        "LambdaRank, perceptron": corank.LambdaRank(**perceptron),
        "LambdaRank, trees": corank.LambdaRank(**boosted),
        "Calibrated, isotonic": corank.Calibrated(corank.SPD()),
        "Calibrated, logistic": corank.Calibrated(corank.SPD(), "logistic"),
        "Calibrated trees": corank.Calibrated(corank.LambdaRank(**boosted)),
        "ColumnMean": corank.ColumnMean([0, 1], [1, -1], method=None),
        "ResidualRanker": corank.base.ResidualRanker(
            corank.ColumnMean([0, 1], method=None), corank.RankRLS(kernel="gaussian")
        ),
        "StandardScaler, SPD": make_pipeline(StandardScaler(), corank.SPD()),
        "MinMaxScaler, SPD": make_pipeline(MinMaxScaler(), corank.SPD()),
        "MaxAbsScaler, perceptron": make_pipeline(MaxAbsScaler(), corank.LambdaRank(**perceptron)),
        "StandardScaler, trees": make_pipeline(StandardScaler(), corank.LambdaRank(**boosted)),
        "StandardScaler, gaussian": make_pipeline(StandardScaler(), corank.RankRLS(kernel="gaussian")),
        "Landmarks, SPD": make_pipeline(corank.base.Landmarks(15, random_state=0), corank.SPD()),
        "PreferenceGP": corank.PreferenceGP(),
        "OrdinalGP": corank.OrdinalGP(),
        "PDGD": corank.PDGD(),
    }


def differences(model: Any, X: np.ndarray, qid: np.ndarray) -> list[str]:
    """Return a cell for each target: the largest difference, and changed orders if there are any."""
    cells = []
    for target in TARGETS:
        try:
            described, export = make_export(model, target)
        except InputError:
            cells.append("")
            continue
        found = verify(export, described, model.predict(X), X, qid)
        wrong = found.changed_orders + found.tied_orders + found.unexplained_rows
        cells.append(f"{found.largest_difference:.0e}" + (f" ({wrong} changed)" if wrong else ""))
    return cells


def print_table() -> None:
    problem = corank.make_ranking(30, 10, features_per_view=5, random_state=0)
    X = np.abs(problem.X) * 3 + 0.1
    y = corank.data.mask_scores(problem.y, problem.qid, fraction=0.3, random_state=0)
    print(f"| model | {' | '.join(TARGETS)} |\n|{'---|' * (1 + len(TARGETS))}")
    for name, model in kinds().items():
        print(
            f"| {name} | {' | '.join(differences(fit_with_qid(model, X, y, problem.qid), X, problem.qid))} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    repeats = 50 if chosen.quick else 500
    warnings.simplefilter("ignore")
    if chosen.table:
        print_table()
        return
    problem = corank.make_ranking(100, 20, n_views=2, features_per_view=N_FEATURES // 2, random_state=0)
    rows = np.random.default_rng(1).normal(size=(chosen.documents, N_FEATURES))
    for name, model in models(chosen.quick).items():
        model.fit(problem.X, problem.y, qid=problem.qid)
        described = describe(model)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(make_graph(described, ExportOptions()), settings)
        single = rows.astype(np.float32)
        times = {
            "corank": microseconds(lambda model=model: model.predict(rows), repeats),
            "onnxruntime": microseconds(lambda s=session, x=single: s.run(None, {"features": x}), repeats),
            "Node.js": node_microseconds(json_form(described), rows, repeats),
        }
        if "trees" in name:
            booster = lightgbm.Booster(model_str=model.trees_.to_lightgbm())
            times["LightGBM"] = microseconds(lambda b=booster: b.predict(rows, num_threads=1), repeats)
        line = {key: None if value is None else round(value, 1) for key, value in times.items()}
        print(json.dumps({"figure": f"{name}: microseconds per {chosen.documents} documents", **line}), flush=True)


if __name__ == "__main__":
    main()
