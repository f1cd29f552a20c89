"""
The rule of AutoRanker's average, replayed over stored scores of its candidates.

    python benchmarks/bench_auto_choice.py scores --draws 0 5    # store what the folder does not hold, and compare
    python benchmarks/bench_auto_choice.py scores --collections  # each collection beside its best single method
    python benchmarks/bench_auto_choice.py scores --unjudged     # what unjudged rows of judged queries count as

For each collection, number of judged queries and draw of `auto_collections.split`, a file of the folder holds the
scores that every candidate gives to left-out rows and to test rows. With --more, it also holds least squares on columns
standardised inside queries, on columns together with their ranks, and with the mean or the best column as prior. A
rule of the average then costs milliseconds. LightGBM is stored with its scores of test rows only.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from auto_collections import DEVELOPMENT, JUDGING, Rows, collection, split
from bench_auto import lightgbm_fit
from corank import QueryScaler
from corank.base.priors import prior_slope
from corank.data.columns import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import evaluate
from corank.models.auto.auto_ranker import AutoRanker, Average
from corank.models.auto.averaging import choose_weights
from corank.models.auto.candidates import CANDIDATES, column_correlations, ranks_inside
from corank.models.auto.left_out import ValidationFolds
from corank.models.auto.trials import Trial, Trials
from corank.models.rls import RankRLS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SIZES = ("5", "10", "20", "40", "all")
BY_RANKS = tuple(name for name, candidate in CANDIDATES.items() if candidate.by_ranks)
FORMER = (
    "linear", "linear-strong", "linear-strongest", "mean", "column", "gaussian", "gaussian-weak", "gaussian-weakest",
    "laplacian", "laplacian-weak", "logistic", "trees",
)  # fmt: skip


def standardised(X: Floats, qid: Integers) -> Floats:
    return np.asarray(QueryScaler("zscore").fit_transform(X, qid=qid))


def with_ranks(X: Floats, qid: Integers) -> Floats:
    return np.hstack([X, ranks_inside(X, Queries.of(qid, len(X)))])


VIEWS: dict[str, tuple[Callable[[Floats, Integers], Floats], tuple[str, ...]]] = {
    "zscore": (standardised, ("linear", "linear-strong", "gaussian")),
    "both": (with_ranks, ("linear", "linear-strong", "gaussian")),
}


def prior_weights(kind: str, data: RankingData) -> Floats:
    """Return the weights of columns of a prior: their mean, or the column that agrees best with the grades."""
    if kind == "mean":
        return column_factors(data)
    correlations, weights = column_correlations(data), np.zeros(data.n_features)
    best = int(np.argmax(np.abs(correlations)))
    weights[best] = np.sign(correlations[best]) or 1.0
    return weights


def fit_on_prior(kind: str, alpha: float, data: RankingData) -> Callable[[Floats], Floats]:
    """Return the scores of least squares that shrink to a prior of learnt scale."""
    weights = prior_weights(kind, data)
    prior = np.asarray(data.X) @ weights
    slope = prior_slope(data, prior)
    model = RankRLS(alpha).fit(replace(data, prior=slope * prior))
    return lambda X: np.asarray(model.predict(X, prior=slope * (X @ weights)))


def store(name: str, size: str, draw: int, path: Path, more: bool) -> None:
    train, test = split(collection(name), None if size == "all" else int(size), draw)
    if size != "all" and len(np.unique(train.qid)) < int(size):
        return
    data = RankingData.of(train.X, train.y, train.qid)
    left_out = ValidationFolds.of(data, None, np.random.default_rng(draw))
    assert left_out is not None
    scores: dict[str, tuple[Floats, Floats]] = {}

    def add(view: str, work: Trials, names: tuple[str, ...], T: Floats) -> None:
        for member in names:
            candidate = CANDIDATES[member]
            seen = work.seen_by(candidate)
            inside = seen._left_out_scores(candidate, lambda *_: None)
            model = seen.fit_all(Trial(candidate, inside, 0.0), lambda *_: None)[0]
            rows = ranks_inside(T, Queries.of(test.qid, len(T))) if candidate.by_ranks else T
            scores[view + member] = inside, model.predict(rows)

    work = Trials(data, left_out, draw, None)
    add("", work, tuple(CANDIDATES), test.X)
    for view, (change, members) in VIEWS.items() if more else ():
        X = change(train.X, train.qid)
        changed = replace(left_out, data=replace(left_out.data, X=X))
        add(f"{view}:", Trials(replace(data, X=X), changed, draw, None), members, change(test.X, test.qid))
    for kind in ("mean", "column") if more else ():
        inside = np.empty(len(left_out.rows))
        for part, out in left_out.parts():
            inside[out] = fit_on_prior(kind, work._alpha, part)(train.X[left_out.rows[out]])
        scores[f"on {kind}"] = inside, fit_on_prior(kind, work._alpha, data)(test.X)
    F, T = (np.column_stack(part) for part in zip(*scores.values(), strict=True))
    np.savez_compressed(
        path, names=list(scores), F=F, T=T, lightgbm=lightgbm_fit(train, draw).predict(test.X),
        y=train.y[left_out.rows], lists=left_out.lists, folds=left_out.folds, test_y=test.y,
        test_qid=test.qid, metric=left_out.metric,
    )  # fmt: skip


@dataclass(eq=False)
class Stored:
    """The scores of one draw."""

    path: Path

    def __post_init__(self) -> None:
        parts = np.load(self.path)
        self.collection, self.size, self.draw = self.path.stem.split(".")
        self.names = parts["names"].tolist()
        y, lists = parts["y"].astype(np.float64), parts["lists"]
        data = RankingData.of(np.zeros((len(y), 1)), y, lists)
        rows = np.arange(len(y))
        self.left_out = ValidationFolds(data, str(parts["metric"]), rows, lists, parts["folds"])
        self.spreads = np.array([self.left_out.spread(f) for f in parts["F"].T])
        self.F, self.T = parts["F"] / self.spreads, parts["T"] / self.spreads
        self.lightgbm, self.test_y, self.test_qid = parts["lightgbm"], parts["test_y"], parts["test_qid"]

    def test(self, scores: Floats) -> float:
        return float(evaluate(self.test_y, scores, self.test_qid, "nDCG@10")["nDCG@10"].mean)

    def numbers(self, names: tuple[str, ...]) -> Integers:
        return np.array([self.names.index(name) for name in names])

    def of_group(self, names: tuple[str, ...]) -> float:
        """Return nDCG@10 of the average of some candidates."""
        group = self.numbers(names)
        weights = choose_weights(self.F[:, group], self.left_out)
        return self.test(self.T[:, group] @ weights)

    def chosen(self) -> float:
        """Return nDCG@10 of AutoRanker's rule, by which ranks join if left-out queries speak for them."""
        names = tuple(name for name in CANDIDATES if name != "logistic")
        plain = self.numbers(tuple(name for name in names if name not in BY_RANKS))
        average = Average(self.F, self.left_out)
        return self.test(self.T @ average.choose(plain, self.numbers(names))[0])

    @cached_property
    def singles(self) -> dict[str, float]:
        return {name: self.test(self.T[:, self.names.index(name)]) for name in SINGLE}


