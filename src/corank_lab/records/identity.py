"""
Identity of records: the keys by which a record is recognised in another file, in another order, with a corrected title.

A key is a text with its kind: ``doi:10.1000/x1``, ``pmid:123``, ``accession:L20298``, ``id:W17``, or a fingerprint
``title:5c0e…`` of the normalised title, the year and the first author. The place in a file is never a key.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rapidfuzz import fuzz, process

if TYPE_CHECKING:
    from corank_lab.records.records import Records

# old DOIs contain parts such as <1::AID-ASI1>, which distinguish the works of an issue
_DOI = re.compile(r"\b10\.\d{4,9}/(?:[^\s\"<>{}|\\^`]|<[^\s<>]{0,40}:[^\s<>]{0,40}>)+")
_DOI_PAGE = re.compile(r"(?:/(?:full|fulltext|abstract|pdf|epdf|summary|meta|html)|\.pdf)$")
_ADDRESS = re.compile(r"[?#].*$")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_WORD = re.compile(r"[^\W_]+")
_BLANKS = {item: " " for item in range(128) if not chr(item).isalnum()}
_PMID = re.compile(r"(?:\D*\b)?0*([1-9]\d{0,8})\b")
_PARTICLES = frozenset((
    "af", "al", "bin", "da", "das", "de", "del", "della", "den", "der", "di", "do", "dos", "du", "el", "ibn", "la",
    "le", "las", "los", "ten", "ter", "van", "von", "y", "zu",
))  # fmt: skip
STRONG = ("doi", "pmid", "accession")
"""Kinds of keys that a database gives to one work."""

KINDS = (*STRONG, "title", "id")
SAME_TITLE, RELATED_TITLE = 85.0, 55.0
"""Similarity of titles, in percent, from which a given id is trusted, and from which an identifier is trusted."""


def normalise_doi(text: str) -> str:
    """Return the DOI in a text or URL in lower case, or an empty string."""
    if "10." not in text:
        return ""
    plain = unquote(html.unescape(text)) if "%" in text else html.unescape(text)
    result = _DOI.search(plain)
    if result is None:
        return ""
    doi = result[0].lower()
    before = plain[: result.start()]
    if "://" in before and not before.lower().endswith("doi.org/"):
        doi = _DOI_PAGE.sub("", _ADDRESS.sub("", doi))
    doi = doi.rstrip(".,;:'")
    while doi.endswith((")", "]")) and doi.count(doi[-1]) > doi.count({")": "(", "]": "["}[doi[-1]]):
        doi = doi[:-1].rstrip(".,;:'")
    return doi


def normalise_pmid(text: str) -> str:
    """Return the number of a PubMed id, or an empty string."""
    result = _PMID.match(text.strip())
    return result[1] if result else ""


def normalise_title(text: str) -> str:
    """Return the words of a title in lower case, without accents, markup and punctuation."""
    folded = fold_text(text)
    return " ".join(folded.translate(_BLANKS).split() if folded.isascii() else _WORD.findall(folded))


def fold_text(text: str) -> str:
    """Return a text in lower case, without accents and markup."""
    plain = html.unescape(text)
    if "<" in plain:
        plain = _TAG.sub("", plain)
    if not plain.isascii():
        plain = "".join(item for item in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(item))
    return plain.casefold()


def family_name(author: str) -> str:
    """
    Return the normalised family name of an author without particles: before the comma, or the last word but initials.
    """
    name, comma, _ = author.partition(",")
    if not comma:
        words = [word for word in author.replace(".", " ").split() if word.lower() not in ("jr", "sr")]
        long = [word for word in words if not (len(word) <= 3 and word.isupper())]
        name = long[-1] if long else max(words, key=len, default="")
    parts = normalise_title(name).split()
    while len(parts) > 1 and parts[0] in _PARTICLES:
        del parts[0]
    return " ".join(parts)


def fingerprint(title: str, year: int | None, authors: Sequence[str]) -> str:
    """Return a short hash of normalised title, year and family name of the first author; empty without a title."""
    plain = normalise_title(title)
    if not plain:
        return ""
    known = (plain, str(year or ""), family_name(authors[0]) if authors else "")
    return hashlib.blake2b("\n".join(known).encode(), digest_size=8).hexdigest()


class IdentityIndex:
    """
    Records by their keys, to find the record that an earlier answer is about.

    >>> from corank_lab.records.records import RecordDetails, Records
    >>> old = Records(["1", "2"], ["Sleep and memory in rats", "Tin"], ["", ""])
    >>> new = Records(["1", "2"], ["Tin", "Sleep and memory in rats."], ["", ""])
    >>> [IdentityIndex(new).find(keys, title) for keys, title in zip(old.keys, old.titles)]
    [1, 0]
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._by_title: dict[str, list[int]] = defaultdict(list)
        for i, keys in enumerate(records.keys):
            id_key = f"id:{records.ids[i]}"
            for key in keys if id_key in keys else (*keys, id_key):
                self._by_key[key].append(i)
            self._by_title[normalise_title(records.titles[i])].append(i)

    def find(self, keys: Sequence[str], title: str = "") -> int | None:
        """
        Return the record that has these keys, or None if no record surely has.

        An identifier of a database decides unless the titles have little in common, as abstracts of one supplement
        that share a DOI. Next is the fingerprint. A given id counts only if the titles are alike or one is unknown,
        because a file may be numbered anew. Last is a long title that only one record has.
        """
        wanted = [key if key.partition(":")[0] in KINDS else f"id:{key}" for key in keys]
        candidates = dict.fromkeys(i for key in wanted for i in self._by_key.get(key, ()))
        graded = [(grade, i) for i in candidates if (grade := self._grade(i, wanted, title)) is not None]
        if not graded:
            return self._by_long_title(wanted, title)
        best = max(grade for grade, _ in graded)
        first, *others = [i for grade, i in graded if grade == best]
        # the keys may be those of a group of duplicates: any record whose own title is among them will do
        return first if best[1] or all(self._is_copy(first, other) for other in others) else None

    def _grade(self, index: int, wanted: Sequence[str], title: str) -> tuple[int, int, int, float] | None:
        """Strong keys, fingerprint and id that agree, and the similarity of the titles; None if it is another work."""
        record_keys = self._records.keys[index]
        shared = {key.partition(":")[0] for key in wanted if index in self._by_key.get(key, ())}
        n_strong = sum(kind in shared for kind in STRONG)
        alike = self._similarity(index, wanted, title)
        conflict = self._conflict(record_keys, wanted)
        if "title" in shared:
            accepted = n_strong > 0 or not conflict or self._is_telling(index)
        elif n_strong:
            # a PubMed id or a second identifier identifies the work whatever its title is; a given id may be a number
            accepted = alike is None or alike >= RELATED_TITLE or "pmid" in shared or n_strong > 1
        else:
            # without titles, the fingerprints decide, which differ if both are known
            same = alike >= SAME_TITLE if alike is not None else not all(map(_has_title, (record_keys, wanted)))
            accepted = same and not conflict
        return (n_strong, int("title" in shared), int("id" in shared), alike or 0.0) if accepted else None

    def _similarity(self, index: int, wanted: Sequence[str], title: str) -> float | None:
        """Similarity of the titles in percent; None if one of them is unknown, 0 if their numbers differ."""

        item, other = comparable_title(title), comparable_title(self._records.titles[index])
        if not item or not other:
            return None
        if len(item) >= 40 and len(item) < len(other):
            other = other[: len(item)]  # a shortened title is compared with as much of the other
            item = item[: item.rindex(" ") if " " in item else len(item)]
            other = other[: len(item)]
        alike = title_similarity(item, other)
        return min(alike, RELATED_TITLE) if numbers_differ(item, other) else alike

    def _conflict(self, record_keys: Iterable[str], wanted: Iterable[str]) -> bool:
        """Whether both have an identifier of the same kind, and all such identifiers differ."""
        mine, theirs = _kinds(record_keys), _kinds(wanted)
        both = [kind for kind in STRONG if kind in mine and kind in theirs]
        return bool(both) and all(not (mine[kind] & theirs[kind]) for kind in both)

    def _is_telling(self, index: int) -> bool:
        """Whether title, year and first author together identify a work even if an identifier was changed."""
        item = self._records.details[index]
        return bool(item.year and item.authors) and len(normalise_title(self._records.titles[index]).split()) >= 4

    def _is_copy(self, this: int, other: int) -> bool:
        """Whether two records differ at most in their ids."""
        mine, theirs = (_kinds(self._records.keys[i]) for i in (this, other))
        return all(mine.get(kind) == theirs.get(kind) for kind in (*STRONG, "title"))

    def _by_long_title(self, wanted: Sequence[str], title: str) -> int | None:
        """Find the only record that has a title of at least five words; year or author may have been corrected."""
        plain = normalise_title(title)
        result = self._by_title.get(plain, []) if len(plain.split()) >= 5 and len(plain) >= 30 else []
        if len(result) != 1 or self._conflict(self._records.keys[result[0]], wanted):
            return None
        return result[0]


