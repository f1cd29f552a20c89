"""Training: three networks moved by stochastic steps over texts, Adam's, until links of other documents say stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.text.links import LinkProblem, Tables, add_links, similarities
from corank.core.text.postings import Bags, sizes, totals
from corank.core.threads import spread
from corank.errors import InputError
from corank.metrics import evaluate
from corank.text.coded import Coded, length_inputs, tf_inputs
from corank.text.corpus import Corpus
from corank.text.index import Index
from corank.text.links import Links
from corank.text.network import Network

Floats = NDArray[np.float64]
Networks = tuple[Network, Network, Network]

# texts that average precision is measured on, and that the first scale is set by
_MOST_QUERIES, _FIRST_TEXTS = 500, 32
_DECAYS, _TINY = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Form:
    """What may be learnt, and by which loss; see the parameters of `LinkLearn`."""

    n_hidden: int
    b: float
    symmetric: bool
    use_length: bool
    at_top: bool


@dataclass(frozen=True)
class Schedule:
    """
    How steps are taken; see the parameters of `LinkLearn`.

    n_jobs: number of threads.
    """

    n_steps: int
    batch: int
    eta0: float
    n_iter_no_change: int
    n_jobs: int


@dataclass(frozen=True, eq=False)
class Learnt:
    """See the attributes of `LinkLearn`."""

    networks: Networks
    n_iter: int
    objective_trace: Floats
    validation_errors: Floats | None


class Task:
    """
    Links as the three functions see them.

    links: texts and their documents.
    """

    def __init__(self, links: Links, form: Form) -> None:
        self.form = form
        self.coded = Coded.of(links.corpus, form.b, links)
        self.problem: LinkProblem = self.coded.problem(links, form.symmetric)
        n_linked = sizes(links.starts)
        self.texts = np.flatnonzero(n_linked + (links.own >= 0) < links.corpus.n_documents)
        if not len(self.texts):
            raise InputError("every document is linked with every other, so that none is nearer; pass more documents.")

    def tables(self, networks: Networks) -> Tables:
        """Return the functions at all values that occur."""
        return Tables(*(network(x) for network, x in zip(networks, self.coded.inputs, strict=True)))

    def loss(self, networks: Networks, texts: NDArray[np.int64], n_jobs: int = 1) -> tuple[float, list[Floats]]:
        """Return the mean hinge of some texts, and its derivatives by the parameters of each network."""
        traces = [network.trace(x) for network, x in zip(networks, self.coded.inputs, strict=True)]
        tables = Tables(*(trace.values for trace in traces))

        def work(first: int, last: int) -> tuple[float, Tables]:
            slopes = Tables(*map(np.zeros_like, tables))
            return add_links(self.problem, tables, texts, first, last, self.form.at_top, slopes), slopes

        # always the same parts, so that any number of threads gives the same sums
        edges = np.unique(np.linspace(0, len(texts), 5).astype(int)).tolist()
        parts = spread(work, list(pairwise(edges)), n_jobs)
        sums = [np.sum([part[1][at] for part in parts], axis=0) / len(texts) for at in range(3)]
        if not self.form.use_length:
            sums[2][:] = 0.0
        by_theta = [network.slopes(trace, slope) for network, trace, slope in zip(networks, traces, sums, strict=True)]
        return sum(part[0] for part in parts) / len(texts), by_theta

    def gap(self, networks: Networks, texts: NDArray[np.int64]) -> float:
        """How much more similar linked documents are than others, on average."""
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


def train(
    links: Links,
    validation: Links | None,
    form: Form,
    schedule: Schedule,
    rng: np.random.Generator,
    advance: Callable[[int], Any],
) -> Learnt:
    """
    Minimise the mean hinge over texts.

    validation: links of other documents; the best pass by average precision is kept. None takes every step.
    advance: takes the number of steps done since the last call.
    """
    task = Task(links, form)
    networks = _first(task, rng)
    judge = None if validation is None else Judge(validation, form, rng)
    best, best_value, waited = networks, -np.inf if judge is None else judge.average_precision(networks), 0
    errors = [] if judge is None else [1.0 - best_value]
    adam, losses, running, step, best_step = _Adam(schedule), [], [], 0, 0
    while step < schedule.n_steps:
        order = rng.permutation(task.texts)
        for begin in range(0, len(order), schedule.batch):
            if step == schedule.n_steps:
                break
            loss, slopes = task.loss(networks, order[begin : begin + schedule.batch], schedule.n_jobs)
            networks = adam.step(networks, slopes, step)
            running.append(loss)
            step += 1
            advance(1)
        losses.append(float(np.mean(running)))
        running = []
        if judge is None:
            best, best_step = networks, step
            continue
        value = judge.average_precision(networks)
        errors.append(1.0 - value)
        waited = 0 if value > best_value else waited + 1
        if value > best_value:
            best, best_value, best_step = networks, value, step
        if waited == schedule.n_iter_no_change:
            break
    return Learnt(best, best_step, np.array(losses), None if judge is None else np.array(errors))


class Judge:
    """
    Average precision where texts are queries, and the documents they are linked with are relevant.

    links: the texts; of many, some are drawn.
    """

    def __init__(self, links: Links, form: Form, rng: np.random.Generator) -> None:
        asked = links.take(rng.permutation(len(links))[:_MOST_QUERIES])
        self._corpus, self._coded, self._form = links.corpus, Coded.of(links.corpus, form.b), form
        self._bags, self._grades = asked.texts, asked.grades()
        self._qid = np.repeat(np.arange(len(asked)), links.corpus.n_documents)

    def average_precision(self, networks: Networks) -> float:
        """Return the mean over queries."""
        scores = index_of(networks, self._corpus, self._form, self._coded).scores(self._bags)
        return float(evaluate(self._grades.ravel(), scores.ravel(), self._qid, "AP")["AP"].mean)


def index_of(networks: Networks, corpus: Corpus, form: Form, coded: Coded | None = None) -> Index:
    """Weigh every word of every document by the product of the three functions."""
    coded = coded or Coded.of(corpus, form.b)
    tf, df, length = (network(x) for network, x in zip(networks, coded.inputs, strict=True))
    of_words = df[coded.df]
    weights = np.repeat(of_words.astype(np.float32), corpus.document_frequency)
    weights *= tf.astype(np.float32)[coded.tf]
    weights *= length[coded.length].astype(np.float32)[corpus.postings.docs]

    def weigh(bags: Bags) -> Floats:
        if not form.symmetric:
            return np.asarray(bags.values * of_words[bags.terms])
        lengths, each = totals(bags), sizes(bags.starts)
        of_counts = networks[0](tf_inputs(bags.values, np.repeat(lengths, each), corpus.mean_length, form.b))
        of_texts = networks[2](length_inputs(lengths, corpus.mean_length))
        return of_counts * of_words[bags.terms] * np.repeat(of_texts, each)

    return Index(corpus, weights, weigh)


def _first(task: Task, rng: np.random.Generator) -> Networks:
    """Start near BM25 (k1 = 2), at the scale of the margin."""
    form, inputs, coded = task.form, task.coded.inputs, task.coded
    occurring = Tables(
        np.bincount(coded.tf, minlength=len(inputs.tf)).astype(np.float64),
        # as often as they are met
        np.bincount(coded.df, minlength=len(inputs.df)).astype(np.float64) * np.exp(-inputs.df),
        np.bincount(coded.length, minlength=len(inputs.length)).astype(np.float64),
    )
    tf = np.exp(inputs.tf)
    # lengths count once
    by_length = form.use_length and form.b == 0.0
    held = -np.log(1.5 + 1.5 * np.exp(inputs.length)) if by_length else np.zeros(len(inputs.length))
    targets = Tables(np.log(tf / (tf + 2.0)), 0.5 * np.log(inputs.df + 0.1), held)
    parts = zip(inputs, occurring, targets, strict=True)
    f1, f2, f3 = (Network.near(x, weight + 1e-6, target, form.n_hidden, rng) for x, weight, target in parts)
    gap = task.gap((f1, f2, f3), rng.permutation(task.texts)[:_FIRST_TEXTS])
    return f1, f2.times(1.0 / np.sqrt(gap)) if gap > 0.0 else f2, f3


class _Adam:
    """Adam (Kingma and Ba, 2015), its rate falling to nothing in a straight line."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._means: list[Floats] = []
        self._squares: list[Floats] = []

    def step(self, networks: Networks, slopes: list[Floats], step: int) -> Networks:
        """Return the networks after step number `step`, from 0."""
        first, second = _DECAYS
        if not self._means:
            self._means, self._squares = [0.0 * g for g in slopes], [0.0 * g for g in slopes]
        rate = self._schedule.eta0 * (1.0 - step / self._schedule.n_steps)
        moved = []
        for at, (network, g) in enumerate(zip(networks, slopes, strict=True)):
            self._means[at] = first * self._means[at] + (1 - first) * g
            self._squares[at] = second * self._squares[at] + (1 - second) * g * g
            m = self._means[at] / (1 - first ** (step + 1))
            v = self._squares[at] / (1 - second ** (step + 1))
            moved.append(replace(network, theta=network.theta - rate * m / (np.sqrt(v) + _TINY)))
        return moved[0], moved[1], moved[2]
