"""The summary after an import: records of each file, missing fields, duplicates, judgements and matched references."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corank.tables import ReportTable
from corank_lab.records.identity import normalise_doi
from corank_lab.records.records import Records

if TYPE_CHECKING:  # it imports rapidfuzz
    from corank_lab.records.duplicates import DuplicateGroups

TITLE = 80
"""Letters of a title in the table of duplicates."""
LISTED = 5
"""Number of groups that a remark names."""


@dataclass(frozen=True)
class FileSummary:
    """Records of one file."""

    name: str  # name of the file
    format: str  # recognised format; empty if it is not known
    n_records: int  # number of records
    # number of records without "title", "abstract", "year", "authors" and "identifier" (DOI or PubMed number)
    missing: dict[str, int]
    n_duplicates: int  # number of duplicates of other records, which need no judgement of their own
    n_relevant: int  # n_relevant, n_irrelevant: number of records with each label
    n_irrelevant: int
    n_citing: int  # number of records with references


@dataclass(frozen=True)
class ImportSummary:
    """What an import found; made by `summarise`."""

    files: tuple[FileSummary, ...]  # the files, in the order of reading
    n_groups: int | None  # number of groups of duplicates; None if they were not searched
    n_references: int  # number of references of all records
    n_matched: int  # number of these that name a record of the collection
    remarks: tuple[str, ...] = ()  # what the readers assumed, one sentence each, with the name of the file

    @property
    def n_records(self) -> int:
        """Number of all records."""
        return sum(file.n_records for file in self.files)

    @property
    def n_duplicates(self) -> int:
        """Number of all duplicates."""
        return sum(file.n_duplicates for file in self.files)

    @property
    def n_relevant(self) -> int:
        """Number of records with the label 1."""
        return sum(file.n_relevant for file in self.files)

    @property
    def n_irrelevant(self) -> int:
        """Number of records with the label 0."""
        return sum(file.n_irrelevant for file in self.files)

    def sentences(self) -> tuple[str, ...]:
        """Return what is not in the columns of the table."""
        result = []
        if self.n_groups is not None and self.n_duplicates:
            left = self.n_records - self.n_duplicates
            result.append(
                f"{_n(self.n_duplicates, 'duplicate')} in {_n(self.n_groups, 'group')}: {_n(left, 'record')} to judge."
            )
        elif self.n_groups is not None:
            result.append("No duplicates were found.")
        judged = self.n_relevant + self.n_irrelevant
        if judged:
            n_open = self.n_records - judged
            have = "has a label" if judged == 1 else "have labels"
            result.append(
                f"{_n(judged, 'record')} {have}: {self.n_relevant} relevant, {self.n_irrelevant} irrelevant; {n_open} "
                "without."
            )
        else:
            result.append("No labels were found.")
        if self.n_references:
            named = "1 names a record" if self.n_matched == 1 else f"{self.n_matched} name records"
            result.append(f"{_n(self.n_references, 'reference')}, of which {named} of this collection.")
        else:
            result.append("No references were found.")
        return (*result, *self.remarks)

    def table(self) -> ReportTable:
        """Return the summary as a table."""
        columns = (
            "file", "format", "records", "no title", "no abstract", "no year", "no authors", "no DOI or PMID",
            "duplicates", "relevant", "irrelevant", "with references",
        )  # fmt: skip
        rows = [_row(file) for file in self.files]
        kept = [i for i in range(len(columns)) if i <= 2 or any(row[i] for row in rows)]
        if len(rows) > 1:
            sums = [sum(int(row[i]) for row in rows) for i in range(2, len(columns))]
            rows.append(("all", "", *sums))
        shown = tuple(tuple(row[i] for i in kept) for row in rows)
        return ReportTable("Import", tuple(columns[i] for i in kept), shown, note=" ".join(self.sentences()))


def summarise(records: Records, groups: DuplicateGroups | None = None, matched: int | None = None) -> ImportSummary:
    """Summarise an import."""
    judged = None if groups is None else set(groups.representatives)
    listed = [source.name for source in records.sources]
    names = list(dict.fromkeys([*listed, *(detail.source for detail in records.details)]))
    members: dict[str, list[int]] = {name: [] for name in names}
    for i, item in enumerate(records.details):
        members[item.source].append(i)
    formats = {source.name: source.format for source in records.sources}
    files = tuple(
        _file(records, name or "records", formats.get(name, ""), result, judged)
        for name, result in members.items()
        if result or name in formats
    )
    return ImportSummary(
        files,
        None if groups is None else len(groups.groups),
        sum(map(len, records.references)),
        _matched(records) if matched is None else matched,
        (
            *(f"{source.name}: {remark}" for source in records.sources for remark in source.remarks),
            *_contradictions(records, groups),
        ),
    )


def duplicate_table(records: Records, groups: DuplicateGroups) -> ReportTable:
    """Return the groups of duplicates as a table with the evidence; a star marks the record that is judged."""
    rows = [
        (
            number, "*" if i == group.representative else "", records.ids[i], _short(records.titles[i]),
            records.details[i].year, records.details[i].source, "; ".join(group.evidence) if place == 0 else "",
        )
        for number, group in enumerate(groups.groups, 1)
        for place, i in enumerate(group.members)
    ]  # fmt: skip
    columns = ("group", "judged", "id", "title", "year", "file", "evidence")
    return ReportTable("Duplicates", columns, tuple(rows), note="The record with a star is judged for its group.")


def _file(records: Records, name: str, form: str, numbers: list[int], judged: set[int] | None) -> FileSummary:
    details = [records.details[i] for i in numbers]
    missing = {
        "title": sum(not records.titles[i].strip() for i in numbers),
        "abstract": sum(not records.abstracts[i].strip() for i in numbers),
        "year": sum(detail.year is None for detail in details),
        "authors": sum(not detail.authors for detail in details),
        "identifier": sum(not (detail.doi or detail.pmid) for detail in details),
    }
    labels = Counter(records.labels[numbers].tolist())
    n_duplicates = 0 if judged is None else sum(i not in judged for i in numbers)
    n_citing = sum(bool(records.references[i]) for i in numbers)
    return FileSummary(name, form, len(numbers), missing, n_duplicates, labels[1.0], labels[0.0], n_citing)


def _row(file: FileSummary) -> tuple[str | int, ...]:
    return (
        file.name, file.format, file.n_records, *file.missing.values(), file.n_duplicates, file.n_relevant,
        file.n_irrelevant, file.n_citing,
    )  # fmt: skip


def _matched(records: Records) -> int:
    dois = {detail.doi for detail in records.details if detail.doi}
    return sum(
        cited in records.number or bool(dois and normalise_doi(cited) in dois)
        for listed in records.references
        for cited in listed
    )


def _contradictions(records: Records, groups: DuplicateGroups | None) -> tuple[str, ...]:
    """Name groups of duplicates whose labels differ."""
    result = [
        group
        for group in (() if groups is None else groups.groups)
        if {0.0, 1.0} <= set(records.labels[list(group.members)].tolist())
    ]
    if not result:
        return ()
    ids = ", ".join(records.ids[group.representative] for group in result[:LISTED])
    more = f" and {len(result) - LISTED} more" if len(result) > LISTED else ""
    which = "One group" if len(result) == 1 else f"{len(result)} groups"
    return (f"{which} of duplicates with different labels count{'s' * (len(result) == 1)} as unlabelled: {ids}{more}.",)


def _short(text: str) -> str:
    return text if len(text) <= TITLE else text[: TITLE - 1] + "\u2026"


def _n(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
