"""The collections that are searched, BM25 on them, and the training halves of Wikispeedia."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base import ColumnMean
from corank.core.text.postings import Bags
from corank.errors import InputError
from corank.metrics import evaluate
from corank.text import BM25, Corpus, Index, LinkLearn, Links, split_links
from corank.text.bm25 import BS, K1S
from experiments.datasets.smart import COLLECTIONS, read_topics
from experiments.datasets.wikispeedia import read_articles, read_links

Floats = NDArray[np.float64]

METRICS = ("P@10", "BEP", "AP")

MAX_TEXTS = 300
"""Number of texts for which links are searched."""

SPREAD = 0.6
"""Deviation of the logarithm of the length that articles are cut to."""

RATES, STEPS, CHECKS = (0.003, 0.01, 0.03), 8000, 10
"""Learning rates of the paper's form, its number of steps, and of points of its validation curve."""


@dataclass(frozen=True, eq=False)
class Searched:
    """
    A collection that is searched.

    queries: their words.
    relevant (n_queries, n_documents): 1 where a document is, 0 elsewhere.
    """

    corpus: Corpus
    queries: Bags
    relevant: Floats

    def values(self, *indices: Index) -> dict[str, list[float]]:
        """Return each metric, query by query; several indices are averaged, scores scaled inside queries."""
        scores = [index.scores(self.queries) for index in indices]
        qid = np.repeat(np.arange(len(scores[0])), scores[0].shape[1])
        X = np.column_stack([each.ravel() for each in scores])
        total = X[:, 0] if len(indices) == 1 else ColumnMean(range(len(indices))).fit(X, qid=qid).predict(X, qid=qid)
        results = evaluate(self.relevant.ravel(), total, qid, METRICS)
        return {metric: results[metric].values.tolist() for metric in METRICS}


@dataclass(frozen=True)
class Variant:
    """
    One way to learn.

    name: what tables call it.
    n_words: what articles are cut to, about; 0 leaves them whole.
    n_asked: the first words of an article that stand for it as a query; 0 takes the article.
    params: of `LinkLearn`.
    is_paper: whether it is the paper's form, which has its own parameters.
    """

    name: str
    n_words: int = 0
    n_asked: int = 0
    params: tuple[tuple[str, Any], ...] = ()
    is_paper: bool = False

    def fitted(self, training: Links, validation: Links, seed: int, n_steps: int) -> LinkLearn:
        """Return the fitted estimator."""
        if self.is_paper:
            return fit_paper_form(training, validation, seed)
        model = LinkLearn(n_steps=n_steps, random_state=seed, n_jobs=-1, **dict(self.params))
        return model.fit(training, validation)


def paper_form(rate: float, n_texts: int, seed: int) -> LinkLearn:
    """
    Return LinkLearn as in the paper: perceptrons with linear outputs that begin at random, one text per step.

    rate: learning rate.
    n_texts: number of texts to learn from.
    """
    checks = max(1, round(CHECKS * n_texts / STEPS))
    return LinkLearn(
        b=0.0, positive=False, solver="sgd", batch=1, eta0=rate, n_steps=STEPS, checks_per_pass=checks,
        n_iter_no_change=STEPS, random_state=seed,
    )  # fmt: skip


def fit_paper_form(training: Links, validation: Links, seed: int) -> LinkLearn:
    """Fit the paper's form at every rate, and return the model with the highest average precision on validation."""
    results = []
    for rate in RATES:
        with suppress(InputError):  # diverged
            results.append(paper_form(rate, len(training), seed).fit(training, validation))
    return min(results, key=lambda model: float(model.validation_errors_.min()))


@cache
def searched() -> dict[str, Searched]:
    """Read the collections."""
    results = {}
    for name in COLLECTIONS:
        topics = read_topics(name)
        corpus = Corpus.of(topics.texts)
        results[name] = Searched(corpus, corpus.count(topics.queries), topics.relevant.astype(np.float64))
    return results


def everywhere(
    to_index: Callable[[Corpus], Index], fused_with: dict[str, BM25] | None = None
) -> dict[str, dict[str, list[float]]]:
    """
    Search every collection, and return each metric of each query.

    fused_with: a ranker for each collection, whose scores are averaged with the others.
    """
    results = {}
    for name, collection in searched().items():
        others = [] if fused_with is None else [fused_with[name].to_index(collection.corpus)]
        results[name] = collection.values(to_index(collection.corpus), *others)
    return results


def bm25_grid() -> list[tuple[float, float]]:
    """Return the settings that are tried."""
    return [(k1, b) for k1 in K1S for b in BS]


def best_elsewhere(values: Sequence[dict[str, dict[str, list[float]]]], name: str) -> int:
    """Return the variant with the highest mean AP over the queries of all collections but one."""
    means = [np.mean(np.concatenate([of[other]["AP"] for other in COLLECTIONS if other != name])) for of in values]
    return int(np.argmax(means))


@lru_cache(maxsize=2)
def _articles(n_words: int, seed: int) -> Corpus:
    """Return articles cut to random lengths, so that length does not depend on the subject."""
    articles = read_articles()
    rng = np.random.default_rng(seed)
    texts = articles.texts
    if n_words:
        sizes = np.maximum(20, n_words * np.exp(SPREAD * rng.normal(size=len(texts)))).astype(int)
        texts = [" ".join(text.split()[:size]) for text, size in zip(texts, sizes, strict=True)]
    return Corpus.of(texts, articles.names)


def halves(variant: Variant, seed: int) -> tuple[Links, Links]:
    """Split the articles into halves for training and early stopping; links between them are left out."""
    corpus, pairs, queries = _articles(variant.n_words, seed), read_links(), None
    if variant.n_asked:
        articles = read_articles()
        leads = (" ".join(text.split()[: variant.n_asked]) for text in articles.texts)
        queries = dict(zip(articles.names, leads, strict=True))
        pairs = [*pairs, *((b, a) for a, b in pairs)]
    return split_links(corpus, pairs, 0.5, queries=queries, random_state=seed)


def link_precision(to_index: Callable[[Corpus], Index], links: Links) -> float:
    """Return the mean AP with some texts of the links as queries and their linked documents as relevant."""
    chosen = np.linspace(0, len(links) - 1, min(MAX_TEXTS, len(links))).astype(int)
    asked = links.take(chosen)
    grades = asked.grades()
    scores = to_index(links.corpus).scores(asked.texts)
    qid = np.repeat(np.arange(len(asked)), grades.shape[1])
    return float(evaluate(grades.ravel(), scores.ravel(), qid, "AP")["AP"].mean)
