"""Models that an attacker wrote, with right checksums: one sentence each, never a signal, never much memory."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import corank
from corank import registry
from corank.base.kernels import GaussianKernel
from corank.errors import InputError
from helpers.forge import forge_model

MADE = corank.make_ranking(8, 6, features_per_view=5, random_state=0)
ROWS = sparse.csr_matrix(MADE.X * (np.abs(MADE.X) > 0.5))
MODELS = {
    "SPD": lambda: corank.SPD(n_steps=50, random_state=0, solver="sgd"),
    "LCRA": lambda: corank.LCRA(n_steps=50, random_state=0, solver="sgd"),
    "RankRLS": lambda: corank.RankRLS(kernel="gaussian", alphas=[0.1, 1.0]),
    "CoRankRLS": lambda: corank.CoRankRLS(kernel="gaussian", random_state=0),
    "RankSVM": lambda: corank.RankSVM(kernel="gaussian"),
    "RankingPursuit": lambda: corank.RankingPursuit(5),
    "CoRankingPursuit": lambda: corank.CoRankingPursuit(5, random_state=0),
    "Calibrated": lambda: corank.Calibrated(corank.SPD(n_steps=50, random_state=0)),
}


def saved(path: Path, model, X=MADE.X) -> Path:
    corank.save(model.fit(X, MADE.y, qid=MADE.qid), path, overwrite=True)
    return path


def noun(name: str, **fields) -> dict:
    return {"noun": {"name": name, "fields": fields}}


def refusal(path: Path) -> str:
    try:
        corank.load(path)
    except InputError as error:
        return str(error)
    return "none"


@pytest.mark.parametrize("name", MODELS)
def test_a_forged_file_that_changes_nothing_is_read(tmp_path, name):
    path = saved(tmp_path / "m", MODELS[name]())
    before = corank.load(path).predict(MADE.X)
    forge_model(path, lambda header, tensors: None)
    np.testing.assert_array_equal(corank.load(path).predict(MADE.X), before)


# what `predict` never looks at may be of any size: it is only shown
SHOWN = (
    "objective_trace",
    "gains",
    "objective_path",
    "loo_scores",
    "run_",
    "alpha_path",
    "support",
    "solutions_.0.gains",
)


@pytest.mark.parametrize("name", MODELS)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, name):
    """Each array of each model, one number longer, of one axis more, or gone."""
    path = saved(tmp_path / "m", MODELS[name]())
    whole, n_refused = path.read_bytes(), 0
    changes = {
        "longer": lambda a: np.concatenate([a, a[-1:]]),
        "deeper": lambda a: a[None],
        "empty": lambda a: a[:0],
        "other": lambda a: np.zeros((3, 3, 3)),
    }
    tensors: list[str] = []
    forge_model(path, lambda header, found: tensors.extend(found))
    for tensor in tensors:
        if tensor.startswith(SHOWN):
            continue
        for what, change in changes.items():
            path.write_bytes(whole)
            forge_model(path, lambda header, found, t=tensor, c=change: found.update({t: c(found[t])}))
            sentence = refusal(path)
            n_refused += sentence != "none"
            assert "\n" not in sentence, (tensor, what)
            if sentence == "none":  # then it must rank like any model
                assert corank.load(path).predict(MADE.X).shape == MADE.y.shape, (tensor, what)
    assert n_refused >= 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: s.update(n_features_in_=10**18), r"do not fit together \(SPD.coef_ has the shape \(10,\)\)"),
        (lambda s: s.update(n_features_in_=True), "n_features_in_ is True"),
        (lambda s: s.update(n_features_in_=2**31), "do not fit together"),
        (lambda s: s.pop("n_features_in_"), "do not fit together"),
        (lambda s: s.pop("coef_"), "do not fit together"),
        (lambda s: s.update(coef_=3), "do not fit together"),
        (lambda s: s.update(coef_={"strings": ["a"] * 10}), "do not fit together"),
        (lambda s: s.update(intercept_="a"), "do not fit together"),
        (lambda s: s.update(intercept_=[1.0, 2.0]), "do not fit together"),
        (lambda s: s.update(column_scale_={"strings": ["a"] * 10}), "SPD.column_scale_ is an array of object"),
        (lambda s: s.update(intercept_={"float": "nan"}), "that are not finite"),
        (lambda s: s.update(alpha_="a"), "do not fit together"),
        (lambda s: s.update(alpha_=-1.0), "alpha_ or eta0_ is not a finite number from 0"),
        (lambda s: s.update(score_range_=[1.0, 0.0]), "SPD.score_range_ is a list"),
        (lambda s: s.update(feature_names_in_={"strings": ["a"]}), "feature_names_in_ does not have 10 names"),
        (lambda s: s.update(feature_names_in_=3), "SPD.feature_names_in_ is 3"),
        (lambda s: s.update(x_={"strings": {"items": ["a"], "dtype": "<U100000000"}}), "strings holds other values"),
        (lambda s: s.update(x_={"strings": [1]}), "contains an invalid value"),
        (lambda s: s.update(x_={"array": "coef_"}), "contains an invalid value"),
        (lambda s: s.update(x_={"slice": [1, 2, 3, 4]}), "contains an invalid value"),
        (lambda s: s.update(x_={"float": [1]}), "contains an invalid value"),
        (lambda s: s.update(x_=noun("View", columns={"slice": [0, 10**11, None]})), "contains an invalid value"),
        (lambda s: s.update(x_=noun("View", columns=[-1])), "contains an invalid value .columns contains column -1"),
        (lambda s: s.update(x_=noun("PolynomialKernel", degree={"float": "inf"})), "contains an invalid value"),
        (lambda s: s.update(x_=noun("Path")), "contains an invalid value"),
        (lambda s: s.update(x_={"noun": []}), "contains an invalid value"),
        (lambda s: s.update(x_={"estimator": []}), "contains an invalid value"),
        (lambda s: s.update(x_={"csr": {}}), "contains an invalid value"),
        (lambda s: s.update(x_={"tuple": 3}), "contains an invalid value"),
        (lambda s: s.update(x_={}), "contains an invalid value"),
        (lambda s: s.update(x_={"float": "1", "tuple": []}), "contains an invalid value"),
    ],
)  # fmt: skip
def test_a_state_of_the_wrong_kind_is_refused(tmp_path, change, sentence):
    path = saved(tmp_path / "m", corank.SPD(n_steps=50, random_state=0))
    forge_model(path, lambda header, tensors: change(header["state"]))
    with pytest.raises(InputError, match=sentence):
        corank.load(path)


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_values_nested_too_deep_are_refused(tmp_path, depth):
    path = saved(tmp_path / "m", corank.SPD(n_steps=50, random_state=0))
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    outer = json.loads(raw[8 : 8 + length])
    deep = '{"tuple":[' * depth + "]}" * depth
    for text in (deep, outer["__metadata__"]["corank"].replace('"state": {', '"state": {"x_": ' + deep + ", ")):
        outer["__metadata__"]["corank"] = text
        head = json.dumps(outer).encode()
        path.write_bytes(struct.pack("<Q", len(head)) + head + raw[8 + length :])
        with pytest.raises(InputError, match=r"truncated or not a corank model|checksum|damaged header"):
            corank.load(path)


@pytest.mark.parametrize("around", [lambda value: {"tuple": [value]}, lambda value: [value]])
@pytest.mark.parametrize("place", ["state", "params"])
def test_values_nested_too_deep_behind_a_right_checksum_are_refused(tmp_path, around, place):
    path, deep = saved(tmp_path / "m", corank.SPD(n_steps=50, random_state=0)), 1
    for _ in range(700 if around(1) == [1] else 400):
        deep = around(deep)
    name = "alpha_" if place == "state" else "alpha"
    forge_model(path, lambda header, tensors: header[place].update({name: deep}))
    with pytest.raises(InputError, match="contains an invalid value"):
        corank.load(path)


@pytest.mark.parametrize(
    "kernel", ["linear", "polynomial", "gaussian", "laplacian", "chi-square", "cosine", "precomputed"]
)
def test_every_kernel_survives_the_row_of_zeros(tmp_path, kernel):
    X = np.abs(MADE.X) if kernel != "precomputed" else MADE.X @ MADE.X.T
    for model in (
        corank.RankRLS(kernel=kernel, alpha=1.0),
        corank.RankSVM(kernel=kernel),
        corank.RankingPursuit(5, kernel),
    ):
        again = corank.load(saved(tmp_path / "m", model, X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3", "F8_E5M2", "C64"])
def test_numbers_that_numpy_or_corank_does_not_have_get_a_sentence(tmp_path, kind):
    path = saved(tmp_path / "m", corank.SPD(n_steps=50, random_state=0))
    raw, size = path.read_bytes(), {"BF16": 2, "C64": 8}.get(kind, 1)
    (length,) = struct.unpack("<Q", raw[:8])
    outer, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    outer["odd"] = {"dtype": kind, "shape": [2], "data_offsets": [len(body), len(body) + 2 * size]}
    head = json.dumps(outer).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + body + b"\0" * 2 * size)
    with pytest.raises(InputError, match=f"holds numbers of type {kind}, which corank does not save"):
        corank.load(path)


@pytest.mark.long
def test_basis_rows_that_name_columns_beyond_the_last_are_refused_without_a_signal(tmp_path):
    """In another process, which they would end."""
    for name, at, value in (("indices", 3, 2**30), ("indices", 3, 40), ("indices", 0, -1), ("indptr", 2, 2**30)):
        path = saved(tmp_path / f"{name}-{at}-{value}", corank.RankSVM(kernel=GaussianKernel(0.1), scale=False), ROWS)

        def change(header, tensors, name=name, at=at, value=value):
            (key,) = (key for key in tensors if key.endswith(f"rows.{name}"))
            tensors[key][at] = value

        forge_model(path, change)
    child = """