# methods that a user would pick
SINGLE = ("linear", "gaussian", "laplacian", "logistic", "trees", "mean", "column", "ranks")
NOW = tuple(name for name in CANDIDATES if name not in ("logistic", *BY_RANKS))
RULES: dict[str, Callable[[Stored], float]] = {
    "twelve candidates, as before": lambda draw: draw.of_group(FORMER),
    "weaker penalties, no logistic pairs": lambda draw: draw.of_group(NOW),
    "**and ranks where left-out queries speak for them**": Stored.chosen,
    "and ranks always": lambda draw: draw.of_group((*NOW, *BY_RANKS)),
    "and logistic pairs": lambda draw: draw.of_group((*NOW, "logistic")),
    "LightGBM": lambda draw: draw.test(draw.lightgbm),
    "`RankRLS()`": lambda draw: draw.singles["linear"],
}
MORE: dict[str, Callable[[Stored], float]] = {
    "and columns standardised inside queries": lambda draw: draw.of_group(
        (*NOW, *(f"zscore:{name}" for name in VIEWS["zscore"][1]))
    ),
    "and columns with their ranks": lambda draw: draw.of_group((*NOW, *(f"both:{name}" for name in VIEWS["both"][1]))),
    "and the mean or a column as prior": lambda draw: draw.of_group((*NOW, "on mean", "on column")),
}

