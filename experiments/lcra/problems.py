"""The problems that co-regularised ranking is tried on. A problem has two halves of tasks, which share no task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from corank.base.transformers import QueryScaler
from corank.data.io.letor_reader import read_letor
from corank.data.ranking import RankingData
from corank.data.splits import QueryShuffleSplit, mask_scores
from corank.data.synthetic import make_ranking
from corank_lab.records.records import read_records
from experiments.datasets.catalog import dataset
from experiments.datasets.jester import read_ratings
from experiments.datasets.mq2008 import read_parts
from experiments.datasets.reuters import read_modapte
from experiments.datasets.wikispeedia import read_articles, read_links

TEST_SHARE = 0.3
N_DIMENSIONS = 100
"""Dimensions of a view of text, by singular value decomposition."""
MIN_POSITIVES = 40
"""Positive documents of a topic or category."""
MAX_RECORDS = 1500
"""Records of a review; larger ones take long to decompose."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SplitRepeat:
    """
    One repeat of a problem.

    X, y, qid: all rows with their scores.
    train, test: rows to learn from and rows to test on.
    views: columns of the views.
    """

    X: Floats
    y: Floats
    qid: NDArray[Any]
    train: Ints
    test: Ints
    views: list[Ints]

    def hidden(self, judged: float, seed: int) -> Floats:
        """
        Return the scores of the training rows, NaN where hidden.

        judged: share of the rows whose score is kept; or, from 1, number of queries with scores.
        """
        y, qid = self.y[self.train], self.qid[self.train]
        if judged >= 1:
            kept = np.random.default_rng(seed).permutation(np.unique(qid))[: int(judged)]
            return np.where(np.isin(qid, kept), y, np.nan)
        known = mask_scores(y, fraction=1.0 - judged, random_state=seed)
        if RankingData.of(self.X[self.train], known, qid).n_pairs == 0:  # a rare topic: one row of each grade
            for grade in np.unique(y):
                known[np.flatnonzero(y == grade)[0]] = grade
        return known

    def measure(self, metric: str, scores: Floats) -> Floats:
        """
        Measure many scorings of the test rows at once.

        metric: "AP", with 0 for a query without a relevant row as in LETOR 4.0, or "disagreement".
        scores (n_test, m): one column per scoring; equal scores keep the order of the rows.
        """
        y, qid = self.y[self.test], self.qid[self.test]
        compute = average_precision if metric == "AP" else disagreement
        rows = [np.flatnonzero(qid == query) for query in np.unique(qid)]
        if metric != "AP":
            rows = [own for own in rows if np.ptp(y[own]) > 0.0]
        return np.asarray(np.mean([compute(y[own], scores[own]) for own in rows], axis=0))


@dataclass(frozen=True)
class ProblemSource:
    """
    A problem that can be drawn repeatedly.

    name, about: its name, and what one repeat is.
    metric: "AP" or "disagreement".
    draw: takes a generator and 0 or 1, the half of the tasks; returns a `SplitRepeat`.
    judged: what is judged of the training rows, see `SplitRepeat.hidden`; the second is shown against alpha.
    n_draws: draws that count as one repeat, where a single one is small.
    """

    name: str
    about: str
    metric: str
    draw: Callable[[np.random.Generator, int], SplitRepeat]
    judged: tuple[float, ...]
    n_draws: int = 1

    @property
    def sign(self) -> float:
        """1 if a larger value of the metric is better, −1 if a smaller one is."""
        return 1.0 if self.metric == "AP" else -1.0


def average_precision(y: Floats, scores: Floats) -> Floats:
    """Return the average precision of each column of scores; 0 without a relevant row."""
    relevant = (y > 0.0)[np.argsort(-scores, axis=0, kind="stable")]
    precision = np.cumsum(relevant, axis=0) / np.arange(1, len(y) + 1)[:, None]
    return np.asarray((precision * relevant).sum(axis=0) / max(np.count_nonzero(y > 0.0), 1))


def disagreement(y: Floats, scores: Floats) -> Floats:
    """Return the share of pairs that each column of scores orders wrongly; a tie counts ½."""
    a, b = np.nonzero(y[:, None] > y)
    gaps = scores[a] - scores[b]
    return np.asarray(((gaps < 0.0) + 0.5 * (gaps == 0.0)).mean(axis=0))


