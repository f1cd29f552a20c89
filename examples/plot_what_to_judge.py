"""
What to judge next
==================

Of 258 abstracts, 15 are relevant. Five are judged; then ten more at a time, chosen by three strategies: the most
uncertain, the highest scores, and random. `judging_curve` replays a fully judged collection, here the review that comes
with corank. Half of the abstracts are never judged; after each step, the ranker is evaluated on them. With
``test="all"`` the judged rows count too, and the advantage of `uncertain` and `top` over `random` is several times as
large: they find the relevant rows, and the ranker remembers them.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from corank import RankRLS, suggest
from corank.base import judging_curve
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
model.fit(X, judged)
for row in suggest(model, X, judged, n=3):
    print(records.titles[row])

# %%
# The learning curve of each strategy, five starts each:
curve = judging_curve(model, X, y, strategy=("uncertain", "top", "random"), steps=6, n_repeats=5, random_state=0)
figure, panel = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
curve.plot(panel)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
