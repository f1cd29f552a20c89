"""Numbers and conventions in words."""

from __future__ import annotations

from corank.metrics import Convention

_GAIN = {"exp": "a grade y gains 2^y − 1", "linear": "a grade y gains y"}
_DISCOUNT = {
    "log2": "divided by log2(i + 1) at rank i",
    "letor": "divided by 1, 1, log2 3, log2 4, ... from the first rank on",
}
_TIES = {
    "expectation": "rows of equal score count as the mean over all their orders",
    "input": "rows of equal score stay in the order of the file",
    "docid": "rows of equal score stand in the order of their document ids, highest first",
}
_EMPTY = {
    "skip": "queries without a relevant row are left out",
    "zero": "queries without a relevant row count as 0",
    "one": "queries without a relevant row count as 1",
}
_SHORT = {
    "pad": "lists shorter than k are filled up with irrelevant rows",
    "zero": "lists shorter than k have an nDCG@k of 0",
}
_RARE = {
    "short_precision": ("zero", "lists shorter than k have a P@k of 0"),
    "ap_ties": ("block", "rows of equal score arrive at once in AP"),
    "ap_cut": ("possible", "AP@k divides by the relevant rows that k can hold"),
    "single_precision": (True, "scores are compared as 32-bit numbers"),
}
_UNJUDGED = {"drop": "unscored rows are left out", "irrelevant": "unscored rows count as irrelevant"}


def in_words(rules: Convention) -> str:
    """
    Say what a convention decides.

    rules: the convention.
    Returns: a sentence.

    >>> print(in_words(Convention("corank")))
    Convention corank: a grade y gains 2^y − 1, divided by log2(i + 1) at rank i; rows of equal score count as the mean
    over all their orders; queries without a relevant row are left out; lists shorter than k are filled up with
    irrelevant rows; a row is relevant from grade 1 on; unscored rows are left out.
    """
    choices = (
        f"{_GAIN[rules.gain]}, {_DISCOUNT[rules.discount]}",
        _TIES[rules.ties],
        _EMPTY[rules.empty],
        _SHORT[rules.short_ndcg],
        f"a row is relevant from grade {rules.relevant_from:g} on",
        _UNJUDGED[rules.unjudged],
        *(words for name, (value, words) in _RARE.items() if getattr(rules, name) == value),
    )
    return f"Convention {rules.name}: {'; '.join(choices)}."


def duration(seconds: float) -> str:
    """
    Say how long something took.

    seconds: the time.
    Returns: such as "4.2 s" or "1 h 02 min".

    >>> duration(4.21), duration(83), duration(3725)
    ('4.2 s', '1 min 23 s', '1 h 02 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def counted(n: int, one: str, many: str) -> str:
    """
    Say how many there are.

    n: how many.
    one, many: what one is called, and several.
    Returns: such as "1 query" or "1,204 queries".
    """
    return f"{n:,} {one if n == 1 else many}"
