"""
Exact search of vectors: processor seconds of `Vectors.search`, of faiss's flat index, and of the bare matrix product.

The documents are random unit vectors of 384 dimensions, the queries are documents with noise. Every line is one figure,
the processor time of all threads; `same` is the share of equal documents at equal ranks.
Run: OPENBLAS_NUM_THREADS=1 python benchmarks/bench_vectors.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import time

import faiss
import numpy as np

from corank.text import Vectors

DIMENSIONS, N_QUERIES = 384, 256


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    n = 100_000 if parser.parse_args().quick else 1_000_000
    rng = np.random.default_rng(0)
    D = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    Q = D[rng.choice(n, N_QUERIES)] + 0.05 * rng.standard_normal((N_QUERIES, DIMENSIONS), dtype=np.float32)
    documents = Vectors.of(D)
    faiss.omp_set_num_threads(1)
    flat = faiss.IndexFlatIP(DIMENSIONS)
    flat.add(D)
    for k in (10, 100, 1000):
        began = time.process_time()
        result = documents.search(Q, k, similarity="dot")
        seconds = time.process_time() - began
        began = time.process_time()
        _, other = flat.search(Q, k)
        faiss_seconds = time.process_time() - began
        began = time.process_time()
        for begin in range(0, n, 100_000):
            _ = Q @ D[begin : begin + 100_000].T
        product = time.process_time() - began
        figure = {
            "figure": "exact search", "documents": n, "queries": N_QUERIES, "k": k, "seconds": round(seconds, 2),
            "faiss": round(faiss_seconds, 2), "product": round(product, 2),
            "same": round(float((other == result.documents).mean()), 4),
        }  # fmt: skip
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
