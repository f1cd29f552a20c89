"""Conventions: the choices that turn the name of a metric into one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from corank.errors import InputError, suggest_names


@dataclass(frozen=True)
class Convention:
    """
    The choices that a metric's name leaves open.

    `CONVENTIONS` holds the registered ones; ``dataclasses.replace(convention, ...)`` makes another.

    discount: Weight of rank i: 1/log2(i + 1), or LETOR's 1, 1, 1/log2 3, 1/log2 4, ...
    ties: Order of rows with equal scores: the expectation over all orders, the order of the input, or document ids
        compared as strings, highest first.
    empty: Value of a query without a relevant row; "skip" leaves it out of the mean (it is counted). Pairwise metrics
        and WTA leave out queries without a pair of different grades in every convention.
    ap_ties: Ties in average precision: as in `ties`, or all tied rows retrieved together.
    ap_cut: AP@k divides by the number R of relevant rows, or by min(R, k).
    short_ndcg: nDCG@k of a query with fewer than k rows: padded with irrelevant rows, or 0.
    """

    name: str  # name in reports
    gain: Literal["exp", "linear"] = "exp"  # gain of grade y: 2^y − 1, or y
    discount: Literal["log2", "letor"] = "log2"
    ties: Literal["expectation", "input", "docid"] = "expectation"
    empty: Literal["skip", "zero", "one"] = "skip"
    ap_ties: Literal["as_ranked", "block"] = "as_ranked"
    ap_cut: Literal["relevant", "possible"] = "relevant"
    short_ndcg: Literal["pad", "zero"] = "pad"
    short_precision: Literal["pad", "zero"] = "pad"  # the same for P@k
    relevant_from: float = 1.0  # the lowest grade that counts as relevant in binary metrics
    unjudged: Literal["drop", "irrelevant"] = "drop"  # rows with grade NaN are left out, or have grade 0
    negative: Literal["refuse", "zero"] = "refuse"  # negative grades in metrics with gains: an error, or gain 0
    single_precision: bool = False  # whether scores are compared in single precision

    def describe(self) -> str:
        """Return a sentence with the choices."""
        parts = [words for (name, value), words in _WORDS.items() if getattr(self, name) == value]
        return (
            f"Convention {self.name}: {'; '.join([*parts, f'a row is relevant from grade {self.relevant_from:g} on'])}."
        )


_WORDS: dict[tuple[str, str | bool], str] = {
    ("gain", "exp"): "grade y has gain 2^y − 1",
    ("gain", "linear"): "grade y has gain y",
    ("discount", "log2"): "divided by log2(i + 1) at rank i",
    ("discount", "letor"): "divided by 1, 1, log2 3, log2 4, ... from the first rank on",
    ("ties", "expectation"): "ties count as the mean over all their orders",
    ("ties", "input"): "ties keep the order of the file",
    ("ties", "docid"): "ties are ordered by document id, highest first",
    ("empty", "skip"): "queries without a relevant row are left out",
    ("empty", "zero"): "queries without a relevant row count as 0",
    ("empty", "one"): "queries without a relevant row count as 1",
    ("short_ndcg", "pad"): "lists shorter than k are padded with irrelevant rows",
    ("short_ndcg", "zero"): "lists shorter than k have an nDCG@k of 0",
    ("short_precision", "zero"): "lists shorter than k have a P@k of 0",
    ("ap_ties", "block"): "AP treats tied rows as retrieved together",
    ("ap_cut", "possible"): "AP@k divides by the number of relevant rows that fit into k",
    ("unjudged", "drop"): "unjudged rows are left out",
    ("unjudged", "irrelevant"): "unjudged rows count as irrelevant",
    ("single_precision", True): "scores are compared in single precision",
}

CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        Convention("corank"),
        # the official Perl scripts: a query shorter than k has no NDCG@k, yet divides the sum; LETOR 4.0 pads
        # precision with irrelevant rows (since 2009-04-24), LETOR 3.0 treats it as it treats NDCG
        Convention("letor4", discount="letor", ties="input", empty="zero", short_ndcg="zero"),
        Convention(
            "letor3", discount="letor", ties="input", empty="zero", short_ndcg="zero", short_precision="zero"
        ),
        Convention(
            "trec_eval", gain="linear", ties="docid", empty="zero", unjudged="irrelevant", negative="zero",
            single_precision=True,
        ),
        Convention("sklearn", gain="linear", empty="zero", ap_ties="block"),
        Convention("lightgbm", ties="input", empty="one", ap_cut="possible"),
    )
}  # fmt: skip


def find_convention(convention: str | Convention) -> Convention:
    """Return a registered convention by name; return a `Convention` unchanged."""
    if isinstance(convention, Convention):
        return convention
    if convention in CONVENTIONS:
        return CONVENTIONS[convention]
    raise InputError(f"{convention!r} is not a known convention; {suggest_names(str(convention), list(CONVENTIONS))}.")
