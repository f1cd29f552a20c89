from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from safetensors import SafetensorError

import corank
from corank import registry
from corank.data.synthetic import make_ranking
from corank.deploy.persist.container import read_container
from corank.errors import InputError
from helpers.forge import forge_model
from helpers.plain_ranker import PlainRanker

PROBLEM = make_ranking(5, 6, random_state=0)


@pytest.fixture(autouse=True)
def _exported(monkeypatch):
    monkeypatch.setattr(corank.models, "PlainRanker", PlainRanker, raising=False)
    monkeypatch.setattr(corank.models, "__all__", [*corank.models.__all__, "PlainRanker"])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    corank.save(PlainRanker(alpha=0.1).fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid), path)
    return path


def rewrite(path, change):
    """Change the JSON header of a saved model and write it back, leaving the tensors alone."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    outer = json.loads(raw[8 : 8 + length])
    header = json.loads(outer["__metadata__"]["corank"])
    change(header)
    outer["__metadata__"]["corank"] = json.dumps(header)
    text = json.dumps(outer).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def test_a_model_survives_and_is_no_pickle(path):
    model = corank.load(path)
    again = PlainRanker(alpha=0.1).fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.n_features_in_ == 20
    assert b"pickle" not in path.read_bytes()


def test_every_byte_counts(path):
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(raw), 60, replace=False):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(InputError):
            corank.load(path)


@pytest.mark.parametrize("keep", [0, 4, 50, 400, -1])
def test_a_truncated_file_is_refused(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"is truncated or not a corank model .*save"):
        corank.load(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda h: h.update(format=2), "format 2, newer than format 1 .* upgrade corank"),
        (lambda h: h.pop("params"), "damaged header: it must hold exactly"),
        (lambda h: h.update(state=[]), "damaged header: state must be a dict"),
        (lambda h: h["params"].update(alpha=7.0), "does not match its checksum"),
    ],
)
def test_a_changed_header_is_refused(path, change, sentence):
    rewrite(path, change)
    with pytest.raises(InputError, match=sentence):
        corank.load(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda h: h.update({"class": "Forest"}), "holds a Forest, which corank .* cannot load"),
        (lambda h: h.update({"class": "read_letor"}), "holds a read_letor, which corank"),
        (lambda h: h.update({"class": "Ranker"}), "holds a Ranker, which corank"),
        (lambda h: h["requests"].update(fit={"colour": True}), "contains invalid metadata requests"),
        (lambda h: h["requests"].update(fit=3), "contains invalid metadata requests"),
        (lambda h: h["requests"].update(transform={"qid": True}), "contains invalid metadata requests"),
        (lambda h: h["requests"].update(reduce={}), "contains invalid metadata requests"),
        (lambda h: h["params"].update(beta=7.0), "sets beta, which PlainRanker does not have"),
        (lambda h: h["state"].update(__class__=1), "not the name of a fitted attribute"),
        (lambda h: h["state"].update(fit=1), "not the name of a fitted attribute"),
        (lambda h: h["state"].update(extra_={"pickle": "x"}), "contains an invalid value"),
        (lambda h: h["state"].update(extra_={"array": "nowhere"}), "contains an invalid value"),
    ],
)
def test_a_forged_file_with_a_right_checksum_is_refused(path, change, sentence, monkeypatch):
    monkeypatch.setattr("corank.deploy.persist.container.digest_of", lambda header, tensors: "right")

    def forge(header):
        header["sha256"] = "right"
        change(header)

    rewrite(path, forge)
    with pytest.raises(InputError, match=sentence):
        corank.load(path)


def test_what_cannot_be_saved_leaves_nothing_behind(tmp_path):
    path = tmp_path / "model.safetensors"
    model = PlainRanker(alpha=0.1)
    with pytest.raises(InputError, match="this PlainRanker is not fitted"):
        corank.save(model, path)
    model.fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    model.helper_ = lambda x: x
    with pytest.raises(InputError, match="helper_ is a function, which cannot be saved"):
        corank.save(model, path)

    class Private(PlainRanker):
        pass

    with pytest.raises(InputError, match="the model is a Private"):
        corank.save(Private().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid), path)
    assert not list(tmp_path.iterdir())


def test_a_missing_or_foreign_file_is_refused(tmp_path):
    from safetensors.numpy import save_file

    with pytest.raises(InputError, match="is not a file"):
        corank.load(tmp_path / "none")
    save_file({"a": np.zeros(2)}, tmp_path / "foreign")
    with pytest.raises(InputError, match="not a corank model"):
        corank.load(tmp_path / "foreign")


def test_a_full_disk_gets_one_sentence_and_leaves_the_old_model(path, monkeypatch):
    def full(tensors, scratch, metadata):
        scratch.write_bytes(b"a part")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("corank.deploy.persist.files.save_file", full)
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot be written"):
        corank.save(PlainRanker().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid), path, overwrite=True)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_expected_class_is_checked(path):
    assert corank.load(path, PlainRanker).alpha == corank.load(path, corank.Ranker).alpha == 0.1
    with pytest.raises(InputError, match="holds a PlainRanker, not a SPD"):
        corank.load(path, corank.SPD)


LOADED = """
import sys
import corank
from corank import registry

corank.load(sys.argv[1])
print(*(name for name in sys.modules if name.startswith("corank.") or name == "sklearn.pipeline"), sep="\\n")
"""
FOLDERS = {"SPD": "linear", "RankRLS": "rls", "RankingPursuit": "pursuit", "CalibratedLabelRanker": "labels"}


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", FOLDERS)
def test_loading_imports_only_the_folder_of_the_model(name, tmp_path):
    y = PROBLEM.y if name != "CalibratedLabelRanker" else np.arange(len(PROBLEM.y)) % 3
    given = {} if name == "CalibratedLabelRanker" else {"qid": PROBLEM.qid}
    corank.save(registry.find(name)().fit(PROBLEM.X, y, **given), tmp_path / "model")
    words = [sys.executable, "-c", LOADED, tmp_path / "model"]
    found = set(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())
    assert {one.split(".")[2] for one in found if one.startswith("corank.models.")} == {FOLDERS[name]}
    assert not {"corank.text", "corank.clicks", "corank.comparison", "corank.deploy.export", "corank.cli"} & found
    assert "sklearn.pipeline" not in found


def test_sums_keep_their_name_of_earlier_versions_in_files_and_a_removed_ranker_is_named(tmp_path):
    sums = corank.RankRLS(1.0).pair_sums(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    corank.save(sums, tmp_path / "sums")
    assert read_container(tmp_path / "sums")[0]["class"] == "Summary"
    assert type(corank.load(tmp_path / "sums")) is corank.models.PairSums
    corank.save(corank.PDGD(random_state=0).fit(PROBLEM.X, PROBLEM.y), tmp_path / "model")
    forge_model(tmp_path / "model", lambda header, tensors: header.update({"class": "DBGD"}))
    with pytest.raises(InputError, match=r"holds a DBGD of corank 0.2, .* experiments/clicks"):
        corank.load(tmp_path / "model")
