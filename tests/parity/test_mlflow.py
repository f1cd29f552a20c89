"""The recipe of docs/coming-from/pyterrier.md: a model and its evaluation in MLflow, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

import corank

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from" / "pyterrier.md"


def test_the_recipe_logs_a_model_that_loads_again(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    problem = corank.make_ranking(n_queries=10, rows_per_query=8, random_state=0)
    model = corank.RankRLS(kernel="linear").fit(problem.X, problem.y, qid=problem.qid)
    evaluation = corank.evaluate(problem.y, model.predict(problem.X), problem.qid, ["nDCG@10", "AP"])
    recipe = PAGE.read_text(encoding="utf-8").split("with MLflow")[1].split("```")[1]
    exec(recipe, {"corank": corank, "model": model, "evaluation": evaluation})
    run = mlflow.search_runs(output_format="list")[0]
    assert run.data.metrics["nDCG_at_10"] == pytest.approx(evaluation.means["nDCG@10"])
    assert run.data.params["kernel"] == "linear"
    path = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="model.safetensors")
    assert (corank.load(path).predict(problem.X) == model.predict(problem.X)).all()
