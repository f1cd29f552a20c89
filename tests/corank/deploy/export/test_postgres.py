"""The SQL of an exported model gives the model's scores in a real PostgreSQL."""

from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.deploy.export import export_model
from helpers.postgres import PostgresServer

psycopg = pytest.importorskip("psycopg")
NAMES = ["bm25", "Title score", 'a "quoted" name']


@pytest.fixture(scope="module")
def connection():
    server = PostgresServer()
    if server.why_not:
        pytest.skip(server.why_not)
    with psycopg.connect(server.address, autocommit=True) as found:
        yield found
    server.stop()
    server.remove()


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [corank.RankRLS(kernel="linear"), corank.LambdaRank(scorer="trees", n_steps=20)], ids=["linear", "trees"]
)
def test_postgresql_ranks_as_the_model(tmp_path, connection, model):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).round(1)  # rounded: thresholds of trees are hit
    y, qid = np.digitize(X[:, 0] + np.abs(X[:, 1]), [0, 1]).astype(float), np.repeat(np.arange(20), 10)
    model.fit(pandas.DataFrame(X, columns=NAMES), y, qid=qid)
    X[::7, 1], X[3, 2] = 1e30, -1e-310
    path = tmp_path / "model.sql"
    export_model(model, path, "sql", dialect="postgresql")
    columns = ", ".join('"' + name.replace('"', '""') + '" double precision' for name in NAMES)
    connection.execute('DROP TABLE IF EXISTS "rows"')
    connection.execute(f'CREATE TABLE "rows" (number integer, {columns})')
    with connection.cursor() as cursor:
        lines = [(number, *row) for number, row in enumerate(X.tolist())]
        cursor.executemany('INSERT INTO "rows" VALUES (%s, %s, %s, %s)', lines)
        found = cursor.execute(path.read_text()).fetchall()
    scores = np.array([row[0] for row in sorted(found, key=lambda row: row[1])])
    expected = model.predict(pandas.DataFrame(X, columns=NAMES))
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-300)
    assert [row[0] for row in found] == sorted(scores.tolist(), reverse=True)
    for name in ("Title score", "bm25"):  # a missing column is an error
        connection.execute(f'ALTER TABLE "rows" RENAME COLUMN "{name}" TO other')
        with pytest.raises(psycopg.Error, match=name):
            connection.execute(path.read_text())
        connection.execute(f'ALTER TABLE "rows" RENAME COLUMN other TO "{name}"')
