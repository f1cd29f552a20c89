"""
Similarities of one text to all documents, and the hinge over all (linked, unlinked) pairs of documents, by counting.

    s_j = c_q c_j Σ_t a(tf_qt) a(tf_jt) b_t²,    loss = mean over linked p, unlinked j of |1 − s_p + s_j|₊

Of a text that is weighed as a query is, a(tf_qt) is its count and c_q is 1.

With the P linked documents in ascending order of s, an unlinked j violates the first n_j of them, those of s_p < 1 +
s_j, which a binary search finds. Its slope is n_j; the slope of the r-th linked one is minus the number of j with n_j >
r. So N documents imply P (N − P) constraints and cost O(N log P), beside one pass over the postings each way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit


class Tables(NamedTuple):
    """
    The three functions at the values that occur, or slopes with respect to them.

    tf: a, of how often a word stands in a text.
    df: b, of in how many documents it stands.
    length: c, of how long a text is.
    """

    tf: NDArray[np.float64]
    df: NDArray[np.float64]
    length: NDArray[np.float64]


class LinkProblem(NamedTuple):
    """
    Texts, the documents they are linked with, and all other documents; values are known by their number in a table.

    term_runs (n_terms + 1,): where the runs of a word begin; a run holds the postings of one tf.
    run_starts (n_runs + 1,), run_tf: where the postings of a run begin, and its tf.
    docs: document of each posting.
    bag_starts (n_texts + 1,), bag_terms, bag_tf, bag_counts: words of the texts, codes of their tf, and their counts.
    is_query: whether texts are weighed by their counts.
    df, doc_length, text_length: of each word, document and text.
    link_starts (n_texts + 1,), linked: documents of each text.
    own (n_texts,): the document that the text is, or −1.
    """

    term_runs: NDArray[np.uint64]
    run_starts: NDArray[np.uint64]
    run_tf: NDArray[np.uint32]
    docs: NDArray[np.uint32]
    bag_starts: NDArray[np.uint64]
    bag_terms: NDArray[np.uint32]
    bag_tf: NDArray[np.uint32]
    bag_counts: NDArray[np.float64]
    is_query: bool
    df: NDArray[np.uint32]
    doc_length: NDArray[np.uint32]
    text_length: NDArray[np.uint32]
    link_starts: NDArray[np.uint64]
    linked: NDArray[np.uint32]
    own: NDArray[np.int64]


@jit
def similarities(problem, tables, q, s):  # type: ignore[no-untyped-def]
    """Write the similarity of text q to every document to `s`."""
    one = np.uint64(1)
    s[:] = 0.0
    for p in range(problem.bag_starts[q], problem.bag_starts[q + one]):
        term = np.uint64(problem.bag_terms[p])
        b = tables.df[problem.df[term]]
        x = (problem.bag_counts[p] if problem.is_query else tables.tf[problem.bag_tf[p]]) * b * b
        for run in range(problem.term_runs[term], problem.term_runs[term + one]):
            weight = x * tables.tf[problem.run_tf[run]]
            for at in range(problem.run_starts[run], problem.run_starts[run + one]):
                s[problem.docs[at]] += weight
    c = 1.0 if problem.is_query else tables.length[problem.text_length[q]]
    for j in range(len(s)):
        s[j] *= c * tables.length[problem.doc_length[j]]


@jit
def link_hinge(s, linked, own, at_top, slope):  # type: ignore[no-untyped-def]
    """
    Return the hinge over (linked, unlinked) pairs of documents, and write its derivatives by s to `slope`.

    All pairs weigh the same, and their weights add up to 1; or, `at_top`, the n pairs that a linked document violates
    weigh H(n)/n, H(n) = 1 + 1/2 + ... + 1/n, and the sum is divided by the linked documents: what stands above a
    document that is nearly first counts more than what stands above one far below (Weston, Bengio and Usunier, 2010).
    `own` is a document that is in no pair, or −1. Nothing is compared where all documents are linked, or none.
    """
    n_linked = len(linked)
    n_unlinked = len(s) - n_linked - (1 if own >= 0 else 0)
    slope[:] = 0.0
    if n_linked == 0 or n_unlinked <= 0:
        return 0.0
    order = linked[np.argsort(s[linked])]
    ascending = s[order]
    for r in range(n_linked):
        slope[order[r]] = np.nan
    violated = np.zeros(n_linked + 1)
    for j in range(len(s)):
        # the linked ones are marked
        if slope[j] == 0.0 and j != own:
            bar = 1.0 + s[j]
            n = np.searchsorted(ascending, bar) if bar > ascending[0] else 0
            slope[j] = n
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
        if slope[j] >= 0.0 and j != own:
            n = int(slope[j])
            loss += below[n] * (1.0 + s[j]) - sums[n]
            slope[j] = below[n]
    for r in range(n_linked):
        slope[order[r]] = -weights[r] * violated[r + 1]
    return loss


@jit
def add_slopes(problem, tables, q, s, slope, slopes):  # type: ignore[no-untyped-def]
    """Add the derivatives of a loss of text q to `slopes`, by `slope`, those with respect to s; `slope` is used up."""
    one = np.uint64(1)
    c = 1.0 if problem.is_query else tables.length[problem.text_length[q]]
    total = 0.0
    for j in range(len(s)):
        c_j = tables.length[problem.doc_length[j]]
        if slope[j] != 0.0:
            total += slope[j] * s[j]
            slopes.length[problem.doc_length[j]] += slope[j] * s[j] / c_j
        slope[j] *= c * c_j
    if not problem.is_query:
        slopes.length[problem.text_length[q]] += total / c
    for p in range(problem.bag_starts[q], problem.bag_starts[q + one]):
        term = np.uint64(problem.bag_terms[p])
        b = tables.df[problem.df[term]]
        a = problem.bag_counts[p] if problem.is_query else tables.tf[problem.bag_tf[p]]
        inner = 0.0
        for run in range(problem.term_runs[term], problem.term_runs[term + one]):
            of_run = 0.0
            for at in range(problem.run_starts[run], problem.run_starts[run + one]):
                of_run += slope[problem.docs[at]]
            inner += of_run * tables.tf[problem.run_tf[run]]
            slopes.tf[problem.run_tf[run]] += of_run * a * b * b
        if not problem.is_query:
            slopes.tf[problem.bag_tf[p]] += inner * b * b
        slopes.df[problem.df[term]] += 2.0 * inner * a * b


@jit
def add_links(problem, tables, chosen, first, last, at_top, slopes):  # type: ignore[no-untyped-def]
    """Return the sum of the hinges of the texts chosen[first..last-1], and add its derivatives to `slopes`."""
    s, slope = np.empty(len(problem.doc_length)), np.empty(len(problem.doc_length))
    loss = 0.0
    for at in range(first, last):
        q = np.uint64(chosen[at])
        similarities(problem, tables, q, s)
        linked = problem.linked[problem.link_starts[q] : problem.link_starts[q + np.uint64(1)]]
        loss += link_hinge(s, linked, problem.own[q], at_top, slope)
        add_slopes(problem, tables, q, s, slope, slopes)
    return loss
