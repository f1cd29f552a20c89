"""How good is an order: metrics by name, under a named convention; each is also a function that gives its mean."""

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
from corank.metrics.chance import bootstrap_interval, holm, wilcoxon
from corank.metrics.compare import PairedTest, compare_runs
from corank.metrics.conventions import CONVENTIONS, Convention
from corank.metrics.evaluate import Evaluation, evaluate
from corank.metrics.graded import dcg, expected_reciprocal_rank, mean_ndcg, ndcg, winner_take_all
from corank.metrics.measure import Measure, Metric, Result
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

__all__ = [
    "CONVENTIONS",
    "MEASURES",
    "Convention",
    "Evaluation",
    "Measure",
    "Metric",
    "PairedTest",
    "Result",
    "auc",
    "average_precision",
    "bootstrap_interval",
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
    "success",
    "wilcoxon",
    "winner_take_all",
]
