from __future__ import annotations

import numpy as np
import pytest

from corank import PDGD, RankingData, make_ranking
from corank.base.query_scaler import QueryScaler
from corank.clicks import CascadeClicks, simulate
from corank.data import write_letor
from corank.errors import InputError


@pytest.fixture
def graded(tmp_path):
    problem = make_ranking(12, 8, random_state=0)
    path = tmp_path / "graded.txt"
    write_letor(path, problem.X, problem.y, problem.qid)
    return path, problem


def test_the_table_is_that_of_simulate(says, graded):
    path, problem = graded
    words = ("--scale", "minmax", "--impressions", "50", "--runs", "2", "--stop-after", "any", "--set", "eta0=0.05")
    said = says("simulate-clicks", str(path), "--model", "pdgd", "--user", "navigational", *words)
    data = RankingData.of(QueryScaler().fit_transform(problem.X, qid=problem.qid), problem.y, problem.qid)
    user = CascadeClicks("navigational", 5, "any")
    curve = simulate(PDGD(0.05), data, user, 50, n_runs=2, random_state=0)
    last = next(line for line in reversed(said.splitlines()) if line.strip(" │|").startswith("50"))
    numbers = [float(cell) for cell in last.replace("│", " ").split()]
    np.testing.assert_allclose(numbers[1], curve.mean()[-1], atol=1e-4)
    np.testing.assert_allclose(numbers[3], curve.mean("online")[-1], atol=1e-4)


def test_a_prior_a_test_file_and_a_picture(says, graded, tmp_path):
    path, _ = graded
    picture = tmp_path / "clicks.png"
    words = ("--impressions", "20", "--runs", "2", "--prior", "1-3", "--test", str(path), "--plot", str(picture))
    said = says("simulate-clicks", str(path), "--model", "pairwise-epsilon-greedy", *words)
    assert "on the test rows" in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"clicks\.png"):
        says("simulate-clicks", str(path), *words)


def test_bad_words(says, graded):
    path, _ = graded
    with pytest.raises(InputError, match="--model rankrls cannot learn from clicks; choose pdgd"):
        says("simulate-clicks", str(path), "--model", "rankrls")
    with pytest.raises(InputError, match="unknown click model 'nobody'"):
        says("simulate-clicks", str(path), "--user", "nobody", "--impressions", "1")
    with pytest.raises(InputError, match="names feature 99"):
        says("simulate-clicks", str(path), "--prior", "99", "--impressions", "1")
    with pytest.raises(InputError, match="PDGD has no parameter 'etta'"):
        says("simulate-clicks", str(path), "--set", "etta=1")
