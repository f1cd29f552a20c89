"""The three fits against brute force: every candidate tried, every system solved anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.base.pairs import Laplacian
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.models.pursuit.dictionary import Dictionary, Target
from corank.models.pursuit.path import Path, steps


def problem(seed, n=24, N=9):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(n, N))
    y = rng.integers(0, 4, n).astype(float)
    return D, y, rng.integers(0, 3, n)


def dense_form(y, qid, mix, query_weight="pairs"):
    L = Laplacian.per_query(Queries.of(qid, len(y)), query_weight).toarray()
    return mix * np.eye(len(y)) + (1 - mix) * L


def brute(D, y, A, n_basis, fitting):
    """Indices and coefficients of every length; J is evaluated for each candidate."""
    chosen, coefs, out = [], np.zeros(0), []
    for _ in range(n_basis):
        best = None
        for j in range(D.shape[1]):
            if fitting == "basic":
                r = y - D[:, chosen] @ coefs
                a = (D[:, j] @ A @ r) / (D[:, j] @ A @ D[:, j])
                trial = np.append(coefs, a)
            elif j in chosen:
                continue
            else:
                S = D[:, [*chosen, j]]
                again = np.linalg.lstsq(S.T @ A @ S, S.T @ A @ y, rcond=None)[0]
                r = y - D[:, chosen] @ coefs
                a = (D[:, j] @ A @ r) / (D[:, j] @ A @ D[:, j])
                trial = again if fitting == "pre" else np.append(coefs, a)
            r = y - D[:, [*chosen, j]] @ trial
            J = r @ A @ r
            if best is None or best[0] - 1e-9 > J:
                best = (J, j, trial)
        chosen.append(best[1])
        coefs = best[2]
        if fitting == "back":
            S = D[:, chosen]
            coefs = np.linalg.solve(S.T @ A @ S, S.T @ A @ y)
        out.append(coefs)
    return chosen, out


@pytest.mark.parametrize("fitting", ["basic", "back", "pre"])
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_each_fit_agrees_with_brute_force(fitting, mix):
    D, y, qid = problem(5)
    target = Target.of(RankingData.of(D, y, qid), mix, "pairs")
    dictionary = Dictionary(D)
    path = Path.follow(
        steps(dictionary, target, dictionary.squares(target.inner), fitting), 6, 0.0, lambda indices, coefs: False
    )
    A = dense_form(y, qid, mix)
    indices, coefs = brute(D, y, A, 6, fitting)
    assert path.indices.tolist() == indices
    for p in range(6):
        np.testing.assert_allclose(path.model(p + 1), coefs[p], rtol=1e-7, atol=1e-9)
        r = y - D[:, indices[: p + 1]] @ coefs[p]
        assert target.J - path.gains[: p + 1].sum() == pytest.approx(r @ A @ r)


@given(seed=st.integers(0, 10_000), fitting=st.sampled_from(["basic", "back", "pre"]), mix=st.sampled_from([0.0, 0.5]))
def test_the_objective_never_increases_and_converges_to_least_squares(seed, fitting, mix):
    D, y, qid = problem(seed)
    data = RankingData.of(D, y, qid)
    if not data.n_pairs:
        return
    target = Target.of(data, mix, "rows")
    dictionary = Dictionary(D)
    squares = dictionary.squares(target.inner)
    path = Path.follow(steps(dictionary, target, squares, fitting), 200, 0.0, lambda indices, coefs: False)
    A = dense_form(y, qid, mix, "rows")
    r = [y - D[:, path.indices[:p]] @ path.model(p) for p in range(1, len(path.indices) + 1)]
    J = np.array([target.J, *(one @ A @ one for one in r)])
    assert (np.diff(J) <= 1e-9 * target.J).all()
    np.testing.assert_allclose(-np.diff(J), path.gains, atol=1e-7 * target.J)
    best = np.linalg.lstsq(D.T @ A @ D, D.T @ A @ y, rcond=None)[0]
    least = (y - D @ best) @ A @ (y - D @ best)
    left = target.J - path.gains.sum()
    assert left >= least - 1e-7 * target.J
    if fitting != "basic":
        assert len(path.indices) <= D.shape[1]
        assert left == pytest.approx(least, abs=1e-7 * target.J)


def test_a_column_that_is_constant_in_every_query_is_never_chosen():
    D, y, qid = problem(1)
    D[:, 4] = qid * 1e6 + 7.3
    target = Target.of(RankingData.of(D, y, qid), 0.0, "pairs")
    dictionary = Dictionary(D)
    squares = dictionary.squares(target.inner)
    assert squares[4] == 0.0
    for fitting in ("basic", "back", "pre"):
        path = Path.follow(steps(dictionary, target, squares, fitting), 30, 0.0, lambda indices, coefs: False)
        assert 4 not in path.indices


def test_a_duplicate_column_is_chosen_once_by_refitting():
    D, y, qid = problem(2)
    D = np.hstack([D, D])
    target = Target.of(RankingData.of(D, y, qid), 0.0, "pairs")
    dictionary = Dictionary(D)
    for fitting in ("back", "pre"):
        walk = steps(dictionary, target, dictionary.squares(target.inner), fitting)
        path = Path.follow(walk, 30, 0.0, lambda indices, coefs: False)
        assert len(np.unique(path.indices % 9)) == len(path.indices) == 9
        assert np.isfinite(path.coefs).all()


@pytest.mark.thin(5)
@pytest.mark.parametrize("fitting", ["back", "pre"])
@pytest.mark.parametrize("gamma", [2.0**-5, 2.0**-10, 2.0**-15])
def test_refitting_is_stable_for_wide_kernels_and_equal_rows(fitting, gamma):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 25))
        X, y = rng.integers(-2, 3, (n, 6)).astype(float), rng.integers(1, 6, n).astype(float)
        X[0] = X[1]
        D = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        data = RankingData.of(D, y, rng.integers(0, 2, n))
        if not data.n_pairs:
            continue
        target = Target.of(data, 0.0, "pairs")
        dictionary = Dictionary(D)
        walk = steps(dictionary, target, dictionary.squares(target.inner), fitting)
        path = Path.follow(walk, 30, 1e-10 * target.J, lambda indices, coefs: False)
        A = dense_form(y, data.queries.codes, 0.0)
        for p in range(1, len(path.indices) + 1):
            r = y - D[:, path.indices[:p]] @ path.model(p)
            assert target.J - path.gains[:p].sum() == pytest.approx(r @ A @ r, abs=1e-5 * target.J)


def test_a_float32_dictionary_gives_nearly_the_same_path():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 8)), rng.normal(size=300)
    D = np.exp(-0.001 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    target = Target.of(RankingData.of(D, y), 0.0, "pairs")
    lengths = []
    for dtype in (np.float64, np.float32):
        dictionary = Dictionary(D.astype(dtype))
        walk = steps(dictionary, target, dictionary.squares(target.inner), "back")
        lengths.append(len(Path.follow(walk, 100, 0.0, lambda indices, coefs: False).indices))
    assert lengths[1] > 0.3 * lengths[0]
