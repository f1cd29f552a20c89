"""Models that version 0.2 saved are read, and predict the same. The file was written by 0.2.0 on x86."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import corank
from corank.errors import InputError

with zipfile.ZipFile(Path(__file__).with_name("saved_0_2.zip")) as archive:
    SAVED = {name.removesuffix(".safetensors"): archive.read(name) for name in archive.namelist()}
EXPECTED = json.loads(SAVED.pop("expected.json"))
REMOVED = {"DBGD", "MGD"}
ROWS = np.abs(np.random.default_rng(1).normal(size=(7, 5)))
ITEMS, USERS = [0, 3, 5, 9, 0, 1, 2], ["u", "u", "v", "y", "stranger", "w", "x"]


def predicted(kind, model):
    if kind in ("Collaborative", "CollaborativeGP", "ItemMean"):
        return model.predict(ITEMS, USERS)
    if kind == "OnlineLabelRanker":  # its labels are names
        return model.utilities(ROWS)
    if kind == "QueryScaler":
        return model.transform(ROWS, qid=list("aabbbac"))
    return model.transform(ROWS) if kind in ("Landmarks", "Smooth") else model.predict(ROWS)


@pytest.mark.parametrize("kind", sorted(SAVED))
def test_a_model_of_the_last_version_is_read_and_predicts_the_same(kind, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(SAVED[kind])
    if kind in REMOVED:
        with pytest.raises(InputError, match=kind):
            corank.load(path)
        return
    model = corank.load(path)
    if EXPECTED[kind] is not None:
        np.testing.assert_allclose(
            np.asarray(predicted(kind, model), dtype=float), EXPECTED[kind], rtol=1e-7, atol=1e-9
        )