QUERIES = (0.02, 0.05, 0.2, 5)
ROWS = (0.2, 0.05)


def problems() -> dict[str, ProblemSource]:
    """Return all problems by name."""
    listed = (
        ProblemSource("MQ2008", "392 queries, 46 features in two random halves", "AP", _mq2008, QUERIES),
        ProblemSource(
            "MQ2008 by field", "the same, body and page against title, anchor, address and links", "AP", _by_field,
            QUERIES,
        ),
        ProblemSource("MSLR sample", "43 queries, 136 features in two random halves", "AP", _mslr, QUERIES),
        ProblemSource(
            "Jester", "a user's ratings of 100 jokes, 100 other users in two random halves", "disagreement", _jester,
            (0.05, 0.2, 0.5), n_draws=10,
        ),
        ProblemSource("Reuters", "a topic; words in two random halves", "AP", _reuters, ROWS),
        ProblemSource(
            "Wikispeedia", "a category; words of the first thousand characters, and links to articles", "AP",
            _wikispeedia, ROWS,
        ),
        ProblemSource("reviews", "a systematic review; titles and abstracts", "AP", _review, ROWS),
        ProblemSource("redundant views", "400 generated queries, views with own noise", "AP", _redundant, QUERIES),
        ProblemSource(
            "wide redundant views", "the same with 60 features a view", "AP", partial(_redundant, width=60), QUERIES
        ),
        ProblemSource(
            "split signal", "the rows of redundant views, columns in two random halves", "AP",
            partial(_redundant, mixed=True), QUERIES,
        ),
    )  # fmt: skip
    return {problem.name: problem for problem in listed}


def _dealt(tasks: Sequence[Any] | NDArray[Any], half: int) -> NDArray[Any]:
    """Return one half of the tasks, always the same."""
    return np.random.default_rng(0).permutation(np.asarray(tasks))[half::2]


def _mq2008(rng: np.random.Generator, half: int) -> SplitRepeat:
    rows = read_parts()
    return _split(_scaled("MQ2008"), rows.y, rows.qid, None, rng, half)


def _by_field(rng: np.random.Generator, half: int) -> SplitRepeat:
    draw = _mq2008(rng, half)
    # features 1 to 40 of LETOR 4.0 go round body, anchor, title, address and whole page; 41 to 46 are links and address
    columns = np.arange(draw.X.shape[1])
    text = (columns < 40) & np.isin(columns % 5, (0, 4))
    return replace(draw, views=[columns[text], columns[~text]])


def _mslr(rng: np.random.Generator, half: int) -> SplitRepeat:
    rows = _mslr_rows()
    return _split(_scaled("MSLR"), rows.y, rows.qid, None, rng, half)


@cache
def _mslr_rows() -> Any:
    entry = dataset("mslr-sample")
    parts = [entry.path(f"msn1.fold1.{part}.5k.txt") for part in ("train", "test")]
    return read_letor(parts, dtype=np.float64, layout="dense")


@cache
def _scaled(name: str) -> Floats:
    rows = read_parts() if name == "MQ2008" else _mslr_rows()
    X: Floats = QueryScaler().fit_transform(rows.X, qid=rows.qid)
    return X


def _jester(rng: np.random.Generator, half: int) -> SplitRepeat:
    ratings = read_ratings()
    complete = _dealt(np.flatnonzero(~np.isnan(ratings).any(axis=1)), half)
    user, *others = rng.choice(complete, size=101, replace=False)
    X = ratings[others].T.astype(np.float64) / 10.0
    return _one_query(X, ratings[user].astype(np.float64) / 10.0, random_halves(X.shape[1], rng), rng)


def _redundant(rng: np.random.Generator, half: int, width: int = 10, mixed: bool = False) -> SplitRepeat:
    made = make_ranking(400, (10, 40), features_per_view=width, random_state=int(rng.integers(2**31)))
    return _split(made.X, made.y, made.qid, None if mixed else list(made.views), rng, None)


