"""Grades of several judges, document by document, against plain loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import mean, median_low

import numpy as np
import pytest

from corank.errors import InputError
from corank.metrics.agreement import aggregate_grades, cohen_kappa, judge_agreement, krippendorff_alpha


def rows_of(seed, n_judges=4):
    """Rows in random order; some judges grade a document twice, some give no grade."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    qid, docids = rng.integers(0, 4, n), rng.choice(["a", "b", "c", "d"], n)
    judges = np.array([f"judge {one}" for one in rng.integers(0, n_judges, n)])
    y = np.where(rng.random(n) < 0.15, np.nan, rng.integers(0, 3, n) * 0.1)
    return y, qid, docids, judges


def by_document(y, qid, docids, judges):
    """The last grade of each judge, by document in order of appearance."""
    found = defaultdict(dict)
    for row, key in enumerate(zip(qid.tolist(), docids.tolist(), strict=True)):
        grades = found[key]
        if not np.isnan(y[row]):
            grades[row if judges is None else judges[row]] = float(y[row])
    return found


def majority(grades):
    votes = Counter(grades)
    return min(grade for grade, count in votes.items() if count == max(votes.values()))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("rule", "plain"), [("median", median_low), ("mean", mean), ("majority", majority)])
def test_grades_are_aggregated_document_by_document(rule, plain, named):
    for seed in range(40):
        y, qid, docids, judges = rows_of(seed)
        judges = judges if named else None
        rows, grades = aggregate_grades(y, qid, docids, judges, rule=rule)
        want = by_document(y, qid, docids, judges)
        assert [(qid[row], docids[row]) for row in rows] == list(want)
        first = {key: row for row, key in reversed(list(enumerate(zip(qid.tolist(), docids.tolist(), strict=True))))}
        assert rows.tolist() == [first[key] for key in want]
        for grade, given in zip(grades, want.values(), strict=True):
            if not given:
                assert np.isnan(grade)
            elif len(set(given.values())) == 1 or rule != "mean":
                assert grade == plain(list(given.values()))  # to the last bit
            else:
                assert grade == pytest.approx(plain(list(given.values())))


def test_agreement_counts_lists_and_compares():
    for seed in range(20):
        y, qid, docids, judges = rows_of(seed)
        found, want = judge_agreement(y, qid, docids, judges), by_document(y, qid, docids, judges)
        names = list(dict.fromkeys(judges.tolist()))
        table = np.array([[given.get(name, np.nan) for given in want.values()] for name in names])
        assert found.judges == tuple(names)
        assert found.n_documents == len(want)
        assert found.n_grades == np.count_nonzero(~np.isnan(table))
        assert found.n_repeated == sum(len(given) > 1 for given in want.values())
        apart = {key: given for key, given in want.items() if len(set(given.values())) > 1}
        assert found.n_contradictory == len(apart) == len(found.contradictions.rows)
        for level, alpha in found.alpha.items():
            assert alpha == pytest.approx(krippendorff_alpha(table, level), nan_ok=True)
        for pair in found.pairs:
            a, b = table[names.index(pair.first)], table[names.index(pair.second)]
            assert pair.kappa == pytest.approx(cohen_kappa(a, b), nan_ok=True)
            assert (pair.n_common, pair.n_equal) == (int(np.isfinite(a + b).sum()), int((a == b).sum()))
        spreads = []
        for query, document, *grades, aggregated in found.contradictions.rows:
            given = apart.pop((query, document))
            assert dict(zip(names, grades, strict=True)) == {name: given.get(name) for name in names}
            assert aggregated == median_low(given.values())
            spreads.append(max(given.values()) - min(given.values()))
        assert not apart
        assert spreads == sorted(spreads, reverse=True)


def test_judges_may_be_unknown_or_many():
    y, qid, docids = [0, 2, 1, 1, 0], None, ["a", "a", "a", "b", "b"]
    found = judge_agreement(y, qid, docids, rule="mean")
    assert found.judges == found.pairs == ()
    assert found.contradictions.columns == ("query", "document", "grades", "aggregated")
    assert found.contradictions.rows == ((None, "a", "0 1 2", 1.0), (None, "b", "0 1", 0.5))
    assert found.contradictions.texts(found.contradictions.rows[1]) == ["", "b", "0 1", "0.5"]
    crowd = judge_agreement(np.arange(40) % 2, [1] * 40, ["d"] * 20 + ["e"] * 20, [f"w{k % 20}" for k in range(40)])
    assert len(crowd.judges) == 20
    assert not crowd.pairs
    assert crowd.contradictions.rows[0][2] == "0 " * 10 + "1" + " 1" * 9
    assert "40 grades of 2 documents by 20 judges" in repr(crowd)


def test_bad_input_gets_a_sentence():
    with pytest.raises(InputError, match="the rule for several judges is 'max'"):
        aggregate_grades([1], [1], ["a"], rule="max")
    with pytest.raises(InputError, match="docids has 1 values for 2 rows"):
        aggregate_grades([1, 2], [1, 1], ["a"])
    with pytest.raises(InputError, match=r"judges is missing .* at row 1"):
        aggregate_grades([1, 2], [1, 1], ["a", "a"], ["ann", None])
    with pytest.raises(InputError, match="y contains infinity at row 1"):
        aggregate_grades([1, np.inf], [1, 1], ["a", "a"])
