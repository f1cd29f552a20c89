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
    from corank.auto import AutoRanker as AutoRanker
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
    from corank.collaborative import Collaborative as Collaborative, ItemMean as ItemMean
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
    from corank.distributed import fit_parts as fit_parts, summarise as summarise
    from corank.estimator import (
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
    from corank.evaluation.compare import Study as Study, compare as compare
    from corank.gp import (
        CollaborativeGP as CollaborativeGP,
        OrdinalGP as OrdinalGP,
        PreferenceGP as PreferenceGP,
        suggest_pairs as suggest_pairs,
    )
    from corank.judging.preferences import PreferenceSession as PreferenceSession
    from corank.judging.screening import Screening as Screening
    from corank.judging.suggestions import (
        JudgingCurve as JudgingCurve,
        judging_curve as judging_curve,
        suggest as suggest,
    )
    from corank.kernels import View as View
    from corank.label_ranking import (
        AutoLabelRanker as AutoLabelRanker,
        CalibratedLabelRanker as CalibratedLabelRanker,
        LabelPreferences as LabelPreferences,
        NeighborLabelRanker as NeighborLabelRanker,
        OnlineLabelRanker as OnlineLabelRanker,
        PairwiseLabelRanker as PairwiseLabelRanker,
    )
    from corank.lambdarank import LambdaRank as LambdaRank, check_lambda as check_lambda, potential as potential
    from corank.linear import CRR as CRR, LCRA as LCRA, RankSVM as RankSVM, SPD as SPD
    from corank.metrics import (
        Evaluation as Evaluation,
        compare_runs as compare_runs,
        evaluate as evaluate,
        evaluate_run as evaluate_run,
    )
    from corank.pairwise import PairSampler as PairSampler
    from corank.persist import load as load, save as save
    from corank.pursuit import (
        CoRankingPursuit as CoRankingPursuit,
        RankingPursuit as RankingPursuit,
        fit_many as fit_many,
        fit_many_views as fit_many_views,
    )
    from corank.rls import CoRankRLS as CoRankRLS, RankRLS as RankRLS, Summary as Summary, ViewRankRLS as ViewRankRLS
    from corank.text import BM25 as BM25, Corpus as Corpus, LinkLearn as LinkLearn
    # isort: on

# each public name and the module that defines it, which is imported when the name is first used
_HOMES = {
    "AutoLabelRanker": "corank.label_ranking",
    "AutoRanker": "corank.auto",
    "BM25": "corank.text",
    "CRR": "corank.linear",
    "Calibrated": "corank.estimator",
    "CalibratedLabelRanker": "corank.label_ranking",
    "ClickLog": "corank.data",
    "CoRankRLS": "corank.rls",
    "CoRankingPursuit": "corank.pursuit",
    "Collaborative": "corank.collaborative",
    "CollaborativeGP": "corank.gp",
    "Collection": "corank.data",
    "ColumnMean": "corank.estimator",
    "Corpus": "corank.text",
    "DBGD": "corank.clicks",
    "Evaluation": "corank.metrics",
    "Explanation": "corank.estimator",
    "ItemMean": "corank.collaborative",
    "Items": "corank.data",
    "JudgingCurve": "corank.judging.suggestions",
    "LCRA": "corank.linear",
    "LabelPreferences": "corank.label_ranking",
    "LambdaRank": "corank.lambdarank",
    "Landmarks": "corank.estimator",
    "LinkLearn": "corank.text",
    "MGD": "corank.clicks",
    "NeighborLabelRanker": "corank.label_ranking",
    "OnTop": "corank.estimator",
    "OnlineLabelRanker": "corank.label_ranking",
    "OrdinalGP": "corank.gp",
    "PDGD": "corank.clicks",
    "PairSampler": "corank.pairwise",
    "PairwiseEpsilonGreedy": "corank.clicks",
    "PairwiseLabelRanker": "corank.label_ranking",
    "PathDisplay": "corank.estimator",
    "PositionBias": "corank.clicks",
    "PreferenceGP": "corank.gp",
    "PreferenceSession": "corank.judging.preferences",
    "QueryKFold": "corank.data",
    "QueryScaler": "corank.estimator",
    "QuerySearchCV": "corank.estimator",
    "QueryShuffleSplit": "corank.data",
    "RankRLS": "corank.rls",
    "RankSVM": "corank.linear",
    "Ranker": "corank.estimator",
    "RankingData": "corank.data",
    "RankingPursuit": "corank.pursuit",
    "Records": "corank.data",
    "SPD": "corank.linear",
    "Screening": "corank.judging.screening",
    "Smooth": "corank.estimator",
    "Study": "corank.evaluation.compare",
    "Summary": "corank.rls",
    "View": "corank.kernels",
    "ViewRankRLS": "corank.rls",
    "check_lambda": "corank.lambdarank",
    "click_pairs": "corank.clicks",
    "compare": "corank.evaluation.compare",
    "compare_runs": "corank.metrics",
    "estimate_from_clicks": "corank.clicks",
    "evaluate": "corank.metrics",
    "evaluate_run": "corank.metrics",
    "explain": "corank.estimator",
    "fit_many": "corank.pursuit",
    "fit_many_views": "corank.pursuit",
    "fit_parts": "corank.distributed",
    "judging_curve": "corank.judging.suggestions",
    "load": "corank.persist",
    "make_ranking": "corank.data",
    "mask_scores": "corank.data",
    "open_store": "corank.data",
    "position_bias": "corank.clicks",
    "potential": "corank.lambdarank",
    "presumed_negatives": "corank.data",
    "read": "corank.data",
    "read_clicks": "corank.data",
    "read_items": "corank.data",
    "read_letor": "corank.data",
    "read_records": "corank.data",
    "reliability_curve": "corank.estimator",
    "save": "corank.persist",
    "simulate": "corank.clicks",
    "suggest": "corank.judging.suggestions",
    "suggest_pairs": "corank.gp",
    "summarise": "corank.distributed",
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
