"""
Few judgements on Reuters: what smoothing brings, and what choosing the rows to judge brings.

Each line of output is one setting as JSON: mean AP over topics and repeats, with the standard error over topics of the
difference to the setting's bar; rows are tf-idf of words (1 + log tf, words of two stories or more). Everything that
learns is RankRLS with its default alpha, `scale=False`; Smooth is fitted once on all stories it may see.

`--part choice`: topics with 10 to 100 stories in the training part; 5 judged stories, one of the topic among them, then
10 more at a time, chosen by each rule. Measured on all training stories, judged ones included (`all rows`), and on the
test stories (`test rows`), for topics that have 3 there. `near` lets near-duplicates into a batch. The bar is `random`;
`top` is the rival.

`--part positives`: 1, 2 or 5 stories of a topic are known, nothing else: all judged rows agree, and a ranker has no
pair. Presumed negatives make them: 500 other stories at random, y = 0. Their weight changes nothing, as every pair
holds one of them. A few are of the topic, and are taken for negative all the same. Measured on the stories that are
neither known nor presumed. The bar is tf-idf alone; `mean` scores by the mean of the known stories and learns nothing.
Topics are common from 0.8 % of the stories.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from corank import RankRLS, Smooth, judging_curve
from corank.data.reuters import Stories, read_modapte
from corank.metrics import evaluate

RULES = ("uncertain", "top", "representative", "random")
N_PRESUMED = 500
COMMON = 0.008


def report(**figure: object) -> None:
    print(json.dumps({"bench": "judging", **figure}), flush=True)


def features(stories: Stories, fit_on: Any) -> dict[str, Any]:
    """Rows of all stories, of words that the stories of `fit_on` have, and smoothed over them."""
    vectoriser = TfidfVectorizer(sublinear_tf=True, min_df=2)
    vectoriser.fit([text for text, kept in zip(stories.texts, fit_on, strict=True) if kept])
    X = vectoriser.transform(stories.texts)
    return {"text": X, "text + smooth": Smooth(random_state=0).fit(X[fit_on]).transform(X)}


def chosen_topics(stories: Stories, low: int, high: int, n: int, at_least: int = 0) -> list[str]:
    """Topics of `low` to `high` training stories and `at_least` test stories, evenly over their sizes."""
    names = sorted({topic for of_story in stories.topics for topic in of_story})
    sizes = {name: (int(stories.about(name)[~stories.is_test].sum()), name) for name in names}
    enough = {name: stories.about(name)[stories.is_test].sum() >= at_least for name in names}
    found = sorted((name for name in names if low <= sizes[name][0] <= high and enough[name]), key=sizes.__getitem__)
    return [found[at] for at in np.unique(np.linspace(0, len(found) - 1, min(n, len(found))).astype(int))]


def choice(args: argparse.Namespace) -> None:
    stories = read_modapte()
    train, test = ~stories.is_test, stories.is_test
    topics = chosen_topics(stories, 10, 100, args.topics, at_least=3)
    report(part="choice", topics=topics)
    for name, X in features(stories, train).items():
        for where in ("all rows", "test rows"):
            for similar in (0.9, 2.0) if args.near else (0.9,):
                curves = []
                for topic in topics:
                    y = stories.about(topic)
                    curve = judging_curve(
                        RankRLS(scale=False), X[train], y[train], by=RULES, steps=4, batch=10, n_repeats=args.repeats,
                        test=(X[test], y[test]) if where == "test rows" else None, similar=similar, random_state=0,
                    )  # fmt: skip
                    curves.append(curve.mean)
                values = np.array(curves)
                for at, rule in enumerate(RULES):
                    gap = values[:, at] - values[:, RULES.index("random")]
                    over_top = values[:, at] - values[:, RULES.index("top")]
                    report(
                        part="choice", features=name, measured_on=where, near=similar > 1, rule=rule,
                        n_judged=curve.n_judged.tolist(), AP=rounded(values[:, at].mean(axis=0)),
                        over_random=rounded(gap.mean(axis=0)), over_top=rounded(over_top.mean(axis=0)),
                        over_top_error=rounded(over_top.std(axis=0, ddof=1) / np.sqrt(len(topics))),
                    )  # fmt: skip


def positives(args: argparse.Namespace) -> None:
    stories = read_modapte()
    X_of = features(stories, np.ones(len(stories.texts), dtype=bool))
    topics = chosen_topics(stories, 15, 1000, args.topics)
    report(part="positives", topics=topics)
    for n_known in (1, 2, 5):
        found: dict[str, list[list[float]]] = {}
        for topic in topics:
            draws = list(draws_of(X_of, stories.about(topic), n_known, args.repeats))
            for name in draws[0]:
                found.setdefault(name, []).append([draw[name] for draw in draws])
        share = np.array([stories.about(topic).mean() for topic in topics])
        for group, members in {"all": share > 0, "rare": share < COMMON, "common": share >= COMMON}.items():
            bar = np.array(found["text"])[members].mean(axis=1)
            for name, values in found.items():
                by_topic = np.array(values)[members].mean(axis=1)
                gap = by_topic - bar
                report(
                    part="positives", n_known=n_known, topics=f"{group} {len(gap)}", features=name,
                    AP=rounded(by_topic.mean()), gain=rounded(gap.mean()),
                    error=rounded(gap.std(ddof=1) / np.sqrt(len(gap))), ahead=int((gap > 0).sum()),
                )  # fmt: skip


def draws_of(X_of: dict[str, Any], y: Any, n_known: int, n_repeats: int) -> Iterator[dict[str, float]]:
    for repeat in range(n_repeats):
        rng = np.random.default_rng(repeat)
        known = rng.choice(np.flatnonzero(y), n_known, replace=False)
        presumed = rng.choice(np.setdiff1d(np.arange(len(y)), known), N_PRESUMED, replace=False)
        rows, judged = np.concatenate([known, presumed]), np.repeat([1.0, 0.0], [n_known, N_PRESUMED])
        rest = np.setdiff1d(np.arange(len(y)), rows)
        text = X_of["text"]
        scores = {"mean of the known": np.asarray(text[rest] @ np.asarray(text[known].mean(axis=0)).ravel())}
        for name, X in X_of.items():
            model = RankRLS(scale=False).fit(X[rows], judged, qid=np.zeros(len(rows)))
            scores[name] = model.predict(X[rest])
        yield {name: evaluate(y[rest], values, metrics="AP")["AP"].mean for name, values in scores.items()}


def rounded(values: Any) -> Any:
    return np.round(values, 4).tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("choice", "positives"), default="choice")
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--near", action="store_true", help="also measure batches with near-duplicates")
    args = parser.parse_args()
    {"choice": choice, "positives": positives}[args.part](args)
