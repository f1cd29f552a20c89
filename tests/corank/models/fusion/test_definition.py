"""Definitions: scores by hand, and files that are damaged or hostile."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corank.errors import InputError
from corank.models.fusion import EngineForm, Estimate, FusionDefinition, Term, load_fusion

NAN = np.nan


def some_definition():
    return FusionDefinition(
        ("bm25", "vectors"),
        (Term("bm25", "minmax", 0.5), Term("vectors", "reciprocal_rank", 30.0, 60.0), Term("vectors", "presence", 0.1)),
        "a rule",
        Estimate("nDCG@10", 0.5, 0.4, None, 0.95, 7),
        "a pool",
        ("a note",),
        (EngineForm("rrf", 60.0, (0.5, 0.5), 0.01, -0.01, 0.03), EngineForm("minmax", None, (1.0, 0.0))),
    )


def test_scores_are_the_sum_of_the_terms():
    X = [[3.0, 0.2], [1.0, NAN], [NAN, 0.6]]
    expected = [0.5 + 30 / 62 + 0.1, 0.0, 30 / 61 + 0.1]
    np.testing.assert_allclose(some_definition().score(X), expected)


def test_files_come_back_equal(tmp_path):
    path = tmp_path / "fusion.json"
    some_definition().save(path)
    assert load_fusion(path) == some_definition()
    with pytest.raises((InputError, FileExistsError)):
        some_definition().save(path)
    some_definition().save(path, overwrite=True)
    assert "documents that it did not return" in path.read_text()


def damage(change):
    value = json.loads(some_definition().to_json())
    change(value)
    return json.dumps(value)


DAMAGES = {
    "text": "not JSON",
    "deep": "[" * 100_000,
    "list": "[]",
    "format": damage(lambda v: v.update(format="other")),
    "version": damage(lambda v: v.update(version=2)),
    "no terms": damage(lambda v: v.update(terms=[])),
    "zero weights": damage(lambda v: [term.update(weight=0) for term in v["terms"]]),
    "transform": damage(lambda v: v["terms"][0].update(transform="__import__")),
    "retriever": damage(lambda v: v["terms"][0].update(retriever="other")),
    "weight": damage(lambda v: v["terms"][0].update(weight="1")),
    "true": damage(lambda v: v["terms"][0].update(weight=True)),
    "huge": damage(lambda v: v["terms"][0].update(weight=1e301)),
    "integer": damage(lambda v: v["terms"][0].update(weight=10**400)),
    "NaN": some_definition().to_json().replace("0.5", "NaN"),
    "k": damage(lambda v: v["terms"][1].update(k=-61)),
    "no k": damage(lambda v: v["terms"][1].pop("k")),
    "unknown": damage(lambda v: v["terms"][0].update(code="x")),
    "lacking": damage(lambda v: v["terms"][0].pop("weight")),
    "twice": damage(lambda v: v.update(retrievers=["bm25", "bm25"])),
    "names": damage(lambda v: v.update(retrievers="bm25")),
    "form": damage(lambda v: v["engine_forms"][0].update(weights=[2.0, -1.0])),
    "no rule": damage(lambda v: v.pop("rule")),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_give_one_sentence(tmp_path, name):
    path = tmp_path / "fusion.json"
    path.write_text(DAMAGES[name])
    with pytest.raises(InputError):
        load_fusion(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "fusion.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        load_fusion(path)
    path.write_bytes(b" " * 2_000_000)
    with pytest.raises(InputError, match="bytes"):
        load_fusion(path)


def test_columns_are_counted():
    with pytest.raises(InputError, match="bm25, vectors"):
        some_definition().score([[1.0]])
