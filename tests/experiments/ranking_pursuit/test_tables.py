from __future__ import annotations

import pytest

from experiments.ranking_pursuit import run
from experiments.ranking_pursuit.tables import tables_of
from experiments.ranking_pursuit.users import GROUPS


def test_tables_pool_users_over_repeats():
    cell = {"errors": [0.2, None, 0.4], "squares": [1.0, 2.0, 3.0], "levelled": [0.5, 0.5, 0.5], "share": 0.5}
    worse = {**cell, "errors": [0.3, None, 0.5]}
    cells = {
        (name, share, group): [{method: worse if method == "RLS" else cell for method in methods}] * 4
        for name in ("Jester", "MovieLens")
        for share, methods in run.SHARES.items()
        for group in GROUPS
    }
    tables, findings = tables_of(cells)
    assert tables[0].rows[0][:3] == ("RLS", pytest.approx(0.4), 0.425)
    assert tables[4].rows[0][1] == pytest.approx(2.0)
    assert tables[5].rows[0] == ("RLS", 0.5, 0.5, 0.5)
    assert "RankRLS against RLS: error significantly lower in 6 and higher in 0 of 6 groups." in findings[0]
    assert "Matching pursuit: error significantly lower in 0 and higher in 0 of 6" in findings[1]
