"""Kinds of forces: what is known of each shipped λ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """
    What is known of a shipped λ.

    about: what it pulls at.
    metric: the metric that it serves.
    parameter: name of its parameter, or "".
    default: that parameter's value where none is given.
    has_depth: whether ``@k`` may follow.
    compares: whether it knows grades by their order in pairs only, so that preferences do as well.
    by_size: whether it matters how large grades are.
    needs_pairs: whether a query of one grade teaches nothing.
    counts_rows: whether a row of weight 2 is the row twice; otherwise only queries have weights.
    """

    about: str
    metric: str
    parameter: str = ""
    default: float | None = None
    has_depth: bool = False
    compares: bool = False
    by_size: bool = True
    needs_pairs: bool = True
    counts_rows: bool = True


KINDS: dict[str, Kind] = {
    "ranknet": Kind("every pair, by the logistic loss", "disagreement", compares=True, by_size=False),
    "margin": Kind(
        "every pair that is not in order by delta, as the paper has it", "disagreement", "delta", 1.0, compares=True,
        by_size=False,
    ),
    "ndcg": Kind("pairs, by what their swap changes of nDCG", "nDCG", "near", 0.0, has_depth=True),
    "map": Kind("pairs, by what their swap changes of AP", "AP", "rel", 1.0, counts_rows=False),
    "mrr": Kind("pairs, by what their swap changes of the reciprocal rank", "RR", "rel", 1.0, counts_rows=False),
    "err": Kind("pairs, by what their swap changes of ERR", "ERR", "max_grade", None, counts_rows=False),
    "wta": Kind("the first places, until a row of the highest grade holds the first", "WTA", by_size=False),
    "regression": Kind("every row, to its grade", "MSE", needs_pairs=False),
    "spring": Kind("every row, to zero", "disagreement", by_size=False, needs_pairs=False),
}  # fmt: skip
"""The shipped λ, by name."""

OWN = Kind("as a function of the user's says", "disagreement", counts_rows=False)
"""A function of the user's."""
