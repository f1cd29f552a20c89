"""
Leaderboard: rank items from votes on pairs, with a prior from cheap votes or features.

The model is in `corank.models.votes.laplace`, its hyper-parameters and dependent votes in `corank.models.votes.scores`,
what follows from the posterior in `corank.models.votes.ranks`, and tables and plots in `corank.models.votes.text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from corank.data.io.items import Items, read_items
from corank.data.io.votes import Votes, as_votes, pair_votes
from corank.errors import InputError, suggest_names, warn
from corank.models.votes.ranks import ScorePosterior, groups_of, rank_sets
from corank.models.votes.scores import CheapScores, Hyperprior, ScoreFit
from corank.models.votes.text import board_table, draw, judge_table, listed, sentences
from corank.parameters import check_values, integer, number, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_ITEMS = 5000
"""Largest number of items: memory holds several square matrices over items."""
GOALS = ("best", "order")
"""What the next votes should find: the best item, or the order of all."""


class Leaderboard(BaseEstimator):
    """
    Rank items from votes on pairs: who wins, with what probability, and what is not decided yet.

    One model for few and many votes: scores with a Gaussian prior whose variance is learnt, ties (Davidson, 1970), the
    advantage of the first place, and a reliability for each judge. Many votes of a cheap judge, such as a language
    model, or features of the items serve as a prior; how much they say about the votes of people is learnt, so that a
    poor or a reversed judge does little harm.

    Parameters
    ----------
    level : float
        Probability of intervals and sets of ranks.

    Attributes
    ----------
    items_ : tuple of str
        Names, the best first.
    scores_ : array of shape (n_items,)
        Posterior medians, relative to the mean item; a difference of 1 is a win probability of about 0.73 without ties.
    std_ : array of shape (n_items,)
        Standard deviations of the scores relative to the mean item.
    lower_, upper_ : arrays of shape (n_items,)
        Ends of the intervals of these differences.
    covariance_ : array of shape (n_items, n_items)
        Covariance of the scores.
    ranks_ : array of shape (n_items, 2)
        Best and worst rank of each item; all sets together contain the true ranks with probability `level`.
    groups_ : list of lists of str
        Runs of items that cannot be told apart: their sets of ranks overlap.
    n_votes_ : array of shape (n_items,)
        Number of votes on each item, without cheap votes.
    side_bias_ : float
        Advantage of the item that is shown first, on the scale of the scores; 0 if the order is unknown.
    tie_weight_ : float
        Weight of a tie between equal items; 0 without ties.
    judges_ : tuple of str
        Judges with a reliability of their own.
    reliabilities_, reliability_std_ : arrays of shape (n_judges,)
        Reliability of each judge: 1 is typical, 0 a coin, below 0 the reverse order; and its standard deviation.
    slope_ : float or None
        Slope between the scores of the cheap votes and those of people; None without cheap votes.
    correlation_ : float or None
        Correlation of the scores of the cheap judge and those of people; None without cheap votes.
    tau_ : float
        Standard deviation of scores that nothing explains.
    dispersion_ : float
        Factor of the variance because votes of the same group depend on each other; 1 without groups.
    votes_ : Votes
        The votes.

    See Also
    --------
    PreferenceGP : scores of items with features, of which most were not compared.

    Examples
    --------
    >>> from corank import Leaderboard
    >>> board = Leaderboard().fit(["b", "b", "b", "c", "b", "c"], ["a", "a", "c", "a", "a", "a"])
    >>> board.items_
    ('b', 'c', 'a')
    >>> board.predict_proba("b", "a").round(1)
    array([[0.8, 0. , 0.2]])
    """

    def __init__(self, level: float = 0.95) -> None:
        self.level = level

    def fit(
        self,
        votes: Any,
        losers: ArrayLike | None = None,
        *,
        cheap: Any = None,
        features: Any = None,
        judge: ArrayLike | None = None,
        group: ArrayLike | None = None,
        ties: ArrayLike | None = None,
    ) -> Self:
        """
        Learn from votes.

        Parameters
        ----------
        votes : Votes, path, DataFrame, list of dicts, or array-like of winners
            Votes, or winners if `losers` is given.
        losers : array-like, optional
            Losers of the votes.
        cheap : Votes, path, DataFrame or list of dicts, optional
            Votes of a cheap judge on the same items, from which the prior is learnt.
        features : Items, path, or mapping of names to numbers, optional
            Features of all items, from which the prior is learnt.
        judge, group : array-like, optional
            Judge and group, such as the prompt, of each vote, if `losers` is given.
        ties : array-like of bool, optional
            Whether a vote is a tie, if `losers` is given.

        Returns
        -------
        self
            The fitted leaderboard.
        """
        check_values({"level": self.level}, {"level": number(0, 1, inside="()")})
        if losers is not None:
            votes = pair_votes(votes, losers, judge=judge, group=group, ties=ties)
        elif judge is not None or group is not None or ties is not None:
            raise InputError("judge, group or ties was given without losers; name them in the table of votes instead.")
        people, cheap_votes = as_votes(votes), None if cheap is None else as_votes(cheap)
        rows = None if features is None else _as_items(features)
        names = tuple(
            dict.fromkeys([*people.items, *(cheap_votes.items if cheap_votes else ()), *(rows.names if rows else ())])
        )
        if len(names) > MAX_ITEMS:
            raise InputError(f"there are {len(names):,} items; a leaderboard takes at most {MAX_ITEMS:,}.")
        scores = None
        if cheap_votes is not None:
            _warn_strangers(people.items, cheap_votes.items)
            other = ScoreFit.of(cheap_votes.on(names), Hyperprior(len(names)))
            scores = CheapScores(other.mean, other.covariance)
        people = people.on(names)
        F = None if rows is None else _standardised(rows, names)
        if scores is None and F is None:
            _warn_disconnected(people)
        made = Leaderboard(self.level)
        made._install(people, ScoreFit.of(people, Hyperprior(len(names), scores, F)), scores is not None)
        self.__dict__.update(made.__dict__)  # in one step: an interrupted fit leaves the old model
        return self

    def _install(self, votes: Votes, fit: ScoreFit, has_cheap: bool) -> None:
        order = np.argsort(-fit.mean, kind="stable")
        posterior = ScorePosterior(fit.mean[order], fit.covariance[np.ix_(order, order)], fit.kappa, fit.marginals)
        n_votes = sum(np.bincount(side, votes.count, len(order)) for side in (votes.first, votes.second))
        self.items_ = tuple(votes.items[i] for i in order)
        self.scores_, self.std_, self.covariance_ = posterior.mean, posterior.std, posterior.covariance
        self.lower_, self.upper_ = (
            fit.marginals.quantile(level)[order] for level in (0.5 - 0.5 * self.level, 0.5 + 0.5 * self.level)
        )
        self.ranks_ = rank_sets(posterior.draws(), self.level)
        self.groups_ = [[self.items_[i] for i in group] for group in groups_of(self.ranks_)]
        self.n_votes_ = np.asarray(n_votes)[order].astype(np.int64)
        self.side_bias_, self.tie_weight_ = fit.beta, float(np.exp(fit.kappa))
        self.judges_, self.reliabilities_, self.reliability_std_ = fit.judges, fit.r, fit.r_std
        self.slope_ = fit.slope if has_cheap else None
        self.correlation_ = fit.correlation if has_cheap else None
        self.tau_, self.dispersion_ = fit.tau, fit.dispersion
        self.votes_, self._posterior = votes.on(self.items_), posterior

    def predict_proba(self, a: Any, b: Any) -> Floats:
        """
        Return the probabilities that a wins, that there is a tie, and that b wins.

        Parameters
        ----------
        a, b : str or array-like of str
            Names of items; one name is compared with all of the other side.

        Returns
        -------
        array of shape (n, 3)
            Probabilities of a vote of a typical judge, without the advantage of the first place.
        """
        check_is_fitted(self, "items_")
        first, second = self._numbers(a), self._numbers(b)
        if len({len(first), len(second)} - {1}) > 1:
            raise InputError(f"a has {len(first)} names and b {len(second)}; pass as many, or one.")
        return self._posterior.outcomes(*np.broadcast_arrays(first, second))

    def win_matrix(self) -> Floats:
        """
        Return P(win) + P(tie)/2 of each item (row) against each other (column), in the order of `items_`.

        Returns
        -------
        array of shape (n_items, n_items)
            The probabilities; 0.5 on the diagonal.
        """
        check_is_fitted(self, "items_")
        n = len(self.items_)
        a, b = np.triu_indices(n, 1)
        p = self._posterior.outcomes(a, b)
        matrix = np.full((n, n), 0.5)
        matrix[a, b] = p[:, 0] + 0.5 * p[:, 1]
        matrix[b, a] = 1.0 - matrix[a, b]
        return matrix

    def is_better(self, a: str, b: str) -> float:
        """
        Return the probability that the score of a is higher than that of b.

        Parameters
        ----------
        a, b : str
            Names of items.

        Returns
        -------
        float
            The probability.
        """
        check_is_fitted(self, "items_")
        return self._posterior.p_better(int(self._numbers(a)[0]), int(self._numbers(b)[0]))

    def next_votes(self, n: int = 5, goal: str = "best") -> list[tuple[str, str, str | None]]:
        """
        Choose the pairs to vote on next.

        Parameters
        ----------
        n : int
            Number of pairs.
        goal : {"best", "order"}
            What the votes should find: the best item, or the order of all.

        Returns
        -------
        list of (str, str, str or None)
            Two items and the most reliable judge, None if judges are unknown.
        """
        check_is_fitted(self, "items_")
        check_values({"n": n, "goal": goal}, {"n": integer(0), "goal": one_of(*GOALS)})
        reliability, who = 1.0, None
        if self.judges_:
            i = int(np.argmax(self.reliabilities_))
            reliability, who = max(float(self.reliabilities_[i]), 0.0), self.judges_[i]
        pairs = self._posterior.next_pairs(n, goal, reliability)
        return [(self.items_[a], self.items_[b], who) for a, b in pairs.tolist()]

    def votes_to_separate(self, a: str | None = None, b: str | None = None) -> int | None:
        """
        Return how many votes on a pair would separate it: 0 if it is separated, None if more than a million.

        The first two items by default. The estimate assumes that their difference stays as it is. Separated means that
        the interval of their difference excludes 0.

        Parameters
        ----------
        a, b : str, optional
            Names of items.

        Returns
        -------
        int or None
            Number of votes of a typical judge.
        """
        check_is_fitted(self, "items_")
        first = 0 if a is None else int(self._numbers(a)[0])
        second = 1 if b is None else int(self._numbers(b)[0])
        return self._posterior.votes_to_separate(first, second, self.level)

    def rows(self) -> list[list[object]]:
        """
        Return the items with all figures, as cells of a CSV file.

        Returns
        -------
        list of lists
            A header, and one row per item, the best first.
        """
        check_is_fitted(self, "items_")
        header: list[object] = ["item", "score", "std", "low", "high", "best_rank", "worst_rank", "votes"]
        numbers = zip(self.scores_, self.std_, self.lower_, self.upper_, strict=True)
        lines = zip(self.items_, numbers, self.ranks_.tolist(), self.n_votes_.tolist(), strict=True)
        return [header, *([name, *(f"{x:.6g}" for x in values), *ranks, n] for name, values, ranks, n in lines)]

    def summary(self) -> str:
        """
        Return the table and what the votes decide as text.

        Returns
        -------
        str
            Markdown.
        """
        check_is_fitted(self, "items_")
        parts = [board_table(self).markdown(), *sentences(self)]
        return "\n\n".join([*parts, judge_table(self).markdown()] if self.judges_ else parts)

    def plot(self, path: Any = None) -> Any:
        """
        Draw intervals and win probabilities.

        Parameters
        ----------
        path : path, optional
            File to write.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        check_is_fitted(self, "items_")
        return draw(self, path)

    def _numbers(self, names: Any) -> Integers:
        position = {name: i for i, name in enumerate(self.items_)}
        wanted = [names] if isinstance(names, str) or not hasattr(names, "__iter__") else list(names)
        for name in map(str, wanted):
            if name not in position:
                raise InputError(f"there is no item {name!r}; {suggest_names(name, self.items_[:20])}.")
        return np.array([position[str(name)] for name in wanted], dtype=np.int64)


