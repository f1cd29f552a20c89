"""Random numbers for kernels: the generator xoshiro256++, and alias tables for weighted draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import intrinsic, jit

_TO_UNIT = 1.0 / 9007199254740992.0  # 2⁻⁵³: a float64 in [0, 1) carries 53 bits
_SIXTY_FOUR_BITS = 18446744073709551616.0  # 2⁶⁴


def seed_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """
    Seed the random state of a kernel from a numpy generator.

    The generator is xoshiro256++ (Blackman and Vigna, 2021): 256 bits of state, period 2²⁵⁶ − 1. A kernel advances the
    state in place; a copy of the state resumes the sequence.
    """
    state = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    # the all-zero state is a fixed point
    state[0] |= np.uint64(not state.any())
    return state


@intrinsic
def high_product(typingctx, a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of the 128-bit product a·b."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.IntType(128)
        a, b = (builder.zext(argument, wide) for argument in arguments)
        return builder.trunc(builder.lshr(builder.mul(a, b), ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@jit
def next_u64(state):  # type: ignore[no-untyped-def]
    """Return the next 64 random bits and advance `state`."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    mixed = s0 + s3
    word = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return word


@jit
def random_below(state, n):  # type: ignore[no-untyped-def]
    """Return an integer uniform over 0..n-1, n ≥ 1, without bias (Lemire, 2019)."""
    n = np.uint64(n)
    word = next_u64(state)
    low = word * n
    if low < n:
        overhang = (np.uint64(0) - n) % n  # 2⁶⁴ mod n
        while low < overhang:
            word = next_u64(state)
            low = word * n
    return high_product(word, n)


@jit
def random_uniform(state):  # type: ignore[no-untyped-def]
    """Return a float64 uniform over the multiples of 2⁻⁵³ in [0, 1)."""
    return np.float64(next_u64(state) >> np.uint64(11)) * _TO_UNIT


@jit
def alias_table(weights):  # type: ignore[no-untyped-def]
    """
    Build an alias table, which draws k with probability weights[k] / Σ weights in O(1) (Walker, 1977; Vose, 1991).

    Column k gives k with probability threshold / 2⁶⁴ and its alias otherwise. Weight zero is never drawn.

    weights (K,): non-negative, finite, with a positive finite sum.
    Returns (K, 2): threshold and alias of each column.
    """
    K = len(weights)
    table = np.empty((K, 2), dtype=np.uint64)
    threshold, alias = table[:, 0], table[:, 1]
    height = weights * (K / weights.sum())
    # one array holds two stacks: columns below 1 from the left, columns above 1 from the right
    stacks = np.empty(K, dtype=np.int64)
    n_low, n_high, heaviest = 0, 0, 0
    for k in range(K):
        if height[k] > height[heaviest]:
            heaviest = k
        if height[k] < 1.0:
            stacks[n_low] = k
            n_low += 1
        else:
            n_high += 1
            stacks[K - n_high] = k
    while n_low > 0 and n_high > 0:
        n_low -= 1
        low, high = stacks[n_low], stacks[K - n_high]
        threshold[low] = _share(height[low])
        alias[low] = high
        height[high] -= 1.0 - height[low]
        if height[high] < 1.0:
            n_high -= 1
            stacks[n_low] = high
            n_low += 1
    # the remaining columns are 1 up to rounding, or have weight zero and get the heaviest alias
    for i in range(n_low):
        threshold[stacks[i]] = _share(height[stacks[i]])
        alias[stacks[i]] = heaviest
    for i in range(n_high):
        threshold[stacks[K - 1 - i]] = _share(1.0)
        alias[stacks[K - 1 - i]] = stacks[K - 1 - i]
    return table


@jit
def _share(height):  # type: ignore[no-untyped-def]
    """Convert a height in [0, 1] to a 64-bit threshold."""
    if height >= 1.0:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return np.uint64(max(height, 0.0) * _SIXTY_FOUR_BITS)


@jit
def draw_alias(word, table):  # type: ignore[no-untyped-def]
    """
    Draw from an alias table with one random word.

    The upper half of word·K is the column, and its lower half decides between k and its alias. The error of a
    probability is at most K·2⁻⁶⁴ (5·10⁻¹⁴ for a million entries), less than the rounding of the weights.
    """
    K = np.uint64(len(table))
    column = high_product(word, K)
    alias = table[column, np.uint64(1)]
    # arithmetic instead of a branch, which could not be predicted
    keeps = np.uint64(word * K < table[column, np.uint64(0)])
    return alias + keeps * (column - alias)


if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import types
