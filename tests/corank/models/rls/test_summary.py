from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import corank
from corank.base.kernels import GaussianKernel
from corank.base.kernels.basis import Basis, FeatureMap
from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.deploy.distributed import pair_sums
from corank.errors import InputError
from corank.models.rls import CoRankRLS, PairSums, RankRLS

PROBLEM = make_ranking(12, 6, random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.4, random_state=0)


def on_basis(numbers, rows=X):
    return FeatureMap.on_basis(Basis.of(View(None, GaussianKernel(0.05)), rows, numbers), rows)


MAPS = (on_basis(np.arange(0, 72, 9)), FeatureMap.of_columns(View([0, 1, 2]), 3))


def part(chosen, maps=MAPS, query_weight="pairs", ties=False):
    data = RankingData.of(X[chosen], Y[chosen], QID[chosen])
    return PairSums.of(maps, data, query_weight, ties)


def test_a_sum_of_parts_in_any_order_is_the_whole():
    whole = part(QID >= 0)
    parts = [part(r == QID % 3) for r in range(3)]
    for order in ([0, 1, 2], [2, 0, 1]):
        total = parts[order[0]] + parts[order[1]] + parts[order[2]]
        np.testing.assert_allclose(total.equations(0.7).A, whole.equations(0.7).A, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(total.equations(0.7).b, whole.equations(0.7).b, rtol=1e-10, atol=1e-9)
        assert total.equations().closed_alpha == pytest.approx(whole.equations().closed_alpha)


def test_a_summary_from_another_process_can_be_added():
    one, other = part(QID < 6), pickle.loads(pickle.dumps(part(QID >= 6)))
    np.testing.assert_allclose((one + other).equations(0.1).A, part(QID >= 0).equations(0.1).A, atol=1e-9)


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_saved_summary_is_the_same(tmp_path, rows):
    model = CoRankRLS(
        [View([0, 1], GaussianKernel()), View(None, "linear", [1, 5]), View([2, 3])], 0.2, n_basis=4, random_state=0
    )
    whole = model.pair_sums(rows(X), Y, qid=QID)
    first = model.pair_sums(rows(X[QID < 6]), Y[QID < 6], qid=QID[QID < 6], like=whole)
    corank.save(first, tmp_path / "first.summary")
    again = corank.load(tmp_path / "first.summary")
    second = model.pair_sums(rows(X[QID >= 6]), Y[QID >= 6], qid=QID[QID >= 6], like=again)
    expected = model.fit_pair_sums(first + second).predict(X)
    np.testing.assert_allclose(model.fit_pair_sums(again + second).predict(X), expected, rtol=1e-12)
    np.testing.assert_allclose(expected, model.fit_pair_sums(whole).predict(X), atol=1e-9)
    assert [entry.name for entry in tmp_path.iterdir()] == ["first.summary"]


def test_what_is_no_summary_is_refused(tmp_path):
    summary = RankRLS(kernel=lambda A, B: A @ B.T, n_basis=3, scale=False, random_state=0).pair_sums(X, Y, qid=QID)
    with pytest.raises(InputError, match="function is a function"):
        corank.save(summary, tmp_path / "function.summary")
    corank.save(part(QID >= 0), tmp_path / "whole.summary")
    text = (tmp_path / "whole.summary").read_bytes()
    (tmp_path / "cut.summary").write_bytes(text[: len(text) // 2])
    with pytest.raises(InputError, match="is truncated or not a corank model"):
        corank.load(tmp_path / "cut.summary")


def test_summaries_that_do_not_belong_together_are_refused():
    other = (on_basis(np.arange(1, 72, 9)), MAPS[1])
    with pytest.raises(InputError, match="different views or basis rows"):
        part(QID < 6) + part(QID >= 6, other)
    with pytest.raises(InputError, match="query_weight='pairs' and query_weight='rows'"):
        part(QID < 6) + part(QID >= 6, query_weight="rows")
    with pytest.raises(InputError, match="ties=False and ties=True"):
        part(QID < 6) + part(QID >= 6, ties=True)
    columns = [CoRankRLS([[0], [1]], scale=False).pair_sums(X[:, :d], Y, qid=QID) for d in (2, 3)]
    with pytest.raises(InputError, match="n_features=2 and n_features=3"):
        columns[0] + columns[1]
    scaled = [
        RankRLS(scale=scale).pair_sums(X[half], Y[half], qid=QID[half])
        for scale in (True, False)
        for half in (QID < 6, QID >= 6)
    ]
    for one in scaled[1:3]:
        with pytest.raises(InputError, match="scale columns differently"):
            scaled[0] + one


def test_the_system_is_positive_whatever_the_coupling():
    for coupling in (0.0, 1.0, 1e6):
        A = part(QID >= 0).equations(coupling).A
        assert np.linalg.eigvalsh(A).min() > -1e-9 * np.trace(A)


def test_one_view_has_nobody_to_agree_with():
    assert np.isnan(part(QID >= 0, MAPS[:1]).gap(np.zeros(MAPS[0].n_features)))


def test_a_part_may_hold_no_pair_but_the_whole_may_not():
    y = np.where(QID < 6, np.nan, Y)
    model = CoRankRLS(2, coupling=0.1, random_state=0)
    whole = model.pair_sums(X, y, qid=QID)
    unscored = model.pair_sums(X[QID < 6], y[QID < 6], qid=QID[QID < 6], like=whole)
    rest = model.pair_sums(X[QID >= 6], y[QID >= 6], qid=QID[QID >= 6], like=whole)
    np.testing.assert_allclose(
        model.fit_pair_sums(unscored + rest).predict(X), model.fit(X, y, qid=QID).predict(X), atol=1e-9
    )
    with pytest.raises(InputError, match="no part of the summary holds two scored rows"):
        model.fit_pair_sums(unscored)


def test_names_of_columns_are_remembered(tmp_path):
    made = make_ranking(10, 6, n_latent=2, features_per_view=2, random_state=0)
    frame = pd.DataFrame(made.X, columns=[*"abcd"])
    first, second = made.qid < 5, made.qid >= 5
    model = RankRLS(alpha=1.0, scale=False)
    parts = [model.pair_sums(frame[some], made.y[some], qid=made.qid[some]) for some in (first, second)]
    corank.save(parts[0], tmp_path / "s")
    fitted = model.fit_pair_sums(corank.load(tmp_path / "s") + parts[1])
    assert fitted.feature_names_in_.tolist() == [*"abcd"]
    whole = RankRLS(alpha=1.0, scale=False).fit(made.X, made.y, qid=made.qid)
    np.testing.assert_allclose(fitted.predict(frame), whole.predict(made.X))
    by_parts = pair_sums([(frame[some], made.y[some], made.qid[some]) for some in (first, second)], model)
    assert by_parts.names == tuple("abcd")
    with pytest.raises(InputError, match="these summaries have 'a' and 'd' as column 0"):
        parts[0] + model.pair_sums(frame[second][[*"dcba"]], made.y[second], qid=made.qid[second])
    # a part without names takes those of the others
    unnamed = model.pair_sums(made.X[second], made.y[second], qid=made.qid[second])
    assert (parts[0] + unnamed).names == (unnamed + parts[0]).names == tuple("abcd")
