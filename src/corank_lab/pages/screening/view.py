"""A record as HTML: highlighted words, and links to DOI and PubMed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from corank_lab.pages.markup import clean, one_line
from corank_lab.records.records import RecordDetails
from corank_lab.screening.matching import UniqueRecords

MAX_AUTHORS = 12
MAX_KEYWORDS = 40
_SIDES = ("for", "against", "tellfor", "tellagainst")


def split_words(text: str) -> list[str]:
    """Return the words of a setting, which commas or line ends separate."""
    return [one for part in re.split(r"[,\n]", text) if (one := " ".join(part.split()))]


def highlight(text: str, words: Mapping[str, Sequence[str]]) -> Markup:
    """
    Return a text as HTML with highlighted words.

    >>> print(highlight("Rats & mice", {"for": ["rat*"], "against": ["mice"]}))
    <mark class="for">Rats</mark> &amp; <mark class="against">mice</mark>
    """
    text = clean(text)
    given = [(side, _pattern(words[side])) for side in _SIDES if words.get(side)]
    if not given:
        return escape(text)
    pattern = re.compile("|".join(f"(?P<{side}>{part})" for side, part in given), re.IGNORECASE)
    parts: list[Markup] = []
    at = 0
    for found in pattern.finditer(text):
        parts.append(escape(text[at : found.start()]))
        parts.append(Markup('<mark class="{}">{}</mark>').format(found.lastgroup, found[0]))
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def record_values(unique: UniqueRecords, number: int, words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what a page shows of a record."""
    records = unique.unique
    details = records.details[number]
    abstract = [part for part in re.split(r"\n+", clean(records.abstracts[number])) if part.strip()]
    authors = [one_line(one, 100) for one in details.authors[:MAX_AUTHORS]]
    more = len(details.authors) - len(authors)
    members = unique.members(number)[1:]
    return {
        "id": records.ids[number],
        "title": highlight(" ".join(records.titles[number].split()), words),
        "plain_title": one_line(records.titles[number], 200) or records.ids[number],
        "abstract": [highlight(part, words) for part in abstract],
        "year": details.year,
        "authors": "; ".join(authors) + (f" (+{more})" if more > 0 else ""),
        "journal": one_line(details.journal, 200),
        "links": links(details),
        "keywords": [highlight(one_line(one, 80), words) for one in details.keywords[:MAX_KEYWORDS]],
        "source": one_line(details.source, 100),
        "duplicates": [
            {"title": one_line(unique.everything.titles[one], 160), "source": unique.everything.details[one].source}
            for one in members
        ],
        "evidence": unique.evidence(number),
    }


def links(details: RecordDetails) -> list[tuple[str, str]]:
    """Return names and https addresses of a record: DOI, PubMed, and its own address if that is https."""
    found = []
    if details.doi.startswith("10."):
        found.append((f"doi:{one_line(details.doi, 80)}", f"https://doi.org/{quote(details.doi, safe='/:;()._-')}"))
    if details.pmid.isascii() and details.pmid.isdigit():
        found.append((f"PubMed {details.pmid}", f"https://pubmed.ncbi.nlm.nih.gov/{details.pmid}/"))
    address = clean(details.url).strip()
    if re.fullmatch(r"https://[^\s<>\"'`\\]+", address):
        found.append((one_line(address.removeprefix("https://"), 60), address))
    return found


def _pattern(words: Sequence[str]) -> str:
    """
    Return a pattern of whole words; blanks in a word match any blanks.

    A ``*`` is a wildcard only at the end of a word: several of them in one word could take exponential time.
    """
    parts = [
        r"\s+".join(re.escape(part.rstrip("*")) + r"\w*" * part.endswith("*") for part in word.split())
        for word in sorted(words, key=len, reverse=True)
        if word.strip("* ")
    ]
    return rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)" if parts else r"(?!)"
