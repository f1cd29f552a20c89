"""
Names of columns: which column of a table, or key of a JSON object, holds the title, the abstract, the judgement, ...

Judgements are words in a column, or notes of ASReview, Rayyan and Covidence.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from corank.errors import InputError
from corank_lab.records.parsed import FieldNames, ParsedFile, RawRecord

STRICT_COLUMNS = (
    "included", "label included", "relevant", "final included", "included label", "included final", "included flag",
    "include", "asreview label",
)  # fmt: skip
"""Columns that must hold judgements; another value raises."""

LABEL_COLUMNS = (
    *STRICT_COLUMNS, "label", "labels included", "inclusion", "inclusion status", "include exclude",
    "screening decision",
    "final decision", "decision", "screening status", "item status", "itemstatus", "consensus decision", "screened",
    "relevance", "is relevant", "is included", "included in review", "eligible", "final status",
)  # fmt: skip
"""Columns that may hold judgements, as normalised names."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "title": (
        "title", "primary title", "article title", "document title", "paper title", "work title", "item title",
        "display name", "ti", "t1", "title primary", "reference title", "record title", "citation title",
        "study title", "publication title en", "titles", "titles title", "main title", "full title", "bti", "titel",
        "titre", "titulo", "titolo", "标题", "题名", "篇名", "title题名", "title 题名", "タイトル", "original title",
        "title original", "title english", "english title", "translated title", "book title", "booktitle", "bt", "ct",
    ),
    "abstract": (
        "abstract", "abstract note", "abstract text", "abstracttext", "abstracts", "ab", "n2",
        "abstract inverted index", "article abstract", "document abstract", "abstract english", "english abstract",
        "abstract en", "original abstract", "abstract original", "summary", "description", "zusammenfassung", "resume",
        "resumen", "resumo", "riassunto", "摘要", "summary 摘要", "要旨", "抄録", "oab",
    ),
    "year": (
        "year", "publication year", "published year", "pubyear", "pub year", "year published", "year of publication",
        "py", "y1", "yr", "pyear", "date of publication", "publication date", "date published", "published date",
        "pub date", "pubdate", "publicationdate", "publicationdateyear", "published", "published print",
        "published online", "issued", "cover date", "coverdate", "date", "da", "dp", "online date",
        "early access date", "publication date online", "date year", "dates year", "jahr", "annee", "ano", "anno",
        "年份", "year 年", "firstpublicationdate",
    ),
    "authors": (
        "authors", "author", "author names", "author s", "authors names", "author name",
        "authorships author display name", "authors author display name", "authors name", "authors list",
        "author list", "authorlist", "authorstring", "creators", "creator", "dc creator", "au", "a1", "fau", "af",
        "author full names", "authors full names", "authorships raw author name", "raw author name", "contributors",
        "all authors", "book authors", "first author", "autor", "autoren", "auteurs", "autores", "autori", "作者",
        "author 作者",
    ),
    "journal": (
        "journal", "source title", "journal title", "publication title", "journal book", "journal name",
        "container title", "primary location source display name", "host venue display name", "source publication",
        "source name", "publication name", "publicationname", "pubtitle", "pub title", "journal info journal title",
        "journalinfo journal title", "journaltitle", "parent title", "secondary title", "periodical full title",
        "venue", "publication venue name", "journal full title", "full journal name", "so", "jf", "jo", "jt", "t2",
        "ja", "j2", "publication", "source", "journal abbreviation", "abbreviated source title",
        "journal iso abbreviation", "ta", "book title", "booktitle", "conference title", "conference name",
        "conference", "proceedings title", "published in", "series title", "source full title", "zeitschrift", "revue",
        "revista", "期刊", "刊名", "source 文献来源", "来源",
    ),
    "doi": (
        "doi", "digital object identifier", "digitalobjectidentifier", "di", "do", "article doi", "ids doi", "doi url",
        "doi link", "dois", "external ids doi", "externalids doi", "prism doi", "electronic resource num",
        "doi number", "book doi",
    ),
    "pmid": (
        "pmid", "pubmed id", "pubmedid", "medline pmid", "pm", "pubmed", "pubmed pmid", "ids pmid",
        "external ids pubmed", "externalids pubmed", "pubmed number",
    ),
    "accession": (
        "accession number", "accession", "accession no", "accession num", "accession id", "unique wos id",
        "ut unique wos id", "ut", "wos id", "wos uid", "eid", "scopus id", "pui", "embase accession id", "central id",
        "an", "eric number", "arxiv id", "proquest document id", "store id", "storeid",
    ),
    "id": (
        "id", "record id", "recordid", "openalex id", "lens id", "key", "citation key", "citekey", "covidence",
        "covidence number", "covidence id", "internal id", "item id", "itemid", "paper id", "paperid", "work id",
        "reference id", "ref id", "refid", "publication id", "corpusid", "document id", "documentid", "article id",
        "uid", "uuid", "identifier", "ids openalex", "ref",
    ),
    "keywords": (
        "keywords", "author keywords", "keyword", "index keywords", "keywords plus", "mesh terms", "mesh",
        "mesh headings", "mesh term", "mesh major topics", "subjects", "subject", "subject headings", "subject terms",
        "subjectterms", "descriptors", "manual tags", "automatic tags", "kw", "de", "keywords author", "ieee terms",
        "inspec controlled terms", "inspec non controlled terms", "thesaurus terms", "identifiers keywords",
        "emtree drug index terms major focus", "emtree drug index terms", "emtree medical index terms major focus",
        "emtree medical index terms", "keywords display name", "keywords keyword", "keywordlist keyword",
        "meshheadinglist meshheading descriptorname", "fields of study", "topics", "topics display name",
        "concepts display name", "keywords author keywords", "identifier keyword", "schlagworter", "mots cles",
        "palabras clave", "palavras chave", "关键词", "keyword 关键词", "descriptor", "index terms", "fieldsofstudy",
    ),
    "url": (
        "url", "link", "urls", "article url", "landing page url", "primary location landing page url", "external url",
        "source url", "source urls", "full text link", "full text url", "fulltext url", "fulltexturl",
        "fulltexturllist fulltexturl url", "plink", "embase link", "pdf link", "pdf url", "permalink",
        "persistent link", "web link", "weblink", "record url", "ur", "open access url", "openaccesspdf url",
        "doi link", "article link", "document url", "documenturl", "links", "uri", "ee", "openurl",
        "best oa location landing page url", "article url s", "abstract url", "urls url",
    ),
    "references": (
        "references", "referenced works", "cited works", "cr", "cited references", "cited reference", "reference list",
        "bibliography", "citedreferences",
    ),
    "label": LABEL_COLUMNS,
}  # fmt: skip
"""Normalised names of each field; the first that is present and not empty is used, for keywords all."""

