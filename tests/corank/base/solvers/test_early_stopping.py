"""The training loop: where it checks, when patience ends, what an interrupt leaves."""

import pytest

from corank.base.solvers.choice import EarlyStopping, run_training


def test_patience_counts_checks_since_the_first_of_the_lowest_errors():
    stopping = EarlyStopping(2)
    assert stopping.record(0.5)
    assert stopping.record(0.3)
    assert not stopping.record(0.3)
    assert not stopping.is_over
    assert not stopping.record(0.4)
    assert stopping.is_over
    assert (stopping.best, stopping.best_error) == (1, 0.3)


def test_without_patience_training_never_stops():
    stopping = EarlyStopping(None)
    for error in (0.1, 0.2, 0.3, 0.4):
        stopping.record(error)
    assert not stopping.is_over
    assert stopping.best == 0


@pytest.mark.parametrize("error", [float("nan"), float("inf")])
def test_an_error_that_is_not_finite_is_never_the_lowest(error):
    stopping = EarlyStopping(3)
    assert not stopping.record(error)
    assert stopping.best_error == float("inf")
    assert stopping.record(0.7)
    assert not stopping.record(error)
    assert stopping.best == 1


def test_steps_come_in_pieces_between_checks():
    pieces, checks = [], []
    interrupted = run_training(pieces.append, [3, 10], lambda: checks.append(sum(pieces)) or False, piece=4)
    assert not interrupted
    assert pieces == [3, 4, 3]
    assert checks == [3, 10]


def test_a_positive_check_ends_training():
    pieces = []
    run_training(pieces.append, [2, 4, 6], lambda: sum(pieces) >= 4, piece=10)
    assert pieces == [2, 2]


def test_an_interrupt_ends_training_after_the_steps_done():
    pieces = []

    def step(n):
        if len(pieces) == 2:
            raise KeyboardInterrupt
        pieces.append(n)

    assert run_training(step, [5], lambda: False)
    assert pieces == [1, 1]
