"""Reports with tables and plots, as one HTML page and as Markdown."""

from corank.evaluation.report.card import ModelCard, model_card
from corank.evaluation.report.importance import query_importance
from corank.evaluation.report.report import Report
from corank.evaluation.report.study import study_html, study_markdown, write
from corank.tables import Cell, ReportTable

__all__ = [
    "Cell",
    "ModelCard",
    "Report",
    "ReportTable",
    "model_card",
    "query_importance",
    "study_html",
    "study_markdown",
    "write",
]
