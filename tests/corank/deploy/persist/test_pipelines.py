"""Whatever `save` accepts, `load` gives back with the same predictions; the rest is refused by name."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank import registry
from corank.base.base import Ranker
from corank.base.kernels import GaussianKernel
from corank.deploy.persist.codec import decode_estimator, encode_estimator
from corank.errors import InputError

MADE = corank.make_ranking(8, 6, features_per_view=5, random_state=0)
TRANSFORMERS = {
    "minmax": lambda: corank.QueryScaler(),
    "zscore": lambda: corank.QueryScaler("zscore"),
    "standard": lambda: StandardScaler(with_mean=False),
    "range": lambda: MinMaxScaler((-1, 2)),
    "largest": lambda: MaxAbsScaler(),
    "landmarks": lambda: corank.base.Landmarks(5, "gaussian", random_state=0),
    "landmarks by name": lambda: corank.base.Landmarks(5, GaussianKernel(0.5), basis="kmeans++", random_state=1),
    "smooth": lambda: corank.base.NeighborSmoother(0.3, 4, 3, random_state=0),
    "passthrough": lambda: "passthrough",
    "nothing": lambda: None,
    "pipeline": lambda: Pipeline([("inner", corank.QueryScaler()), ("too", StandardScaler())]),
}
RANKERS = [
    kind
    for kind in map(registry.find, registry.names())
    if inspect.isclass(kind)
    and issubclass(kind, Ranker)
    and not inspect.isabstract(kind)
    # it takes counts, which no transformer gives
    and kind is not corank.BM25
    # a pipeline has no step before ids
    and not hasattr(kind, "_reads_ids")
]


@pytest.fixture(autouse=True)
def _routed():
    with config_context(enable_metadata_routing=True):
        yield


def made_ranker(kind):
    spd, mean = corank.SPD(n_steps=50, random_state=0), corank.ColumnMean([0, 1])
    wrapped = {corank.Calibrated: (spd,), corank.base.ResidualRanker: (mean, spd), corank.ColumnMean: ([0, 1],)}
    ranker = kind(*wrapped.get(kind, ()))
    settings = {"random_state": 0, "n_steps": 50, "views": 2}
    return ranker.set_params(
        **{name: value for name, value in settings.items() if name in ranker.get_params(deep=False)}
    )


def scores(model, X=MADE.X):
    wants_qid = model.get_metadata_routing().consumes("predict", ["qid"])
    return model.predict(X, qid=MADE.qid) if wants_qid else model.predict(X)


def through(model, tmp_path):
    corank.save(model, tmp_path / "m")
    return corank.load(tmp_path / "m")


@pytest.mark.thin(5)
@pytest.mark.parametrize("kind", RANKERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["zscore", "landmarks"])
def test_every_ranker_survives_behind_a_transformer(tmp_path, kind, name):
    model = Pipeline([("before", TRANSFORMERS[name]()), ("rank", made_ranker(kind))])
    model.fit(MADE.X, MADE.y, qid=MADE.qid)
    again = through(model, tmp_path)
    assert type(again) is Pipeline
    np.testing.assert_array_equal(scores(again), scores(model))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_every_transformer_survives_before_a_ranker(tmp_path, name):
    model = Pipeline([("first", TRANSFORMERS[name]()), ("rank", corank.CRR(random_state=0))])
    model.fit(MADE.X, MADE.y, qid=MADE.qid)
    again = through(model, tmp_path)
    np.testing.assert_array_equal(scores(again), scores(model))
    assert [step for step, _ in again.steps] == ["first", "rank"]
    assert str(again.get_metadata_routing()) == str(model.get_metadata_routing())
    # what was loaded can be fitted again
    again.fit(MADE.X, MADE.y, qid=MADE.qid)
    np.testing.assert_array_equal(scores(again), scores(model))


@pytest.mark.parametrize("name", [name for name in TRANSFORMERS if name not in ("passthrough", "nothing")])
def test_a_transformer_survives_alone(tmp_path, name):
    model = TRANSFORMERS[name]()
    qid = {"qid": MADE.qid} if model.get_metadata_routing().consumes("transform", ["qid"]) else {}
    again = through(model.fit(MADE.X, **qid), tmp_path)
    np.testing.assert_array_equal(again.transform(MADE.X, **qid), model.transform(MADE.X, **qid))


def test_query_ids_change_what_a_loaded_pipeline_predicts(tmp_path):
    model = Pipeline([("scale", corank.QueryScaler()), ("rank", corank.CRR(random_state=0))])
    model.fit(MADE.X, MADE.y, qid=MADE.qid)
    again = through(model, tmp_path)
    by_hand = again["rank"].predict(corank.QueryScaler().fit_transform(MADE.X, qid=MADE.qid))
    np.testing.assert_array_equal(again.predict(MADE.X, qid=MADE.qid), by_hand)


def test_names_of_columns_survive(tmp_path):
    frame = pd.DataFrame(MADE.X, columns=[f"ü{k}" for k in range(MADE.X.shape[1])])
    model = Pipeline([("scale", StandardScaler()), ("rank", corank.CRR(random_state=0))])
    again = through(model.fit(frame, MADE.y, qid=MADE.qid), tmp_path)
    assert again.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(scores(again, frame), scores(model, frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"ü0": "other"}))


def test_requests_for_metadata_survive(tmp_path):
    model = Pipeline(
        [
            ("scale", StandardScaler().set_fit_request(sample_weight=True)),
            ("rank", corank.CRR(random_state=0).set_fit_request(qid="session", sample_weight=True)),
        ]
    )
    model.fit(MADE.X, MADE.y, session=MADE.qid, sample_weight=np.ones(len(MADE.y)))
    again = through(model, tmp_path)
    assert str(again.get_metadata_routing()) == str(model.get_metadata_routing())
    np.testing.assert_array_equal(again.predict(MADE.X), model.predict(MADE.X))


def fitted(first=None, last=None, **options):
    steps = [("first", first or corank.QueryScaler()), ("last", last or corank.CRR(random_state=0))]
    return Pipeline(steps, **options).fit(MADE.X, MADE.y, qid=MADE.qid)


class OwnScaler(StandardScaler):
    pass


class OwnPipeline(Pipeline):
    pass


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lambda: fitted(FunctionTransformer(np.tanh)), "^first is a FunctionTransformer, which cannot be saved"),
        (
            lambda: fitted(last=Ridge()),
            "^last is a Ridge, which cannot be saved; pass one of corank's rankers",
        ),
        (lambda: fitted(OwnScaler()), "^first is a OwnScaler"),
        (lambda: fitted(FeatureUnion([("a", StandardScaler())])), "^first is a FeatureUnion"),
        (lambda: fitted(Pipeline([("deep", FunctionTransformer())])), "^first.deep is a FunctionTransformer"),
        (lambda: OwnPipeline(fitted().steps), "^the model is a OwnPipeline"),
        (lambda: Ridge().fit(MADE.X, MADE.y), "^the model is a Ridge"),
        (
            lambda: fitted(corank.base.Landmarks(3, lambda a, b: a @ b.T)),
            r"^first\.kernel is a function, which cannot be",
        ),
        (lambda: fitted(StandardScaler().set_output(transform="pandas")), "^first uses set_output"),
        (lambda: fitted(memory="cache"), "^the model is a Pipeline with memory='cache', which is not saved"),
        (
            lambda: Pipeline([("a", corank.QueryScaler()), ("b", corank.SPD())]),
            "^step 'a', a QueryScaler is not fitted",
        ),
        (lambda: Pipeline([("a", "passthrough"), ("b", corank.SPD())]), "^step 'b', a SPD is not fitted"),
        (lambda: Pipeline([("a", StandardScaler()), *fitted().steps]), "^step 'a', a StandardScaler is not fitted"),
        (lambda: corank.SPD(), "^this SPD is not fitted; call fit before saving it"),
        (lambda: None, "^the model is a NoneType, which cannot be saved"),
    ],
)
def test_what_could_not_be_loaded_is_refused_by_name(tmp_path, monkeypatch, model, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cache").mkdir()
    made = model()
    with pytest.raises(InputError, match=sentence) as refusal:
        corank.save(made, tmp_path / "m")
    assert ". " not in str(refusal.value)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda body: body["params"].update(memory="pickles"), "forged is a Pipeline with memory='pickles'"),
        (
            lambda body: body["params"]["steps"][0]["tuple"][1]["estimator"].update({"class": "Forest"}),
            "holds a Forest",
        ),
        (lambda body: body["params"]["steps"][0]["tuple"][1]["estimator"].update({"class": ["a"]}), "holds a "),
        (
            lambda body: body["params"]["steps"][0]["tuple"][1]["estimator"].update(params=3),
            "contains an invalid value",
        ),
        (lambda body: body["params"]["steps"][0]["tuple"][1]["estimator"].pop("requests"), "contains an invalid value"),
    ],
)
def test_a_forged_pipeline_builds_nothing(change, sentence):
    tensors = {}
    body = encode_estimator(fitted(), "", tensors)
    assert decode_estimator(body, dict(tensors), "forged")["first"].method == "minmax"
    change(body)
    with pytest.raises(InputError, match=sentence):
        decode_estimator(body, tensors, "forged")
