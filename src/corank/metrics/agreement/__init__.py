"""Judgements of the same documents by several judges: agreement, contradictions, and one grade for each document."""

from corank.data.io.judgements import JudgementList, read_judgements
from corank.metrics.agreement.report import (
    JudgeAgreement,
    JudgePair,
    aggregate_grades,
    cohen_kappa,
    judge_agreement,
    krippendorff_alpha,
)

__all__ = [
    "JudgeAgreement",
    "JudgePair",
    "JudgementList",
    "aggregate_grades",
    "cohen_kappa",
    "judge_agreement",
    "krippendorff_alpha",
    "read_judgements",
]