DOCUMENT_COLUMNS: dict[str, tuple[str, ...]] = {
    "title": ("subject", "email subject", "subject line", "file name", "filename", "file title", "document name"),
    "abstract": (
        "body", "text", "content", "contents", "extracted text", "email body", "body text", "message", "message body",
        "document text", "full text", "fulltext", "ocr text",
    ),
    "id": (
        "bates", "bates number", "bates no", "bates begin", "begin bates", "beg bates", "begbates", "batesbegin",
        "control number", "control no", "control id", "docid", "doc id", "begdoc", "beg doc", "doc number",
        "message id",
    ),
    "authors": ("from", "email from", "sender", "custodian"),
    "year": ("date sent", "sent date", "sent", "email sent", "sent on", "document date", "date created"),
}  # fmt: skip
"""Normalised names in tables of e-mails and documents; for fields that `COLUMNS` does not find, or by a weak name."""

_NEAR = {
    "title": (
        r"title",
        r"source|journal|publication|short|series|book|abbreviated|abbreviation|alternative|alternate|original|container|"
        r"secondary|tertiary|host|conference|parent|running|job|volume|issue|proceedings|event|meeting|thesis|tool|"
        r"section|id|url|link|length|score|translated|has",
    ),
    "abstract": (r"abstract", r"url|link|id|flag|has|number|length|count|language|label|score|screening|screener|at"),
    "authors": (
        r"authors?|creators?",
        r"ids?|affiliations?|keywords?|address(?:es)?|corresponding|correspondence|count|number|email|orcids?|with|h|url",
    ),
    "year": (
        r"year|date", r"access|accessed|added|modified|entry|updated?|search|conference|created?|indexed|citation|per",
    ),
    "journal": (r"journal|periodical|venue", r"issn|id|abbr|abbreviation|rank|quartile|country|url|volume|issue|type"),
    "doi": (r"dois?", r"has|count|cited|references?"),
    "pmid": (r"pmid|pubmed", r"pmcid|has|url|central|cited"),
    "keywords": (r"keywords?|mesh|descriptors?", r"count|number|search|has|highlighted"),
    "url": (
        r"urls?|links?|uri|permalink", r"orcid|image|photo|journal|publisher|issn|profile|author|citing|cites|related",
    ),
}  # fmt: skip
"""Words in the name of a column that has no known name, and words that it must not have."""

