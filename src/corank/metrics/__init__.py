"""How good is an order: metrics by name, under a named convention."""

from corank.metrics.compare import Comparison, compare
from corank.metrics.conventions import CONVENTIONS, Convention
from corank.metrics.evaluate import Evaluation, Result, evaluate
from corank.metrics.means import (
    auc,
    average_precision,
    break_even_point,
    disagreement_error,
    expected_reciprocal_rank,
    kendall_tau,
    kpartite_error,
    mean_ndcg,
    ndcg,
    precision,
    reciprocal_rank,
    winner_take_all,
)
from corank.metrics.names import parse_metric
from corank.metrics.runs import evaluate_run
from corank.metrics.scorer import scorer

__all__ = [
    "CONVENTIONS",
    "Comparison",
    "Convention",
    "Evaluation",
    "Result",
    "auc",
    "average_precision",
    "break_even_point",
    "compare",
    "disagreement_error",
    "evaluate",
    "evaluate_run",
    "expected_reciprocal_rank",
    "kendall_tau",
    "kpartite_error",
    "mean_ndcg",
    "ndcg",
    "parse_metric",
    "precision",
    "reciprocal_rank",
    "scorer",
    "winner_take_all",
]
