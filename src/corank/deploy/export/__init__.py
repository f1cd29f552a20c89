"""Export models to search engines, ONNX, Python, JavaScript and SQL, and verify them by the engines' own arithmetic."""

from corank.deploy.export.describe import Description, describe
from corank.deploy.export.export import ExportedFiles, Verification, export_fusion, export_model
from corank.deploy.export.fusion_targets import FUSION_TARGETS
from corank.deploy.export.pyterrier import pyterrier_ranker
from corank.deploy.export.target import TARGETS

__all__ = [
    "FUSION_TARGETS", "TARGETS", "Description", "ExportedFiles", "Verification", "describe", "export_fusion",
    "export_model", "pyterrier_ranker",
]  # fmt: skip
