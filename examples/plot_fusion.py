"""
Combine two retrievers from 20 judged queries
=============================================

How to combine BM25 and vectors is learnt from 20 judged queries, and tried on 40 others. Reciprocal rank fusion (RRF)
needs no judgements.
"""

import subprocess
import sys
import tempfile

import numpy as np
from matplotlib import pyplot

from corank import Fusion, evaluate
from corank.data import read_grades, read_runs
from corank.models import FusionDefinition

folder = tempfile.mkdtemp()
subprocess.run([sys.executable, "-m", "corank", "demo", "--files", "--output", folder], check=True)
runs = read_runs([f"{folder}/bm25.run", f"{folder}/vectors.run"])
few, others = (runs.join(read_grades(f"{folder}/{name}.csv")[0])[0] for name in ("judgements", "others"))

# %%
# A document that a retriever does not list has no score there.
scores = {name: np.nan_to_num(column, nan=-1e9) for name, column in zip(runs.names, runs.X.T, strict=True)}
scores["RRF"] = FusionDefinition.rrf(runs.names).score(runs.X, runs.qid)
scores["fusion"] = Fusion(random_state=0).fit(runs.X, few, qid=runs.qid).predict(runs.X, qid=runs.qid)
tested = ~np.isnan(others)
values = {
    name: evaluate(others[tested], score[tested], runs.qid[tested], "nDCG@10")["nDCG@10"].mean
    for name, score in scores.items()
}
print(values)

figure, panel = pyplot.subplots(figsize=(6.4, 2.6), layout="constrained")
bars = panel.barh(list(values), list(values.values()), color=["0.7", "0.7", "0.7", "C0"])
panel.bar_label(bars, fmt="%.3f", padding=3)
panel.invert_yaxis()
panel.set(xlim=(0, 1), xlabel="nDCG@10 of queries that were not used for learning")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "fusion.png", dpi=130)
