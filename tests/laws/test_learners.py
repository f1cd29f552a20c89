"""The contract, over every estimator, transformer and `fit_parts`: failed fits change nothing, columns are checked."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import corank
from corank.errors import InputError
from helpers.learners import LEARNERS, NAMES, PROBLEM, Case, exported, is_long

PACKAGE = str(Path(corank.__file__).parent)

pytestmark = pytest.mark.filterwarnings("ignore::corank.errors.UsageWarning")


def over(condition: Callable[[Case], Any] = lambda case: True) -> pytest.MarkDecorator:
    """Parametrise a law over the cases that satisfy a condition."""
    cases = [
        pytest.param(case, id=name, marks=[pytest.mark.long] if is_long(name) else [])
        for name, case in LEARNERS.items()
        if condition(case)
    ]
    return pytest.mark.parametrize("case", cases)


every = over()
with_columns = over(lambda case: case.has_columns)
learning_further = over(lambda case: case.further)


def state(model: Any) -> dict[str, Any]:
    """Fitted attributes of a model, and of the steps of a pipeline."""
    found = {f"{name}": value for name, value in vars(model).items() if name.endswith("_")}
    for step, part in getattr(model, "steps", ()):
        found |= {f"{step} {name}": value for name, value in state(part).items()}
    return found


def params(model: Any) -> dict[str, Any]:
    """Parameters; of nested estimators, which a copy does not share, the type."""
    found = model.get_params()
    return {name: type(value) if hasattr(value, "get_params") else repr(value) for name, value in found.items()}


def same_state(model: Any, before: dict[str, Any]) -> bool:
    now = state(model)
    return now.keys() == before.keys() and all(now[name] is before[name] for name in now)


def answers(case: Case, model: Any, data: Any) -> np.ndarray:
    found = case.use(model, data)
    return found.toarray() if sparse.issparse(found) else np.asarray(found)


def frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES[: X.shape[1]])


def calls_of(function: Callable[[], Any], stop_at: int | None = None) -> int:
    """Count calls of corank's functions, or raise KeyboardInterrupt at one of them."""
    count = 0

    def watch(code: Any, event: str, _: Any) -> None:
        nonlocal count
        if event == "call" and code.f_code.co_filename.startswith(PACKAGE):
            count += 1
            if count == stop_at:
                raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_every_exported_estimator_is_under_the_laws():
    missing = set(exported()) - {type(case.make()).__name__ for case in LEARNERS.values()}
    assert not missing, f"add {', '.join(sorted(missing))} to tests/helpers/learners.py"


@every
def test_a_refused_refit_changes_nothing(case):
    model = case.fit(case.make(), case.data[0])
    before, kept = state(model), answers(case, model, case.data[0])
    with pytest.raises((InputError, TypeError)):
        case.fit(model, case.bad)
    assert same_state(model, before)
    np.testing.assert_array_equal(answers(case, model, case.data[0]), kept)


@with_columns
def test_a_refit_with_mixed_column_names_is_refused_and_changes_nothing(case):
    X, other = case.data
    model = case.fit(case.make(), X)
    before, kept = state(model), answers(case, model, X)
    mixed = pd.DataFrame(other, columns=[0, *NAMES[1 : other.shape[1]]])
    with pytest.raises((TypeError, InputError), match="string"):
        case.fit(model, mixed)
    assert same_state(model, before)
    np.testing.assert_array_equal(answers(case, model, X), kept)


