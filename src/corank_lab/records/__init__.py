"""Bibliographic records: read and write them."""
