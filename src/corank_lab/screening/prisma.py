"""Numbers of a PRISMA 2020 flow diagram: identified, duplicates, screened, excluded by reason, included."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from corank.console import printable
from corank.tables import ReportTable
from corank_lab.records.records import Records
from corank_lab.screening.export import SettledAnswer, spread

if TYPE_CHECKING:  # it imports rapidfuzz
    from corank_lab.records.duplicates import DuplicateGroups

NO_REASON = "no reason given"


@dataclass(frozen=True)
class PrismaCounts:
    """Numbers of records at each step of a review, up to the choice of reports to read in full."""

    identified: tuple[tuple[str, int], ...]  # number of records of each source
    duplicates_found: int  # number of duplicates that corank found, which were not judged
    duplicates_marked: int  # number of records that judges marked as duplicates
    excluded: tuple[tuple[str, int], ...]  # number of excluded records for each reason, the most frequent first
    included: int  # number of included records
    conflicts: int = 0  # number of screened records on which judges disagree, not settled
    unread: int = 0  # number of records that were not screened
    # why these were not screened, such as "stopped by the rule 'decline'"; empty if that is not known
    stopped_by: str = ""

    def __post_init__(self) -> None:
        if self.unique != self.screened + self.unread or min(self.counts) < 0:
            raise ValueError(f"the numbers do not add up: {self}")

    @property
    def counts(self) -> tuple[int, ...]:
        single = (self.duplicates_found, self.duplicates_marked, self.included, self.conflicts, self.unread)
        return (*single, *(n for _, n in (*self.identified, *self.excluded)))

    @property
    def n_identified(self) -> int:
        return sum(n for _, n in self.identified)

    @property
    def n_duplicates(self) -> int:
        return self.duplicates_found + self.duplicates_marked

    @property
    def unique(self) -> int:
        return self.n_identified - self.n_duplicates

    @property
    def n_excluded(self) -> int:
        return sum(n for _, n in self.excluded)

    @property
    def screened(self) -> int:
        """Number of records that a judge has decided on, conflicts too."""
        return self.n_excluded + self.included + self.conflicts

    @property
    def why_unread(self) -> str:
        return self.stopped_by or "screening not finished"

    def table(self) -> ReportTable:
        rows: list[tuple[str, str, int]] = [
            ("Identification", f"Records identified from {name}", n) for name, n in self.identified
        ]
        rows += [
            ("Identification", "Records identified", self.n_identified),
            ("Identification", "Duplicates found by corank, removed before screening", self.duplicates_found),
            ("Identification", "Duplicates marked by judges", self.duplicates_marked),
            ("Screening", "Records without duplicates", self.unique),
        ]
        if self.unread:
            rows.append(("Screening", f"Records not screened: {self.why_unread}", self.unread))
        rows.append(("Screening", "Records screened", self.screened))
        rows.append(("Screening", "Records excluded", self.n_excluded))
        rows += [("Screening", f"Records excluded: {reason}", n) for reason, n in self.excluded]
        if self.conflicts:
            rows.append(("Screening", "Records on which judges disagree, not settled", self.conflicts))
        rows.append(("Included", "Records included, to be sought for full text", self.included))
        return ReportTable("PRISMA 2020 flow", ("stage", "records", "n"), tuple(rows))


def prisma_counts(
    records: Records,
    settled: Mapping[int, SettledAnswer],
    groups: DuplicateGroups | None = None,
    *,
    stopped_by: str = "",
) -> PrismaCounts:
    """Count the records of a screening."""
    names = Counter(detail.source or "other sources" for detail in records.details)
    identified = {entry.name: 0 for entry in records.sources if entry.name in names} | names
    chosen = list(range(len(records))) if groups is None else list(groups.representatives)
    answers = spread(len(records), settled, groups)
    status = Counter(answers[number].status for number in chosen)
    reasons = Counter(answers[number].reason or NO_REASON for number in chosen if answers[number].status == "excluded")
    return PrismaCounts(
        tuple(identified.items()),
        len(records) - len(chosen),
        status["duplicate"],
        tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0] == NO_REASON, item[0]))),
        status["included"],
        status["conflict"],
        status["unread"],
        stopped_by,
    )


WIDTH = 820
STAGE, GAP, SIDE_GAP, MARGIN = 34, 26, 44, 14
BOX = (WIDTH - 2 * MARGIN - STAGE - GAP - SIDE_GAP) // 2
LEFT = MARGIN + STAGE + GAP
RIGHT = LEFT + BOX + SIDE_GAP
SIZE, LINE, PAD = 14, 20, 12
INDENT = 14
HANG = 12
MAX_LINES, MAX_ENTRIES = 4, 15
"""Lines of one text, and texts of one box; what is left out is counted, and listed in the table."""

_STYLE = """
  text { font-family: Arial, Helvetica, 'Liberation Sans', 'DejaVu Sans', sans-serif; font-size: 14px; fill: #1a1a1a; }
  .strong { font-weight: bold; }
  .page { fill: #ffffff; }
  .box { fill: #ffffff; stroke: #4a4a4a; stroke-width: 1.3; }
  .aside { fill: #f4f5f7; stroke: #4a4a4a; stroke-width: 1.3; }
  .unread { fill: #fff6e0; stroke: #8a6100; stroke-width: 1.3; stroke-dasharray: 6 3; }
  .stage { fill: #cfe0f2; stroke: #2f5d8a; stroke-width: 1.3; }
  .stagename { font-weight: bold; text-anchor: middle; fill: #12304d; }
  .arrow { stroke: #4a4a4a; stroke-width: 1.5; fill: none; }
  .head { fill: #4a4a4a; }
  @media screen and (prefers-color-scheme: dark) {
    text { fill: #ececec; }
    .page { fill: #16181c; }
    .box { fill: #1f2329; stroke: #a8adb5; }
    .aside { fill: #2a2f37; stroke: #a8adb5; }
    .unread { fill: #3a3016; stroke: #e0b455; }
    .stage { fill: #24405c; stroke: #7fb0de; }
    .stagename { fill: #dcecfb; }
    .arrow { stroke: #c3c8cf; }
    .head { fill: #c3c8cf; }
  }
"""


@dataclass(frozen=True)
class FlowBox:
    """A box of text: lines with their indentation, and whether they are bold."""

    lines: tuple[tuple[str, int, bool], ...]
    look: str = "box"

    @property
    def height(self) -> int:
        return LINE * len(self.lines) + 2 * PAD


@dataclass(frozen=True)
class FlowRow:
    """One step of the flow, and the boxes of records that leave it there."""

    stage: str
    main: FlowBox
    asides: tuple[FlowBox, ...] = ()

    @property
    def height(self) -> int:
        return max(self.main.height, sum(box.height for box in self.asides) + PAD * max(len(self.asides) - 1, 0))


def flow_diagram(counts: PrismaCounts, *, title: str = "PRISMA 2020 flow diagram") -> str:
    """Draw the flow of records of a review."""
    rows = _rows(counts)
    heights = _heights(rows)
    parts: list[str] = []
    top = MARGIN
    stages: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        bottom = top + heights[number]
        parts += _row(row, top, bottom, is_last=number == len(rows) - 1)
        stages.setdefault(row.stage, [top, bottom])[1] = bottom
        top = bottom + GAP
    height = top - GAP + MARGIN
    named = [part for stage, (begin, end) in stages.items() for part in _stage(stage, begin, end)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-labelledby="flow-title flow-desc">',
            f'<title id="flow-title">{_safe(title)}</title>',
            f'<desc id="flow-desc">{_safe(describe(counts))}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}"/>',
            *named,
            *parts,
            "</svg>\n",
        ]
    )


def describe(counts: PrismaCounts) -> str:
    """Return the numbers in words, for readers who do not see the diagram."""
    return "; ".join(f"{records}: {n}" for _, records, n in counts.table().rows) + "."


def _rows(counts: PrismaCounts) -> list[FlowRow]:
    ways = [("Before screening, by corank", counts.duplicates_found), ("Marked by judges", counts.duplicates_marked)]
    removed = _box(("Duplicate records removed", counts.n_duplicates), ways if counts.n_duplicates else [], "aside")
    rows = [
        FlowRow(
            "Identification",
            _box(("Records identified", counts.n_identified), _few(counts.identified, "sources")),
            (removed,),
        )
    ]
    unread = _box(("Records not screened", counts.unread), [(_sentence(counts.why_unread), None)], "unread")
    if counts.unread:
        rows.append(FlowRow("Screening", _box(("Records without duplicates", counts.unique)), (unread,)))
    asides = [_box(("Records excluded", counts.n_excluded), _few(counts.excluded, "reasons"), "aside")]
    if counts.conflicts:
        asides.append(_box(("Judges disagree, not settled", counts.conflicts), [], "unread"))
    rows.append(FlowRow("Screening", _box(("Records screened", counts.screened)), tuple(asides)))
    rows.append(
        FlowRow("Included", _box(("Records included", counts.included), [("To be sought for full text", None)]))
    )
    return rows


def _box(head: tuple[str, int], details: Sequence[tuple[str, int | None]] = (), look: str = "box") -> FlowBox:
    lines = [(line, 0, True) for line in _wrap(*head, 0, 1.06)]
    for text, n in details:
        first, *more = _wrap(text, n, INDENT + HANG)
        lines += [(first, INDENT, False), *((line, INDENT + HANG, False) for line in more)]
    return FlowBox(tuple(lines), look)


def _few(entries: Sequence[tuple[str, int]], what: str) -> Sequence[tuple[str, int | None]]:
    if len(entries) <= MAX_ENTRIES:
        return list(entries)
    rest = entries[MAX_ENTRIES - 1 :]
    return [*entries[: MAX_ENTRIES - 1], (f"{len(rest)} further {what}", sum(n for _, n in rest))]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _heights(rows: list[FlowRow]) -> list[int]:
    """Return the height of each row; the last row of a stage leaves space for the name of the stage."""
    heights = [row.height for row in rows]
    for stage in {row.stage for row in rows}:
        places = [place for place, row in enumerate(rows) if row.stage == stage]
        used = sum(heights[place] for place in places) + GAP * (len(places) - 1)
        heights[places[-1]] += max(0, round(0.66 * SIZE * len(stage)) + PAD - used)
    return heights


def _row(row: FlowRow, top: int, bottom: int, *, is_last: bool) -> Iterator[str]:
    yield from _drawn(row.main, LEFT, top)
    aside = top
    for box in row.asides:
        yield from _drawn(box, RIGHT, aside)
        # straight if the two boxes overlap, else from the foot of the main box
        low, high = aside, min(aside + box.height, top + row.main.height)
        middle = (low + high) / 2 if high - low >= PAD else aside + box.height / 2
        yield _arrow(LEFT + BOX, min(middle, top + row.main.height - PAD), RIGHT, middle)
        aside += box.height + PAD
    if not is_last:
        x = LEFT + BOX / 2
        yield _arrow(x, top + row.main.height, x, bottom + GAP)


def _drawn(box: FlowBox, left: int, top: int) -> Iterator[str]:
    yield f'<rect class="{box.look}" x="{left}" y="{top}" width="{BOX}" height="{box.height}" rx="3"/>'
    for number, (line, indent, strong) in enumerate(box.lines):
        look = ' class="strong"' if strong else ""
        y = top + PAD + LINE * number + SIZE
        yield f'<text{look} x="{left + PAD + indent}" y="{y}">{_safe(line)}</text>'


def _stage(name: str, top: int, bottom: int) -> Iterator[str]:
    middle = (top + bottom) / 2
    x = MARGIN + STAGE / 2
    yield f'<rect class="stage" x="{MARGIN}" y="{top}" width="{STAGE}" height="{bottom - top}" rx="6"/>'
    yield (
        f'<text class="stagename" x="{x}" y="{middle}" dominant-baseline="central" '
        f'transform="rotate(-90 {x} {middle})">{_safe(name)}</text>'
    )


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    if x1 == x2:
        head = f"{x2 - 5},{y2 - 8} {x2 + 5},{y2 - 8} {x2},{y2}"
        return f'<path class="arrow" d="M{x1} {y1}V{y2 - 7}"/><polygon class="head" points="{head}"/>'
    head = f"{x2 - 8},{y2 - 5} {x2 - 8},{y2 + 5} {x2},{y2}"
    bend = "" if y1 == y2 else f"H{(x1 + x2) / 2}V{y2}"
    return f'<path class="arrow" d="M{x1} {y1}{bend}H{x2 - 7}"/><polygon class="head" points="{head}"/>'


def _wrap(text: str, n: int | None, indent: int, bold: float = 1.0) -> list[str]:
    space = (BOX - 2 * PAD - indent) / bold
    number = [] if n is None else [f"(n = {n})"]  # it is never cut
    lines = [""]
    for word in [*printable(text).split(), *number]:
        if _length(f"{lines[-1]} {word}".strip()) <= space:
            lines[-1] = f"{lines[-1]} {word}".strip()
            continue
        lines.append("")
        for letter in word:  # a word that is wider than a line goes on in the next one
            if _length(lines[-1] + letter) > space:
                lines.append("")
            lines[-1] += letter
    lines = lines[1:] if len(lines) > 1 and not lines[0] else lines
    return lines if len(lines) <= MAX_LINES else [*lines[: MAX_LINES - 1], " ".join(["\u2026", *number])]


def _length(text: str) -> float:
    """Return the width of a text in pixels, rather too wide than too narrow."""
    return SIZE * sum(_letter(letter) for letter in text)


def _letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.02
    if unicodedata.combining(letter):
        return 0.0
    if letter in "ijlft.,:;!|'()[]I /-":
        return 0.36
    if letter in "mwMW@%\u2026" or ord(letter) > 0x2000:
        return 0.98
    return 0.72 if letter.isupper() else 0.59


def _safe(text: str) -> str:
    return escape(printable(text), {'"': "&quot;", "'": "&#39;"})
