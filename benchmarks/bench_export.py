"""
Latency of exported models: the scores of one query of 100 documents, in corank and in what `corank export` writes.

Every line is one figure: microseconds per query, the median of repeats. Node.js is timed inside its process.
Run: python benchmarks/bench_export.py [--quick] [--documents 100]
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

import corank
from corank.export.describe import describe
from corank.export.json_form import json_form
from corank.export.numpy_file import write_numpy
from corank.export.onnx_graph import make_graph
from corank.export.target import ExportOptions

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--documents", type=int, default=100)
    chosen = parser.parse_args()
    repeats = 50 if chosen.quick else 500
    warnings.simplefilter("ignore")
    problem = corank.make_ranking(100, 20, n_views=2, features_per_view=N_FEATURES // 2, random_state=0)
    rows = np.random.default_rng(1).normal(size=(chosen.documents, N_FEATURES))
    for name, model in models(chosen.quick).items():
        model.fit(problem.X, problem.y, qid=problem.qid)
        described = describe(model)
        text = write_numpy(described, ExportOptions()).files[""].decode()
        space: dict[str, Any] = {"__name__": "exported"}
        exec(compile(text, "exported.py", "exec"), space)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(make_graph(described, ExportOptions()), settings)
        single = rows.astype(np.float32)
        times = {
            "corank": microseconds(lambda model=model: model.predict(rows), repeats),
            "numpy file": microseconds(lambda space=space: space["score"](rows), repeats),
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
