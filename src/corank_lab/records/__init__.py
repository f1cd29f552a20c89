"""Bibliographic records: read and write them."""

from corank_lab.records.records import Records, load_review, read_records

__all__ = ["Records", "load_review", "read_records"]
