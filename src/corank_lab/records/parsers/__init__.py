"""Parsers of record files: each returns the raw columns or tags of every record, and what they mean."""
