"""Coefficients of agreement: Krippendorff's alpha for any number of judges, and Cohen's kappa for two."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.inputs import as_numbers
from corank.data.judges import JudgeGrades
from corank.errors import InputError, reason
from corank.parameters import check_values, none, one_of


def krippendorff_alpha(grades: ArrayLike, level: str = "ordinal") -> float:
    """
    Compute Krippendorff's alpha, the agreement of two or more judges, some of whose grades may be missing.

    1 is perfect agreement, 0 that of grades given at random, and below 0 the judges disagree systematically.
    Krippendorff asks for 0.8, and for 0.667 where tentative conclusions suffice. Documents with one grade are ignored.

    Krippendorff, Content Analysis, 2004, chapter 11.

    >>> nan = float("nan")
    >>> grades = [[0, 1, 2, 2, nan, 1], [0, 1, 2, 1, 0, 1], [0, 0, 2, 2, 0, nan]]
    >>> round(krippendorff_alpha(grades), 3), round(krippendorff_alpha(grades, "nominal"), 3)
    (0.829, 0.647)
    """
    try:
        table = np.asarray(grades, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"grades cannot be read as numbers ({reason(error)}); pass a row per judge.") from error
    if table.ndim != 2:
        raise InputError(
            f"grades has shape {table.shape}; pass a table, one row per judge and one column per document."
        )
    if np.isinf(table).any():
        raise InputError("grades contains infinity; pass finite grades, or NaN where a judge gave none.")
    document = np.tile(np.arange(table.shape[1]), len(table))
    return JudgeGrades.of_documents(document, table.ravel()).alpha(level)


def cohen_kappa(first: ArrayLike, second: ArrayLike, weights: str | None = None) -> float:
    """
    Compute Cohen's kappa, the agreement of two judges beyond that of independent judges with the same frequencies.

    Cohen, A coefficient of agreement for nominal scales, 1960; Weighted kappa, 1968.

    >>> round(cohen_kappa([0, 0, 1, 1, 2], [0, 1, 1, 1, 2]), 3)
    0.688
    """
    check_values({"weights": weights}, {"weights": one_of("linear", "quadratic") | none})
    a, b = as_numbers(first, "first", "grade"), as_numbers(second, "second", "grade")
    if len(a) != len(b):
        raise InputError(f"second has {len(b)} grades for {len(a)} of the first judge; pass one per document.")
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if np.isinf(a).any() or np.isinf(b).any():
        raise InputError("a grade is infinite; pass finite grades, or NaN where a judge gave none.")
    observed, expected = _disagreements(a, b, weights)
    return 1.0 - observed / expected if expected > 0.0 else float("nan")


def _disagreements(a: NDArray[np.float64], b: NDArray[np.float64], weights: str | None) -> tuple[float, float]:
    """Return the mean weight of the pairs of grades, and of all combinations of grades of the two judges."""
    if not len(a):
        return 0.0, 0.0
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    share_a, share_b = (np.bincount(part, minlength=len(values)) / len(a) for part in np.split(codes, 2))
    if weights is None:
        return float(np.mean(a != b)), 1.0 - float(share_a @ share_b)
    if weights == "quadratic":
        return float(np.mean((a - b) ** 2)), float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    below_a, below_b = (np.cumsum(share)[:-1] for share in (share_a, share_b))
    # E|a - b| is the integral of the probability that a threshold separates a and b
    apart = below_a * (1.0 - below_b) + below_b * (1.0 - below_a)
    return float(np.mean(np.abs(a - b))), float(apart @ np.diff(values))
