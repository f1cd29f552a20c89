"""
Coverage and refusals of `replay` in simulations: estimates of a new ranker from clicks on lists of another.

Lists are drawn from the Plackett–Luce model of the logging ranker's scores, as by PDGD, or shown in their order. Users
follow the position-based model, examining position j with probability 1/j, or the cascade model, stopping after a click
with probability .6. The truth is exact for the new ranker, and from 200,000 lists for the logging ranker. `coverage`
and `difference_coverage` are the shares of 95 % intervals that hold the truth, of the logs that were not refused;
`without_refusal` is the coverage of `estimate_from_clicks`, which does not refuse, where it applies. Every line of
output is one figure as JSON.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import NamedTuple

import numpy as np

from corank.clicks import PositionBias, estimate_from_clicks, replay
from corank.data.io.clicks import ClickLog
from corank.errors import InputError

QUERIES, K, STOP = 20, 5, 0.6
THETA = 1.0 / np.arange(1, K + 1)
METHODS = ("ips", "self_normalised", "doubly_robust")


class Setting(NamedTuple):
    """
    A situation.

    spread: deviation of the logging ranker's scores; large ones leave little randomness. 0 shows lists in a fixed
        order, None in a fixed order with one random swap.
    wrong: whether the logged probabilities are those of another ranker.
    """

    name: str
    users: str
    n_documents: int
    spread: float | None
    n_lists: int
    metric: str
    wrong: bool = False


SETTINGS = (
    Setting("random lists, position model", "position", 10, 1.0, 1000, "DCG@5"),
    Setting("random lists, more documents", "position", 30, 1.0, 3000, "DCG@5"),
    Setting("less random lists", "position", 10, 2.0, 3000, "DCG@5"),
    Setting("hardly random lists", "position", 10, 3.0, 1000, "DCG@5"),
    Setting("fixed lists of all documents, one swap", "position", 5, None, 1000, "DCG@5"),
    Setting("fixed lists of half of the documents", "position", 10, None, 1000, "DCG@5"),
    Setting("fixed lists, no position model", "cascade", 10, 0.0, 1000, "clicks@3"),
    Setting("random lists, first position", "cascade", 8, 1.0, 1000, "clicks@1"),
    Setting("random lists, two positions", "cascade", 8, 1.0, 5000, "clicks@2"),
    Setting("random lists, three positions of 20 documents", "cascade", 20, 1.0, 1000, "clicks@3"),
    Setting("few lists", "cascade", 8, 1.0, 100, "clicks@1"),
    Setting("wrong probabilities", "position", 10, 1.0, 1000, "DCG@5", True),
    Setting("wrong probabilities, no position model", "cascade", 8, 1.0, 3000, "clicks@1", True),
)


def draw(rng: np.random.Generator, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of the Plackett–Luce model and the logarithm of their conditional probabilities."""
    shown = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)[:, :k]
    return shown, conditional(scores, shown)


