"""Building blocks of hostile inputs: hard numbers, odd bytes, and mutations of bytes and JSON."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from math import nextafter
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

HARD_NUMBERS = [
    # around the ranges of float64 and float32
    "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "-1e309", "1e400", "9e999999999999",
    "3.4028234663852886e38", "3.4028235677973362e38", "3.4028235677973366e38", "-3.40282357e38", "3.5e38",
    "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400", "-1e-99999999999",
    "2.2250738585072011e-308", "2.2250738585072014e-308", "1.1754943508222875e-38", "7.006492321624085e-46",
    # half-way cases and the ends of the fast paths
    "9007199254740991", "9007199254740993", "9007199254740992.5", "9223372036854775807", "18446744073709551615",
    "18446744073709551616", "9999999999999999999", "10000000000000000000", "1e22", "1e23", "8.5e22", "0.3e-22",
    "1.00000000000000011102230246251565404236316680908203125",
    "1.00000000000000011102230246251565404236316680908203124",
    "1.00000000000000011102230246251565404236316680908203126", "6929495644600919.5", "3.00000000000000000000001",
    # odd but fine
    "-0", "+0.0", "00", "+.5", "5.", "-5.e3", "0e0", "0e999999999999999999999", "1E5", "1e+05", "1e-05", ".1e1",
    "0." + "0" * 330 + "1", "1" + "0" * 310, "0" * 40 + "7", "1." + "0" * 197 + "e400", "1" + "0" * 30 + "e-30",
    # not numbers
    ".", "-", "+", "e5", ".e5", "1e", "1e+", "--1", "+-1", "1..2", "1.2.3", "1e5.0", "0x10", "0x1p3", "1_0", "1,5",
    "nan", "NaN", "inf", "-inf", "Infinity", "1f", "1d", "1L", "", "²", "٣", "１", "½", "−1", "1\u00a0", "1e²", "True",
]  # fmt: skip

EDGE_INTEGERS = [
    -(2**63) - 1, -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 9, 10, 99, 255, 256, 99_999_999, 100_000_000, 2**30,
    2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**40, 9_999_999_999, 10_000_000_000, 2**53, 10**17, 10**18 - 1,
    10**18, 2**62, 2**63 - 1, 2**63, 2**64, 10**30,
]  # fmt: skip

ODD_BYTES = [
    b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b" ", b"  ", b"\x0b", b"\x0c", b"\0", b"\x1a", b"\x1c", b"\x85", b"\xa0",
    b"\xff", b"\xfe\xff", b"\xc3", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xed\xa0\x80",
    b"#", b"##", b":", b"::", b"-", b"+", b".", b"e", b"E", b"0", b"9", b"qid:", b"qid", b" qid:1 ", b"docid", b"=",
    b"\xc2\xb2", b"\xd9\xa3", b"\xf0\x9d\x9f\x98", b",", b";", b'"', b"'", b"\\", b"0" * 9, b"1" * 19, b"x" * 17,
]  # fmt: skip


def number(rng: Random) -> str:
    """Return a decimal number, usually a valid one."""
    kind = rng.random()
    if kind < 0.4:
        return str(rng.choice((0, 1, 2, -1, 0.5, 0.25, rng.randrange(100), round(rng.random(), 6))))
    if kind < 0.6:
        return repr(_double(rng))
    if kind < 0.75:
        return rng.choice(HARD_NUMBERS)
    if kind < 0.85:
        return _half_way(rng)
    digits = "".join(rng.choices("0123456789", k=rng.choice((1, 3, 8, 9, 16, 19, 20, 40))))
    at = rng.randrange(len(digits) + 1)
    tail = rng.choice(("", f"e{rng.randrange(-360, 320)}", f"E{rng.choice(EDGE_INTEGERS)}"))
    return rng.choice(("", "", "-", "+")) + digits[:at] + rng.choice((".", "")) + digits[at:] + tail


def _double(rng: Random) -> float:
    value: float = struct.unpack("<d", rng.randbytes(8))[0]
    return value if value == value and abs(value) != float("inf") else 1.5


def _half_way(rng: Random) -> str:
    """Return a number half-way between two neighbours of float64 or float32, exactly or off by the last digit."""
    if rng.random() < 0.5:
        low = abs(_double(rng)) if rng.random() < 0.3 else rng.random() * 10 ** rng.randrange(-20, 20)
        middle = (Decimal(low) + Decimal(nextafter(low, float("inf")))) / 2
    else:
        bits = rng.randrange(0x7F7FFFFF)
        low, high = (struct.unpack("<f", struct.pack("<I", bits + k))[0] for k in (0, 1))
        middle = (Decimal(low) + Decimal(high)) / 2
    text = f"{middle:f}" if -5 < middle.adjusted() < 30 else f"{middle:e}"
    return text + rng.choice(("", "1", "0")) if "." in text and "e" not in text else text


def mutate(
    content: bytes, rng: Random, words: list[bytes] = ODD_BYTES, others: Callable[[], bytes] | None = None
) -> bytes:
    """
    Change bytes in one to four places.

    words: byte strings to insert.
    others: returns another input to splice in.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(content) + 1)
        to = min(len(content), at + rng.choice((1, 1, 2, 4, 8, rng.randrange(len(content) + 1))))
        match rng.randrange(9):
            case 0:
                content = content[:at] + content[to:]
            case 1:
                content = content[:to] + content[at:]
            case 2 | 3:
                content = content[:at] + rng.choice(words) + content[at:]
            case 4:
                content = content[:at] + rng.choice(words) + content[to:]
            case 5 if at < len(content):
                content = content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
            case 6 if at < len(content):
                content = content[:at] + rng.randbytes(1) + content[at + 1 :]
            case 7:
                content = content[:at] if rng.random() < 0.5 else content[at:]
            case 8 if others is not None:
                other = others()
                content = content[:at] + other[rng.randrange(len(other) + 1) :]
    return content


