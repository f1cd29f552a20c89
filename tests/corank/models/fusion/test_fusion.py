"""Fusion: candidates and posterior by brute force, floors, pools and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from corank import Fusion, load_fusion
from corank.errors import InputError, UsageWarning
from corank.models.fusion.candidates import ALONE, FAMILIES, SQUARES, Candidates, Features, Prior, Squares
from corank.models.fusion.judged import MAX_HOLES, JudgedQueries, top_rows, unknown_share
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.posterior import Evidence

NAN = np.nan


def some_problem(quality=(2.0, 0.3, 0.3), n_queries=12, n_docs=60, depth=30, seed=0):
    """Return scores of lists cut at a depth, query ids and grades."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, (n_queries, n_docs)) * (rng.random((n_queries, n_docs)) < 0.3)
    S = y[:, :, None] * np.array(quality) + rng.normal(size=(n_queries, n_docs, len(quality)))
    S[-np.sort(-S, axis=1)[:, depth - 1 : depth] > S] = NAN
    X, grades, qid = S.reshape(-1, len(quality)), y.reshape(-1).astype(float), np.repeat(np.arange(n_queries), n_docs)
    keep = ~np.isnan(X).all(axis=1)
    return X[keep], grades[keep], qid[keep]


def plain_ndcg(scores, y, k=10):
    order = sorted(range(len(y)), key=lambda i: (-scores[i], i))[:k]
    gain = sum(max(y[i], 0) / np.log2(r + 2) for r, i in enumerate(order) if y[i] == y[i])
    ideal = sum(g / np.log2(r + 2) for r, g in enumerate(sorted((max(g, 0) for g in y if g == g), reverse=True)[:k]))
    return gain / ideal


def some_evidence(nonnegative=True):
    X, y, qid = some_problem(n_queries=4)
    lists = RetrievedLists.of(X, qid)
    features, judged = Features.of(lists, 60.0), JudgedQueries.of(y, lists.queries, 10)
    squares, rng = Squares.of(features, lists, y, np.ones(len(y)), judged), np.random.default_rng(0)
    return Evidence.of(features, judged, squares, Prior(), 0.1, rng, nonnegative=nonnegative), X, y, qid


def test_top_rows_equal_a_stable_sort_with_ties():
    scores = np.random.default_rng(0).integers(0, 4, (50, 30)).astype(float)
    np.testing.assert_array_equal(top_rows(scores, 10), np.argsort(-scores, axis=0, kind="stable")[:10])


def test_values_and_posterior_by_hand():
    evidence, _, y, qid = some_evidence()
    W = evidence.candidates.W
    for c in (0, 100, 400, W.shape[1] - 1):
        scores = evidence.features.values @ W[:, c]
        expected = [plain_ndcg(scores[qid == q], y[qid == q]) for q in range(4)]
        np.testing.assert_allclose(evidence.V[:, c], expected)
    # all candidates have unit variance inside queries, on average
    scores = evidence.features.values @ W
    np.testing.assert_allclose(np.mean([scores[qid == q].var(axis=0) for q in range(4)], axis=0), 1.0)
    nu, noise, prior = Prior().noise_queries, Prior().noise, np.exp(evidence.log_prior)
    for left_out in (-1, 2):
        kept = [q for q in range(4) if q != left_out]
        gaps = evidence.V[kept] - (evidence.V[kept] @ prior)[:, None] / prior.sum()
        spread = gaps.var(axis=0, ddof=1) @ prior / prior.sum()
        beta = Prior().evidence / (((len(kept) - 1) * spread + nu * noise**2) / (len(kept) - 1 + nu))
        expected = np.zeros(len(W))
        for bag in evidence.bags:
            times = [len(kept) * bag[q] / sum(bag[kept]) for q in kept]
            p = prior * np.exp(beta * sum(t * evidence.V[q] for t, q in zip(times, kept, strict=True)))
            expected += np.hstack([W, evidence.learnt[left_out]]) @ (p / p.sum()) / len(evidence.bags)
        np.testing.assert_allclose(evidence.weights(left_out), expected)


def test_the_prior_has_its_masses_and_favours_agreement_where_lists_share_little():
    features = Features.of(RetrievedLists.of(*some_problem()[::2]), 60.0)
    candidates, prior = Candidates.of(features, np.random.default_rng(0)), Prior()
    p = np.exp(prior.log(candidates, 3, shared=0.5))
    np.testing.assert_allclose(p[:-3].sum(), 1.0)
    np.testing.assert_allclose(p[-3:].sum() / p.sum(), prior.learnt)
    np.testing.assert_allclose(p[:-3][candidates.is_equal].sum(), prior.equal)
    np.testing.assert_allclose(p[:-3][candidates.family == ALONE].sum(), prior.alone)
    gain = prior.log(candidates, 3, shared=0.1) - np.log(p)
    counts = np.array([*(family.counts_agreement for family in FAMILIES), False])[candidates.family]
    np.testing.assert_allclose(gain[:-3][counts & candidates.is_equal], prior.agreement * 0.2)
    np.testing.assert_allclose(np.append(gain[:-3][~counts], gain[-3:]), 0.0, atol=1e-12)
    assert (gain[:-3] >= -1e-12).all()


