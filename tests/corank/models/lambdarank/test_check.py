"""check_lambda on λ whose properties are known."""

from __future__ import annotations

import numpy as np
import pytest

from corank.errors import InputError
from corank.models import check_lambda
from corank.models.lambdarank import Lambda
from corank.models.lambdarank.check import LambdaField

Y = [2, 1, 0, 2]


def rotating(scores, labels):
    """A rotation: λ = (−s_2, s_1, 0, ...), the gradient of no cost."""
    lambdas = np.zeros(len(scores))
    lambdas[0], lambdas[1] = -scores[1], scores[0]
    return lambdas


def saddle(scores, labels):
    """Gradient of −(s_1² − s_2²)/2, negated."""
    lambdas = np.zeros(len(scores))
    lambdas[0], lambdas[1] = scores[0], -scores[1]
    return lambdas


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("lambdas", "conservative", "convex"),
    [
        ("ranknet", True, True), ("margin", True, True), ("margin(0.5)", True, True), ("margin(2)", True, False),
        ("ndcg", False, False), ("map", False, False), ("wta", True, False), ("regression", True, True),
        (rotating, False, False), (saddle, True, False), ("ndcg + 5*spring", False, False),
        ("wta + 2*spring", True, True),
    ],
)  # fmt: skip
def test_results_are_those_on_paper(lambdas, conservative, convex):
    result = check_lambda(lambdas, Y, n_points=20)
    assert (result.conservative, result.convex) == (conservative, convex), str(result)
    assert str(result).startswith(f"{result.name}: {'a cost exists' if conservative else 'no cost has this gradient'}")


@pytest.mark.long
def test_evidence_can_be_looked_up():
    whirl = check_lambda(rotating, [1, 0, 0], n_points=10)
    assert whirl.asymmetry == pytest.approx(2.0, rel=1e-6)
    assert set(whirl.asymmetric_pair) == {0, 1}
    assert whirl.circulation > 0.001
    bent = check_lambda(saddle, [1, 0, 0], n_points=10)
    assert bent.eigenvalue == pytest.approx(1.0, rel=1e-6)
    assert bent.spring == pytest.approx(1.0, rel=1e-6)
    jumping = check_lambda("ndcg", Y, n_points=10)
    assert jumping.asymmetry < 1e-5  # inside an order of the rows all is well
    a, b = jumping.sideways_pair
    s = jumping.sideways_at
    assert s[a] == s[b]
    e = np.eye(4)[a] - np.eye(4)[b]
    jump = Lambda.of("ndcg")(s + 1e-7 * e, Y) - Lambda.of("ndcg")(s - 1e-7 * e, Y)
    others = np.delete(jump, [a, b])
    assert np.abs(others).max() > 1e-3  # λ of other rows changes too


def test_lambdas_of_any_size_have_smooth_points():
    """Rounding errors of differences grow with λ, and are not kinks."""
    field = LambdaField.of(lambda scores, labels: 1e6 * Lambda.of("ranknet")(scores, labels), Y, 4)
    points = list(field.smooth_points(5, np.random.default_rng(0)))
    assert len(points) == 5
    for scores, jacobian in points:
        plain = LambdaField.of("ranknet", Y, 4).jacobian(scores)
        np.testing.assert_allclose(jacobian, 1e6 * plain, rtol=1e-5, atol=1e-2)


@pytest.mark.long
def test_jumps_and_kinks_are_found():
    one = check_lambda("margin", [1, 0], n_points=10)
    assert one.jumps == ()
    assert one.kinks == ("where two scores are equal", "where two scores differ by 1")
    half = check_lambda("margin(0.5)", [1, 0], n_points=10)
    assert half.jumps == ("where two scores are equal",)
    assert half.kinks == ("where two scores differ by 0.5",)
    assert half.rising == 0.0
    assert check_lambda("margin(2)", [1, 0], n_points=10).rising > 0.1
    smooth = check_lambda("ranknet", [1, 0], n_points=10)
    assert smooth.jumps == smooth.kinks == ()


@pytest.mark.long
def test_sums_shifts_and_scales():
    ranknet, spring = check_lambda("ranknet", Y, n_points=10), check_lambda("spring", Y, n_points=10)
    assert ranknet.total < 1e-12
    assert ranknet.shift < 1e-12
    assert spring.total > 0.1
    assert spring.scaling == "doubles λ"
    by_order = check_lambda(lambda s, y: np.argsort(np.argsort(-s)) * 1.0, Y, n_points=5)
    assert by_order.scaling.startswith("changes nothing")


def test_a_given_jacobian_is_used():
    asked = []

    def jacobian(scores, labels):
        asked.append(1)
        return -np.eye(len(scores))

    assert check_lambda("spring", Y, n_points=5, jacobian=jacobian).convex
    assert len(asked) >= 5


def test_the_work_of_a_margin_is_the_cost_on_paper():
    rng = np.random.default_rng(0)
    for delta in (1.0, 0.4):
        field = LambdaField.of(f"margin(delta={delta})", [1, 0], 0)
        for s in rng.normal(size=(5, 2)):
            x = s[0] - s[1]
            # equations (7) to (9)
            paper = -x if x < 0 else 0.5 * x**2 - delta * x if x <= delta else -0.5 * delta**2
            assert -field.work(np.zeros(2), s) == pytest.approx(paper, abs=1e-10)


def test_work_in_a_quadratic_field():
    field = LambdaField.of("spring", [0, 1, 2], 0)
    a, b = np.array([1.0, 2, 0]), np.array([0.0, -1, 3])
    assert field.work(a, b) == pytest.approx(0.5 * (a @ a - b @ b), abs=1e-12)


def test_bad_questions():
    with pytest.raises(InputError, match="labels has 1 grades"):
        check_lambda("ranknet", [1])
    with pytest.raises(InputError, match="n is 1; pass a whole number of at least 2"):
        check_lambda("ranknet", n=1)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="has a kink at every point"):
        check_lambda(lambda s, y: rng.normal(size=len(s)), Y, n_points=2)
