from __future__ import annotations

from typer.testing import CliRunner

import corank
from corank.cli import app


def test_the_demo_learns_compares_and_saves(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for word in ("SPD", "CRR", "LCRA", "nDCG@10", "Wilcoxon", "it ranks the same"):
        assert word in result.output
    model = corank.load(tmp_path / "best.safetensors")
    assert model.n_features_in_ == corank.open_store(tmp_path / "training.store").data.n_features
    again = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert again.exit_code == 0, again.output
