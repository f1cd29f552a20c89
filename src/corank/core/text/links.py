"""
Similarities of a text to all documents, and the hinge loss of all (linked, unlinked) pairs of documents, by counting.

    s_j = c_q c_j u_j,    u_j = Σ_t a(tf_qt) a(tf_jt) b_t²
    loss = w_q · mean over linked p, unlinked j of |1 − s_p + s_j|₊

For a text that is weighted as a query, a(tf_qt) is its count and c_q is 1. With weights w_q proportional to the numbers
of constraints of the texts, the loss is proportional to the sum over all constraints.

With the P linked documents in ascending order of s, an unlinked j violates the first n_j of them, those of s_p < 1 +
s_j, which a binary search finds. Its derivative is n_j; that of the r-th linked document is minus the number of j with
n_j > r. The P (N − P) constraints of N documents cost O(N log P), and a forward and a backward pass through the
postings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit


class Tables(NamedTuple):
    """The three functions at the values that occur, or derivatives with respect to them."""

    tf: NDArray[np.float64]  # a, of the count of a word in a text
    df: NDArray[np.float64]  # b, of the number of documents that contain it
    length: NDArray[np.float64]  # c, of the length of a text


class LinkProblem(NamedTuple):
    """
    Texts, the documents they are linked with, and all other documents; values are indices into `Tables`.

    bag_starts (n_texts + 1,), bag_terms, bag_tf, bag_counts: words of the texts, codes of their tf, and their counts.
    """

    term_runs: NDArray[np.uint64]  # (n_terms + 1,): where the runs of a word begin; a run holds the postings of one tf
    run_starts: NDArray[np.uint64]  # run_starts (n_runs + 1,), run_tf: where the postings of a run begin, and its tf
    run_tf: NDArray[np.uint32]
    docs: NDArray[np.uint32]  # document of each posting
    bag_starts: NDArray[np.uint64]
    bag_terms: NDArray[np.uint32]
    bag_tf: NDArray[np.uint32]
    bag_counts: NDArray[np.float64]
    is_query: bool  # whether texts are weighted by their counts
    df: NDArray[np.uint32]  # df, doc_length, text_length: of each word, document and text
    doc_length: NDArray[np.uint32]
    text_length: NDArray[np.uint32]
    link_starts: NDArray[np.uint64]  # link_starts (n_texts + 1,), linked: documents of each text
    linked: NDArray[np.uint32]
    own: NDArray[np.int64]  # (n_texts,): the document that is the text itself, or −1
    weights: NDArray[np.float64]  # (n_texts,): of the mean losses of the texts


@jit
def similarities(problem, tables, q, s):  # type: ignore[no-untyped-def]
    """Write the similarity of text q to every document to `s`."""
    add_words(problem, tables, q, s)
    scale_by_length(problem, tables, q, s, s)


@jit
def add_words(problem, tables, q, u):  # type: ignore[no-untyped-def]
    """Write the sums over the words of text q, without the factors of lengths, to `u`."""
    item = np.uint64(1)
    u[:] = 0.0
    for p in range(problem.bag_starts[q], problem.bag_starts[q + item]):
        term = np.uint64(problem.bag_terms[p])
        b = tables.df[problem.df[term]]
        x = (problem.bag_counts[p] if problem.is_query else tables.tf[problem.bag_tf[p]]) * b * b
        for run in range(problem.term_runs[term], problem.term_runs[term + item]):
            weight = x * tables.tf[problem.run_tf[run]]
            for i in range(problem.run_starts[run], problem.run_starts[run + item]):
                u[problem.docs[i]] += weight


@jit
def scale_by_length(problem, tables, q, u, s):  # type: ignore[no-untyped-def]
    """Write the similarities of text q to `s`; `u` as `add_words` wrote it."""
    c = 1.0 if problem.is_query else tables.length[problem.text_length[q]]
    for j in range(len(s)):
        s[j] = u[j] * c * tables.length[problem.doc_length[j]]


@jit
def link_hinge(s, linked, own, at_top, gradient):  # type: ignore[no-untyped-def]
    """
    Return the hinge loss of (linked, unlinked) pairs of documents, and write its derivatives by s to `gradient`.

    All pairs have equal weights with sum 1. With `at_top`, the n pairs that a linked document violates have the weight
    H(n)/n, H(n) = 1 + 1/2 + ... + 1/n, and the sum is divided by the number of linked documents: errors near the top of
    the list count more (Weston, Bengio and Usunier, 2010). `own` is a document that is in no pair, or −1. There are no
    pairs if all documents are linked, or none.
    """
    n_linked = len(linked)
    n_unlinked = len(s) - n_linked - (1 if own >= 0 else 0)
    gradient[:] = 0.0
    if n_linked == 0 or n_unlinked <= 0:
        return 0.0
    order = linked[np.argsort(s[linked])]
    ascending = s[order]
    for r in range(n_linked):
        gradient[order[r]] = np.nan
    violated = np.zeros(n_linked + 1)
    for j in range(len(s)):
        # linked documents are marked
        if gradient[j] == 0.0 and j != own:
            bar = 1.0 + s[j]
            n = np.searchsorted(ascending, bar) if bar > ascending[0] else 0
            gradient[j] = n
            violated[n] += 1.0
    # weights of the pairs of each linked document, and of those below it
    weights, below, sums = np.zeros(n_linked), np.zeros(n_linked + 1), np.zeros(n_linked + 1)
    above = 0.0
    for r in range(n_linked - 1, -1, -1):
        above += violated[r + 1]
        violated[r + 1] = above
        weights[r] = 1.0 / (n_linked * n_unlinked)
        if at_top:
            # H(n), to 1e-4
            weights[r] = (np.log(above + 0.5) + 0.5772 if above > 1.0 else 1.0) / (max(above, 1.0) * n_linked)
    for r in range(n_linked):
        below[r + 1] = below[r] + weights[r]
        sums[r + 1] = sums[r] + weights[r] * ascending[r]
    loss = 0.0
    for j in range(len(s)):
        if gradient[j] >= 0.0 and j != own:
            n = int(gradient[j])
            loss += below[n] * (1.0 + s[j]) - sums[n]
            gradient[j] = below[n]
    for r in range(n_linked):
        gradient[order[r]] = -weights[r] * violated[r + 1]
    return loss


@jit
def add_gradients(problem, tables, q, u, gradient, gradients):  # type: ignore[no-untyped-def]
    """Add the derivatives of the loss of text q to `gradients`."""
    item = np.uint64(1)
    c = 1.0 if problem.is_query else tables.length[problem.text_length[q]]
    total = 0.0
    for j in range(len(u)):
        c_j = tables.length[problem.doc_length[j]]
        if gradient[j] != 0.0:
            total += gradient[j] * u[j] * c_j
            gradients.length[problem.doc_length[j]] += gradient[j] * u[j] * c
        gradient[j] *= c * c_j
    if not problem.is_query:
        gradients.length[problem.text_length[q]] += total
    for p in range(problem.bag_starts[q], problem.bag_starts[q + item]):
        term = np.uint64(problem.bag_terms[p])
        b = tables.df[problem.df[term]]
        a = problem.bag_counts[p] if problem.is_query else tables.tf[problem.bag_tf[p]]
        inner = 0.0
        for run in range(problem.term_runs[term], problem.term_runs[term + item]):
            of_run = 0.0
            for i in range(problem.run_starts[run], problem.run_starts[run + item]):
                of_run += gradient[problem.docs[i]]
            inner += of_run * tables.tf[problem.run_tf[run]]
            gradients.tf[problem.run_tf[run]] += of_run * a * b * b
        if not problem.is_query:
            gradients.tf[problem.bag_tf[p]] += inner * b * b
        gradients.df[problem.df[term]] += 2.0 * inner * a * b


@jit
def add_links(problem, tables, chosen, first, last, at_top, gradients):  # type: ignore[no-untyped-def]
    """Return the hinge loss of the texts chosen[first..last-1], and add its derivatives to `gradients`."""
    n = len(problem.doc_length)
    u, s, gradient = np.empty(n), np.empty(n), np.empty(n)
    loss = 0.0
    for i in range(first, last):
        q = np.uint64(chosen[i])
        add_words(problem, tables, q, u)
        scale_by_length(problem, tables, q, u, s)
        linked = problem.linked[problem.link_starts[q] : problem.link_starts[q + np.uint64(1)]]
        loss += problem.weights[q] * link_hinge(s, linked, problem.own[q], at_top, gradient)
        gradient *= problem.weights[q]
        add_gradients(problem, tables, q, u, gradient, gradients)
    return loss
