"""Learn to rank from a few judgements and a lot of unjudged data."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from corank._version import __version__

# each public name and the module it lives in; nothing is imported before it is used
_HOMES = {
    "CRR": "corank.descent",
    "Calibrated": "corank.calibration",
    "CoRankRLS": "corank.rls",
    "CoRankingPursuit": "corank.pursuit",
    "Collection": "corank.data.collection",
    "Evaluation": "corank.metrics",
    "LCRA": "corank.descent",
    "Landmarks": "corank.landmarks",
    "PairSampler": "corank.sampling",
    "QueryKFold": "corank.data.split",
    "QueryScaler": "corank.data.scale",
    "QuerySearchCV": "corank.search",
    "QueryShuffleSplit": "corank.data.split",
    "RankRLS": "corank.rls",
    "RankSVM": "corank.svm",
    "Ranker": "corank.base",
    "RankingData": "corank.data.ranking",
    "RankingPursuit": "corank.pursuit",
    "SPD": "corank.descent",
    "View": "corank.views",
    "evaluate": "corank.metrics",
    "evaluate_run": "corank.metrics",
    "fit_many": "corank.pursuit",
    "fit_many_views": "corank.pursuit",
    "hide_scores": "corank.data.split",
    "load": "corank.persist",
    "make_ranking": "corank.data.make",
    "open_store": "corank.data.store",
    "read": "corank.data.read",
    "read_letor": "corank.data.letor",
    "reliability_curve": "corank.calibration",
    "save": "corank.persist",
    "write_letor": "corank.data.letor_writer",
    "write_store": "corank.data.store",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'corank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
