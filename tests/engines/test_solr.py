"""Models in a real Solr: features are logged, read and learnt from, and the exported model reranks as corank does."""

from __future__ import annotations

import json
import urllib.parse

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import corank
from corank.data import read_responses
from corank.data.io.search_responses import as_collection
from corank.deploy.export import export_model
from engines.servers import SOLR, running

CONFIG = """<config>
  <luceneMatchVersion>8.11.4</luceneMatchVersion>
  <schemaFactory class="ClassicIndexSchemaFactory"/>
  <requestHandler name="/select" class="solr.SearchHandler"/>
  <query><cache name="fv" class="solr.search.CaffeineCache" regenerator="solr.search.NoOpRegenerator"/></query>
  <queryParser name="ltr" class="org.apache.solr.ltr.search.LTRQParserPlugin"/>
  <transformer name="features" class="org.apache.solr.ltr.response.transform.LTRFeatureLoggerTransformerFactory">
    <str name="fvCacheName">fv</str>
  </transformer>
</config>"""
SCHEMA = """<schema name="shop" version="1.6">
  <fieldType name="string" class="solr.StrField" docValues="true"/>
  <fieldType name="float" class="solr.FloatPointField" docValues="true"/>
  <field name="id" type="string" required="true"/>
  <field name="query" type="string"/>
  <dynamicField name="*" type="float"/>
  <uniqueKey>id</uniqueKey>
</schema>"""
NAMES = ["price", "Title score", "größe", "a-b.c"]
N_QUERIES, N_DOCUMENTS = 12, 25


def core(folder):
    (folder / "solr.xml").write_text("<solr></solr>")
    (folder / "shop" / "conf").mkdir(parents=True)
    (folder / "shop" / "core.properties").write_text("name=shop")
    (folder / "shop" / "conf" / "solrconfig.xml").write_text(CONFIG)
    (folder / "shop" / "conf" / "schema.xml").write_text(SCHEMA)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_QUERIES * N_DOCUMENTS, len(NAMES))).round(2).astype(np.float32).astype(np.float64)
    y = np.digitize(X[:, 0] - np.abs(X[:, 1]) + X[:, 2], [-0.5, 0.5]).astype(float)
    return X, y, np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)


@pytest.fixture(scope="module")
def solr(problem):
    X, _, qid = problem
    with running(SOLR, core) as server:
        documents = [
            {"id": f"d{i}", "query": f"q{q}"} | dict(zip(NAMES, row, strict=True))
            for i, (q, row) in enumerate(zip(qid, X.tolist(), strict=True))
        ]
        # documents without a field: Solr's function counts them as 0
        for document in documents[::9]:
            del document["price"]
        server.call("POST", "/solr/shop/update?commit=true", documents)
        yield server


def select(server, query, **parameters):
    sent = urllib.parse.urlencode({"q": f"query:{query}", "rows": 100, "wt": "json"} | parameters)
    return server.call("GET", f"/solr/shop/select?{sent}")


MODELS = {
    "linear": corank.RankRLS(kernel="linear"),
    "linear, scaled": make_pipeline(StandardScaler(), corank.SPD("squared")),
    "trees": corank.LambdaRank(scorer="trees", n_steps=30),
}


@pytest.mark.parametrize("kind", MODELS)
def test_solr_reranks_as_the_model(tmp_path, solr, problem, compare, kind):
    X, y, qid = problem
    X = X.copy()
    X[::9, 0] = 0.0
    model = MODELS[kind]
    if hasattr(model, "steps"):
        with_qid = {f"{model.steps[-1][0]}__qid": qid}
        model.fit(pd.DataFrame(X, columns=NAMES), y, **with_qid)
    else:
        model.fit(pd.DataFrame(X, columns=NAMES), y, qid=qid)
    name = f"m{list(MODELS).index(kind)}"
    path = tmp_path / f"{name}.json"
    done = export_model(model, path, "solr", shift="auto", rows=pd.DataFrame(X, columns=NAMES), qid=qid)
    assert done.verification.is_exact
    solr.call("PUT", "/solr/shop/schema/feature-store", path.with_suffix(".features.json").read_bytes())
    solr.call("PUT", "/solr/shop/schema/model-store", path.read_bytes())
    expected = model.predict(pd.DataFrame(X, columns=NAMES)) + done.verification.offset
    lists = []
    for q in range(N_QUERIES):
        answer = select(solr, f"q{q}", fl="id,score", rq=f"{{!ltr model={name} reRankDocs=100}}")
        found = {hit["id"]: hit["score"] for hit in answer["response"]["docs"]}
        rows = np.flatnonzero(qid == q)
        assert sorted(found) == sorted(f"d{i}" for i in rows)
        lists.append((expected[rows], [found[f"d{i}"] for i in rows]))
    compare(SOLR.label, f"model, {kind}", lists, tolerance=2e-6)


def test_features_that_solr_logs_are_read(tmp_path, solr, problem):
    X, _, qid = problem
    kind = "org.apache.solr.ltr.feature.FieldValueFeature"
    features = [{"store": "log", "name": name, "class": kind, "params": {"field": name}} for name in NAMES]
    solr.call("PUT", "/solr/shop/schema/feature-store", features)
    log = tmp_path / "log.jsonl"
    answers = [
        {"qid": f"q{q}", "response": select(solr, f"q{q}", fl="id,[features store=log format=dense]")}
        for q in range(N_QUERIES)
    ]
    log.write_text("\n".join(map(json.dumps, answers)))
    rows = as_collection(read_responses(log), log)
    order = [int(name.removeprefix("d")) for name in rows.docids]
    assert list(rows.names) == NAMES
    expected = np.where((np.arange(len(X)) % 9 == 0)[:, None] & (np.arange(len(NAMES)) == 0), 0.0, X)
    np.testing.assert_array_equal(rows.X.astype(np.float32), expected[order].astype(np.float32))
    assert (rows.qid == [f"q{q}" for q in qid[order]]).all()
