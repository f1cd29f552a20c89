from __future__ import annotations

import json
import math
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load, save
from scipy import sparse

from corank.deploy.persist.codec import decode, encode
from corank.errors import InputError


class Point(NamedTuple):
    x: int
    y: int


def through(value):
    """Through a real file, for what safetensors makes of names and types."""
    tensors: dict = {}
    text = json.dumps(encode(value, "value", tensors))
    assert all(tensors[name].dtype.isnative for name in tensors)  # or the checksum would differ after loading
    return decode(json.loads(text), load(save(tensors)))


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
        slice(0.5, math.inf),
        "\udce9",
    ],
)
def test_plain_values_survive(value):
    again = through(value)
    assert again == value
    assert type(again) is type(value)


def test_a_range_becomes_a_list():
    assert through([range(2), range(5, 1, -2)]) == [[0, 1], [5, 3]]


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
        np.array(["a", "längst"], dtype=object),
        np.array([], dtype=object),
        np.array([1.5, 2.5], dtype=">f8"),
        np.arange(3, dtype=np.float16),
    ],
)
def test_arrays_survive(array):
    again = through(array)
    assert again.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(again, array)


def test_csr_survives():
    matrix = sparse.random_array((5, 7), density=0.3, rng=np.random.default_rng(0), format="csr")
    np.testing.assert_array_equal(through(matrix).toarray(), matrix.toarray())


def test_numpy_numbers_become_numbers():
    assert through(np.float32(0.5)) == 0.5
    assert through(np.int8(-3)) == -3


@pytest.mark.parametrize(
    "value",
    [
        object(), len, {1: 2}, np.array([1j]), np.array([None], dtype=object), OrderedDict(a=1), Point(1, 2),
        np.ma.masked_array([1, 2], [True, False]), np.array([1], dtype=np.longdouble), b"bytes", {1, 2}, 1j,
        np.array([["a"]]), np.array([b"a"]), np.array(["2020"], dtype="datetime64[Y]"),
    ],
)  # fmt: skip
def test_other_things_are_refused_by_name(value):
    with pytest.raises(InputError, match=r"^value is an? .*cannot be saved"):
        encode(value, "value", {})


def test_an_array_without_axes_keeps_its_shape():
    assert through(np.array(2.5)).shape == ()


def test_two_arrays_never_share_a_name():
    value = {"a.b": np.array([1]), "a": {"b": np.array([2]), "\udce9": np.array([3])}}
    again = through(value)
    assert (again["a.b"], again["a"]["b"], again["a"]["\udce9"]) == (1, 2, 3)


@pytest.mark.parametrize("dtype", [np.dtypes.StringDType(), np.str_])
def test_strings_of_numpy_come_back_as_objects(dtype):
    again = through(np.array(["a", "bc"], dtype=dtype))
    assert again.tolist() == ["a", "bc"]
    assert again.dtype == object
