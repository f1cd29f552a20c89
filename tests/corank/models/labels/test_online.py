from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import corank
from corank.base.kernels import GaussianKernel
from corank.errors import InputError
from corank.models.labels import (
    LabelPreferences,
    OnlineLabelRanker,
    footrule_distance,
    kendall_distance,
    top_positions,
)
from helpers.explicit_labels import algorithm_1, constraints

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 3))
RANKS = np.argsort(np.argsort(RNG.random((60, 4)), axis=1), axis=1) + 1
TOP = np.where(RNG.random((60, 4)) < 0.5, RANKS, 0)
SETS = (TOP > 0).astype(int)
CLASSES = RNG.integers(0, 4, size=60)


def positions(values):
    """Positions of an order that is given by numbers, higher is better."""
    return -np.asarray(values, dtype=float)[None]


def losses(kind, preferences):
    """What a prediction costs, by the public measures: projected utilities against the truth."""
    project = {
        "ranks": lambda u: u,
        "top": lambda u: np.maximum(u, 0.0),
        "relevant": lambda u: (u > 0) * 1.0,
        "classes": lambda u: (u == u.max()) * 1.0,
    }[preferences.kind]
    truth = positions

    def order(distance):
        return lambda t, u: distance(truth(preferences.levels[t]), positions(project(u)))[0]

    return {
        "kendall": order(kendall_distance),
        "footrule": order(footrule_distance),
    }[kind]


CASES = [
    *((kind, "ranks", RANKS, how) for kind in ("kendall", "footrule") for how in ("all", "adjacent")),
    *((kind, "top", TOP, "adjacent") for kind in ("kendall", "footrule")),
    *((kind, "relevant", SETS, "all") for kind in ("kendall", "footrule")),
    ("kendall", "classes", CLASSES, "all"),
]


def preferences_of(targets, y):
    makers = {"ranks": LabelPreferences.from_ranks, "top": LabelPreferences.from_top}
    makers["relevant"] = LabelPreferences.from_indicator
    makers["classes"] = lambda y: LabelPreferences.from_classes(y, 4)
    return makers[targets](y)


@pytest.mark.parametrize(("kind", "targets", "y", "conversion"), CASES)
@pytest.mark.parametrize("average", [False, True])
def test_the_stream_is_learnt_as_the_paper_prints_it(kind, targets, y, conversion, average):
    preferences = preferences_of(targets, y)
    how = {"conversion": conversion, "above_zero": "lowest"}
    examples = [
        constraints(level, side, (), **how)
        for level, side in zip(preferences.levels, preferences.sides, strict=True)
    ]  # fmt: skip
    model = OnlineLabelRanker(kind, targets, average=average, **how).partial_fit(X, y)
    ones = np.hstack([X, np.ones((60, 1))])
    W, cumulated = algorithm_1(ones, 4, examples, losses(kind, preferences), average=average)
    np.testing.assert_allclose(np.column_stack([model.coef_, model.intercept_]), W, atol=1e-9)
    assert model.cumulative_loss_ == pytest.approx(cumulated)
    assert model.n_iter_ == 60


@pytest.mark.parametrize("kernel", [None, "gaussian"])
def test_any_function_is_a_loss(kernel):
    """The distance that the kernels compute, and one that they do not know."""
    ranks, how = -RANKS.astype(float), {"conversion": "all", "above_zero": "lowest"}

    def kendall(example, utilities):
        return kendall_distance(example.ranks(), positions(utilities))[0]

    known = OnlineLabelRanker("kendall", "ranks", kernel, n_epochs=2, random_state=0, **how).fit(X, RANKS)
    given = OnlineLabelRanker(kendall, "ranks", kernel, n_epochs=2, random_state=0, **how).fit(X, RANKS)
    np.testing.assert_allclose(given.decision_function(X), known.decision_function(X), rtol=0, atol=1e-10)

    def top_is_wrong(example, utilities):
        return float(np.argmax(utilities) != np.argmin(example.ranks()[0]))

    if kernel is None:
        preferences = LabelPreferences.from_ranks(RANKS)
        examples = [
            constraints(level, side, (), **how)
            for level, side in zip(preferences.levels, preferences.sides, strict=True)
        ]
        W, cumulated = algorithm_1(
            np.hstack([X, np.ones((60, 1))]),
            4,
            examples,
            lambda t, u: float(np.argmax(u) != np.argmax(ranks[t])),
            average=True,
        )
        model = OnlineLabelRanker(top_is_wrong, "ranks", **how).partial_fit(X, RANKS)
        np.testing.assert_allclose(np.column_stack([model.coef_, model.intercept_]), W, atol=1e-9)
        assert model.cumulative_loss_ == pytest.approx(cumulated)
    with pytest.raises(InputError, match="ranking_loss"):
        OnlineLabelRanker(lambda example, utilities: -1.0, "ranks", kernel).fit(X, RANKS)


