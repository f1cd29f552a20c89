"""
Moments: sufficient statistics of squared losses over rows and pairs, computed in one pass, additive over queries.

For features Φ (X itself, or a kernel against basis rows) and scores y of the compared rows, with L the Laplacian of the
pairs (see `corank.base.pairs`), one pass through the data gives ``[Φ y]ᵀ L [Φ y]`` and optionally ``[Φ y 1]ᵀ [Φ y 1]``.
With ``ties``, L = ⊕_q c_q (n_q I − 1 1ᵀ); otherwise pairs of equal scores are excluded by subtracting the blocks of the
grades. The moments of parts of a data set that share no query can be added: the result is that of the whole, up to
rounding. Cost O(n d²) time and O(block · d + d²) memory per thread; a query may have any size.

Rows are split into leaves that depend on the data only (whole queries, about 65,536 rows), and their sums are added in
a fixed tree: any number of threads gives the same bytes up to 192 columns. Above, BLAS uses its own threads, and sums
agree to about 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corank.base.pairs.moment_blocks import Features, Floats, RowKind, prepare_pass
from corank.core.rows.products import MAX_COLUMNS, GramSum
from corank.core.rows.scaled import factors_of
from corank.core.threads import add_up
from corank.data.ranking import RankingData
from corank.errors import InputError


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of products over pairs and rows."""

    pair: Floats  # ``[Φ y]ᵀ L [Φ y]``
    plain: Floats | None  # ``[Φ y 1]ᵀ diag(w) [Φ y 1]``
    pair_weight: float  # total weight of the pairs in L; their number without weights

    @classmethod
    def of(
        cls,
        data: RankingData,
        *,
        features: Features | None = None,
        rows: RowKind = "scored",
        ties: bool = False,
        query_weight: str = "pairs",
        plain: bool = False,
        block: int | None = None,
    ) -> Moments:
        """Compute the moments of a problem."""
        rows_pass = prepare_pass(data, features, rows, ties, query_weight, plain=plain, block=block)

        def leaf(first: int, last: int) -> Moments:
            pair, single = GramSum(rows_pass.width), GramSum(rows_pass.width + 1)
            rows_pass.add(first, last, pair, single)
            return Moments(pair.total(), single.total() if rows_pass.has_plain else None, 0.0)

        # wide rows are multiplied by BLAS, which has its own threads
        n_jobs = None if rows_pass.width < MAX_COLUMNS else 1
        sums: Moments = add_up(leaf, rows_pass.leaves, n_jobs)
        total = replace(sums, pair_weight=rows_pass.pair_weight)
        factors = factors_of(data.X) if features is None else None
        return total if factors is None else total.scaled(factors)

    @property
    def n_features(self) -> int:
        """Number of columns of Φ."""
        return len(self.pair) - 1

    def scaled(self, factors: Floats) -> Moments:
        """Return the moments of Φ diag(factors)."""
        pair, single = np.append(factors, 1.0), np.append(factors, [1.0, 1.0])
        sums = None if self.plain is None else self.plain * np.outer(single, single)
        return Moments(self.pair * np.outer(pair, pair), sums, self.pair_weight)

    def __add__(self, other: Moments) -> Moments:
        if self.pair.shape != other.pair.shape or (self.plain is None) != (other.plain is None):
            raise InputError("the moments have different shapes; add moments of parts of the same problem only.")
        plain = None if self.plain is None or other.plain is None else self.plain + other.plain
        return Moments(self.pair + other.pair, plain, self.pair_weight + other.pair_weight)


def pair_squares(data: RankingData, *, ties: bool = False, query_weight: str = "pairs") -> tuple[Floats, float]:
    """Sum the squared differences of compared pairs for each column: the diagonal of XᵀLX."""
    rows_pass = prepare_pass(data, None, "scored", ties, query_weight)

    with np.errstate(over="ignore", invalid="ignore"):
        total, factors = np.asarray(add_up(rows_pass.squares, rows_pass.leaves)), factors_of(data.X)
        return total if factors is None else total * factors**2, rows_pass.pair_weight