def test_learnt_weights_minimise_their_objective_without_each_query():
    evidence, X, y, qid = some_evidence(nonnegative=False)
    features, lists = evidence.features, RetrievedLists.of(X, qid)
    columns = np.concatenate([features.places("minmax"), features.places("flat")])
    unit = np.sqrt(np.diag(features.covariance))[columns]
    best = np.where(lists.ranks > 0, 11 / (10 + np.maximum(lists.ranks, 1)), 0).max(axis=1)
    A, b = np.zeros((6, 6)), np.zeros(6)
    for q in (0, 1, 3):
        F, g, o = features.values[qid == q][:, columns] / unit, y[qid == q], best[qid == q] / best[qid == q].sum()
        for i in range(len(g)):  # all pairs of rows: the weighted variance is half of their mean squared difference
            A += sum(o[i] * o[j] * np.outer(F[i] - F[j], F[i] - F[j]) for j in range(len(g))) / 6
            b += sum(o[i] * o[j] * (F[i] - F[j]) * (g[i] - g[j]) for j in range(len(g))) / 6
    c = max(0.0, b.sum() / A.sum())
    expected = np.linalg.solve(A + 0.3 * np.eye(6), b + 0.3 * c) / unit
    free = 2 * list(SQUARES).index(("minmax", "flat")) + 1  # after the solution that is not negative
    got = evidence.learnt[2][columns, free]
    np.testing.assert_allclose(got / np.linalg.norm(got), expected / np.linalg.norm(expected), rtol=1e-7)


def test_without_judgements_it_is_rrf():
    X, y, qid = some_problem()
    for grades in (None, np.full(len(y), NAN), np.where(y > 0, NAN, 0.0)):
        fusion = Fusion().fit(X, grades, qid=qid)
        assert fusion.definition_.rule == "RRF with k = 60"
        assert "Nothing was learnt" in fusion.summary()
    ranks = RetrievedLists.of(X, qid).ranks
    np.testing.assert_allclose(fusion.predict(X, qid), np.where(ranks > 0, 1 / (60 + ranks), 0).sum(axis=1))


def test_more_judged_queries_move_the_weights_to_the_good_retriever():
    X, y, qid = some_problem(n_queries=30)
    shares = []
    for n in (2, 30):
        fusion = Fusion().fit(X, np.where(qid < n, y, NAN), qid=qid)
        features = Features.of(RetrievedLists.of(X, qid), 60.0)
        size = np.zeros(3)
        for term in fusion.definition_.terms:
            name = next(name for name, key in features.columns.items() if key == (term.transform, term.k))
            size[int(term.retriever[1:]) - 1] += term.weight * features.deviation(name)
        shares.append(size[0] / size.sum())
        assert all(term.weight > 0 for term in fusion.definition_.terms)
    assert 1 / 3 < shares[0] < shares[1]
    values = fusion.left_out_values_
    assert values["fusion"].mean() > values["RRF"].mean()
    assert fusion.definition_.estimate.n_queries == 30
    assert "probability" in fusion.summary()


def test_left_out_values_are_those_of_a_fit_without_the_query():
    X, y, qid = some_problem(n_queries=6)
    fusion = Fusion().fit(X, y, qid=qid)
    # candidates are scaled by the lists of all queries, so that values agree up to this scaling
    part = Fusion().fit(X, np.where(qid == 3, NAN, y), qid=qid)
    expected = plain_ndcg(part.predict(X, qid)[qid == 3], y[qid == 3])
    assert abs(fusion.left_out_values_["fusion"][3] - expected) < 0.1


def test_engine_forms_have_admissible_weights_and_their_loss(tmp_path):
    X, y, qid = some_problem()
    fusion = Fusion().fit(X, y, qid=qid)
    forms = {form.form: form for form in fusion.definition_.engine_forms}
    assert set(forms) == {"rrf", "minmax"}
    for form in forms.values():
        assert min(form.weights) >= 0
        np.testing.assert_allclose(sum(form.weights), 1.0)
        assert form.low <= form.loss <= form.high
    fusion.save(tmp_path / "fusion.json")
    np.testing.assert_array_equal(load_fusion(tmp_path / "fusion.json").score(X, qid), fusion.predict(X, qid))


