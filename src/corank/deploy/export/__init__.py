"""Export models to search engines, ONNX, Python, JavaScript and SQL, and verify them by the engines' own arithmetic."""

from corank.deploy.export.describe import Description, describe
from corank.deploy.export.export import TARGETS, ExportedFiles, export_model
from corank.deploy.export.pyterrier import pyterrier_ranker
from corank.deploy.export.verify import Verification

__all__ = ["TARGETS", "Description", "ExportedFiles", "Verification", "describe", "export_model", "pyterrier_ranker"]
