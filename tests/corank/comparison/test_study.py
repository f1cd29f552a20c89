from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge

import corank
from corank import RankRLS
from corank.comparison import methods
from corank.comparison.methods import Method
from corank.comparison.study import MODEL, RESULTS, STUDY, study_record
from corank.data.durable.files import JsonLines
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import evaluate


class Spy(BaseEstimator):
    """Notes the queries it sees, which its one column tells."""

    seen: ClassVar[list] = []

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        self.seen.append(("fit", frozenset(X[:, 0])))
        return self

    def predict(self, X):
        self.seen.append(("predict", frozenset(X[:, 0])))
        return np.zeros(len(X))


class Broken(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no luck. At all")

    def predict(self, X):
        return np.zeros(len(X))


class Slow(BaseEstimator):
    """Takes 300 seconds of a clock that runs very slowly otherwise."""

    now = 0.0

    @classmethod
    def clock(cls):
        cls.now += 1e-3
        return cls.now

    def fit(self, X, y):
        Slow.now += 300.0
        return self

    def predict(self, X):
        return X[:, 0]


class Nothing(BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


def quick(models, made, y=None, qid=None, **options):
    y, qid = made.y if y is None else y, made.qid if qid is None else qid
    return corank.compare(models, made.X, y, qid, **{"folds": 3, "fractions": (), **options})


def test_a_search_inside_a_fold_never_sees_its_queries(local, monkeypatch):
    searched = Method("spy", "spy", lambda trial: trial.searched(Spy(), {"alpha": [1.0, 2.0]}), takes_unscored=False)
    monkeypatch.setitem(methods.METHODS, "spy", searched)
    qid = np.repeat(np.arange(12), 4)
    y = np.tile([0.0, 1.0, 2.0, np.nan], 12)
    Spy.seen = []
    pool_qid = np.repeat(np.arange(6, 18), 3)
    corank.compare(
        ["spy"], qid[:, None].astype(float), y, qid, unjudged=pool_qid[:, None].astype(float), unjudged_qid=pool_qid,
        folds=3, fractions=(0.5,),
    )  # fmt: skip
    # inner folds and the refit of the search, then the queries of the outer fold
    outer = [
        at for at, (what, seen) in enumerate(Spy.seen) if what == "predict" and Spy.seen[at - 1][1].isdisjoint(seen)
    ]
    begun, tested = 0, []
    for at in outer:
        before = Spy.seen[begun:at]
        if len([1 for what, _ in before if what == "fit"]) == 7:  # 2 candidates on 3 inner folds, then the best
            tested.append(Spy.seen[at][1])
            assert all(seen.isdisjoint(tested[-1]) for _, seen in before)
            begun = at + 1
    # three folds of the study, then those of one share of the curve, drawn twice
    assert len(tested) == 9
    assert frozenset.union(*tested[:3]) == frozenset(range(12))


def test_values_are_those_of_a_loop_over_the_folds(local, made, tmp_path):
    study = quick({"mine": RankRLS(alpha=0.3)}, made, folder=tmp_path / "out", metrics=["nDCG@5", "RR"])
    found = study.outcome("mine").evaluation
    # which queries go together is read off the files: each fold scored some of them
    from corank.comparison.problem import InputRows, make_problem

    problem, _ = make_problem(InputRows(made.X, made.y, made.qid), None, 3, 0)
    scores = np.empty(len(made.y))
    for fold in range(3):
        test = problem.parts == fold
        model = RankRLS(alpha=0.3).fit(made.X[~test], made.y[~test], qid=made.qid[~test])
        scores[test] = model.predict(made.X[test])
    expected = evaluate(made.y, scores, made.qid, ["nDCG@5", "RR"])
    for metric in ("nDCG@5", "RR"):
        np.testing.assert_allclose(found[metric].values, expected[metric].values)
    assert study.metrics == ("nDCG@5", "RR")
    whole = RankRLS(alpha=0.3).fit(made.X, made.y, qid=made.qid)
    np.testing.assert_array_equal(study.ranker.predict(made.X), whole.predict(made.X))
    np.testing.assert_array_equal(corank.load(study.model).predict(made.X), whole.predict(made.X))


@pytest.mark.long
def test_stored_results_are_reused_until_data_or_settings_change(local, made, tmp_path):
    folder = tmp_path / "out"
    first = quick(["rankrls"], made, folder=folder)
    n = len(local)
    assert n == 3 * 3 + 1
    local.clear()
    again = quick(["rankrls"], made, folder=folder)
    assert local == []
    same = [{**study_record(study), "seconds": 0} for study in (first, again)]
    assert same[0] == same[1]
    quick(["rankrls", "crr"], made, folder=folder)
    assert {task.method for task in local} >= {"crr"}
    assert not {task.method for task in local} & {"random", "columns"}
    local.clear()
    for change in ({"random_state": 1}, {"metrics": "AP"}, {"convention": "letor4"}, {"folds": 2}):
        quick(["rankrls"], made, folder=folder, **change)
        assert len(local) == (7 if "folds" in change else 10), change
        local.clear()
    y = made.y.copy()
    y[0] = 4 - y[0]
    with pytest.raises(InputError, match="holds a study of other data"):
        quick(["rankrls"], made, y, folder=folder)
    quick(["rankrls"], made, y, folder=folder, overwrite=True)
    assert len(local) == n


def test_a_damaged_result_is_computed_again(local, made, tmp_path):
    folder = tmp_path / "out"
    quick(["rankrls"], made, folder=folder)
    local.clear()
    lines = (folder / RESULTS).read_bytes().splitlines(keepends=True)
    record = json.loads(lines[3])
    lines[0] = b"damaged\n"
    lines[1] = b'["a list"]\n'
    lines[2] = lines[2].replace(b'"scores"', b'"stores"')
    lines[3] = json.dumps({**record, "scores": record["scores"][:-1]}).encode() + b"\n"
    lines[4] = lines[4].replace(b'"fit_seconds": ', b'"fit_seconds": null, "no": ')
    lines.insert(0, json.dumps({**record, "fit_seconds": 10**400}).encode() + b"\n")
    (folder / RESULTS).write_bytes(b"".join(lines)[:-5])  # the last line, of the refit, is not complete
    study = quick(["rankrls"], made, folder=folder)
    assert len(local) == 6
    assert study.ranker is not None
    for damage in (lambda file: file.write_bytes(b"damaged"), lambda file: file.unlink()):
        local.clear()
        damage(folder / MODEL)
        assert quick(["rankrls"], made, folder=folder).ranker is not None
        assert [task.fold for task in local] == [None]


def test_two_comparisons_do_not_share_a_folder(local, made, tmp_path):
    with JsonLines(tmp_path / RESULTS), pytest.raises(InputError, match="in use by another comparison"):
        quick(["rankrls"], made, folder=tmp_path)
    assert local == []


def test_the_failure_of_one_method_leaves_the_others(local, made):
    study = quick({"broken": Broken(), "nothing": Nothing(), "mine": RankRLS()}, made)
    assert study.outcome("broken").error == "RuntimeError: no luck."
    assert study.outcome("nothing").error == (
        "predict did not return one finite score for each row; leave this method out, or correct it."
    )
    assert study.winner == "mine"
    assert [one.name for one in study.outcomes][-2:] == ["broken", "nothing"]
    assert not study.outcome("broken").is_cut
    # one fold is enough to know
    assert [task.method for task in local].count("broken") == 1


def test_a_failure_on_few_queries_spares_the_winner(local, made):
    class Picky(BaseEstimator):
        def fit(self, X, y):
            if len(y) < 60:
                raise ValueError("too few")
            self.model_ = Ridge().fit(X, y)
            return self

        def predict(self, X):
            return self.model_.predict(X)

    study = quick({"picky": Picky()}, made, fractions=(0.25, 0.75))
    assert study.outcome("picky").error == ""
    assert [point.fraction for point in study.curve if point.method == "picky"] == [0.75, 1.0]
    assert any(task.fold is None for task in local)


def test_a_budget_leaves_out_methods_and_notes_it(local, made, tmp_path, monkeypatch):
    for module in ("corank.comparison.study", "helpers.local_pool"):
        monkeypatch.setattr(f"{module}.monotonic", Slow.clock)
    models = {"mine": RankRLS(alpha=1.0), "slow": Slow()}
    study = quick(models, made, budget=800.0, folder=tmp_path)
    cut = study.outcome("slow")
    assert cut.is_cut
    assert cut.n_done == 2
    assert study.outcome("mine").is_complete
    assert any("The budget of 800 s ended before these methods were finished: slow" in note for note in study.notes)
    # what was learnt is kept
    local.clear()
    assert quick(models, made, folder=tmp_path).outcome("slow").is_complete
    assert [task.method for task in local].count("slow") == 3 - cut.n_done
    # what needs no judgements is there whatever the budget
    hardly = quick(models, made, budget=1e-9)
    assert {one.name for one in hardly.outcomes if one.is_complete} == {"random", "columns"}
    assert (hardly.winner, hardly.curve) == ("columns", ())
    json.dumps(study_record(hardly), allow_nan=False)


LATE = "The budget ended before all points of "


def test_points_that_exceed_the_budget_are_noted(local, made, tmp_path, monkeypatch):
    slow = {"slow": Slow()}
    quick(slow, made, folder=tmp_path)
    for module in ("corank.comparison.study", "helpers.local_pool"):
        monkeypatch.setattr(f"{module}.monotonic", Slow.clock)
    study = quick(slow, made, folder=tmp_path, budget=100.0, fractions=(0.5,))
    assert [point.fraction for point in study.curve if point.method == "slow"] == [1.0]
    assert [note for note in study.notes if LATE in note] == [
        f"{LATE}the learning curve were computed; run again to continue."
    ]


@pytest.mark.long
def test_a_budget_that_ended_after_all_fits_is_not_noted(local, made, tmp_path):
    asked = {"folder": tmp_path, "fractions": (0.5,)}
    quick(["crr"], made, **asked)
    study = quick(["crr"], made, budget=1e-9, **asked)
    assert not any("budget" in note for note in study.notes)
    # failed is not left out
    failed = quick({"broken": Broken(), "mine": RankRLS(alpha=1.0)}, made, budget=1e4, fractions=(0.5,))
    assert not any("budget" in note for note in failed.notes)


def test_data_of_any_shape(local, made):
    names = np.array([f"query {q}" for q in made.qid])
    y = made.y.copy()
    y[made.qid == 3] = np.nan  # never judged
    y[::9] = np.nan
    text = quick(["rankrls"], made, y, names)
    frame = pd.DataFrame(made.X, columns=[f"c{j}" for j in range(made.X.shape[1])])
    table = corank.compare(["rankrls"], frame, y, made.qid, folds=3, fractions=())
    indexed = corank.compare(["rankrls"], RankingData.of(made.X, y, made.qid), folds=3, fractions=())
    for study in (table, indexed):
        assert study.outcome("rankrls").evaluation.means == text.outcome("rankrls").evaluation.means
    assert text.outcome("rankrls").evaluation.query_ids[0].startswith("query ")
    assert text.data.n_unscored_queries == 1
    rows = corank.compare(["rankrls"], sparse.csr_matrix(made.X), y, made.qid, folds=3, fractions=())
    assert [one.name for one in rows.outcomes] == ["rankrls", "random"]
    single = corank.compare(["rankrls"], made.X.astype(np.float32), y, made.qid, folds=3, fractions=())
    means = [study.outcome("rankrls").evaluation["nDCG@10"].mean for study in (single, text)]
    assert means[0] == pytest.approx(means[1], abs=0.02)


@pytest.mark.long
def test_one_query_is_judged_by_groups_of_its_rows(local, made):
    study = corank.compare(["rankrls", "crr"], made.X, made.utility, folds=3, fractions=(0.5,))
    assert study.metric == "disagreement"
    assert any("19 groups of them replace queries" in note for note in study.notes)
    assert study.outcome("rankrls").evaluation.n_queries == 19
    assert study.winner in ("rankrls", "crr")
    assert study.best == study.outcomes[0].name
    assert {point.fraction for point in study.curve if point.method == study.winner} == {0.5, 1.0}


def test_few_queries_make_few_folds(local):
    X, y, qid = np.random.default_rng(0).normal(size=(8, 2)), [0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1, 1, 1]
    study = corank.compare(["rankrls", "crr", "lcra"], X, y, qid)
    assert study.folds == 2
    assert any("There are 2 folds instead of 5" in note for note in study.notes)
    assert all(one.is_complete for one in study.outcomes)
    assert study.verdict.endswith("Judge more queries.")
    assert study.curve == () or all(point.fraction == 1.0 for point in study.curve)


@pytest.mark.long
def test_the_curve(local, made):
    study = corank.compare(["rankrls", "crr"], made.X, made.y, made.qid, folds=3, fractions=(0.5, 0.25))
    name = study.winner
    points = [point for point in study.curve if point.method == name]
    assert [point.fraction for point in points] == [0.25, 0.5, 1.0]
    assert [point.n_queries for point in points] == [4, 8, 16]
    assert points[-1].mean == study.outcome(name).evaluation["nDCG@10"].mean
    assert (points[-1].low, points[-1].high) == (study.outcome(name).low, study.outcome(name).high)
    flat = [point.mean for point in study.curve if point.method == "columns"]
    assert flat == pytest.approx([study.outcome("columns").evaluation["nDCG@10"].mean] * 3)


def test_unscored_rows_are_counted_and_used(local, made):
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(40, 6))
    with_pool = quick(["lcra"], made, unjudged=pool, unjudged_qid=np.repeat(np.arange(100, 104), 10))
    without = quick(["lcra"], made)
    assert (with_pool.data.n_pool_rows, with_pool.data.n_rows) == (40, 192)
    assert any("LCRA could not use unjudged rows" in note for note in without.notes)
    assert not any("could not use" in note for note in with_pool.notes)
    assert all("coupling" in chosen for chosen in with_pool.outcome("lcra").chosen)


def test_rankers_stand_on_a_prior(local, made):
    study = quick(["rankrls"], made, prior=[0, 3])
    assert study.outcome("columns").title == "mean of 2 columns"
    assert isinstance(study.ranker, corank.base.ResidualRanker)
    assert study.ranker.ranker_.alphas is not None  # tuned on the prior
    with pytest.raises(InputError, match=r"prior is \[6\]"):
        quick(["rankrls"], made, prior=[6])


def test_an_estimator_that_cannot_be_saved_still_wins(local, made, tmp_path):
    study = quick({"ridge": Ridge()}, made, folder=tmp_path, y=np.where(made.qid < 4, np.nan, made.y))
    assert study.winner == "ridge"
    assert (study.ranker, study.model) == (None, None)
    assert any(note.startswith("The winner could not be saved: the model is a Ridge") for note in study.notes)
    assert not (tmp_path / MODEL).exists()


def test_files_of_others_stay(local, made, tmp_path):
    (tmp_path / MODEL).write_text("mine")
    with pytest.raises(InputError, match=r"model\.safetensors exists already"):
        quick(["rankrls"], made, folder=tmp_path)
    (tmp_path / STUDY).write_text("{")
    with pytest.raises(InputError, match="holds a study of other data"):
        quick(["rankrls"], made, folder=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, not a folder"):
        quick(["rankrls"], made, folder=tmp_path / "file")
    assert local == []


def test_bad_values_raise_before_any_fit(local, made, tmp_path):
    folder = tmp_path / "out"
    for options, message in (
        ({"folds": 1}, "folds is 1"),
        ({"budget": -1.0}, "budget is -1"),
        ({"fractions": (0.0,)}, r"fractions is \[0.0\]"),
        ({"metrics": "nDGC@10"}, "nDGC"),
        ({"convention": "letor5"}, "letor5"),
        ({"y": made.y - 2}, "grade"),
        ({"y": np.where(made.y > 0, 0.5, 0.25), "metrics": "AP"}, "AP is undefined for every judged query"),
    ):
        with pytest.raises(InputError, match=message):
            quick(["rankrls"], made, folder=folder, **{"metrics": "nDCG@10", **options})
    with pytest.raises(InputError, match="X is missing"):
        corank.compare(["rankrls"])
    assert not folder.exists()


def test_the_same_seed_gives_the_same_study(local, made):
    records = [{**study_record(quick(["rankrls", "lcra"], made)), "seconds": 0} for _ in range(2)]
    for record in records:
        for outcome in record["outcomes"]:
            outcome.update(fit_seconds=0, predict_seconds=0)
    assert records[0] == records[1]