def test_a_pool_of_one_list_is_said_and_keeps_its_share():
    X, y, qid = some_problem((0.7, 0.7), n_queries=20, n_docs=200, depth=60)
    ranks = RetrievedLists.of(X, qid).ranks
    seen = (ranks[:, 0] > 0) & (ranks[:, 0] <= 10)
    with pytest.warns(UsageWarning, match="top 10 of r1; weights of r2 cannot be learnt"):
        fusion = Fusion().fit(X, np.where(seen, y, NAN), qid=qid)
    assert "condensed" in fusion.definition_.pool
    assert "in the top 10 of r1 count as irrelevant" in fusion.definition_.pool  # not "the pool was given"
    own = Fusion(unjudged="irrelevant").fit(X, np.where(seen, y, NAN), qid=qid)
    truth = [
        np.mean([plain_ndcg(model.predict(X, qid)[qid == q], y[qid == q]) for q in range(20)])
        for model in (fusion, own, Fusion().fit(X))
    ]
    assert truth[0] > truth[1]
    known = Fusion(pool={"r1": 10, "r2": 0}).fit(X, np.where(seen, y, NAN), qid=qid)
    assert known.definition_.terms == fusion.definition_.terms


def test_holes_at_the_top_of_rrf_are_not_counted_as_irrelevant():
    X, y, qid = some_problem((0.7, 0.7), n_queries=20, n_docs=200, depth=60)
    lists = RetrievedLists.of(X, qid)
    seen = ((lists.ranks > 0) & (lists.ranks <= 10)).any(axis=1)
    fused = np.where(lists.ranks > 0, 1.0 / (60.0 + lists.ranks), 0.0).sum(axis=1)
    tops = [np.flatnonzero(qid == q)[np.argsort(-fused[qid == q], kind="stable")[:10]] for q in range(20)]
    share = np.mean([np.mean(~seen[rows]) for rows in tops])
    np.testing.assert_allclose(unknown_share(lists, seen, 60.0, 10), share)
    assert share > MAX_HOLES
    pooled = Fusion().fit(X, np.where(seen, y, NAN), qid=qid)
    assert f"{share:.0%} of RRF's first 10 are unjudged" in pooled.definition_.pool
    assert (
        pooled.definition_.terms == Fusion(unjudged="pooled").fit(X, np.where(seen, y, NAN), qid=qid).definition_.terms
    )
    seen[np.concatenate(tops)] = True
    assert "in whole lists, since" in Fusion().fit(X, np.where(seen, y, NAN), qid=qid).definition_.pool


def test_candidates_keep_half_the_share_of_the_judged_lists():
    candidates = some_evidence()[0].candidates
    p = np.exp(Prior().log(candidates, 0, 1.0, np.array([True, False, False])))
    assert candidates.p[p > 0, 0].min() >= 1 / 6 - 1e-9
    assert 0 < (p > 0).sum() < len(p)
    np.testing.assert_allclose(p.sum(), 1.0)


def test_missed_documents_count_in_the_ideal_order():
    X, y, qid = some_problem()
    plain = Fusion().fit(X, y, qid=qid).left_out_values_["RRF"]
    more = Fusion().fit(X, y, qid=qid, missed=([3, 3, 99], [2.0, 2.0, 1.0])).left_out_values_["RRF"]
    assert more[3] < plain[3]
    np.testing.assert_allclose(np.delete(more, 3), np.delete(plain, 3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": [[1.0, NAN], [2.0, NAN]], "qid": None, "y": None}, "r2 returned no document"),
        ({"parameters": {"metric": "MAP"}}, "metric is 'MAP'"),
        ({"parameters": {"unjudged": "zero"}}, "unjudged is 'zero'"),
        ({"parameters": {"pool": {"other": 3}}}, "names the retriever 'other'"),
        ({"y": [1.0]}, "y has 1 scores"),
    ],
)
def test_wrong_input_is_refused(change, words):
    X, y, qid = some_problem(n_queries=3)
    given = {"X": X, "y": y, "qid": qid} | change
    with pytest.raises(InputError, match=words):
        Fusion(**given.pop("parameters", {})).fit(given["X"], given["y"], qid=given["qid"])


def test_predict_needs_query_ids_and_takes_empty_lists():
    X, y, qid = some_problem()
    fusion = Fusion().fit(X, y, qid=qid)
    with pytest.raises(InputError, match="no qid"):
        fusion.predict(X)
    scores = fusion.predict([[1.0, NAN, NAN], [0.5, NAN, NAN]], qid=["q", "q"])
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1]
