"""Learn to rank from a few judgements and a lot of unjudged data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from corank._version import __version__

if TYPE_CHECKING:
    # what an editor and a type checker see of the names below; a test compares the two lists
    # isort: off
    from corank import (
        asking as asking,
        base as base,
        basis as basis,
        bounds as bounds,
        calibration as calibration,
        collaborative as collaborative,
        counterfactual as counterfactual,
        comparing as comparing,
        data as data,
        descent as descent,
        distributed as distributed,
        errors as errors,
        exact as exact,
        explanation as explanation,
        gp as gp,
        graphs as graphs,
        judging as judging,
        kernels as kernels,
        label_ranking as label_ranking,
        lambdarank as lambdarank,
        landmarks as landmarks,
        likelihoods as likelihoods,
        linklearn as linklearn,
        losses as losses,
        metrics as metrics,
        moments as moments,
        online as online,
        persist as persist,
        priors as priors,
        pursuit as pursuit,
        report as report,
        rls as rls,
        sampling as sampling,
        screening as screening,
        smooth as smooth,
        svm as svm,
        views as views,
    )
    from corank.asking import Asking as Asking
    from corank.base import Ranker as Ranker
    from corank.calibration import Calibrated as Calibrated, reliability_curve as reliability_curve
    from corank.collaborative import Collaborative as Collaborative, ItemMean as ItemMean
    from corank.counterfactual import (
        PositionBias as PositionBias,
        click_pairs as click_pairs,
        estimate_from_clicks as estimate_from_clicks,
        position_bias as position_bias,
    )
    from corank.comparing import Study as Study, compare as compare
    from corank.data.choices import Choices as Choices, read_choices as read_choices
    from corank.data.clicks import ClickLog as ClickLog
    from corank.data.clicks_files import read_clicks as read_clicks, write_clicks as write_clicks
    from corank.data.collection import Collection as Collection
    from corank.data.letor import read_letor as read_letor
    from corank.data.letor_writer import write_letor as write_letor
    from corank.data.make import make_ranking as make_ranking
    from corank.data.presume import presume as presume
    from corank.data.ranking import RankingData as RankingData
    from corank.data.read import read as read
    from corank.data.records import Records as Records, read_records as read_records
    from corank.data.scale import QueryScaler as QueryScaler
    from corank.data.split import (
        QueryKFold as QueryKFold,
        QueryShuffleSplit as QueryShuffleSplit,
        hide_scores as hide_scores,
    )
    from corank.data.store import open_store as open_store, write_store as write_store
    from corank.descent import CRR as CRR, LCRA as LCRA, SPD as SPD
    from corank.explanation import Explanation as Explanation, explain as explain
    from corank.distributed import fit_parts as fit_parts, summarise as summarise
    from corank.gp import (
        CollaborativeGP as CollaborativeGP,
        OrdinalGP as OrdinalGP,
        PreferenceGP as PreferenceGP,
        suggest_pairs as suggest_pairs,
    )
    from corank.judging import JudgingCurve as JudgingCurve, judging_curve as judging_curve, suggest as suggest
    from corank.label_ranking import (
        CalibratedLabelRanker as CalibratedLabelRanker,
        LabelPreferences as LabelPreferences,
        OnlineLabelRanker as OnlineLabelRanker,
    )
    from corank.lambdarank import LambdaRank as LambdaRank, check_lambda as check_lambda, potential as potential
    from corank.landmarks import Landmarks as Landmarks
    from corank.linklearn import BM25 as BM25, Corpus as Corpus, LinkLearn as LinkLearn
    from corank.metrics import (
        Evaluation as Evaluation,
        compare_runs as compare_runs,
        evaluate as evaluate,
        evaluate_run as evaluate_run,
    )
    from corank.online import (
        DBGD as DBGD,
        MGD as MGD,
        PDGD as PDGD,
        ClickedPairs as ClickedPairs,
        simulate as simulate,
    )
    from corank.persist import load as load, save as save
    from corank.priors import ColumnMean as ColumnMean, OnTop as OnTop
    from corank.pursuit import (
        CoRankingPursuit as CoRankingPursuit,
        RankingPursuit as RankingPursuit,
        fit_many as fit_many,
        fit_many_views as fit_many_views,
    )
    from corank.rls import (
        CoRankRLS as CoRankRLS,
        RankRLS as RankRLS,
        Summary as Summary,
        ViewRankRLS as ViewRankRLS,
    )
    from corank.sampling import PairSampler as PairSampler
    from corank.screening import Screening as Screening
    from corank.search import QuerySearchCV as QuerySearchCV
    from corank.smooth import Smooth as Smooth
    from corank.svm import RankSVM as RankSVM
    from corank.views import View as View
    # isort: on

# each public name and the module it lives in; nothing is imported before it is used
_HOMES = {
    "Asking": "corank.asking",
    "BM25": "corank.linklearn",
    "CRR": "corank.descent",
    "Calibrated": "corank.calibration",
    "CalibratedLabelRanker": "corank.label_ranking",
    "Choices": "corank.data.choices",
    "ClickLog": "corank.data.clicks",
    "ClickedPairs": "corank.online",
    "CoRankRLS": "corank.rls",
    "CoRankingPursuit": "corank.pursuit",
    "Collaborative": "corank.collaborative",
    "CollaborativeGP": "corank.gp",
    "Collection": "corank.data.collection",
    "ColumnMean": "corank.priors",
    "Corpus": "corank.linklearn",
    "DBGD": "corank.online",
    "Evaluation": "corank.metrics",
    "Explanation": "corank.explanation",
    "ItemMean": "corank.collaborative",
    "JudgingCurve": "corank.judging",
    "LCRA": "corank.descent",
    "LabelPreferences": "corank.label_ranking",
    "LambdaRank": "corank.lambdarank",
    "Landmarks": "corank.landmarks",
    "LinkLearn": "corank.linklearn",
    "MGD": "corank.online",
    "OnTop": "corank.priors",
    "OnlineLabelRanker": "corank.label_ranking",
    "OrdinalGP": "corank.gp",
    "PDGD": "corank.online",
    "PairSampler": "corank.sampling",
    "PositionBias": "corank.counterfactual",
    "PreferenceGP": "corank.gp",
    "QueryKFold": "corank.data.split",
    "QueryScaler": "corank.data.scale",
    "QuerySearchCV": "corank.search",
    "QueryShuffleSplit": "corank.data.split",
    "RankRLS": "corank.rls",
    "RankSVM": "corank.svm",
    "Ranker": "corank.base",
    "RankingData": "corank.data.ranking",
    "RankingPursuit": "corank.pursuit",
    "Records": "corank.data.records",
    "SPD": "corank.descent",
    "Screening": "corank.screening",
    "Smooth": "corank.smooth",
    "Study": "corank.comparing",
    "Summary": "corank.rls",
    "View": "corank.views",
    "ViewRankRLS": "corank.rls",
    "check_lambda": "corank.lambdarank",
    "click_pairs": "corank.counterfactual",
    "compare": "corank.comparing",
    "compare_runs": "corank.metrics",
    "estimate_from_clicks": "corank.counterfactual",
    "evaluate": "corank.metrics",
    "evaluate_run": "corank.metrics",
    "explain": "corank.explanation",
    "fit_many": "corank.pursuit",
    "fit_many_views": "corank.pursuit",
    "fit_parts": "corank.distributed",
    "hide_scores": "corank.data.split",
    "judging_curve": "corank.judging",
    "load": "corank.persist",
    "make_ranking": "corank.data.make",
    "open_store": "corank.data.store",
    "position_bias": "corank.counterfactual",
    "potential": "corank.lambdarank",
    "presume": "corank.data.presume",
    "read": "corank.data.read",
    "read_choices": "corank.data.choices",
    "read_clicks": "corank.data.clicks_files",
    "read_letor": "corank.data.letor",
    "read_records": "corank.data.records",
    "reliability_curve": "corank.calibration",
    "save": "corank.persist",
    "simulate": "corank.online",
    "suggest": "corank.judging",
    "suggest_pairs": "corank.gp",
    "summarise": "corank.distributed",
    "write_clicks": "corank.data.clicks_files",
    "write_letor": "corank.data.letor_writer",
    "write_store": "corank.data.store",
}

# what else is reached by `import corank` alone
_ROOMS = (
    "asking", "base", "basis", "bounds", "calibration", "collaborative", "comparing", "counterfactual", "data",
    "descent", "distributed", "errors", "exact", "explanation", "gp", "graphs", "judging", "kernels",
    "label_ranking", "lambdarank", "landmarks", "likelihoods", "linklearn", "losses", "metrics", "moments",
    "online", "persist", "priors", "pursuit", "report", "rls", "sampling", "screening", "smooth", "svm", "views",
)  # fmt: skip

__all__ = ["__version__", *_HOMES]

if not TYPE_CHECKING:  # which would take any name for an Any

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _ROOMS:
            return import_module(f"corank.{name}")
        raise AttributeError(f"module 'corank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