def _split(
    X: Floats, y: Floats, qid: Any, views: list[Ints] | None, rng: np.random.Generator, half: int | None
) -> SplitRepeat:
    """Split the queries of one half; all of them if every draw makes its own."""
    if half is not None:
        kept = np.isin(qid, _dealt(np.unique(qid), half))
        X, y, qid = X[kept], y[kept], qid[kept]
    seed = int(rng.integers(2**31))
    train, test = next(QueryShuffleSplit(1, test_size=TEST_SHARE, random_state=seed).split(X, qid=qid))
    return SplitRepeat(X, y, np.asarray(qid), train, test, random_halves(X.shape[1], rng) if views is None else views)


def random_halves(n_columns: int, rng: np.random.Generator) -> list[Ints]:
    """Return the columns in two random halves."""
    return [np.sort(half) for half in np.array_split(rng.permutation(n_columns), 2)]


def _one_query(X: Floats, y: Floats, views: list[Ints], rng: np.random.Generator) -> SplitRepeat:
    order, n_test = rng.permutation(len(y)), round(TEST_SHARE * len(y))
    return SplitRepeat(X, y, np.zeros(len(y), dtype=np.int64), np.sort(order[n_test:]), np.sort(order[:n_test]), views)


def _documents(parts: Sequence[Floats], y: Floats, rng: np.random.Generator) -> SplitRepeat:
    """Split documents of one query; each part is a view."""
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    return _one_query(np.hstack(parts), y, [np.arange(a, b) for a, b in pairwise(ends)], rng)


def _reuters(rng: np.random.Generator, half: int) -> SplitRepeat:
    stories = read_modapte()
    topic = str(rng.choice(_dealt(_topics(), half)))
    return _documents(_word_halves(), stories.about(topic), rng)


@cache
def _topics() -> list[str]:
    stories = read_modapte()
    known = sorted({topic for topics in stories.topics for topic in topics})
    return [topic for topic in known if stories.about(topic).sum() >= MIN_POSITIVES]


@cache
def _word_halves() -> tuple[Floats, ...]:
    X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(read_modapte().texts).tocsc()
    return tuple(_reduced(X[:, half].tocsr()) for half in random_halves(X.shape[1], np.random.default_rng(0)))


def _reduced(X: Any) -> Floats:
    """Return the first singular dimensions of rows of text, which need no judgement."""
    n = min(N_DIMENSIONS, *(size - 1 for size in X.shape))
    reduced: Floats = TruncatedSVD(n, random_state=0).fit_transform(X)
    return reduced


def _wikispeedia(rng: np.random.Generator, half: int) -> SplitRepeat:
    articles = read_articles()
    category = str(rng.choice(_dealt(_categories(), half)))
    return _documents(_words_and_links(), articles.in_category(category), rng)


@cache
def _categories() -> list[str]:
    articles = read_articles()
    known = sorted({category for of in articles.categories for category in of})
    return [category for category in known if articles.in_category(category).sum() >= MIN_POSITIVES]


@cache
def _words_and_links() -> tuple[Floats, Floats]:
    articles = read_articles()
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    number = {name: n for n, name in enumerate(articles.names)}
    ends = np.array([(number[a], number[b]) for a, b in read_links() if a in number and b in number])
    links = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(number), len(number)))
    listed = [[f"{b}" for b in links.indices[links.indptr[a] : links.indptr[a + 1]]] for a in range(len(number))]
    cited = TfidfVectorizer(analyzer=list, min_df=2)
    return (
        _reduced(words.fit_transform([text[:1000] for text in articles.texts])),
        _reduced(cited.fit_transform(listed)),
    )


def _review(rng: np.random.Generator, half: int) -> SplitRepeat:
    parts, y = _review_views(str(rng.choice(_dealt(list(_reviews()), half))))
    return _documents(parts, y, rng)


@cache
def _reviews() -> dict[str, Any]:
    """Return the records of each review."""
    entries = [dataset("synergy"), dataset("reviews")]
    named = {
        file.name.removesuffix(".csv"): read_records(entry.path(file.name)) for entry in entries for file in entry.files
    }
    return {name: records for name, records in named.items() if len(records.titles) <= MAX_RECORDS}


@cache
def _review_views(name: str) -> tuple[tuple[Floats, ...], Floats]:
    records = _reviews()[name]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    views = tuple(_reduced(words.fit_transform(list(part))) for part in (records.titles, records.abstracts))
    return views, np.asarray(records.labels == 1, dtype=float)
