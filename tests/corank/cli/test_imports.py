"""Commands on small files import no library that takes long to import and is not needed."""

import json
import subprocess
import sys

import numpy as np
import pytest

from corank import SPD, RankRLS, load, save

HEAVY = ["numba", "pandas", "scipy.sparse", "scipy.stats", "sklearn"]
# scipy.stats is there if scikit-learn is, but is loaded only when it is used
HEAVY_OF_FITS = [
    "numba",
    "pandas",
    "scipy.optimize",
    "scipy.stats._stats_py",
    "sklearn.model_selection",
    "sklearn.pipeline",
]

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


def run(commands, heavy):
    words = json.dumps([[list(map(str, command)) for command in commands], heavy])
    done = subprocess.run([sys.executable, "-c", RUN, words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
    run(commands, HEAVY)
    # the same bits as the ranker itself
    assert np.loadtxt(scores).tolist() == load(model).predict(X).tolist()


def written_table(folder):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(40, 3)).round(3), np.repeat([1, 2, 3, 4], 10)
    y = (X[:, 0] > 0).astype(int)
    cells = [",".join(map(str, (q, a, *row))) for a, q, row in zip(y, qid, X, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["qid,label,a,b,c", *cells]) + "\n")
    return X, y, qid


def test_small_fits_need_no_numba_and_little_of_scikit_learn(tmp_path):
    X, y, qid = written_table(tmp_path)
    table = tmp_path / "rows.csv"
    run([["fit", table, "-m", name, "-o", tmp_path / name] for name in ("spd", "rankrls")], HEAVY_OF_FITS)
    for kind in (SPD, RankRLS):
        # this process may have compiled kernels
        learnt = kind().fit(X, y, qid=qid).coef_
        assert load(tmp_path / kind.__name__.lower()).coef_.tolist() == learnt.tolist()


@pytest.mark.long  # it may compile
def test_the_default_model_needs_numba_but_no_other_large_library(tmp_path):
    written_table(tmp_path)
    table, model = tmp_path / "rows.csv", tmp_path / "model"
    run([["fit", table, "-o", model]], [name for name in HEAVY_OF_FITS if name != "numba"])
    lines = table.read_text().splitlines()
    unjudged = [",".join(["1", "", *line.split(",")[2:]]) for line in lines[1:5]]
    table.write_text("\n".join([*lines, *unjudged]) + "\n")
    assert load(model).members_
    run([["rank", model, table, "-o", tmp_path / "scores"]], HEAVY_OF_FITS)


DELAYED = """
import sys
from corank.cli.imports import import_scikit_learn
import_scikit_learn()
assert "pandas" not in sys.modules and "scipy.stats._stats_py" not in sys.modules
import pandas, scipy.stats, sklearn.linear_model
assert scipy.stats.norm.cdf(0.0) == 0.5
frame = pandas.DataFrame({"a": [1.0, 2.0]})
assert sklearn.linear_model.Ridge().fit(frame, [0.0, 1.0]).feature_names_in_.tolist() == ["a"]
"""


@pytest.mark.long
def test_what_a_command_delays_can_be_used_later():
    subprocess.run([sys.executable, "-c", DELAYED], check=True)
