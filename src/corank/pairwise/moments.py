"""
Moments: the sums over rows and pairs that every squared loss needs, in one pass, additive over queries.

For features Φ (X itself, or a kernel against basis rows) and scores y of the compared rows, with L the Laplacian of the
pairs (see `corank.pairwise`), a pass over the data gives ``[Φ y]ᵀ L [Φ y]`` and, where asked, ``[Φ y 1]ᵀ [Φ y 1]``.
Pairs of equal scores are left out unless ``ties`` is set: then L = ⊕_q c_q (n_q I − 1 1ᵀ), else the same less the
blocks of the grades. Two parts of a data set that share no query may be summed apart and added: the result is that of
the whole, up to rounding. Cost O(n d²) and O(block · d + d²) memory a thread; a query may be of any size.

The rows are cut at leaves that depend on the data alone (whole queries, about 65,536 rows), and the sums of leaves meet
in a tree by number: one, two or ten threads give the same bytes up to 192 columns. Above, BLAS multiplies with threads
of its own, and sums agree to about 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corank.core.rows.products import MOST_COLUMNS, Gram
from corank.core.rows.scaled import factors_of
from corank.core.threads import add_up
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.pairwise.moment_blocks import Features, Floats, Rows, walk_over


@dataclass(frozen=True, eq=False)
class Moments:
    """
    Sums over pairs and rows.

    Attributes
    ----------
    pair : array of shape (d + 1, d + 1)
        ``[Φ y]ᵀ L [Φ y]``.
    plain : array of shape (d + 2, d + 2), or None
        ``[Φ y 1]ᵀ diag(w) [Φ y 1]``.
    pair_weight : float
        Total weight of the pairs in L; their number where nothing is weighted.

    Examples
    --------
    >>> data = RankingData.of([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> Moments.of(data).pair.tolist()  # pairs (1, 0) and (2, 0)
    [[10.0, 4.0], [4.0, 2.0]]
    """

    pair: Floats
    plain: Floats | None
    pair_weight: float

    @classmethod
    def of(
        cls,
        data: RankingData,
        *,
        features: Features | None = None,
        rows: Rows = "scored",
        ties: bool = False,
        query_weight: str = "pairs",
        plain: bool = False,
        block: int | None = None,
    ) -> Moments:
        """
        Sum over a problem.

        Parameters
        ----------
        data : RankingData
            The problem, with its weights; with preference pairs, a pair asks for a difference of 1.
        features : callable, optional
            Takes rows of X and returns Φ for them as a dense array; X itself by default.
        rows : {"scored", "unscored"}
            Compare rows by their scores, or all unscored rows of a query with each other (then y counts as 0).
        ties : bool
            Whether two rows of equal score make a pair too.
        query_weight : {"pairs", "equal", "rows"}
            How much a query counts, see `corank.pairwise.weigh_queries`; sums over rows know no queries.
        plain : bool
            Whether to sum over rows too; preferences have no scores to sum.
        block : int, optional
            Rows in memory at a time; by default as many as make 2 MiB.

        Returns
        -------
        Moments
            The sums.
        """
        walk = walk_over(data, features, rows, ties, query_weight, plain=plain, block=block)

        def leaf(first: int, last: int) -> Moments:
            pair, single = Gram(walk.width), Gram(walk.width + 1)
            walk.add(first, last, pair, single)
            return Moments(pair.total(), single.total() if walk.has_plain else None, 0.0)

        # BLAS, which wide rows go to, has threads of its own
        n_jobs = None if walk.width < MOST_COLUMNS else 1
        sums: Moments = add_up(leaf, walk.leaves, n_jobs)
        total = replace(sums, pair_weight=walk.pair_weight)
        factors = factors_of(data.X) if features is None else None
        return total if factors is None else total.scaled(factors)

    @property
    def n_features(self) -> int:
        """Number of columns of Φ."""
        return len(self.pair) - 1

    def scaled(self, factors: Floats) -> Moments:
        """
        Return the moments of Φ diag(factors).

        Parameters
        ----------
        factors : array of shape (d,)
            What each column is multiplied by.

        Returns
        -------
        Moments
            The sums.
        """
        pair, single = np.append(factors, 1.0), np.append(factors, [1.0, 1.0])
        sums = None if self.plain is None else self.plain * np.outer(single, single)
        return Moments(self.pair * np.outer(pair, pair), sums, self.pair_weight)

    def __add__(self, other: Moments) -> Moments:
        if self.pair.shape != other.pair.shape or (self.plain is None) != (other.plain is None):
            raise InputError("these moments are of different features or kinds; sum parts of one problem only.")
        plain = None if self.plain is None or other.plain is None else self.plain + other.plain
        return Moments(self.pair + other.pair, plain, self.pair_weight + other.pair_weight)


def pair_squares(data: RankingData, *, ties: bool = False, query_weight: str = "pairs") -> tuple[Floats, float]:
    """
    Sum the squared differences of compared pairs, column by column: the diagonal of XᵀLX, without the matrix.

    Parameters
    ----------
    data : RankingData
        The problem.
    ties : bool
        Whether two rows of equal score make a pair too.
    query_weight : {"pairs", "equal", "rows"}
        How much a query counts, see `corank.pairwise.weigh_queries`.

    Returns
    -------
    squares : array of float64, shape (n_features,)
        The sums, in O(numbers stored in X).
    pair_weight : float
        Total weight of the pairs.

    Examples
    --------
    >>> squares, n_pairs = pair_squares(RankingData.of([[0.0, 5.0], [1.0, 5.0], [3.0, 6.0]], [0, 1, 1]))
    >>> squares.tolist(), n_pairs
    ([10.0, 1.0], 2.0)
    """
    walk = walk_over(data, None, "scored", ties, query_weight)

    with np.errstate(over="ignore", invalid="ignore"):
        total, factors = np.asarray(add_up(walk.squares, walk.leaves)), factors_of(data.X)
        return total if factors is None else total * factors**2, walk.pair_weight
