"""Reports: tables, plots and what they say, as one HTML page and as Markdown."""

from corank.report.report import Report, wilcoxon
from corank.tables import Cell, ReportTable

__all__ = ["Cell", "Report", "ReportTable", "wilcoxon"]