_NEAR_WORDS = {
    field: (re.compile(rf"\b(?:{words})\b"), re.compile(rf"\b(?:{others})\b"))
    for field, (words, others) in _NEAR.items()
}
MAX_COLUMNS = 20_000
"""Columns that are looked at; a sheet of Excel has up to 16,384."""

_LONGEST = 100
"""Letters of a name that are looked at."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def normalise_name(name: str) -> str:
    """Return the words of a name in lower case, without accents and punctuation."""
    plain = _words(name)
    if plain in _KNOWN:
        return plain
    parted = _words(_CAMEL.sub(" ", name))
    return parted if parted in _KNOWN else _JOINED.get(plain, plain)


@lru_cache(maxsize=4096)
def _words(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name[:_LONGEST]).casefold()
    return " ".join(_WORD.findall("".join(item for item in folded if not unicodedata.combining(item))))


_FIELDS: dict[str, list[str]] = {}
for _field, _spellings in COLUMNS.items():
    for _spelling in _spellings:
        _FIELDS.setdefault(_words(_spelling), []).append(_field)
_KNOWN = frozenset(_FIELDS).union(*DOCUMENT_COLUMNS.values())
_JOINED = {
    joined: spelling
    for spelling in (spelling for spellings in DOCUMENT_COLUMNS.values() for spelling in spellings)
    if (joined := spelling.replace(" ", "")) not in _KNOWN
}
"""Names of load files, such as EXTRACTEDTEXT."""
_WEAK = frozenset({"summary", "description"})
"""Names of abstracts that tables of documents have beside the text, often empty."""


def fields_of(name: str) -> Sequence[str]:
    """Return the fields that a column of this name may hold; none for an unknown name."""
    return _FIELDS.get(normalise_name(name), ())


def is_known(name: str) -> bool:
    """Return whether a column of this name may hold a field."""
    return normalise_name(name) in _KNOWN


def find_columns(names: Iterable[str]) -> dict[str, list[str]]:
    """
    Return the columns of each field, the preferred first; fields without a column are left out.

    A field without a known name is looked for in columns whose names contain its word, such as "paper title (en)".
    """
    by_name: dict[str, list[str]] = {}
    for entry in islice(names, MAX_COLUMNS):
        by_name.setdefault(normalise_name(entry), []).append(entry)
    if _is_wos(by_name):
        return {field: [by_name[tag][0] for tag in tags if tag in by_name] for field, tags in WOS_COLUMNS.items()}
    result: dict[str, list[str]] = {}
    for field, spellings in COLUMNS.items():
        columns = [column for spelling in spellings for column in by_name.get(_words(spelling), ())]
        if columns:
            result[field] = list(dict.fromkeys(columns))
    for field, (words, others) in _NEAR_WORDS.items():
        if field not in result:
            near = [
                column for item, columns in by_name.items() if item not in _KNOWN for column in columns
                if len(column) < _LONGEST and words.search(parted := _words(_CAMEL.sub(" ", column)))
                and not others.search(parted)
            ]  # fmt: skip
            if near:
                result[field] = near
    for field, spellings in DOCUMENT_COLUMNS.items():
        before = result.get(field, [])
        if all(normalise_name(column) in _WEAK for column in before):
            columns = [column for spelling in spellings for column in by_name.get(spelling, ())]
            result |= {field: [*before, *columns]} if columns else {}
    if subjects := set(result.get("title", ())) & set(result.get("keywords", ())):
        result["keywords"] = [item for item in result["keywords"] if item not in subjects]
    _settle(result)
    return result


def _settle(columns: dict[str, list[str]]) -> None:
    """Give a column that two fields claim to the one that needs it."""
    titles, journals = columns.get("title", []), columns.get("journal", [])
    titles_only = [title for title in titles if title not in journals]
    if titles_only:
        columns["title"] = titles_only
    elif titles:
        columns["journal"] = [journal for journal in journals if journal not in titles]
    if len(columns.get("year", ())) > 1:  # a column of years before dates
        columns["year"].sort(key=lambda item: "year" not in normalise_name(item))


WOS_COLUMNS = {
    "title": ("ti",), "abstract": ("ab",), "year": ("py", "ey", "pd"), "authors": ("au", "af", "ba", "ca", "gp"),
    "journal": ("so", "ji", "j9"), "doi": ("di", "d2"), "pmid": ("pm",), "accession": ("ut",), "id": ("ut",),
    "keywords": ("de", "id"), "url": ("dl", "ur"), "references": ("cr",),
}  # fmt: skip
"""Tags of Web of Science, where ID holds keywords."""


def _is_wos(names: Iterable[str]) -> bool:
    known = set(names)
    return {"pt", "au", "ti", "so"} <= known and "title" not in known


YES = frozenset((
    "1", "1.0", "true", "yes", "y", "relevant", "included", "include", "i", "in", "eligible", "accept", "accepted",
    "included in review", "asreview_relevant", "is included", "selected", "keep",
))  # fmt: skip
NO = frozenset((
    "0", "0.0", "false", "no", "n", "irrelevant", "not relevant", "excluded", "exclude", "e", "out", "ineligible",
    "not eligible", "reject", "rejected", "not included", "excluded from review", "asreview_irrelevant",
    "asreview_not_relevant", "not_relevant", "is excluded",
))  # fmt: skip
UNJUDGED = frozenset((
    "", "-1", "-1.0", "nan", "none", "null", "na", "n/a", "o", "not screened", "unscreened", "not judged",
    "unlabelled", "unlabeled", "pending", "to do", "todo", "asreview_not_seen", "not_seen",
))  # fmt: skip
UNDECIDED = frozenset(
    ["maybe", "unsure", "undecided", "unclear", "conflict", "disagreement", "uncertain", "?", "no consensus"]
)
"""Words of a judgement, in lower case."""

_SPLIT_NOTES = re.compile(r"\s*\|\s*(?=RAYYAN)")
_RAYYAN = re.compile(r"RAYYAN-INCLUSION:\s{0,9}\{([^{}]*)\}", re.IGNORECASE)
_VOTE = re.compile(r"""=>\s*["']?\s*([A-Za-z ]+)""")
_EXCLUSION = re.compile(r"\s*(?:covidence\s+)?exclusion reason\s*:\s*\S", re.IGNORECASE)
_REVIEWER = re.compile(r"general notes \((.+)\)", re.IGNORECASE | re.DOTALL)
_PER_JUDGE = re.compile(r"(?:included|include|decision|vote|screening decision|inclusion)\s+(?:by\s+)?\S.*")


