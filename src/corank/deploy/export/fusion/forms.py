"""
Forms of a fusion that engines have, and the nearest one if a fusion has none of them.

rrf: Σ_j w_j / (k + rank); linear: Σ_j w_j φ(score) with one normalisation φ. All w_j are at least 0 and have the sum 1,
which does not change the order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from corank.errors import InputError
from corank.models.fusion import EngineForm, FusionDefinition, Term


@dataclass(frozen=True, kw_only=True)
class FusionOptions:
    """Options of an export: the name in the engine, the number of documents per retriever, and the dialect of SQL."""

    name: str = "corank"
    size: int = 100
    dialect: str = "sqlite"

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 10_000:
            raise InputError(f"size is {self.size}; take 1 to 10,000 documents from each retriever.")


@dataclass(frozen=True)
class FusionTarget:
    """
    One engine.

    name: of the target.
    label: the engine and its oldest version, for messages and the guide.
    takes: what it can express, in words.
    can_express: whether it can express a fusion exactly.
    write: returns contents by suffix of the file, "" for the main one.
    """

    name: str
    label: str
    takes: str
    can_express: Callable[[FusionDefinition], bool]
    write: Callable[[FusionDefinition, FusionOptions], dict[str, bytes]]


def form_of(definition: FusionDefinition) -> EngineForm | None:
    """
    Return the form of a fusion with one kind of term, no weight below 0 and one term per retriever, else None.

    >>> form_of(FusionDefinition.rrf(("bm25", "vectors"))).weights
    (0.5, 0.5)
    """
    terms = [term for term in definition.terms if term.weight]
    kinds = {(term.transform, term.k) for term in terms}
    names = [term.retriever for term in terms]
    if len(kinds) != 1 or len(set(names)) < len(names) or min(term.weight for term in terms) < 0:
        return None
    ((transform, k),) = kinds
    if transform not in ("reciprocal_rank", "minmax", "l2", "zscore"):
        return None
    total = sum(term.weight for term in terms)
    weights = {term.retriever: term.weight / total for term in terms}
    spread = tuple(weights.get(name, 0.0) for name in definition.retrievers)
    if transform == "reciprocal_rank":
        return EngineForm("rrf", None, k, spread, 0.0)
    return EngineForm("linear", transform, None, spread, 0.0)


def with_form(definition: FusionDefinition, form: EngineForm) -> FusionDefinition:
    """Return the fusion of an engine form."""
    transform = form.normalizer or "reciprocal_rank"
    pairs = zip(definition.retrievers, form.weights, strict=True)
    return replace(
        definition,
        terms=tuple(Term(name, transform, weight, form.k) for name, weight in pairs if weight),
        rule=describe_form(form, definition.retrievers),
    )


def used(definition: FusionDefinition) -> tuple[str, ...]:
    """Return the retrievers that have a weight."""
    weighted = {term.retriever for term in definition.terms if term.weight}
    return tuple(name for name in definition.retrievers if name in weighted)


def describe_form(form: EngineForm, names: tuple[str, ...]) -> str:
    """Return a form in words."""
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(names, form.weights, strict=True))
    kind = f"RRF with k = {form.k:g}" if form.form == "rrf" else f"a weighted sum of {form.normalizer} scores"
    return f"{kind} ({weights})"


def expressible(definition: FusionDefinition, target: FusionTarget, *, nearest: bool) -> tuple[FusionDefinition, str]:
    """
    Return the fusion that a target can express, and a remark; "" if it is the fusion itself.

    Raises `InputError` if it cannot express it, unless `nearest` is set and one of the measured engine forms fits.
    """
    if target.can_express(definition):
        return definition, ""
    if len(used(definition)) == 1:
        raise InputError(f"this fusion uses {used(definition)[0]} alone; send the query of that retriever as it is.")
    forms = [form for form in definition.engine_forms if target.can_express(with_form(definition, form))]
    problem = f"{target.label} takes {target.takes}, but this fusion is: {definition.rule}"
    if not forms:
        raise InputError(f"{problem}; export it to sql or python, or fit a fusion of that form.")
    form = min(forms, key=lambda form: 0.0 if form.loss is None else form.loss)
    text = f"{describe_form(form, definition.retrievers)}, {_loss(form, definition)}"
    if not nearest:
        raise InputError(f"{problem}. The nearest that it can is {text}; pass nearest to write it, or export to sql.")
    return with_form(definition, form), f"{target.label} cannot express this fusion; written is {text}."


def _loss(form: EngineForm, definition: FusionDefinition) -> str:
    if form.loss is None:
        return "whose loss was not measured"
    metric = "" if definition.estimate is None else f" {definition.estimate.metric}"
    span = "" if form.low is None or form.high is None else f", interval {form.low:.3f} to {form.high:.3f}"
    return f"which loses {form.loss:.3f}{metric} on left-out queries{span}"
