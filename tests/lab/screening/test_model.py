from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from corank.errors import InputError
from corank_lab.screening import model, views
from corank_lab.screening.model import ScreeningModel, weights
from corank_lab.screening.views import make_views, reference_views
from helpers.records import collection, tfidf_products

RECORDS = collection()


def dense_kernel(records):
    """Every view from its definition, record by record, with all columns."""
    n = len(records)
    both = [f"{title} {abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True)]
    text = tfidf_products(both)
    cites = [set(of) for of in records.references]
    inside = [
        {other for other in range(n) if records.ids[other] in cites[at] or records.ids[at] in cites[other]}
        for at in range(n)
    ]
    links = [{records.ids[other] for other in of} | {records.ids[at]} for at, of in enumerate(inside)]
    works = [of | {records.ids[at]} for at, of in enumerate(cites)]
    kernel = 0.7 * text + 1.0
    for weight, sets, has in (
        (0.2, links, [bool(of) for of in inside]),
        (0.1, works, [bool(cites[at] or inside[at]) for at in range(n)]),
    ):
        rarity = {work: math.log((1 + n) / (1 + sum(work in of for of in sets))) + 1 for of in sets for work in of}
        for i in range(n):
            for j in range(n):
                if has[i] and has[j]:
                    top = sum(rarity[work] ** 2 for work in sets[i] & sets[j])
                    norm = [math.sqrt(sum(rarity[work] ** 2 for work in sets[k])) for k in (i, j)]
                    kernel[i, j] += weight * top / (norm[0] * norm[1])
    return kernel


def test_the_kernel_is_the_weighted_sum_of_the_views():
    np.testing.assert_allclose(make_views(RECORDS).kernel, dense_kernel(RECORDS), atol=2e-5)


@pytest.mark.parametrize("max_kernel", [0, 1000])
@pytest.mark.parametrize("n_relevant", [0, 1, 4, 12])
def test_scores_are_those_of_an_explicit_solve(max_kernel, n_relevant, monkeypatch):
    monkeypatch.setattr(model, "TOLERANCE", 1e-7)
    made, kernel = make_views(RECORDS, max_kernel=max_kernel), dense_kernel(RECORDS)
    judged = np.random.default_rng(1).choice(len(RECORDS), 12, replace=False)
    relevant = np.arange(12) < n_relevant
    t = np.where(relevant, 1.0, -1.0)
    w = np.ones(12)
    if 0 < n_relevant < 12:
        w = np.where(relevant, 10.0 / n_relevant, 1.0 / (12 - n_relevant))
        w *= 12 / w.sum()
    a = np.linalg.solve(kernel[np.ix_(judged, judged)] + 4.0 * np.diag(1 / w), t)
    found = ScreeningModel(made).scores(judged.tolist(), relevant.tolist())
    np.testing.assert_allclose(found, kernel[:, judged] @ a, atol=2e-4)


@pytest.mark.parametrize("max_kernel", [0, 1000])
def test_scores_do_not_depend_on_the_path(max_kernel, monkeypatch):
    """Answers one by one, some withdrawn and given again in another order."""
    monkeypatch.setattr(model, "TOLERANCE", 1e-6)
    made = make_views(RECORDS, max_kernel=max_kernel)
    wandering = ScreeningModel(made)
    for judged in ([3], [3, 5], [3, 5, 9], [3, 7], [3, 7, 9, 5, 20]):
        found = wandering.scores(judged, [number % 3 == 0 for number in judged])
        fresh = ScreeningModel(made).scores(judged, [number % 3 == 0 for number in judged])
        np.testing.assert_allclose(found, fresh, atol=1e-4)


def test_with_this_penalty_least_squares_equal_a_squared_hinge():
    """scikit-learn's LinearSVC on explicit features, C = 1/(2λ), the same weights: few rows exceed their margin."""
    records = collection(40, 8, references=False)
    made = make_views(records)
    values, vectors = np.linalg.eigh(made.kernel.astype(float))
    features = vectors * np.sqrt(np.maximum(values, 0))
    y = records.labels > 0
    w = weights(np.where(y, 1.0, -1.0))
    svm = LinearSVC(C=1 / (2 * 4.0), loss="squared_hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    expected = svm.fit(features, y, sample_weight=w).decision_function(features)
    assert (np.where(y, expected, -expected) < 1).mean() > 0.9
    found = ScreeningModel(made).scores(range(40), y)
    assert np.corrcoef(found, expected)[0, 1] > 0.99


def test_columns_of_one_record_are_dropped_without_loss():
    made = make_views(RECORDS, max_kernel=0)
    n = len(RECORDS)
    shown = np.bincount(made.sparse.indices, minlength=made.sparse.shape[1])
    assert shown.min() >= 2
    kernel = (made.sparse @ made.sparse.T).toarray() + 1.0 + np.diag(made.own)
    np.testing.assert_allclose(kernel, make_views(RECORDS, max_kernel=n).kernel, atol=1e-6)


def test_without_any_references_the_text_has_all_the_weight():
    records = collection(references=False)
    made = make_views(records)
    np.testing.assert_allclose(np.diag(made.kernel), 2.0, atol=1e-5)  # intercept and text
    np.testing.assert_allclose(made.kernel - 1.0, (dense_kernel(records) - 1.0) / 0.7, atol=5e-5)


def test_a_record_without_citations_has_empty_rows():
    links, references = reference_views(RECORDS)
    cited = {work for of in RECORDS.references for work in of}
    for at, one in enumerate(RECORDS.ids):
        alone = not RECORDS.references[at] and one not in cited
        assert (references[at].nnz == 0) == alone
        np.testing.assert_allclose(abs(references[at]).power(2).sum(), 0.0 if alone else 1.0, atol=1e-6)
        outside = all(not work.startswith("r") for work in RECORDS.references[at]) and one not in cited
        assert (links[at].nnz == 0) == outside


@pytest.mark.parametrize("n", [2, 3, 4])
def test_tiny_collections_have_views(n):
    made = make_views(views.Records([*"abcd"[:n]], ["tin mine", "tin gold", "", "gold rush"][:n], [""] * n))
    assert made.kernel.shape == (n, n)
    assert np.isfinite(made.kernel).all()


@pytest.mark.parametrize("titles", [["tin mine"], ["", ""], ["a", "b"], ["tin", "tin"]])
def test_records_without_words_that_distinguish_them_are_refused(titles):
    with pytest.raises(InputError, match="no word that distinguishes them"):
        make_views(views.Records([*"ab"[: len(titles)]], titles, [""] * len(titles)))
