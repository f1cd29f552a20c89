"""Reports with tables and plots, as one HTML page and as Markdown."""

from corank.evaluation.report.report import Report
from corank.evaluation.report.study import study_html, study_markdown, write
from corank.tables import Cell, ReportTable

__all__ = ["Cell", "Report", "ReportTable", "study_html", "study_markdown", "write"]
