"""Hostile files against corank's readers: one fuzzer a format, each with a slow reference; `python -m fuzz --help`."""