class _LabelCounts:
    def __init__(self) -> None:
        self.disagreeing = self.undecided = 0
        self.ignored: dict[str, str] = {}

    def remarks(self) -> list[str]:
        result = []
        if self.disagreeing:
            result.append(f"Reviewers disagree on {_records(self.disagreeing)}, read as not judged.")
        if self.undecided:
            result.append(f"The judgement of {_records(self.undecided)} is undecided, read as not judged.")
        result += [
            f"Column {column!r} holds values such as {value!r} and was not read as judgements."
            for column, value in self.ignored.items()
        ]
        return result


def _records(n: int) -> str:
    return f"{n} record{'s' * (n != 1)}"


def _judge_columns(columns: Sequence[str], normalise: Mapping[str, str]) -> list[str]:
    """Return the columns with one judge each, such as ``included (Ann)``, or those of Abstrackr."""
    reviewers = [match[1] for column in columns if (match := _REVIEWER.fullmatch(column.strip()))]
    if reviewers:
        return [column for column in columns if column in reviewers]
    return [column for column in columns if _PER_JUDGE.fullmatch(normalise.get(column, ""))]


def _is_abstrackr(columns: Iterable[str]) -> bool:
    """Return whether a table is from Abstrackr, where 1 is relevant, -1 irrelevant and 0 borderline."""
    return {"(internal) id", "consensus"} <= {column.strip().lower() for column in columns}


def _label_of(value: str, place: str) -> float:
    """Return 1, 0 or NaN for a judgement; raise `InputError` for another value."""
    judged = _known(value)
    if judged is None:
        raise InputError(
            f"{place}: the judgement is {value[:80]!r}; expected 1 (relevant), 0 (not relevant), or an empty cell."
        )
    return judged


