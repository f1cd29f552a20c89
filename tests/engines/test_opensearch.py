"""A real OpenSearch: hybrid queries with exported pipelines rank as the fusion, and `_rank_eval` agrees with corank."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from corank.data import write_judgements
from corank.deploy.export import FUSION_TARGETS, export_fusion
from corank.deploy.export.export import expressible
from corank.deploy.export.targets.elasticsearch import rescoring_search
from corank.metrics import ndcg
from corank.metrics.agreement import read_judgements
from corank.models.fusion import FusionDefinition, Term, load_fusion
from engines.servers import OPENSEARCH2, OPENSEARCH3, running

WORDS = ["tea", "green", "black", "cup", "pot", "kettle", "leaf", "water"]
N, SIZE, NAMES = 80, 40, ("bm25", "vectors", "title")
TOUR = Path(__file__).parents[2] / "docs" / "tours" / "opensearch.md"
QUERIES = ["green tea", "black pot", "kettle water leaf", "cup"]


def made(transform, weights, k=None):
    terms = [Term(name, transform, w, k) for name, w in zip(NAMES, weights, strict=True) if w]
    return FusionDefinition(NAMES, tuple(terms), transform)


FUSIONS = {
    "RRF, k = 60": FusionDefinition.rrf(NAMES),
    "RRF, k = 20": FusionDefinition.rrf(NAMES, 20.0),
    "min-max": made("minmax", (0.5, 0.3, 0.2)),
    "min-max, two of three": made("minmax", (0.7, 0.3, 0.0)),
    "weighted RRF": made("reciprocal_rank", (0.5, 0.3, 0.2), 60.0),
}


@pytest.fixture(scope="module", params=[OPENSEARCH2, OPENSEARCH3], ids=lambda engine: engine.profile)
def opensearch(request):
    rng = np.random.default_rng(0)
    vector = {"type": "knn_vector", "dimension": 4}
    vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    mapping = {"properties": {"text": {"type": "text"}, "title": {"type": "text"}, "vector": vector}}
    with running(request.param) as server:
        settings = {"index.knn": True, "number_of_shards": 1, "number_of_replicas": 0}
        server.call("PUT", "/shop", {"settings": settings, "mappings": mapping})
        lines = []
        for number in range(N):
            text, title = (" ".join(rng.choice(WORDS, size)) for size in (rng.integers(3, 15), 3))
            lines += [{"index": {"_id": f"d{number}"}}]
            lines += [{"text": text, "title": title, "vector": rng.normal(size=4).round(3).tolist()}]
        sent = "".join(json.dumps(line) + "\n" for line in lines).encode()
        assert not server.call("POST", "/shop/_bulk?refresh=true", sent, lines=True)["errors"]
        server.version = request.param
        yield server


def hits(server, path, body):
    answer = server.call("POST", f"/shop/_search{path}", {"_source": False, "size": SIZE} | body)
    return {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}


@pytest.mark.parametrize("kind", FUSIONS)
def test_hybrid_query_ranks_as_the_fusion(tmp_path, opensearch, compare, kind):
    if kind in ("weighted RRF", "RRF, k = 20") and opensearch.version is OPENSEARCH2:
        pytest.skip("OpenSearch 2.19 has no weights of RRF, and computes with k = 60 whatever rank_constant is")
    definition = FUSIONS[kind]
    done = export_fusion(definition, tmp_path / "pipeline.json", "opensearch", size=SIZE)
    opensearch.call("PUT", "/_search/pipeline/exported", done.paths[0].read_bytes())
    search = json.loads(done.paths[1].read_text())
    rng, lists = np.random.default_rng(1), []
    for query in QUERIES:
        clauses = {
            "bm25": {"match": {"text": query}},
            "vectors": {"knn": {"vector": {"vector": rng.normal(size=4).tolist(), "k": SIZE}}},
            "title": {"match": {"title": query}},
        }
        used = [clause["match"]["FIELD"]["_name"] for clause in search["query"]["hybrid"]["queries"]]
        returned = {name: hits(opensearch, "", {"query": clauses[name]}) for name in used}
        # equal scores are ranked in the order of the index
        documents = sorted(set().union(*returned.values()), key=lambda name: int(name[1:]))
        X = np.array([[returned.get(name, {}).get(d, np.nan) for name in NAMES] for d in documents])
        body = search | {
            "size": N,
            "query": {"hybrid": search["query"]["hybrid"] | {"queries": [clauses[n] for n in used]}},
        }
        fused = hits(opensearch, "?search_pipeline=exported", body)
        assert sorted(fused) == sorted(documents)
        lists.append((definition.score(X), [fused[document] for document in documents]))
    # the last document of a list gets 0.001 instead of 0
    compare(opensearch.label, f"fusion, {kind}", lists, tolerance=2e-3 if "min-max" in kind else 2e-6)


def test_two_rescorers_add_up_two_models(opensearch, compare):
    """The search of a sum of two models; fields stand for the scores of the models, which need a plugin."""
    rng, n, window = np.random.default_rng(5), 60, 40
    scores = rng.gamma(2.0, size=(n, 2)).astype(np.float32).astype(np.float64) + 0.125
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    fields = {"text": {"type": "text"}, "linear": {"type": "float"}, "trees": {"type": "float"}}
    opensearch.call("PUT", "/sums", {"settings": settings, "mappings": {"properties": fields}})
    lines = []
    for number, (linear, trees) in enumerate(scores.tolist()):
        text = " ".join(["tea"] * int(rng.integers(1, 9)) + ["cup"])
        lines += [{"index": {"_id": f"d{number}"}}, {"text": text, "linear": linear, "trees": trees}]
    sent = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert not opensearch.call("POST", "/sums/_bulk?refresh=true", sent, lines=True)["errors"]
    search = rescoring_search(["m_linear", "m_trees"])
    match = {"match": {"text": "tea"}}
    for rescorer in search["rescore"]:
        name = rescorer["query"]["rescore_query"]["sltr"]["model"].removeprefix("m_")
        field = {"field_value_factor": {"field": name}, "boost_mode": "replace", "query": {"match_all": {}}}
        rescorer["query"]["rescore_query"] = {"function_score": field}
        rescorer["window_size"] = window
    body = {"size": n, "_source": False}
    first = opensearch.call("POST", "/sums/_search", body | {"query": match})["hits"]["hits"]
    answer = opensearch.call("POST", "/sums/_search", body | search | {"query": match})["hits"]["hits"]
    inside = [int(hit["_id"][1:]) for hit in first[:window]]
    result = {int(hit["_id"][1:]): hit["_score"] for hit in answer}
    compare(
        opensearch.label, "two rescorers", [(scores[inside].sum(axis=1), [result[i] for i in inside])], tolerance=1e-6
    )
    # documents beyond the window have no part of either model, and come last
    assert {i for i, score in result.items() if score == 0.0} == set(range(n)) - set(inside)
    assert [int(hit["_id"][1:]) for hit in answer][:window] == sorted(inside, key=lambda i: -result[i])


def test_rank_eval_takes_the_request_and_agrees(tmp_path, opensearch):
    if opensearch.version is OPENSEARCH3:
        pytest.skip("the module rank-eval of OpenSearch 3.6.0 is not in Maven Central")
    rng = np.random.default_rng(2)
    grades = rng.integers(0, 4, size=(len(QUERIES), N))
    rows = [f"{q},d{i},{grades[j, i]}" for j, q in enumerate(QUERIES) for i in range(N)]
    (tmp_path / "grades.csv").write_text("query,docid,rating\n" + "\n".join(rows) + "\n")
    request = tmp_path / "request.json"
    write_judgements(request, read_judgements(tmp_path / "grades.csv"), "rank-eval", index="shop")
    body = json.loads(request.read_text())
    for part in body["requests"]:  # as the guide says: replace the queries by those of the application
        part["request"] = {"query": {"match": {"text": part["id"]}}}
    answer = opensearch.call("POST", "/shop/_rank_eval", body)
    for j, query in enumerate(QUERIES):
        ranked = list(hits(opensearch, "", {"query": {"match": {"text": query}}}))
        scores = np.full(N, -float(N))
        for place, document in enumerate(ranked):
            scores[int(document[1:])] = -float(place)
        expected = ndcg(grades[j].astype(float), scores, k=10)
        assert answer["details"][query]["metric_score"] == pytest.approx(float(expected), abs=1e-9)


def test_the_commands_of_the_tour(tmp_path, opensearch, compare):
    if opensearch.version is OPENSEARCH2:
        pytest.skip("OpenSearch 2.19 has no weights of RRF, which the tour may choose")
    rng = np.random.default_rng(3)
    vectors = {f"q{i}": rng.normal(size=4).round(3).tolist() for i in range(30)}
    texts = {query: " ".join(rng.choice(WORDS, 2, replace=False)) for query in vectors}
    judged = []
    for query, text in texts.items():
        own = hits(opensearch, "", {"size": N, "query": {"match": {"text": text}}})
        near = hits(opensearch, "", {"size": N, "query": {"knn": {"vector": {"vector": vectors[query], "k": N}}}})
        appeal = {d: own.get(d, 0.0) + 4.0 * near.get(d, 0.0) + rng.normal(scale=0.3) for d in own | near}
        judged += [f"{query},{d},{2 - place // 6}" for place, d in enumerate(sorted(appeal, key=appeal.get)[:-19:-1])]
        judged += [f"{query},{d},0" for d in sorted(appeal, key=appeal.get)[:-19]]
    (tmp_path / "judgements.csv").write_text("query,docid,rating\n" + "\n".join(judged) + "\n")
    lines = [f"{query}\t{text}\t{json.dumps(vectors[query])}\n" for query, text in texts.items()]
    (tmp_path / "queries.tsv").write_text("".join(lines))
    blocks = re.findall(r"^```bash\n(.*?)^```$", TOUR.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "".join(blocks)], cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PATH": path, "OPENSEARCH": opensearch.address}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    written, _ = expressible(load_fusion(tmp_path / "fusion.json"), FUSION_TARGETS["opensearch"], nearest=True)
    saved = [
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("bm25", "vectors", "hybrid")
    ]
    lists = []
    for answers in zip(*saved, strict=True):
        bm25, near, hybrid = ({h["_id"]: h["_score"] for h in a["response"]["hits"]["hits"]} for a in answers)
        documents = sorted(hybrid, key=lambda name: int(name[1:]))
        X = np.array([[bm25.get(d, np.nan), near.get(d, np.nan)] for d in documents])
        lists.append((written.score(X), [hybrid[d] for d in documents]))
    compare(opensearch.label, "fusion, learnt in the tour", lists, tolerance=2e-3)


def test_latency_of_hybrid_queries_and_rescoring(tmp_path, opensearch, latency):
    n, rng = 2000, np.random.default_rng(4)
    vector = {"type": "knn_vector", "dimension": 64}
    vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    mapping = {"properties": {"text": {"type": "text"}, "price": {"type": "float"}, "vector": vector}}
    settings = {"index.knn": True, "number_of_shards": 1, "number_of_replicas": 0}
    opensearch.call("PUT", "/large", {"settings": settings, "mappings": mapping})
    vectors = rng.normal(size=(n, 64)).round(3)
    lines = []
    for number in range(n):
        document = {
            "text": " ".join(rng.choice(WORDS, 12)),
            "price": float(rng.random()),
            "vector": vectors[number].tolist(),
        }
        lines += [json.dumps({"index": {"_id": str(number)}}), json.dumps(document)]
    sent = ("\n".join(lines) + "\n").encode()
    assert not opensearch.call("POST", "/large/_bulk?refresh=true", sent, lines=True)["errors"]
    for kind in ("min-max", "RRF, k = 60"):
        definition = FusionDefinition(NAMES[:2], tuple(t for t in FUSIONS[kind].terms if t.retriever != "title"), kind)
        done = export_fusion(definition, tmp_path / f"{kind}.json", "opensearch", size=100)
        opensearch.call("PUT", f"/_search/pipeline/large-{kind[:3]}", done.paths[0].read_bytes())
    match = {"match": {"text": "green tea"}}
    near = {"knn": {"vector": {"vector": rng.normal(size=64).round(3).tolist(), "k": 100}}}
    hybrid = {"query": {"hybrid": {"queries": [match, near], "pagination_depth": 100}}}
    score = {"function_score": {"query": {"match_all": {}}, "field_value_factor": {"field": "price"}}}
    requests = {
        "text": ("", {"query": match}),
        "text, 100 documents rescored by a field": (
            "", {"query": match, "rescore": {"window_size": 100, "query": {"rescore_query": score}}}
        ),
        "vectors": ("", {"query": near}),
        "hybrid, min-max": ("?search_pipeline=large-min", hybrid),
        "hybrid, RRF": ("?search_pipeline=large-RRF", hybrid),
    }  # fmt: skip
    host = http.client.HTTPConnection(opensearch.address.removeprefix("http://"), timeout=60)
    times = {name: [] for name in requests}
    for turn in range(120):  # the requests take turns, so that all see the same load; the first 20 warm up
        for name, (path, body) in requests.items():
            text = json.dumps({"size": 100, "_source": False} | body)
            start = time.perf_counter()
            host.request("POST", f"/large/_search{path}", text, {"Content-Type": "application/json"})
            answer = host.getresponse()
            content = answer.read()
            if turn >= 20:
                times[name].append(time.perf_counter() - start)
            assert answer.status == 200, content[:500]
    host.close()
    assert len(json.loads(content)["hits"]["hits"]) == 100
    latency(opensearch.label, {name: np.percentile(values, [50, 99]) * 1e3 for name, values in times.items()})
