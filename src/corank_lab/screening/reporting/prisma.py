"""Numbers of a PRISMA 2020 flow diagram: identified, duplicates, screened, excluded by reason, included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from corank.tables import ReportTable
from corank_lab.records.records import Records
from corank_lab.screening.reporting.export import Groups, SettledAnswer, spread

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
        """All numbers, none of which is negative."""
        single = (self.duplicates_found, self.duplicates_marked, self.included, self.conflicts, self.unread)
        return (*single, *(n for _, n in (*self.identified, *self.excluded)))

    @property
    def n_identified(self) -> int:
        """Number of records of all sources."""
        return sum(n for _, n in self.identified)

    @property
    def n_duplicates(self) -> int:
        """Number of duplicates."""
        return self.duplicates_found + self.duplicates_marked

    @property
    def unique(self) -> int:
        """Number of records without duplicates."""
        return self.n_identified - self.n_duplicates

    @property
    def n_excluded(self) -> int:
        """Number of excluded records."""
        return sum(n for _, n in self.excluded)

    @property
    def screened(self) -> int:
        """Number of records that a judge has decided on, conflicts too."""
        return self.n_excluded + self.included + self.conflicts

    @property
    def why_unread(self) -> str:
        """Why records were not screened, in words."""
        return self.stopped_by or "screening not finished"

    def table(self) -> ReportTable:
        """Return the numbers as a table."""
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
    groups: Groups | None = None,
    *,
    stopped_by: str = "",
    sources: Mapping[str, str] | None = None,
) -> PrismaCounts:
    """Count the records of a screening."""
    names = [(sources or {}).get(detail.source, detail.source) or "other sources" for detail in records.details]
    listed = [(sources or {}).get(entry.name, entry.name) for entry in records.sources]
    identified = {name: 0 for name in listed if name in names} | Counter(names)
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
