"""Names of version 0.2 and where they are now. They work with a `FutureWarning` in 0.3 and are gone in 0.4."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_FOLDERS = {
    "corank.base": ("Explanation JudgingCurve Landmarks OnTop PairSampler Smooth judging_curve reliability_curve"),
    "corank.clicks": ("PairwiseEpsilonGreedy PositionBias click_pairs estimate_from_clicks position_bias simulate"),
    "corank.comparison": "Study",
    "corank.data": (
        "ClickLog Collection Items QueryShuffleSplit mask_scores open_store presumed_negatives read_clicks read_items "
        "read_letor write_clicks write_letor write_store"
    ),
    "corank.deploy": "fit_parts summarise",
    "corank.metrics": "Evaluation evaluate_run",
    "corank.models": (
        "ItemMean LabelPreferences NeighborLabelRanker PairwiseLabelRanker Summary check_lambda potential suggest_pairs"
    ),
    "corank.text": "Corpus",
    "corank_lab.preferences": "PreferenceSession",
    "corank_lab.records": "Records read_records",
    "corank_lab.screening": "Screening",
}

NAMES = {name: folder for folder, names in _FOLDERS.items() for name in names.split()}
"""Names of ``import corank`` in 0.2, and the packages that export them now."""

PACKAGES = {
    "corank.auto": "corank.models.auto",
    "corank.collaborative": "corank.models.ratings",
    "corank.distributed": "corank.deploy.distributed",
    "corank.estimator": "corank.base",
    "corank.evaluation": "corank.comparison",
    "corank.evaluation.bounds": "corank.metrics.bounds",
    "corank.evaluation.compare": "corank.comparison",
    "corank.evaluation.report": "corank.comparison.report",
    "corank.export": "corank.deploy.export",
    "corank.gp": "corank.models.gp",
    "corank.judging": "corank_lab",
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


def find(name: str) -> Any:
    """Return what ``corank.name`` was in 0.2, with a warning; raise `AttributeError` if there was no such name."""
    if name in NAMES:
        _warn(f"corank.{name}", f"{NAMES[name]}.{name}")
        return getattr(import_module(NAMES[name]), name)
    if f"corank.{name}" in PACKAGES:
        return import_module(f"corank.{name}")
    raise AttributeError(f"module 'corank' has no attribute {name!r}")


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}; the old name is removed in 0.4.", FutureWarning, stacklevel=4)


def _place(old: str) -> str | None:
    """Return the place of an old package, or of a module of one; None for other names."""
    head, _, tail = old.rpartition(".")
    if old in PACKAGES:
        return PACKAGES[old]
    place = _place(head) if head else None
    return f"{place}.{tail}" if place else None


class _Finder:  # importlib.abc would take long to import
    """Import an old package, or a module of one, as the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return (
            ModuleSpec(fullname, self, is_package=True) if fullname.startswith("corank.") and _place(fullname) else None
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        place = _place(spec.name) or spec.name
        _warn(spec.name, place)
        module = import_module(place)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and spec.loader is self:  # the import system replaced the specification
            module.__spec__ = spec.loader_state


def install() -> None:
    """Let old packages be imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # before the one that would load a module a second time