def _is_undecided(value: str) -> bool:
    return _folded(value) in UNDECIDED


def _agreed(votes: Sequence[float], counts: _LabelCounts) -> float:
    """Return the label of several judges; NaN if none judged or they disagree."""
    known = {vote for vote in votes if not math.isnan(vote)}
    counts.disagreeing += len(known) > 1
    return known.pop() if len(known) == 1 else math.nan


def _abstrackr_vote(value: str) -> float:
    return {"1": 1.0, "-1": 0.0}.get(value.strip().removesuffix(".0"), math.nan)


def _label_of_notes(notes: Iterable[str], counts: _LabelCounts) -> float:
    """
    Return the label in notes: ASReview's marks (the last counts), Rayyan's inclusions, Covidence's exclusion reasons.
    """
    label = math.nan
    for note in notes:
        folded = _folded(note)
        if folded in ("asreview_relevant", "asreview_irrelevant", "asreview_not_relevant"):
            label = float(folded == "asreview_relevant")
        elif result := _RAYYAN.search(note):
            votes = [vote.strip() for vote in _VOTE.findall(result[1])]
            counts.undecided += any(_is_undecided(vote) for vote in votes)
            label = _agreed([math.nan if (grade := _known(vote)) is None else grade for vote in votes], counts)
        elif _EXCLUSION.match(note):
            label = 0.0
    return label


def _folded(value: str) -> str:
    return " ".join(value.split()).lower()


def _known(value: str) -> float | None:
    folded = _folded(value)
    if folded in YES:
        return 1.0
    if folded in NO:
        return 0.0
    return math.nan if folded in UNJUDGED or folded in UNDECIDED else None


def read_labels(parsed: ParsedFile, names: FieldNames) -> tuple[list[float], list[str]]:
    """Return the label of each record, of a column, of the columns of several judges, or of notes, and remarks."""
    counts = _LabelCounts()
    return _labels(parsed, names, counts), counts.remarks()


def _labels(parsed: ParsedFile, names: FieldNames, counts: _LabelCounts) -> list[float]:
    columns = parsed.columns
    if _is_abstrackr(columns) and "included" not in columns:
        judges = _judge_columns(columns, {})
        return [_abstrackr(record, judges, counts) for record in parsed.records]
    for column in names.get("label", ()):
        if (labels := _label_column(parsed, column, counts)) is not None:
            return labels
    normalised = {item: normalise_name(item) for item in columns} if parsed.is_table else {}
    judges = _judge_columns(columns, normalised) if normalised else []
    judges = [judge for judge in judges if _all_judgements(parsed.records, judge)]
    if judges:
        return [_agreed([_label_of(vote, "") for judge in judges for vote in record.get(judge, ())], counts)
                for record in parsed.records]  # fmt: skip
    notes = names.get("notes") or [item for item in columns if normalise_name(item) in ("notes", "note", "n1")]
    return [
        _label_of_notes(
            (part for note in notes for value in record.get(note, ()) for part in _SPLIT_NOTES.split(value)), counts
        )
        for record in parsed.records
    ]


def _label_column(parsed: ParsedFile, column: str, counts: _LabelCounts) -> list[float] | None:
    strict = normalise_name(column) in STRICT_COLUMNS
    values = [record.get(column, [""])[0] for record in parsed.records]
    if not strict:
        odd = next((value for value in values if _known(value) is None), None)
        if odd is not None:
            counts.ignored[column] = odd[:40]
            return None
    labels = [_label_of(value, place) for value, place in zip(values, parsed.places, strict=True)]
    counts.undecided += sum(map(_is_undecided, values))
    return labels


def _all_judgements(records: Sequence[RawRecord], column: str) -> bool:
    values = [value for record in records for value in record.get(column, ())]
    return bool(values) and None not in map(_known, values)


def _abstrackr(record: RawRecord, judges: Sequence[str], counts: _LabelCounts) -> float:
    agreed = [_abstrackr_vote(value) for value in record.get("consensus", ())]
    if agreed and not math.isnan(agreed[0]):
        return agreed[0]
    return _agreed([_abstrackr_vote(value) for judge in judges for value in record.get(judge, ())[:1]], counts)
