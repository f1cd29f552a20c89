"""The conventions `letor4` and `letor3` against a translation of the official scripts, and the published tables."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest

from corank.metrics import evaluate

PARTS = ["S1", "S2", "S3", "S4", "S5"]
# (training parts, test part) of the five official folds
FOLDS = [
    (["S1", "S2", "S3"], "S5"),
    (["S2", "S3", "S4"], "S1"),
    (["S3", "S4", "S5"], "S2"),
    (["S4", "S5", "S1"], "S3"),
    (["S5", "S1", "S2"], "S4"),
]
ALGORITHMS = ["AdaRank-MAP", "AdaRank-NDCG", "RankBoost", "RankSVM-Struct"]
DEPTHS = range(1, 11)
NAMES = [f"P@{k}" for k in DEPTHS] + ["AP"] + [f"nDCG@{k}" for k in DEPTHS] + ["MeanNDCG"]


# --- the scripts, as they are defined: lists of labels, no arrays -------------------------------------------------


def script_dcg(labels, top):
    gains = {0: 0, 1: 1, 2: 3}
    dcg = [gains[labels[0]]]
    for i in range(1, min(top, len(labels))):
        weight = 1.0 if i < 2 else math.log(2.0) / math.log(i + 1.0)
        dcg.append(dcg[-1] + gains[labels[i]] * weight)
    return dcg


def script_ndcg(labels, top):
    dcg, best = script_dcg(labels, top), script_dcg(sorted(labels, reverse=True), top)
    return [d / b if b != 0 else 0.0 for d, b in zip(dcg, best, strict=True)]


def script_precision(labels, top, pad):
    hits, values = 0, []
    for i in range(top if pad else min(top, len(labels))):
        hits += i < len(labels) and labels[i] > 0
        values.append(hits / (i + 1))
    return values


def script_ap(labels):
    hits, total = 0, 0.0
    for i, label in enumerate(labels):
        if label > 0:
            hits += 1
            total += hits / (i + 1)
    return total / hits if hits else 0.0


def script_query(labels, version):
    """All figures of one query; what a script leaves undefined adds nothing to its sums."""

    def at(values, k):
        return values[k - 1] if k <= len(values) else 0.0

    precisions = script_precision(labels, 10, pad=version == 4)
    ndcgs = script_ndcg(labels, len(labels) if version == 4 else 10)
    figures = {f"P@{k}": at(precisions, k) for k in DEPTHS} | {f"nDCG@{k}": at(ndcgs, k) for k in DEPTHS}
    return figures | {"AP": script_ap(labels), "MeanNDCG": sum(ndcgs) / len(ndcgs)}


def by_script(y, scores, qid, version):
    figures = []
    for query in dict.fromkeys(qid.tolist()):
        rows = np.flatnonzero(qid == query)
        labels = [int(y[row]) for row in sorted(rows, key=lambda row: -scores[row])]
        figures.append(script_query(labels, version))
    return {name: np.array([figure[name] for figure in figures]) for name in figures[0]}


# --- real data -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts(real_data):
    folder = real_data / "letor4_mq2008"
    if not folder.is_dir():
        pytest.skip("needs letor4_mq2008 under CORANK_DATA")
    return {part: read_part(folder / f"{part}.txt.gz") for part in PARTS}


def read_part(path):
    X, y, qid = [], [], []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            label, query, *features = line.split("#")[0].split()
            y.append(float(label))
            qid.append(int(query.removeprefix("qid:")))
            X.append([float(feature.split(":")[1]) for feature in features])
    return np.array(X), np.array(y), np.array(qid)


def published(folder, algorithm):
    """Figures of one table by (set, fold), the four decimals as printed; fold 5 is the average."""
    figures, where, columns, fold = {}, None, [], 0
    for line in (folder / f"{algorithm}.MQ2008.txt").read_text().splitlines():
        cells = line.split()
        if line.startswith("Performance on"):
            where = cells[2]
        elif "@1" in line:
            names = [c.replace("NDCG@", "nDCG@").replace("Pre@", "P@") for c in cells[1:]]
            columns, fold = ["AP" if name == "MAP" else name for name in names], 0
        elif where and cells:
            figures.setdefault((where, fold), {}).update(zip(columns, map(float, cells[1:]), strict=True))
            fold += 1
    return figures


@pytest.mark.parametrize("part", PARTS)
def test_each_feature_of_mq2008_as_a_run_is_what_the_script_defines(parts, part):
    X, y, qid = parts[part]
    for feature in range(46):
        found = evaluate(y, X[:, feature], qid, NAMES, convention="letor4")
        expected = by_script(y, X[:, feature], qid, version=4)
        for name in NAMES:
            np.testing.assert_allclose(found[name].values, expected[name], atol=1e-9, err_msg=f"{name}, {feature + 1}")


@pytest.mark.parametrize(("version", "seed"), [(version, seed) for version in (3, 4) for seed in range(3)])
def test_ties_short_lists_and_empty_queries(version, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, 80)
    qid = np.repeat(np.arange(80), sizes)
    y = rng.integers(0, 3, len(qid)) * (rng.random(80) < 0.7)[qid]
    scores = rng.integers(0, 5, len(qid)).astype(float)
    found, expected = evaluate(y, scores, qid, NAMES, convention=f"letor{version}"), by_script(y, scores, qid, version)
    names = NAMES if version == 4 else NAMES[:-1]  # MeanNDCG came with LETOR 4.0
    for name in names:
        np.testing.assert_allclose(found[name].values, expected[name], atol=1e-9, err_msg=name)
        assert found[name].mean == pytest.approx(expected[name].sum() / 80)


def lattice_gap(value, step):
    """How far a printed figure is from the nearest sum of fractions, in units of its rounding error."""
    return abs(value / step - round(value / step)) * step / 0.5e-4


def test_published_tables_lie_on_the_lattice_of_the_convention(parts, real_data):
    """
    Over N queries, N·k·P@k, 3N·NDCG@1 and 12N·NDCG@2 are integers only if N counts the empty queries, P@k divides
    by k, the gains are 0, 1, 3 and the second rank is not discounted (1/log2 3 would break NDCG@2).
    """
    folder = real_data / "letor4_mq2008" / "published_baselines"
    gaps, skipped_gaps = [], []
    for algorithm in ALGORITHMS:
        tables = published(folder, algorithm)
        for fold, (_, part) in enumerate(FOLDS):
            _, y, qid = parts[part]
            n_all = len(np.unique(qid))
            n_relevant = len(np.unique(qid[y > 0]))
            steps = {"nDCG@1": 3, "nDCG@2": 12} | {f"P@{k}": k for k in DEPTHS}
            for name, fraction in steps.items():
                value = tables["testing", fold][name]
                gaps.append(lattice_gap(value, 1 / (fraction * n_all)))
                skipped_gaps.append(lattice_gap(value, 1 / (fraction * n_relevant)))
    assert len(gaps) == 240
    assert max(gaps) < 1.01
    assert np.mean(np.array(skipped_gaps) < 1.01) < 0.5  # leaving out empty queries does not fit

    # our figures lie on the same lattice, and those of the textbook discount do not
    X, y, qid = parts["S1"]
    n = len(np.unique(qid))
    ours = [evaluate(y, x, qid, "nDCG@2", convention="letor4")["nDCG@2"].mean * 12 * n for x in X.T]
    textbook = [evaluate(y, x, qid, "nDCG@2")["nDCG@2"].values for x in X.T]
    assert np.abs(np.subtract(ours, np.round(ours))).max() < 1e-6
    sums = np.array([np.nansum(values) * 12 for values in textbook])
    assert np.abs(sums - np.round(sums)).max() > 0.1


def test_a_linear_ranker_lands_on_the_published_figures_under_letor4_only(parts, real_data):
    """Least squares on pairs, one ridge system a fold, against the published RankSVM-Struct, all 22 columns."""
    folder = real_data / "letor4_mq2008" / "published_baselines"
    target = published(folder, "RankSVM-Struct")["testing", 5]
    means = {convention: [] for convention in ("letor4", "corank", "sklearn", "lightgbm")}
    for training, test in FOLDS:
        X, y, qid = (np.concatenate([parts[part][i] for part in training]) for i in range(3))
        gram, side = np.eye(46), np.zeros(46)
        for query in np.unique(qid):
            rows = qid == query
            centred = X[rows] - X[rows].mean(axis=0)
            gram += centred.T @ centred
            side += centred.T @ (y[rows] - y[rows].mean())
        X, y, qid = parts[test]
        scores = X @ np.linalg.solve(gram, side)
        for convention, collected in means.items():
            names = [name for name in NAMES if name in target]
            collected.append([evaluate(y, scores, qid, names, convention=convention)[name].mean for name in names])
    wanted = np.array([target[name] for name in NAMES])
    gap = {name: np.abs(np.mean(values, axis=0) - wanted).max() for name, values in means.items()}
    assert len(wanted) == 22
    assert gap["letor4"] < 0.03
    assert all(gap[other] > 0.1 for other in gap if other != "letor4"), gap
