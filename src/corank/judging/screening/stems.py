"""Stems of English words, by the endings that inflection and derivation add most often."""

from __future__ import annotations

ENDINGS = (
    "ations", "ically", "ation", "ities", "ments", "ally", "edly", "ings", "ions", "ment", "ness", "ely", "ies", "ing",
    "ion", "al", "ed", "es", "ic", "ly", "e", "s", "y",
)  # fmt: skip
"""Endings, the longest first."""

MIN_STEM = 4
"""Number of letters that stay at least."""


def stem(word: str) -> str:
    """
    Return a word without its longest known ending, if at least four letters stay.

    The ending is one that inflection and derivation add often; no exceptions are listed, and a stem need not be a word.
    Numbers, and words of other languages without such endings, stay as they are.

    Examples
    --------
    >>> [stem(word) for word in ("trial", "trials", "randomised", "randomisation", "2006", "news")]
    ['trial', 'trial', 'randomis', 'randomis', '2006', 'news']
    """
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            return word[: -len(ending)]
    return word