def _as_items(features: Any) -> Items:
    if isinstance(features, Items):
        return features
    if isinstance(features, Mapping):
        try:
            X = np.array([np.atleast_1d(row) for row in features.values()], dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise InputError(
                "features has rows of several lengths, or text; pass equally many numbers of each item."
            ) from error
        return Items([str(name) for name in features], X)
    return read_items(features)[0]


def _standardised(rows: Items, names: Sequence[str]) -> Floats:
    """Return features of all items with mean 0 and standard deviation 1, divided by √d."""
    missing = [name for name in names if name not in rows.number]
    if missing:
        raise InputError(f"features has no row for {listed(missing)}; add one for each item that is voted on.")
    X = rows.X[[rows.number[name] for name in names]]
    deviation = X.std(axis=0)
    varies = deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    if not varies.any():
        raise InputError("features has no numeric column that differs between items; add one, or leave features out.")
    X = (X[:, varies] - X[:, varies].mean(axis=0)) / deviation[varies]
    return np.asarray(X / np.sqrt(X.shape[1]))


def _warn_strangers(items: Sequence[str], cheap: Sequence[str]) -> None:
    missing = [item for item in items if item not in set(cheap)]
    if items and len(missing) > len(items) / 2:
        warn(
            f"{len(missing)} of {len(items)} items that people voted on are not in the cheap votes: {listed(missing)}; "
            f"those are on {listed(cheap)}. Are items spelt alike?"
        )


def _warn_disconnected(votes: Votes) -> None:
    parts = votes.components()
    if len(parts) > 1:
        shown = "; ".join(f"({listed(part)})" for part in parts[:4])
        warn(
            f"no chain of votes connects {len(parts)} groups of items, so that their difference is not determined "
            f"and comes from the prior only: {shown}{' and others' * (len(parts) > 4)}; add votes between them, or "
            "cheap votes."
        )