def test_a_refit_to_rankings_forgets_the_zero_point():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = corank.OnlineLabelRanker(targets="relevant").fit(X, (X > 0).astype(int))
    assert model.is_calibrated_
    model.set_params(targets="ranks").fit(X, np.argsort(np.argsort(-X, axis=1), axis=1) + 1)
    assert not model.is_calibrated_


def test_the_share_of_violated_constraints_is_a_loss_of_any_preferences():
    pairs = [[(0, 1)], [(1, 2), (2, 0)], []] * 20
    made = LabelPreferences.from_pairs(pairs, 3, relevant=[[0], [], [2]] * 20, irrelevant=[[], [0], []] * 20)
    examples = [set(zip(*(side.tolist() for side in made[[i]].constraints()[1:]), strict=True)) for i in range(60)]

    def share(t, u):
        full = np.append(u, 0.0)
        return np.mean([full[r] <= full[s] for r, s in examples[t]])

    model = OnlineLabelRanker(fit_intercept=False, average=False).partial_fit(X, made)
    np.testing.assert_allclose(model.coef_, algorithm_1(X, 3, examples, share)[0], atol=1e-9)
    assert not model.intercept_.any()
    assert model.predict(X).shape == (60, 3)
    assert 0.0 <= model.score(X, made) <= 1.0


