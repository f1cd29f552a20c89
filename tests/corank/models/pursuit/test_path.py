from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.models.pursuit.path import Path, Step, coefs_of, path_table

MADE = corank.make_ranking(20, 10, features_per_view=5, random_state=0)


def walk(rows):
    return Path.follow(
        iter(Step(k, np.array(row), 1.0) for k, row in enumerate(rows)), 99, 0.0, lambda indices, coefs: False
    )


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        ([], 0),
        ([[1.0]], 1),
        ([[1.0], [1.0, 2.0], [1.0, 2.0, 3.0]], 3),
        ([[1.0], [0.0, 2.0]], 3),
        ([[1.0], [1.0, 2.0], [1.0, 2.0, 3.0], [4.0, 2.0, 3.0, 5.0], [4.0, 2.0, 3.0, 5.0, 6.0]], 15),
    ],
)
def test_a_path_keeps_every_model_and_repeats_none(rows, size):
    path = walk(rows)
    assert len(path.coefs) == size
    for p, row in enumerate(rows, start=1):
        assert path.model(p).tolist() == row
        assert path_table(path.coefs, len(rows))[p - 1].tolist() == row + [0.0] * (len(rows) - p)
    factors = np.arange(1.0, len(rows) + 1)
    for p, row in enumerate(rows, start=1):
        np.testing.assert_array_equal(coefs_of(path.scaled(factors), len(rows), p), row * factors[:p])


@pytest.mark.parametrize("fitting", ["basic", "back", "pre"])
@pytest.mark.parametrize("dictionary", ["scored", "columns"])
def test_a_saved_pursuit_stores_its_path_once(tmp_path, fitting, dictionary):
    model = corank.RankingPursuit(60, fitting=fitting, dictionary=dictionary).fit(MADE.X, MADE.y, qid=MADE.qid)
    corank.save(model, tmp_path / "m")
    again, P = corank.load(tmp_path / "m"), len(model.terms_)
    assert P > 3
    numbers = P if fitting == "basic" else P * (P + 1) // 2
    assert model.solutions_[0]["path"].size == numbers
    table = model.term_path_
    np.testing.assert_array_equal(table, np.tril(table))
    np.testing.assert_array_equal(again.term_path_, table)
    np.testing.assert_array_equal(table[-1], model.term_coefs_)
    for p in (0, 1, 2, P):
        coefs = np.zeros(len(MADE.y) if dictionary == "scored" else MADE.X.shape[1])
        if p:
            np.add.at(coefs, model.terms_[:p], table[p - 1, :p])
        rows = MADE.X if dictionary == "columns" else model.kernel_(*[MADE.X * model.column_scale_] * 2)
        np.testing.assert_allclose(again.predict(MADE.X, n_terms=p), rows @ coefs, rtol=1e-9, atol=1e-9)
    if dictionary == "scored":
        rest = model.basis_.rows.nbytes + 8 * MADE.X.shape[1] + 6 * 8 * P
        assert (tmp_path / "m").stat().st_size < 8 * numbers + rest + 10_000
