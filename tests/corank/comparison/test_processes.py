"""Comparisons in real processes: killed at any moment, ended by a budget, and measured."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import joblib
import numpy as np
import pytest

import corank
from corank import RankRLS
from corank.comparison.methods import Settings, find_methods
from corank.comparison.problem import InputRows, make_problem
from corank.comparison.runner import PROBLEM, FoldTask, WorkerPool
from corank.comparison.study import RESULTS, STUDY
from corank.metrics import CONVENTIONS
from helpers.reference_pursuit import Greedy, Sleeper

SCRIPT = """
import sys, time
import numpy as np
import corank
from sklearn.base import BaseEstimator

class Slow(BaseEstimator):
    def fit(self, X, y):
        time.sleep(600)
    def predict(self, X):
        return X[:, 0]

problem = corank.make_ranking(12, 6, random_state=0)
models = {"ranked": corank.RankRLS(alpha=1.0)}
if sys.argv[2] == "slow":
    models["slow"] = Slow()
study = corank.compare(models, problem.X, problem.y, problem.qid, folds=3, fractions=(), folder=sys.argv[1], n_jobs=1)
print(study.winner)
"""


@pytest.fixture(scope="module")
def problem():
    return corank.make_ranking(12, 6, random_state=0)


def results(folder):
    return (folder / RESULTS).read_bytes().splitlines() if (folder / RESULTS).exists() else []


@pytest.mark.long
def test_time_and_death_are_those_of_the_method(problem):
    models = {"small": Greedy(1), "large": Greedy(300, 0.2), "dead": Greedy(dies=True)}
    study = corank.compare(models, problem.X, problem.y, problem.qid, folds=2, fractions=(), n_jobs=1)
    small, large, dead = (study.outcome(name) for name in models)
    assert large.fit_seconds >= 0.2
    assert dead.error == "its process was killed, perhaps out of memory."
    assert dead.evaluation is None
    # the worker continues after a killed task
    assert small.evaluation.means == large.evaluation.means


@pytest.mark.long
def test_a_killed_study_continues(tmp_path):
    script, folder = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    pytest.importorskip("cloudpickle")  # which carries the class of a script
    command = [sys.executable, str(script), str(folder), "slow"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        # random, columns and ranked; slow ones are under way
        while len(results(folder)) < 9:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(results(folder)) == 9
    assert not (folder / STUDY).exists()
    before = results(folder)
    # no process continues for a killed study
    for _ in range(3000):
        if not learning(folder):
            break
        time.sleep(0.1)
    assert not learning(folder)
    second = subprocess.run([sys.executable, str(script), str(folder), ""], capture_output=True, text=True, check=True)
    assert second.stdout.strip()
    # only the refit of the winner is new
    assert results(folder)[:-1] == before
    assert (folder / STUDY).exists()
    # scratch files of the killed study are removed
    assert not list(folder.glob(".problem.*"))


def learning(folder: Path) -> list[int]:
    """Processes that work on a study."""
    found = []
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc").exists() else ():
        try:
            maps = (entry / "maps").read_text()
        except OSError:
            continue
        if str(folder) in maps:
            found.append(int(entry.name))
    return found


@pytest.mark.long
def test_the_deadline_stops_a_task_and_the_next_one_runs(problem, tmp_path):
    rows = make_problem(InputRows(problem.X, problem.y, problem.qid), None, 2, 0)[0]
    joblib.dump(rows, tmp_path / PROBLEM)
    methods = find_methods({"quick": RankRLS(alpha=1.0), "slow": Sleeper()}, None)
    with closing(WorkerPool(methods, Settings("AP", CONVENTIONS["corank"], 0, None), 1, tmp_path / "m")) as pool:
        pool.scratch = tmp_path

        def run(name, deadline):
            return list(pool.run([FoldTask(name, 0)], deadline))

        ((task, first),) = run("quick", None)
        began = time.monotonic()
        assert run("slow", began + 0.5) == []
        assert time.monotonic() - began < 500  # it was not waited for
        ((_, second),) = run("quick", None)
    assert task == FoldTask("quick", 0)
    np.testing.assert_array_equal(first.scores, second.scores)
