"""One large collection: all stories of Reuters-21578, with each topic as the relevant one in turn."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.tables import Cell, ReportTable
from corank_lab.records.records import Records
from corank_lab.screening import make_views
from corank_lab.screening.views import Views
from experiments.datasets.reuters import read_modapte
from experiments.options import ExperimentOptions
from experiments.screening.order import CORANK, RANDOM, SVM, WAYS, Collection, flags, read_in_order
from experiments.significance import p_text

DEPTHS = (100, 300)
KINDS = ("frequent", "rarer")
N_TOPICS = 20

Floats = NDArray[np.float64]


class Pool:
    """
    Replays on the stories; each is saved.

    options: quick runs use three topics of each kind, and read 100 stories.
    """

    def __init__(self, options: ExperimentOptions) -> None:
        self.options = options
        self.depths = DEPTHS[:1] if options.quick else DEPTHS
        stories = read_modapte()
        counts = Counter(topic for topics in stories.topics for topic in topics)
        names, n = [name for name, _ in counts.most_common()], 3 if options.quick else N_TOPICS
        self.topics = dict.fromkeys(names[:n], KINDS[0]) | dict.fromkeys(names[2 * n : 3 * n], KINDS[1])
        options.expect(len(self.topics) * len(WAYS))

    def depth_table(self) -> ReportTable:
        """Share of the possible finds after some reading."""
        rows: list[tuple[Cell, ...]] = []
        for kind in KINDS:
            for depth in self.depths:
                shares = [self.shares(way, kind, depth) for way in WAYS]
                ahead, behind = (int(np.count_nonzero(sign * (shares[2] - shares[1]) > 0)) for sign in (1, -1))
                rows.append((kind, depth, *(float(of_way.mean()) for of_way in shares), ahead, behind))
        sizes = [int(self._about(name).sum()) for name in self.topics]
        half = len(sizes) // 2
        return ReportTable(
            f"Reuters-21578 as one collection of {len(read_modapte().texts):,} stories",
            ("topics", "read", *WAYS, "ahead", "behind"),
            tuple(rows),
            digits=3,
            note=f"Relevant stories found, as a share of the maximum possible by then; mean of {half} topics per row "
            f"({sizes[half - 1]} to {sizes[0]:,} stories, and {sizes[-1]} to {sizes[half]}), one start each; ahead and "
            "behind: number of topics on which corank is ahead of the linear SVM, and behind.",
        )

    def topic_table(self) -> ReportTable:
        """One row per topic."""
        depth = self.depths[-1]
        rows: list[tuple[Cell, ...]] = []
        for name in self.topics:
            ours, svm = self._outcome(name, CORANK), self._outcome(name, SVM)
            shares = [self._share(name, way, depth) for way in (RANDOM, SVM, CORANK)]
            rows.append((name, int(self._about(name).sum()), *shares, f"{svm['cpu'] / ours['cpu']:.1f}"))
        return ReportTable(
            f"Found after {depth} stories, topic by topic",
            ("topic", "stories", *WAYS, "linear SVM's time / corank's"),
            tuple(rows),
            digits=3,
        )

    def findings(self) -> list[str]:
        """Test corank against the linear SVM over the topics."""
        said = []
        for depth in self.depths:
            gain = np.concatenate([self.shares(CORANK, kind, depth) - self.shares(SVM, kind, depth) for kind in KINDS])
            said.append(
                f"After {depth} stories of the collection, corank minus the linear SVM is {gain.mean():+.4f} over "
                f"{len(gain)} topics, Wilcoxon {p_text(gain)}."
            )
        return said

    def shares(self, way: str, kind: str, depth: int) -> Floats:
        """Return one share for each topic of a kind."""
        return np.array([self._share(name, way, depth) for name, of in self.topics.items() if of == kind])

    def _share(self, name: str, way: str, depth: int) -> float:
        found = flags(self._outcome(name, way)["found"])
        return float(found[:depth].sum() / min(depth, int(self._about(name).sum()) - 1))

    def _about(self, name: str) -> NDArray[np.bool_]:
        return np.asarray(read_modapte().about(name) > 0)

    def _outcome(self, name: str, way: str) -> dict[str, Any]:
        n_read, seed = self.depths[-1], list(self.topics).index(name)
        key = {"experiment": "screening", "topic": name, "what": way, "start": seed, "read": n_read}
        found: dict[str, Any] = self.options.result(
            key, lambda: read_in_order(way, Collection(*_prepared(), self._about(name)), seed, n_read)
        )
        return found


@cache
def _prepared() -> tuple[Records, Views]:
    texts = read_modapte().texts
    records = Records([str(at) for at in range(len(texts))], texts, [""] * len(texts))
    return records, make_views(records)
