"""
Term weights learnt from links
==============================

`LinkLearn` weights a word in a document by three functions: of its frequency, of its rarity, and of the length of the
document. BM25 fixes the shapes of all three. Here documents are synthetic: a few rare words of a topic among many
common words. Documents of a topic are linked. The plots compare the learnt functions with BM25, each divided by its
mean; bars show the distribution of the corpus. Rare words get far more weight than their idf, and length hardly
counts.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank import BM25, LinkLearn
from corank.metrics import evaluate
from corank.text import Corpus, split_links

N, N_TOPICS, N_CHATTER = 800, 40, 300

rng = np.random.default_rng(0)
topic = rng.integers(N_TOPICS, size=N)
# common words follow Zipf's law: from words of every document to words as rare as those of topics
often = 1.0 / np.arange(1, N_CHATTER + 1)
texts = []
for t in topic:
    words = [f"topic{t}x{w}" for w in rng.integers(12, size=rng.integers(2, 6))]
    words += [f"chatter{w}" for w in rng.choice(N_CHATTER, rng.integers(10, 120), p=often / often.sum())]
    texts.append(" ".join(words))
corpus = Corpus.of(texts, language=None)
pairs = [(i, j) for i in range(N) for j in range(i) if topic[i] == topic[j] and rng.random() < 0.3]
training, validation = split_links(corpus, pairs, random_state=0)
model = LinkLearn(b=0.0, random_state=0).fit(training, validation)


def precision(ranker: BM25 | LinkLearn) -> float:
    """Mean AP on documents that were not learnt from, where each is a query for those it is linked with."""
    grades = validation.grades()
    scores = ranker.to_index(validation.corpus).scores(validation.texts)
    return evaluate(grades.ravel(), scores.ravel(), np.repeat(np.arange(len(grades)), grades.shape[1]), "AP")["AP"].mean


print(f"AP of links: BM25 {precision(BM25()):.3f}, LinkLearn {precision(model):.3f}")

part = training.corpus
inputs = (
    np.log(part.postings.values),
    np.log(part.n_documents / part.document_frequency),
    np.log(part.lengths / part.mean_length),
)
grids = [np.linspace(values.min(), values.max(), 100) for values in inputs]
tf, idf, length = grids
k1, b = 1.2, 0.75
shapes = (
    np.exp(tf) / (np.exp(tf) + k1),
    np.log1p(np.exp(idf)),
    # of a word with frequency 1
    1.0 / (1.0 + k1 * (1.0 - b + b * np.exp(length))),
)
f1, f2, f3 = (network(x) for network, x in zip(model.networks_, grids, strict=True))
# two texts that share a word multiply f2 by itself
learnt = (f1, f2**2, f3)

figure = plt.figure(figsize=(10.5, 3.6), layout="constrained")
labels = ("occurrences of the word in the document", "log(documents / documents with the word)", "length / mean length")
for at, panel in enumerate(figure.subplots(1, 3)):
    shown = np.exp if at != 1 else np.asarray
    x = shown(grids[at])
    panel.plot(x, learnt[at] / learnt[at].mean(), label="LinkLearn")
    panel.plot(x, shapes[at] / shapes[at].mean(), "--", label="BM25")
    panel.axhline(0.0, color="0.8", linewidth=0.8)
    counts, edges = np.histogram(inputs[at], bins=20)
    edges = shown(edges)
    below = panel.inset_axes((0.0, 0.0, 1.0, 0.12), sharex=panel)
    below.bar(edges[:-1], counts / counts.max(), width=np.diff(edges), align="edge", color="0.85")
    below.axis("off")
    panel.set_xlabel(labels[at])
    panel.set_title(f"$f_{at + 1}$" if at != 1 else "$f_2^2$")
    panel.set_ylim(bottom=min(panel.get_ylim()[0], -0.4))
    if at == 0:
        panel.set_ylabel("weight / its mean")
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:g}")
        panel.legend(frameon=False, loc="center right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
