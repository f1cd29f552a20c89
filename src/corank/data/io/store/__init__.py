"""Ranking problems on disk as memory-mapped arrays."""
