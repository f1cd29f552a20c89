"""
Leaderboards from few votes of people and many of a language model, on votes of an arena.

Truth is Bradley and Terry's model of all 13,459 human votes, ties half, with a ridge of ½. The baselines fit the same
model to the human votes at hand, to the votes of the language model, to both, or the order of the language model times
one slope. The error is the root mean squared error of the win probabilities of all 190 pairs, P(win) + P(tie)/2.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from corank import Leaderboard
from corank.comparison.report import Report
from corank.data import Votes, read_table, read_votes
from corank.models.votes.laplace import log_probabilities
from corank.tables import Cell, ReportTable
from experiments.datasets.catalog import dataset
from experiments.options import ExperimentOptions

Floats = NDArray[np.float64]

SIZES, DRAWS = (30, 100, 300, 1000), 60
JUDGES = ("gpt-4", "gpt-3.5", "gpt-4 reversed", "gpt-4 shuffled")
WAYS = ("people only", "judge only", "judge times a slope", "pooled", "Leaderboard, people only", "Leaderboard")
RIDGE = 0.5
N_BEST, BEST_SIZES, BATCH = 60, (40, 80, 160, 320), 10
TASTES, FOLDS, OMEGA = (0.0, 0.3, 0.8), 5, 0.4
MIN_WORKER_VOTES = 20


@cache
def arena(name: str) -> Votes:
    """Return the votes of people or of a language model, with items in alphabetical order."""
    base, _, change = name.partition(" ")
    path = dataset("arena_votes").path(f"{base}.csv")
    votes = read_votes(path)
    votes = votes.on(sorted(votes.items))
    # votes in the order of their ids as text, so that all files have the same order
    numbers = read_table(path).texts("num")
    votes = part_of(votes, np.array(sorted(range(len(numbers)), key=numbers.__getitem__)))
    if change == "shuffled":  # a useless judge
        items = np.random.default_rng(0).permutation(len(votes.items))
        votes = replace(votes, first=items[votes.first], second=items[votes.second])
    return replace(votes, outcome=2 - votes.outcome) if change == "reversed" else votes


@cache
def permutations() -> list[Any]:
    """Return the order of the human votes in each draw; the first n of a draw are its votes."""
    rng = np.random.default_rng(0)
    return [rng.permutation(len(arena("human"))) for _ in range(len(SIZES) * DRAWS)]


def part_of(votes: Votes, rows: Any) -> Votes:
    """Return some of the votes."""
    part = {name: getattr(votes, name)[rows] for name in ("first", "second", "outcome", "count")}
    return replace(votes, **part, judge=None, judges=(), group=None, both_bad=None)


def bradley_terry(*parts: Votes) -> Floats:
    """Fit Bradley and Terry's model with a ridge; a tie is half a win for each."""
    first, second, outcome = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("first", "second", "outcome")
    )
    n, y = len(parts[0].items), 1.0 - 0.5 * outcome
    t = np.zeros(n)
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(t[second] - t[first]))
        g, v = -RIDGE * t, p * (1.0 - p)
        g = g + np.bincount(first, y - p, n) - np.bincount(second, y - p, n)
        across = np.bincount(first * n + second, v, n * n).reshape(n, n)
        across = across + across.T
        step = np.linalg.solve(np.diag(across.sum(axis=1) + RIDGE) - across, g)
        t = t + step
        if np.abs(step).max() < 1e-9:
            break
    return t


def slope(votes: Votes, scores: Floats) -> float:
    """Fit the slope between scores and votes, with a prior around ½ and at least 0."""
    d, y, b = scores[votes.first] - scores[votes.second], 1.0 - 0.5 * votes.outcome, 0.5
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-b * d))
        b += (np.sum(d * (y - p)) - RIDGE * (b - 0.5)) / (np.sum(d * d * p * (1.0 - p)) + RIDGE)
    return max(b, 0.0)


def wins_of(scores: Floats) -> Floats:
    """Return the win probabilities of all pairs."""
    a, b = np.triu_indices(len(scores), 1)
    return np.asarray(1.0 / (1.0 + np.exp(scores[b] - scores[a])))


def board_wins(board: Leaderboard, items: tuple[str, ...]) -> tuple[Floats, Floats, Any]:
    """Return scores and win probabilities in the order of `items`, and their positions on the board."""
    at = np.array([board.items_.index(name) for name in items])
    return board.scores_[at], board.win_matrix()[np.ix_(at, at)][np.triu_indices(len(at), 1)], at