import sys
from pathlib import Path
import numpy as np, corank
from corank.errors import InputError
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        corank.load(path).predict(np.zeros((5, 10)))
        print("taken", path)
    except InputError as error:
        print("refused" if "invalid CSR matrix" in str(error) else error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", child, str(tmp_path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2000:])
    assert ran.stdout.split() == ["refused"] * 4


@pytest.mark.parametrize("name", ["SPD", "LCRA"])
@pytest.mark.parametrize("part", ["weights", "sums", "ledger", "rng_state", "steps"])
def test_a_descent_goes_on_from_its_own_state_only(tmp_path, name, part):
    path = saved(tmp_path / "m", MODELS[name]())
    whole = path.read_bytes()
    for change in (lambda a: a[..., :0], lambda a: a.astype(np.float32), lambda a: a[..., None]):
        path.write_bytes(whole)
        forge_model(path, lambda header, found, c=change: found.update({f"run_.{part}": c(found[f"run_.{part}"])}))
        model = corank.load(path)
        with pytest.raises(InputError, match="run_ does not hold the state of a descent"):
            model.partial_fit(MADE.X, MADE.y, qid=MADE.qid)


def test_pipelines_of_what_is_none_are_refused(tmp_path):
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    model = Pipeline([("scale", StandardScaler()), ("rank", corank.SPD(n_steps=50, random_state=0))])
    corank.save(model.fit(MADE.X, MADE.y), tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    for steps in (None, [], 3, [3], [{"tuple": ["a", 3]}], [{"tuple": [3]}], [{"tuple": ["a", "b"]}]):
        (tmp_path / "m").write_bytes(whole)
        forge_model(tmp_path / "m", lambda header, tensors, s=steps: header["params"].update(steps=s))
        assert "\n" not in refusal(tmp_path / "m") != "none", steps
    (tmp_path / "m").write_bytes(whole)
    forge_model(tmp_path / "m", lambda header, tensors: header["params"].pop("steps"))
    assert "contains an invalid Pipeline" in refusal(tmp_path / "m")


def test_sums_of_other_features_are_refused(tmp_path):
    summary = corank.RankRLS(alpha=1.0).pair_sums(MADE.X, MADE.y, qid=MADE.qid)
    corank.save(summary, tmp_path / "m")
    assert corank.load(tmp_path / "m").scored.n_features == 10
    whole = (tmp_path / "m").read_bytes()

    def wider(header, tensors):
        tensors["scored.pair"] = np.zeros((14, 14))

    def fewer(header, tensors):
        header["state"]["maps"] = {"tuple": []}

    for change in (wider, fewer, lambda h, t: h["state"].update(weights=3), lambda h, t: h["state"].update(free=3)):
        (tmp_path / "m").write_bytes(whole)
        forge_model(tmp_path / "m", change)
        assert "do not fit together" in refusal(tmp_path / "m")


def test_views_of_columns_that_do_not_exist_are_refused(tmp_path):
    """`predict` does not look at them, `partial_fit` does."""
    path = saved(tmp_path / "m", MODELS["LCRA"]())
    whole = path.read_bytes()
    for change in (
        lambda tensors: tensors["views_.0.columns"].__setitem__(0, MADE.X.shape[1]),
        lambda tensors: tensors.update(view_coefs_=tensors["view_coefs_"][:1]),
        lambda tensors: tensors["view_coefs_"].__setitem__((0, 0), np.inf),
    ):
        path.write_bytes(whole)
        forge_model(path, lambda header, tensors, change=change: change(tensors))
        assert "do not fit together" in refusal(path)


@pytest.mark.parametrize("factors", [np.ones(3), np.ones((10, 1)), -np.ones(10), np.ones(10, dtype=np.float32)])
def test_sums_of_columns_multiplied_by_what_is_none_of_theirs_are_refused(tmp_path, factors):
    path = tmp_path / "m"
    corank.save(corank.RankRLS(1.0).pair_sums(MADE.X, MADE.y, qid=MADE.qid), path)
    assert refusal(path) == "none"
    whole = path.read_bytes()
    forge_model(path, lambda header, tensors: tensors.update(factors=factors))
    assert "factors " in refusal(path)
    path.write_bytes(whole)
    forge_model(path, lambda header, tensors: header["state"].update(n_features=None))
    assert "the number of columns is missing" in refusal(path)


@pytest.mark.parametrize("step", [7, {"slice": [0, 1, None]}])
def test_steps_of_pipelines_have_names(tmp_path, step):
    model = make_pipeline(StandardScaler(), corank.SPD(n_steps=50, random_state=0))
    with config_context(enable_metadata_routing=True):
        path = saved(tmp_path / "m", model)
    forge_model(path, lambda header, tensors: header["params"]["steps"][0]["tuple"].__setitem__(0, step))
    assert "name steps by strings" in refusal(path)


def test_a_scaler_that_divides_by_nothing_is_refused(tmp_path):
    with config_context(enable_metadata_routing=True):
        path = saved(tmp_path / "m", make_pipeline(StandardScaler(), corank.SPD(n_steps=50, random_state=0)))
    forge_model(path, lambda header, tensors: tensors["standardscaler.scale_"].__setitem__(0, 0.0))
    assert "scale_ is too small to divide by" in refusal(path)


@pytest.mark.parametrize("name", ["SPD", "PDGD", "RankSVM", "OnlineLabelRanker"])
def test_weights_whose_scores_overflow_are_refused_and_large_honest_ones_are_read(tmp_path, name):
    path = tmp_path / "m"
    make = MODELS.get(name, lambda: registry.find(name)(random_state=0))
    if name == "OnlineLabelRanker":
        corank.save(make().fit(MADE.X, np.abs(MADE.X[:, :3]) > 0.5), path)
    else:
        saved(path, make())
    whole = path.read_bytes()

    def scaled(size):
        path.write_bytes(whole)
        key = "dual_coef_" if name == "RankSVM" else "coef_"
        forge_model(path, lambda header, tensors: tensors.update({key: np.sign(tensors[key]) * size}))
        return refusal(path)

    for size in (1e308, -1e308, 1e294):
        assert "scores of rows with values up to 1e+15 do not overflow" in scaled(size)
    assert scaled(1e14) == scaled(1e200) == "none"


def test_a_scaler_whose_rows_overflow_is_refused(tmp_path):
    path = tmp_path / "m"
    with config_context(enable_metadata_routing=True):
        ranker = MODELS["SPD"]().set_fit_request(qid=True)
        corank.save(make_pipeline(StandardScaler(), ranker).fit(MADE.X, MADE.y, qid=MADE.qid), path)

    def shrink(header, tensors):
        tensors.update({key: 1e-300 * value for key, value in tensors.items() if key.endswith(".scale_")})

    assert refusal(path) == "none"
    forge_model(path, shrink)
    assert "not finite" in refusal(path)
