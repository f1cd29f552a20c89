"""Atomic files, locks and journals."""
