"""Every measure of the table is a function, stands in the guide, and is the mean of its metric."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from corank import metrics
from corank.errors import InputError
from corank.metrics import METRICS

every = pytest.mark.parametrize("measure", METRICS.values(), ids=list(METRICS))


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, 60), rng.integers(0, 9, 60), rng.integers(0, 5, 60)


@every
@pytest.mark.parametrize("convention", ["corank", "letor4"])
def test_called_it_is_the_mean_of_its_metric(problem, measure, convention):
    k = None if measure.cut == "none" else 4
    name = measure.name + ("" if k is None else "@4")
    expected = metrics.evaluate(*problem, name, convention=convention)[name].mean
    assert measure(*problem, k=k, convention=convention) == expected
    if measure.cut == "optional":
        assert measure(*problem) == metrics.evaluate(*problem, measure.name)[measure.name].mean


@every
def test_it_is_exported_and_documented(measure):
    assert getattr(metrics, measure.__name__) is measure
    assert measure.__name__ in metrics.__all__
    assert measure.__doc__.strip().split("\n")[0].endswith(".")


@every
def test_the_call_takes_its_parameters_and_refuses_others(problem, measure):
    k = 4 if measure.cut == "needed" else None
    values = {"rel": 2.0, "alpha": 0.5, "p": 0.3, "max_grade": 5.0}
    for key, _ in measure.params:
        name = f"{measure.name}({key}={values[key]})" + ("" if k is None else "@4")
        assert measure(*problem, k=k, **{key: values[key]}) == metrics.evaluate(*problem, name)[name].mean
    (other,) = [key for key in ("alpha", "max_grade") if key not in dict(measure.params)][:1]
    with pytest.raises(InputError, match=f"has the parameter {other!r}, which {measure.name} does not have"):
        measure(*problem, k=k, **{other: 1.0})


@every
def test_it_survives_pickling_as_itself(measure):
    assert pickle.loads(pickle.dumps(measure)) is measure


def test_depths_are_checked(problem):
    with pytest.raises(InputError, match="recall needs a depth; pass k=10, for example"):
        metrics.recall(*problem)
    with pytest.raises(InputError, match="'auc' has a depth, but AUC has none"):
        metrics.auc(*problem, k=3)
    for k in (0, -1, 2.5):
        with pytest.raises(InputError, match=f"'ndcg' has the depth {k}; pass a whole number"):
            metrics.ndcg(*problem, k=k)
    assert metrics.ndcg(*problem, k=np.int64(3)) == metrics.ndcg(*problem, k=3)
    assert metrics.kpartite_error(*problem, alpha=1e-7) != metrics.kpartite_error(*problem, alpha=0.0)
