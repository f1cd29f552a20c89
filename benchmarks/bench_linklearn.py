"""
Speed of indexing, searching, and learning from links, on Wikispeedia.

``python benchmarks/bench_linklearn.py --bm25s PYTHON`` names an interpreter that has bm25s, PyStemmer and numba: it and
corank count the same words (PyStemmer's english, the same stop words), build BM25 with the same numbers, and search the
same queries for 10 documents, one thread each, in processor seconds, medians of alternating repeats. Without it only
learning is measured: documents and implied constraints per second. It needs CORANK_DATA.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time

import numpy as np

from corank.core.text.postings import Postings
from corank.text import BM25, Corpus, LinkLearn, Links, split_links
from corank.text.training import LinkObjective
from experiments.datasets.wikispeedia import read_articles, read_links

K = 10

RIVAL = """
import json, sys, time, logging
import bm25s, Stemmer
logging.disable(logging.INFO)
texts, queries, stop = json.loads(sys.stdin.readline())
stemmer = Stemmer.Stemmer("english")
def cut(given):
    return bm25s.tokenize(given, stopwords=stop, stemmer=stemmer, show_progress=False)
for line in sys.stdin:
    began = time.process_time()
    tokens = cut(texts)
    counted = time.process_time()
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numba")
    index.index(tokens, show_progress=False)
    built = time.process_time()
    asked = cut(queries)
    def search():
        return index.retrieve(asked, k=10, n_threads=1, show_progress=False, backend_selection="numba")
    search()
    began_search = time.process_time()
    found = search()
    ended = time.process_time()
    postings = len(index.scores["data"])
    size = sum(index.scores[name].nbytes for name in ("data", "indices", "indptr"))
    print(json.dumps({"count": counted - began, "weigh": built - counted, "build": built - began,
                      "search": ended - began_search, "bytes": size / postings, "postings": postings,
                      "found": found.documents[:200].tolist()}), flush=True)
"""


def main(interpreter: str | None, repeats: int) -> None:
    articles = read_articles()
    if interpreter is not None:
        index_figures(articles.texts, interpreter, repeats)
    corpus = Corpus.of(articles.texts, articles.names)
    training, validation = split_links(corpus, read_links(), 0.5, random_state=0)
    everything = Links.of(corpus, read_links())
    for name, links in (("half", training), ("all", everything)):
        model = LinkLearn(n_steps=0, random_state=0).fit(links)
        task = LinkObjective(links, model)
        texts = np.random.default_rng(0).permutation(task.texts)[:200]
        task.loss(model.networks_, texts[:2])
        began, wall = time.process_time(), time.perf_counter()
        task.loss(model.networks_, texts)
        seconds, wall = time.process_time() - began, time.perf_counter() - wall
        constraints = links.n_constraints / len(links) * len(texts)
        tell("gradient", name, texts_a_second=len(texts) / seconds, constraints_a_second=constraints / seconds,
             wall_constraints_a_second=constraints / wall)  # fmt: skip
    began, wall = time.process_time(), time.perf_counter()
    model = LinkLearn(n_steps=600, random_state=0, n_jobs=-1).fit(training, validation)
    tell("fit", "half", steps=model.n_iter_, processor_seconds=time.process_time() - began,
         wall_seconds=time.perf_counter() - wall)  # fmt: skip


def index_figures(texts: list[str], interpreter: str, repeats: int) -> None:
    queries = [" ".join(text.split()[:10]) for text in texts]
    stop = list(Corpus.of([""]).words.stop_words)
    rival = subprocess.Popen([interpreter, "-c", RIVAL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert rival.stdin is not None
    assert rival.stdout is not None
    rival.stdin.write(json.dumps([texts, queries, stop]) + "\n")
    ours(["tin"], ["tin"])  # compiled before it is timed
    figures: dict[str, list[dict]] = {"corank": [], "bm25s": []}
    for _ in range(repeats):
        figures["corank"].append(ours(texts, queries))
        rival.stdin.write("go\n")
        rival.stdin.flush()
        figures["bm25s"].append(json.loads(rival.stdout.readline()))
    rival.stdin.close()
    rival.wait()
    medians = {
        name: {key: float(np.median([one[key] for one in many])) for key in many[0] if key != "found"}
        for name, many in figures.items()
    }
    first, second = (figures[name][0]["found"] for name in figures)
    same = np.mean([len(set(a) & set(b)) / K for a, b in zip(first, second, strict=True)])
    for key in ("count", "weigh", "build", "search"):
        tell("index", key, corank=medians["corank"][key], bm25s=medians["bm25s"][key],
             ratio=medians["corank"][key] / medians["bm25s"][key])  # fmt: skip
    tell("index", "size", postings=medians["corank"]["postings"], bytes_a_posting=medians["corank"]["bytes"],
         bm25s_bytes_a_posting=medians["bm25s"]["bytes"], same_documents=same,
         queries_a_second=len(queries) / medians["corank"]["search"])  # fmt: skip


def ours(texts: list[str], queries: list[str]) -> dict:
    began = time.process_time()
    corpus = Corpus.of(texts)
    counted = time.process_time()
    index = BM25().to_index(corpus)
    built = time.process_time()
    asked = corpus.count(queries)
    index.search(asked, K, n_jobs=None)
    began_search = time.process_time()
    found = index.search(asked, K, n_jobs=None)
    ended = time.process_time()
    parts = Postings(corpus.postings.starts, corpus.postings.docs, index.weights)
    return {
        "count": counted - began, "weigh": built - counted, "build": built - began, "search": ended - began_search,
        "bytes": sum(part.nbytes for part in parts) / len(index.weights), "postings": len(index.weights),
        "found": found.documents[:200].tolist(),
    }  # fmt: skip


def tell(bench: str, what: str, **figures: float) -> None:
    shown = {name: float(f"{value:.4g}") for name, value in figures.items()}
    print(json.dumps({"bench": f"linklearn {bench}", "what": what, **shown}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bm25s", help="interpreter that has bm25s")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    main(args.bm25s, args.repeats)
