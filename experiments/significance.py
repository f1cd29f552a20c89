"""Tests of paired differences, as the reports of experiments print them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.metrics import wilcoxon

LEVEL = 0.05
TOO_FEW = "too few repeats to test"


def p_text(differences: ArrayLike, form: str = ".2g", before: str = "p = ") -> str:
    """
    Return the p-value of Wilcoxon's two-sided signed-rank test as text.

    With n pairs no p-value is below 2 / 2ⁿ: five pairs cannot show a difference at the level of .05.

    differences: differences of pairs; NaN is left out.
    form: format of the p-value.
    before: text before it.
    Returns: the p-value, or that there are too few pairs.

    >>> p_text([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), p_text([1.0, 2.0, 3.0, 4.0, 5.0])
    ('p = 0.031', 'too few repeats to test')
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[~np.isnan(values)]
    return f"{before}{wilcoxon(values):{form}}" if is_testable(values) else TOO_FEW


def is_testable(differences: NDArray[np.float64]) -> bool:
    """Return whether so many differences can show anything at the level of .05."""
    return 2.0 ** (1 - differences.size) <= LEVEL
