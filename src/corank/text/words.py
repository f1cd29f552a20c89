"""Words: splitting of text, stop words and stemming. No kernels, so that it is light to import."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from corank.errors import InputError, import_extra, suggest_names

_WORD = re.compile(r"\w\w+")

split_words = _WORD.findall
"""Return the words of a text: runs of two or more letters, digits or underscores."""


def fold(text: str) -> str:
    """Return a text in lower case (case-folded) and in Unicode's form NFKC."""
    if text.isascii():
        return text.lower()
    return (text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)).casefold()


@dataclass(frozen=True)
class Words:
    """
    A tokeniser.

    Text is normalised (Unicode NFKC) and lower-cased; words are runs of two or more letters, digits or underscores.

    language: Language of the Snowball stemmer; None does not stem.
    stop_words: Words that are ignored, before stemming.
    """

    language: str | None
    stop_words: tuple[str, ...]

    @classmethod
    def of(cls, language: str | None = "english", stop_words: str | Iterable[str] | None = "english") -> Words:
        """Make a tokeniser from a user's arguments."""
        if stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS as chosen
        elif isinstance(stop_words, str):
            raise InputError(f"stop_words is {stop_words!r}; pass 'english', a list of words, or None.")
        else:
            chosen = frozenset(stop_words or ())
        if not all(isinstance(word, str) for word in chosen):
            raise InputError("stop_words has an entry that is not a string; pass a list of words.")
        words = cls(language, tuple(sorted(map(fold, chosen))))
        words.stemmer()
        return words

    def stemmer(self) -> Callable[[list[str]], list[str]]:
        """Return the stemmer."""
        if self.language is None:
            return lambda words: words
        library = _snowball()
        if self.language not in library.algorithms():
            raise InputError(
                f"language is {self.language!r}; {suggest_names(str(self.language), library.algorithms())}."
            )
        make = library.Stemmer if hasattr(library, "Stemmer") else library.stemmer
        stem: Callable[[list[str]], list[str]] = make(self.language).stemWords
        return stem


def _snowball() -> Any:
    """Return PyStemmer, or snowballstemmer, the same algorithms in Python."""
    try:
        return import_module("Stemmer")
    except ImportError:
        try:
            return import_module("snowballstemmer")
        except ImportError:
            return import_extra("Stemmer", "text")
