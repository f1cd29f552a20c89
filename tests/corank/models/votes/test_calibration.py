"""Error bars mean the same everywhere: differences to the mean item that are not surer than right."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from corank import Leaderboard, PreferenceGP
from corank.models import Posterior, fit_judges
from corank_lab.preferences import PairwiseAnswer, Ranking
from corank_lab.preferences.model import PreferenceModel

N_ITEMS = 12
SETTINGS = [(has_features, has_ties) for has_features in (True, False) for has_ties in (False, True)]


def drawn(n, seed, has_features, has_ties):
    """Features, true values, pairs with the better item first, and which of them are ties."""
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(N_ITEMS, 2))
    f = X @ [1.0, 0.6] if has_features else rng.normal(size=N_ITEMS)
    f = (f - f.mean()) / f.std()
    a = rng.integers(0, N_ITEMS, n)
    b = (a + rng.integers(1, N_ITEMS, n)) % N_ITEMS
    gap = f[a] - f[b] + 0.5 * rng.normal(size=n)
    pairs = np.where((gap > 0)[:, None], np.column_stack([a, b]), np.column_stack([b, a]))
    return X if has_features else np.zeros((N_ITEMS, 0)), f, pairs, (np.abs(gap) < 0.4) & has_ties


def weighted(pairs, is_tie):
    """A tie is half an answer in each direction."""
    weight = np.where(is_tie, 0.5, 1.0)
    return np.concatenate([pairs, pairs[is_tie][:, ::-1]]), np.concatenate([weight, np.full(is_tie.sum(), 0.5)])


def process(X, pairs, is_tie, likelihood="probit"):
    rows = X if X.shape[1] else np.eye(N_ITEMS)
    both, weight = weighted(pairs, is_tie)
    return PreferenceGP(likelihood=likelihood, random_state=0).fit(rows, pairs=both, pair_weight=weight).posterior()


def logistic(X, pairs, is_tie):
    return process(X, pairs, is_tie, "logistic")


def judges(X, pairs, is_tie):
    half = len(pairs) // 2
    parts = [weighted(pairs[part], is_tie[part]) for part in (slice(half), slice(half, None))]
    return fit_judges(np.eye(N_ITEMS), parts).overall


def board(X, pairs, is_tie):
    names = [f"i{number}" for number in range(N_ITEMS)]
    # all items, without a vote if need be
    features = dict(zip(names, X if X.shape[1] else np.arange(N_ITEMS)[:, None], strict=True))
    winners, losers = ([names[item] for item in side] for side in pairs.T)
    model = Leaderboard().fit(winners, losers, ties=is_tie, features=features)
    order = [model.items_.index(name) for name in names]
    posterior = Posterior(model.scores_[order], model.covariance_[np.ix_(order, order)])
    assert posterior.std == pytest.approx(model.std_[order])  # one definition
    return posterior


def answers_of(pairs, is_tie):
    return [PairwiseAnswer(int(a), int(b), bool(tie)) for (a, b), tie in zip(pairs, is_tie, strict=True)]


def prefer(X, pairs, is_tie):
    posterior = PreferenceModel(X).learn(answers_of(pairs, is_tie)).values
    assert Ranking.of(posterior).std == pytest.approx(posterior.std)
    return posterior


def page(X, pairs, is_tie):
    answers, half = answers_of(pairs, is_tie), len(pairs) // 2
    return PreferenceModel(X).learn_judges({"ann": answers[:half], "bob": answers[half:]}).overall


MODELS = {"process": process, "logistic": logistic, "judges": judges, "board": board, "prefer": prefer, "page": page}


@pytest.mark.thin(11)
@pytest.mark.parametrize("n", [5, 12, 30, 100, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("has_features", "has_ties"), SETTINGS)
@pytest.mark.parametrize("name", MODELS)
def test_no_model_is_surer_than_right(name, n, has_features, has_ties):
    i, j = np.triu_indices(N_ITEMS, 1)
    claimed, right = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(8):
            X, f, pairs, is_tie = drawn(n, seed, has_features, has_ties)
            mean, var = MODELS[name](X, pairs, is_tie).differences(np.column_stack([i, j]))
            claimed.append(ndtr(np.abs(mean) / np.sqrt(np.maximum(var, 1e-12))))
            right.append(np.where(mean == 0, 0.5, (mean > 0) == (f[i] > f[j])))
    assert np.mean(claimed) <= np.mean(right) + 0.03
