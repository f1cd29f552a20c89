"""Sums over queries whose bytes do not depend on the order of the terms."""
