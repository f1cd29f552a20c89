"""Split text into words."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\w\w+")

split_words = _WORD.findall
"""Return the words of a text: runs of two or more letters, digits or underscores."""


def fold(text: str) -> str:
    """Return a text in lower case (case-folded) and in Unicode's form NFKC."""
    if text.isascii():
        return text.lower()
    return (text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)).casefold()
