"""Reports with tables and plots, as one HTML page and as Markdown."""

from corank.comparison.report.blocks import Report
from corank.comparison.report.card import ModelCard, model_card, query_importance
from corank.comparison.report.study import study_html, study_markdown, write
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
