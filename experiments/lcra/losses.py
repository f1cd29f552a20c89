"""
Agreement of views with the hinge and logistic losses, with tuned and untuned penalties, and with natural views.

The paper equates its baseline with pairwise Pegasos (the hinge loss). Every method takes stochastic steps here. Views
are random halves of the columns, or parts of a document that are roughly independent given its grade: title, abstract
and references of a record; words and links of an article.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from corank.comparison.report import Report
from corank.data.ranking import RankingData
from corank.metrics import evaluate, wilcoxon
from corank.models.linear import LCRA, SPD
from corank.tables import ReportTable
from corank_lab.records.records import read_records
from experiments.datasets.catalog import dataset
from experiments.datasets.wikispeedia import read_articles, read_links
from experiments.few_judgements.problems import reuters, wikispeedia
from experiments.lcra.problems import TEST_SHARE, ProblemSource, SplitRepeat, problems, random_halves
from experiments.lcra.trial import draw_repeat
from experiments.options import ExperimentOptions
from experiments.screening.reviews import TITLES
from experiments.significance import p_text

LOSSES = ("squared", "logistic", "hinge")
ALPHAS = (1e-3, 1e-2, 1e-1)
COUPLINGS = (0.1, 1.0)
FRACTIONS = (0.05, 0.2)
N_FOLDS = 3
N_STEPS = 20_000
GRIDS: dict[str, list[tuple[float, float]]] = {
    "SPD": [(alpha, 0.0) for alpha in ALPHAS],
    "SPD-MV": [(alpha, 0.0) for alpha in ALPHAS],
    "LCRA": [(alpha, coupling) for alpha in ALPHAS for coupling in COUPLINGS],
}
UNTUNED = 0.1
"""Coupling of LCRA without tuning; alpha is then chosen by corank's rule."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Outcome = dict[str, list[float]]
"""Method to its test values, tuned and untuned."""


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 10 repeats by default; quick runs make 2.
    Returns: SPD, SPD-MV and LCRA for every loss, problem and scored fraction, with tuned and untuned penalties.
    """
    repeats = options.repeats or (2 if options.quick else 10)
    cells = [(loss, p, fraction) for p in loss_problems() for fraction in FRACTIONS for loss in LOSSES]
    options.expect(len(cells) * repeats)
    rows: list[tuple[str | float, ...]] = []
    better = worse = 0
    for loss, problem, fraction in cells:
        key = {"experiment": "lcra-losses", "loss": loss, "problem": problem.name, "fraction": fraction}
        found: list[Outcome] = [
            options.result(
                {**key, "repeat": repeat, "steps": N_STEPS},
                partial(_outcome, problem, loss, fraction, repeat, options.seed),
            )
            for repeat in range(repeats)
        ]
        values = {method: np.array([outcome[method] for outcome in found]) for method in GRIDS}
        for at, how in enumerate(("tuned", "untuned")):
            means = {method: float(of_method[:, at].mean()) for method, of_method in values.items()}
            best = max(("SPD", "SPD-MV"), key=lambda method: means[method])
            gain = values["LCRA"][:, at] - values[best][:, at]
            figures: tuple[str | float, ...] = (*means.values(), float(gain.mean()), p_text(gain, before=""))
            rows.append((problem.name, f"{fraction:.0%}", loss, how, *figures))
            is_clear = repeats >= 6 and wilcoxon(gain) < 0.05
            better, worse = better + (is_clear and gain.mean() > 0), worse + (is_clear and gain.mean() < 0)
    table = ReportTable(
        f"AP over {repeats} repeats",
        ("problem", "scored", "loss", "alpha", *GRIDS, "gain", "p"),
        tuple(rows),
        note=f"Tuned: alpha one of {', '.join(f'{a:g}' for a in ALPHAS)}, coupling one of "
        f"{', '.join(f'{c:g}' for c in COUPLINGS)}, by {N_FOLDS}-fold cross-validation on the scored rows. Untuned: "
        f"corank's rule for alpha, coupling {UNTUNED:g}. The gain is LCRA against the better of the other two; p is "
        "Wilcoxon's over repeats, which share rows. If no pair is scored, one row of each grade is.",
    )
    listed = tuple((problem.name, problem.about) for problem in loss_problems())
    return Report(
        "Agreement of views: other losses and natural views",
        f"{N_STEPS:,} stochastic steps, 70 % of the queries or documents to train on and 30 % to test on, {repeats} "
        "repeats. A repeat draws a topic, category or review anew.",
        (ReportTable("Problems", ("problem", "one repeat"), listed), table),
        (f"Of {len(rows)} comparisons, LCRA is better in {better} and worse in {worse} with p below .05.",),
    )


def _outcome(problem: ProblemSource, loss: str, fraction: float, repeat: int, seed: int) -> Outcome:
    draw, y = draw_repeat(problem, fraction, repeat, seed)
    X, qid = draw.X[draw.train], draw.qid[draw.train]
    if RankingData.of(X, y, qid).n_pairs == 0:  # a rare topic: one row of each grade is scored
        truth = draw.y[draw.train]
        for grade in np.unique(truth):
            y[np.flatnonzero(truth == grade)[0]] = grade
    fold = _folds(y, qid, np.random.default_rng([seed, repeat]))

    def fit(method: str, scores: Floats, alpha: float | None, coupling: float) -> SPD | LCRA:
        how: dict[str, Any] = {
            "loss": loss, "alpha": alpha, "scale": False, "solver": "sgd", "n_steps": N_STEPS, "random_state": repeat,
        }  # fmt: skip
        model = SPD(**how) if method == "SPD" else LCRA(views=draw.views, coupling=coupling, **how)
        return model.fit(X, scores, qid=qid)

    def test(model: SPD | LCRA) -> float:
        return problem.measure(draw, model.predict(draw.X[draw.test]))

    found: Outcome = {}
    for method, grid in GRIDS.items():
        errors = []
        for point in grid:
            scores = np.full(len(y), np.nan)
            for number in range(N_FOLDS):
                held, rest = np.flatnonzero(fold == number), np.where(fold == number, np.nan, y)
                # a fold may leave no pair to learn from
                has_pairs = RankingData.of(X, rest, qid).n_pairs > 0
                scores[held] = fit(method, rest, *point).predict(X[held]) if has_pairs else 0.0
            scored = fold >= 0
            # pairs of different folds are compared too: the scale of scores is that of one problem
            error = evaluate(y[scored], scores[scored], qid[scored], "disagreement", n_jobs=1)["disagreement"].micro
            errors.append(0.5 if error is None or np.isnan(error) else error)
        chosen = grid[int(np.argmin(errors))]
        found[method] = [
            test(fit(method, y, *chosen)),
            test(fit(method, y, None, UNTUNED if method == "LCRA" else 0.0)),
        ]
    return found


def _folds(y: Floats, qid: NDArray[Any], rng: np.random.Generator) -> Ints:
    """Deal scored queries to folds, or the scored rows of a single query, grade by grade; −1 for unscored rows."""
    scored, fold = ~np.isnan(y), np.full(len(y), -1)
    if len(np.unique(qid)) > 1:
        _, codes = np.unique(qid, return_inverse=True)
        fold[scored] = (rng.permutation(codes.max() + 1) % N_FOLDS)[codes[scored]]
        return fold
    for grade in np.unique(y[scored]):
        rows = rng.permutation(np.flatnonzero(y == grade))
        fold[rows] = np.arange(len(rows)) % N_FOLDS
    return fold


@cache
def loss_problems() -> tuple[ProblemSource, ...]:
    """Return the problems of this table."""
    known = problems()
    return (
        known["MQ2008"],
        known["MSLR sample"],
        ProblemSource("Reuters", "a topic of 100 stories or more, words in two random halves", "AP", _reuters),
        ProblemSource(
            "Wikispeedia",
            "a category; words of the first thousand characters, and links to articles",
            "AP",
            _wikispeedia,
        ),
        ProblemSource("reviews", "a review of SYNERGY; titles, abstracts and references", "AP", _review),
    )


def _reuters(rng: np.random.Generator) -> SplitRepeat:
    pool = reuters()[1]
    y = pool.about[str(rng.choice(sorted(pool.about)))]
    return _documents([pool.text], y, rng)


def _wikispeedia(rng: np.random.Generator) -> SplitRepeat:
    articles = read_articles()
    category = str(rng.choice(sorted(wikispeedia().about)))
    return _documents([_openings(), _links()], articles.in_category(category), rng)


@cache
def _openings() -> Any:
    """Return the words in the first thousand characters of each article."""
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    return words.fit_transform([text[:1000] for text in read_articles().texts])


@cache
def _links() -> Any:
    """Return the articles that each article links to, rare ones weighted more."""
    names = read_articles().names
    number = {name: at for at, name in enumerate(names)}
    ends = np.array([(number[a], number[b]) for a, b in read_links() if a in number and b in number])
    X = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
    X.data[:] = 1.0
    return normalize(X.multiply(np.log(len(names) / np.maximum(X.sum(axis=0), 1.0))).tocsr())


def _review(rng: np.random.Generator) -> SplitRepeat:
    parts, y = _review_views(str(rng.choice(sorted(TITLES))))
    return _documents(list(parts), y, rng)


@cache
def _review_views(name: str) -> tuple[tuple[Any, ...], Floats]:
    records = read_records(dataset("synergy").path(f"{name}.csv"))
    words: Callable[[list[str]], Any] = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform
    cited = TfidfVectorizer(analyzer=list, min_df=2).fit_transform(list(records.references))
    return (words(list(records.titles)), words(list(records.abstracts)), cited), np.asarray(records.labels, dtype=float)


def _documents(parts: list[Any], y: Floats, rng: np.random.Generator) -> SplitRepeat:
    """Split documents of one query; the views are the parts, or random halves of a single one."""
    X = sparse.csr_array(sparse.hstack(parts))
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    views = [np.arange(a, b) for a, b in pairwise(ends)]
    order, n_test = rng.permutation(len(y)), round(TEST_SHARE * len(y))
    train, test = np.sort(order[n_test:]), np.sort(order[:n_test])
    views = random_halves(X.shape[1], rng) if len(parts) == 1 else views
    return SplitRepeat(X, y, np.zeros(len(y), dtype=np.int64), train, test, views)
