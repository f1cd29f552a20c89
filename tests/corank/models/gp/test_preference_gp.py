"""PreferenceGP, against explicit Gaussian algebra, finite differences and simulated users."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import corank
from corank.base.kernels import ARDKernel, CallableKernel, GaussianKernel
from corank.base.kernels.views import View
from corank.errors import InputError, UsageWarning
from corank.models.gp import OrdinalGP, Posterior, PreferenceGP, suggest_pairs
from corank.models.gp import prior as features
from corank.models.gp.averaging import Preferences
from corank.models.gp.hyper import EvidenceOf
from corank.models.gp.preference_gp import _sampled
from corank.models.gp.prior import DistinctRows
from corank.models.gp.propagation import _add_sites
from corank.models.gp.sites import Sites
from corank_lab.preferences import Ranking
from helpers.simulated_users import answers, users

FIXED = {"kernel": GaussianKernel(0.2), "sigma": 0.2, "learn": False, "scale": False}
X, F, PAIRS = users()


def explicit(model, X, new, L=None):
    """Posterior mean and covariance of new rows from the sites, by inverses (K is well conditioned with a nugget)."""
    k = model.kernel_
    K = k(X) + 1e-10 * np.eye(len(X))
    P, cross, own = K, k(new, X), k(new)
    if L is not None:
        W = np.linalg.solve(np.eye(len(X)) + L @ K, L)
        P = K - K @ W @ K
        cross, own = cross - cross @ W @ K, own - cross @ W @ cross.T
    sites = model.sites_
    rows = model.rows_.numbers
    B = np.zeros((len(sites), len(X)))
    B[np.arange(len(sites)), rows[sites.left]] += 1
    B[np.arange(len(sites)), rows[sites.right]] -= 1
    t, h = sites.weight * model.site_tau_[0], sites.weight * model.site_nu_[0]
    S = B.T @ np.diag(t) @ B
    M = S @ np.linalg.inv(np.eye(len(X)) + P @ S)
    alpha = (np.eye(len(X)) - M @ P) @ (B.T @ h)
    return cross @ alpha, own - cross @ M @ cross.T


@pytest.mark.parametrize("m", [15, 150], ids=["fewer answers than rows", "more"])
@pytest.mark.parametrize("k", [None, 3], ids=["no graph", "graph"])
def test_predictions_are_those_of_the_explicit_formulas(m, k):
    model = PreferenceGP(**FIXED, graph_neighbors=k, graph_weight=0.5).fit(X, pairs=PAIRS[:m])
    new = np.vstack([X[:5], np.random.default_rng(1).normal(size=(6, 3))])
    L = None
    if k is not None:
        order = model.rows_.numbers
        L = np.zeros((len(X), len(X)))
        L[np.ix_(order, order)] = model.graph_.toarray()
        np.testing.assert_allclose(L.sum(axis=0), 0.0, atol=1e-12)
        assert (np.diagonal(L) >= 0.5 * 3).all()
    mean, cov = explicit(model, X, new, L)
    found, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean, atol=1e-5)
    np.testing.assert_allclose(model.predict(new), found, atol=1e-9)
    np.testing.assert_allclose(model.posterior(new).covariance, cov, atol=1e-5)
    # standard deviations are of differences to the mean of the rows of fit
    A = explicit(model, X, np.vstack([new, X]), L)[1]
    D = np.eye(len(A))[: len(new)]
    D[:, len(new) :] -= 1.0 / len(X)
    np.testing.assert_allclose(std, np.sqrt(np.diagonal(D @ A @ D.T)), atol=1e-5)
    C = np.eye(len(X)) - 1.0 / len(X)
    own = np.sqrt(np.diagonal(C @ A[len(new) :, len(new) :] @ C))
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], own, atol=1e-5)
    np.testing.assert_allclose(model.posterior().std, own, atol=1e-5)
    pair = model.predict_pair(new, [[0, 9], [9, 0]])
    assert pair.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kernel", ["auto", "linear"])
def test_standard_deviations_do_not_contain_the_level(kernel):
    """Items without features: by sampling from the posterior, and with a level that the kernel leaves open."""
    rows, pairs = np.eye(8), [[i, j] for i in range(8) for j in range(i + 1, 8)] * 2
    model = PreferenceGP(kernel, random_state=0).fit(rows, pairs=pairs)
    std = model.predict(rows, return_std=True)[1]
    joint = model.posterior()
    f = np.random.default_rng(0).multivariate_normal(joint.mean, joint.covariance, 20_000)
    np.testing.assert_allclose(std, (f - f.mean(axis=1)[:, None]).std(axis=0), rtol=0.03)
    np.testing.assert_allclose(std, Ranking.of(joint).std, rtol=1e-6)
    assert std.max() < np.ptp(joint.mean) / 2
    raised = Posterior(joint.mean + 5.0, joint.covariance + 100.0)
    np.testing.assert_allclose(raised.std, std, rtol=1e-6)


def test_the_reference_of_many_rows_is_a_selection_of_them():
    rng = np.random.default_rng(0)
    many = rng.normal(size=(3000, 2))
    model = PreferenceGP("gaussian", 0.3, learn=False).fit(many, pairs=rng.permutation(3000)[:40].reshape(20, 2))
    std = model.predict(many[:50], return_std=True)[1]
    np.testing.assert_allclose(std, model.posterior(many).std[:50], atol=0.02)


def test_a_graph_of_weight_zero_has_no_effect():
    one = PreferenceGP(**FIXED).fit(X, pairs=PAIRS)
    other = PreferenceGP(**FIXED, graph_neighbors=3, graph_weight=0.0).fit(X, pairs=PAIRS)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-6)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, abs=1e-6)


def test_all_rows_as_basis_are_exact():
    one = PreferenceGP(**FIXED).fit(X, pairs=PAIRS)
    other = PreferenceGP(**FIXED, n_basis=40).fit(X, pairs=PAIRS)
    for a, b in zip(one.predict(X, return_std=True), other.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("k", [None, 3], ids=["no graph", "graph"])
@pytest.mark.parametrize(
    "kernel",
    [
        GaussianKernel(0.2),
        ARDKernel((0.1, 0.2, 0.3)),
        CallableKernel(ConstantKernel(0.7) * RBF(1.5) + Matern(2.0, nu=2.5)),
    ],
    ids=["width", "widths", "scikit-learn"],
)
@pytest.mark.parametrize("m", [20, 150])
def test_gradient_of_the_evidence_is_finite_differences(kernel, k, m):
    view, items = View(None, kernel), DistinctRows.of(X, np.ones(len(X), dtype=bool))
    m = len(PAIRS[:m])
    told = items.pairs(PAIRS[:m], np.ones(m), np.random.default_rng(0).normal(size=m).round(1))
    sites = Sites.preferences(told[0], 1.0, *told[1:])
    at, named = sites.compacted()
    L = None
    if k is not None:
        at, named, L = np.arange(len(items)), sites, 0.3 * items.laplacian(view, k)
    answers = Preferences(view, named, L, 1e-8 if len(kernel.theta) > 1 else 1e-3)
    evidence = EvidenceOf(view, len(kernel.theta), items, at, answers, None)
    theta, h = np.append(kernel.theta, np.log(0.3)), 1e-4
    _, gradient = evidence(theta)
    for j in range(len(theta)):
        step = h * (np.arange(len(theta)) == j)
        difference = (evidence(theta + step)[0] - evidence(theta - step)[0]) / (2 * h)
        assert gradient[j] == pytest.approx(difference, rel=2e-3, abs=2e-4)


def test_the_true_hyperparameters_are_recovered():
    rows, f, pairs = users(60, 900, sigma=0.3, seed=3)
    model = PreferenceGP(scale=False, random_state=0).fit(rows, pairs=pairs)
    assert 0.05 < model.kernel_.kernels[0].gamma < 0.5
    assert 0.7 < model.sigma_ / (0.3 / f.std()) < 1.4  # sigma is in standard deviations of f over the rows


def test_widths_identify_irrelevant_columns():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(60, 4))
    model = PreferenceGP("ard", scale=False).fit(rows, pairs=answers(2 * rows[:, 0], 400, 0.1, rng))
    gammas = np.array(model.kernel_.kernels[0].gammas)
    assert gammas[0] > 3 * gammas[1:].max()


def test_probabilities_of_pairs_are_calibrated():
    told, came_true = [], []
    for seed in range(30):
        rows, f, pairs = users(40, 60, sigma=0.3, seed=100 + seed)
        rng = np.random.default_rng(seed)
        model = PreferenceGP(GaussianKernel(0.2), 0.3, learn=False, scale=False).fit(rows, pairs=pairs)
        asked = rng.integers(0, 40, (300, 2))
        asked = asked[asked[:, 0] != asked[:, 1]]
        gap = f[asked[:, 0]] - f[asked[:, 1]] + np.sqrt(2) * 0.3 * rng.normal(size=len(asked))
        told.append(model.predict_pair(rows, asked))
        came_true.append(gap > 0)
    p, won = np.concatenate(told), np.concatenate(came_true)
    bins = np.clip((p * 10).astype(int), 0, 9)
    shares = np.bincount(bins, minlength=10) / len(p)
    gaps = np.array([abs(p[bins == b].mean() - won[bins == b].mean()) for b in range(10)])
    assert shares @ gaps < 0.03


@pytest.mark.parametrize(
    "how", [{}, {"graph_neighbors": 3}, {"n_basis": 20, "random_state": 0}], ids=["exact", "graph", "basis"]
)
def test_partial_fit_gives_the_result_of_fit(how):
    rows = np.vstack([X, X[:2]])
    model = PreferenceGP(**FIXED, **how).fit(rows, pairs=PAIRS[:100])
    if "n_basis" in how:
        how = {"basis": model.process_.maps[0].basis.numbers}
    for pair in PAIRS[100:103]:
        model.partial_fit(pairs=[pair])
    model.partial_fit(rows, pairs=PAIRS[103:], pair_weight=np.full(len(PAIRS) - 103, 2.0))
    weight = np.where(np.arange(len(PAIRS)) < 103, 1.0, 2.0)
    other = PreferenceGP(**FIXED, **how).fit(rows, pairs=PAIRS, pair_weight=weight)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-6)
    assert model.log_evidence_ == pytest.approx(other.log_evidence_, abs=1e-8)


def test_a_loaded_model_learns_further(tmp_path):
    model = PreferenceGP(**FIXED, graph_neighbors=2).fit(X, pairs=PAIRS[:50])
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    one, other = (m.partial_fit(pairs=PAIRS[50:]).predict(X, return_std=True) for m in (model, again))
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_order_and_repetition_of_answers_change_nothing():
    one = PreferenceGP(**FIXED).fit(X, pairs=PAIRS)
    other = PreferenceGP(**FIXED).fit(X, pairs=PAIRS[np.random.default_rng(0).permutation(len(PAIRS))])
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    often = PreferenceGP(**FIXED).fit(X, pairs=np.repeat(PAIRS[:3], [1, 10_000, 2], axis=0))
    assert len(often.sites_) == 3
    assert np.isfinite(often.predict(X)).all()


def test_nearly_equal_rows_and_cycles_are_allowed():
    rows = np.vstack([X, X + 1e-9, X])
    circle = [[0, 1], [1, 2], [2, 0]]
    model = PreferenceGP(sigma=0.05).fit(rows, pairs=[*PAIRS, *(PAIRS + np.array([40, 80])), *circle])
    mean, std = model.predict(rows, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    np.testing.assert_allclose(mean[:40], mean[40:80], atol=1e-5)
    np.testing.assert_array_equal(mean[:40], mean[80:])
    assert np.corrcoef(mean[:40], F)[0, 1] > 0.8


def test_scores_make_pairs_inside_queries():
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 3, 40).astype(float), np.repeat([1, 2], 20)
    y[::7] = np.nan
    pairs = [(i, j) for i in range(40) for j in range(40) if qid[i] == qid[j] and y[i] > y[j]]
    one = PreferenceGP(**FIXED).fit(X, y, qid=qid)
    np.testing.assert_array_equal(one.predict(X), PreferenceGP(**FIXED).fit(X, pairs=pairs, qid=qid).predict(X))
    few = PreferenceGP(**FIXED, max_pairs=50, random_state=0).fit(X, y, qid=qid)
    assert len(few.sites_) == 50
    assert few.sites_.weight.sum() == pytest.approx(len(pairs))


def test_kernels_of_scikit_learn_objects_similarities_and_sparse_rows():
    names = np.array(["abc", "abd", "xyz", "xya"], dtype=object)

    def shared(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)

    model = PreferenceGP(shared, 0.3).fit(names, pairs=[[0, 2]])
    assert model.predict(["abe", "xyw"])[0] > model.predict(["abe", "xyw"])[1]
    K = GaussianKernel(0.2)(X)
    one = PreferenceGP("precomputed", 0.2, learn=False).fit(K, pairs=PAIRS)
    two = PreferenceGP(**FIXED).fit(X, pairs=PAIRS)
    np.testing.assert_allclose(one.predict(K), two.predict(X), atol=1e-6)
    np.testing.assert_allclose(
        one.partial_fit(pairs=[[0, 1]]).predict(K), two.partial_fit(pairs=[[0, 1]]).predict(X), atol=1e-6
    )
    csr = PreferenceGP(**FIXED, graph_neighbors=3).fit(sparse.csr_array(X), pairs=PAIRS)
    dense = PreferenceGP(**FIXED, graph_neighbors=3).fit(X, pairs=PAIRS)
    np.testing.assert_allclose(csr.predict(X), dense.predict(X), atol=1e-6)


def test_wrong_answers_get_one_sentence():
    with pytest.raises(InputError, match="every pair compares two equal rows"):
        PreferenceGP().fit([[1.0], [1.0], [2.0]], pairs=[[0, 1]])
    model = PreferenceGP(**FIXED).fit(X, pairs=PAIRS, sample_weight=np.arange(40) > 0)
    with pytest.raises(InputError, match="had weight 0 in fit"):
        model.partial_fit(pairs=[[0, 1]])
    with pytest.raises(InputError, match="X differs from the X of fit"):
        model.partial_fit(X + 1.0, pairs=[[1, 2]])
    with pytest.raises(InputError, match="first call of partial_fit has no X"):
        PreferenceGP().partial_fit(pairs=[[0, 1]])
    with pytest.raises(InputError, match="neither pairs nor y was given"):
        model.partial_fit()
    with pytest.raises(InputError, match="sigma is 0; pass a number above 0, or None"):
        PreferenceGP(sigma=0).fit(X, pairs=PAIRS)


@pytest.mark.parametrize("gap", [-2.0, 0.0, 0.4, 3.0])
def test_one_answer_with_a_prior_is_a_truncated_gaussian(gap):
    s0 = np.zeros(len(X))
    s0[3] = gap
    model = PreferenceGP(**FIXED).fit(X, pairs=[[3, 8]], prior=s0)
    K = FIXED["kernel"](X)
    var = K[3, 3] + K[8, 8] - 2 * K[3, 8]
    total = np.sqrt(var + 2 * FIXED["sigma"] ** 2)
    gradient = np.exp(norm.logpdf(gap / total) - norm.logcdf(gap / total)) / total
    learnt = model.predict(X, prior=s0) - s0
    np.testing.assert_allclose(learnt, (K[:, 3] - K[:, 8]) * gradient, rtol=1e-6, atol=1e-9)
    assert model.log_evidence_ == pytest.approx(norm.logcdf(gap / total), abs=1e-8)
    mean, left = gap + var * gradient, var * (1 - var * gradient * (gradient + gap / total**2))
    expected = norm.cdf(mean / np.sqrt(left + 2 * FIXED["sigma"] ** 2))
    assert model.predict_pair(X, [[3, 8]], prior=s0) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(model.posterior(prior=s0).mean, model.predict(X, prior=s0), atol=1e-9)
    assert len(suggest_pairs(model, prior=s0)) == 1
    with pytest.raises(InputError, match="prior is missing"):
        suggest_pairs(model)


@pytest.mark.parametrize("k", [None, 3], ids=["no graph", "graph"])
def test_further_answers_with_a_prior(k):
    s0 = np.random.default_rng(1).normal(size=len(X)).round(1)
    at_once = PreferenceGP(**FIXED, graph_neighbors=k).fit(X, pairs=PAIRS, prior=s0)
    in_parts = PreferenceGP(**FIXED, graph_neighbors=k).fit(X, pairs=PAIRS[:40], prior=s0)
    with pytest.raises(InputError, match="prior is missing"):
        in_parts.partial_fit(pairs=PAIRS[40:])
    in_parts.partial_fit(pairs=PAIRS[40:], prior=s0)
    np.testing.assert_allclose(in_parts.predict(X, prior=s0), at_once.predict(X, prior=s0), atol=1e-5)


def test_a_partial_fit_that_fails_changes_nothing():
    pandas = pytest.importorskip("pandas")
    names = [f"column {j}" for j in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names)
    model = PreferenceGP(sigma=0.3, learn=False).fit(frame, pairs=PAIRS[:40])
    before, state = model.predict(frame), dict(vars(model))
    for change in (
        lambda: model.partial_fit(pairs=[[0, len(X)]]),
        lambda: model.partial_fit(frame[names[::-1]], pairs=[[0, 1]]),
        lambda: model.partial_fit(pairs=[[0, 1]], prior=np.zeros(len(X))),
        lambda: model.set_params(max_pairs=-1).partial_fit(pairs=[[0, 1]]),
    ):
        with pytest.raises(ValueError, match=r"pairs|names|prior|max_pairs"):
            change()
        model.set_params(max_pairs=20_000)
        assert vars(model).keys() == state.keys()
        assert all(vars(model)[name] is value for name, value in state.items() if name.endswith("_"))
        np.testing.assert_array_equal(model.predict(frame), before)
    # names of columns are remembered and checked after a further fit
    model.partial_fit(frame, pairs=PAIRS[40:50])
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="names"):
        model.predict(frame[names[::-1]])


def test_many_rows_have_basis_rows_by_default(monkeypatch):
    monkeypatch.setattr(features, "AUTO_BASIS", 12)
    with pytest.warns(UsageWarning, match="approximated by 12 basis rows"):
        model = PreferenceGP(**FIXED, random_state=0).fit(X, pairs=PAIRS)
    assert not model.is_exact_
    assert len(model.process_.maps[0].basis) == 12
    assert PreferenceGP(**FIXED, n_basis=None).fit(X, pairs=PAIRS).is_exact_
    # few answers are exact for any number of rows
    assert PreferenceGP(**FIXED).fit(X, pairs=PAIRS[:12]).is_exact_
    grades = np.digitize(F, [-0.5, 0.5])
    with pytest.warns(UsageWarning, match="approximated by 12 basis rows"):
        assert len(OrdinalGP(learn=False, random_state=0).fit(X, grades).process_.phi.basis) == 12


def test_hyperparameters_are_learnt_from_answers_about_few_items():
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 400, (5000, 2))
    pairs, weight, _ = _sampled((dense, np.arange(5000.0), np.zeros(5000)), rng)
    assert len(np.unique(pairs)) <= 300 <= len(pairs) <= 1500
    np.testing.assert_array_equal(dense[weight.astype(int)], pairs)
    thin = rng.integers(0, 100_000, (5000, 2))
    assert len(_sampled((thin, np.ones(5000), np.zeros(5000)), rng)[0]) == 300


def test_the_precision_of_the_weights_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    R, precision = rng.normal(size=(150, 140)), 2.0 * np.eye(140)
    pairs = Sites.preferences(rng.integers(0, 150, (300, 2)), 1.0)
    grades = Sites.grades(rng.integers(0, 150, 200), 0.0, 1.0, 1.0)
    for sites in (pairs, grades):
        tau = rng.random(len(sites))
        explicit = precision + R.T @ sites.precision(tau, 150) @ R
        np.testing.assert_allclose(np.tril(_add_sites(precision, R, sites, tau)), np.tril(explicit), atol=1e-9)


@pytest.mark.parametrize("X", [None, np.empty((3, 0))])
def test_items_without_features_are_for_the_leaderboard(X):
    with pytest.raises(InputError, match=r"no features.*use corank\.Leaderboard"):
        PreferenceGP().fit(X, pairs=[[0, 1], [1, 2]])


def test_logistic_noise_shrugs_off_an_answer_that_contradicts_many(tmp_path):
    X = np.arange(6.0)[:, None]
    pairs = [(j, i) for i in range(6) for j in range(i + 1, 6)] * 2 + [(0, 5)]
    fixed = {"kernel": "linear", "sigma": 0.3, "learn": False, "scale": False}
    gaussian, logistic = (PreferenceGP(**fixed, likelihood=name).fit(X, pairs=pairs) for name in ("probit", "logistic"))
    assert logistic.predict([[5.0]])[0] > gaussian.predict([[5.0]])[0]
    # the probability is an integral of the logistic function
    (mean,), (var,) = logistic.posterior().differences([[5, 4]])
    g = mean + np.sqrt(var) * np.random.default_rng(0).normal(size=400_000)
    expected = np.mean(1.0 / (1.0 + np.exp(-g * np.pi / np.sqrt(6.0 * 0.3**2))))
    assert logistic.predict_pair(X, [[5, 4]])[0] == pytest.approx(expected, abs=2e-3)
    more = logistic.partial_fit(pairs=[[5, 0]])
    assert more.sites_.likelihood == "logistic"
    corank.save(more, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    assert again.predict_pair(X, [[5, 4]]) == pytest.approx(more.predict_pair(X, [[5, 4]]), abs=0)