# an interrupt while a generator is closed cannot be raised; Python reports it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@every
def test_a_refit_interrupted_anywhere_leaves_the_old_model_or_the_new_one(case):
    first, second = case.data
    model = case.fit(case.make(), first)
    old, new = answers(case, model, first), answers(case, case.fit(case.make(), second), second)
    total = calls_of(lambda: case.fit(case.make(), second))
    for at in (1, total // 2, total - 1, total):
        model = case.fit(case.make(), first)
        before = state(model)
        with suppress(KeyboardInterrupt):  # what is cached is not called a second time
            calls_of(lambda model=model: case.fit(model, second), stop_at=at)
        if same_state(model, before):
            np.testing.assert_array_equal(answers(case, model, first), old)
            continue
        found = answers(case, model, second)
        assert found.shape == new.shape
        if not case.keeps_partial:
            np.testing.assert_array_equal(found, new)


@every
def test_a_first_fit_that_fails_leaves_an_unfitted_model(case):
    model = case.make()
    with pytest.raises((InputError, TypeError)):
        case.fit(model, case.bad)
    assert not state(model)


@every
def test_a_refit_forgets_the_first_fit(case):
    model = case.fit(case.fit(case.make(), case.data[1]), case.data[0])
    fresh = case.fit(case.make(), case.data[0])
    assert state(model).keys() == state(fresh).keys()
    np.testing.assert_array_equal(answers(case, model, case.data[0]), answers(case, fresh, case.data[0]))


@with_columns
def test_column_names_are_remembered_and_checked(case):
    X = case.data[0]
    table = frame(X)
    model = case.fit(case.make(), table)
    assert list(model.feature_names_in_) == NAMES
    assert model.n_features_in_ == len(NAMES)
    np.testing.assert_array_equal(answers(case, model, table), answers(case, case.fit(case.make(), X), X))
    for other in (table[NAMES[::-1]], table.rename(columns={NAMES[0]: "unknown"}), table[NAMES[:-1]]):
        with pytest.raises(ValueError, match="feature names should match"):
            case.use(model, other)
    assert not hasattr(case.fit(model, X), "feature_names_in_")


@with_columns
def test_another_number_of_columns_is_refused(case):
    model = case.fit(case.make(), case.data[0])
    with pytest.raises(ValueError, match="X has 7 features"):
        case.use(model, case.data[1])


@learning_further
def test_further_learning_checks_and_keeps_column_names(case):
    X = case.data[0]
    table = frame(X)
    model = case.fit(case.make(), table)
    before, kept = state(model), answers(case, model, table)
    for other in (table[NAMES[::-1]], frame(case.bad)):
        with pytest.raises((ValueError, InputError)):
            case.further(model, other)
    assert same_state(model, before)
    np.testing.assert_array_equal(answers(case, model, table), kept)
    assert list(case.further(model, table).feature_names_in_) == NAMES
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        case.further(model, X)
    assert list(model.feature_names_in_) == NAMES


@learning_further
def test_interrupted_further_learning_leaves_a_whole_model(case):
    X = case.data[0]

    def begun():
        return case.fit(case.make(), X)

    new = answers(case, case.further(begun(), X), X)
    model = begun()
    total = calls_of(lambda: case.further(model, X))
    for at in (1, total // 2, total):
        model = begun()
        before, old = state(model), answers(case, model, X)
        with suppress(KeyboardInterrupt):
            calls_of(lambda model=model: case.further(model, X), stop_at=at)
        if same_state(model, before):
            np.testing.assert_array_equal(answers(case, model, X), old)
        elif not case.keeps_partial:
            np.testing.assert_array_equal(answers(case, model, X), new)


@every
def test_the_same_seed_gives_the_same_bits(case):
    X = case.data[0]
    one, other = (answers(case, case.fit(case.make(), X), X) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@every
def test_a_clone_is_unfitted(case):
    model = case.fit(case.make(), case.data[0])
    fresh = clone(model)
    assert not state(fresh)
    assert params(fresh) == params(model)
    np.testing.assert_array_equal(
        answers(case, case.fit(fresh, case.data[0]), case.data[0]), answers(case, model, case.data[0])
    )


@every
def test_a_pickled_model_answers_the_same(case):
    X = case.data[0]
    model = case.fit(case.make(), X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(answers(case, again, X), answers(case, model, X))


@every
def test_a_saved_model_answers_the_same_and_keeps_its_columns(case, tmp_path, monkeypatch):
    model = case.fit(case.make(), frame(case.data[0]) if case.has_columns else case.data[0])
    name, path = type(model).__name__, tmp_path / "model.safetensors"
    monkeypatch.setattr(corank.models, name, type(model), raising=False)
    monkeypatch.setattr(corank.models, "__all__", [*corank.models.__all__, name])
    if not case.is_saved:
        with pytest.raises(InputError):
            corank.save(model, path)
        return
    corank.save(model, path)
    again = corank.load(path)
    assert params(again) == params(model)
    if case.has_columns:
        table = frame(case.data[0])
        np.testing.assert_array_equal(answers(case, again, table), answers(case, model, table))
        with pytest.raises(ValueError, match="feature names should match"):
            case.use(again, table[NAMES[::-1]])
    else:
        np.testing.assert_array_equal(answers(case, again, case.data[0]), answers(case, model, case.data[0]))


@pytest.mark.parametrize("name", ["PDGD", "PairwiseEpsilonGreedy"])
def test_a_first_list_that_fails_leaves_an_unfitted_ranker(name, monkeypatch):
    make, X = LEARNERS[name].make, PROBLEM.X[:6]
    impression = make().show(X)
    for step in ("_step", "_draw"):
        model = make()

        def fail(*_: Any, **__: Any) -> None:
            raise InputError("on purpose")

        monkeypatch.setattr(type(model), step, fail)
        with pytest.raises(InputError, match="on purpose"):
            model.learn(impression, np.ones(len(impression))) if step == "_step" else model.show(X)
        assert not state(model)


def test_the_problem_has_as_many_columns_as_names():
    assert PROBLEM.X.shape[1] == len(NAMES) == 20
