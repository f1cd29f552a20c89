"""Adam against the formulas of its paper, written out for scalars."""

import numpy as np

from corank.base.solvers.choice import Adam


def test_adam_follows_the_formulas_of_the_paper():
    rng = np.random.default_rng(0)
    theta = [rng.normal(size=3), rng.normal(size=(2, 2))]
    gradients = [[rng.normal(size=part.shape) for part in theta] for _ in range(5)]
    adam = Adam.start(theta)
    for g in gradients:
        adam = adam.update(g)
        theta = [part - d for part, d in zip(theta, adam.directions(0.1), strict=True)]
    m = v = 0.0
    entry = np.random.default_rng(0).normal(size=3)[1]
    for t, g in enumerate((g[0][1] for g in gradients), 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        entry -= 0.1 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)
    np.testing.assert_allclose(theta[0][1], entry, rtol=1e-12)


def test_the_first_step_has_the_size_of_the_rate():
    adam = Adam.start([np.zeros(2)]).update([np.array([1e-3, -50.0])])
    np.testing.assert_allclose(adam.directions(0.5)[0], [0.5, -0.5], rtol=1e-4)


def test_an_update_leaves_the_earlier_state_as_it_was():
    start = Adam.start([np.zeros(2)])
    start.update([np.ones(2)])
    assert start.n_steps == 0
    assert not start.first[0].any()
    assert not start.second[0].any()
