"""Judgement lists: grades of documents for queries, read from and written to the formats of other tools."""
