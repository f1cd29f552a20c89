"""Learn to rank from few judgements and much unjudged data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy
from corank._version import __version__

if TYPE_CHECKING:
    # the names below for editors and type checkers; a test compares the two lists
    # isort: off
    from corank import (
        auto as auto,
        clicks as clicks,
        collaborative as collaborative,
        data as data,
        distributed as distributed,
        errors as errors,
        estimator as estimator,
        evaluation as evaluation,
        export as export,
        gp as gp,
        judging as judging,
        kernels as kernels,
        label_ranking as label_ranking,
        lambdarank as lambdarank,
        linear as linear,
        metrics as metrics,
        pairwise as pairwise,
        persist as persist,
        pursuit as pursuit,
        rls as rls,
        solvers as solvers,
        text as text,
    )
    from corank.models.auto import AutoRanker as AutoRanker
    from corank.clicks import (
        DBGD as DBGD,
        MGD as MGD,
        PDGD as PDGD,
        PairwiseEpsilonGreedy as PairwiseEpsilonGreedy,
        PositionBias as PositionBias,
        click_pairs as click_pairs,
        estimate_from_clicks as estimate_from_clicks,
        position_bias as position_bias,
        simulate as simulate,
    )
    from corank.models.ratings import Collaborative as Collaborative, ItemMean as ItemMean
    from corank.data import (
        ClickLog as ClickLog,
        Collection as Collection,
        Items as Items,
        QueryKFold as QueryKFold,
        QueryShuffleSplit as QueryShuffleSplit,
        RankingData as RankingData,
        Records as Records,
        make_ranking as make_ranking,
        mask_scores as mask_scores,
        open_store as open_store,
        presumed_negatives as presumed_negatives,
        read as read,
        read_clicks as read_clicks,
        read_items as read_items,
        read_letor as read_letor,
        read_records as read_records,
        write_clicks as write_clicks,
        write_letor as write_letor,
        write_store as write_store,
    )
    from corank.deploy.distributed import fit_parts as fit_parts, summarise as summarise
    from corank.base import (
        Calibrated as Calibrated,
        ColumnMean as ColumnMean,
        Explanation as Explanation,
        Landmarks as Landmarks,
        OnTop as OnTop,
        PathDisplay as PathDisplay,
        QueryScaler as QueryScaler,
        QuerySearchCV as QuerySearchCV,
        Ranker as Ranker,
        Smooth as Smooth,
        explain as explain,
        reliability_curve as reliability_curve,
    )
    from corank.comparison import Study as Study, compare as compare
    from corank.models.gp import (
        CollaborativeGP as CollaborativeGP,
        OrdinalGP as OrdinalGP,
        PreferenceGP as PreferenceGP,
        suggest_pairs as suggest_pairs,
    )
    from corank_lab.preferences import PreferenceSession as PreferenceSession
    from corank_lab.screening import Screening as Screening
    from corank.base.suggestions import (
        JudgingCurve as JudgingCurve,
        judging_curve as judging_curve,
        suggest as suggest,
    )
    from corank.base.kernels import View as View
    from corank.models.labels import (
        AutoLabelRanker as AutoLabelRanker,
        CalibratedLabelRanker as CalibratedLabelRanker,
        LabelPreferences as LabelPreferences,
        NeighborLabelRanker as NeighborLabelRanker,
        OnlineLabelRanker as OnlineLabelRanker,
        PairwiseLabelRanker as PairwiseLabelRanker,
    )
    from corank.models.lambdarank import LambdaRank as LambdaRank, check_lambda as check_lambda, potential as potential
    from corank.models.linear import CRR as CRR, LCRA as LCRA, RankSVM as RankSVM, SPD as SPD
    from corank.metrics import (
        Evaluation as Evaluation,
        compare_runs as compare_runs,
        evaluate as evaluate,
        evaluate_run as evaluate_run,
    )
    from corank.base.pairs import PairSampler as PairSampler
    from corank.deploy.persist import load as load, save as save
    from corank.models.pursuit import (
        CoRankingPursuit as CoRankingPursuit,
        RankingPursuit as RankingPursuit,
        fit_many as fit_many,
        fit_many_views as fit_many_views,
    )
    from corank.models.rls import CoRankRLS as CoRankRLS, RankRLS as RankRLS, Summary as Summary, ViewRankRLS as ViewRankRLS
    from corank.text import BM25 as BM25, Corpus as Corpus, LinkLearn as LinkLearn
    # isort: on

# each public name and the module that defines it, which is imported when the name is first used
_HOMES = {
    "AutoLabelRanker": "corank.models.labels",
    "AutoRanker": "corank.models.auto",
    "BM25": "corank.text",
    "CRR": "corank.models.linear",
    "Calibrated": "corank.base",
    "CalibratedLabelRanker": "corank.models.labels",
    "ClickLog": "corank.data",
    "CoRankRLS": "corank.models.rls",
    "CoRankingPursuit": "corank.models.pursuit",
    "Collaborative": "corank.models.ratings",
    "CollaborativeGP": "corank.models.gp",
    "Collection": "corank.data",
    "ColumnMean": "corank.base",
    "Corpus": "corank.text",
    "DBGD": "corank.clicks",
    "Evaluation": "corank.metrics",
    "Explanation": "corank.base",
    "ItemMean": "corank.models.ratings",
    "Items": "corank.data",
    "JudgingCurve": "corank.base.suggestions",
    "LCRA": "corank.models.linear",
    "LabelPreferences": "corank.models.labels",
    "LambdaRank": "corank.models.lambdarank",
    "Landmarks": "corank.base",
    "LinkLearn": "corank.text",
    "MGD": "corank.clicks",
    "NeighborLabelRanker": "corank.models.labels",
    "OnTop": "corank.base",
    "OnlineLabelRanker": "corank.models.labels",
    "OrdinalGP": "corank.models.gp",
    "PDGD": "corank.clicks",
    "PairSampler": "corank.base.pairs",
    "PairwiseEpsilonGreedy": "corank.clicks",
    "PairwiseLabelRanker": "corank.models.labels",
    "PathDisplay": "corank.base",
    "PositionBias": "corank.clicks",
    "PreferenceGP": "corank.models.gp",
    "PreferenceSession": "corank_lab.preferences",
    "QueryKFold": "corank.data",
    "QueryScaler": "corank.base",
    "QuerySearchCV": "corank.base",
    "QueryShuffleSplit": "corank.data",
    "RankRLS": "corank.models.rls",
    "RankSVM": "corank.models.linear",
    "Ranker": "corank.base",
    "RankingData": "corank.data",
    "RankingPursuit": "corank.models.pursuit",
    "Records": "corank.data",
    "SPD": "corank.models.linear",
    "Screening": "corank_lab.screening",
    "Smooth": "corank.base",
    "Study": "corank.comparison",
    "Summary": "corank.models.rls",
    "View": "corank.base.kernels",
    "ViewRankRLS": "corank.models.rls",
    "check_lambda": "corank.models.lambdarank",
    "click_pairs": "corank.clicks",
    "compare": "corank.comparison",
    "compare_runs": "corank.metrics",
    "estimate_from_clicks": "corank.clicks",
    "evaluate": "corank.metrics",
    "evaluate_run": "corank.metrics",
    "explain": "corank.base",
    "fit_many": "corank.models.pursuit",
    "fit_many_views": "corank.models.pursuit",
    "fit_parts": "corank.deploy.distributed",
    "judging_curve": "corank.base.suggestions",
    "load": "corank.deploy.persist",
    "make_ranking": "corank.data",
    "mask_scores": "corank.data",
    "open_store": "corank.data",
    "position_bias": "corank.clicks",
    "potential": "corank.models.lambdarank",
    "presumed_negatives": "corank.data",
    "read": "corank.data",
    "read_clicks": "corank.data",
    "read_items": "corank.data",
    "read_letor": "corank.data",
    "read_records": "corank.data",
    "reliability_curve": "corank.base",
    "save": "corank.deploy.persist",
    "simulate": "corank.clicks",
    "suggest": "corank.base.suggestions",
    "suggest_pairs": "corank.models.gp",
    "summarise": "corank.deploy.distributed",
    "write_clicks": "corank.data",
    "write_letor": "corank.data",
    "write_store": "corank.data",
}

# packages that are imported when they are first used
_PACKAGES = (
    "auto", "clicks", "collaborative", "data", "distributed", "errors", "estimator", "evaluation", "export",
    "gp", "judging", "kernels", "label_ranking", "lambdarank", "linear", "metrics", "pairwise", "persist",
    "pursuit", "rls", "solvers", "text",
)  # fmt: skip

__all__ = ["__version__", *_HOMES]

if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = lazy(__name__, {**_HOMES, **dict.fromkeys(_PACKAGES, __name__)})
