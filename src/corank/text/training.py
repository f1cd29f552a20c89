"""
Training of LinkLearn: three networks are fitted to links by stochastic gradients, with early stopping on links of other
documents.

EncodedCorpus lists the distinct values of tf, df and length in a corpus, so that each network is evaluated once per
value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corank.base.solvers.choice import Adam, EarlyStopping, run_training
from corank.core.text.links import LinkProblem, Tables, add_links, similarities
from corank.core.text.postings import Bags, sizes, totals
from corank.core.threads import n_threads, parallel_map
from corank.errors import InputError
from corank.metrics import evaluate
from corank.text.corpus import Corpus, Index
from corank.text.links import Links
from corank.text.network import LinearNetwork, Network

if TYPE_CHECKING:
    from corank.text.link_learn import LinkLearn

Codes = NDArray[np.uint32]
Floats = NDArray[np.float64]
Networks = tuple[Network, Network, Network]

# codes per unit of log tf with length normalisation: steps of 3 %
_STEPS = 32
# most texts for the average precision, and texts that set the initial scale
MAX_QUERIES, _FIRST_TEXTS = 500, 32


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """
    The distinct inputs of the three functions, and the code of each posting, word and text.

    inputs: a table for each of the three networks, see `LinkLearn`.
    tf: code of each posting.
    df: of each word.
    length: of each document.
    text_tf, text_length: the same of the words of linked texts, and of the texts; empty without links.
    """

    inputs: Tables
    tf: Codes
    df: Codes
    length: Codes
    text_tf: Codes
    text_length: Codes

    @classmethod
    def of(cls, corpus: Corpus, form: LinkLearn, links: Links | None = None) -> EncodedCorpus:
        """Encode a corpus, and the texts that are linked with its documents."""
        steps = _STEPS if form.b > 0.0 else None
        tf = tf_inputs(corpus.postings.values, corpus.lengths[corpus.postings.docs], corpus.mean_length, form, steps)
        length = length_inputs(corpus.lengths, corpus.mean_length, form)
        text_tf = text_length = np.empty(0)
        if links is not None:
            lengths = np.repeat(links.lengths, sizes(links.texts.starts))
            text_tf = tf_inputs(links.texts.values, lengths, corpus.mean_length, form, steps)
            text_length = length_inputs(links.lengths, corpus.mean_length, form)
        df, df_codes = np.unique(corpus.document_frequency, return_inverse=True)
        tf_table, tf_codes = np.unique(np.concatenate([tf, text_tf]), return_inverse=True)
        length_table, length_codes = np.unique(np.concatenate([length, text_length]), return_inverse=True)
        return cls(
            Tables(tf_table, df_inputs(df, corpus.n_documents), length_table),
            tf_codes[: len(tf)].astype(np.uint32),
            df_codes.astype(np.uint32),
            length_codes[: len(length)].astype(np.uint32),
            tf_codes[len(tf) :].astype(np.uint32),
            length_codes[len(length) :].astype(np.uint32),
        )

    def problem(self, links: Links, symmetric: bool, summed: bool) -> LinkProblem:
        """Return links, and postings sorted by word and tf, for kernels."""
        postings, n_values = links.corpus.postings, len(self.inputs.tf)
        terms = np.repeat(np.arange(links.corpus.n_terms, dtype=np.int64), links.corpus.document_frequency)
        key = terms * n_values + self.tf
        order = np.argsort(key, kind="stable")
        key = key[order]
        is_first = np.ones(len(key), dtype=bool)
        is_first[1:] = key[1:] != key[:-1]
        begins = np.flatnonzero(is_first)
        runs = np.bincount(key[begins] // n_values, minlength=links.corpus.n_terms)
        return LinkProblem(
            np.concatenate([[0], np.cumsum(runs)]).astype(np.uint64),
            np.append(begins, len(key)).astype(np.uint64),
            (key[begins] % n_values).astype(np.uint32),
            postings.docs[order],
            links.texts.starts,
            links.texts.terms,
            self.text_tf,
            links.texts.values.astype(np.float64),
            not symmetric,
            self.df,
            self.length,
            self.text_length,
            links.starts,
            links.linked,
            links.own,
            links.constraints / (links.constraints.mean() or 1.0) if summed else np.ones(len(links)),
        )


def tf_inputs(
    counts: NDArray[Any], lengths: NDArray[Any], mean_length: float, form: LinkLearn, steps: int | None = None
) -> Floats:
    """Return tf, normalised by the length of its text as in BM25, tf/(1 − b + b · length/mean), or its logarithm."""
    log_tf = np.log(counts) - np.log(1.0 - form.b + form.b * np.maximum(lengths, 1) / mean_length)
    if steps is not None:
        log_tf = np.rint(steps * log_tf) / steps
    return np.asarray(log_tf if form.positive else np.exp(log_tf))


def df_inputs(df: NDArray[Any], n_documents: int) -> Floats:
    """Return log(N/df)."""
    return np.asarray(np.log(max(n_documents, 1) / np.maximum(df, 1)))


def length_inputs(lengths: NDArray[Any], mean_length: float, form: LinkLearn) -> Floats:
    """Return the length, or log(length/mean length); an empty text counts as one word."""
    length = np.maximum(lengths, 1)
    return np.asarray(np.log(length / mean_length) if form.positive else length.astype(np.float64))


@dataclass(frozen=True, eq=False)
class FittedLinkLearn:
    """The fitted attributes of `LinkLearn`."""

    networks: Networks
    n_iter: int
    objective_trace: Floats
    validation_errors: Floats | None


class LinkObjective:
    """The loss of the three functions on links; `form` has the parameters of the similarity and of the loss."""

    def __init__(self, links: Links, form: LinkLearn) -> None:
        self.form = form
        self.encoded = EncodedCorpus.of(links.corpus, form, links)
        self.problem: LinkProblem = self.encoded.problem(links, form.symmetric, form.solver == "sgd")
        n_linked = sizes(links.starts)
        self.texts = np.flatnonzero(n_linked + (links.own >= 0) < links.corpus.n_documents)
        if not len(self.texts):
            raise InputError("every document is linked with all others, so none can be ranked; pass more documents.")

    def tables(self, networks: Networks) -> Tables:
        """Return the functions at all values that occur."""
        return Tables(*(network(x) for network, x in zip(networks, self.encoded.inputs, strict=True)))

    def loss(self, networks: Networks, texts: NDArray[np.int64], n_jobs: int = 1) -> tuple[float, list[Floats]]:
        """Return the mean hinge loss of some texts, and its gradient by the parameters of each network."""
        traces = [network.trace(x) for network, x in zip(networks, self.encoded.inputs, strict=True)]
        tables = Tables(*(trace.values for trace in traces))

        def add_part(first: int, last: int) -> tuple[float, Tables]:
            gradients = Tables(*map(np.zeros_like, tables))
            return add_links(self.problem, tables, texts, first, last, self.form.at_top, gradients), gradients

        # always the same parts, so that the sums do not depend on the number of threads
        edges = np.unique(np.linspace(0, len(texts), 5).astype(int)).tolist()
        parts = parallel_map(add_part, list(pairwise(edges)), n_jobs)
        sums = [np.sum([part[1][i] for part in parts], axis=0) / len(texts) for i in range(3)]
        if not self.form.use_length:
            sums[2][:] = 0.0
        by_theta = [
            network.gradient(trace, outer) for network, trace, outer in zip(networks, traces, sums, strict=True)
        ]
        return sum(part[0] for part in parts) / len(texts), by_theta

    def gap(self, networks: Networks, texts: NDArray[np.int64]) -> float:
        """Return the mean similarity of linked documents minus that of the other documents."""
        tables, s, gaps = self.tables(networks), np.empty(len(self.problem.doc_length)), []
        for q in texts.tolist():
            similarities(self.problem, tables, np.uint64(q), s)
            linked = self.problem.linked[int(self.problem.link_starts[q]) : int(self.problem.link_starts[q + 1])]
            is_other = np.ones(len(s), dtype=bool)
            is_other[linked] = False
            if self.problem.own[q] >= 0:
                is_other[self.problem.own[q]] = False
            gaps.append(s[linked].mean() - s[is_other].mean())
        return float(np.mean(gaps))


def train(model: LinkLearn, links: Links, validation: Links | None, rng: np.random.Generator) -> FittedLinkLearn:
    """
    Minimise the hinge loss: its mean over texts by Adam, with a learning rate that falls linearly to zero, or its sum
    over constraints, in units of the mean number of constraints of a text, by plain stochastic gradients.
    """
    objective = LinkObjective(links, model)
    n_jobs = 1 if model.n_jobs is None else n_threads(model.n_jobs)
    networks = _initial_networks(objective, rng)
    precision = None if validation is None else ValidationPrecision(validation, model, rng)
    best, best_step, n_steps = networks, 0, 0
    stopping = EarlyStopping(model.n_iter_no_change)
    if precision is not None:
        stopping.record(-precision(networks))
    adam = Adam.start([network.theta for network in networks])
    losses: list[float] = []
    running: list[float] = []
    n_batches = -(-len(objective.texts) // model.batch)
    order = objective.texts

    def step(_: int) -> None:
        nonlocal adam, networks, n_steps, order
        number = n_steps % n_batches
        if number == 0:
            order = rng.permutation(objective.texts)
        texts = order[number * model.batch : (number + 1) * model.batch]
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            loss, gradients = objective.loss(networks, texts, n_jobs)
        if model.solver == "sgd":
            directions = [model.eta0 * gradient for gradient in gradients]
        else:
            adam = adam.update(gradients)
            directions = adam.directions(model.eta0 * (1.0 - n_steps / model.n_steps))
        if not np.isfinite(np.concatenate(directions)).all():
            raise InputError(f"training diverged after {n_steps} steps with eta0={model.eta0:g}; pass a lower eta0.")
        f1, f2, f3 = (
            replace(network, theta=network.theta - direction)
            for network, direction in zip(networks, directions, strict=True)
        )
        networks = f1, f2, f3
        running.append(loss)
        n_steps += 1

    def check() -> bool:
        nonlocal best, best_step
        losses.append(float(np.mean(running)))
        running.clear()
        if precision is None or stopping.record(-precision(networks)):
            best, best_step = networks, n_steps
        return precision is not None and stopping.is_over

    ends = check_steps(model.n_steps, n_batches, model.checks_per_pass)
    if run_training(step, ends, check, verbose=bool(model.verbose)):
        raise KeyboardInterrupt
    errors = None if precision is None else np.array([1.0 + value for value in stopping.errors])
    return FittedLinkLearn(best, best_step, np.array(losses), errors)


def check_steps(n_steps: int, n_batches: int, checks_per_pass: int) -> list[int]:
    """Return the numbers of steps after which the validation links are checked."""
    n_checks = -(-n_steps * checks_per_pass // n_batches)
    ends = {k * n_batches // checks_per_pass for k in range(1, n_checks)}
    return sorted({end for end in ends if 0 < end < n_steps} | {n_steps} - {0})


class ValidationPrecision:
    """
    Mean average precision with texts as queries and linked documents as relevant.

    links: the texts; if there are many, a random sample is used.
    """

    def __init__(self, links: Links, form: LinkLearn, rng: np.random.Generator) -> None:
        queries = links.take(rng.permutation(len(links))[:MAX_QUERIES])
        self._corpus, self._encoded, self._form = links.corpus, EncodedCorpus.of(links.corpus, form), form
        self._bags, self._grades = queries.texts, queries.grades()
        self._qid = np.repeat(np.arange(len(queries)), links.corpus.n_documents)

    def __call__(self, networks: Networks) -> float:
        """Return the mean over queries."""
        scores = index_of(networks, self._corpus, self._form, self._encoded).scores(self._bags)
        return float(evaluate(self._grades.ravel(), scores.ravel(), self._qid, "AP")["AP"].mean)


def index_of(networks: Networks, corpus: Corpus, form: LinkLearn, encoded: EncodedCorpus | None = None) -> Index:
    """Return an index with the product of the three functions as the weight of each word in each document."""
    encoded = encoded or EncodedCorpus.of(corpus, form)
    tf, df, length = (network(x) for network, x in zip(networks, encoded.inputs, strict=True))
    of_words = df[encoded.df]
    weights = np.repeat(of_words.astype(np.float32), corpus.document_frequency)
    weights *= tf.astype(np.float32)[encoded.tf]
    weights *= length[encoded.length].astype(np.float32)[corpus.postings.docs]

    def weigh(bags: Bags) -> Floats:
        if not form.symmetric:
            return np.asarray(bags.values * of_words[bags.terms])
        lengths, each = totals(bags), sizes(bags.starts)
        of_counts = networks[0](tf_inputs(bags.values, np.repeat(lengths, each), corpus.mean_length, form))
        of_texts = networks[2](length_inputs(lengths, corpus.mean_length, form))
        return of_counts * of_words[bags.terms] * np.repeat(of_texts, each)

    return Index(corpus, weights, weigh)


def _initial_networks(objective: LinkObjective, rng: np.random.Generator) -> Networks:
    """Return networks close to BM25 (k1 = 2), at the scale of the margin; linear ones are random."""
    form, inputs, encoded = objective.form, objective.encoded.inputs, objective.encoded
    frequencies = Tables(
        np.bincount(encoded.tf, minlength=len(inputs.tf)).astype(np.float64),
        # weighted by how often they are used
        np.bincount(encoded.df, minlength=len(inputs.df)).astype(np.float64) * np.exp(-inputs.df),
        np.bincount(encoded.length, minlength=len(inputs.length)).astype(np.float64),
    )
    if not form.positive:
        r1, r2, r3 = (
            LinearNetwork.random(x, weight + 1e-6, form.n_hidden, rng)
            for x, weight in zip(inputs, frequencies, strict=True)
        )
        return r1, r2, r3 if form.use_length else LinearNetwork.constant(1.0, form.n_hidden)
    tf = np.exp(inputs.tf)
    # lengths enter once, by b or by f₃
    by_length = form.use_length and form.b == 0.0
    log_length = -np.log(1.5 + 1.5 * np.exp(inputs.length)) if by_length else np.zeros(len(inputs.length))
    targets = Tables(np.log(tf / (tf + 2.0)), 0.5 * np.log(inputs.df + 0.1), log_length)
    parts = zip(inputs, frequencies, targets, strict=True)
    f1, f2, f3 = (Network.near(x, weight + 1e-6, target, form.n_hidden, rng) for x, weight, target in parts)
    gap = objective.gap((f1, f2, f3), rng.permutation(objective.texts)[:_FIRST_TEXTS])
    if gap > 0.0:  # divide f₂ by √gap
        f2 = replace(f2, theta=np.append(f2.theta[:-1], f2.theta[-1] - 0.5 * np.log(gap)))
    return f1, f2, f3
