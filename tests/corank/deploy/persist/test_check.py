"""Loaded models are checked against what their classes declare, and every public prediction is tried."""

from __future__ import annotations

import numpy as np
import pytest

import corank
from corank import registry
from corank.deploy.persist.check import _attribute_types, _required, table_of
from corank.errors import InputError
from fuzz.saved import classes, saved
from fuzz.uses import ON_RATINGS, ON_ROWS
from helpers.forge import forge_model

KINDS = classes()
ESTIMATORS = [kind for kind in KINDS if kind not in ("Pipeline", "Summary")]


@pytest.fixture
def forged(tmp_path):
    """Save a model of a class, change its file, and load it."""

    def load(kind, change, description=None):
        files = saved(kind)
        path = tmp_path / "model"
        path.write_bytes(files[description or next(iter(files))])
        forge_model(path, change)
        return corank.load(path)

    return load


def test_files_are_made_of_every_class_that_can_be_saved():
    from corank.deploy.persist.codec import _buildable

    exported = {name for name in registry.names() if _buildable(name) is not None}
    assert exported == set(ESTIMATORS)


@pytest.mark.thin(4)
@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_file_is_read(forged, kind):
    for description in saved(kind):
        name = "PairSums" if kind == "Summary" else kind
        assert type(forged(kind, lambda header, tensors: None, description)).__name__ == name


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_public_prediction_is_known_to_the_fuzzer(kind):
    """Methods that neither learn nor describe are called on every mutated file."""
    others = {
        "fit", "score", "partial_fit", "fit_transform", "fit_pair_sums", "pair_sums", "fit_summary", "summary",
        "solve_summary", "solve_candidates",
        "choose_maps", "split_views", "choose", "get_params", "set_params",
        "get_metadata_routing",
    }  # fmt: skip
    made = registry.find(kind)
    methods = {name for name in dir(made) if not name.startswith("_") and callable(getattr(made, name))}
    methods = {
        name for name in methods - others if not (name.startswith("set_") and name.endswith(("request", "output")))
    }
    assert methods <= ON_ROWS.keys() | ON_RATINGS.keys()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_prediction_is_tried_by_load(kind):
    """Apart from those that are others in another form, or cost more than a few rows."""
    same = {"predict", "rank", "learn", "utilities", "transform", "to_index", "get_feature_names_out"}
    same |= {"predict_relevant", "predict_level"}
    same |= {"recommend", "recommend_user", "predict_new"}
    made = registry.find(kind)
    used = {name for name in ON_ROWS.keys() | ON_RATINGS.keys() if callable(getattr(made, name, None))}
    assert used - same <= table_of(made, "_predictions").keys()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_fitted_attribute_has_a_declared_type(forged, kind):
    for description in saved(kind):
        model = forged(kind, lambda header, tensors: None, description)
        fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
        assert fitted <= _attribute_types(type(model)).keys()


def put(name, change):
    """Return a change of one tensor."""
    return lambda header, tensors: tensors.update({name: np.ascontiguousarray(change(tensors[name]))})


def state(**values):
    return lambda header, tensors: header["state"].update(values)


@pytest.mark.parametrize(
    ("kind", "description", "change", "sentence"),
    [
        # each of these was loaded, and failed in a prediction
        ("BM25", None, state(mean_length_=0), "mean_length_ is positive"),
        ("BM25", None, put("idf_", lambda a: a * np.nan), "idf_ holds numbers that are not finite"),
        ("NeighborSmoother", None, put("embedding_", lambda a: a[:, :2]), "embedding_ has the shape"),
        ("NeighborSmoother", None, state(embedding_=3), "embedding_ is 3"),
        ("LinkLearn", None, lambda header, tensors: header["params"].update(b=10**30), "b is 1000"),
        ("Collaborative", None, put("item_means_", lambda a: a[:2]), "has the shape"),
        ("Collaborative", None, put("item_features_", lambda a: a * np.inf), "not finite"),
        ("ItemMean", None, state(users_={"strings": ["v", "u", "w", "x", "y"]}), "items_ and users_ ascend"),
        ("CollaborativeGP", None, put("item_covariance_", lambda a: -a), "are covariances"),
        ("CollaborativeGP", None, put("site_tau_", lambda a: -a), "site_tau_ has the ratings"),
        ("CollaborativeGP", "CollaborativeGP features", put("item_gram_", lambda a: a[:2, :2]), "has the shape"),
        ("OrdinalGP", None, put("process_.factor", lambda a: 0.0 * a), "positive diagonal"),
        ("OrdinalGP", None, state(sigma_=-1.0), "sigma_ is positive"),
        ("PreferenceGP", None, put("sites_.left", lambda a: a + 50), "sites_ names items"),
        ("PreferenceGP", None, put("process_.mu.0", lambda a: a[:-1]), "every process fits its map"),
        ("PreferenceGP", None, put("rows_.of_row", lambda a: a - 2), "of_row names items"),
        ("CalibratedLabelRanker", None, put("coef_", lambda a: a[:, :2]), "coef_ has the shape"),
        ("OnlineLabelRanker", None, put("run_.tally", lambda a: a[:1]), "have the labels"),
        ("PDGD", None, state(n_learnt_=10**30), "n_learnt_ is 1000"),
        ("RankingPursuit", "RankingPursuit columns ndarray", put("solutions_.0.terms", lambda a: a - 9), "solutions_"),
        ("RankRLS", "RankRLS path ndarray", put("alpha_path_", lambda a: a[:, :3]), "alpha_path_"),
        ("RankSVM", None, state(more_=1), "RankSVM has no attribute more_"),
        ("ColumnMean", None, lambda header, _: header["state"]["scaler_"]["estimator"]["state"].clear(), "n_queries_"),
    ],
)  # fmt: skip
def test_what_failed_in_a_prediction_is_refused_by_load(forged, kind, description, change, sentence):
    with pytest.raises(InputError, match=f"whose parts do not fit together .*{sentence}"):
        forged(kind, change, description)


@pytest.mark.parametrize("kind", ["Calibrated", "ResidualRanker"])
def test_parameters_of_an_estimator_that_is_a_parameter_are_checked(forged, kind):
    def change(header, tensors):
        header["params"]["ranker"]["estimator"]["params"]["alpha"] = []

    with pytest.raises(InputError, match="alpha is "):
        forged(kind, change)


def test_predictions_of_new_items_are_tried(forged):
    def change(header, tensors):
        del header["state"]["first_var_"]

    with pytest.raises(InputError, match="parts do not fit together"):
        forged("CollaborativeGP", change, "CollaborativeGP features")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_missing_attribute_is_refused(forged, kind):
    """`PreferenceGP.partial_fit` needs `is_exact_`, which no prediction does."""
    for name in _required(registry.find(kind)):

        def change(header, tensors, name=name):
            del header["state"][name]

        with pytest.raises(InputError, match=f"{kind} has no {name}|parts do not fit together|is not fitted"):
            forged(kind, change)


def test_the_attributes_of_every_fit_are_known():
    assert {"is_exact_", "sigma_", "process_"} <= _required(corank.PreferenceGP)
    assert "graph_" not in _required(corank.PreferenceGP)


@pytest.mark.parametrize("name", ["eta0_", "objective_trace_"])
def test_a_descent_without_what_it_continues_from_is_refused(forged, name):
    def change(header, tensors):
        del header["state"][name]

    with pytest.raises(InputError, match="run_ comes with eta0_ and objective_trace_"):
        forged("LCRA", change, next(one for one in saved("LCRA") if one.startswith("LCRA sgd")))
