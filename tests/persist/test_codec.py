from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import sparse

from corank.errors import InputError
from corank.persist.codec import decode, encode


def through(value):
    tensors: dict = {}
    text = json.dumps(encode(value, "value", tensors))
    return decode(json.loads(text), tensors)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -0.1,
        1e300,
        "ü",
        math.inf,
        -math.inf,
        [1, [2.5, "a"]],
        (1, (2,)),
        {"a": {"b": (1,)}},
        slice(1, None, 2),
    ],
)
def test_plain_values_survive(value):
    again = through(value)
    assert again == value
    assert type(again) is type(value)


def test_nan_survives():
    assert math.isnan(through(math.nan))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.arange(4, dtype=np.uint64),
        np.array([1.5, np.nan], dtype=np.float32),
        np.array(3.0),
        np.zeros((0, 2)),
        np.array([True, False]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "längst"]),
        np.array(["a", "b"], dtype=object),
    ],
)
def test_arrays_survive(array):
    again = through(array)
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


def test_csr_survives():
    matrix = sparse.random_array((5, 7), density=0.3, rng=np.random.default_rng(0), format="csr")
    np.testing.assert_array_equal(through(matrix).toarray(), matrix.toarray())


def test_numpy_numbers_become_numbers():
    assert through(np.float32(0.5)) == 0.5
    assert through(np.int8(-3)) == -3


@pytest.mark.parametrize("value", [object(), len, {1: 2}, np.array([1j]), np.array([None], dtype=object)])
def test_other_things_are_refused_by_name(value):
    with pytest.raises(InputError, match=r"^value is an? .*cannot be saved"):
        encode(value, "value", {})


def test_an_array_without_axes_keeps_its_shape():
    assert through(np.array(2.5)).shape == ()
