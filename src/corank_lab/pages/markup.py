"""
Texts, records and the curve of finds as HTML.

Marks: blank lines separate paragraphs, ``**bold**``, ``*emphasis*``, `` `code` ``, lines that begin with ``-`` or ``*``
are lists, and addresses that begin with http:// or https:// are links. There is no other HTML, and no other address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from corank_lab.records.records import RecordDetails
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.project import word_pattern
from corank_lab.screening.stopping.forecast import Forecast

# an address ends before punctuation that closes a sentence
_LINK = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]]")
_MARKS = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])")
_BULLET = re.compile(r"\s*[-*•]\s+")
# control characters, half characters, and controls of the direction of writing, which may disguise the order of a text
_REMOVED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Remove control characters and controls of the writing direction; line ends and tabs stay."""
    return _REMOVED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, most: int = 200) -> str:
    """Return a text on one line, shortened."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def rich(text: str) -> Markup:
    """
    Return a text as HTML.

    >>> print(rich("*Heat* pumps\\n- <b>, see https://example.org/a."))
    <p><em>Heat</em> pumps</p>
    <ul><li>&lt;b&gt;, see <a href="https://example.org/a" ...>https://example.org/a</a>.</li></ul>
    """
    blocks = []
    for part in re.split(r"\n\s*\n", clean(text).strip()):
        whole = re.sub(r"\n[ \t]+(?![-*•\s])", " ", part)  # an indented line continues the one before
        for is_list, group in groupby(whole.split("\n"), lambda line: _BULLET.match(line) is not None):
            lines = [_inline(_BULLET.sub("", line, count=1) if is_list else line) for line in group]
            if is_list:
                items = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
                blocks.append(Markup("<ul>{}</ul>").format(items))
            elif any(line.strip() for line in lines):
                blocks.append(Markup("<p>{}</p>").format(Markup("<br>").join(lines)))
    return Markup("\n").join(blocks)


def link(address: str) -> Markup:
    """Return an address as a link if it begins with http:// or https://, else as text."""
    return _inline(clean(address).strip())


def _inline(text: str) -> Markup:
    opened = Markup('<a href="{0}" rel="noopener noreferrer nofollow" target="_blank">{0}</a>')
    return _each(_LINK, text, lambda match: opened.format(match[0]), lambda part: _each(_MARKS, part, _mark))


def _mark(match: re.Match[str]) -> Markup:
    tag, inner = next(pair for pair in zip(("code", "strong", "em"), match.groups(), strict=True) if pair[1])
    return Markup(f"<{tag}>{{}}</{tag}>").format(inner)


def _each(
    pattern: re.Pattern[str],
    text: str,
    make: Callable[[re.Match[str]], Markup],
    other: Callable[[str], Markup] = escape,
) -> Markup:
    """Return what `make` returns for each match, and `other` for the parts between them."""
    parts, end = [], 0
    for match in pattern.finditer(text):
        parts += [other(text[end : match.start()]), make(match)]
        end = match.end()
    return Markup("").join([*parts, other(text[end:])])


MAX_AUTHORS = 12
MAX_TEXT = 50_000  # number of characters of a text that a card shows
MAX_KEYWORDS = 40
_LONG = 80  # texts of more characters are paragraphs, shorter ones are listed
_SIDES = ("for", "against", "tellfor", "tellagainst")


def highlight(text: str, words: Mapping[str, Sequence[str]]) -> Markup:
    """
    Return a text as HTML with highlighted words.

    >>> print(highlight("Rats & mice", {"for": ["rat*"], "against": ["mice"]}))
    <mark class="for">Rats</mark> &amp; <mark class="against">mice</mark>
    """
    text = clean(text)
    given = [(side, word_pattern(words[side])) for side in _SIDES if words.get(side)]
    if not given:
        return escape(text)
    pattern = re.compile("|".join(f"(?P<{side}>{part})" for side, part in given), re.IGNORECASE)
    return _each(pattern, text, lambda match: Markup('<mark class="{}">{}</mark>').format(match.lastgroup, match[0]))


