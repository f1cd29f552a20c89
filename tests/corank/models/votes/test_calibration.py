"""Error bars mean the same everywhere: differences to the mean item that are not surer than right."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from corank import Leaderboard, PreferenceGP
from corank.models import Posterior, fit_judges

N_ITEMS = 12


def answers(n, seed, has_features):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ITEMS, 2))
    f = X @ [1.0, 0.6] if has_features else rng.normal(size=N_ITEMS)
    f = (f - f.mean()) / f.std()
    a = rng.integers(0, N_ITEMS, n)
    b = (a + rng.integers(1, N_ITEMS, n)) % N_ITEMS
    wins = f[a] - f[b] + 0.5 * rng.normal(size=n) > 0
    return X, f, np.where(wins[:, None], np.column_stack([a, b]), np.column_stack([b, a]))


def process(X, pairs):
    return PreferenceGP(random_state=0).fit(X, pairs=pairs).posterior()


def judges(X, pairs):
    return fit_judges(np.eye(N_ITEMS), [(pairs, None)]).overall


def board(X, pairs):
    names = [f"i{at}" for at in range(N_ITEMS)]
    # all items, without a vote if need be
    features = None if X is None else {name: X[at] for at, name in enumerate(names)}
    model = Leaderboard().fit([names[a] for a, _ in pairs], [names[b] for _, b in pairs], features=features)
    at = [model.items_.index(name) for name in names]
    posterior = Posterior(model.scores_[at], model.covariance_[np.ix_(at, at)])
    assert posterior.std == pytest.approx(model.std_[at])  # one definition
    return posterior


MODELS = {"process": process, "judges": judges, "board": board}


@pytest.mark.thin(4)
@pytest.mark.parametrize("n", [5, 12, 30, 100, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", MODELS)
def test_no_model_is_surer_than_right(name, n):
    i, j = np.triu_indices(N_ITEMS, 1)
    said, right = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(8):
            X, f, pairs = answers(n, seed, has_features=name != "judges")
            mean, var = MODELS[name](X, pairs).differences(np.column_stack([i, j]))
            said.append(ndtr(np.abs(mean) / np.sqrt(np.maximum(var, 1e-12))))
            right.append((mean > 0) == (f[i] > f[j]))
    assert np.mean(said) <= np.mean(right) + 0.03
