"""Bibliographic records with title, abstract, references and judgements, and the review of the package."""

from __future__ import annotations

import gc
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from corank.data import open_text
from corank.errors import InputError, closest
from corank.tables import ReportTable
from corank_lab.records.identity import fingerprint, normalise_doi

if TYPE_CHECKING:
    from corank_lab.records.duplicates import DuplicateGroups

T = TypeVar("T")

REVIEW = "Donners_2021.jsonl"
REVIEW_CITATION = (
    "Donners et al., Pharmacokinetics and Associated Efficacy of Emicizumab in Humans: A Systematic Review (2021), "
    "from SYNERGY (De Bruin et al. 2023, doi 10.34894/HE6NAQ, CC0)"
)
"""The review that comes with the package, and how to cite it; see reviews/ATTRIBUTION.md."""

_REVIEW_FILE = resources.files("corank_lab.records").joinpath("reviews", f"{REVIEW}.xz")


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """Bibliographic details of a record; what the file does not hold is empty."""

    year: int | None = None  # year of publication
    authors: tuple[str, ...] = ()  # names as in the file, the first author first
    journal: str = ""  # journal, book or conference
    doi: str = ""  # DOI in lower case, without address or prefix
    pmid: str = ""  # number in PubMed
    accession: str = ""  # number that the database gives to the work
    given_id: str = ""  # id in the file itself
    keywords: tuple[str, ...] = ()  # keywords and subject headings
    url: str = ""  # address of the work
    source: str = ""  # name of the file


@dataclass(frozen=True)
class RecordSource:
    """A file that records were read from."""

    name: str  # name of the file
    sha256: str  # hash of its bytes
    format: str  # what was recognised, such as ``"RIS"``
    n_records: int  # number of records in it
    remarks: tuple[str, ...] = ()  # what was assumed, one sentence each, such as the encoding


