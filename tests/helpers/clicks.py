"""Simulated clicks: position k is examined with probability θ_k, a document is relevant with probability r."""

from __future__ import annotations

import numpy as np

from corank.data.io.clicks import ClickLog


def show(rng, r, theta, n_lists, order_of):
    """
    Make a log.

    r (n_queries, n_documents): probability that each document is wanted.
    theta: looks by place; as many documents are shown.
    order_of(query, number): the documents of a list, best first.
    """
    k = len(theta)
    query = rng.integers(len(r), size=n_lists)
    shown = np.array([order_of(q, number)[:k] for number, q in enumerate(query)])
    clicked = (rng.random(shown.shape) < theta) & (rng.random(shown.shape) < r[query[:, None], shown])
    return ClickLog.of(
        np.repeat(query, k).tolist(),
        shown.ravel().tolist(),
        np.tile(np.arange(1, k + 1), n_lists),
        clicked.ravel(),
        impression=np.repeat(np.arange(n_lists), k),
    )


def swapped(rng, k):
    """Each list is 0, 1, 2, ... with its first and one other document swapped at random."""

    def order_of(query, number):
        order = np.arange(k)
        other = rng.integers(k)
        order[[0, other]] = order[[other, 0]]
        return order

    return order_of


def rows_of(r):
    """Query and document of every row."""
    n_queries, n_documents = r.shape
    return np.repeat(np.arange(n_queries), n_documents), np.tile(np.arange(n_documents), n_queries)
