"""Equal rows get equal bits within a call, from every estimator and every public prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from corank.base import ColumnMean, QueryScaler
from corank.base.kernels import KERNELS, CallableKernel
from corank.errors import InputError
from corank.models.gp import PreferenceGP
from corank.models.rls import CoRankRLS, RankRLS, ViewRankRLS
from helpers.learners import LEARNERS, PROBLEM, Case, is_long

pytestmark = pytest.mark.filterwarnings("ignore::corank.errors.UsageWarning")

METHODS = (
    "predict", "predict_views", "predict_path", "predict_proba", "predict_level", "decision_function", "utilities",
    "transform",
)  # fmt: skip
FORMS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
}
RNG = np.random.default_rng(5)
# a number of rows that no block of a product divides; every row is repeated about fifteen times
CHOSEN = RNG.integers(0, len(PROBLEM.X), 1003)
FIRST = np.array([np.flatnonzero(row == CHOSEN)[0] for row in CHOSEN])


def answers(model: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the result of every public prediction of one value, or one row of values, per row."""
    one_query = {"qid": np.zeros(X.shape[0])} if isinstance(model, ColumnMean | QueryScaler) else {}
    for name in METHODS:
        if hasattr(model, name) and (name != "predict_path" or hasattr(model, "alpha_path_")):
            yield name, getattr(model, name)(X, **one_query)
    if hasattr(model, "process_"):
        yield "standard deviation", model.predict(X, return_std=True)[1]
    if hasattr(model, "predict_pair"):
        other = int(np.flatnonzero(FIRST != 0)[0])
        yield "predict_pair", model.predict_pair(X, [(row, 0 if FIRST[row] else other) for row in range(X.shape[0])])
        yield "mean of the posterior", model.posterior(X).mean
        yield "covariance", model.posterior(X).covariance


def require_equal_bits(model: Any, X: Any) -> None:
    found = 0
    for name, values in answers(model, X):
        values = values.toarray() if sparse.issparse(values) else np.asarray(values)
        np.testing.assert_array_equal(values, values[FIRST], err_msg=name)
        found += 1
    assert found


CASES = [
    pytest.param(case, id=name, marks=[pytest.mark.long] if is_long(name) else [])
    for name, case in LEARNERS.items()
    if case.has_columns and name != "Fusion"  # ranks of equal rows differ: ties are broken by the order of rows
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_equal_rows_get_equal_bits(case: Case, form: str):
    X = case.data[0]
    model = case.fit(case.make(), X)
    rows = FORMS[form](X[CHOSEN])
    try:
        require_equal_bits(model, rows)
    except InputError as error:
        if "sparse" not in str(error):
            raise
        pytest.skip("takes no sparse rows")


def kernels() -> dict[str, Any]:
    named = {name: name for name in KERNELS if name not in ("precomputed", "chi-square")}
    return {**named, "function": CallableKernel(lambda A, B: np.exp(-0.1 * np.abs(A[:, None] - B).sum(axis=2)))}


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize(
    "make",
    [
        lambda kernel: RankRLS(kernel=kernel, alphas=[0.1, 1.0]),
        lambda kernel: CoRankRLS(2, kernel=kernel, random_state=0),
        lambda kernel: ViewRankRLS(2, 0.1, kernel=kernel, metric="evidence", random_state=0),
        lambda kernel: PreferenceGP(kernel, learn=False),
    ],
    ids=["RankRLS", "CoRankRLS", "ViewRankRLS", "PreferenceGP"],
)
def test_equal_rows_get_equal_bits_with_every_kernel(make: Callable[[Any], Any], name: str):
    model = make(kernels()[name])
    if not isinstance(kernels()[name], str) and not isinstance(model, RankRLS | PreferenceGP):
        pytest.skip("a function takes all columns")
    require_equal_bits(model.fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid), PROBLEM.X[CHOSEN])


def test_equal_objects_get_equal_bits():
    words = np.array([f"{a}{b}" for a in "abcdefghijkl" for b in "mnopqr"], dtype=object)
    shared = CallableKernel(lambda A, B: [[len(set(a) & set(b)) + 0.1 * (a == b) for b in B] for a in A])
    y = RNG.normal(size=len(words))
    chosen = RNG.integers(0, len(words), 205)
    first = np.array([np.flatnonzero(chosen == row)[0] for row in chosen])
    model = RankRLS(kernel=shared, alphas=[0.1, 1.0]).fit(words, y)
    for scores in (model.predict(words[chosen]), model.predict_path(words[chosen])):
        np.testing.assert_array_equal(scores, scores[first])


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 13, 46, 136, 700])
@pytest.mark.parametrize("form", FORMS)
def test_weights_of_columns_ignore_the_position_of_a_row(form: str, d: int):
    X = RNG.normal(size=(97, d)) * (RNG.random((97, d)) < 0.8)
    model = RankRLS(0.1, scale=False).fit(X, RNG.normal(size=97))
    order = RNG.permutation(np.repeat(np.arange(97), 21))
    scores, again = model.predict(FORMS[form](X[order])), model.predict(FORMS[form](X))
    np.testing.assert_array_equal(scores, again[order])
