"""Kernels that parse and print numbers and lines of text."""
