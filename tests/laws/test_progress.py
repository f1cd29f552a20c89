"""What long work tells a progress bar: as much as was done, and nothing that was not announced."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from inspect import signature

import pytest

import corank
from corank import (
    CRR,
    LCRA,
    SPD,
    AutoRanker,
    Calibrated,
    CoRankingPursuit,
    CoRankRLS,
    LambdaRank,
    RankingPursuit,
    RankRLS,
    RankSVM,
    ViewRankRLS,
    registry,
)
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking

PROBLEM = make_ranking(8, 6, random_state=0)
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=0)

# what is counted, and how much of it a fitted model has behind it; None where the bar may end before its total
BARS = [
    (SPD(verbose=True), {"Newton steps": lambda model: model.n_iter_}),
    (CRR("logistic", verbose=True), {"Newton steps": lambda model: model.n_iter_}),
    (RankSVM(kernel="gaussian", verbose=True), {"Newton steps": lambda model: model.n_iter_}),
    (LambdaRank(n_steps=30, verbose=True), {"steps": lambda model: 30}),
    (LambdaRank(scorer="trees", n_steps=5, verbose=True), {"trees": lambda model: 5}),
    (SPD("hinge", n_steps=300, random_state=0, verbose=True), {"steps": lambda model: 300}),
    (LCRA(loss="hinge", n_steps=300, random_state=0, verbose=True), {"steps": lambda model: 300}),
    (RankRLS(alphas=[0.1, 1.0], verbose=True), {"rows left out": lambda model: None}),
    (ViewRankRLS(2, alphas=[0.1, 1.0], random_state=0, verbose=True), {"weights tried": lambda model: None}),
    (CoRankRLS(alphas=[0.1, 1.0], random_state=0, verbose=True), {"rows left out": lambda model: None}),
    (RankingPursuit(5, verbose=True), {"terms": lambda model: len(model.terms_)}),
    (CoRankingPursuit(5, random_state=0, verbose=True), {"terms": lambda model: len(model.terms_)}),
    (
        CoRankingPursuit(5, early_stopping=True, random_state=0, verbose=True),
        {"terms": lambda model: len(model.terms_), "terms tried": lambda model: len(model.validation_errors_) - 1},
    ),
    (Calibrated(SPD(), cv=3, verbose=True), {"fits": lambda model: 4}),  # of three folds, and of all rows
    (AutoRanker(candidates=["linear"], random_state=0, verbose=True), {"fits": lambda model: None}),
]


@pytest.fixture
def told(monkeypatch):
    """Totals and calls of each progress bar, wherever one is shown."""
    bars: dict[str, list[int]] = {}

    @contextmanager
    def fake(total, what, verbose=True):
        done = bars.setdefault(what, [total, 0]) if verbose else [0, 0]

        def advance(n, part=None):
            done[1] += n

        yield advance

    for name, module in list(sys.modules.items()):
        if name.startswith("corank.") and hasattr(module, "progress") and name != "corank.progress":
            monkeypatch.setattr(module, "progress", fake, raising=False)
    return bars


@pytest.mark.parametrize(("model", "expected"), BARS, ids=[str(model) for model, _ in BARS])
def test_a_bar_is_told_of_what_was_done(model, expected, told):
    model.fit(PROBLEM.X, Y, qid=PROBLEM.qid)
    assert set(told) == set(expected)
    for what, (total, done) in told.items():
        assert 0 < done <= total
        assert expected[what](model) in (None, done)
    told.clear()
    model.set_params(verbose=False).fit(PROBLEM.X, Y, qid=PROBLEM.qid)
    assert not told


def test_every_ranker_can_show_one():
    kinds = {type(model) for model, _ in BARS}
    exported = [registry.find(name) for name in registry.names()]
    rankers = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, corank.Ranker)}
    # one that only hands work on has no bar of its own
    assert kinds == {kind for kind in rankers - {corank.Ranker} if "verbose" in signature(kind).parameters}