def record_values(unique: UniqueRecords, number: int, words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what a page shows of a record."""
    records = unique.unique
    details = records.details[number]
    abstract = [part for part in re.split(r"\n+", clean(records.abstracts[number])) if part.strip()]
    authors = [one_line(author, 100) for author in details.authors[:MAX_AUTHORS]]
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
        "keywords": [highlight(one_line(keyword, 80), words) for keyword in details.keywords[:MAX_KEYWORDS]],
        "source": one_line(details.source, 100),
        "duplicates": [
            {
                "title": one_line(unique.everything.titles[member], 160),
                "source": unique.everything.details[member].source,
            }
            for member in members
        ],
        "evidence": unique.evidence(number),
    }


def links(details: RecordDetails) -> list[tuple[str, str]]:
    """Return names and https addresses of a record: DOI, PubMed, and its own address if that is https."""
    result = []
    if details.doi.startswith("10."):
        result.append((f"doi:{one_line(details.doi, 80)}", f"https://doi.org/{quote(details.doi, safe='/:;()._-')}"))
    if details.pmid.isascii() and details.pmid.isdigit():
        result.append((f"PubMed {details.pmid}", f"https://pubmed.ncbi.nlm.nih.gov/{details.pmid}/"))
    address = clean(details.url).strip()
    if re.fullmatch(r"https://[^\s<>\"'`\\]+", address):
        result.append((one_line(address.removeprefix("https://"), 60), address))
    return result


def card(fields: Mapping[str, str], images: Container[str], hidden: Container[str] = ()) -> dict[str, Any]:
    """Return an item's image, its long texts as paragraphs and its short ones, without hidden columns, as a list."""
    facts: list[tuple[str, Markup]] = []
    texts: list[tuple[str, Markup]] = []
    image = None
    for column, value in fields.items():
        name = value.replace("\\", "/").rsplit("/", 1)[-1].strip()
        if image is None and name in images:
            image = name
        elif len(value) > _LONG or "\n" in value:
            texts.append((column, rich(value[:MAX_TEXT])))
        elif column not in hidden:
            facts.append((column, link(value)))
    return {"image": image, "facts": facts, "texts": texts}


MAX_POINTS = 400  # points of the curve of finds


def curve(finds: Sequence[int], read: int, n: int, known: int, forecast: Forecast | None) -> dict[str, Any] | None:
    """Return the plot of relevant records against records read in the order of the ranking; None before the first."""
    from corank.comparison import Axis, Curve, line_chart

    if not read:
        return None
    n_found = known + len(finds)
    estimate = forecast.estimate if forecast is not None else None
    ahead = forecast.to_reach if forecast is not None and forecast.to_reach else 0
    total = n_found / estimate.recall if estimate is not None else None
    x = Axis(0, min(n, max(1.15 * read, read + ahead)), "records read", is_whole=True)
    y = Axis(0, max(1.12 * (total or n_found), 1.0), "relevant records", is_whole=True)
    places = [(0.0, float(known))]
    for number, place in enumerate(finds, known + 1):
        places += [(place - 1.0, number - 1.0), (float(place), float(number))]
    places.append((float(read), float(n_found)))
    step = -(-len(places) // MAX_POINTS)
    curves = [Curve("found", (*places[::step], places[-1]), has_markers=False)]
    if estimate is not None and total is not None:
        ends = (min(n_found / max(estimate.high, 1e-9), y.high), min(n_found / max(estimate.low, 1e-9), y.high))
        level = ((x.low, total), (x.high, total))
        even = ((x.low, float(known)), (x.high, known + (total - known) * x.high / max(n, 1)))
        curves += [Curve("estimated, 95 % interval", level, (ends, ends), has_markers=False)]
        curves += [Curve("in random order", even, has_markers=False)]
    chart = line_chart(curves, x.label, y.label, x=x, y=y)
    words = f"{n_found} relevant records found in {read} read in the order of the ranking."
    return {"drawing": Markup(chart.svg("finds", words, words)), "read": read, "found": n_found}