def test_a_calibrated_order_has_the_zero_point_among_its_labels():
    relevant = (RANKS <= 2).astype(int)
    made = LabelPreferences.from_ranks(RANKS, relevant=relevant)
    examples = [constraints(level, side) for level, side in zip(made.levels, made.sides, strict=True)]

    def kendall(t, u):
        return kendall_distance(positions([*made.levels[t], 1.5]), positions([*u, 0.0]))[0]

    model = OnlineLabelRanker("kendall", fit_intercept=False, average=False).partial_fit(X, made)
    np.testing.assert_allclose(model.coef_, algorithm_1(X, 4, examples, kendall)[0], atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", GaussianKernel(0.3)])
@pytest.mark.parametrize("average", [False, True])
def test_the_dual_form_is_the_primal_one_in_the_space_of_the_kernel(kernel, average):
    dual = OnlineLabelRanker("kendall", "top", kernel, average=average, n_epochs=3, random_state=0).fit(X, TOP)
    if kernel == "linear":
        primal = OnlineLabelRanker("kendall", "top", average=average, n_epochs=3, random_state=0)
        # the first generator is the kernel's, so that the orders agree
        expected = primal.fit(X, TOP).utilities(X)
        np.testing.assert_allclose(dual.basis_.rows.T @ dual.dual_coef_, primal.coef_.T, atol=1e-9)
    else:
        # a factor of the Gram matrix has the same products
        K = np.exp(-0.3 * cdist(X, X, "sqeuclidean"))
        root = np.linalg.cholesky(K + 1e-12 * np.eye(60))
        expected = OnlineLabelRanker("kendall", "top", average=average, n_epochs=3, random_state=0).fit(root, TOP)
        expected = expected.utilities(root)
    np.testing.assert_allclose(dual.utilities(X), expected, atol=1e-6)
    assert len(dual.basis_) <= 60


@pytest.mark.parametrize("kernel", [None, GaussianKernel(0.3)])
def test_parts_of_a_stream_are_the_stream_also_through_a_file(kernel, tmp_path):
    whole = OnlineLabelRanker("kendall", "top", kernel).partial_fit(X, TOP)
    parts = OnlineLabelRanker("kendall", "top", kernel).partial_fit(X[:20], TOP[:20])
    parts.partial_fit(X[20:21], TOP[20:21])
    corank.save(parts, tmp_path / "m.safetensors")
    parts = corank.load(tmp_path / "m.safetensors").partial_fit(X[21:], TOP[21:])
    np.testing.assert_array_equal(whole.utilities(X), parts.utilities(X))
    assert (whole.cumulative_loss_, whole.n_iter_) == (parts.cumulative_loss_, parts.n_iter_)
    # where it stands among saved files, too
    corank.save(parts, tmp_path / "n.safetensors")
    np.testing.assert_array_equal(corank.load(tmp_path / "n.safetensors").predict(X), parts.predict(X))


@pytest.mark.long
@pytest.mark.parametrize("kernel", [None, GaussianKernel(0.3)])
def test_sparse_and_single_precision_rows_are_rows(kernel):
    for rows in (sparse.csr_array(X), X.astype(np.float32)):
        model = OnlineLabelRanker("kendall", "top", kernel, random_state=0)
        found = model.fit(rows, TOP).utilities(rows)
        np.testing.assert_allclose(found, model.fit(np.asarray(X, rows.dtype), TOP).utilities(X), atol=1e-4)
    mixed = OnlineLabelRanker("kendall", "top", kernel).partial_fit(sparse.csr_array(X[:30]), TOP[:30])
    mixed.partial_fit(X[30:], TOP[30:])
    expected = OnlineLabelRanker("kendall", "top", kernel).partial_fit(X, TOP).utilities(X)
    np.testing.assert_allclose(mixed.utilities(X), expected, atol=1e-9)


def separable(n, d, p, margin, rng):
    """A stream of top lists that W of norm 1 separates with a margin, rows of length 1."""
    W = rng.normal(size=(d, p))
    W /= np.linalg.norm(W)
    rows = []
    while len(rows) < n:
        x = rng.normal(size=(4 * n, p))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        gaps = np.diff(np.sort(np.hstack([x @ W.T, np.zeros((4 * n, 1))]), axis=1), axis=1).min(axis=1)
        rows += list(x[gaps >= margin])
    x = np.array(rows[:n])
    u = x @ W.T
    return x, np.where(u > 0, np.argsort(np.argsort(-u, axis=1), axis=1) + 1, 0)


@pytest.mark.parametrize("loss", ["share", "kendall", "footrule"])
@pytest.mark.parametrize("conversion", ["all", "adjacent"])
def test_the_cumulative_loss_of_a_separable_stream_flattens_below_the_bound(loss, conversion):
    margin = 0.03
    x, top = separable(8000, 4, 5, margin, np.random.default_rng(1))
    model = OnlineLabelRanker(loss, "top", conversion=conversion, fit_intercept=False, average=False)
    parts = zip(np.split(x, 8), np.split(top, 8), strict=True)
    sums = [0.0, *(model.partial_fit(*part).cumulative_loss_ for part in parts)]
    assert sums[-1] <= 2.0 / margin**2
    gained = np.diff(sums)
    assert gained[-1] < 0.15 * gained[0]
    assert gained[4:].sum() < gained[:4].sum() / 2
    # gone over again and again, a stream that can be separated is
    for _ in range(30):
        before = model.cumulative_loss_
        model.partial_fit(x[:1000], top[:1000])
    assert model.cumulative_loss_ == before
    assert model.cumulative_loss_ <= 2.0 / margin**2
    assert model.score(x[:1000], top[:1000]) == 1.0


def test_the_bound_is_looked_at_again_where_nothing_separates():
    """Noise has no margin: the sum continues to grow."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4000, 3)), rng.integers(0, 2, size=(4000, 3))
    model = OnlineLabelRanker("kendall")
    parts = zip(np.split(x, 4), np.split(y, 4), strict=True)
    sums = [model.partial_fit(part, labels).cumulative_loss_ for part, labels in parts]
    assert np.diff(sums).min() > 0.5 * sums[0]


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (OnlineLabelRanker("hamming"), SETS, "ranking_loss is 'hamming'; pass 'share' or 'kendall' or 'footrule'"),
        (OnlineLabelRanker("kendall"), LabelPreferences.from_pairs([[(0, 1)]] * 60, 2), "y holds pairs"),
        (OnlineLabelRanker(kernel="precomputed"), SETS, "choose another kernel"),
        (OnlineLabelRanker("tau"), SETS, "ranking_loss is 'tau'"),
        (OnlineLabelRanker(n_epochs=-1), SETS, "n_epochs is -1"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(model, y, message):
    with pytest.raises(InputError, match=message):
        model.fit(X, y)


def test_a_stream_does_not_change_its_kind_its_labels_or_its_columns():
    model = OnlineLabelRanker().partial_fit(X, SETS)
    before = model.coef_.copy()
    for rows, y, message in (
        (X, SETS[:, :3], r"labels \[0, 1, 2\], but they were"),
        (X, CLASSES, "none of|relevant"),
        (X[:, :2], SETS, "2 features"),
        (X[:5], SETS, "60 examples for 5 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, y)
    np.testing.assert_array_equal(model.coef_, before)
    classes = OnlineLabelRanker().partial_fit(X[:1], CLASSES[:1], classes=[0, 1, 2, 3])
    assert classes.classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match="but it was"):
        classes.partial_fit(X, CLASSES, classes=[0, 1])
    with pytest.raises(InputError, match="class 9, not one of"):
        classes.partial_fit(X[:1], [9])
    assert OnlineLabelRanker(n_epochs=0).fit(X, SETS).n_iter_ == 0


def test_top_positions_of_predictions_are_those_of_the_utilities():
    model = OnlineLabelRanker("kendall", "top", random_state=0).fit(X, TOP)
    u = model.utilities(X)
    np.testing.assert_allclose(kendall_distance(top_positions(model.predict(X)), -np.maximum(u, 0)), 0.0)


def test_a_stream_that_was_not_averaged_cannot_be_averaged_later():
    model = OnlineLabelRanker(average=False).partial_fit(X, SETS)
    with pytest.raises(InputError, match="the first call of this model used"):
        model.set_params(average=True).partial_fit(X, SETS)


@pytest.mark.parametrize("size", [1.1e15, 1e150, 5e307])
def test_numbers_that_are_too_large_leave_the_old_model(size):
    model = OnlineLabelRanker().partial_fit(X, SETS)
    before = model.coef_
    for rows in (size * X / np.abs(X).max(), sparse.csr_array(size * X / np.abs(X).max())):
        with pytest.raises(InputError, match="X holds the value"):
            model.partial_fit(rows, SETS)
    assert model.coef_ is before
