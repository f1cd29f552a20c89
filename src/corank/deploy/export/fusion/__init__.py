"""Export fusions of retrievers: pipelines and queries of search engines, SQL, JSON and Python."""

from corank.deploy.export.fusion.export import FUSION_TARGETS, export_fusion

__all__ = ["FUSION_TARGETS", "export_fusion"]
