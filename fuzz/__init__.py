"""Fuzzers of corank's file readers, one per format, each with a slow reference; see `python -m fuzz --help`."""