def _has_title(keys: Iterable[str]) -> bool:
    return any(key.startswith("title:") for key in keys)


def _kinds(keys: Iterable[str]) -> dict[str, set[str]]:
    result: dict[str, set[str]] = defaultdict(set)
    for key in keys:
        kind, _, value = key.partition(":")
        result[kind].add(value)
    return dict(result)


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
_GREEK = {letter: unicodedata.name(letter).split()[-1].lower() for letter in "αβγδεζηθικμνξπρστυφχψω"} | {"λ": "lambda"}
_STOP = word_set("a an and as at by for from in into of on or the to with")
REPLY_WORDS = word_set(
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


@lru_cache(maxsize=20_000)
def comparable_title(text: str) -> str:
    """
    Return the words of a title as they are compared: Greek letters by name, type II as type 2, without a language.
    """
    plain = text.replace("&amp;", " and ").replace("&", " and ") if " & " in text or "&amp;" in text else text
    words = normalise_title(_LANGUAGE.sub("", plain) or plain)
    for letter, name in _GREEK.items():
        if letter in words:
            words = words.replace(letter, name)
    if not words.isascii() or any(item in words for item in ("i", "v", "x")):
        parts = words.split()
        for i, entry in enumerate(parts):
            if entry in _ROMAN:
                parts[i] = _ROMAN[entry]
            elif entry in _AMBIGUOUS_ROMAN and i and parts[i - 1] in _NUMBERED:
                parts[i] = _AMBIGUOUS_ROMAN[entry]
        words = " ".join(parts)
    return words


def title_similarity(this: str, other: str) -> float:
    """Return how alike two comparable titles are, from 0 to 100; blanks do not count."""
    return fuzz.ratio(this.replace(" ", ""), other.replace(" ", ""))


def numbers_differ(this: str, other: str) -> bool:
    """Return whether two comparable titles contain different numbers, as digits or as words."""
    return _numbers(this) != _numbers(other)


@lru_cache(maxsize=20_000)
def _numbers(title: str) -> tuple[str, ...]:
    result = [item.lstrip("0") or "0" for item in _DIGITS.findall(title)]
    result += [_COUNTS[word] for word in title.split() if word in _COUNTS]
    return tuple(sorted(result))


def kinds_differ(this: str, other: str) -> bool:
    """Return whether only one of two comparable titles names a kind of publication, such as an erratum or a reply."""
    return REPLY_WORDS.intersection(this.split()) != REPLY_WORDS.intersection(other.split())


def is_generic(title: str) -> bool:
    """Return whether a comparable title is too short or too common to identify a work."""
    words = title.split()
    telling = [word for word in words if word not in GENERIC and not word.isdigit()]
    return len(telling) < 3 or len("".join(telling)) < 15


def replaced_words(this: str, other: str) -> bool:
    """Return whether a word of each comparable title is missing in the other and resembles none of its words."""
    mine, theirs = set(this.split()), set(other.split())
    left, right = mine - theirs, theirs - mine
    if not left or not right:
        return False
    joined, others = this.replace(" ", ""), other.replace(" ", "")
    lost = (word for word in left if word not in _STOP and word not in others and not _resembles(word, right))
    new = (word for word in right if word not in _STOP and word not in joined and not _resembles(word, left))
    return any(lost) and any(new)


def _resembles(word: str, words: set[str]) -> bool:
    return process.extractOne(word, words, scorer=fuzz.ratio, score_cutoff=75) is not None


def is_beginning(this: str, other: str, least: int = 30) -> bool:
    """Return whether one comparable title is the beginning of the other, as a title without its subtitle."""
    short, long = sorted((this.replace(" ", ""), other.replace(" ", "")), key=len)
    return len(short) >= least and long.startswith(short)
