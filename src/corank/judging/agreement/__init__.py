"""Judgements of the same documents by several judges: agreement, contradictions, and one grade for each document."""

from corank.data.judgements.judgement_list import JudgementList
from corank.data.judgements.reading import read_judgements
from corank.judging.agreement.coefficients import cohen_kappa, krippendorff_alpha
from corank.judging.agreement.report import JudgeAgreement, JudgePair, aggregate_grades, judge_agreement

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
