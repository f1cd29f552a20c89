"""Views against their kernels on hand-picked columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corank.base.kernels import GaussianKernel, LinearKernel
from corank.base.kernels.views import View, as_views, split_columns
from corank.core.rows.access import ScaledRows
from corank.deploy.persist.codec import decode, encode
from corank.errors import InputError

X = np.random.default_rng(0).standard_normal((8, 6))
RNG = np.random.default_rng(1)


@pytest.mark.parametrize("columns", [None, [3], [1, 2, 3], [4, 0, 5], slice(1, 6, 2), slice(2)])
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_a_view_sees_its_columns(columns, as_rows):
    seen = X if columns is None else X[:, columns]
    chosen = View(columns, GaussianKernel(0.5)).select(as_rows(X))
    np.testing.assert_array_equal(chosen.toarray() if sparse.issparse(chosen) else chosen, seen)
    scaled = View(columns).select(ScaledRows(as_rows(X), np.arange(1.0, 7.0)))[:]
    by_hand = View(columns).select(X * np.arange(1.0, 7.0))
    np.testing.assert_allclose(scaled.toarray() if sparse.issparse(scaled) else scaled, by_hand)


def test_views_are_alike_by_columns_and_kernel():
    view = View([0, 2], GaussianKernel(0.5))
    assert view.is_like(View([0, 2], GaussianKernel(0.5), basis=[1]))
    for other in (
        View([0, 1], GaussianKernel(0.5)),
        View(None, GaussianKernel(0.5)),
        View([0, 2], GaussianKernel(1.0)),
    ):
        assert not view.is_like(other)
    assert View().is_like(View())


def test_neighbouring_columns_are_a_window():
    assert np.shares_memory(View([2, 3, 4]).select(X), X)
    assert View().select(X) is X


def test_fit_resolves_the_kernel_on_the_columns_seen():
    view = View([0, 1], "gaussian").fit(X, np.random.default_rng(2))
    assert view.kernel == GaussianKernel().fit(X[:, :2], np.random.default_rng(2))


@given(st.integers(1, 40), st.data())
def test_split_columns_is_an_even_partition(n_features, data):
    n_views = data.draw(st.integers(1, n_features))
    parts = split_columns(n_features, n_views, np.random.default_rng(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(n_features))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == n_views


def test_views_from_what_a_user_may_write():
    view = View([1], "cosine")
    made = as_views([view, 3, slice(-2, None), np.array([0, 4]), GaussianKernel(1.0)], 6, kernel="cosine")
    assert made[0] is view
    assert [None if v.columns is None else v.columns.tolist() for v in made] == [[1], [3], [4, 5], [0, 4], None]
    assert [type(v.kernel).__name__ for v in made] == ["CosineKernel"] * 4 + ["GaussianKernel"]
    dealt = as_views(3, 6, np.random.default_rng(0))
    parts = split_columns(6, 3, np.random.default_rng(0))
    assert [v.columns.tolist() for v in dealt] == [part.tolist() for part in parts]
    assert all(v.kernel == LinearKernel() for v in dealt)


def test_a_saved_view_comes_back_equal():
    view, tensors = View([4, 0], GaussianKernel(0.5), basis=[2, 3]), {}
    again = decode(encode(view, "view", tensors), tensors)
    assert (again.columns.tolist(), again.kernel, again.basis.tolist()) == ([4, 0], GaussianKernel(0.5), [2, 3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: View([]), r"columns is \[\]; pass one or more column numbers"),
        (lambda: View([-1]), "columns contains column -1"),
        (lambda: View([1, 2, 1]), "columns contains column 1 twice"),
        (lambda: View([0.5]), "pass one or more column numbers"),
        (lambda: View(slice(1, None)), "pass a slice with 0 <= start < stop"),
        (lambda: View([0], "precomputed"), "with a precomputed kernel cannot select columns"),
        (lambda: View([0], basis=[1, 1]), "basis contains row 1 twice"),
        (lambda: View([7]).select(X), "a view has column 7, but X has columns 0 to 5"),
        (lambda: split_columns(3, 4, RNG), "views=4 needs one column per view, but X has n_features = 3; pass 1 to 3"),
        (lambda: split_columns(3, 0, RNG), "views=0 needs one column"),
        (lambda: as_views([], 6), "pass a number of views, or a list"),
        (lambda: as_views("linear", 6), "pass a number of views, or a list"),
        (lambda: as_views(2, 6), "pass rng, or the columns of each view"),
        (lambda: as_views([[0], [6]], 6), "a view has column 6, but X has columns 0 to 5"),
        (lambda: as_views([slice(9, 12)], 6), "selects none of the 6 columns"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()
