"""`corank leaderboard`: files in, table, JSON, CSV, plot and page out."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app


def run(*words):
    return CliRunner().invoke(app, ["leaderboard", *map(str, words)])


@pytest.fixture
def votes(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["model_a,model_b,winner,judge,prompt,note"]
    for at in range(240):
        a, b = rng.choice(4, 2, replace=False)
        winner = (
            "tie" if rng.random() < 0.2 else "model_a" if rng.random() < 1 / (1 + np.exp(1.2 * (a - b))) else "model_b"
        )
        lines.append(f"m{a},m{b},{winner},{'ann' if at % 2 else 'bob'},{at % 12},-")
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "votes.csv"


def test_text(votes):
    done = run(votes)
    assert done.exit_code == 0, done.output
    assert done.output.index("m0") < done.output.index("m1") < done.output.index("m2")
    for expected in ("m0 leads m1", "Judges", "ann", "not used: column 'note'", "Vote next: "):
        assert expected in done.output


def test_json_csv_plot_and_page(votes, tmp_path):
    cheap = tmp_path / "llm.csv"
    cheap.write_text("winner,loser,count\nm0,m1,30\nm1,m2,25\nm2,m3,30\nm1,m0,10\nm3,m2,4\nm2,m1,8\n")
    features = tmp_path / "items.csv"
    features.write_text("name,size\nm0,4\nm1,3\nm2,2\nm3,1\n")
    names = {name: tmp_path / name for name in ("b.csv", "b.png", "b.html")}
    done = run(
        votes, "--cheap", cheap, "--features", features, "--json", "-o", names["b.csv"], "--plot", names["b.png"],
        "--report", names["b.html"], "--goal", "order",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    record = json.loads(done.output)
    assert [row["item"] for row in record["items"]] == ["m0", "m1", "m2", "m3"]
    assert record["n_votes"] == 240
    assert record["slope"] > 0
    assert len(record["next"]) == 3
    assert np.array(record["win_matrix"]).shape == (4, 4)
    assert names["b.csv"].read_text().startswith("item,score,std,low,high,best_rank,worst_rank,votes\nm0,")
    assert names["b.png"].read_bytes().startswith(b"\x89PNG")
    page = names["b.html"].read_text()
    for expected in ("<svg", "Win probabilities", "m0 leads m1", "cannot be told apart", "Next votes"):
        assert expected in page
    # files are not replaced without --force
    again = run(votes, "-o", names["b.csv"])
    assert again.exit_code != 0


def test_the_exit_code_says_that_an_item_is_worse(votes):
    assert run(votes, "--fail-if-worse", "m3", "m0").exit_code == 3
    assert run(votes, "--fail-if-worse", "m0", "m3").exit_code == 0
    assert run(votes, "--fail-if-worse", "m0", "q").exit_code == 1
    assert run(votes, "--fail-if-worse", "m0", "m0").exit_code == 1


def test_bad_files_are_refused_before_work(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,winner\nx,x,a\n")
    for words in ([tmp_path / "a.csv"], [tmp_path / "missing.csv"], [tmp_path / "a.csv", "-o", tmp_path / "b.txt"]):
        assert run(*words).exit_code == 1