Values = dict[str, dict[str, float]]


def means(draws: list[Stored], rule: Callable[[Stored], float]) -> Values:
    """Return the mean over draws, by size and collection."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for draw in draws:
        values[draw.size][draw.collection].append(rule(draw))
    return {size: {name: float(np.mean(part)) for name, part in own.items()} for size, own in values.items()}


def compare(draws: list[Stored], rules: dict[str, Callable[[Stored], float]]) -> None:
    """Print the mean over collections of each rule, its difference to the first, and leave-collection-out choices."""
    sizes = [size for size in SIZES if any(draw.size == size for draw in draws)]
    table = {name: means(draws, rule) for name, rule in rules.items()}
    first = next(iter(table.values()))
    print(f"{len(draws)} draws\n\n| rule | {' | '.join(sizes)} |\n|---|{'---:|' * len(sizes)}")
    for name, values in table.items():
        cells = []
        for size in sizes:
            gains = np.array([values[size][one] - first[size][one] for one in first[size]])
            error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
            cells.append(f"{np.mean(list(values[size].values())):.4f} ({gains.mean():+.4f} ± {error:.4f})")
        print(f"| {name} | {' | '.join(cells)} |")
    ours = [name for name in table if name not in ("LightGBM", "`RankRLS()`")]
    names = sorted({name for size in sizes for name in first[size]})
    gains_of = {
        (name, rule): np.mean([table[rule][size][name] - first[size][name] for size in sizes if name in first[size]])
        for name in names
        for rule in ours
    }
    cells = []
    for size in sizes:
        gains = []
        for left in first[size]:
            best = max(ours, key=lambda rule: np.mean([gains_of[name, rule] for name in names if name != left]))
            gains.append(table[best][size][left] - first[size][left])
        cells.append(f"{np.mean(gains):+.4f}")
    print(f"| rule chosen without the collection | {' | '.join(cells)} |")


def collections(draws: list[Stored]) -> None:
    """
    Print the rule beside LightGBM and the best of eight candidates, for each collection and size.

    The best in hindsight is the best by luck, too. The best of other draws is chosen on each half of the draws and
    judged on the other half, as is the rule beside it.
    """
    print("| collection | judged | AutoRanker | best in hindsight | | best of other draws | difference | LightGBM |")
    print("|---|---|---:|---|---:|---:|---:|---:|")
    gaps: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for size in (size for size in SIZES if any(draw.size == size for draw in draws)):
        for name in sorted({draw.collection for draw in draws if draw.size == size}):
            part = [draw for draw in draws if (draw.collection, draw.size) == (name, size)]
            ours = np.array([draw.chosen() for draw in part])
            theirs = np.array([[draw.singles[single] for single in SINGLE] for draw in part])
            best = int(np.argmax(theirs.mean(axis=0)))
            halves = [np.arange(len(part)) % 2 == half for half in (0, 1)]
            honest = [theirs[half][:, np.argmax(theirs[~half].mean(axis=0))].mean() for half in halves if (~half).any()]
            gap = ours.mean() - np.mean(honest)
            gaps[size].append((ours.mean() - theirs[:, best].mean(), gap))
            trees = np.mean([draw.test(draw.lightgbm) for draw in part])
            print(f"| {name} | {size} | {ours.mean():.3f} | {SINGLE[best]} | {theirs[:, best].mean():.3f} "
                  f"| {np.mean(honest):.3f} | {gap:+.3f} | {trees:.3f} |")  # fmt: skip
    for size, pairs in gaps.items():
        hindsight, other = np.array(pairs).T
        print(
            f"{size}: more than .005 below the best of {len(SINGLE)} in {(other < -0.005).sum()} of {len(other)} "
            f"collections, mean {other.mean():+.4f}, least {other.min():+.4f}; in hindsight in "
            f"{(hindsight < -0.005).sum()}, mean {hindsight.mean():+.4f}"
        )


def judged_part(kind: str, rows: Rows, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark eight rows of each query: the first of one or of two columns, of a column with noise, or random ones."""
    known = rows.known or (int(rng.integers(rows.X.shape[1])),)
    first, second = rows.X[:, known[0]], rows.X[:, known[-1] if len(known) > 1 else (known[0] + 3) % rows.X.shape[1]]
    result = np.zeros(len(rows.y), dtype=bool)
    for q in np.unique(rows.qid):
        at = np.flatnonzero(rows.qid == q)
        places = [rankdata(-column[at], method="ordinal") for column in (first, second)]
        noise = rng.normal(size=len(at))
        by = {
            "column": places[0], "two": np.minimum(*places), "random": noise,
            "noisy": noise - first[at] / (first[at].std() + 1e-9),
        }[kind]  # fmt: skip
        result[at[np.argsort(by, kind="stable")[:8]]] = True
    return result