class ComputedSequence(Sequence[T]):
    """Values that are computed when they are first needed, since few of them are."""

    def __init__(self, n: int, compute: Callable[[int], T]) -> None:
        self._n, self._compute = n, cache(compute)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(self._n)[index]]
        return self._compute(range(self._n)[index])

    def __reduce__(self) -> Any:  # the function cannot be pickled
        return list, (list(self),)


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """
    Records to screen, in the order of their file.

    ids: One per record, all different.
    titles: May be empty.
    abstracts: May be empty.
    references: Works that each record cites, in the collection or not; none by default. Each is an id, a DOI or, if the
        file has free text, one reference as text; see `corank_lab.records.parsed`.
    labels: 1 for relevant, 0 for irrelevant, NaN for not judged; all NaN by default.
    fields: Columns or tags of the file as they are, which are kept for export.
    details: Year, authors, journal, identifiers, keywords and address of each record.
    sources: The files that the records were read from.

    >>> Records(["a", "b"], ["Sleep and memory", "Tin"], ["Rats sleep.", ""], labels=[1, 0])
    <Records: 2 works, 1 with abstract, 0 with references; 1 relevant, 1 not>
    """

    ids: Sequence[str]
    titles: Sequence[str]
    abstracts: Sequence[str]
    references: Sequence[Sequence[str]] = ()
    labels: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    fields: Sequence[Mapping[str, list[str]]] = ()
    details: Sequence[RecordDetails] = ()
    sources: Sequence[RecordSource] = ()

    def __post_init__(self) -> None:
        n = len(self.ids)
        object.__setattr__(self, "references", self.references or [()] * n)
        object.__setattr__(self, "fields", self.fields or [{}] * n)
        object.__setattr__(self, "details", self.details or [RecordDetails()] * n)
        labels = np.asarray(self.labels, dtype=np.float64)
        object.__setattr__(self, "labels", labels if len(labels) else np.full(n, np.nan))
        for name in ("titles", "abstracts", "references", "labels", "fields", "details"):
            if len(getattr(self, name)) != n:
                raise InputError(f"{name} has {len(getattr(self, name))} values for {n} ids; pass one for each record.")
        if n == 0:
            raise InputError("there are no records; pass at least one.")
        known = (self.labels == 0) | (self.labels == 1) | np.isnan(self.labels)
        if not known.all():
            raise InputError(
                f"labels contains {self.labels[~known][0]:g}; pass 1 (relevant), 0 (irrelevant) or NaN (not judged)."
            )
        if len(self.number) < n:
            first: dict[str, int] = {}
            for i, item in enumerate(self.ids):
                if first.setdefault(item, i) != i:
                    raise InputError(
                        f"records {first[item] + 1} and {i + 1} have the same id {item!r}; remove one of them, or "
                        "change one id."
                    )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        relevant, other = (np.count_nonzero(self.labels == label) for label in (1, 0))
        return (
            f"<Records: {len(self)} works, {sum(map(bool, self.abstracts))} with abstract, "
            f"{sum(map(bool, self.references))} with references; {relevant} relevant, {other} not>"
        )

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of each record, from 0, by id."""
        return {item: i for i, item in enumerate(self.ids)}

    @cached_property
    def keys(self) -> Sequence[tuple[str, ...]]:
        """Keys of each record, the most reliable first; see `corank_lab.records.identity`."""
        return ComputedSequence(len(self), self._keys)

    def _keys(self, index: int) -> tuple[str, ...]:
        item = self.details[index]
        kinds = {
            "doi": item.doi, "pmid": item.pmid, "accession": item.accession,
            # without a title the abstract identifies a record, since a file may be numbered anew
            "title": fingerprint(self.titles[index] or self.abstracts[index], item.year, item.authors),
            "id": item.given_id or self.ids[index],
        }  # fmt: skip
        return tuple(f"{kind}:{value}" for kind, value in kinds.items() if value)

    def take(self, numbers: Iterable[int]) -> Records:
        """Return some of the records."""
        chosen = list(numbers)
        columns = {
            name: [getattr(self, name)[i] for i in chosen]
            for name in ("ids", "titles", "abstracts", "references", "fields", "details")
        }
        return Records(**columns, labels=self.labels[chosen], sources=self.sources)

    def numbers_of(self, ids: Iterable[str]) -> list[int]:
        """Find records by id."""
        wanted = list(ids)
        for item in wanted:
            if item not in self.number:
                guess = closest(item, self.ids)
                raise InputError(
                    f"there is no record {item!r}; " + (f"did you mean {guess!r}?" if guess else "check the id.")
                )
        return [self.number[entry] for entry in wanted]


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the search for cycles, which takes a fifth of the time while millions of texts are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_records(
    path: str | os.PathLike[str],
    *more_paths: str | os.PathLike[str],
    title: str | None = None,
    text: str | None = None,
) -> Records:
    """
    Read records from the exports of databases and reference managers.

    The content decides on the format, not the name: RIS, PubMed, Ovid, Cochrane and Web of Science text, RefWorks and
    EndNote tagged text, EndNote and PubMed XML, BibTeX, CSV, TSV, Excel, JSON lines and JSON (OpenAlex, CSL and
    others), plain or compressed with gzip, xz or zstandard, in UTF-8, UTF-16 or Windows-1252. Columns are found by
    name, in any case. `Records.sources` says what was recognised and assumed.
    """
    from corank_lab.records.reading import read_files  # which imports this module

    return read_files([path, *more_paths], title, text)


def load_review() -> Records:
    """
    Load a small, fully judged review: 258 records on emicizumab, of which 15 were included.

    The review is Donners et al., Pharmacokinetics and Associated Efficacy of Emicizumab in Humans: A Systematic Review,
    2021, from SYNERGY (De Bruin et al. 2023, doi 10.34894/HE6NAQ, CC0). Please cite both.

    >>> load_review()
    <Records: 258 works, 250 with abstract, 154 with references; 15 relevant, 243 not>
    """
    with resources.as_file(_REVIEW_FILE) as path:
        return read_records(path)


def review_text() -> bytes:
    """Return the review of the package as JSON lines in UTF-8, with the abstracts as inverted indexes."""
    with resources.as_file(_REVIEW_FILE) as path:
        return open_text(path).read().tobytes()


def records_to_json(records: Records) -> dict[str, Any]:
    """
    Return records as JSON values; a field that is the title or the abstract is the word "title" or "abstract".

    >>> found = records_from_json(records_to_json(Records(["a"], ["Tin"], [""], labels=[1])))
    >>> found.ids, found.labels.tolist()
    (['a'], [1.0])
    """
    return {
        "ids": list(records.ids),
        "titles": list(records.titles),
        "abstracts": list(records.abstracts),
        "references": [list(reference) for reference in records.references],
        "labels": [None if math.isnan(label) else label for label in records.labels.tolist()],
        "fields": [
            {name: _shorter(values, title, abstract) for name, values in fields.items()}
            for fields, title, abstract in zip(records.fields, records.titles, records.abstracts, strict=True)
        ],
        "details": [
            {name: value for name in RecordDetails.__slots__ if (value := getattr(detail, name)) not in (None, "", ())}
            for detail in records.details
        ],
        "sources": [asdict(source) for source in records.sources],
    }


def _shorter(values: list[str], title: str, abstract: str) -> list[str] | str:
    return "title" if values == [title] else "abstract" if values == [abstract] else values


def records_from_json(values: Mapping[str, Any]) -> Records:
    """Return the records of JSON values."""
    labels = [math.nan if value is None else value for value in values["labels"]]
    return Records(
        values["ids"],
        values["titles"],
        values["abstracts"],
        [tuple(value) for value in values["references"]],
        np.array(labels, dtype=np.float64),
        [
            {
                name: texts[value] if isinstance(value, str) and value in texts else value
                for name, value in fields.items()
            }
            for fields, title, abstract in zip(values["fields"], values["titles"], values["abstracts"], strict=False)
            for texts in ({"title": [title], "abstract": [abstract]},)
        ],
        [RecordDetails(**_tuples(value)) for value in values["details"]],
        [RecordSource(**_tuples(value)) for value in values["sources"]],
    )


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


TITLE = 80
"""Letters of a title in the table of duplicates."""
MAX_LISTED = 5
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

    total: FileSummary  # all records
    files: tuple[FileSummary, ...]  # the files, in the order of reading
    n_groups: int | None  # number of groups of duplicates; None if they were not searched
    n_references: int  # number of references of all records
    n_matched: int  # number of these that name a record of the collection
    remarks: tuple[str, ...] = ()  # what the readers assumed, one sentence each, with the name of the file

    def sentences(self) -> tuple[str, ...]:
        """Return what is not in the columns of the table."""
        total = self.total
        duplicates = labels = references = "No {} were found."
        if self.n_groups is not None and total.n_duplicates:
            left = _n(total.n_records - total.n_duplicates, "record")
            duplicates = f"{_n(total.n_duplicates, 'duplicate')} in {_n(self.n_groups, 'group')}: {left} to judge."
        judged = total.n_relevant + total.n_irrelevant
        if judged:
            labels = (
                f"{_n(judged, 'record')} {'has a label' if judged == 1 else 'have labels'}: "
                f"{total.n_relevant} relevant, {total.n_irrelevant} irrelevant; {total.n_records - judged} without."
            )
        if self.n_references:
            named = "1 names a record" if self.n_matched == 1 else f"{self.n_matched} name records"
            references = f"{_n(self.n_references, 'reference')}, of which {named} of this collection."
        result = [labels.format("labels"), references.format("references"), *self.remarks]
        return (*([] if self.n_groups is None else [duplicates.format("duplicates")]), *result)

    def table(self) -> ReportTable:
        """Return the summary as a table."""
        columns = (
            "file", "format", "records", "no title", "no abstract", "no year", "no authors", "no DOI or PMID",
            "duplicates", "relevant", "irrelevant", "with references",
        )  # fmt: skip
        total = _row(self.total)
        rows = [*map(_row, self.files), *([total] if len(self.files) > 1 else [])]
        used = [i for i in range(len(columns)) if i <= 2 or total[i]]
        shown = tuple(tuple(row[i] for i in used) for row in rows)
        return ReportTable("Import", tuple(columns[i] for i in used), shown, note=" ".join(self.sentences()))


def summarise(records: Records, groups: DuplicateGroups | None = None, matched: int | None = None) -> ImportSummary:
    """Summarise an import."""
    judged = None if groups is None else set(groups.representatives)
    formats = {source.name: source.format for source in records.sources}
    members: dict[str, list[int]] = {name: [] for name in formats}
    for i, item in enumerate(records.details):
        members.setdefault(item.source, []).append(i)
    return ImportSummary(
        _summary(records, "all", "", range(len(records)), judged),
        tuple(_summary(records, name or "records", formats.get(name, ""), members[name], judged) for name in members),
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


def _summary(
    records: Records, name: str, form: str, numbers: Sequence[int], judged: Collection[int] | None
) -> FileSummary:
    details = [records.details[i] for i in numbers]
    missing = {
        "title": sum(not records.titles[i].strip() for i in numbers),
        "abstract": sum(not records.abstracts[i].strip() for i in numbers),
        "year": sum(detail.year is None for detail in details),
        "authors": sum(not detail.authors for detail in details),
        "identifier": sum(not (detail.doi or detail.pmid) for detail in details),
    }
    labels = Counter(records.labels[list(numbers)].tolist())
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
    ids = ", ".join(records.ids[group.representative] for group in result[:MAX_LISTED])
    more = f" and {len(result) - MAX_LISTED} more" if len(result) > MAX_LISTED else ""
    which = "One group" if len(result) == 1 else f"{len(result)} groups"
    return (f"{which} of duplicates with different labels count{'s' * (len(result) == 1)} as unlabelled: {ids}{more}.",)


def _short(text: str) -> str:
    return text if len(text) <= TITLE else text[: TITLE - 1] + "\u2026"


def _n(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
