"""
Find nearly all relevant records while reading few
==================================================

A systematic review that comes with corank, 258 records of which 15 are relevant, is screened from ten starts. Each
start has one relevant and one irrelevant record. Then the record that is most likely relevant is read, its answer is
learnt, and so on. Lines show the share of relevant records found against the number of records read. Dots show where
two stopping rules, which cannot see the truth, estimate that 95 % are found.

`make demo` prints the same figures; the guide about screening explains the assumptions of the rules.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from corank_lab.records import load_review
from corank_lab.screening import simulate

records = load_review()
careful = simulate(records, starts=10)
cheap = simulate(records, starts=10, rule="consecutive")

# %%
# On average over the ten starts:
n, n_relevant = len(careful[0].found), int(careful[0].found.sum())
wanted = int(np.ceil(0.95 * n_relevant))
for name, read in (
    ("in random order, until 95 % are found", wanted * (n + 1) / (n_relevant + 1)),
    ("by corank, until 95 % are found", np.mean([replay.at(0.95) for replay in careful])),
    ("by corank, until the cheap rule stops", np.mean([replay.stop for replay in cheap])),
    ("by corank, until the careful rule stops", np.mean([replay.stop for replay in careful])),
):
    print(f"{name:40} {read:4.0f} of {n} records read")

# %%
# And one by one:
figure, panel = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
read = np.arange(n + 1)
panel.plot([0, n], [0, 1], color="0.6", linestyle="--", linewidth=1, label="in random order")
for at, replay in enumerate(careful):
    recall = np.r_[0.0, replay.curve]
    panel.step(read, recall, where="post", color="C0", alpha=0.45, label="by corank, ten starts" if at == 0 else None)
for color, replays, name in (("C1", cheap, "cheap"), ("C2", careful, "careful")):
    stops = np.array([replay.stop for replay in replays])
    found = [np.r_[0.0, replay.curve][stop] for replay, stop in zip(replays, stops, strict=True)]
    panel.plot(stops, found, "o", color=color, markersize=5, label=f"the {name} rule stops")
panel.set(xlabel=f"records read, of {n}", ylabel="relevant records found", xlim=(0, n), ylim=(0, 1.03))
panel.yaxis.set_major_formatter("{x:.0%}")
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False, loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=130)
else:
    plt.show()
