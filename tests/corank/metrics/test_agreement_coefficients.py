"""Coefficients of agreement against their definitions, a textbook example, and scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from corank.errors import InputError
from corank.metrics.agreement import cohen_kappa, krippendorff_alpha

_ = np.nan
TEXTBOOK = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
"""The example of Krippendorff, Computing Krippendorff's alpha-reliability, 2011."""


def alpha_by_enumeration(grades, level):
    """Every ordered pair of grades of a document, and every ordered pair of pairable grades."""
    units = [column[~np.isnan(column)].tolist() for column in np.asarray(grades, float).T]
    units = [unit for unit in units if len(unit) > 1]
    pooled = [value for unit in units for value in unit]
    count = {value: pooled.count(value) for value in pooled}

    def distance(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(number for value, number in count.items() if low <= value <= high)
        return (between - (count[a] + count[b]) / 2) ** 2

    observed = sum(distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)) / len(pooled)
    expected = sum(distance(a, b) for a, b in permutations(pooled, 2)) / (len(pooled) * (len(pooled) - 1))
    return 1 - observed / expected


def random_grades(seed):
    rng = np.random.default_rng(seed)
    n_judges, n_documents = rng.integers(2, 6), rng.integers(2, 12)
    truth = rng.integers(0, 4, n_documents)
    grades = np.clip(truth + rng.integers(-1, 2, (n_judges, n_documents)), 0, 4) * rng.choice([1.0, 0.1, -2.5])
    grades[rng.random(grades.shape) < 0.3] = np.nan
    return grades


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_all_pairs_of_grades(level):
    compared = 0
    for seed in range(60):
        grades = random_grades(seed)
        pairable = grades[:, (~np.isnan(grades)).sum(axis=0) > 1]
        if len(np.unique(pairable[~np.isnan(pairable)])) < 2:
            assert np.isnan(krippendorff_alpha(grades, level))
            continue
        compared += 1
        assert krippendorff_alpha(grades, level) == pytest.approx(alpha_by_enumeration(grades, level), abs=1e-12)
    assert compared > 50


def test_alpha_of_the_textbook_example():
    found = [krippendorff_alpha(TEXTBOOK, level) for level in ("nominal", "ordinal", "interval")]
    assert found == pytest.approx([0.743, 0.815, 0.849], abs=5e-4)


def test_alpha_of_extremes():
    agree = np.array([[0, 1, 2, _], [0, 1, 2, 3]])
    rng = np.random.default_rng(0)
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha(agree, level) == 1.0
        assert krippendorff_alpha([[0, 1, 0, 1], [1, 0, 1, 0]], level) < 0
        assert abs(krippendorff_alpha(rng.integers(0, 3, (3, 20_000)), level)) < 0.02
        assert np.isnan(krippendorff_alpha([[1, 1], [1, 1]], level))
        assert np.isnan(krippendorff_alpha([[1, _], [_, 0]], level))
        # all coefficients of two grades are the same
        binary = rng.integers(0, 2, (4, 30))
        assert krippendorff_alpha(binary, level) == pytest.approx(krippendorff_alpha(binary, "nominal"))
    # the order of judges and documents does not matter, nor does a shift of interval grades
    grades = np.array(TEXTBOOK)
    shuffled = rng.permuted(grades, axis=0)[:, rng.permutation(12)]
    assert krippendorff_alpha(shuffled) == pytest.approx(krippendorff_alpha(grades))
    assert krippendorff_alpha(grades + 1e6, "interval") == pytest.approx(krippendorff_alpha(grades, "interval"))


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_kappa_is_that_of_the_contingency_table_and_of_sklearn(weights):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a = np.concatenate([np.arange(4), rng.integers(0, 4, 30)])
        b = np.clip(a + rng.integers(-1, 2, 34), 0, 3)
        found = cohen_kappa(a, b, weights)
        assert found == pytest.approx(cohen_kappa_score(a, b, weights=weights), abs=1e-12)
        table = np.zeros((4, 4))
        for i, j in zip(a, b, strict=True):
            table[i, j] += 1 / 34
        gap = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
        weight = {None: (gap > 0).astype(float), "linear": gap, "quadratic": gap**2}[weights]
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        assert found == pytest.approx(1 - (weight * table).sum() / (weight * independent).sum(), abs=1e-12)
        # missing grades are left out; any numbers are grades
        longer = np.append(a, [np.nan, 1.0]), np.append(b, [2.0, np.nan])
        assert cohen_kappa(*longer, weights) == found
        assert cohen_kappa(a * 0.5 - 7, b * 0.5 - 7, weights) == pytest.approx(found)


def test_kappa_without_variation_is_undefined():
    assert np.isnan(cohen_kappa([1, 1], [1, 1]))
    assert np.isnan(cohen_kappa([1, np.nan], [np.nan, 1], "linear"))
    assert cohen_kappa([0, 1], [1, 0]) == -1.0


def test_bad_grades_get_a_sentence():
    with pytest.raises(InputError, match="grades has shape"):
        krippendorff_alpha([1, 2])
    with pytest.raises(InputError, match="level is 'ratio'"):
        krippendorff_alpha([[1, 2]], "ratio")
    with pytest.raises(InputError, match="grades cannot be read as numbers"):
        krippendorff_alpha([["good", "bad"]])
    with pytest.raises(InputError, match="contains infinity"):
        krippendorff_alpha([[1, np.inf]])
    with pytest.raises(InputError, match="second has 1 grades for 2 of the first judge"):
        cohen_kappa([1, 2], [1])
    with pytest.raises(InputError, match="weights is 'cubic'"):
        cohen_kappa([1], [1], "cubic")
    with pytest.raises(InputError, match="a grade is infinite"):
        cohen_kappa([1, np.inf], [1, 1])