def unjudged(draws: range) -> None:
    """Print nDCG@10 of whole test queries, by what unjudged rows of the training queries count as."""
    treatments = ("missing", "irrelevant", "pooled", "auto")
    names = [name for name in (*DEVELOPMENT, *JUDGING) if len(np.unique(collection(name).qid)) >= 40]
    cases = [(draw, size, name, kind) for draw in draws for size in (20, 8) for name in names for kind in KINDS]
    values = defaultdict(list)
    for draw, size, name, kind in cases:
        train, test = split(collection(name), size, draw)
        y = np.where(judged_part(kind, train, np.random.default_rng(draw)), train.y, np.nan)
        row = []
        for treatment in treatments:
            model = AutoRanker(unjudged=treatment, candidates=["linear", "linear-strong", "gaussian"], random_state=0)
            try:
                scores = model.fit(train.X, y, qid=train.qid).predict(test.X)
            except InputError:  # no relevant row, or no pair
                break
            row.append(float(evaluate(test.y, scores, test.qid, "nDCG@10")["nDCG@10"].mean))
        if len(row) == len(treatments):
            values[kind].append(row)
    print(f"| judged | cases | {' | '.join(treatments)} | best of three |\n|---|---:|---:|---:|---:|---:|---:|")
    for kind in (*KINDS, "all"):
        part = np.array(values[kind] if kind in values else np.concatenate(list(values.values())))
        means = [*part.mean(axis=0), part[:, :3].max(axis=1).mean()]
        print(f"| {kind} | {len(part)} | {' | '.join(f'{mean:.4f}' for mean in means)} |")


KINDS = ("column", "two", "noisy", "random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, help="folder of stored scores")
    parser.add_argument("--draws", type=int, nargs=2, default=(0, 5), help="first draw, and one past the last")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), help="numbers of judged queries")
    parser.add_argument("--more", action="store_true", help="also store and compare what was tried without gain")
    parser.add_argument("--unjudged", action="store_true", help="compare treatments of unjudged rows instead")
    parser.add_argument("--collections", action="store_true", help="print a row for each collection instead")
    chosen = parser.parse_args()
    if chosen.unjudged:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            unjudged(range(*chosen.draws))
        return
    chosen.scores.mkdir(exist_ok=True)
    draws = []
    for draw in range(*chosen.draws):
        for size in chosen.sizes:
            for name in [*DEVELOPMENT, *JUDGING]:
                path = chosen.scores / f"{name.replace(' ', '_')}.{size}.{draw}.npz"
                if not path.exists():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        store(name, size, draw, path, chosen.more)
                if path.exists():
                    draws.append(Stored(path))
    if chosen.collections:
        collections(draws)
    else:
        compare(draws, {**RULES, **(MORE if chosen.more else {})})


if __name__ == "__main__":
    main()
