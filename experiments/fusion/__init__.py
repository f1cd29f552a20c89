"""Fusion of retrievers."""
