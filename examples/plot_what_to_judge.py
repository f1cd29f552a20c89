"""
What to judge next
==================

Of 258 abstracts, 15 are relevant. Five are judged; then ten more at a time, chosen by three strategies: the most
uncertain, the highest scores, and random. Half of the abstracts are never judged; after each step, the ranker is
evaluated on them.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from corank import RankRLS, evaluate, suggest
from corank_lab.records import load_review

records = load_review()
texts = [f"{title} {abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True)]
X = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
y = records.labels
# rows of unit length need no scaling
model = RankRLS(kernel="cosine", scale=False)

# %%
# In practice it is one call: unjudged rows are NaN, and `suggest` returns the rows to judge.
judged = np.full(len(y), np.nan)
judged[:5] = y[:5]
judged[int(np.argmax(y))] = 1.0
model.fit(X, judged, qid=np.zeros(len(y)))
for row in suggest(model, X, judged, n=3):
    print(records.titles[row])

# %%
# Replay the review: judgements are revealed step by step, from five starts for each strategy.
N_STEPS, N_STARTS = 6, 5
figure, panel = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for strategy in ("uncertain", "top", "random"):
    values = np.empty((N_STARTS, N_STEPS + 1))
    for start in range(N_STARTS):
        rng = np.random.default_rng(start)
        order = rng.permutation(len(y))
        pool, test = order[: len(y) // 2], order[len(y) // 2 :]
        relevant = pool[y[pool] > 0]
        revealed = np.concatenate([relevant[:1], pool[y[pool] == 0][:4]])
        for step in range(N_STEPS + 1):
            known = np.full(len(y), np.nan)
            known[revealed] = y[revealed]
            model.fit(X, known, qid=np.zeros(len(y)))
            values[start, step] = evaluate(y[test], model.predict(X[test]), metrics="AP")["AP"].mean
            chosen = suggest(model, X[pool], known[pool], n=10, strategy=strategy, random_state=start)
            revealed = np.concatenate([revealed, pool[chosen]])
    panel.plot(5 + 10 * np.arange(N_STEPS + 1), values.mean(axis=0), marker="o", label=strategy)
panel.set(xlabel="judged abstracts", ylabel="AP of the abstracts that are never judged")
panel.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
