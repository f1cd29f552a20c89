"""Ranking metrics by name under a named convention, evaluation of runs, and tests of significance."""

from corank.metrics.binary import (
    auc,
    average_precision,
    bpref,
    break_even_point,
    precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
    success,
)
from corank.metrics.conventions import CONVENTIONS, Convention
from corank.metrics.evaluate import Evaluation, evaluate
from corank.metrics.graded import dcg, expected_reciprocal_rank, mean_ndcg, ndcg, winner_take_all
from corank.metrics.measure import Measure, Metric, MetricResult
from corank.metrics.names import MEASURES, parse_metric
from corank.metrics.pairwise import (
    disagreement_error,
    kendall_tau,
    kpartite_error,
    mean_absolute_error,
    mean_squared_error,
)
from corank.metrics.runs import evaluate_run
from corank.metrics.scorer import scorer
from corank.metrics.significance import (
    MeanTest,
    PairedTest,
    PairedTests,
    compare_runs,
    holm,
    sign_flip,
    wilcoxon,
)

__all__ = [
    "CONVENTIONS",
    "MEASURES",
    "Convention",
    "Evaluation",
    "MeanTest",
    "Measure",
    "Metric",
    "MetricResult",
    "PairedTest",
    "PairedTests",
    "auc",
    "average_precision",
    "bpref",
    "break_even_point",
    "compare_runs",
    "dcg",
    "disagreement_error",
    "evaluate",
    "evaluate_run",
    "expected_reciprocal_rank",
    "holm",
    "kendall_tau",
    "kpartite_error",
    "mean_absolute_error",
    "mean_ndcg",
    "mean_squared_error",
    "ndcg",
    "parse_metric",
    "precision",
    "rank_biased_precision",
    "recall",
    "reciprocal_rank",
    "scorer",
    "sign_flip",
    "success",
    "wilcoxon",
    "winner_take_all",
]
