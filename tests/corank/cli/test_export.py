"""`corank export`: files, remarks, new names, verification, and refusals in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.deploy.export import FUSION_TARGETS, TARGETS
from corank.errors import InputError

EXPORT = __import__("importlib").import_module("corank.cli.export")


@pytest.fixture
def saved(made, tmp_path):
    """A linear model with names, and the rows as CSV."""
    pandas = pytest.importorskip("pandas")
    names = [f"f{j}" for j in range(made.X.shape[1] - 1)] + ["bm25"]
    frame = pandas.DataFrame(made.X.astype(float), columns=names)
    corank.save(corank.SPD("squared").fit(frame, made.y, qid=made.qid), tmp_path / "model.safetensors")
    frame.insert(0, "qid", made.qid)
    frame.insert(0, "label", made.y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_the_command_lists_all_targets():
    assert set(EXPORT.targets().split(", ")) == {*TARGETS, *FUSION_TARGETS}


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr", "vespa", "sql", "onnx"])
def test_a_model_is_written_and_verified(target, saved, says):
    if target == "onnx":
        pytest.importorskip("onnxruntime")
    words = (
        "export",
        saved / "model.safetensors",
        "--to",
        target,
        "-o",
        saved / "out.x",
        "--verify",
        saved / "rows.csv",
    )
    said = says(*words)
    assert "wrote" in said
    assert "0 changed, 0 tied, 0 not explained by precision" in said
    report = json.loads((saved / "out.x.verify.json").read_text())
    assert report["n_rows"] == 240
    assert report["n_queries"] == 30
    again = json.loads(says(*words, "--force", "--json"))
    assert again["verification"] == report
    assert again["files"][0] == str(saved / "out.x")


def test_a_second_file_never_replaces_the_model(saved):
    """OpenSearch's feature set is written beside the main file; with --force too, an input stays."""
    (saved / "model.safetensors").rename(saved / "m.features.json")
    before = (saved / "m.features.json").read_bytes()
    words = ["export", str(saved / "m.features.json"), "--to", "opensearch", "-o", str(saved / "m"), "--force"]
    with pytest.raises(InputError, match="is also an input"):
        app(words, standalone_mode=False)
    assert (saved / "m.features.json").read_bytes() == before


def test_features_are_renamed(saved, says):
    (saved / "names.toml").write_text('bm25 = "bm25(title)"\n')
    says(
        "export", saved / "model.safetensors", "--to", "vespa", "-o", saved / "m.profile", "--map", saved / "names.toml"
    )
    text = (saved / "m.profile").read_text()
    assert "* bm25(title)" in text
    assert "* attribute(f0)" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--map", "odd.toml"], "odd.toml: bm25 is 3; write a new name in quotes"),
        (["--map", "broken.toml"], "is not valid TOML"),
        (["--map", "unknown.toml"], "the model has no feature 'bm2'; did you mean 'bm25'?"),
        (["--shift", "much"], "--shift is 'much'; pass a number, or auto."),
        (["--shift", "auto"], "needs rows for this model"),
    ],
)
def test_wrong_options_are_one_sentence(words, sentence, saved, monkeypatch):
    monkeypatch.chdir(saved)
    (saved / "odd.toml").write_text("bm25 = 3\n")
    (saved / "broken.toml").write_text("bm25 = \n")
    (saved / "unknown.toml").write_text("bm2 = 'x'\n")
    result = CliRunner().invoke(app, ["export", "model.safetensors", "--to", "solr", "-o", "m.json", *words])
    assert result.exit_code == 1
    assert sentence in str(result.exception)
    assert not (saved / "m.json").exists()


def test_calibration_can_be_left_out(made, tmp_path, says):
    model = corank.Calibrated(corank.SPD("squared")).fit(made.X, made.y, qid=made.qid)
    corank.save(model, tmp_path / "c.safetensors")
    words = ("export", tmp_path / "c.safetensors", "--to", "solr", "-o", tmp_path / "m.json")
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert "export without calibration" in str(result.exception)
    says(*words, "--uncalibrated")
    weights = json.loads((tmp_path / "m.json").read_text())["params"]["weights"]
    np.testing.assert_allclose(list(weights.values()), model.ranker_.coef_, rtol=1e-6)


def test_models_without_names_get_numbers(made, tmp_path):
    corank.save(corank.SPD("squared").fit(made.X, made.y, qid=made.qid), tmp_path / "m.safetensors")
    words = ["export", tmp_path / "m.safetensors", "--to", "opensearch", "-o", tmp_path / "m.json"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0
    assert "features are f1, f2, ... by position; rename them with --map." in result.stderr
    assert "refuses negative scores" in result.stderr


def test_a_wrong_export_ends_with_an_error(saved, monkeypatch):
    """If the engine's scores are not explained by its precision, the command fails."""
    from dataclasses import replace

    module = __import__("importlib").import_module("corank.deploy.export.export")
    write = TARGETS["solr"]

    def wrong(described, options):
        made = write(described, options)
        return replace(made, evaluate=lambda rows: made.evaluate(rows) * 1.1)

    monkeypatch.setitem(module.TARGETS, "solr", wrong)
    words = [
        "export",
        saved / "model.safetensors",
        "--to",
        "solr",
        "-o",
        saved / "m.json",
        "--verify",
        saved / "rows.csv",
    ]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 1
    assert "do not deploy it" in str(result.exception)
