"""Verbs for text search and clicks."""
