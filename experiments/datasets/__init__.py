"""Readers of the public data sets that the experiments use."""
