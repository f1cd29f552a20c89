from __future__ import annotations

from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from corank.core.threads import add_up, blas_threads_for, cut


class Part:
    """A part of a sum that remembers how it was added."""

    def __init__(self, how):
        self.how = how

    def __add__(self, other):
        # numbers may be added in either order; which meet is what counts
        return Part(tuple(sorted((self.how, other.how), key=str)))


def tree(numbers):
    """Return how neighbours meet, level by level, the last of an odd number going up alone."""
    while len(numbers) > 1:
        pairs = [tuple(sorted(numbers[k : k + 2], key=str)) for k in range(0, len(numbers) - 1, 2)]
        numbers = pairs + numbers[2 * len(pairs) :]
    return numbers[0]


@pytest.mark.parametrize("n_jobs", [1, 2, 10])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 21])
def test_which_numbers_meet_depends_on_their_number_alone(n, n_jobs):
    runs = [(k, k + 1) for k in range(n)]
    assert add_up(lambda first, last: Part(first), runs, n_jobs).how == tree(list(range(n)))


def test_a_late_first_part_changes_nothing():
    everybody = Barrier(2)

    def work(first, last):
        if first in (0, 3):
            # the first part ends no earlier than the fourth begins
            everybody.wait(timeout=600)
        return np.array([0.1 * first])

    runs = [(k, k + 1) for k in range(9)]
    alone = add_up(lambda first, last: np.array([0.1 * first]), runs, 1)
    assert add_up(work, runs, 2).tobytes() == alone.tobytes()


def test_a_failing_part_is_heard():
    def work(first, last):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        add_up(work, [(0, 1), (1, 2)], 2)


def test_runs_cover_all_blocks():
    runs = cut(np.array([0, 5, 5, 30, 31]), 3)
    assert [first for first, _ in runs] == [0, *(last for _, last in runs[:-1])]
    assert runs[-1][1] == 4


def test_blas_uses_one_thread_for_small_matrices():
    def counts():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = counts()
    with blas_threads_for(500):
        assert set(counts()) <= {1}
    with blas_threads_for(100_000):
        assert counts() == before
    assert counts() == before
