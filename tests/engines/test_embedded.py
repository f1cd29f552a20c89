"""Engines inside Python and PostgreSQL: exported fusions, run as they are written, rank as the fusion."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

from corank.deploy.export import export_fusion
from corank.models.fusion import FusionDefinition, Term
from engines.servers import fetch_packages

WORDS = ["tea", "green", "black", "cup", "pot", "kettle", "leaf", "water"]
N, SIZE, NAMES = 80, 40, ("words", "meaning")
QUERIES = ["green tea", "black pot", "kettle water", "cup"]


def made(transform, weights, k=None):
    return FusionDefinition(NAMES, tuple(Term(n, transform, w, k) for n, w in zip(NAMES, weights, strict=True)), "")


MIXED = (
    Term("words", "minmax", 0.3), Term("words", "presence", 0.2), Term("meaning", "reciprocal_rank", 9.0, 10.0),
    Term("meaning", "minmax", 0.1),
)  # fmt: skip
FUSIONS = {
    "RRF": FusionDefinition.rrf(NAMES),
    "weighted RRF": made("reciprocal_rank", (0.7, 0.3), 20.0),
    "min-max": made("minmax", (0.6, 0.4)),
    "mixed": FusionDefinition(NAMES, MIXED, ""),
}


@pytest.fixture(scope="module")
def shop():
    """Return texts, two vectors of each document, and vectors of the queries."""
    fetch_packages()
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(3, 15))) for _ in range(N)]
    return texts, rng.normal(size=(2, N, 4)).round(3), rng.normal(size=(len(QUERIES), 2, 4)).round(3)


def against(definition, lists, fused):
    """Return scores of corank and of the engine, less those of the first document: a constant does not matter."""
    documents = sorted(set().union(*lists))
    assert sorted(fused) == documents
    X = np.array([[scores.get(d, np.nan) for scores in lists] for d in documents])
    expected, actual = definition.score(X), np.array([fused[d] for d in documents])
    return expected - expected[0], actual - actual[0]


def run_sql(shop, compare, label, kind, path, dialect, run, tolerance=1e-9):
    """Compare a written query; `run` returns pairs of id and score for SQL, the words and the vector."""
    text = export_fusion(FUSIONS[kind], path, "sql", dialect=dialect, size=N).paths[0].read_text()
    parts = re.findall(r"list_\d AS \([^\n]*\n(.*?)\n\)", text, re.DOTALL)
    lists = []
    for words, vector in zip(QUERIES, shop[2][:, 0], strict=True):
        fused = run(text, words, vector)
        assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
        lists.append(against(FUSIONS[kind], [dict(run(part, words, vector)) for part in parts], dict(fused)))
    compare(label, f"fusion, {kind}, as SQL", lists, tolerance=tolerance)


@pytest.fixture(scope="module")
def sqlite(shop):
    import apsw
    import sqlite_vec

    base = apsw.Connection(":memory:")
    base.enable_load_extension(True)
    base.load_extension(sqlite_vec.loadable_path())
    base.execute("CREATE VIRTUAL TABLE documents_text USING fts5(text)")
    base.execute("CREATE VIRTUAL TABLE documents_vectors USING vec0(embedding float[4])")
    for i, (text, vector) in enumerate(zip(shop[0], shop[1][0], strict=True)):
        base.execute("INSERT INTO documents_text(rowid, text) VALUES (?, ?)", (i, text))
        embedding = vector.astype("f4").tobytes()
        base.execute("INSERT INTO documents_vectors(rowid, embedding) VALUES (?, ?)", (i, embedding))
    yield base
    base.close()


@pytest.mark.parametrize("kind", FUSIONS)
def test_sqlite_with_fts5_and_sqlite_vec(tmp_path, shop, sqlite, compare, kind):
    def run(text, words, vector):
        values = {"query": words, "vector": vector.astype("f4").tobytes()}
        return list(sqlite.execute(text, values))

    run_sql(shop, compare, "SQLite, FTS5, sqlite-vec 0.1.9", kind, tmp_path / "fusion.sql", "sqlite", run)


@pytest.fixture(scope="module")
def postgres(shop, tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the user's session
        import pgserver

    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    rows = ", ".join(
        f"({i}, to_tsvector('english', '{text}'), '{vector.tolist()}')"
        for i, (text, vector) in enumerate(zip(shop[0], shop[1][0], strict=True))
    )
    server.psql("CREATE EXTENSION vector; CREATE TABLE documents (id integer, words tsvector, embedding vector(4));")
    server.psql(f"INSERT INTO documents VALUES {rows};")
    yield server
    server.cleanup()


@pytest.mark.parametrize("kind", FUSIONS)
def test_postgresql_with_pgvector(tmp_path, shop, postgres, compare, kind):
    def run(text, words, vector):
        head = f"\\pset format csv\n\\set query '''{words}'''\n\\set vector '''{vector.tolist()}'''\n"
        shown = postgres.psql(f"{head}{text.rstrip().removesuffix(';')};\n")
        return [(int(d), float(score)) for d, score in re.findall(r"(?m)^(\d+),(\S+)$", shown)]

    run_sql(shop, compare, "PostgreSQL 16.2, pgvector 0.6.2", kind, tmp_path / "fusion.sql", "postgresql", run, 1e-6)


def test_qdrant(tmp_path, shop, compare):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    fields = {name: models.VectorParams(size=4, distance=models.Distance.COSINE) for name in NAMES}
    client.create_collection("shop", vectors_config=fields)
    points = [dict(zip(NAMES, vectors.tolist(), strict=True)) for vectors in np.moveaxis(shop[1], 0, 1)]
    client.upsert("shop", [models.PointStruct(id=i, vector=point) for i, point in enumerate(points)])
    path = export_fusion(FUSIONS["RRF"], tmp_path / "query.json", "qdrant", size=SIZE).paths[0]
    lists = []
    for vectors in shop[2].tolist():
        text = path.read_text()
        for name, vector in zip(NAMES, vectors, strict=True):
            text = text.replace(f'"VECTOR of {name}"', json.dumps(vector))
        body = models.QueryRequest.model_validate_json(text)
        returned = [
            {hit.id: hit.score for hit in client.query_points("shop", vector, using=name, limit=SIZE).points}
            for name, vector in zip(NAMES, vectors, strict=True)
        ]
        hits = client.query_points("shop", prefetch=body.prefetch, query=body.query, limit=N).points
        lists.append(against(FUSIONS["RRF"], returned, {hit.id: hit.score for hit in hits}))
    compare("Qdrant client 1.20.0, local", "fusion, RRF", lists, tolerance=1e-9)


def test_milvus_lite(tmp_path, shop, compare):
    from pymilvus import DataType, MilvusClient

    address = str(tmp_path / "shop.db")
    client = MilvusClient(address)
    schema, index = client.create_schema(auto_id=False), client.prepare_index_params()
    schema.add_field("id", DataType.INT64, is_primary=True)
    for name in NAMES:
        schema.add_field(name, DataType.FLOAT_VECTOR, dim=4)
        index.add_index(name, index_type="FLAT", metric_type="COSINE")
    client.create_collection("shop", schema=schema, index_params=index)
    points = [dict(zip(NAMES, vectors.tolist(), strict=True)) for vectors in np.moveaxis(shop[1], 0, 1)]
    client.insert("shop", [{"id": i} | point for i, point in enumerate(points)])
    written = export_fusion(FUSIONS["RRF"], tmp_path / "search.py", "milvus", size=SIZE).paths[0].read_text()
    lists = []
    for vectors in shop[2].tolist():
        given = dict(zip(NAMES, vectors, strict=True))
        returned = [
            {hit["id"]: hit["distance"] for hit in client.search("shop", data=[vector], anns_field=name, limit=SIZE)[0]}
            for name, vector in given.items()
        ]
        text = written.replace("VECTORS = {}", f"VECTORS = {given}")
        space = {"ADDRESS": address, "COLLECTION": "shop"}
        exec(text.replace(f"({60}), limit={SIZE}", f"({60}), limit={N}"), space)
        lists.append(against(FUSIONS["RRF"], returned, {hit["id"]: hit["distance"] for hit in space["hits"][0]}))
    client.close()
    compare("Milvus Lite 3.2.2", "fusion, RRF", lists, tolerance=1e-5)


def test_lancedb(tmp_path, shop, compare):
    import lancedb
    from lancedb.index import FTS

    rows = [
        {"id": i, "text": text, "vector": vector}
        for i, (text, vector) in enumerate(zip(shop[0], shop[1][0].tolist(), strict=True))
    ]
    table = lancedb.connect(tmp_path / "base").create_table("shop", rows)
    table.create_index("text", config=FTS())
    space, lists = {}, []
    exec(export_fusion(FUSIONS["RRF"], tmp_path / "search.py", "lancedb", size=N).paths[0].read_text(), space)
    for words, vector in zip(QUERIES, shop[2][:, 0].tolist(), strict=True):
        text = table.search(words, query_type="fts").limit(N).to_list()
        near = table.search(vector).limit(N).to_list()
        # equal scores are ranked as LanceDB returns them
        returned = [{hit["id"]: -float(place) for place, hit in enumerate(hits)} for hits in (text, near)]
        hits = space["search"](table, words, vector).to_list()
        lists.append(against(FUSIONS["RRF"], returned, {hit["id"]: hit["_relevance_score"] for hit in hits}))
    compare("LanceDB 0.40.0", "fusion, RRF", lists, tolerance=1e-5)
