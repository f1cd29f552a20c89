import numpy as np
import pytest
from scipy.optimize import minimize

from corank.clicks import PositionBias, click_pairs, estimate_from_clicks, position_bias
from corank.data.io.clicks import ClickLog
from corank.errors import InputError
from helpers.clicks import rows_of, show, swapped

THETA = np.array([1.0, 0.6, 0.45, 0.3, 0.2])


def test_swaps_identify_the_bias_however_rarely_a_document_is_shown():
    rng = np.random.default_rng(0)
    # 2,000 queries, about 8 lists each: relevance cannot be learnt, the bias can
    r = rng.beta(0.5, 1.0, size=(2000, 5))
    found = position_bias(show(rng, r, THETA, 16_000, swapped(rng, 5)))
    assert found.method == "moved"
    np.testing.assert_allclose(found.examined, THETA, atol=0.03)


def test_two_places_have_the_closed_form_of_a_ratio():
    """With one document a query at two places: θ_2 solves c_2 = Σ C n_2 θ / (n_1 + n_2 θ)."""
    rng = np.random.default_rng(1)
    r = rng.random((40, 2))
    log = show(rng, r, np.array([1.0, 0.4]), 3000, swapped(rng, 2))
    found = position_bias(log).examined[1]
    gap = 0.0
    for item in range(log.items.max() + 1):
        here = log.items == item
        n = np.bincount(log.position[here], minlength=3)[1:]
        c = np.bincount(log.position[here], weights=log.clicked[here], minlength=3)[1:]
        gap += c[1] - c.sum() * n[1] * found / (n[0] + n[1] * found)
    assert abs(gap) < 1e-6 * log.clicked.sum()


def test_the_optimum_is_that_of_a_plain_search():
    rng = np.random.default_rng(2)
    log = show(rng, rng.random((30, 3)), np.array([1.0, 0.5, 0.3]), 2000, swapped(rng, 3))
    cells = {}
    for item, place, click in zip(log.items, log.position - 1, log.clicked, strict=True):
        n, c = cells.setdefault(int(item), (np.zeros(3), np.zeros(3)))
        n[place] += 1
        c[place] += click

    def cost(free):
        theta = np.exp(np.concatenate([[0.0], free]))
        return sum(c.sum() * np.log(n @ theta) - c @ np.log(theta) for n, c in cells.values())

    best = minimize(cost, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    np.testing.assert_allclose(position_bias(log).examined[1:], np.exp(best), rtol=1e-5)


def test_regression_finds_the_bias_of_lists_in_which_nothing_moved():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300 * 5, 3))
    r = 1 / (1 + np.exp(-(X @ [1.0, -1.0, 0.5]).reshape(300, 5)))
    log = show(rng, r, THETA, 12_000, lambda query, number: np.arange(5))
    qid, docids = rows_of(r)
    with pytest.raises(InputError, match="bias of position 2 relative to position 1"):
        position_bias(log)
    found = position_bias(log, X=X, qid=qid, docids=docids)
    assert found.method == "regression"
    np.testing.assert_allclose(found.examined, THETA, atol=0.05)


def test_unidentified_biases_are_refused():
    # place 2 was never clicked: its bias could be as small as one likes
    log = ClickLog.of(["a"] * 4, ["x", "y", "y", "x"], [1, 2, 1, 2], [1, 0, 1, 0])
    with pytest.raises(InputError, match="bias of position 2 relative to position 1"):
        position_bias(log)
    with pytest.raises(InputError, match="without qid or docids"):
        position_bias(log, X=np.ones((2, 1)))
    with pytest.raises(InputError, match="is not a row of X"):
        position_bias(log, X=np.ones((1, 1)), qid=["a"], docids=["x"])
    with pytest.raises(InputError, match="has position 3"):
        PositionBias.power(1.0, 2).at([1, 3])
    with pytest.raises(InputError, match="eta is -1"):
        PositionBias.power(-1.0, 2)


def test_rows_of_features_are_checked():
    log = ClickLog.of(["a", "a"] * 10, ["x", "y"] * 10, [1, 2] * 10, [1, 0] * 9 + [0, 1])
    ids = {"qid": ["a", "a"], "docids": ["x", "y"]}
    np.testing.assert_allclose(position_bias(log, X=[[0.0], [0.0]], **ids).examined, [1.0, 1 / 9], atol=1e-3)
    with pytest.raises(InputError, match="NaN"):
        position_bias(log, X=[[0.0], [np.nan]], **ids)
    with pytest.raises(InputError, match="X has 3 rows for 2 query ids"):
        position_bias(log, X=np.zeros((3, 1)), **ids)
    with pytest.raises(InputError, match="position is 0"):
        PositionBias.power(1.0, 2).at([0])


def test_incomplete_lists_do_not_flatten_the_bias():
    """Lists of clicked documents only would show that every position is always examined."""
    rng = np.random.default_rng(3)
    log = show(rng, rng.random((40, 3)), np.array([1.0, 0.4, 0.2]), 4000, swapped(rng, 3))
    complete = log.impression < 2000
    columns = (log.qid, log.docids, log.position, log.clicked)
    kept = complete | log.clicked
    mixed = ClickLog.of(*(one[kept] for one in columns), impression=log.impression[kept], complete=complete[kept])
    whole = ClickLog.of(*(one[complete] for one in columns), impression=log.impression[complete])
    np.testing.assert_allclose(position_bias(mixed).examined, position_bias(whole).examined)
    clicked = ~complete & log.clicked
    only = ClickLog.of(
        *(one[clicked] for one in columns), impression=log.impression[clicked], complete=np.zeros(clicked.sum())
    )
    with pytest.raises(InputError, match="no complete list of the log has a click"):
        position_bias(only)
    qid, docids = rows_of(np.empty((40, 3)))
    bias = PositionBias.power(1.0, 3)
    assert click_pairs(mixed, qid, docids, bias=bias).n_clicks == whole.clicked.sum()
    with pytest.raises(InputError, match="pass against='query', or a log of complete lists"):
        click_pairs(only, qid, docids, bias=bias)
    assert click_pairs(only, qid, docids, bias=bias, against="query").n_clicks == clicked.sum()
    scores = rng.random(120)
    with pytest.raises(InputError, match="incomplete lists; pass method='ips'"):
        estimate_from_clicks(mixed, scores, qid, docids, bias=bias, method="doubly_robust")
    # inverse propensity scoring uses clicks alone
    full = ClickLog.of(*(one[log.clicked] for one in columns), impression=log.impression[log.clicked])
    one, other = (
        estimate_from_clicks(some, scores, qid, docids, bias=bias).value * some.n_impressions for some in (full, mixed)
    )
    assert one == pytest.approx(other)


def test_lists_of_one_document_have_no_bias():
    with np.errstate(all="raise"):
        bias = position_bias(ClickLog.of(["a", "b"], ["x", "y"], [1, 1], [1, 0]))
    assert bias.examined.tolist() == [1.0]
