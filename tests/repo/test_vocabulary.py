"""One vocabulary: the tables of docs/map.md against every public signature and every fitted attribute."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from lawful import LAWFUL
from sklearn.base import BaseEstimator

import corank
from corank import registry
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking

MAP = (Path(__file__).parents[2] / "docs" / "map.md").read_text(encoding="utf-8")
PROBLEM = make_ranking(8, 8, random_state=0)
DEFAULTS = {
    "early_stopping": False, "validation_fraction": 0.1, "n_iter_no_change": 5, "n_jobs": None, "query_weight": "pairs",
    "random_state": None, "scale": True, "verbose": False, "alpha": None, "warm_start": False, "ties": False,
}  # fmt: skip


def table(heading):
    rows = MAP.split(f"| {heading} | meaning |")[1].split("\n\n")[0].splitlines()[2:]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert len(names) == len(set(names)), "a name stands in two rows"
    return set(names)


def estimators():
    found = [registry.find(name) for name in registry.names()]
    return [
        kind
        for kind in found
        if isinstance(kind, type) and issubclass(kind, BaseEstimator) and kind is not corank.Ranker
    ]


def own_parameters(kind):
    """Parameters of corank's own; a search inherits scikit-learn's too."""
    above = [base for base in kind.__mro__[1:] if base.__module__.startswith("sklearn.model_selection")]
    theirs = {name for base in above for name in inspect.signature(base).parameters}
    return {name: value for name, value in inspect.signature(kind).parameters.items() if name not in theirs}


def test_every_parameter_has_one_meaning_and_one_default():
    used = set()
    for kind in estimators():
        for name, parameter in own_parameters(kind).items():
            used.add(name)
            if name in DEFAULTS:
                assert parameter.default == DEFAULTS[name], f"{kind.__name__}({name}={parameter.default!r})"
    assert used == table("parameter")


def test_at_most_three_parameters_are_positional():
    for kind in estimators():
        positional = [p for p in inspect.signature(kind).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert len(positional) <= 3, kind.__name__


@pytest.fixture(scope="module")
def fitted():
    y = mask_scores(PROBLEM.y, fraction=0.3, random_state=0)
    models = [make().fit(PROBLEM.X, y, qid=PROBLEM.qid) for name, make in LAWFUL.items() if name != "PlainRanker"]
    models.append(corank.SPD(loss="hinge", n_steps=100, early_stopping=True, random_state=0))
    models.append(corank.RankSVM(kernel="gaussian", random_state=0))
    models.append(corank.RankRLS(kernel="gaussian", alphas=[0.1, 1.0], random_state=0))
    models.append(corank.RankingPursuit(early_stopping=True, random_state=0))
    models.append(corank.ColumnMean([0]))
    on_prior = corank.SPD().fit(PROBLEM.X, y, qid=PROBLEM.qid, prior=PROBLEM.y)
    by_id = [
        kind().fit([1, 2, 1, 2], [1, 2, 3, 1], qid=[1, 1, 2, 2])
        for kind in (corank.Collaborative, corank.models.ItemMean)
    ]
    by_id += [
        corank.CollaborativeGP(likelihood, **form).fit(
            [1, 2, 1, 2], [1, 2, 3, 1], qid=[1, 1, 2, 2], items=[1, 2], item_features=[[0.0], [1.0]]
        )
        for likelihood, form in (("ordinal", {}), ("gaussian", {}), ("ordinal", {"free_thresholds": True}))
    ]
    corpus = corank.text.Corpus.of(["tin", "tin iron", "iron"], language=None)
    links = corank.text.Links.of(corpus, [(0, 1)])
    of_text = [corank.BM25().fit(corpus.counts), corank.LinkLearn(n_steps=1).fit(links, links)]
    return [*(model.fit(PROBLEM.X, y, qid=PROBLEM.qid) for model in models), on_prior, *by_id, *of_text]


def test_every_fitted_attribute_has_one_meaning(fitted):
    import pandas as pd

    frame = pd.DataFrame(PROBLEM.X, columns=[f"c{j}" for j in range(PROBLEM.X.shape[1])])
    fitted = [*fitted, corank.SPD().fit(frame, PROBLEM.y, qid=PROBLEM.qid), corank.base.Landmarks(5).fit(PROBLEM.X)]
    fitted.append(corank.base.Smooth().fit(PROBLEM.X))
    missing = np.where(PROBLEM.X > 1.0, np.nan, PROBLEM.X)
    fitted.append(corank.SPD().fit(missing, PROBLEM.y, qid=PROBLEM.qid))
    labels = (PROBLEM.y > 1).astype(int)
    online = [corank.OnlineLabelRanker(kernel=kernel).fit(PROBLEM.X, labels) for kernel in (None, "linear")]
    others = (
        corank.CalibratedLabelRanker(), corank.models.NeighborLabelRanker(), corank.models.PairwiseLabelRanker(),
        corank.AutoLabelRanker(),
    )  # fmt: skip
    fitted += [*(model.fit(PROBLEM.X, labels) for model in others), *online]
    # what is made when it is asked for is a property of the class
    kinds = {kind for model in fitted for kind in type(model).__mro__}
    made = {name for kind in kinds for name, part in vars(kind).items() if isinstance(part, property)}
    found = {name for name in made.union(*map(vars, fitted)) if name.endswith("_") and not name.startswith("_")}
    assert found == table("fitted attribute")


def test_a_name_holds_one_kind_of_thing(fitted):
    kinds: dict[str, set[str]] = {}
    for model in fitted:
        for name, value in vars(model).items():
            if name.endswith("_") and not name.startswith("_"):
                kind = "number" if np.isscalar(value) and not isinstance(value, str) else type(value).__name__
                kinds.setdefault(name, set()).add(kind)
    # kernels, rankers and processes of different classes have the same methods
    loose = {"kernel_", "process_", "view_coefs_", "ranker_"}
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1 and name not in loose} == {}
