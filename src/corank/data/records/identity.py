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
from collections.abc import Sequence

_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>{}|\\^`]+")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_WORD = re.compile(r"[^\W_]+")
_PMID = re.compile(r"(?:\D*\b)?0*([1-9]\d{0,8})\b")
STRONG = ("doi", "pmid", "accession")
"""Kinds of keys that a database gives to one work."""


def normalise_doi(text: str) -> str:
    """
    Return the DOI in a text or URL in lower case, or an empty string.

    >>> normalise_doi("https://doi.org/10.1000/ABC.1 "), normalise_doi("doi:10.1000/a(b)."), normalise_doi("no")
    ('10.1000/abc.1', '10.1000/a(b)', '')
    """
    found = _DOI.search(html.unescape(text).replace("%2F", "/").replace("%2f", "/"))
    if found is None:
        return ""
    doi = found[0].lower().rstrip(".,;:'")
    while doi.endswith((")", "]")) and doi.count(doi[-1]) > doi.count({")": "(", "]": "["}[doi[-1]]):
        doi = doi[:-1].rstrip(".,;:'")
    return doi


def normalise_pmid(text: str) -> str:
    """
    Return the number of a PubMed id, or an empty string.

    >>> normalise_pmid("PMID: 0123 "), normalise_pmid("https://pubmed.ncbi.nlm.nih.gov/99/"), normalise_pmid("0")
    ('123', '99', '')
    """
    found = _PMID.match(text.strip())
    return found[1] if found else ""


def normalise_title(text: str) -> str:
    """
    Return the words of a title in lower case, without accents, markup and punctuation.

    >>> normalise_title("The <i>Café</i>&nbsp;effect: α-waves!")
    'the cafe effect α waves'
    """
    plain = _TAG.sub("", html.unescape(text))
    folded = unicodedata.normalize("NFKD", plain).casefold()
    return " ".join(_WORD.findall("".join(one for one in folded if not unicodedata.combining(one))))


def family_name(author: str) -> str:
    """
    Return the normalised family name of an author: before the comma, or the last word that is not an initial.

    >>> family_name("Yang, Z."), family_name("Zixiao Yang"), family_name("Griffin DK"), family_name("van Gogh, V.")
    ('yang', 'yang', 'griffin', 'van gogh')
    """
    name, comma, _ = author.partition(",")
    if comma:
        return normalise_title(name)
    words = [word for word in author.replace(".", " ").split() if not (len(word) <= 3 and word.isupper())]
    return normalise_title(words[-1]) if words else normalise_title(author)


def fingerprint(title: str, year: int | None, authors: Sequence[str]) -> str:
    """
    Return a short hash of normalised title, year and family name of the first author; empty without a title.

    >>> fingerprint("On tin.", 1990, ["Roe, A"]) == fingerprint("ON TIN", 1990, ["A. Roe"])
    True
    """
    plain = normalise_title(title)
    if not plain:
        return ""
    known = (plain, str(year or ""), family_name(authors[0]) if authors else "")
    return hashlib.blake2b("\n".join(known).encode(), digest_size=8).hexdigest()
