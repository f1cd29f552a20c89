"""
FusionDefinition: a fusion as a readable record, written to and read from JSON.

The fused score of document d is Σ_j Σ_t w[j, t] φ_t(list of retriever j, d), a weighted sum of the transforms of
`corank.models.fusion.lists`. Every rule (RRF, means of normalised scores, one retriever alone) and everything learnt is
such a sum, so that one list of terms describes all of them.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from corank._version import __version__
from corank.data.durable.atomic import atomic_file
from corank.data.durable.files import read_regular
from corank.errors import InputError, suggest_names
from corank.models.fusion.lists import TRANSFORMS, Floats, RetrievedLists

FORMAT, VERSION = "corank fusion", 1
MAX_BYTES, MAX_RETRIEVERS = 1 << 20, 1000


@dataclass(frozen=True)
class Term:
    """
    One term of the sum.

    retriever: its name.
    transform: the name of φ, a key of `corank.models.fusion.lists.TRANSFORMS`.
    weight: w.
    k: the constant of ``reciprocal_rank``, None for other transforms.
    """

    retriever: str
    transform: str
    weight: float
    k: float | None = None


@dataclass(frozen=True)
class Estimate:
    """
    A mean of a metric over queries, estimated on queries that were left out when everything was chosen and learnt.

    metric: its name, such as "nDCG@10".
    value: the mean.
    low, high: its interval; None where there are too few queries for one.
    level: of the interval.
    n_queries: number of judged queries.
    """

    metric: str
    value: float
    low: float | None
    high: float | None
    level: float
    n_queries: int


@dataclass(frozen=True)
class EngineForm:
    """
    The nearest fusion of a form that search engines have.

    form: "rrf", Σ_j w_j / (k + rank), or "minmax", Σ_j w_j φ(score) with min-max scores φ.
    k: the constant of rrf; None for scores.
    weights: one per retriever, at least 0, with sum 1.
    loss: mean of the metric that it loses against the definition, on left-out queries; None without judgements.
    low, high: interval of the loss.
    """

    form: str
    k: float | None
    weights: tuple[float, ...]
    loss: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FusionDefinition:
    """
    A fusion of retrievers: what `Fusion` learns, what ``fusion.json`` holds, and what engines are configured from.

    retrievers: their names, in the order of the columns of X.
    terms: the terms of the sum; a retriever without a term is not used.
    rule: what was chosen, in words.
    estimate: the metric of this fusion on left-out queries; None without judgements.
    pool: how unjudged documents were treated, in one sentence.
    notes: further sentences for the reader.
    engine_forms: the nearest fusions that engines can express.
    corank: version of corank that made it.
    """

    retrievers: tuple[str, ...]
    terms: tuple[Term, ...]
    rule: str
    estimate: Estimate | None = None
    pool: str = ""
    notes: tuple[str, ...] = ()
    engine_forms: tuple[EngineForm, ...] = ()
    corank: str = __version__

    def __post_init__(self) -> None:
        names = self.retrievers
        if not names or len(names) > MAX_RETRIEVERS or len(set(names)) < len(names) or "" in names:
            raise InputError(
                f"a fusion has {len(names)} retrievers ({', '.join(names[:5])}); name 1 to {MAX_RETRIEVERS}, each once."
            )
        for term in self.terms:
            _check_term(term, names)
        if not any(term.weight for term in self.terms):
            raise InputError("a fusion has no term with a weight other than 0; give some retriever a weight.")
        for form in self.engine_forms:
            _check_form(form, len(names))

    @classmethod
    def rrf(cls, retrievers: tuple[str, ...], k: float = 60.0, **fields: Any) -> FusionDefinition:
        """Return reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009) with equal weights."""
        terms = tuple(Term(name, "reciprocal_rank", 1.0, k) for name in retrievers)
        return cls(retrievers, terms, f"RRF with k = {k:g}", **fields)

    def score(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """
        Score documents.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_retrievers)
            Retrieval scores, NaN where a retriever did not return a document; the columns are `retrievers`.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.

        Returns
        -------
        array of shape (n_rows,)
            Fused scores in input order, higher is better.

        Examples
        --------
        >>> FusionDefinition.rrf(("bm25", "vectors")).score([[7.1, np.nan], [3.2, 0.8]]).round(4).tolist()
        [0.0164, 0.0325]
        """
        lists = RetrievedLists.of(X, qid)
        if lists.X.shape[1] != len(self.retrievers):
            raise InputError(
                f"X has {lists.X.shape[1]} columns, but the fusion has the retrievers {', '.join(self.retrievers)}; "
                "pass one column of scores for each."
            )
        return self.score_lists(lists)

    def score_lists(self, lists: RetrievedLists) -> Floats:
        """Score the documents of checked lists."""
        column = {name: j for j, name in enumerate(self.retrievers)}
        computed: dict[tuple[str, float | None], Floats] = {}
        total = np.zeros(len(lists.X))
        for term in self.terms:
            key = term.transform, term.k
            if key not in computed:
                computed[key] = TRANSFORMS[term.transform](lists, term.k or 0.0)
            total += term.weight * computed[key][:, column[term.retriever]]
        return total

    def to_json(self) -> str:
        """Return the content of ``fusion.json``."""
        absent = "every term of a retriever is 0 for documents that it did not return"
        head = {"format": FORMAT, "version": VERSION, "absent documents": absent}
        return json.dumps(head | asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str = "the definition") -> FusionDefinition:
        """Read what `to_json` wrote; raise `InputError` for everything else."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(f"{name} is not JSON; pass a file that `corank fuse` wrote.") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise InputError(f"{name} does not hold a fusion; pass a file that `corank fuse` wrote.")
        if value.get("version") != VERSION:
            raise InputError(
                f"{name} has version {str(value.get('version'))[:20]!r}, but corank {__version__} reads version "
                f"{VERSION}; write it again, or install another corank."
            )
        known = {field.name: value[field.name] for field in fields(cls) if field.name in value}
        definition: FusionDefinition = _decode(known, cls, name)
        return definition

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write ``fusion.json``, atomically."""
        with atomic_file(path, overwrite=overwrite) as scratch:
            Path(scratch).write_text(self.to_json(), encoding="utf-8")


def load_fusion(path: str | Path) -> FusionDefinition:
    """
    Read a fusion that `FusionDefinition.save` or ``corank fuse`` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    FusionDefinition
        The fusion, which scores lists by `FusionDefinition.score`.

    Examples
    --------
    ``load_fusion("fusion.json").score(X, qid)``
    """
    content = read_regular(path)
    if len(content) > MAX_BYTES:
        raise InputError(f"{path} has {len(content)} bytes, but a fusion has at most {MAX_BYTES}; pass fusion.json.")
    try:
        return FusionDefinition.from_json(content.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; pass a file that `corank fuse` wrote.") from None


def _check_term(term: Term, names: tuple[str, ...]) -> None:
    if term.retriever not in names:
        raise InputError(
            f"a term has the unknown retriever {term.retriever!r}; {suggest_names(term.retriever, names)}."
        )
    if term.transform not in TRANSFORMS:
        raise InputError(
            f"a term has the unknown transform {term.transform!r}; {suggest_names(term.transform, list(TRANSFORMS))}."
        )
    takes_k = term.transform == "reciprocal_rank"
    if takes_k != (term.k is not None) or (term.k is not None and not 0 <= term.k <= 1e9):
        expected = "a k from 0 to 1e9" if takes_k else "no k"
        raise InputError(f"the term {term.transform} of {term.retriever} has k = {term.k}; it needs {expected}.")


def _check_form(form: EngineForm, m: int) -> None:
    is_known = form.form in ("rrf", "minmax") and (form.form == "rrf") == (form.k is not None)
    if not is_known or len(form.weights) != m or min(form.weights) < 0 or abs(sum(form.weights) - 1) > 1e-6:
        raise InputError(
            f"an engine form {form.form!r} has the weights {form.weights[:5]}; it needs {m} weights of at least 0 with "
            "sum 1, and k only for rrf."
        )


def _decode(value: Any, kind: Any, where: str) -> Any:
    """Build a value of an annotated type from JSON; raise `InputError` with its place if it has another type."""
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise InputError(f"{where} is {str(value)[:40]!r}; an object is expected.")
        hints = get_type_hints(kind)
        if unknown := set(value) - set(hints):
            raise InputError(f"{where} has the unknown entry {min(unknown)[:40]!r}; remove it.")
        try:
            return kind(**{name: _decode(part, hints[name], f"{where}, {name}") for name, part in value.items()})
        except TypeError:
            missing = [field.name for field in fields(kind) if field.name not in value]
            raise InputError(f"{where} lacks some of the entries {', '.join(missing)}; write the file again.") from None
    if get_origin(kind) is UnionType:
        others = [option for option in get_args(kind) if option is not NoneType]
        return None if value is None else _decode(value, others[0], where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise InputError(f"{where} is {str(value)[:40]!r}; a list is expected.")
        return tuple(_decode(part, get_args(kind)[0], f"{where}, entry {i + 1}") for i, part in enumerate(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and is_number and abs(value) < 1e300 and math.isfinite(value):
        return float(value)
    if kind is not float and isinstance(value, kind) and not isinstance(value, bool):
        return value
    raise InputError(f"{where} is {str(value)[:40]!r}; a {'text' if kind is str else 'number'} is expected.")