def compared(judge: str, n: int, draw: int) -> dict[str, Any]:
    """Return error and tau of each way on one draw, and the coverage of the leaderboards."""
    human, cheap = arena("human"), arena(judge)
    truth, cheap_scores = _truth(), _cheap(judge)
    votes = part_of(human, permutations()[SIZES.index(n) * DRAWS + draw][:n])
    boards = {
        "Leaderboard, people only": Leaderboard().fit(votes),
        "Leaderboard": Leaderboard().fit(votes, cheap=cheap),
    }
    people = bradley_terry(votes)
    ways = {
        "people only": people, "judge only": cheap_scores,
        "judge times a slope": slope(votes, cheap_scores) * cheap_scores,
        "pooled": bradley_terry(votes, cheap),
    }  # fmt: skip
    pairs = {name: (scores, wins_of(scores)) for name, scores in ways.items()}
    covered = {}
    for name, board in boards.items():
        scores, wins, at = board_wins(board, human.items)
        pairs[name] = scores, wins
        covered[name] = _coverage(board, at)
    a, b = np.triu_indices(len(truth), 1)
    order = np.sign(truth[a] - truth[b])
    return {
        "error": {name: float(np.sqrt(np.mean((wins - wins_of(truth)) ** 2))) for name, (_, wins) in pairs.items()},
        "tau": {name: float(np.mean(order * np.sign(one[a] - one[b]))) for name, (one, _) in pairs.items()},
        "covered": covered,
    }


@cache
def _truth() -> Floats:
    return bradley_terry(arena("human"))


@cache
def _cheap(judge: str) -> Floats:
    return bradley_terry(arena(judge))


@cache
def _all_votes() -> tuple[Floats, Any]:
    scores, _, _ = board_wins(Leaderboard().fit(arena("human")), arena("human").items)
    return scores, 1 + (scores[:, None] < scores).sum(axis=1)


def _coverage(board: Leaderboard, at: Any) -> tuple[float, float, float]:
    """Return the share of intervals that contain the score of all votes, whether all sets its rank, and their size."""
    scores, ranks = _all_votes()
    inside = (board.lower_[at] <= scores) & (scores <= board.upper_[at])
    sets = board.ranks_[at]
    right = np.all((sets[:, 0] <= ranks) & (ranks <= sets[:, 1]))
    return float(inside.mean()), float(right), float(np.mean(sets[:, 1] - sets[:, 0] + 1))


def workers() -> dict[str, float]:
    """Compare reliabilities of llmfao's workers with how often they agree with others on the same question."""
    votes = read_votes(dataset("arena_votes").path("llmfao.csv"))
    assert votes.judge is not None
    assert votes.group is not None
    board = Leaderboard().fit(votes)
    key = (votes.group * len(votes.items) + votes.first) * len(votes.items) + votes.second
    same: dict[int, list[int]] = {}
    for row, one in enumerate(key.tolist()):
        same.setdefault(one, []).append(row)
    agreed: dict[int, list[float]] = {}
    for rows in same.values():
        for row in rows:
            others = [other for other in rows if votes.judge[other] != votes.judge[row]]
            if others:
                agreed.setdefault(int(votes.judge[row]), []).append(
                    float(np.mean(votes.outcome[others] == votes.outcome[row]))
                )
    reliability = dict(zip(board.judges_, board.reliabilities_, strict=True))
    known = [
        (reliability[votes.judges[judge]], float(np.mean(values)))
        for judge, values in agreed.items() if len(values) >= MIN_WORKER_VOTES and votes.judges[judge] in reliability
    ]  # fmt: skip
    found = stats.spearmanr(*np.array(known).T)
    return {
        "n": len(known),
        "spearman": float(found.statistic),
        "p": float(found.pvalue),
        "dispersion": board.dispersion_,
    }


def tastes(spread: float) -> list[float]:
    """
    Return log probability and squared error of held-out votes of llmfao, folds by vote and halves by worker.

    The model is that of `Leaderboard`, plus a deviation d ~ N(0, spread²) of each worker for each item; its mode is
    found by L-BFGS. A vote of a worker that was not seen is predicted by the common scores.
    """
    votes = read_votes(dataset("arena_votes").path("llmfao.csv"))
    assert votes.judge is not None
    n, judge = len(votes.first), votes.judge
    rng, out = np.random.default_rng(0), []
    fold, is_half = rng.integers(0, FOLDS, n), rng.random(len(votes.judges)) < 0.5
    for parts in ([fold == k for k in range(FOLDS)], [is_half[judge], ~is_half[judge]]):
        log_p, error = np.zeros(n), np.zeros(n)
        for held in parts:
            p = _tasted(votes, ~held, spread)[held]
            right = votes.outcome[held]
            log_p[held] = np.log(p[np.arange(len(p)), right])
            error[held] = (p @ [1.0, 0.5, 0.0] - 1.0 + 0.5 * right) ** 2
        out += [float(log_p.mean()), float(error.mean())]
    return out


