from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from experiments.significance import TOO_FEW, p_text


@pytest.mark.parametrize("n", range(1, 8))
def test_a_test_is_made_where_some_outcome_is_significant(n):
    # the smallest p over all signs of n differences
    least = min(stats.wilcoxon(np.arange(1, n + 1) * signs).pvalue for signs in product((-1, 1), repeat=n))
    assert (p_text(np.arange(1.0, n + 1)) == TOO_FEW) == (least > 0.05)


def test_missing_differences_do_not_count():
    assert p_text([1.0, 2.0, 3.0, 4.0, 5.0, np.nan]) == TOO_FEW
    assert p_text([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, np.nan], ".1g", "p=") == "p=0.03"
    assert p_text(np.zeros(6)) == "p = 1"
