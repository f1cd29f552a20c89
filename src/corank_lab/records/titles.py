"""
Comparison of titles: how alike they are, and signs that two alike titles belong to different works.

Such signs are differing numbers ("part 1", "part 2"), a whole word that was replaced ("in rats", "in mice"), and words
that name another kind of publication (an erratum, a comment, a reply).
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz, process

from corank_lab.records.identity import normalise_title


def word_set(words: str) -> frozenset[str]:
    """Return words that are separated by blanks as a set."""
    return frozenset(words.split())


_DIGITS = re.compile(r"\d+")
_LANGUAGES = (
    "Arabic|Bulgarian|Chinese|Croatian|Czech|Danish|Dutch|English|Finnish|French|German|Greek|Hebrew|Hungarian|Italian|"
    "Japanese|Korean|Norwegian|Persian|Polish|Portuguese|Romanian|Russian|Serbian|Slovak|Spanish|Swedish|Turkish|Ukrainian"
)
_LANGUAGE = re.compile(rf"[\[(]\s*(?:article\s+in\s+)?(?:(?:{_LANGUAGES})[\s,;/]*)+[\])][.\s]*$", re.IGNORECASE)
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
_AMBIGUOUS_ROMAN = {"i": "1", "v": "5", "x": "10"}
_NUMBERED = frozenset(("part", "phase", "type", "stage", "chapter", "volume", "study", "paper", "section", "class"))
_COUNTS = {
    "first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5", "one": "1", "two": "2", "three": "3",
    "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
}  # fmt: skip
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψω",
        (
            "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu",
            "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
        ),
        strict=True,
    )
)  # fmt: skip
_STOP = word_set("a an and as at by for from in into of on or the to with")
KINDS = word_set(
    "erratum errata corrigendum corrigenda correction corrections corrected addendum retraction retracted withdrawn "
    "comment comments commentary reply replies response rejoinder rebuttal letter editorial protocol"
)
"""Words by which a publication about another work differs from that work."""

GENERIC = word_set(
    "abstract abstracts acknowledgement acknowledgements announcement announcements answer article articles author "
    "authors book books calendar chapter commentary comment conference congress contents contributors correspondence "
    "cover discussion editor editorial editors errata erratum foreword from guest highlights image images in index "
    "introduction introductory invited issue issues journal letter letters literature meeting memoriam message news "
    "note notes obituary opinion oral overview paper papers perspective poster posters preface president presidential "
    "presentation presentations proceedings program programme publication questions remarks reply report research "
    "response review reviewers reviews section selected session special summary supplement symposium table the this to "
    "untitled update volume welcome of and for on a an"
)
"""Words of titles that many works share, such as an introduction or a letter to the editor."""


@lru_cache(maxsize=200_000)
def comparable_title(text: str) -> str:
    """
    Return the words of a title as they are compared: Greek letters by name, type II as type 2, without a language.
    """
    plain = text.replace("&amp;", " and ").replace("&", " and ") if " & " in text or "&amp;" in text else text
    words = normalise_title(_LANGUAGE.sub("", plain) or plain)
    for letter, name in _GREEK.items():
        if letter in words:
            words = words.replace(letter, name)
    if not words.isascii() or any(one in words for one in ("i", "v", "x")):
        parts = words.split()
        for at, one in enumerate(parts):
            if one in _ROMAN:
                parts[at] = _ROMAN[one]
            elif one in _AMBIGUOUS_ROMAN and at and parts[at - 1] in _NUMBERED:
                parts[at] = _AMBIGUOUS_ROMAN[one]
        words = " ".join(parts)
    return words


def title_similarity(one: str, other: str) -> float:
    """Return how alike two comparable titles are, from 0 to 100; blanks do not count."""
    return fuzz.ratio(one.replace(" ", ""), other.replace(" ", ""))


def numbers_differ(one: str, other: str) -> bool:
    """Return whether two comparable titles contain different numbers, as digits or as words."""
    return _numbers(one) != _numbers(other)


@lru_cache(maxsize=200_000)
def _numbers(title: str) -> tuple[str, ...]:
    found = [one.lstrip("0") or "0" for one in _DIGITS.findall(title)]
    found += [_COUNTS[word] for word in title.split() if word in _COUNTS]
    return tuple(sorted(found))


def kinds_differ(one: str, other: str) -> bool:
    """Return whether only one of two comparable titles names a kind of publication, such as an erratum or a reply."""
    return KINDS.intersection(one.split()) != KINDS.intersection(other.split())


def is_generic(title: str) -> bool:
    """Return whether a comparable title is too short or too common to identify a work."""
    words = title.split()
    telling = [word for word in words if word not in GENERIC and not word.isdigit()]
    return len(telling) < 3 or len("".join(telling)) < 15


def replaced_words(one: str, other: str) -> bool:
    """Return whether a word of each comparable title is missing in the other and resembles none of its words."""
    mine, theirs = set(one.split()), set(other.split())
    left, right = mine - theirs, theirs - mine
    if not left or not right:
        return False
    joined, others = one.replace(" ", ""), other.replace(" ", "")
    lost = (word for word in left if word not in _STOP and word not in others and not _resembles(word, right))
    new = (word for word in right if word not in _STOP and word not in joined and not _resembles(word, left))
    return any(lost) and any(new)


def _resembles(word: str, words: set[str]) -> bool:
    return process.extractOne(word, words, scorer=fuzz.ratio, score_cutoff=75) is not None


def is_beginning(one: str, other: str, least: int = 30) -> bool:
    """Return whether one comparable title is the beginning of the other, as a title without its subtitle."""
    short, long = sorted((one.replace(" ", ""), other.replace(" ", "")), key=len)
    return len(short) >= least and long.startswith(short)