def _tasted(votes: Votes, rows: Any, spread: float) -> Floats:
    """Fit scores, ties, position, reliabilities and deviations to some votes; return probabilities of all votes."""
    assert votes.judge is not None
    M, J = len(votes.items), len(votes.judges)
    a, b, j, outcome = votes.first, votes.second, votes.judge, votes.outcome
    centre = np.concatenate([np.zeros(M), [-0.7, 0.0], np.ones(J), np.zeros(J * M)])
    weight = np.concatenate([np.ones(M), [1.0, 4.0], np.full(J, OMEGA**-2.0), np.ones(J * M)])

    def probabilities(x: Floats) -> tuple[Floats, Floats, Floats]:
        r, d = x[M + 2 : M + 2 + J], x[M + 2 + J :]
        delta = x[a] - x[b]
        eta = r[j] * delta + spread * (d[j * M + a] - d[j * M + b]) + x[M + 1]
        return log_probabilities(eta, float(x[M])), delta, r[j]

    def loss(x: Floats) -> tuple[float, Floats]:
        log_p, delta, r = probabilities(x)
        p = np.exp(log_p)
        pull = np.where(rows, 0.5 * (p[:, 2] - p[:, 0] + 1.0 - outcome), 0.0)
        of_kappa = float(np.sum((outcome == 1)[rows] - p[rows, 1]))
        of_s = np.bincount(a, pull * r, M) - np.bincount(b, pull * r, M)
        of_d = spread * (np.bincount(j * M + a, pull, J * M) - np.bincount(j * M + b, pull, J * M))
        gradient = np.concatenate([of_s, [of_kappa, pull.sum()], np.bincount(j, pull * delta, J), of_d])
        fit = float(log_p[rows, outcome[rows]].sum())
        return 0.5 * float(weight @ (x - centre) ** 2) - fit, weight * (x - centre) - gradient

    x = optimize.minimize(loss, centre, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    return np.asarray(np.exp(probabilities(np.asarray(x))[0]))


def best_found(way: str, draw: int, sizes: tuple[int, ...]) -> list[float]:
    """Return whether the best of 20 items leads after some votes, which are chosen or random."""
    scores, _ = _all_votes()
    rng = np.random.default_rng([draw, 7])
    names = tuple(arena("human").items)
    kappa = 0.09  # that of all human votes
    board = Leaderboard()
    first: list[int] = []
    second: list[int] = []
    outcome: list[int] = []
    right = []
    a, b = np.triu_indices(len(names), 1)
    while len(first) < max(sizes):
        if way == "random" or not first:
            chosen = [(int(a[k]), int(b[k])) for k in rng.integers(0, len(a), BATCH)]
        else:
            chosen = [(names.index(x), names.index(y)) for x, y, _ in board.next_votes(BATCH)]
        for x, y in chosen:
            p = np.exp(log_probabilities(np.array([scores[x] - scores[y]]), kappa))[0]
            first.append(x)
            second.append(y)
            outcome.append(int(rng.choice(3, p=p / p.sum())))
        if way != "random" or len(first) in sizes:
            votes = Votes(
                names,
                np.array(first),
                np.array(second),
                np.array(outcome),
                np.ones(len(first), dtype=np.int64),
                has_sides=False,
            )
            board = _quiet_fit(votes)
        if len(first) in sizes:
            right.append(float(board.items_[0] == names[int(scores.argmax())]))
    return right


def _quiet_fit(votes: Votes) -> Leaderboard:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # items that were not compared yet
        return Leaderboard().fit(votes)


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: 60 draws by default; quick runs make 3.
    Returns: errors, orders and coverage on the arena, workers, and votes until the best item is found.
    """
    import warnings

    warnings.simplefilter("ignore")
    draws = options.repeats or (3 if options.quick else DRAWS)
    n_best = 2 if options.quick else N_BEST
    options.expect(len(JUDGES) * len(SIZES) * draws + 1 + len(TASTES) + 2 * n_best)
    found = {
        (judge, n): [
            options.result(
                {"experiment": "leaderboard", "judge": judge, "votes": n, "draw": draw},
                partial(compared, judge, n, draw),
            )
            for draw in range(draws)
        ]
        for judge in JUDGES
        for n in SIZES
    }  # fmt: skip
    of_workers = options.result({"experiment": "leaderboard", "part": "workers"}, workers)
    of_tastes = {
        spread: options.result(
            {"experiment": "leaderboard", "part": "tastes", "spread": spread}, partial(tastes, spread)
        )
        for spread in TASTES
    }
    best = {
        way: [
            options.result(
                {"experiment": "leaderboard", "part": "best", "way": way, "draw": draw},
                partial(best_found, way, draw, BEST_SIZES),
            )
            for draw in range(n_best)
        ]
        for way in ("random", "chosen")
    }  # fmt: skip
    tables = [_table(found, judge, what) for judge in JUDGES for what in ("error", "tau")]
    return Report(
        "Leaderboards from few votes",
        "13,459 votes of people on 20 chat models, and votes of two language models on the same answers; mean over "
        f"{draws} draws of some human votes. Error: root mean squared error of the win probabilities of all pairs. "
        "Tau: Kendall's tau with the order of all human votes. Leaderboard has the model's votes as cheap ones.",
        (*tables, _covered(found), _best(best), _workers(of_workers), _tastes(of_tastes)),
        _findings(found),
    )


def _mean(found: dict[Any, Any], judge: str, n: int, what: str, way: str) -> float:
    return float(np.mean([one[what][way] for one in found[judge, n]]))


def _table(found: dict[Any, Any], judge: str, what: str) -> ReportTable:
    rows: list[tuple[Cell, ...]] = [(way, *(_mean(found, judge, n, what, way) for n in SIZES)) for way in WAYS]
    title = {"error": "Error of win probabilities", "tau": "Tau"}[what]
    return ReportTable(
        f"{title}, {judge}", ("way", *(f"{n} votes" for n in SIZES)), tuple(rows), digits=4 if what == "error" else 3
    )


def _covered(found: dict[Any, Any]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    for judge in JUDGES:
        for way in ("Leaderboard, people only", "Leaderboard"):
            if way == "Leaderboard" or judge == JUDGES[0]:
                for at, what in enumerate(("intervals", "sets of ranks", "ranks in a set")):
                    means = (float(np.mean([one["covered"][way][at] for one in found[judge, n]])) for n in SIZES)
                    rows.append((f"{way}, {judge}" if way == "Leaderboard" else way, what, *means))
    note = "Share of intervals with the score from all votes, and of draws in which all sets contain the ranks, "
    note += "and the mean size of a set."
    return ReportTable(
        "Coverage at 95 %", ("way", "of", *(f"{n} votes" for n in SIZES)), tuple(rows), digits=3, note=note
    )


def _best(best: dict[str, Any]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = [(way, *np.mean(values, axis=0).tolist()) for way, values in best.items()]
    note = "Share of runs in which the best of 20 items leads. Votes are drawn from the model of all human votes."
    return ReportTable(
        "Finding the best item", ("pairs", *(f"{n} votes" for n in BEST_SIZES)), tuple(rows), digits=2, note=note
    )


def _workers(found: dict[str, float]) -> ReportTable:
    row: tuple[Cell, ...] = (int(found["n"]), float(found["spearman"]), float(found["p"]), float(found["dispersion"]))
    note = f"Workers of llmfao with at least {MIN_WORKER_VOTES} votes on questions that others answered too."
    columns = ("workers", "Spearman", "p", "dispersion of 13 prompts")
    return ReportTable(
        "Reliability and agreement with others", columns, (row,), formats=("", ".3f", ".1e", ".2f"), note=note
    )


def _tastes(found: dict[float, list[float]]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = [(f"{spread:g}", *values) for spread, values in found.items()]
    columns = ("deviation", "log p, seen worker", "squared error", "log p, new worker", "squared error, new worker")
    note = "Held-out votes of llmfao: a fifth of the votes, or half of the workers. Deviation: prior standard "
    note += "deviation of a worker's own value of an item; 0 is the model of Leaderboard."
    return ReportTable("Tastes of workers", columns, tuple(rows), digits=4, note=note)


def _findings(found: dict[Any, Any]) -> tuple[str, ...]:
    findings = []
    for judge in JUDGES:
        gaps = []
        for n in SIZES:
            alone = min(_mean(found, judge, n, "error", way) for way in ("people only", "judge only"))
            gaps.append(_mean(found, judge, n, "error", "Leaderboard") - alone)
        findings.append(
            f"{judge}: the error of Leaderboard differs from the better of people only and judge only by "
            f"{', '.join(f'{gap:+.4f}' for gap in gaps)} with {', '.join(map(str, SIZES))} votes."
        )
    return tuple(findings)
