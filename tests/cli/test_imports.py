"""Commands that learn nothing import no library that takes long to import, if files are small."""

import json
import subprocess
import sys

import numpy as np

from corank import SPD, load, save

HEAVY = ["numba", "pandas", "scipy.sparse", "scipy.stats", "sklearn"]

RUN = """
import json, sys
from corank.cli import main
commands, heavy = json.loads(sys.argv[1])
for words in commands:
    sys.argv = ["corank", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    assert not [name for name in heavy if name in sys.modules], (words, [n for n in heavy if n in sys.modules])
"""


def test_rank_evaluate_and_convert_need_neither_numba_nor_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(40, 3)).round(3), np.repeat([1, 2, 3, 4], 10)
    y = (X[:, 0] > 0).astype(int)
    model, text, table, scores = (tmp_path / name for name in ("model", "rows.txt", "rows.csv", "scores"))
    ranker = SPD().fit(X, y, qid=qid)
    save(ranker, model)
    judged = list(zip(y, qid, X, strict=True))
    lines = [f"{a} qid:{q} " + " ".join(f"{j}:{x}" for j, x in enumerate(row, 1)) for a, q, row in judged]
    text.write_text("\n".join(lines) + "\n")
    cells = [",".join(map(str, (q, a, *row))) for a, q, row in judged]
    table.write_text("\n".join(["qid,label,a,b,c", *cells]) + "\n")
    commands = [
        ["rank", model, text, "-o", scores],
        ["evaluate", text, scores, "-m", "nDCG@10", "-m", "AP", "-m", "P@5", "-m", "RR"],
        ["convert", text, tmp_path / "a.store"],
        ["convert", table, tmp_path / "b.store"],
        ["evaluate", table, scores],
        ["rank", model, table, "-o", scores, "--force"],
    ]
    words = json.dumps([[list(map(str, command)) for command in commands], HEAVY])
    done = subprocess.run([sys.executable, "-c", RUN, words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # the same bits as the ranker itself
    assert np.loadtxt(scores).tolist() == load(model).predict(X).tolist()