def damaged_numbers(array: NDArray[Any], rng: Random) -> bytes:
    """Return the bytes of a vector with changed, rotated, missing or additional numbers."""
    if not len(array):
        return array.tobytes()
    if rng.random() < 0.15:
        return np.roll(array, rng.randrange(len(array))).tobytes()
    if rng.random() < 0.15:
        return array[: rng.randrange(len(array) + 1)].tobytes() + array[: rng.choice((0, 1, 3))].tobytes()
    array = array.copy()
    for _ in range(rng.choice((1, 1, 2, len(array)))):
        at = rng.randrange(len(array))
        if array.dtype.kind in "iu":
            ends = np.iinfo(array.dtype)
            value = rng.choice(EDGE_INTEGERS) if rng.random() < 0.6 else rng.randrange(-1, 16)
            array[at] = min(max(value, ends.min), ends.max)
        elif array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array[at] = rng.choice((np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, 5e-324, 1.0, -1.0, 1e-30, 3e38))
        else:
            array.view(np.uint8)[rng.randrange(array.nbytes)] = rng.randrange(256)
    return array.tobytes()


ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 1.5, -0.0, float("nan"), float("inf"), "", "a", "\0", "../x", "é\ud800", [], {},
    [0], [[]], {"": 0}, {"a": []}, [None], "0" * 1000, "<f8", "|O", *EDGE_INTEGERS,
]  # fmt: skip


def mutate_json(value: Any, rng: Random, odd: list[Any] = ODD_VALUES) -> Any:
    """
    Change one place of a JSON value: replace, drop, add, double, swap or rename; the value itself is left alone.

    odd: what may be put in.
    """
    return _changed(value, rng.choice(_places(value)), rng, odd)


def _places(value: Any) -> list[tuple[Any, ...]]:
    """The keys that lead to each place of a JSON value; those of the deepest are left out."""
    found: list[tuple[Any, ...]] = []
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while waiting:
        path, part = waiting.pop()
        found.append(path)
        inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        if len(path) < 50:
            waiting += [((*path, key), one) for key, one in inner]
    return found


def _changed(value: Any, path: tuple[Any, ...], rng: Random, odd: list[Any]) -> Any:
    if path:
        copy = value.copy()
        copy[path[0]] = _changed(value[path[0]], path[1:], rng, odd)
        return copy
    if isinstance(value, dict) and value and rng.random() < 0.8:
        return _changed_dict(value, rng, odd)
    if isinstance(value, list) and value and rng.random() < 0.8:
        return _changed_list(value, rng, odd)
    if isinstance(value, int) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 2, -value, value, 2**31, 2**32, 2**63))
    if isinstance(value, str) and value and rng.random() < 0.5:
        return mutate(value.encode("utf-8", "surrogatepass"), rng).decode("latin-1")
    return rng.choice(odd)


def _changed_dict(value: dict[str, Any], rng: Random, odd: list[Any]) -> dict[str, Any]:
    copy = dict(value)
    key, other = rng.choice(list(copy)), rng.choice(list(copy))
    match rng.randrange(5):
        case 0:
            del copy[key]
        case 1:
            copy[key] = copy[other]
        case 2:
            copy[key], copy[other] = copy[other], copy[key]
        case 3:
            copy[rng.choice(("", "x", "../x", key + "_", key.upper()))] = copy.pop(key)
        case 4:
            copy[rng.choice(("x", "x_", "__class__", key + "_"))] = rng.choice(odd)
    return copy


def _changed_list(value: list[Any], rng: Random, odd: list[Any]) -> list[Any]:
    copy = list(value)
    at = rng.randrange(len(copy))
    match rng.randrange(4):
        case 0:
            del copy[at]
        case 1:
            copy.insert(at, copy[rng.randrange(len(copy))])
        case 2:
            copy.insert(at, rng.choice(odd))
        case 3:
            rng.shuffle(copy)
    return copy