def conditional(scores: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Return log π of each row shown, given those above it."""
    left, lists = np.exp(scores), np.arange(len(scores))
    found = np.empty(shown.shape)
    for j in range(shown.shape[1]):
        found[:, j] = np.log(left[lists, shown[:, j]] / left.sum(axis=1))
        left[lists, shown[:, j]] = 0.0
    return np.minimum(found, 0.0)


class World:
    """Queries with relevance, the logging ranker and the new one."""

    def __init__(self, setting: Setting) -> None:
        rng, n = np.random.default_rng(1), setting.n_documents
        self.setting = setting
        self.r = rng.beta(0.5, 1.5, size=(QUERIES, n))
        spread = setting.spread or 1.0
        self.old = spread * rng.normal(size=(QUERIES, n))
        self.new = 0.5 * self.old + 0.5 * spread * (self.r - self.r.mean()) / self.r.std()
        self.qid, self.docids = np.repeat(np.arange(QUERIES), n), np.tile(np.arange(n), QUERIES)
        self.bias = PositionBias(THETA, "power") if setting.users == "position" else None
        self.k = int(setting.metric.split("@")[1])

    def lists(self, rng: np.random.Generator, n_lists: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return query, documents and log-propensities of lists."""
        query = rng.integers(QUERIES, size=n_lists)
        if self.setting.spread:
            shown, log_propensity = draw(rng, self.old[query], K)
            if self.setting.wrong:
                log_propensity = conditional(0.3 * self.old[query], shown)
            return query, shown, log_propensity
        shown = np.argsort(-self.old[query], axis=1)[:, :K]
        if self.setting.spread is None:
            other, lists = rng.integers(K, size=n_lists), np.arange(n_lists)
            shown[lists, 0], shown[lists, other] = shown[lists, other], shown[lists, 0].copy()
        return query, shown, None

    def clicks(self, rng: np.random.Generator, wanted: np.ndarray) -> np.ndarray:
        """Draw clicks on lists of documents that are wanted with these probabilities."""
        attracted = rng.random(wanted.shape) < wanted
        if self.bias is not None:
            return attracted & (rng.random(wanted.shape) < THETA)
        stopped = np.cumsum(attracted & (rng.random(wanted.shape) < STOP), axis=1)
        return attracted & (np.column_stack([np.zeros(len(wanted)), stopped[:, :-1]]) == 0)

    def log(self, rng: np.random.Generator, n_lists: int) -> ClickLog:
        """Show lists and draw clicks."""
        query, shown, log_propensity = self.lists(rng, n_lists)
        clicked = self.clicks(rng, self.r[query[:, None], shown])
        return ClickLog.of(
            np.repeat(query, K), shown.ravel(), np.tile(np.arange(1, K + 1), n_lists), clicked.ravel(),
            impression=np.repeat(np.arange(n_lists), K),
            log_propensity=None if log_propensity is None else log_propensity.ravel(),
        )  # fmt: skip

    def truth(self, method: str) -> tuple[float, float]:
        """Return the value of the new ranker, and of the lists shown."""
        order = np.argsort(-self.new, axis=1, kind="stable")
        query, shown, _ = self.lists(np.random.default_rng(5), 200_000)
        of_new, of_old = np.take_along_axis(self.r, order, axis=1), self.r[query[:, None], shown]
        if self.bias is None:
            return self._cascade(of_new), self._cascade(of_old)
        discount = 1.0 / np.log2(np.arange(2, self.k + 2))
        new, old = (of_new[:, : self.k] @ discount).mean(), (of_old[:, : self.k] @ discount).mean()
        if method == "self_normalised":
            return float(new / self.r.sum(axis=1).mean()), float(old / of_old.sum(axis=1).mean())
        return float(new), float(old)

    def _cascade(self, wanted: np.ndarray) -> float:
        reached = np.cumprod(1.0 - STOP * wanted, axis=1)
        reached = np.column_stack([np.ones(len(wanted)), reached[:, :-1]])
        return float((reached * wanted)[:, : self.k].sum(axis=1).mean())


def run(setting: Setting, method: str, n_logs: int, seed: int) -> dict[str, object]:
    """Replay logs of one setting."""
    world, rng = World(setting), np.random.default_rng(seed)
    truth, old = world.truth(method)
    found, plain, reasons = [], [], Counter()
    for _ in range(n_logs):
        log = world.log(rng, setting.n_lists)
        given = (log, world.new.ravel(), world.qid, world.docids)
        options = {"metric": setting.metric, "method": method, "bias": world.bias}
        if world.bias is not None:
            one = estimate_from_clicks(*given, **options, clip=0.01)
            plain.append(one.low <= truth <= one.high)
        try:
            found.append(replay(*given, **options))
        except InputError as error:
            reasons[" ".join(word for word in str(error).split()[4:] if word.isalpha())[:40]] += 1
    inside = [one.new.low <= truth <= one.new.high for one in found]
    paired = [one.difference.low <= truth - old <= one.difference.high for one in found]
    return {
        "setting": setting.name, "method": method, "true_new": round(truth, 3), "true_old": round(old, 3),
        "mean": _mean([one.new.value for one in found]), "width": _mean([one.new.high - one.new.low for one in found]),
        "coverage": _mean(inside), "difference_coverage": _mean(paired), "logs": n_logs,
        "refused": n_logs - len(found), "without_refusal": _mean(plain),
        "effective": _mean([one.new.n_effective for one in found]), "reasons": dict(reasons.most_common(2)),
    }  # fmt: skip


def _mean(values: list[float]) -> float | None:
    return round(float(np.mean(values)), 3) if values else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--only", default="", help="settings whose names contain this text")
    chosen = parser.parse_args()
    for setting in SETTINGS:
        for method in METHODS if chosen.only in setting.name else ():
            print(json.dumps({"bench": "replay", **run(setting, method, chosen.logs, seed=0)}), flush=True)
