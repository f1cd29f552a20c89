"""Names of metrics: `nDCG@10`, `AP(rel=2)`, `kpartite(alpha=1)`, read by one function."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from corank.errors import InputError
from corank.metrics.binary import ap_per_query, auc_per_query, bep_per_query, precision_per_query, rr_per_query
from corank.metrics.conventions import known
from corank.metrics.graded import (
    dcg_per_query,
    err_per_query,
    mean_ndcg_per_query,
    ndcg_per_query,
    wta_per_query,
)
from corank.metrics.judgements import Judgements, PerQuery
from corank.metrics.pairwise import (
    disagreement_per_query,
    kendall_per_query,
    kpartite_per_query,
    mae_per_query,
    mse_per_query,
)


@dataclass(frozen=True)
class Measure:
    """
    A kind of metric: what may follow its name, and how it is computed.

    Attributes
    ----------
    name : str
        Its canonical name.
    compute : callable
        Takes `Judgements`, `cut` where one is allowed, and the parameters.
    cut : {"none", "optional", "needed"}
        Whether ``@k`` may or must follow.
    params : tuple of (str, float or None)
        Parameters and their defaults.
    larger_is_better : bool
        Direction.
    fills_empty : bool
        Whether the convention says what a query scores where the metric is not defined; pairs and rows do not
        ask, and leave such a query out.
    """

    name: str
    compute: Callable[..., PerQuery]
    cut: Literal["none", "optional", "needed"] = "none"
    params: tuple[tuple[str, float | None], ...] = ()
    larger_is_better: bool = True
    fills_empty: bool = True


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("nDCG", ndcg_per_query, "optional"),
        Measure("MeanNDCG", mean_ndcg_per_query),
        Measure("DCG", dcg_per_query, "optional"),
        Measure("ERR", err_per_query, "optional", (("max_grade", None),)),
        Measure("WTA", wta_per_query),
        Measure("AP", ap_per_query, "optional", (("rel", None),)),
        Measure("P", precision_per_query, "needed", (("rel", None),)),
        Measure("RR", rr_per_query, "optional", (("rel", None),)),
        Measure("BEP", bep_per_query, params=(("rel", None),)),
        Measure("AUC", auc_per_query, params=(("rel", None),), fills_empty=False),
        Measure("disagreement", disagreement_per_query, larger_is_better=False, fills_empty=False),
        Measure("kpartite", kpartite_per_query, params=(("alpha", 1.0),), larger_is_better=False, fills_empty=False),
        Measure("kendall", kendall_per_query, fills_empty=False),
        Measure("MSE", mse_per_query, larger_is_better=False, fills_empty=False),
        Measure("MAE", mae_per_query, larger_is_better=False, fills_empty=False),
    )
}
ALIASES = {"MAP": "AP", "MRR": "RR", "Rprec": "BEP", "k-partite": "kpartite"}
_BY_FOLDED_NAME = {
    **{name.casefold(): measure for name, measure in MEASURES.items()},
    **{alias.casefold(): MEASURES[name] for alias, name in ALIASES.items()},
}
_GRAMMAR = re.compile(r"(?P<name>[A-Za-z-]+)(\((?P<params>[^()]*)\))?(@(?P<cut>\d+))?")


@dataclass(frozen=True)
class Metric:
    """
    One metric to compute: a measure, its depth and its parameters; `str` gives its canonical name.

    Attributes
    ----------
    measure : Measure
        The kind.
    cut : int or None
        The k of ``@k``.
    params : tuple of (str, float or None)
        All parameters, the defaults filled in.
    """

    measure: Measure
    cut: int | None
    params: tuple[tuple[str, float | None], ...]

    def __str__(self) -> str:
        changed = [pair for pair in self.params if pair not in self.measure.params]
        inside = ",".join(f"{key}={value!r}".removesuffix(".0") for key, value in changed)
        return self.measure.name + (f"({inside})" if inside else "") + ("" if self.cut is None else f"@{self.cut}")

    def per_query(self, judged: Judgements) -> PerQuery:
        """
        Compute the metric for every query.

        Parameters
        ----------
        judged : Judgements
            Grades and scores.

        Returns
        -------
        PerQuery
            Values, NaN where the metric is not defined.
        """
        depth = {} if self.measure.cut == "none" else {"cut": self.cut}
        return self.measure.compute(judged, **depth, **dict(self.params))


def parse_metric(text: str) -> Metric:
    """
    Read the name of a metric, in any case: ``Name``, ``Name@k``, ``Name(param=value)``, ``Name(param=value)@k``.

    Parameters
    ----------
    text : str
        For example ``nDCG@10``, ``AP``, ``AP(rel=2)``, ``ERR(max_grade=4)@20``, ``kpartite(alpha=0)``.

    Returns
    -------
    Metric
        What to compute.

    Examples
    --------
    >>> str(parse_metric("ndcg@10")), str(parse_metric("MAP(rel=2)"))
    ('nDCG@10', 'AP(rel=2)')
    """
    match = _GRAMMAR.fullmatch(str(text).strip())
    measure = _BY_FOLDED_NAME.get(match["name"].casefold()) if match else None
    if match is None or measure is None:
        raise InputError(f"{text!r} is not a known metric; {known(re.split('[(@]', str(text))[0], _shown())}.")
    cut = int(match["cut"]) if match["cut"] else None
    if cut == 0:
        raise InputError(f"{text!r} looks at no row; pass a depth of 1 or more.")
    if cut is not None and measure.cut == "none":
        raise InputError(f"{text!r} has a depth, but {measure.name} reads whole lists; drop @{cut}.")
    if cut is None and measure.cut == "needed":
        raise InputError(f"{text!r} needs a depth; write {measure.name}@10, for example.")
    return Metric(measure, cut, _parse_params(text, match["params"], measure))


def _parse_params(text: str, inside: str | None, measure: Measure) -> tuple[tuple[str, float | None], ...]:
    params = dict(measure.params)
    for item in (inside or "").split(",") if (inside or "").strip() else []:
        key, _, value = (part.strip() for part in item.partition("="))
        if key not in params:
            allowed = f"it takes {', '.join(params)}" if params else "it takes none"
            raise InputError(f"{text!r} has the parameter {key!r}, which {measure.name} does not know; {allowed}.")
        try:
            params[key] = number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{text!r} has {key}={value!r}; pass a finite number, such as {key}=2.")
    return tuple(params.items())


def _shown() -> dict[str, str]:
    """Known names, and how a user would type them."""
    depths = {"none": "", "optional": "[@k]", "needed": "@k"}
    shown = {}
    for name, measure in MEASURES.items():
        inside = ",".join(f"{key}=" for key, _ in measure.params)
        shown[name] = name + (f"[({inside})]" if inside else "") + depths[measure.cut]
    return shown
