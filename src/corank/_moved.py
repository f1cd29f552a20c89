"""Names of version 0.2 and where they are now. They work with a `FutureWarning` in 0.3 and are gone in 0.4."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial, partialmethod, wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

Called = TypeVar("Called", bound=Callable[..., Any])

_FOLDERS = {
    "corank.base": "Explanation Landmarks PairSampler reliability_curve",
    "corank.clicks": ("PairwiseEpsilonGreedy PositionBias click_pairs estimate_from_clicks position_bias"),
    "corank.comparison": "Study",
    "corank.data": (
        "ClickLog Items QueryShuffleSplit mask_scores open_store presumed_negatives read_clicks read_items "
        "read_letor write_clicks write_letor write_store"
    ),
    "corank.deploy": "fit_parts",
    "corank.metrics": "Evaluation evaluate_run",
    "corank.models": ("ItemMean LabelPreferences NeighborLabelRanker PairwiseLabelRanker check_lambda suggest_pairs"),
    "corank.text": "Corpus",
    "corank_lab.preferences": "PreferenceSession",
    "corank_lab.records": "Records read_records",
    "corank_lab.screening": "Screening",
}

_RENAMED = {
    "Collection": "corank.data.Dataset",
    "OnTop": "corank.base.ResidualRanker",
    "Smooth": "corank.base.NeighborSmoother",
    "Summary": "corank.models.PairSums",
    "MEASURES": "corank.metrics.METRICS",
    "Measure": "corank.metrics.Metric",
    "simulate": "corank.clicks.simulate_clicks",
    "summarise": "corank.deploy.pair_sums",
}

NAMES = {name: f"{folder}.{name}" for folder, names in _FOLDERS.items() for name in names.split()} | _RENAMED
"""Names of ``import corank`` in 0.2, and what they are called now."""

_GONE = {
    "INTERLEAVINGS Interleaving PairwisePreference Probabilistic": "use corank.clicks.TeamDraft",
    "DBGD MGD Duel": "it is in experiments/clicks of the repository; use corank.PDGD",
    "ManyCoPursuits ManyPursuits fit_many fit_many_views": "it is in experiments/ranking_pursuit of the repository",
    "Coefficient PathPoint QueryValue ReliabilityPoint TradeOffPoint": "use corank.explain, or corank card",
    "ModelCard ReportTable": "use corank.comparison.model_card, which returns a document",
    "bootstrap_interval": "use corank.metrics.sign_flip",
    "JudgingCurve judging_curve": "it is in experiments/few_judgements/replay.py of the repository",
    "PathDisplay": "plot loo_scores_ of the model, or cv_results_ of the search, against the candidates",
    "convert_parts": "write files by corank.data.write_store, or by the command corank convert",
    "evaluate_parts rank_parts": "use corank.deploy.predict_parts, and corank.evaluate on its scores",
    "fit_trees": "use lightgbm.DaskLGBMRanker",
    "plot_lambda": "print corank.models.check_lambda(...) instead",
    "potential lambda_cost": "use corank.models.check_lambda(...), which says whether there is a cost",
}
GONE = {name: sentence for names, sentence in _GONE.items() for name in names.split()}
"""Names that were removed in 0.3, and what to do instead."""

PACKAGES = {
    "corank.auto": "corank.models.auto",
    "corank.collaborative": "corank.models.ratings",
    "corank.distributed": "corank.deploy.distributed",
    "corank.estimator": "corank.base",
    "corank.evaluation.bounds": "corank.metrics.bounds",
    "corank.evaluation.compare": "corank.comparison",
    "corank.evaluation.report": "corank.comparison",
    "corank.export": "corank.deploy.export",
    "corank.gp": "corank.models.gp",
    "corank.judging.agreement": "corank.metrics.agreement",
    "corank.judging.grading": "corank_lab.grading",
    "corank.judging.preferences": "corank_lab.preferences",
    "corank.judging.screening": "corank_lab.screening",
    "corank.judging.stopping": "corank_lab.screening.stopping",
    "corank.judging.suggestions": "corank.base.suggestions",
    "corank.kernels": "corank.base.kernels",
    "corank.label_ranking": "corank.models.labels",
    "corank.lambdarank": "corank.models.lambdarank",
    "corank.linear": "corank.models.linear",
    "corank.pairwise": "corank.base.pairs",
    "corank.persist": "corank.deploy.persist",
    "corank.pursuit": "corank.models.pursuit",
    "corank.rls": "corank.models.rls",
    "corank.solvers": "corank.base.solvers",
}
"""Public packages of 0.2, and their places now."""

CONTAINERS = ("corank.evaluation", "corank.judging")
"""Packages of 0.2 that only held others; they are empty, since an import would set their parts as attributes."""


def find(package: str, name: str) -> Any:
    """Return what ``package.name`` was in 0.2, with a warning; raise `AttributeError` if it is gone or never was."""
    old = f"{package}.{name}"
    new = (NAMES if package == "corank" else _RENAMED).get(name)
    if new is not None:
        _warn(old, new)
        folder, _, current = new.rpartition(".")
        return getattr(import_module(folder), current)
    if package == "corank" and (old in PACKAGES or old in CONTAINERS):
        return import_module(old)
    if name in GONE:
        raise AttributeError(f"{old} was removed in 0.3; {GONE[name]}.")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


def old_parameters(**renamed: str) -> Callable[[Called], Called]:
    """Let a function, or the constructor of a class, accept parameters by their names of 0.2, with a warning."""

    def wrap(called: Any) -> Any:
        if isinstance(called, type):
            called.__init__ = wrap(called.__init__)  # type: ignore[misc]
            return called

        @wraps(called)
        def call(*given: Any, **named: Any) -> Any:
            for old in renamed.keys() & named.keys():
                _warn(f"the parameter {old}", renamed[old], level=3)
                named[renamed[old]] = named.pop(old)
            return called(*given, **named)

        return call

    return wrap


def old_method(old: str, new: str) -> Any:
    """Return a method that calls another one, with a warning that this is its name now."""
    return partialmethod(_call_method, old, new)


def _call_method(model: Any, old: str, new: str, *given: Any, **named: Any) -> Any:
    _warn(f"{type(model).__name__}.{old}", new, level=3)
    return getattr(model, new)(*given, **named)


def _warn(old: str, new: str, level: int = 4) -> None:
    warnings.warn(f"{old} is now {new}; the old name is removed in 0.4.", FutureWarning, stacklevel=level)


def _place(old: str) -> str | None:
    """Return the place of an old package, or of a module of one; None for other names."""
    head, _, tail = old.rpartition(".")
    if old in PACKAGES:
        return PACKAGES[old]
    place = _place(head) if head else None
    return f"{place}.{tail}" if place else None


def _part(container: str, name: str) -> Any:
    """Return a part of a container of 0.2."""
    if f"{container}.{name}" not in PACKAGES:
        raise AttributeError(f"module {container!r} has no attribute {name!r}")
    return import_module(f"{container}.{name}")


class _Finder:  # importlib.abc would take long to import
    """Import an old package, or a module of one, as the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_old = fullname.startswith("corank.") and (fullname in CONTAINERS or _place(fullname) is not None)
        loader: Any = self
        return ModuleSpec(fullname, loader, is_package=True) if is_old else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        place = _place(spec.name)
        if place is None:  # a container
            return None
        _warn(spec.name, place)
        module = import_module(place)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        if module.__name__ in CONTAINERS:
            module.__dict__["__getattr__"] = partial(_part, module.__name__)
        elif spec is not None and spec.loader is self:  # the import system replaced the specification
            module.__spec__ = spec.loader_state


def install() -> None:
    """Let old packages be imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # before the one that would load a module a second time
